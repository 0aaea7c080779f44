"""Equal rows of a table: they are coded once, where the code of a row depends on nothing but the row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from .complete import row_hashes

_MIN_ROWS = 64
_PROBED_ROWS, _PROBED_SHARE = (
    1 << 10,
    1 / 16,
)  # rows that are compared first: few, because most tables have no equal ones
_MAX_DISTINCT = 3 / 4  # share of distinct rows; finding them takes about as long as coding some rows
_SEED = 0  # of the rows that are compared first; they do not change results


class DistinctRows(NamedTuple):
    """One row of each kind, and for each row the number of its kind."""

    rows: NDArray[np.intp]
    numbers: NDArray[np.intp]


def find_distinct(*tables: BitMatrix | None) -> DistinctRows | None:
    """Return the distinct rows of tables side by side, unknown cells included, or None if these are almost all.

    Rows are compared by hashes, and a result is returned only after comparing their bits.
    """
    given = [table for table in tables if table is not None]
    n = len(given[0])
    if n < _MIN_ROWS or not _seems_to_pay(given):
        return None
    hashes = _hashes(given)
    order = np.argsort(hashes)
    is_new = _are_new(hashes[order])
    if is_new.sum() > _MAX_DISTINCT * n:
        return None
    rows, numbers = order[is_new], np.empty(n, np.intp)
    numbers[order] = np.cumsum(is_new) - 1
    arrays = [table.words for table in given] + [table.unknown.words for table in given if table.unknown is not None]
    # Different rows with the same hash: so improbable that all rows may then be coded.
    return DistinctRows(rows, numbers) if all((words[rows[numbers]] == words).all() for words in arrays) else None


def _seems_to_pay(tables: list[BitMatrix]) -> bool:
    """Return whether rows drawn at random have about as many pairs of equal rows as they would if it pays."""
    n = len(tables[0])
    n_drawn = max(_PROBED_ROWS, int(_PROBED_SHARE * n))
    if n_drawn >= n:
        return True
    drawn = np.unique(np.random.default_rng(_SEED).integers(n, size=n_drawn))
    hashes = np.sort(_hashes([table[drawn] for table in tables]))
    n_equal = len(hashes) - int(_are_new(hashes).sum())
    # A pair of rows is equal with a probability of about (1 / share - 1) / n, if each row occurs 1 / share times.
    expected = len(drawn) ** 2 / (2 * n) * (1 / _MAX_DISTINCT - 1)
    return n_equal >= expected / 2


def _hashes(tables: list[BitMatrix]) -> NDArray[np.uint64]:
    """Return a hash of each row of tables side by side."""
    hashes = row_hashes(tables[0])
    for table in tables[1:]:
        hashes = hashes * np.uint64(3) + row_hashes(table)
    return hashes


def _are_new(ordered: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which of the sorted values differ from the one before."""
    return np.concatenate([np.ones(min(1, len(ordered)), bool), ordered[1:] != ordered[:-1]])
