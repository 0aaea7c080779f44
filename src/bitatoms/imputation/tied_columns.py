"""Tied columns: columns that stand for one variable are predicted, hidden and filled in together.

A variable has a few values, and each value is a combination of cells: a question with several answers has one column
per answer, of which a row has exactly one; a genotype, 0, 1 or 2 copies of an allele, has two columns, of which the
first is a one with at least one copy and the second with two; any other column is a variable of its own, with the
values 0 and 1. Predicted one by one, the cells of a variable may contradict each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix, stack_rows
from ..columns.encoding import ColumnTies
from ..columns.table import Header

_LEAST_UNKNOWN = 2  # cells of columns that are tied: one could be unknown in both by chance
_LEAST_KNOWN = 20  # rows in which some combination does not occur
_LEAST = 1e-9  # probability of a value

Convert = Callable[[NDArray[np.float64], BitMatrix], BitMatrix]  # of the probabilities of rows, and the rows


class Variables(NamedTuple):
    """Variables with the same values.

    Attributes
    ----------
    columns : ndarray of shape (n_variables, n_columns)
        The columns of each variable.
    values : ndarray of shape (n_values, n_columns)
        The cells of each value.
    """

    columns: NDArray[np.intp]
    values: NDArray[np.uint8]

    @property
    def shape(self) -> tuple[int, int]:
        """The number of variables, and of their values."""
        return len(self.columns), len(self.values)

    @property
    def is_binary(self) -> bool:
        """Whether they are single columns."""
        return self.columns.shape[1] == 1

    def probabilities(self, cells: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probabilities of values, (n, n_variables, n_values), from those of ones in cells, (n, n_cols).

        They are above 0, and sum to 1. If the cells do not contradict each other, the probability of each cell is the
        sum over the values that have it.
        """
        n_values, n_columns = self.values.shape
        if n_values == n_columns:  # one column per value
            found = cells[:, self.columns]
        else:
            solution = np.rint(np.linalg.inv(np.column_stack([np.ones(n_values), self.values])))
            found = np.tile(solution[0], (len(cells), len(self.columns), 1))
            for index, column in enumerate(self.columns.T):  # few columns, and sums in a fixed order
                found += cells[:, column, np.newaxis] * solution[index + 1]
        found = np.maximum(found, _LEAST)
        return found / found.sum(axis=2, keepdims=True)

    def conflicts(self, rows: BitMatrix) -> NDArray[np.uint8]:
        """Return the number of known cells that differ from each value, (n, n_variables, n_values)."""
        cells, known = rows.filled().to_dense(bool), known_cells(rows)
        found = np.zeros((len(cells), len(self.columns), len(self.values)), np.uint8)
        for index, column in enumerate(self.columns.T):
            found += known[:, column, np.newaxis] & (cells[:, column, np.newaxis] != (self.values[:, index] == 1))
        return found

    def indicators(self, rows: BitMatrix) -> NDArray[np.float64]:
        """Return 1 for the value of each variable whose cells are known, and 0, (n, n_variables, n_values)."""
        is_known = self._all_known(rows)
        return (is_known & (self.conflicts(rows) == 0)).astype(np.float64)

    def given_known(self, probabilities: NDArray[np.float64], rows: BitMatrix) -> NDArray[np.float64]:
        """Return the probabilities of values that agree with the known cells of variables with unknown cells.

        If known cells contradict each other, the values that differ from the fewest of them remain.
        """
        if self.is_binary:
            return probabilities
        conflicts, all_known = self.conflicts(rows), self._all_known(rows)
        is_possible = (conflicts == conflicts.min(axis=2, keepdims=True)) | all_known
        possible = np.where(is_possible, probabilities, 0)
        return possible / possible.sum(axis=2, keepdims=True)

    def _all_known(self, rows: BitMatrix) -> NDArray[np.bool_]:
        """Return whether all cells of each variable are known, (n, n_variables, 1)."""
        return np.asarray(known_cells(rows)[:, self.columns].all(axis=2, keepdims=True))

    def add_cells(self, probabilities: NDArray[np.float64], out: NDArray[np.float64]) -> None:
        """Store the probabilities of ones in the cells of these variables, from those of values."""
        for index, column in enumerate(self.columns.T):
            out[:, column] = probabilities[:, :, self.values[:, index] == 1].sum(axis=2)


