"""Parity checks: sets of four rows that add up to almost zero, by which noise is removed from the rows.

If the codes of four rows add up to zero, the sum of the rows is the sum of their noise, with fewer ones than the sum of
other rows. To find such sets, pairs of rows are hashed by a few columns of their sum, and pairs in the same bucket are
compared. A bit is then wrong if most checks that contain it fail; repeated, this removes the noise, as in the decoding
of low-density parity-check codes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..bits import BitMatrix
from ..kernels.cpu import row_sums
from .plan import CheckBudget

Bits = NDArray[np.uint8]
Checks = NDArray[np.int64]  # of shape (checks, 4): indices of rows
_PRIOR_NOISE = 0.01, 0.4  # limits of the estimated share of wrong bits


def rows_without_noise(bits: Bits, random: np.random.Generator, budget: CheckBudget) -> Bits:
    """Return those rows from which parity checks remove all noise; none if there are too few checks."""
    checks = find_checks(bits, random, budget)
    if len(checks) < budget.min_per_row * len(bits):
        return bits[:0]
    bits, n_satisfied = remove_noise(bits, checks, budget.rounds)
    return bits[n_satisfied >= budget.min_satisfied]


def find_checks(bits: Bits, random: np.random.Generator, budget: CheckBudget) -> Checks:
    """Return sets of four rows whose sum has far fewer ones than that of most such sets."""
    (n, m), words = bits.shape, BitMatrix.from_dense(bits).words
    n_pairs = n * (n - 1) // 2
    n_compared = max(1, min(budget.compared_words // words.shape[1], budget.compared_per_pair * n_pairs))
    n_bits = int(np.clip(np.log2(max(1.0, n_pairs / 2 * n_pairs / n_compared)), 2, min(m, 22)))
    first, second, ends = np.empty(n_pairs, np.int32), np.empty(n_pairs, np.int32), np.empty(1 << n_bits, np.int64)
    hashes, found = np.empty(n, np.int64), np.empty((8 * budget.per_row * n, 4), np.int64)
    checks = np.empty((0, 4), np.int64)
    for table in range(1, budget.max_hash_tables + 1):
        columns = random.choice(m, n_bits, replace=False)
        limit = _light_limit(np.delete(bits, columns, axis=1), random, budget.deviations)
        if limit >= 0:
            row_sums.hash_rows_by_columns(words, columns, hashes)
            row_sums.bucket_pairs(hashes, ends, first, second)
            start = int(random.integers(1 << n_bits))
            limits = limit, n_compared, budget.max_per_bucket
            count = row_sums.list_light_fours(words, ends, first, second, *limits, start, found)
            checks = np.unique(np.vstack([checks, np.sort(found[:count], axis=1)]), axis=0)
        if len(checks) >= budget.per_row * n or len(checks) < budget.min_per_row * n * table / 16:
            break
    most = budget.per_row * n
    return checks if len(checks) <= most else checks[np.sort(random.choice(len(checks), most, replace=False))]


def _light_limit(bits: Bits, random: np.random.Generator, deviations: float) -> int:
    """Return the number of ones that few sums of four rows have."""
    ones = parities(bits, random.integers(len(bits), size=(1000, 4))).sum(axis=1)
    return int(np.median(ones) - deviations * ones.std())


def remove_noise(bits: Bits, checks: Checks, rounds: int) -> tuple[Bits, NDArray[np.int64]]:
    """Flip the bits that checks find wrong, repeatedly; return them, and the number of checks without any error that
    each row is in.

    A check votes with the logarithm of its odds to be right about a bit, estimated from the share of its columns in
    which it is satisfied; so does the original bit.
    """
    n, n_checks = len(bits), len(checks)
    members = checks.T.ravel(), np.tile(np.arange(n_checks), 4)
    original = _signs(bits)
    for _ in range(rounds):
        satisfied = _signs(parities(bits, checks))
        agreement = np.clip(satisfied.mean(axis=1), 0.0, 1.0)  # (1 - 2 q)^4, if q is the share of noise
        noise = np.clip((1 - np.median(agreement) ** 0.25) / 2, *_PRIOR_NOISE)
        weights = csr_array((np.tile(_log_odds((1 - agreement**0.75) / 2), 4), members), (n, n_checks))
        votes = (weights @ satisfied) * _signs(bits) + _log_odds(noise) * original
        after = (votes < 0).astype(np.uint8)
        if np.array_equal(after, bits):
            break
        bits = after
    is_satisfied = ~parities(bits, checks).any(axis=1)
    return bits, np.bincount(checks[is_satisfied].ravel(), minlength=n)


def parities(bits: Bits, checks: Checks) -> Bits:
    """Return the sum of the rows of each check."""
    return np.bitwise_xor.reduce(bits[checks], axis=1)


def _signs(bits: Bits) -> NDArray[np.float32]:
    """Return 1 for 0 and -1 for 1."""
    return 1 - 2 * bits.astype(np.float32)


def _log_odds(errors: NDArray[np.floating] | np.floating) -> NDArray[np.float32]:
    """Return the logarithm of the odds to be right, from the share of errors."""
    clipped = np.clip(errors, 0.002, 0.5)
    return np.log((1 - clipped) / clipped).astype(np.float32)
