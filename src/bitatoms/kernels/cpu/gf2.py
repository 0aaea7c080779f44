"""Linear algebra over GF(2), where sums of rows are XOR: elimination, light sums of rows, codes from information sets.

Light sums have few ones. Pairs of rows are compared directly. For sums of four, pairs are hashed by some of their
columns, and pairs of pairs are compared within buckets.
"""

from __future__ import annotations

import numpy as np

from ..jit import inline, kernel, lowest_bit, popcount
from ..views import view
from .coding import set_row
from .words import NONE, ONE, copy_row, distance, fill, first_one, row_price, unknown_word, weight

FIRST_WORDS = 4  # of a sum, by which most heavy ones are recognized
_DEVIATIONS = 2.0  # standard deviations by which a light sum may have more ones in these words than its share
_BASE, _TRIAL, _BEST = range(3)  # rows of the work arrays of `code_from_columns`


@inline
def _bit(words, i, column):
    """Return the bit of row i in this column."""
    return (words[i, column >> 6] >> np.uint64(column & 63)) & ONE


@inline
def _bits_at(words, i, columns, first, last):
    """Return the bits of row i in columns first..last of this list, as an integer."""
    value = 0
    for b in range(first, last):
        value |= np.intp(_bit(words, i, columns[b])) << (b - first)
    return value


@inline
def _add(words, source, target):
    """Add row ``source`` to row ``target``."""
    for w in range(words.shape[1]):
        words[target, w] ^= words[source, w]


@inline
def _exchange(words, i, j):
    """Exchange two rows."""
    for w in range(words.shape[1]):
        words[i, w], words[j, w] = words[j, w], words[i, w]


@kernel
def reduce_rows(rows, sums, columns, pivots):
    """Gauss-Jordan elimination in place, with pivots in the first columns of this order that allow it; return the rank.

    Afterwards row i, below the rank, is the only one with a one in column pivots[i]. The same steps are applied to
    ``sums``: if it is the identity at first, row i of it names the old rows whose sum the new row i is.
    """
    rows, sums, columns, pivots = view((rows, sums, columns, pivots))
    rank = 0
    for i in range(columns.shape[0]):
        column = columns[i]
        if rank == rows.shape[0]:
            break
        found = rank
        while found < rows.shape[0] and _bit(rows, found, column) == NONE:
            found += 1
        if found == rows.shape[0]:
            continue
        if found != rank:
            _exchange(rows, found, rank)
            _exchange(sums, found, rank)
        for i in range(rows.shape[0]):
            if i != rank and _bit(rows, i, column) != NONE:
                _add(rows, rank, i)
                _add(sums, rank, i)
        pivots[rank] = column
        rank += 1
    return rank


@inline
def _ones_in_first_words(one, two):
    """Return the number of ones of the sum of two rows in its first words."""
    ones = np.intp(popcount(one[0] ^ two[0])) + np.intp(popcount(one[1] ^ two[1]))
    return ones + np.intp(popcount(one[2] ^ two[2])) + np.intp(popcount(one[3] ^ two[3]))


@inline
def _keep_if_light(one, two, weights, limits, n_words, found, count):
    """Append the sum of two rows if it has fewer ones than the limits, and than one of the rows it is a sum of.

    Ones are counted in the first ``n_words`` words; the limits are those for a few of these, and for all. The other
    words name the rows that the sum is made of, whose numbers of ones are ``weights``. Return how many sums there are
    now.
    """
    if count == found.shape[0]:
        return count
    ones = _ones_in_first_words(one, two)
    if ones >= limits[0]:
        return count
    for w in range(FIRST_WORDS, n_words):
        ones += np.intp(popcount(one[w] ^ two[w]))
    if ones >= limits[1]:
        return count
    heaviest = 0
    for w in range(n_words, one.shape[0]):
        word = one[w] ^ two[w]
        while word != NONE:
            i, word = first_one(word, w - n_words)
            heaviest = max(heaviest, weights[i])
    if ones >= heaviest:
        return count
    for w in range(one.shape[0]):
        found[count, w] = one[w] ^ two[w]
    return count + 1


