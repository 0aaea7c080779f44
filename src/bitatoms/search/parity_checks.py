"""Parity checks: sets of four rows that add up to almost zero, by which noise is removed from the rows.

If the codes of four rows add up to zero, the sum of the rows is the sum of their noise, with fewer ones than the sum of
other rows. To find such sets, pairs of rows are hashed by a few columns of their sum, and pairs in the same bucket are
compared. A bit is then wrong if most checks that contain it fail; repeated, this removes the noise, as in the decoding
of low-density parity-check codes. In the columns of its hash, a check is satisfied whatever the noise, and has no vote:
several hash tables are needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..bits import BitMatrix
from ..kernels.cpu import row_sums
from .plan import CheckBudget

Bits = NDArray[np.uint8]
_PRIOR_NOISE = 0.01, 0.4  # limits of the estimated share of wrong bits
_LEAST_ERRORS = 0.002  # that a vote is taken to have: no vote outweighs all others


class Checks(NamedTuple):
    """Sets of four rows, and the columns by which each was found."""

    rows: NDArray[np.int64]  # (checks, 4): indices of rows
    hashed: NDArray[np.int64]  # (checks, bits of a hash): indices of columns

    def taken(self, index: NDArray[np.intp]) -> Checks:
        """Return the checks with these indices."""
        return Checks(self.rows[index], self.hashed[index])


def rows_without_noise(bits: Bits, random: np.random.Generator, budget: CheckBudget) -> Bits:
    """Return those rows from which parity checks remove all noise; none if there are too few checks."""
    checks = find_checks(bits, random, budget)
    if len(checks.rows) < budget.min_per_row * len(bits):
        return bits[:0]
    bits, n_satisfied = remove_noise(bits, checks, budget)
    share = n_satisfied / np.maximum(1, np.bincount(checks.rows.ravel(), minlength=len(bits)))
    least_share = budget.min_share * np.quantile(share, budget.clean_quantile)
    is_clean = (n_satisfied >= budget.min_satisfied) & (share >= least_share)
    return bits[is_clean]


def find_checks(bits: Bits, random: np.random.Generator, budget: CheckBudget) -> Checks:
    """Return sets of four rows whose sum has far fewer ones than that of most such sets."""
    (n, m), words = bits.shape, BitMatrix.from_dense(bits).words
    n_pairs, most = n * (n - 1) // 2, budget.per_row * n
    n_compared = max(1, min(budget.compared_words // words.shape[1], budget.compared_per_pair * n_pairs))
    n_bits = int(np.clip(np.log2(max(1.0, n_pairs / 2 * n_pairs / n_compared)), 2, min(m, budget.max_hash_bits)))
    first, second, ends = np.empty(n_pairs, np.int32), np.empty(n_pairs, np.int32), np.empty(1 << n_bits, np.int64)
    hashes, found = np.empty(n, np.int64), np.empty((budget.listed * most, 4), np.int64)
    checks = Checks(np.empty((0, 4), np.int64), np.empty((0, n_bits), np.int64))
    for table in range(1, budget.max_hash_tables + 1):
        columns = random.choice(m, n_bits, replace=False)
        limit = _light_limit(np.delete(bits, columns, axis=1), random, budget)
        if limit >= 0:
            row_sums.hash_rows_by_columns(words, columns, hashes)
            row_sums.bucket_pairs(hashes, ends, first, second)
            start = int(random.integers(1 << n_bits))
            limits = limit, n_compared, budget.max_per_bucket
            count = row_sums.list_light_fours(words, ends, first, second, *limits, start, found)
            new = np.sort(found[_chosen(count, most, random)], axis=1)
            rows = np.vstack([checks.rows, new])
            hashed = np.vstack([checks.hashed, np.broadcast_to(columns, (len(new), n_bits))])
            checks = Checks(rows, hashed).taken(np.unique(rows, axis=0, return_index=True)[1])
        is_enough = len(checks.rows) >= most and table >= budget.min_hash_tables
        if is_enough or len(checks.rows) < budget.min_per_row * n * table * budget.least_progress:
            break
    return checks.taken(_chosen(len(checks.rows), most, random))


def _chosen(n: int, most: int, random: np.random.Generator) -> NDArray[np.intp]:
    """Return the indices of all of n items, or of this many at random, in order."""
    return np.arange(n) if n <= most else np.sort(random.choice(n, most, replace=False))


def _light_limit(bits: Bits, random: np.random.Generator, budget: CheckBudget) -> int:
    """Return the number of ones that few sums of four rows have."""
    ones = parities(bits, random.integers(len(bits), size=(budget.n_controls, 4))).sum(axis=1)
    return int(np.median(ones) - budget.deviations * ones.std())


def remove_noise(bits: Bits, checks: Checks, budget: CheckBudget) -> tuple[Bits, NDArray[np.int64]]:
    """Flip the bits that checks find wrong, repeatedly; return them, and the number of checks without any error that
    each row is in.

    A check votes with the logarithm of its odds to be right about a bit; so does the original bit. For a share q of
    noise, the mean of a check over its columns is (1 - 2 q)^4, with 1 where it is satisfied and -1 elsewhere. It is
    right about a bit if the sum of the other three rows is, in a share (1 + (1 - 2 q)^3) / 2 of the columns.
    """
    (n, m), (n_checks, n_hashed) = bits.shape, checks.hashed.shape
    members = checks.rows.T.ravel(), np.tile(np.arange(n_checks), 4)
    original = _signs(bits)
    best_mean = 0.0  # as by chance
    for _ in range(budget.rounds):
        satisfied = _signs(parities(bits, checks.rows))
        mean = satisfied.mean()
        if mean < best_mean + budget.least_rise:
            break
        best_mean = mean
        np.put_along_axis(satisfied, checks.hashed, 0, axis=1)  # no vote
        mean_of_check = np.clip(satisfied.sum(axis=1) / max(1, m - n_hashed), 0.0, 1.0)
        noise = np.clip((1 - np.median(mean_of_check) ** (1 / 4)) / 2, *_PRIOR_NOISE)
        weight = _log_odds((1 - mean_of_check ** (3 / 4)) / 2)
        weights = csr_array((np.tile(weight, 4), members), (n, n_checks))
        votes = (weights @ satisfied) * _signs(bits) + _log_odds(noise) * original
        after = (votes < 0).astype(np.uint8)
        if np.array_equal(after, bits):
            break
        bits = after
    is_satisfied = ~parities(bits, checks.rows).any(axis=1)
    return bits, np.bincount(checks.rows[is_satisfied].ravel(), minlength=n)


def parities(bits: Bits, rows: NDArray[np.int64]) -> Bits:
    """Return the sum of the rows of each check."""
    return np.bitwise_xor.reduce(bits[rows], axis=1)


def _signs(bits: Bits) -> NDArray[np.float32]:
    """Return 1 for 0 and -1 for 1."""
    return 1 - 2 * bits.astype(np.float32)


def _log_odds(errors: NDArray[np.floating] | np.floating) -> NDArray[np.float32]:
    """Return the logarithm of the odds to be right, from the share of errors."""
    clipped = np.clip(errors, _LEAST_ERRORS, 0.5)
    return np.log((1 - clipped) / clipped).astype(np.float32)
