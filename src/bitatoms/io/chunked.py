"""Tables that come in tiles: numbers as 0 and 1, the first missing one kept, and tiles packed into bands of rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..bits import BitMatrix
from .cells import Cells
from .coo import where
from .stream import ROWS_BITS, ReadOptions, Source

_CHUNK = 1 << 30  # bytes of a chunk, unpacked: libraries hold one whole
_FREE = 1 << 30  # bytes that an array may claim without any in the file
_TIMES = 100_000  # bytes that one in the file may stand for: zeros, packed by the best there is

Places = tuple[NDArray[Any], NDArray[Any]]  # rows and columns of some cells
Locate = Callable[[NDArray[np.intp]], Places]  # from their places in a tile to those in the table
ReadTile = Callable[[slice, slice], NDArray[Any]]


class Missing:
    """How many values are missing, and the first of them row by row, in whatever order the tiles come."""

    def __init__(self) -> None:
        self.count = 0
        self.first = (-1, -1)

    def add(self, rows: NDArray[Any], columns: NDArray[Any]) -> None:
        """Note missing values at these places."""
        if len(rows):
            row = int(rows.min())
            self._note(len(rows), (row, int(columns[rows == row].min())))

    def merge(self, other: Missing) -> None:
        """Note those that another noted as well."""
        if other.count:
            self._note(other.count, other.first)

    def _note(self, count: int, first: tuple[int, int]) -> None:
        """Note so many, and where the first of them is."""
        self.first = min(self.first, first) if self.count else first
        self.count += count


class ChunkCells:
    """The tiles of one table as 0 and 1; ``settle`` is called when all were seen, and refuses missing values."""

    def __init__(self, source: Source, options: ReadOptions, columns: Sequence[str] | None) -> None:
        self.cells = Cells(source, options)
        self.columns = columns
        self.missing = Missing()

    def where(self, row: int, column: int) -> str:
        """The place of a cell in words; rows count from 0, as in NumPy and pandas."""
        return where(row, column) if self.columns is None else f"row {row}, column {self.columns[column]!r}"

    def ones(self, values: NDArray[Any], locate: Locate) -> NDArray[Any]:
        """Numbers as 0 and 1; missing ones are noted, and are 0."""
        threshold = self.cells.threshold
        found = validation.binarized(values, threshold)
        if found is not None:
            return found
        lost = np.isnan(values)
        self.missing.add(*locate(np.flatnonzero(lost)))
        values = np.where(lost, 0, values)
        found = validation.binarized(values, threshold)
        if found is None:
            right = np.isfinite(values) if threshold is not None else (values == 0) | (values == 1)
            first = np.flatnonzero(~right)[:1]
            (row,), (column,) = locate(first)
            shown = str(values.ravel()[first[0]]).removesuffix(".0")
            raise self.cells.neither(shown, self.where(int(row), int(column)))
        return found & ~lost

    def settle(self) -> None:
        """All cells were seen: refuse the missing ones, unless they are to be zeros."""
        if self.missing.count:
            self.cells.n_missing += self.missing.count
            self.cells.first_missing = self.where(*self.missing.first)
        self.cells.settle()


def bands(read: ReadTile, shape: tuple[int, int], chunk: tuple[int, int], numbers: ChunkCells) -> Iterator[BitMatrix]:
    """The rows of an array that lies on disk in chunks of this shape, some at a time; each chunk is read once."""
    n_rows, n_cols = shape
    tall, wide = (max(1, min(size, whole)) for size, whole in zip(chunk, shape, strict=True))
    height = max(1, ROWS_BITS // max(1, n_cols) // tall) * tall
    width = max(1, n_cols)
    if height * n_cols > 4 * ROWS_BITS:  # chunks much taller than wide
        width = max(1, ROWS_BITS // height // wide) * wide
    for top in range(0, n_rows, height):
        rows = slice(top, min(n_rows, top + height))
        yield _band(read, rows, n_cols, width, numbers)


def _band(read: ReadTile, rows: slice, n_cols: int, width: int, numbers: ChunkCells) -> BitMatrix:
    """Rows packed tile after tile; what does not fill a word waits for the next."""
    n_rows = rows.stop - rows.start
    words = np.empty((n_rows, -(-n_cols // 64)), np.uint64)
    held = np.empty((n_rows, 0), np.uint8)
    done = 0
    for left in range(0, n_cols, width):
        columns = slice(left, min(n_cols, left + width))

        def locate(places: NDArray[np.intp], columns: slice = columns) -> Places:
            down, across = np.divmod(places, columns.stop - columns.start)
            return rows.start + down, columns.start + across

        tile = numbers.ones(read(rows, columns), locate)
        held = np.concatenate((held, tile), axis=1) if held.shape[1] else tile
        whole = held.shape[1] if columns.stop == n_cols else held.shape[1] // 64 * 64
        words[:, done // 64 : -(-(done + whole) // 64)] = BitMatrix.from_dense(held[:, :whole]).words
        held = held[:, whole:]
        done += whole
    return BitMatrix.from_words(words, n_cols, check=False)


def check_claim(source: Source, what: str, shape: Sequence[int], chunk: Sequence[int], size: int, there: int) -> None:
    """Refuse an array of values of this size that claims to be far larger than the bytes that are there of it."""
    total = size * math.prod(shape)
    if total > _FREE + _TIMES * there or size * math.prod(chunk) > _CHUNK:
        raise source.error(
            f"{what} says that its shape is {tuple(shape)}, in chunks of {tuple(chunk)}, "
            f"and {there} bytes of it are there: damaged, or made to mislead"
        )
