"""Sums of two and of four rows that have few ones, and what those of four say about the rows.

Pairs of rows are compared directly. For sums of four, pairs are hashed by some of their columns, and pairs of pairs are
compared within buckets.
"""

from __future__ import annotations

import numpy as np

from ..jit import inline, kernel, popcount
from .words import NONE, ONE, distance


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
def group_rows(hashes, shift, ends, grouped):
    """Sort the rows by their hashes without the lowest ``shift`` bits: group g is listed up to ends[g]."""
    ends[:] = 0
    for i in range(hashes.shape[0]):
        ends[hashes[i] >> shift] += 1
    total = 0
    for g in range(ends.shape[0]):
        total, ends[g] = total + ends[g], total
    for i in range(hashes.shape[0]):
        g = hashes[i] >> shift
        grouped[ends[g]] = i
        ends[g] += 1


@inline
def _group_start(ends, g):
    """Return where group g begins."""
    return 0 if g == 0 else ends[g - 1]


@inline
def _pairs_before(ends, limit):
    """Return the number of pairs of rows whose groups differ by less than ``limit``, by XOR."""
    count = 0
    for g in range(ends.shape[0]):
        size = ends[g] - _group_start(ends, g)
        for other in range(g + 1):
            if g ^ other < limit:
                count += size * (ends[other] - _group_start(ends, other)) if other < g else size * (size - 1) // 2
    return count


@kernel
def bucket_pairs(hashes, shift, group_ends, grouped, start, stop, ends, first, second):
    """Sort pairs of rows by the XOR of their hashes: bucket v is listed up to ends[v], from ends[v - 1] on.

    Only the buckets v with start <= v >> shift < stop are filled. The groups of rows are those of `group_rows`. The
    buckets of two groups are few, so that they stay in the cache.
    """
    total = _pairs_before(group_ends, start)
    for high in range(start, stop):
        begin, end = high << shift, (high + 1) << shift
        ends[begin:end] = 0
        for i in range(hashes.shape[0]):
            g = (hashes[i] >> shift) ^ high
            for p in range(_group_start(group_ends, g), group_ends[g]):
                if grouped[p] >= i:
                    break
                ends[hashes[i] ^ hashes[grouped[p]]] += 1
        for value in range(begin, end):
            total, ends[value] = total + ends[value], total
        for i in range(hashes.shape[0]):
            g = (hashes[i] >> shift) ^ high
            for p in range(_group_start(group_ends, g), group_ends[g]):
                j = grouped[p]
                if j >= i:
                    break
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


@kernel
def add_fours(rows, fours, sums):
    """sums[c] = sum of the four rows fours[c]."""
    for c in range(fours.shape[0]):
        one, two, three, four = fours[c, 0], fours[c, 1], fours[c, 2], fours[c, 3]
        for w in range(rows.shape[1]):
            sums[c, w] = rows[one, w] ^ rows[two, w] ^ rows[three, w] ^ rows[four, w]


@kernel
def vote_on_bits(fours, sums, ignored, weights, start, stop, signed, votes):
    """votes[i, j] = sum of the weights of the fours with row i, negative where their sum has a one in column j.

    Columns are those of the words start..stop. In columns that are ``ignored``, a four has no vote. ``signed`` is a
    work array for one word.
    """
    votes[:, 64 * start : 64 * stop] = 0
    for c in range(fours.shape[0]):
        weight = weights[c]
        for w in range(start, stop):
            word, has_vote = sums[c, w], ~ignored[c, w]
            for b in range(64):
                sign = 1 - 2 * np.int32((word >> np.uint64(b)) & ONE)
                signed[b] = weight * np.float32(sign * np.int32((has_vote >> np.uint64(b)) & ONE))
            for member in range(4):
                of_row = votes[fours[c, member], 64 * w : 64 * w + 64]  # a view, or the loop is not vectorized
                for b in range(64):
                    of_row[b] += signed[b]


@kernel
def take_votes(rows, votes, original, weight, start, stop, out):
    """out = the words start..stop of the rows without the bits that are wrong by the votes of `vote_on_bits`.

    A positive vote is one for the bit that a row has. The bit that it had originally has a vote of this ``weight``.
    """
    for i in range(rows.shape[0]):
        for w in range(start, stop):
            word, first, after = rows[i, w], original[i, w], NONE
            of_row = votes[i, 64 * w : 64 * w + 64]
            for b in range(64):
                sign = np.float32(1 - 2 * np.int32((word >> np.uint64(b)) & ONE))
                original_sign = np.float32(1 - 2 * np.int32((first >> np.uint64(b)) & ONE))
                after |= np.uint64(of_row[b] * sign + weight * original_sign < 0) << np.uint64(b)
            out[i, w] = after