@kernel
def list_light_sums(rows, work, weights, n_rows, n_words, limit, depth, found):
    """List light sums of at most ``depth`` (2 or 3) of the first ``n_rows`` rows that could replace an original row.

    Each row is a sum of original rows, which have these ``weights``, numbers of ones in the first ``n_words`` words, at
    least ``FIRST_WORDS``. The other words of a row name the original rows. A listed sum has fewer ones than the limit
    and than one of the original rows it is made of; in the first few words, it has no more ones than are likely with
    this limit. ``work`` has two rows. Return how many sums are listed, at most the length of ``found``.
    """
    rows, work, weights, depth, found = view((rows, work, weights, depth, found))
    share = FIRST_WORDS / n_words
    spread = np.sqrt(share * (1 - share) * max(0, limit))
    limits = int(np.ceil(share * limit + _DEVIATIONS * spread)), limit
    zero, pair = work[0], work[1]
    fill(zero, NONE)
    count = 0
    for i in range(n_rows):
        count = _keep_if_light(rows[i], zero, weights, limits, n_words, found, count)
        for j in range(i):
            for w in range(pair.shape[0]):
                pair[w] = rows[i, w] ^ rows[j, w]
            count = _keep_if_light(pair, zero, weights, limits, n_words, found, count)
            first = pair[0], pair[1], pair[2], pair[3]  # in registers: most of the time is spent on triples
            for k in range(j if depth == 3 else 0):
                if _ones_in_first_words(first, rows[k]) < limits[0]:
                    count = _keep_if_light(pair, rows[k], weights, limits, n_words, found, count)
    return count


@kernel
def tabulate_sums(rows, n_rows, table):
    """table[g, v] = the sum of the rows 8 g + b, for each bit b of the byte v."""
    rows, table = view((rows, table))
    for g in range(table.shape[0]):
        fill(table[g, 0], NONE)
        for value in range(1, 256):
            i = 8 * g + lowest_bit(np.uint64(value))
            rest = table[g, value & (value - 1)]
            for w in range(rows.shape[1]):
                table[g, value, w] = rest[w] ^ (rows[i, w] if i < n_rows else NONE)


@inline
def _code_exactly(targets, j, draw, errors, code):
    """Code row j from the columns of a draw as if it had no errors in them: its code, and the errors that are left."""
    copy_row(targets, j, errors)
    fill(code, NONE)
    rank = draw.pivots.shape[0]
    for g in range(draw.products.shape[0]):
        value = _bits_at(targets, j, draw.pivots, 8 * g, min(8 * g + 8, rank))
        for w in range(errors.shape[0]):
            errors[w] ^= draw.products[g, value, w]
        for c in range(code.shape[0]):
            code[c] ^= draw.codes[g, value, c]


@kernel
def clear_pivots(targets, draw, out):
    """out[j] = row j plus the reduced atoms that make its bits in the pivot columns zero."""
    targets, draw = view((targets, draw))
    for j in range(targets.shape[0]):
        _code_exactly(targets, j, draw, out[j], out[j, :0])  # without the code


@inline
def _has_few_errors(rows, j, draw, i, most_errors, base):
    """Whether the code for an error in pivot column i, or none for i = -1, leaves row j at most this many errors."""
    n_errors = 0
    for w in range(draw.reduced.shape[1]):
        errors = base[w] ^ (draw.reduced[i, w] if i >= 0 else NONE)
        n_errors += np.intp(popcount(errors & ~unknown_word(rows, j, w)))
        if n_errors > most_errors:
            return False
    return True


@inline
def _try_candidate(rows, j, draw, i, cost, rule, scratch):
    """Try the code for an error in pivot column i, or none for i = -1; keep it and return its cost if that is lower."""
    errors, codes = scratch.errors, scratch.codes
    for w in range(errors.shape[1]):
        errors[_TRIAL, w] = errors[_BASE, w] ^ (draw.reduced[i, w] if i >= 0 else NONE)
        errors[_TRIAL, w] &= ~unknown_word(rows, j, w)
    for c in range(codes.shape[1]):
        codes[_TRIAL, c] = codes[_BASE, c] ^ (draw.sums[i, c] if i >= 0 else NONE)
    if weight(codes, _TRIAL) > rule.max_atoms:
        return cost
    new_cost = row_price(codes, errors, _TRIAL, rule.prices)
    if new_cost >= cost:
        return cost
    copy_row(errors, _TRIAL, errors[_BEST])
    copy_row(codes, _TRIAL, codes[_BEST])
    return new_cost


