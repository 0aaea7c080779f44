"""Sparse tables on their way in and out: cells that come one by one, in any order, and the columns of ones of a row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.cpu import packing
from .cells import Cells
from .stream import ROWS_BITS, ReadOptions, Source

AT_A_TIME = 1 << 18  # entries on their way in; each takes some fifty bytes until it is a bit


class CooBuilder:
    """The bits of a table whose cells come one by one, in any order; those that never come are zeros.

    Cells that come several times are summed, as in SciPy; so two ones in one place are a two, and refused. With a
    threshold they are taken only where the sum need not be known: above 0, of numbers none of which is negative.
    """

    def __init__(self, source: Source, options: ReadOptions, shape: tuple[int, int], first: int = 0) -> None:
        check_shape(source, *shape)
        self._source = source
        self._cells = Cells(source, options)
        self._shape = shape
        self._first = first  # what the file calls the first row and the first column
        self._width = -(-shape[1] // 64)
        # Which bits differ from those of a zero; with a threshold also which cells came at all.
        self._marks = np.zeros((shape[0], self._width), np.uint64)
        self._came = self._marks if self._cells.threshold is None else np.zeros_like(self._marks)
        self._twice: tuple[int, int] | None = None
        self._negative = False

    def put(self, rows: NDArray[np.integer], columns: NDArray[np.integer], values: NDArray[np.generic]) -> None:
        """Some cells and their values; a row or column that is not there is refused."""
        if not len(values):
            return
        self._check_inside(rows, self._shape[0], "row")
        self._check_inside(columns, self._shape[1], "column")
        ones = self._cells.numbers(
            values[np.newaxis], lambda _, place: self._where(int(rows[place]), int(columns[place]))
        ).to_dense(np.bool_)[0]
        places = rows.astype(np.int64) * (64 * self._width) + columns.astype(np.int64)
        sums = values.dtype.kind != "b"  # of booleans SciPy makes no sums
        threshold = self._cells.threshold
        if threshold is None:
            _flip(self._marks, self._fresh(places[ones], self._marks, sums))
            return
        counts = values != 0  # also where it is missing: such a cell is no one, where zeros are
        self._negative = self._negative or bool((values[counts] < 0).any())
        _flip(self._came, self._fresh(places[counts], self._came, sums))
        _flip(self._marks, self._fresh(places[counts & (ones != (threshold < 0))], self._marks, False))

    def bits(self) -> BitMatrix:
        """All cells came: their bits."""
        self._cells.settle()
        if self._twice is not None and (self._cells.threshold != 0 or self._negative):
            raise self._source.error(f"{self._where(*self._twice)} is given several times; sum such entries first")
        if self._cells.threshold is not None and self._cells.threshold < 0 and self._width:
            np.invert(self._marks, out=self._marks)
            if self._shape[1] % 64:
                self._marks[:, -1] &= np.uint64((1 << self._shape[1] % 64) - 1)
        return BitMatrix.from_words(self._marks, self._shape[1], check=False)

    def _where(self, row: int, column: int) -> str:
        """Where a cell is, in words."""
        return where(row, column) if not self._first else f"row {row + self._first}, column {column + self._first}"

    def _check_inside(self, numbers: NDArray[np.integer], length: int, what: str) -> None:
        """Refuse numbers of rows or columns beyond the table: a kernel would write there."""
        low, high = int(numbers.min()), int(numbers.max())
        if low < 0 or high >= length:
            wrong = (low if low < 0 else high) + self._first
            raise self._source.error(f"damaged: it has an entry in {what} {wrong}, but only {length} {what}s")

    def _fresh(self, places: NDArray[np.int64], marks: NDArray[np.uint64], sums: bool) -> NDArray[np.int64]:
        """These places without those that are there several times or marked already, of which sums take note."""
        if (places[1:] <= places[:-1]).any():
            places = np.sort(places)
            again = places[1:] == places[:-1]
            if again.any():
                self._note(places[1:][again], sums)
                places = np.concatenate((places[:1], places[1:][~again]))
        again = ((marks.ravel()[places >> 6] >> (places & 63).astype(np.uint64)) & np.uint64(1)).astype(np.bool_)
        if again.any():
            self._note(places[again], sums)
            places = places[~again]
        return places

    def _note(self, places: NDArray[np.int64], sums: bool) -> None:
        """Cells that came several times: two where only ones and zeros may be, else something to think about later."""
        if not sums or self._twice is not None:
            return
        self._twice = row, column = divmod(int(places[0]), 64 * self._width)
        if self._cells.threshold is None:
            raise self._cells.neither("2", f"{self._where(row, column)}, which is given twice")


def where(row: int, column: int) -> str:
    """Where a cell is, in words, in files that count as Python does."""
    return f"row {row}, column {column} (counted from 0)"


def check_shape(source: Source, n_rows: int, n_cols: int, by_rows: bool = False) -> None:
    """Refuse a table that does not fit into memory, also one without rows that has far too many columns."""
    source.check_size(n_rows, n_cols, by_rows)
    source.check_size(max(n_rows, 1), max(n_cols, 1), by_rows)


def _flip(marks: NDArray[np.uint64], places: NDArray[np.int64]) -> None:
    """Flip the bits at these places, each there once."""
    packing.flip_sparse(np.array([0, len(places)]), places, marks.reshape(1, -1))


def listed(bits: BitMatrix) -> Iterator[NDArray[np.integer]]:
    """The columns of the ones of each row."""
    at_a_time = max(1, ROWS_BITS // max(1, bits.n_cols))
    for start in range(0, len(bits), at_a_time):
        some = bits[start : start + at_a_time].to_sparse()
        for row in range(some.shape[0]):
            yield some.indices[some.indptr[row] : some.indptr[row + 1]]
