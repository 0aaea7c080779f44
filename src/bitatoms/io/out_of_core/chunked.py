"""Read arrays that are stored in 2-D chunks: convert each chunk to bits, and pack chunks side by side into rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix
from ..cells import Cells, Indices
from ..limits import CHUNK_BITS, FREE_TABLE_BYTES, MAX_ARRAY_CHUNK, MAX_TABLE_EXPANSION
from ..stream import Source

ReadChunk = Callable[[slice, slice], NDArray[Any]]


class BitsBuilder:
    """Rows of bits that are filled rectangle by rectangle; a mask is allocated only if some cell is unknown."""

    def __init__(self, n_rows: int, n_cols: int) -> None:
        self._n_cols = n_cols
        self._words = np.empty((n_rows, -(-n_cols // 64)), np.uint64)
        self._unknown: NDArray[np.uint64] | None = None

    def put(self, bits: BitMatrix, row: int = 0, column: int = 0) -> None:
        """Fill in a rectangle; its first column is a multiple of 64."""
        where = slice(row, row + len(bits)), slice(column // 64, column // 64 + bits.words.shape[1])
        self._words[where] = bits.words
        if bits.unknown is not None:
            self._unknown = np.zeros_like(self._words) if self._unknown is None else self._unknown
            self._unknown[where] = bits.unknown.words

    def build(self) -> BitMatrix:
        """Return the bits, once all are filled in."""
        unknown = self._unknown
        mask = None if unknown is None else BitMatrix.from_words(unknown, self._n_cols, check=False)
        return BitMatrix.from_words(self._words, self._n_cols, False, mask)


def read_row_chunks(
    read: ReadChunk, shape: tuple[int, int], chunk_shape: tuple[int, int], cells: Cells
) -> Iterator[BitMatrix]:
    """Read the rows of an array stored in chunks of this shape, some at a time; each stored chunk is read once."""
    n_rows, n_cols = shape
    chunk_height, chunk_width = (max(1, min(size, total)) for size, total in zip(chunk_shape, shape, strict=True))
    height = max(1, CHUNK_BITS // max(1, n_cols) // chunk_height) * chunk_height
    width = max(1, n_cols)
    if height * n_cols > 4 * CHUNK_BITS:  # chunks much taller than wide
        width = max(1, CHUNK_BITS // height // chunk_width) * chunk_width
    for start in range(0, n_rows, height):
        yield _read_rows(read, slice(start, min(n_rows, start + height)), n_cols, width, cells)


def _read_rows(read: ReadChunk, rows: slice, n_cols: int, width: int, cells: Cells) -> BitMatrix:
    """Read and pack some rows, ``width`` columns at a time; columns that do not fill a word wait for the next ones."""
    n_rows = rows.stop - rows.start
    builder = BitsBuilder(n_rows, n_cols)
    pending = np.empty((n_rows, 0), np.uint8)
    n_packed = 0
    for left in range(0, n_cols, width):
        columns = slice(left, min(n_cols, left + width))

        def locate(indices: NDArray[np.intp], columns: slice = columns) -> Indices:
            row, column = np.divmod(indices, columns.stop - columns.start)
            return rows.start + row, columns.start + column

        states = cells.numbers_to_states(read(rows, columns), locate)
        cells.count(states, locate)
        pending = np.concatenate((pending, states), axis=1) if pending.shape[1] else states
        count = pending.shape[1] if columns.stop == n_cols else pending.shape[1] // 64 * 64
        builder.put(cells.pack(pending[:, :count]), column=n_packed)
        pending = pending[:, count:]
        n_packed += count
    return builder.build()


def stack_chunks(chunks: Iterable[BitMatrix], shape: tuple[int, int]) -> BitMatrix:
    """Return the rows of a table that come in chunks, of which one at a time is in memory besides the table."""
    builder = BitsBuilder(*shape)
    filled = 0
    for chunk in chunks:
        builder.put(chunk, filled)
        filled += len(chunk)
    return builder.build()


def check_claimed_size(
    source: Source, what: str, shape: Sequence[int], chunk_shape: Sequence[int], itemsize: int, n_bytes: int
) -> None:
    """Raise if an array claims to be far larger than its bytes in the file can hold, or to have too large chunks."""
    claimed, chunk_bytes = itemsize * math.prod(shape), itemsize * math.prod(chunk_shape)
    if claimed > FREE_TABLE_BYTES + MAX_TABLE_EXPANSION * n_bytes or chunk_bytes > MAX_ARRAY_CHUNK:
        raise source.error(
            f"{what} claims the shape {tuple(shape)} in chunks of {tuple(chunk_shape)}, but the file holds {n_bytes} "
            "bytes of it: corrupt or malicious"
        )