@kernel
def code_from_columns(rows, atoms, targets, rule, draw, slack, start, stop, scratch):
    """Code the rows start..stop from the columns of a draw, and keep a code that costs less than the current one.

    A code follows from the bits of a row in these columns, if there are no errors in them, or one. Codes with over
    ``slack`` more errors than the current one are passed over. ``targets`` are the rows less the bias.
    """
    rows, atoms, targets, rule, draw, scratch = view((rows, atoms, targets, rule, draw, scratch))
    for j in range(start, stop):
        before = row_price(rows.codes, rows.errors, j, rule.prices)
        if before == 0:
            continue
        most_errors = weight(rows.errors, j) + slack
        cost = before
        _code_exactly(targets, j, draw, scratch.errors[_BASE], scratch.codes[_BASE])
        for i in range(-1, draw.pivots.shape[0]):
            if _has_few_errors(rows, j, draw, i, most_errors, scratch.errors[_BASE]):
                cost = _try_candidate(rows, j, draw, i, cost, rule, scratch)
        if cost < before:
            set_row(rows, j, atoms.words, scratch.codes[_BEST], scratch.errors[_BEST], False)


@kernel
def count_distances(rows, counts):
    """counts[d] = number of pairs of rows that differ in d columns."""
    rows, counts = view((rows, counts))
    fill(counts, 0)
    for i in range(rows.shape[0]):
        for j in range(i):
            counts[distance(rows, j, rows[i])] += 1


@kernel
def mark_near(rows, limit, near):
    """near[i, j] = 1 if rows i and j differ in at most ``limit`` columns; 0 for i = j."""
    rows, near = view((rows, near))
    for i in range(rows.shape[0]):
        near[i, i] = 0
        for j in range(i):
            near[i, j] = near[j, i] = distance(rows, j, rows[i]) <= limit


@kernel
def list_near_pairs(rows, hashes, order, limit, max_compared, is_listed, found):
    """List pairs of rows with the same hash that differ in at most ``limit`` columns; return their number.

    ``order`` has rows with the same hash one after the other. Each row is compared with those before it, the last one
    first, and is in at most one pair: those in pairs are marked in ``is_listed``, and such rows are passed over. It
    ends when over ``max_compared`` pairs are compared or ``found`` is full.
    """
    rows, hashes, order, is_listed, found = view((rows, hashes, order, is_listed, found))
    count = 0
    compared = 0
    for p in range(order.shape[0]):
        if count == found.shape[0] or compared > max_compared:
            break
        i = order[p]
        if is_listed[i]:
            continue
        for q in range(p - 1, -1, -1):
            j = order[q]
            if hashes[j] != hashes[i]:
                break
            if is_listed[j]:
                continue
            compared += 1
            if distance(rows, j, rows[i]) <= limit:
                is_listed[i] = is_listed[j] = True
                found[count, 0], found[count, 1] = i, j
                count += 1
                break
    return count


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

    Only the buckets v with start <= v >> shift < stop are filled. ``grouped`` lists the rows, sorted by their hashes
    without the lowest ``shift`` bits: group g up to group_ends[g]. The buckets of two groups are few, so that they stay
    in the cache.
    """
    hashes, shift, group_ends, grouped, ends, second = view((hashes, shift, group_ends, grouped, ends, second))
    total = _pairs_before(group_ends, start)
    for high in range(start, stop):
        begin, end = high << shift, (high + 1) << shift
        for i in range(begin, end):
            ends[i] = 0
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
    rows, ends, second, max_compared, max_per_bucket, found = view(
        (rows, ends, second, max_compared, max_per_bucket, found)
    )
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
def vote_on_bits(fours, sums, ignored, weights, start, stop, signed, votes):
    """votes[i, j] = sum of the weights of the fours with row i, negative where their sum has a one in column j.

    Columns are those of the words start..stop. In columns that are ``ignored``, a four has no vote. ``signed`` is a
    work array for one word.
    """
    fours, sums, ignored, weights, signed = view((fours, sums, ignored, weights, signed))
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
    rows, original, out = view((rows, original, out))
    for i in range(rows.shape[0]):
        for w in range(start, stop):
            word, first, after = rows[i, w], original[i, w], NONE
            of_row = votes[i, 64 * w : 64 * w + 64]
            for b in range(64):
                sign = np.float32(1 - 2 * np.int32((word >> np.uint64(b)) & ONE))
                original_sign = np.float32(1 - 2 * np.int32((first >> np.uint64(b)) & ONE))
                after |= np.uint64(of_row[b] * sign + weight * original_sign < 0) << np.uint64(b)
            out[i, w] = after
