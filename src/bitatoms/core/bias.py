"""The bias takes every column that is wrong in more than half of the rows that know it.

log2 (n choose e) is symmetric in e: a column that is wrong in every row costs no more bits than one that is right in
every row. A search for the shortest codelength would therefore use atoms that no row has. Flipping a bit of the bias
exchanges right and wrong in its column, under XOR and under OR, and leaves codes and atoms as they are.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix

AnyCounts = TypeVar("AnyCounts", bound=Any)  # `Counts` or `DecayedCounts`


def settle_bias(
    n_known: int | NDArray[np.int64], wrong: NDArray[np.int64], bias: BitMatrix
) -> tuple[BitMatrix, NDArray[np.int64]]:
    """Return the bias that takes the columns wrong in most rows, and in how many rows each column is wrong with it.

    ``n_known`` is the number of rows in which each column is known.
    """
    flips = mostly_wrong(n_known, wrong)
    if not flips.any():
        return bias, wrong
    return flip_bias(bias, flips), np.where(flips, n_known - wrong, wrong)


def settle_counts(bias: BitMatrix, counts: AnyCounts, settles: bool) -> tuple[BitMatrix, AnyCounts]:
    """Return the bias that takes the columns wrong in most rows, and the counts with it.

    Both are unchanged unless ``settles``: whether the objective has this rule (`SearchParams.settles_bias`).
    """
    flips = mostly_wrong(counts.n_known, counts.wrong)
    if not settles or not flips.any():
        return bias, counts
    return flip_bias(bias, flips), flip_counts(counts, flips)


def mostly_wrong(n_known: int | NDArray[np.int64], wrong: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which columns are wrong in more than half of the rows that know them."""
    return 2 * wrong > n_known


def flip_bias(bias: BitMatrix, flips: NDArray[np.bool_]) -> BitMatrix:
    """Return the bias with these bits flipped."""
    return BitMatrix.from_dense(bias.to_dense(bool) ^ flips)


def flip_counts(counts: AnyCounts, flips: NDArray[np.bool_]) -> AnyCounts:
    """Return the counts of the same codes and atoms after these bits of the bias are flipped."""
    flips_vote = flips if counts.free.ndim == 2 else flips[counts.voted.indices]
    return replace(
        counts,
        wrong=np.where(flips, counts.n_known - counts.wrong, counts.wrong),
        missed=np.where(flips, counts.ones - counts.missed, counts.missed),
        bad=np.where(flips_vote, counts.free - counts.bad, counts.bad),
    )
