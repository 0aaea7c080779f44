"""Sums of two and of four rows that have few ones.

Pairs of rows are compared directly. For sums of four, pairs are hashed by some of their columns, and pairs of pairs are
compared within buckets.
"""

from __future__ import annotations

import numpy as np

from ..jit import inline, kernel, popcount
from .words import ONE, distance


@kernel
def count_distances(rows, counts):
    """counts[d] = number of pairs of rows that differ in d columns."""
    counts[:] = 0
    for i in range(rows.shape[0]):
        for j in range(i):
            counts[distance(rows, j, rows[i])] += 1


@kernel
def mark_near(rows, limit, near):
    """near[i, j] = 1 if rows i and j differ in at most ``limit`` columns; 0 for i = j."""
    for i in range(rows.shape[0]):
        near[i, i] = 0
        for j in range(i):
            near[i, j] = near[j, i] = distance(rows, j, rows[i]) <= limit


@kernel
def hash_rows_by_columns(rows, columns, out):
    """out[i] = the bits of row i in these columns, as an integer."""
    for i in range(rows.shape[0]):
        value = 0
        for b in range(columns.shape[0]):
            column = columns[b]
            value |= np.intp((rows[i, column >> 6] >> np.uint64(column & 63)) & ONE) << b
        out[i] = value


@kernel
def bucket_pairs(hashes, ends, first, second):
    """Sort all pairs of rows by the XOR of their hashes: bucket v is listed up to ends[v], from ends[v - 1] on."""
    ends[:] = 0
    for i in range(hashes.shape[0]):
        for j in range(i):
            ends[hashes[i] ^ hashes[j]] += 1
    total = 0
    for value in range(ends.shape[0]):
        total, ends[value] = total + ends[value], total
    for i in range(hashes.shape[0]):
        for j in range(i):
            value = hashes[i] ^ hashes[j]
            first[ends[value]] = i
            second[ends[value]] = j
            ends[value] += 1


@inline
def _is_light(rows, one, two, three, four, limit):
    """Return whether the sum of four rows has at most ``limit`` ones."""
    ones = 0
    for w in range(rows.shape[1]):
        ones += np.intp(popcount(rows[one, w] ^ rows[two, w] ^ rows[three, w] ^ rows[four, w]))
        if ones > limit:
            return False
    return True


@kernel
def list_light_fours(rows, ends, first, second, limit, max_compared, max_per_bucket, start, found):
    """List sums of four different rows with at most ``limit`` ones, from pairs in the same bucket; return their number.

    Buckets are visited in turn from bucket ``start`` on, until ``max_compared`` pairs of pairs are compared or
    ``found`` is full. In a bucket, only the first ``max_per_bucket`` pairs are compared.
    """
    count = 0
    compared = 0
    for step in range(ends.shape[0]):
        value = (start + step) & (ends.shape[0] - 1)
        begin = 0 if value == 0 else ends[value - 1]
        end = min(ends[value], begin + max_per_bucket)
        for a in range(begin + 1, end):
            for b in range(begin, a):
                one, two, three, four = first[a], second[a], first[b], second[b]
                if one in (three, four) or two in (three, four):
                    continue
                compared += 1
                if _is_light(rows, one, two, three, four, limit):
                    found[count, 0], found[count, 1], found[count, 2], found[count, 3] = one, two, three, four
                    count += 1
                    if count == found.shape[0]:
                        return count
        if compared >= max_compared:
            break
    return count
