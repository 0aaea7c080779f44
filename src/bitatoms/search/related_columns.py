"""Groups of columns of a sparse table that occur together more often than by chance.

In a sparse table all pairs of columns that occur in the same row can be counted. Two columns with f and g ones in n
rows occur together in about E = f g / n rows by chance. The surprise of b rows (`core/margins.py`) is the bits by which
a Poisson distribution around b describes the count better than one around E. Columns are joined to groups by
their most surprising pairs, up to a largest size. A column whose pairs all surprise by less than the description of an
atom of two columns takes is in no group: no such atom would pay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.margins import surprise
from ..mdl import string_bits
from ..sparse_bits import SparseBits

_MAX_PAIRS = 4 * 10**9  # pairs of ones in the same row, above which counting takes too long
_CHUNK_PAIRS = 1 << 22  # counted at a time
_MIN_TOGETHER = 2  # rows


class Pairs(NamedTuple):
    """Pairs of columns that occur together."""

    one: NDArray[np.intp]
    other: NDArray[np.intp]
    surprise: NDArray[np.float64]  # in bits


def can_count_pairs(row_weights: NDArray[np.int64]) -> bool:
    """Return whether the pairs of ones in the same row are few enough to count."""
    return float((row_weights.astype(np.float64) ** 2).sum()) <= _MAX_PAIRS


def related_columns(
    data: SparseBits, max_size: int, check: Callable[[], object] = lambda: None
) -> list[NDArray[np.intp]]:
    """Return groups of two to ``max_size`` columns, each in increasing order; the others are related to no column.

    ``check`` is called from time to time, and may raise.
    """
    pairs = surprising_pairs(data, check)
    return groups_of_pairs(
        pairs.one, pairs.other, pairs.surprise, data.n_cols, lambda columns: len(columns) <= max_size
    )


def groups_of_pairs(
    one: NDArray[np.intp],
    other: NDArray[np.intp],
    strength: NDArray[np.float64],
    n_items: int,
    may_join: Callable[[list[int]], bool],
) -> list[NDArray[np.intp]]:
    """Return groups of two or more items, joined by their strongest pairs as far as that is allowed.

    Each is in increasing order, and so are their first items.
    """
    group_of = np.arange(n_items)
    members: dict[int, list[int]] = {}
    for i in np.argsort(-strength, kind="stable").tolist():
        left, right = int(group_of[one[i]]), int(group_of[other[i]])
        if left == right:
            continue
        items = members.get(left, [left]) + members.get(right, [right])
        if may_join(items):
            members.pop(right, None)
            members[left] = items
            group_of[items] = left
    return sorted((np.sort(np.array(items, np.intp)) for items in members.values()), key=lambda group: group[0])


def surprising_pairs(data: SparseBits, check: Callable[[], object] = lambda: None) -> Pairs:
    """Return the pairs of columns whose surprise exceeds the bits of an atom of two columns."""
    n, m = data.shape
    ones = data.column_weights()
    rows, columns = data.to_sparse(), data.T.to_sparse()
    found: list[Pairs] = []
    # The pairs of a column are at most the ones of its rows.
    work = np.cumsum(np.bincount(data.indices, np.repeat(data.row_weights(), data.row_weights()), minlength=m))
    start, least = 0, float(string_bits(m, 2))
    while start < m:
        check()
        before = work[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(work, before + _CHUNK_PAIRS, side="right")))
        together = (columns[start:stop] @ rows).tocoo()
        one, other = together.coords[0] + start, together.coords[1]
        kept = (other > one) & (together.data >= _MIN_TOGETHER)
        one, other, count = one[kept], other[kept], together.data[kept].astype(np.float64)
        expected = ones[one] * (ones[other] / n)
        bits = surprise(count, expected)
        kept = (count > expected) & (bits > least)
        found.append(Pairs(one[kept].astype(np.intp), other[kept].astype(np.intp), bits[kept]))
        start = stop
    if not found:
        return Pairs(np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0))
    return Pairs(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
