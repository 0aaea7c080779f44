"""Margins: how often two columns occur together by chance, given the number of ones of each row and each column.

Rows with many ones have more of every column. Two columns with f and g ones in n rows therefore occur together in more
than f g / n rows, although nothing relates them. Of all distributions of tables whose rows and columns have the
given numbers of ones on average, the one of largest entropy has independent cells: row r has column c with odds
x_r y_c (the Rasch model, or bipartite configuration model). A table whose ones are shuffled, margins kept, is much like
a table drawn from it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..engine.codelength import string_bits
from ..kernels.cpu import dictionary

_CLASSES_PER_UNIT = 50  # of the logarithm: rows, and columns, whose numbers of ones differ by 2 % may be of one class
_MAX_STEPS = 200
_TINY = 1e-9  # ones of a row in other columns
_SMALLEST = np.finfo(np.float64).tiny
_TOLERANCE = 1e-4  # ones of a row, on average, by which the distribution may be off
_MAX_COLUMNS = 64  # of an atom that are looked at: most users have most of its columns


class _Classes(NamedTuple):
    """Rows or columns with about as many ones."""

    sizes: NDArray[np.float64]
    weights: NDArray[np.float64]  # mean number of ones
    class_of: NDArray[np.intp]  # the class of each row or column


@dataclass(frozen=True, eq=False)
class Margins:
    """The distribution of tables of which only the number of ones of each row and each column is known.

    Parameters
    ----------
    row_sizes, row_weights, row_variances : ndarray of shape (n_row_classes,)
        Number of rows with about as many ones, the mean number of their ones, and its variance.
    shares : ndarray of shape (n_row_classes, n_column_classes)
        Probability of a one in a row of a class and a column of a class.
    class_of : ndarray of shape (m,)
        The class of each column.
    factors : ndarray of shape (m,)
        Ones of each column, divided by the mean of its class.
    varies : ndarray of shape (m,), bool
        Columns that are ones in some rows, and zeros in others.
    n_columns : int
        Number of columns of the table.
    """

    row_sizes: NDArray[np.float64]
    row_weights: NDArray[np.float64]
    row_variances: NDArray[np.float64]
    shares: NDArray[np.float64]
    class_of: NDArray[np.intp]
    factors: NDArray[np.float64]
    varies: NDArray[np.bool_]
    n_columns: int

    @classmethod
    def from_weights(cls, row_weights: NDArray[np.int64], column_weights: NDArray[np.int64]) -> Margins:
        """Return the distribution for these numbers of ones of each row and each column."""
        n_rows = len(row_weights)
        full = column_weights == n_rows  # of which chance leaves nothing open
        column_weights = np.where(full, 0, column_weights)
        rows, columns = _classes(row_weights - full.sum()), _classes(column_weights)
        factors = column_weights / np.maximum(columns.weights, 1e-9)[columns.class_of]
        shares = _fitted_shares(rows, columns)
        variances = (columns.sizes * shares * (1 - shares)).sum(axis=1)
        return cls(
            rows.sizes, rows.weights, variances, shares, columns.class_of, factors, column_weights > 0, len(full)
        )

    def take_columns(self, columns: NDArray[np.intp]) -> Margins:
        """Return the same for a window of the columns."""
        return replace(
            self, class_of=self.class_of[columns], factors=self.factors[columns], varies=self.varies[columns]
        )

    def looked_at(self, columns: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return those columns of an atom whose ones are counted."""
        columns = columns[self.varies[columns]]
        index = np.unique(np.linspace(0, len(columns) - 1, min(_MAX_COLUMNS, len(columns))).astype(np.intp))
        return columns[index]

    def explain(self, columns: NDArray[np.intp], cells: BitMatrix, either_way: bool = False) -> bool:
        """Return whether chance explains how often these columns occur together.

        They may surprise in two ways: two of them, by more bits than it takes to choose a pair of columns (of all pairs
        of a table drawn from this distribution, less than one is expected to), or all of them, by more bits than
        it takes to choose so many columns.

        Parameters
        ----------
        columns : ndarray of int
        cells : BitMatrix of shape (n_rows, len(columns))
            These columns of all rows, or of those in which two of them are ones.
        either_way : bool
            Whether columns that occur together less often than by chance surprise, too.
        """
        if len(columns) < 2:
            return True
        return self._explain_pairs(columns, cells, either_way) and self._explain_all(columns, cells)

    def _explain_pairs(self, columns: NDArray[np.intp], cells: BitMatrix, either_way: bool) -> bool:
        """Return whether no two of these columns surprise."""
        together = _together(cells)
        one, other = np.triu_indices(len(columns), 1)
        count, expected = together[one, other], self.expected_together(columns[one], columns[other])
        bits = np.where((count > expected) | either_way, surprise(count, expected), 0)
        n_pairs = self.n_columns * (self.n_columns - 1) // 2
        return bool(bits.max(initial=0) <= np.log2(n_pairs * (1 + either_way)))

    def _explain_all(self, columns: NDArray[np.intp], cells: BitMatrix) -> bool:
        """Return whether no number of rows with so many of these columns, or more, surprises."""
        n_columns = np.sort(cells.row_weights())
        n_rows = len(n_columns) - np.searchsorted(n_columns, np.arange(2, len(columns) + 1))
        expected = self._expected_rows(columns)[2:]
        bits = np.where(n_rows > expected, surprise(n_rows, expected), 0)
        n_bits = int(string_bits(self.n_columns, len(columns)))
        return bool(bits.max(initial=0) <= n_bits + np.log2(len(columns) - 1))

    def n_related_pairs(self, table: BitMatrix) -> int:
        """Return how many pairs of columns occur together more often, or less often, than chance explains.

        They surprise by the bits of an atom of two columns. By chance, one of as many tables as there are columns has
        such a pair.
        """
        columns = np.flatnonzero(self.varies)
        together = _together(table.take_columns(columns))
        least, n_related = string_bits(self.n_columns, 2), 0
        for k, one in enumerate(columns[:-1]):
            other = columns[k + 1 :]
            expected = self.expected_together(np.full(len(other), one), other)
            n_related += int((surprise(together[k, k + 1 :], expected) > least).sum())
        return n_related

    def expected_together(self, one: NDArray[np.intp], other: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return in how many rows these pairs of columns occur together by chance."""
        p, q = self._shares_of(one), self._shares_of(other)
        first, second = self._ratios(p + q, p * (1 - p) + q * (1 - q), 2)
        neither, either, both = (1 - p) * (1 - q), (p + q - 2 * p * q) * first, p * q * first * second
        return (both / (neither + either + both) * self.row_sizes[:, np.newaxis]).sum(axis=0)

    def _expected_rows(self, columns: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return how many rows have 0, 1, 2, ... of these columns, or more, by chance."""
        shares = self._shares_of(columns)
        exactly = np.zeros((len(shares), len(columns) + 1))
        exactly[:, 0] = 1
        for share in shares.T[:, :, np.newaxis]:
            exactly[:, 1:] += (exactly[:, :-1] - exactly[:, 1:]) * share
            exactly[:, :1] *= 1 - share
        ratios = self._ratios(shares.sum(axis=1), (shares * (1 - shares)).sum(axis=1), len(columns))
        logs = np.log(np.maximum(exactly, _SMALLEST))  # a product of many ratios may be larger than any number
        logs[:, 1:] += np.log(np.maximum(ratios, _SMALLEST)).cumsum(axis=0).T
        exactly = np.exp(logs - logs.max(axis=1, keepdims=True))
        exactly /= exactly.sum(axis=1, keepdims=True)
        return (exactly[:, ::-1].cumsum(axis=1)[:, ::-1] * self.row_sizes[:, np.newaxis]).sum(axis=0)

    def _ratios(self, mean: NDArray[np.float64], variance: NDArray[np.float64], n: int) -> NDArray[np.float64]:
        """Return how much likelier a row has its ones if it has the first, second, ... of some columns, too.

        Those columns have ``mean`` ones, with this variance, in rows of each class. The more of them a row has, the
        fewer of the others, of which it has as many as a binomial distribution of their mean and variance gives.
        """
        weights, variances = (
            of_rows.reshape(-1, *[1] * (mean.ndim - 1)) for of_rows in (self.row_weights, self.row_variances)
        )
        mean = np.maximum(weights - mean, _TINY)
        share = (1 - np.maximum(variances - variance, 0) / mean).clip(0, 1 - _TINY)
        left = np.stack([np.maximum(weights - k, 0) + 0 * mean for k in range(n)])
        return left * (1 - share) / np.maximum(mean - (left - 1) * share, _TINY)

    def _shares_of(self, columns: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the probability of a one in a row of each class, for each of these columns."""
        return np.minimum(1, self.shares[:, self.class_of[columns]] * self.factors[columns])


def surprise(count: NDArray[np.integer], expected: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how surprising it is that something happens this often, in bits.

    A sum of independent events that is E on average is at least b > E, or at most b < E, with a probability of at most
    2^-s, where s = b log2(b / E) - (b - E) log2 e (Chernoff).
    """
    safe = np.maximum(expected, _SMALLEST)
    return count * np.log2(np.where(count > 0, count, 1) / safe) - (count - expected) / np.log(2)


def _together(table: BitMatrix) -> NDArray[np.int32]:
    """Return in how many rows each two columns are ones."""
    together = np.empty((table.n_cols, table.n_cols), np.int32)
    dictionary.overlap_atoms(table.T.words.copy(), np.ones(table.n_cols, np.uint8), 1, together)
    return together


def _classes(weights: NDArray[np.int64]) -> _Classes:
    """Return rows or columns by their number of ones."""
    unit = _CLASSES_PER_UNIT
    rank = np.where(weights < unit, weights, unit * (1 + np.log(weights.clip(1) / unit)))
    _, class_of, sizes = np.unique(rank.astype(np.int64), return_inverse=True, return_counts=True)
    return _Classes(sizes.astype(np.float64), np.bincount(class_of, weights, len(sizes)) / sizes, class_of)


def _fitted_shares(rows: _Classes, columns: _Classes) -> NDArray[np.float64]:
    """Return the probability of a one for each class of rows and of columns, by scaling the odds until it fits."""
    scale = np.sqrt(max(1.0, float((rows.sizes * rows.weights).sum())))
    x, y = (rows.weights / scale)[:, np.newaxis], columns.weights / scale
    for _ in range(_MAX_STEPS):
        of_rows = (columns.sizes * x * y / (1 + x * y)).sum(axis=1)
        if np.abs(of_rows - rows.weights).max(initial=0) <= _TOLERANCE:
            break
        x = _scaled(x[:, 0], rows.weights, of_rows)[:, np.newaxis]
        of_columns = (rows.sizes[:, np.newaxis] * x * y / (1 + x * y)).sum(axis=0)
        y = _scaled(y, columns.weights, of_columns)
    return x * y / (1 + x * y)


def _scaled(odds: NDArray[np.float64], wanted: NDArray[np.float64], now: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return odds that are larger by as much as more ones are wanted."""
    return odds * wanted / np.where(now > 0, now, 1)
