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

from ...bits import BitMatrix, count_ones, flip_sparse
from ...engine.block import Words
from ...kernels.cpu import gf2, packing
from ...parallel import Workers
from ..plan import LinearBudget

_PRIOR_NOISE = 0.01, 0.4  # limits of the estimated share of wrong bits
_LEAST_ERRORS = 0.002  # that a vote is taken to have: no vote outweighs all others
_LEAST_TABLES = 3  # a check has no vote in the columns of its hash
_MAX_HASH_BITS = 22
_MAX_PER_BUCKET = 2000  # pairs of a bucket that are compared
_LISTED = 8  # times as many checks as are wanted are listed per hash table, to draw from
_N_CONTROLS = 1000  # sums of four random rows, to see how many ones such sums have
_ROUNDS, _LEAST_RISE = 15, 1e-3  # of removing noise; of the mean of checks (1 satisfied, -1 not) in a round
_MIN_SATISFIED = 3  # checks without any error, in which a row must be to be taken as free of noise
_GROUP_BITS = 6  # of hashes, by which rows are grouped
_PAIR_COST, _VOTE_COST = 15.0, 90.0  # nanoseconds to sort a pair of rows, and per vote of a check on a word


class Checks(NamedTuple):
    """Sets of four rows, and the columns by which each was found."""

    rows: NDArray[np.int64]  # (checks, 4): indices of rows
    hashed: NDArray[np.int64]  # (checks, bits of a hash): indices of columns


def rows_without_noise(
    data: BitMatrix, random: np.random.Generator, workers: Workers, budget: LinearBudget
) -> BitMatrix:
    """Return those rows from which parity checks remove all noise; none if there are too few checks."""
    checks = find_checks(data, random, workers, budget)
    if len(checks.rows) < budget.min_checks * data.n_rows:
        return data[:0]
    data, n_satisfied = remove_noise(data, checks, workers)
    return data[np.flatnonzero(n_satisfied >= _MIN_SATISFIED)]


def spread_of_sums(data: BitMatrix, random: np.random.Generator) -> float:
    """Return the standard deviation of the ones of sums of four rows, relative to sums of independent bits.

    It is large where rows are much like each other, whatever sums of them are zero.
    """
    sums = BitMatrix.from_words(_random_sums(data, random), data.n_cols, check=False)
    share = sums.column_weights() / sums.n_rows
    return float(sums.row_weights().std() / max(1e-9, np.sqrt((share * (1 - share)).sum())))


def _random_sums(data: BitMatrix, random: np.random.Generator) -> Words:
    """Return sums of four random rows."""
    return sums_of_four(data, random.integers(data.n_rows, size=(_N_CONTROLS, 4)))


def find_checks(data: BitMatrix, random: np.random.Generator, workers: Workers, budget: LinearBudget) -> Checks:
    """Return sets of four rows whose sum has far fewer ones than that of most such sets.

    It ends early if all hash tables together would find too few checks.
    """
    (n, m), words = data.shape, data.words
    n_pairs, most = n * (n - 1) // 2, budget.checks * n
    n_compared = max(1, budget.compared_words // words.shape[1])
    n_bits = int(np.clip(np.log2(max(1.0, n_pairs / 2 * n_pairs / n_compared)), 2, min(m, _MAX_HASH_BITS)))
    ends, first, second = (np.empty(size, np.int32) for size in (1 << n_bits, n_pairs, n_pairs))
    found = np.empty((_LISTED * most, 4), np.int64)
    least = budget.min_checks * n / budget.hash_tables
    digits = n ** np.arange(3, -1, -1)  # of a number for each four rows
    numbers, table_of, hashed = np.empty(0, np.int64), np.empty(0, np.int64), []
    for table in range(1, budget.hash_tables + 1):
        columns = random.choice(m, n_bits, replace=False)
        hashed.append(columns)
        limit = _light_limit(data, columns, random, budget)
        if limit >= 0:
            _fill_buckets(words, columns, workers, (ends, first, second))
            start = int(random.integers(1 << n_bits))
            count = gf2.list_light_fours(words, ends, first, second, limit, n_compared, _MAX_PER_BUCKET, start, found)
            new = np.sort(found[_chosen(count, most, random)], axis=1) @ digits
            numbers, first_of_check = np.unique(np.append(numbers, new), return_index=True)
            table_of = np.append(table_of, np.full(len(new), table - 1))[first_of_check]
        is_enough = len(numbers) >= most and table >= _LEAST_TABLES
        if is_enough or len(numbers) < least * table:
            break
    chosen = _chosen(len(numbers), most, random)
    return Checks(numbers[chosen, np.newaxis] // digits % n, np.array(hashed)[table_of[chosen]])


def _fill_buckets(
    words: Words, columns: NDArray[np.int64], workers: Workers, buckets: tuple[NDArray[np.int32], ...]
) -> None:
    """Sort all pairs of rows by the bits of their sums in these columns: the end of each bucket, and the two rows."""
    n, n_bits = len(words), len(columns)
    group_bits = min(n_bits, _GROUP_BITS)
    packed = np.empty((n, 1), np.uint64)
    packing.take_columns(words, columns, packed)
    hashes = packed[:, 0].astype(np.int64)
    groups = hashes >> (n_bits - group_bits)
    grouped, group_ends = np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups, minlength=1 << group_bits))

    def fill(start: int, stop: int) -> None:
        gf2.bucket_pairs(hashes, n_bits - group_bits, group_ends, grouped, start, stop, *buckets)

    workers.map_rows(fill, len(group_ends), _PAIR_COST * len(buckets[1]) / len(group_ends), 1)


