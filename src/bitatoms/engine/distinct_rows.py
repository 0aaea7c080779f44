"""Hashes of rows, and equal rows of a table: they are coded once, where the code of a row depends on nothing else."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.cpu import packing
from ..sparse_bits import Bits, SparseBits

_EXPECTED_PAIRS = 8  # of equal rows among those that are compared first: most tables have none
_MAX_HASHED_WORDS, _HASHED_WORDS = 1 << 25, 1 << 20  # of sparse rows, in all and at a time
_SEED = 0  # of the rows that are compared first; they do not change results


class DistinctRows(NamedTuple):
    """One row of each kind, and for each row the number of its kind."""

    rows: NDArray[np.intp]
    numbers: NDArray[np.intp]


def find_distinct(*tables: BitMatrix | None, max_share: float) -> DistinctRows | None:
    """Return the distinct rows of tables side by side, unknown cells included, or None if their share is larger.

    Rows are compared by hashes, and a result is returned only after comparing their bits.
    """
    given = [table for table in tables if table is not None]
    n = len(given[0])
    if not _may_have_equal_rows(given, max_share):
        return None
    hashes = _hashes(given)
    order = np.argsort(hashes)
    is_new = _are_new(hashes[order])
    if is_new.sum() > max_share * n:
        return None
    rows, numbers = order[is_new], np.empty(n, np.intp)
    numbers[order] = np.cumsum(is_new) - 1
    arrays = [table.words for table in given] + [table.unknown.words for table in given if table.unknown is not None]
    # Different rows with the same hash: so improbable that all rows may then be coded.
    return DistinctRows(rows, numbers) if all((words[rows[numbers]] == words).all() for words in arrays) else None


def _may_have_equal_rows(tables: list[BitMatrix], max_share: float) -> bool:
    """Return whether rows drawn at random have about as many equal pairs as expected with this share of distinct ones.

    If each row occurs 1 / share times, two rows are equal with a probability of about (1 / share - 1) / n.
    """
    n = len(tables[0])
    n_drawn = math.ceil(math.sqrt(2 * _EXPECTED_PAIRS * n / (1 / max_share - 1)))
    if n_drawn >= n:
        return True
    drawn = np.unique(np.random.default_rng(_SEED).integers(n, size=n_drawn))
    hashes = np.sort(_hashes([table[drawn] for table in tables]))
    return len(hashes) - int(_are_new(hashes).sum()) >= _EXPECTED_PAIRS / 2


def _hashes(tables: list[BitMatrix]) -> NDArray[np.uint64]:
    """Return a hash of each row of tables side by side."""
    hashes = row_hashes(tables[0])
    for table in tables[1:]:
        hashes = hashes * np.uint64(3) + row_hashes(table)
    return hashes


def _are_new(ordered: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which of the sorted values differ from the one before."""
    return np.concatenate([np.ones(min(1, len(ordered)), bool), ordered[1:] != ordered[:-1]])


def hash_rows(data: Bits) -> int | None:
    """Return a 64-bit hash of the rows, whatever their order: the sum of the hashes of the rows, modulo 2**64.

    None for sparse rows that would take too much time, because zeros count.
    """
    if isinstance(data, SparseBits):
        n_words = -(-data.n_cols // 64)
        if data.n_rows * n_words > _MAX_HASHED_WORDS:
            return None
        size = max(1, _HASHED_WORDS // n_words)
        return sum(hash_rows(data[start : start + size].bits) or 0 for start in range(0, len(data), size)) % 2**64
    return int(row_hashes(data).sum(dtype=np.uint64))


def row_hashes(data: BitMatrix) -> NDArray[np.uint64]:
    """Return a 64-bit hash of each row, its unknown cells included."""
    hashes = np.empty(data.n_rows, np.uint64)
    packing.hash_rows(data.words, data.unknown_words, data.n_cols, hashes)
    return hashes


def mixed_words(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the words, each scrambled one to one (a step of splitmix64)."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))
