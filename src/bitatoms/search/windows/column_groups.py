"""Groups of columns that are searched together, where a table has too many columns to search all of them at once.

Where columns have positions on chromosomes, or neighbouring columns are alike, as along a spectrum, a group is a run of
neighbours. Otherwise columns
are grouped by what they have in common: the columns, each projected to a few random directions, are divided in two
along the direction in which they differ most, and so are the two halves, until they are small enough (principal
direction divisive partitioning; Boley 1998). Which of the two it is, is measured: a grouping is as good as the share of
columns' nearest columns that it leaves in their own group.

Groups of columns of a sparse table that occur together more often than by chance.

In a sparse table all pairs of columns that occur in the same row can be counted. Two columns with f and g ones in n
rows occur together in about E = f g / n rows by chance. The surprise of b rows (`search/margins.py`) is the bits by
which a Poisson distribution around b describes the count better than one around E. Columns are joined to groups by
their most surprising pairs, up to a largest size. A column whose pairs all surprise by less than the description of an
atom of two columns takes is in no group: no such atom would pay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix, count_ones
from ...engine.codelength import string_bits
from ...sparse_bits import SparseBits
from ..margins import surprise

Columns = NDArray[np.intp]

_SAMPLE_ROWS = 1024  # by which columns are compared
_PROBES = 64  # columns whose nearest columns are found,
_NEAREST = 8  # this many of them
_ORDERED_SHARE = 0.5  # of these in the runs of their columns, with which no other grouping is tried
_DIRECTIONS = 64  # to which columns are projected
_UNIT = 32  # by which real numbers are multiplied before they are rounded
_CHUNK_ROWS = 64  # projected at a time
_CHUNK_COLUMNS = 1 << 16  # of which products are added at a time


def column_groups(data: BitMatrix, width: int, random: np.random.Generator) -> list[Columns]:
    """Return groups of at most ``width`` columns, each in increasing order; neighbouring groups are more alike."""
    runs = _runs(data.n_cols, width)
    if len(runs) == 1:
        return runs
    n_rows = min(data.n_rows, _SAMPLE_ROWS)
    sample = data.filled()[np.sort(random.choice(data.n_rows, n_rows, replace=False))]
    ones = sample.column_weights()
    varied = np.flatnonzero((ones > 1) & (ones < n_rows - 1))
    if len(varied) <= width:  # the others may be anywhere
        return runs
    probes = np.sort(random.choice(varied, min(_PROBES, len(varied)), replace=False))
    nearest = _nearest_columns(sample, probes, varied)
    share = _share_kept(runs, probes, nearest)
    if share > _ORDERED_SHARE:
        return runs
    alike = _divided(_projections(sample, random), np.arange(data.n_cols), width)
    return runs if _share_kept(alike, probes, nearest) < share else alike


def runs_of_regions(regions: Sequence[Columns], width: int) -> list[Columns]:
    """Return groups of at most ``width`` columns that follow each other in a region, each in increasing order.

    They have about equal lengths, and begin at even numbers, so that the two columns of a variant are together.
    """
    groups = []
    for columns in regions:
        for run in _runs(-(-len(columns) // 2), max(1, width // 2)):
            groups.append(np.sort(columns[2 * run[0] : 2 * run[-1] + 2]))
    return groups


def _runs(n_cols: int, width: int) -> list[Columns]:
    """Return runs of neighbouring columns of about equal lengths."""
    edges = np.linspace(0, n_cols, -(-n_cols // width) + 1).astype(np.intp)
    return [np.arange(start, stop) for start, stop in pairwise(edges)]


def _nearest_columns(sample: BitMatrix, probes: Columns, others: Columns) -> NDArray[np.intp]:
    """Return the other columns with which each probe is correlated most."""
    columns = sample.T.words
    ones = count_ones(columns)
    n = sample.n_rows
    deviations = np.sqrt(ones * (n - ones))
    nearest = np.empty((len(probes), min(_NEAREST, len(others) - 1)), np.intp)
    for i, probe in enumerate(probes):
        both = count_ones(columns[others] & columns[probe])
        correlations = np.abs(n * both - ones[others] * ones[probe]) / (deviations[others] * deviations[probe])
        correlations[others == probe] = -1.0
        nearest[i] = others[np.argsort(-correlations, kind="stable")[: nearest.shape[1]]]
    return nearest


def _share_kept(groups: list[Columns], probes: Columns, nearest: NDArray[np.intp]) -> float:
    """Return the share of the nearest columns that are in the group of their probe."""
    group_of = np.empty(sum(map(len, groups)), np.intp)
    for number, columns in enumerate(groups):
        group_of[columns] = number
    return float((group_of[nearest] == group_of[probes][:, np.newaxis]).mean())


def _projections(sample: BitMatrix, random: np.random.Generator) -> NDArray[np.int16]:
    """Return the columns, less their means and of the same length, in random directions: one row per column.

    They are rounded to integers, whose sums do not depend on the order in which a library adds them.
    """
    n, m = sample.shape
    directions = 2 * random.integers(2, size=(n, _DIRECTIONS), dtype=np.int32) - 1
    projected = np.zeros((m, _DIRECTIONS), np.int32)
    for start in range(0, n, _CHUNK_ROWS):
        chunk = sample[start : start + _CHUNK_ROWS].to_sparse()
        projected += chunk.T.astype(np.int32) @ directions[start : start + _CHUNK_ROWS]
    ones, signs = sample.column_weights(), directions.sum(axis=0)
    lengths = np.sqrt(np.maximum(1, ones * (n - ones)) / n)
    points = np.empty((m, _DIRECTIONS), np.int16)
    for k in range(_DIRECTIONS):
        points[:, k] = np.rint(_UNIT / lengths * (projected[:, k] - ones * signs[k] / n))
    return points


def _divided(points: NDArray[np.int16], columns: Columns, width: int) -> list[Columns]:
    """Divide columns in two along the direction in which they differ most, and so on up to groups of ``width``."""
    n_groups = -(-len(columns) // width)
    if n_groups == 1:
        return [np.sort(columns)]
    order = np.argsort(points[columns].astype(np.int64) @ _widest_direction(points, columns), kind="stable")
    n_left = n_groups // 2 * len(columns) // n_groups
    left, right = columns[order[:n_left]], columns[order[n_left:]]
    return _divided(points, left, width) + _divided(points, right, width)


def _widest_direction(points: NDArray[np.int16], columns: Columns) -> NDArray[np.int64]:
    """Return the direction in which these columns differ most, in integers."""
    products, total = np.zeros((_DIRECTIONS, _DIRECTIONS)), np.zeros(_DIRECTIONS)
    for start in range(0, len(columns), _CHUNK_COLUMNS):
        chunk = points[columns[start : start + _CHUNK_COLUMNS]].astype(np.float64)
        products += chunk.T @ chunk
        total += chunk.sum(axis=0)
    _, axes = np.linalg.eigh(products - np.outer(total, total) / len(columns))
    widest = np.rint(_UNIT**2 * axes[:, -1]).astype(np.int64)
    return widest if widest[np.abs(widest).argmax()] > 0 else -widest


_MAX_PAIRS = 4 * 10**9  # pairs of ones in the same row, above which counting takes too long
_CHUNK_PAIRS = 1 << 22  # counted at a time
_MIN_TOGETHER = 2  # rows


class Pairs(NamedTuple):
    """Pairs of columns that occur together, and by how many bits that surprises."""

    one: NDArray[np.intp]
    other: NDArray[np.intp]
    bits: NDArray[np.float64]


def can_count_pairs(row_weights: NDArray[np.int64]) -> bool:
    """Return whether the pairs of ones in the same row are few enough to count."""
    return float((row_weights.astype(np.float64) ** 2).sum()) <= _MAX_PAIRS


def related_columns(
    data: SparseBits, max_size: int, check: Callable[[], object] = lambda: None
) -> list[NDArray[np.intp]]:
    """Return groups of two to ``max_size`` columns, joined by their most surprising pairs.

    Each is in increasing order, and so are their first columns. The other columns are related to no column. ``check``
    is called from time to time, and may raise.
    """
    pairs, group_of = surprising_pairs(data, check), np.arange(data.n_cols)
    members: dict[int, list[int]] = {}
    for i in np.argsort(-pairs.bits, kind="stable").tolist():
        left, right = int(group_of[pairs.one[i]]), int(group_of[pairs.other[i]])
        if left == right:
            continue
        columns = members.get(left, [left]) + members.get(right, [right])
        if len(columns) <= max_size:
            members.pop(right, None)
            members[left] = columns
            group_of[columns] = left
    return sorted((np.sort(np.array(columns, np.intp)) for columns in members.values()), key=lambda group: group[0])


def surprising_pairs(data: SparseBits, check: Callable[[], object] = lambda: None) -> Pairs:
    """Return the pairs of columns whose surprise, in bits, exceeds the bits of an atom of two columns."""
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
