"""Votes of similar rows on cells: each row votes with a weight that falls with the cells in which the two rows differ.

Only the words near that of a cell are compared. Weights are integers: sums do not depend on their order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..jit import inline, kernel, lowest_bit, popcount
from ..views import view
from .words import ONE, fill

_FARTHEST = np.int32(np.iinfo(np.int32).max)
_LARGEST = np.float32(1 << 30)  # of distances as integers


class VoterWords(NamedTuple):
    """The rows that vote, transposed: arrays of shape (n_words, n)."""

    bits: Any
    known: Any
    steps: Any  # float32: steps per differing cell, by how many cells of the window a row knows


class VoterScratch(NamedTuple):
    """Work arrays, one item per row that votes."""

    n_different: Any  # int32
    weights: Any  # int32


@inline
def _compare(bits, known, voters, w, sign, scratch):
    """Add the differing cells of word w, or subtract them."""
    for k in range(scratch.n_different.shape[0]):
        different = (bits ^ voters.bits[w, k]) & known & voters.known[w, k]
        scratch.n_different[k] += sign * np.int32(popcount(different))


@inline
def _weigh(wanted, voters, w, share_known, table, scratch):
    """Set the weight of each row by its distance, less that of the nearest row that knows a wanted cell."""
    last = np.int32(table.shape[0] - 1)
    nearest, factor = _FARTHEST, np.float32(1) / share_known
    for k in range(scratch.weights.shape[0]):
        steps = np.float32(scratch.n_different[k]) * (voters.steps[w, k] * factor)
        distance = np.int32(min(steps, _LARGEST))
        scratch.weights[k] = distance
        nearest = min(nearest, distance if wanted & voters.known[w, k] else _FARTHEST)
    for k in range(scratch.weights.shape[0]):
        scratch.weights[k] = table[min(max(scratch.weights[k] - nearest, np.int32(0)), last)]


@kernel
def count_votes(bits, known, shares_known, wanted, voters, radius, table, scratch, ones, total):
    """ones[c] and total[c] = weights of the rows that have a one, and a known value, in wanted cell c.

    ``wanted`` (n, n_words) marks the cells, which are numbered in order. The words up to ``radius`` from that of a cell
    are compared, of which a row knows ``shares_known`` (n, n_words). ``table`` has the weight at each distance.
    """
    bits, known, shares_known, wanted, voters, radius, table, scratch, ones, total = view(
        (bits, known, shares_known, wanted, voters, radius, table, scratch, ones, total)
    )
    n_words = bits.shape[1]
    cell = 0
    for j in range(bits.shape[0]):
        fill(scratch.n_different, 0)
        for w in range(min(radius, n_words)):
            _compare(bits[j, w], known[j, w], voters, w, np.int32(1), scratch)
        for w in range(n_words):
            first, last = w - radius, w + radius
            if last < n_words:
                _compare(bits[j, last], known[j, last], voters, last, np.int32(1), scratch)
            if first > 0:
                _compare(bits[j, first - 1], known[j, first - 1], voters, first - 1, np.int32(-1), scratch)
            left = wanted[j, w]
            if left:
                _weigh(left, voters, w, shares_known[j, w], table, scratch)
            while left:
                shift = np.uint64(lowest_bit(left))
                left &= left - ONE
                in_favour, of_all = np.int64(0), np.int64(0)
                for k in range(scratch.weights.shape[0]):
                    weight = np.int64(scratch.weights[k])
                    in_favour += weight & -np.int64((voters.bits[w, k] >> shift) & ONE)
                    of_all += weight & -np.int64((voters.known[w, k] >> shift) & ONE)
                ones[cell] = in_favour
                total[cell] = of_all
                cell += 1