def _chosen(n: int, most: int, random: np.random.Generator) -> NDArray[np.intp]:
    """Return the indices of all of n items, or of this many at random, in order."""
    return np.arange(n) if n <= most else np.sort(random.choice(n, most, replace=False))


def _light_limit(data: BitMatrix, ignored: NDArray[np.int64], random: np.random.Generator, budget: LinearBudget) -> int:
    """Return the number of ones that few sums of four rows have, without those in the columns that are ignored."""
    ones = count_ones(_random_sums(data, random) & ~_marked(ignored[np.newaxis], data.words.shape[1]))
    return int(np.median(ones) - budget.check_deviations * ones.std())


def remove_noise(data: BitMatrix, checks: Checks, workers: Workers) -> tuple[BitMatrix, NDArray[np.int64]]:
    """Flip the bits that checks find wrong, repeatedly; return them, and the number of checks without any error that
    each row is in.

    A check votes with the logarithm of its odds to be right about a bit; so does the original bit. For a share q of
    noise, the mean of a check over its columns is (1 - 2 q)^4, with 1 where it is satisfied and -1 elsewhere. It is
    right about a bit if the sum of the other three rows is, in a share (1 + (1 - 2 q)^3) / 2 of the columns.
    """
    original, (n, m), (n_checks, n_hashed) = data, data.shape, checks.hashed.shape
    ignored = _marked(checks.hashed, data.words.shape[1])
    best_mean = np.float32(0)  # as by chance
    for _ in range(_ROUNDS):
        sums = sums_of_four(data, checks.rows)
        mean = np.float32((n_checks * m - 2 * int(count_ones(sums).sum())) / (n_checks * m))
        if mean < best_mean + _LEAST_RISE:
            break
        best_mean = mean
        sum_of_check = m - n_hashed - 2 * count_ones(sums & ~ignored)
        mean_of_check = np.clip(sum_of_check.astype(np.float32) / max(1, m - n_hashed), 0.0, 1.0)
        noise = np.clip((1 - np.median(mean_of_check) ** (1 / 4)) / 2, *_PRIOR_NOISE)
        votes = checks.rows, sums, ignored, _log_odds((1 - mean_of_check ** (3 / 4)) / 2)
        after = _voted(data, votes, original, np.float32(_log_odds(noise)), workers)
        if after == data:
            break
        data = after
    is_satisfied = ~sums_of_four(data, checks.rows).any(axis=1)
    return data, np.bincount(checks.rows[is_satisfied].ravel(), minlength=n)


def _voted(
    data: BitMatrix,
    votes: tuple[NDArray[np.int64], Words, Words, NDArray[np.float32]],
    original: BitMatrix,
    weight_of_original: np.float32,
    workers: Workers,
) -> BitMatrix:
    """Return the rows without the bits that are wrong by the votes of checks and of the original bit.

    ``votes`` are the four rows of each check, their sum, the columns without a vote, and the weights of the checks.
    """
    n, n_words = data.words.shape
    counted, after = np.empty((n, 64 * n_words), np.float32), np.empty((n, n_words), np.uint64)

    def vote(start: int, stop: int) -> None:
        gf2.vote_on_bits(*votes, start, stop, np.empty(64, np.float32), counted)
        gf2.take_votes(data.words, counted, original.words, weight_of_original, start, stop, after)

    workers.map_rows(vote, n_words, _VOTE_COST * len(votes[0]), 1)
    return BitMatrix.from_words(after, data.n_cols, check=False)


def sums_of_four(data: BitMatrix, fours: NDArray[np.int64]) -> Words:
    """Return the sum of the rows of each set of four."""
    sums = data.words[fours[:, 0]]
    for member in (1, 2, 3):
        sums ^= data.words[fours[:, member]]
    return sums


def _marked(columns: NDArray[np.int64], n_words: int) -> Words:
    """Return rows of bits that have ones in these columns, some for each row."""
    (n, n_ones), marked = columns.shape, np.zeros((len(columns), n_words), np.uint64)
    flip_sparse(n_ones * np.arange(n + 1), columns.ravel(), marked)
    return marked


def _log_odds(errors: NDArray[np.floating] | np.floating) -> NDArray[np.float32]:
    """Return the logarithm of the odds to be right, from the share of errors."""
    clipped = np.clip(errors, _LEAST_ERRORS, 0.5)
    return np.log((1 - clipped) / clipped).astype(np.float32)
