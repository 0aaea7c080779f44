"""Formal concepts: rectangles of ones, found greedily (GreConD). As starting atoms they build from below.

R. Belohlavek, V. Vychodil, "Discovery of optimal factors in binary data via a novel method of matrix decomposition",
Journal of Computer and System Sciences 76(1), 2010. A concept is all rows that have all of its columns, and all columns
that all of its rows have. It starts empty and is grown by the column with which it covers the most uncovered ones,
until no column increases this number; ties go to the first column. No known zero is ever covered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix

_CHUNK_PAIRS = 1 << 20  # pairs of columns, or their words, processed together


class Concept(NamedTuple):
    """The indices of the rows of a rectangle, and its columns, packed."""

    rows: NDArray[np.intp]
    columns: NDArray[np.uint64]


def concepts(data: BitMatrix) -> Iterator[Concept]:
    """Yield concepts until all ones are covered. A concept may contain unknown cells, which need not be covered."""
    uncovered = data.words.copy()
    allowed = data
    if data.unknown is not None:
        allowed = BitMatrix.from_words(data.words | data.unknown.words, data.n_cols, check=False)
    while uncovered.any():
        concept = _grown(allowed, uncovered)
        uncovered[concept.rows] &= ~concept.columns
        yield concept


def _grown(data: BitMatrix, uncovered: NDArray[np.uint64]) -> Concept:
    """Return a concept, grown greedily to cover the most of ``uncovered``."""
    rows, columns, covered = np.arange(data.n_rows), np.zeros(data.words.shape[1], np.uint64), 0
    while True:
        words = data.words[rows]
        covers = _count_covered(BitMatrix(words, data.n_cols), uncovered[rows], columns)
        best = int(covers.argmax())
        if covers[best] <= covered:  # columns already in the concept add nothing either
            return Concept(rows, columns)
        having = np.flatnonzero(words[:, best // 64] >> np.uint64(best % 64) & np.uint64(1))
        rows, columns, covered = rows[having], np.bitwise_and.reduce(words[having], axis=0), int(covers[best])


def _count_covered(data: BitMatrix, uncovered: NDArray[np.uint64], atom: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return for each column the number of uncovered ones that the concept covers if grown by this column.

    ``data`` and ``uncovered`` hold only rows that have all columns of ``atom``.
    """
    having = data.T.words  # rows that have a column: those of the concept grown by it
    wanting = BitMatrix(uncovered, data.n_cols).T.words
    covers = _row_counts(wanting)
    # Add the uncovered ones in the columns of the atom, bit plane by bit plane of their number per row.
    lacks = np.bitwise_count(uncovered & atom).sum(axis=1, dtype=np.int64)
    for power in range(int(lacks.max()).bit_length()):
        plane = BitMatrix.from_dense((lacks >> power & 1)[:, np.newaxis]).T.words
        covers += _row_counts(having & plane) << power
    grown = BitMatrix(atom[np.newaxis], data.n_cols).to_dense(bool)[0]
    covers[grown] = 0
    # Add the further columns that all rows of the grown concept have.
    for column, other in _implied(having, np.flatnonzero(~grown & having.any(axis=1))):
        for chunk in np.array_split(np.arange(len(column)), 1 + column.size * having.shape[1] // _CHUNK_PAIRS):
            np.add.at(covers, column[chunk], _row_counts(having[column[chunk]] & wanting[other[chunk]]))
    return covers


def _implied(having: NDArray[np.uint64], columns: NDArray[np.intp]) -> Iterator[tuple[NDArray, NDArray]]:
    """Yield pairs of different columns where the first implies the second, in chunks of first columns."""
    step = max(1, _CHUNK_PAIRS // max(1, len(columns)))
    words = np.ascontiguousarray(having.T)
    for start in range(0, len(columns), step):
        first, second = columns[start : start + step, np.newaxis], columns
        column, other = np.nonzero((words[0, first] & ~words[0, second] == 0) & (first != second))
        column, other = columns[start + column], columns[other]
        for word in words[1:]:  # few pairs are left after the first words
            implied = word[column] & ~word[other] == 0
            column, other = column[implied], other[implied]
        yield column, other


def _row_counts(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the number of ones of each row of words."""
    return np.bitwise_count(words).sum(axis=1, dtype=np.int64)
