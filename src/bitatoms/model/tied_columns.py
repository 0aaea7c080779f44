"""Columns whose unknown cells are filled in together, because not all of their combinations are possible.

Columns that are tied are always unknown together: those of a question with several answers, of which a row has at most
one, or those of a genotype, where two copies of an allele are also one. Filled in one by one, they may contradict each
other, or miss the most probable combination.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix, stack_rows
from ..table import Header
from ..variables import exclusive_columns, variables_of
from ..variants import pairs as genotype_pairs
from .genotypes import genotype_probabilities

_LEAST_UNKNOWN = 2  # cells of columns that are tied: one could be unknown in both by chance
_LEAST_KNOWN = 20  # rows in which some combination does not occur

Convert = Callable[[NDArray[np.float64], BitMatrix], BitMatrix]  # of the probabilities of rows, and the rows


class Exclusive(NamedTuple):
    """Groups of equally many columns, of which a row has at most one."""

    columns: NDArray[np.intp]  # a row for each group
    may_be_none: NDArray[np.bool_]  # whether a row may have none of a group


class TiedColumns(NamedTuple):
    """Columns that are filled in together; a column is in one group at most."""

    nested: NDArray[np.intp]  # pairs: a row has the second column only if it has the first
    exclusive: tuple[Exclusive, ...]

    def most_probable(self, probabilities: NDArray[np.float64], rows: BitMatrix) -> NDArray[np.bool_]:
        """Return the most probable values of rows, given the probability of a one in each cell; a zero on a tie.

        Of the combinations of tied columns, those that known cells exclude are not chosen.
        """
        values, given = probabilities > 0.5, rows.to_dense(float)  # NaN where a cell is unknown
        first, second = self.nested.T
        of_each = genotype_probabilities(probabilities[:, first], probabilities[:, second])
        is_zero, is_one = given[:, first] == 0, given[:, first] == 1
        is_not_two, is_two = given[:, second] == 0, given[:, second] == 1
        of_each[is_one | is_two, 0] = of_each[is_zero | is_two, 1] = of_each[is_zero | is_not_two, 2] = -1.0
        copies = of_each.argmax(axis=-1)
        values[:, first], values[:, second] = copies >= 1, copies == 2
        for columns, may_be_none in self.exclusive:
            known, of_each = given[:, columns], probabilities[:, columns]
            has_one = (known == 1).any(axis=2)
            none = np.where(may_be_none & ~has_one, np.maximum(1 - of_each.sum(axis=2), 0), -1.0)
            of_each = np.where((known == 0) | (has_one[:, :, np.newaxis] & (known != 1)), -2.0, of_each)
            best = np.concatenate([none[:, :, np.newaxis], of_each], axis=2).argmax(axis=2)
            values[:, columns] = best[:, :, np.newaxis] == np.arange(1, columns.shape[1] + 1)
        return values


def known_ties(columns: Header) -> TiedColumns:
    """Return the columns that are tied by what they stand for: copies of an allele, or values of a variable."""
    exclusive = [Exclusive(each, np.zeros(len(each), bool)) for each in exclusive_columns(columns.data).values()]
    return TiedColumns(genotype_pairs(columns.data, columns.names), tuple(exclusive))


def first_tied(columns: Header) -> NDArray[np.intp]:
    """Return for each column the first one of its variable or genotype, whose columns tell each other's values."""
    first = np.arange(columns.n_cols)
    for _, indices in variables_of(columns.data):
        first[indices] = indices.min()
    pairs = genotype_pairs(columns.data, columns.names)
    first[pairs[:, 1]] = pairs[:, 0]
    return first


def tied_columns(
    data: BitMatrix, pairs: NDArray[np.intp] | None = None, exclusive: Sequence[Exclusive] = ()
) -> TiedColumns:
    """Find the columns that are tied.

    Parameters
    ----------
    data : BitMatrix
        The table learned from. Neighbouring columns that are unknown in the same rows, at least two, are tied if some
        combinations of their values do not occur in the other rows, at least twenty.
    pairs : ndarray of shape (n_pairs, 2), optional
        Columns that are known to be tied: two copies of an allele, the second column, are also one, the first.
    exclusive : sequence of Exclusive
        Columns of which a row is known to have at most one, or exactly one.
    """
    known_pairs = np.zeros((0, 2), np.intp) if pairs is None else pairs
    if data.unknown is None:
        return TiedColumns(known_pairs, tuple(exclusive))
    columns, unknown = data.T.words, data.unknown.T.words
    n_unknown = np.bitwise_count(unknown).sum(axis=1, dtype=np.int64)
    is_free = (n_unknown >= _LEAST_UNKNOWN) & (len(data) - n_unknown >= _LEAST_KNOWN)
    for known in (known_pairs, *(each.columns for each in exclusive)):
        is_free[known.ravel()] = False
    same = (unknown[1:] == unknown[:-1]).all(axis=1) & is_free[1:] & is_free[:-1]
    starts = np.flatnonzero(np.concatenate(([True], ~same)))
    sizes = np.diff(np.append(starts, data.n_cols))
    all_rows = BitMatrix.from_dense(np.ones((1, len(data)), bool)).words
    nested, found = [known_pairs], list(exclusive)
    for size in np.unique(sizes[sizes > 1]).tolist():
        group = starts[sizes == size, np.newaxis] + np.arange(size)
        seen, twice = np.zeros((2, len(group), columns.shape[1]), np.uint64)
        for column in group.T:
            twice |= seen & columns[column]
            seen |= columns[column]
        is_exclusive = ~twice.any(axis=1)
        may_be_none = np.asarray((all_rows & ~unknown[group[:, 0]] & ~seen).any(axis=1))
        found += [Exclusive(group[is_exclusive], may_be_none[is_exclusive])] if is_exclusive.any() else []
        if size == 2:
            for first, second in (group.T, group.T[::-1]):
                is_nested = ~is_exclusive & ~(columns[second] & ~columns[first]).any(axis=1)
                nested.append(np.stack([first, second], axis=1)[is_nested])
    return TiedColumns(_distinct(np.concatenate(nested)), tuple(found))


def _distinct(pairs: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return pairs without those of the same two columns in the other order, which are equal."""
    return pairs[np.unique(pairs.min(axis=1), return_index=True)[1]] if len(pairs) else pairs


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