_BINARY = np.array([[0], [1]], np.uint8)
_COPIES = np.array([[0, 0], [1, 0], [1, 1]], np.uint8)


class TiedColumns(NamedTuple):
    """All columns of a table as variables; each column is in one of them."""

    n_cols: int
    kinds: tuple[Variables, ...]

    @classmethod
    def of_groups(cls, n_cols: int, groups: Iterable[Variables]) -> TiedColumns:
        """Return these variables; all other columns are variables of their own."""
        kinds = [group for group in groups if len(group.columns)]
        is_single = np.ones(n_cols, bool)
        for group in kinds:
            is_single[group.columns] = False
        singles = np.flatnonzero(is_single)[:, np.newaxis]
        return cls(n_cols, (*([Variables(singles, _BINARY)] if len(singles) else []), *kinds))

    @property
    def first(self) -> NDArray[np.intp]:
        """For each column the first one of its variable."""
        first = np.arange(self.n_cols)
        for kind in self.kinds:
            first[kind.columns] = kind.columns.min(axis=1, keepdims=True)
        return first

    def take(self, columns: NDArray[np.intp]) -> TiedColumns:
        """Return the variables of some columns, in increasing order, with all columns of each variable."""
        index = np.full(self.n_cols, -1, np.intp)
        index[columns] = np.arange(len(columns))
        taken = [kind._replace(columns=index[kind.columns]) for kind in self.kinds if not kind.is_binary]
        groups = [kind._replace(columns=kind.columns[kind.columns[:, 0] >= 0]) for kind in taken]
        return TiedColumns.of_groups(len(columns), groups)

    @property
    def value_slices(self) -> list[slice]:
        """For each kind of variables where their values are in arrays of the values of all variables."""
        edges = np.cumsum([0, *(math.prod(kind.shape) for kind in self.kinds)]).tolist()
        return [slice(*each) for each in pairwise(edges)]

    @property
    def n_values(self) -> int:
        """The number of values of all variables."""
        return sum(math.prod(kind.shape) for kind in self.kinds)

    def indicators(self, rows: BitMatrix) -> NDArray[np.float64]:
        """Return 1 for the known values of rows, and 0, of shape (n, values of all variables)."""
        return np.hstack([kind.indicators(rows).reshape(len(rows), -1) for kind in self.kinds])

    def sums(self, of_values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return for each value, on the last axis, the sum over the values of its variable."""
        parts = []
        for kind, own in zip(self.kinds, self.value_slices, strict=True):
            each = of_values[..., own].reshape(*of_values.shape[:-1], *kind.shape).sum(axis=-1)
            parts.append(np.repeat(each, kind.shape[1], axis=-1))
        return np.concatenate(parts, axis=-1)

    def normalized(self, of_values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return numbers of values divided by their sums, so that those of each variable sum to 1."""
        return of_values / self.sums(of_values)

    def most_probable(self, cells: NDArray[np.float64], rows: BitMatrix) -> NDArray[np.bool_]:
        """Return the most probable values of rows, given the probability of a one in each cell; a zero on a tie.

        Of the values of variables, those that known cells exclude are not chosen.
        """
        made = np.empty(cells.shape, bool)
        for kind in self.kinds:
            best = kind.given_known(kind.probabilities(cells), rows).argmax(axis=2)
            for index, column in enumerate(kind.columns.T):
                made[:, column] = kind.values[best, index] == 1
        return made


def known_cells(rows: BitMatrix) -> NDArray[np.bool_]:
    """Return which cells are known."""
    return np.ones(rows.shape, bool) if rows.unknown is None else ~rows.unknown.to_dense(bool)


def exclusive(columns: NDArray[np.intp], may_be_none: bool) -> Variables:
    """Return variables with one column per value, and possibly a value that has none of them."""
    values = np.eye(columns.shape[1], dtype=np.uint8)
    return Variables(columns, np.vstack([np.zeros_like(values[:1]), values]) if may_be_none else values)


def copies(pairs: NDArray[np.intp]) -> Variables:
    """Return variables of 0, 1 and 2: a row has the second column of a pair only if it has the first."""
    return Variables(pairs, _COPIES)


def known_ties(columns: Header) -> TiedColumns:
    """Return the columns that are tied by what they stand for: copies of an allele, or values of a variable."""
    ties = ColumnTies.of(columns)
    groups = [exclusive(each, may_be_none=False) for each in ties.exclusive]
    return TiedColumns.of_groups(columns.n_cols, [copies(ties.nested), *groups])


def found_ties(data: BitMatrix, known: TiedColumns) -> TiedColumns:
    """Return the columns that are known to be tied, and those that an incomplete table shows to be.

    Neighbouring columns that are unknown in the same rows, at least two, are tied if some combinations of their values
    do not occur in the other rows, at least twenty.
    """
    if data.unknown is None:
        return known
    tied = [kind for kind in known.kinds if not kind.is_binary]
    columns, unknown = data.T.words, data.unknown.T.words
    n_unknown = np.bitwise_count(unknown).sum(axis=1, dtype=np.int64)
    is_free = (n_unknown >= _LEAST_UNKNOWN) & (len(data) - n_unknown >= _LEAST_KNOWN)
    for kind in tied:
        is_free[kind.columns] = False
    same = (unknown[1:] == unknown[:-1]).all(axis=1) & is_free[1:] & is_free[:-1]
    starts = np.flatnonzero(np.concatenate(([True], ~same)))
    sizes = np.diff(np.append(starts, data.n_cols))
    all_rows = BitMatrix.from_dense(np.ones((1, len(data)), bool)).words
    for size in np.unique(sizes[sizes > 1]).tolist():
        group = starts[sizes == size, np.newaxis] + np.arange(size)
        seen, twice = np.zeros((2, len(group), columns.shape[1]), np.uint64)
        for column in group.T:
            twice |= seen & columns[column]
            seen |= columns[column]
        is_exclusive = ~twice.any(axis=1)
        may_be_none = np.asarray((all_rows & ~unknown[group[:, 0]] & ~seen).any(axis=1))
        tied += [exclusive(group[is_exclusive & (may_be_none == none)], none) for none in (False, True)]
        if size == 2:
            is_first, is_second = (
                ~is_exclusive & ~(columns[second] & ~columns[first]).any(axis=1)
                for first, second in (group.T, group.T[::-1])
            )
            tied += [copies(group[is_first]), copies(group[is_second & ~is_first, ::-1])]
    return TiedColumns.of_groups(data.n_cols, tied)


def fill_unknown(
    data: BitMatrix, tied: TiedColumns, predict: Callable[[BitMatrix, Convert], list[BitMatrix]]
) -> BitMatrix:
    """Return the data with the most probable values in unknown cells.

    ``predict`` is called with the rows that have such cells. It calls a function with the probabilities of ones in each
    chunk of these rows, and with this chunk, and returns a list of the results.
    """
    if data.unknown is None:
        return data
    rows = np.flatnonzero(data.unknown.words.any(axis=1))
    values = predict(data[rows], lambda shares, chunk: BitMatrix.from_dense(tied.most_probable(shares, chunk)))
    words = data.words.copy()
    words[rows] |= stack_rows(values, data.n_cols).words & data.unknown.words[rows]
    return BitMatrix.from_words(words, data.n_cols, check=False)


def nearest_genotypes(bits: BitMatrix, pairs: NDArray[np.intp], wrong: NDArray[np.int64]) -> tuple[BitMatrix, int]:
    """Return samples of which every genotype is possible, and the number of genotypes that were not.

    A reconstruction may contain two copies of an allele but not one. No copy and two copies both differ from that in
    one bit. The bit that is changed is the one that the model gets wrong more often: the first, which gives two copies,
    or else, also on a tie, the second, which gives no copy.

    Parameters
    ----------
    bits : BitMatrix
        Samples without unknown cells.
    pairs : ndarray of shape (n_variants, 2)
        The columns of each variant: carries the allele, carries two copies.
    wrong : ndarray of shape (n_cols,)
        Number of training rows in which the model gets each column wrong.
    """
    if not len(pairs):
        return bits, 0
    columns = bits.T.words.copy()
    first, second = pairs.T
    impossible = columns[second] & ~columns[first]
    n_impossible = int(np.bitwise_count(impossible).sum())
    if not n_impossible:
        return bits, 0
    changes_first = (wrong[first] > wrong[second])[:, np.newaxis]
    columns[first] |= np.where(changes_first, impossible, np.uint64(0))
    columns[second] &= ~np.where(changes_first, np.uint64(0), impossible)
    return BitMatrix.from_words(columns, len(bits), check=False).T, n_impossible
