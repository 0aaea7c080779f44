"""Starting atoms of the search for a fixed number of atoms: of several kinds, because none is the best on all tables.

Atoms grown one after the other miss those that overlap; atoms of a non-negative factorization do not. Where the number
of atoms is high, the best factorizations build from below: they hardly ever cover a zero, as formal concepts and single
columns do.

Formal concepts: rectangles of ones, found greedily (GreConD). As starting atoms they build from below.

R. Belohlavek, V. Vychodil, "Discovery of optimal factors in binary data via a novel method of matrix decomposition",
Journal of Computer and System Sciences 76(1), 2010. A concept is all rows that have all of its columns, and all columns
that all of its rows have. It starts empty and is grown by the column with which it covers the most uncovered ones,
until no column increases this number; ties go to the first column. No known zero is ever covered.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix, bits_at, count_ones
from ..context import SearchContext
from .initial import first_distinct, greedy, samples, spread
from .nmf import nmf_starts


def start_atoms(context: SearchContext) -> Iterator[BitMatrix]:
    """Yield the atoms of each start, at most ``plan.fewest`` of them."""
    data, n_atoms, rule = context.data, context.plan.fewest, context.greedy_rule
    yield greedy(data, n_atoms, rule.covers, context.random, context.workers, context.monitor.is_late)
    exact = atoms_without_errors(data, n_atoms, rule.max_atoms)
    if exact is not None:
        yield exact
    if rule.max_atoms < n_atoms:  # grown atoms soon fill the codes of the rows
        yield samples(data, n_atoms, context.random)
    if rule.covers and data.n_rows * data.n_cols**2 * n_atoms <= context.plan.fixed_rank.max_concept_work:
        found = [concept.columns for concept in islice(concepts(data), n_atoms)]
        words = np.array(found, np.uint64).reshape(-1, data.words.shape[1])
        yield BitMatrix.from_words(words, data.n_cols, check=False)
    if n_atoms < data.n_cols:  # otherwise they are the table itself
        yield _columns_as_atoms(data, n_atoms)
    is_wide = True
    for atoms in nmf_starts(context, n_atoms, context.plan.fixed_rank.nmf):
        is_wide = False
        yield atoms
    if is_wide:  # centres of clusters of rows, which atoms grown in turn never reach
        yield spread(data, n_atoms, rule.covers, context.random, context.workers)


def atoms_without_errors(data: BitMatrix, n_atoms: int, max_uses: int) -> BitMatrix | None:
    """Return the distinct rows, or one atom per set of equal columns, whichever are fewer: they leave no errors.

    Returns None if both are more than ``n_atoms``. Columns are ignored if rows, which may use ``max_uses`` atoms each,
    may need more.
    """
    bits = data.filled()
    rows = _distinct_rows(bits, n_atoms)
    most = min(n_atoms if rows is None else rows.n_rows - 1, max_uses)
    if _distinct_rows(bits[: 2 * most + 1].T, most) is None:  # too many already, without transposing a long table
        return rows
    columns = bits.T
    distinct = _distinct_rows(columns, most)
    if distinct is None:
        return rows
    number = {row.tobytes(): k for k, row in enumerate(distinct.words)}
    atoms = np.zeros((distinct.n_rows, data.n_cols), np.uint8)
    for column in np.flatnonzero(columns.row_weights()):
        atoms[number[columns.words[column].tobytes()], column] = 1
    return BitMatrix.from_dense(atoms)


def _distinct_rows(bits: BitMatrix, most: int) -> BitMatrix | None:
    """Return the distinct rows that are not all zeros, or None if they are more than ``most``."""
    rows = first_distinct(bits, np.flatnonzero(bits.words.any(axis=1)), most + 1)
    return None if len(rows) > most else bits[rows]


def _columns_as_atoms(data: BitMatrix, n_atoms: int) -> BitMatrix:
    """Return an atom with a single one for each of the columns with the most ones."""
    weights = data.column_weights()
    chosen = np.argsort(-weights, kind="stable")[: min(n_atoms, int((weights > 0).sum()))]
    return bits_at(np.arange(len(chosen)), chosen, (len(chosen), data.n_cols))


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
    covers = count_ones(wanting)
    # Add the uncovered ones in the columns of the atom, bit plane by bit plane of their number per row.
    lacks = count_ones(uncovered & atom)
    for power in range(int(lacks.max()).bit_length()):
        plane = BitMatrix.from_dense((lacks >> power & 1)[:, np.newaxis]).T.words
        covers += count_ones(having & plane) << power
    grown = BitMatrix(atom[np.newaxis], data.n_cols).to_dense(bool)[0]
    covers[grown] = 0
    # Add the further columns that all rows of the grown concept have.
    for column, other in _implied(having, np.flatnonzero(~grown & having.any(axis=1))):
        for chunk in np.array_split(np.arange(len(column)), 1 + column.size * having.shape[1] // _CHUNK_PAIRS):
            np.add.at(covers, column[chunk], count_ones(having[column[chunk]] & wanting[other[chunk]]))
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
