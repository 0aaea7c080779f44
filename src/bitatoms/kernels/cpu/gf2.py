"""Linear algebra over GF(2), where sums of rows are XOR: elimination, sums of few rows, codes from information sets."""

from __future__ import annotations

import numpy as np

from ..jit import inline, kernel, lowest_bit, popcount
from .coding import set_row
from .words import NONE, ONE, row_price, unknown_word, weight

FIRST_WORDS = 4  # of a sum, by which most heavy ones are recognized
_DEVIATIONS = 2.0  # standard deviations by which a light sum may have more ones in these words than its share


@inline
def _bit(words, i, column):
    """Return the bit of row i in this column."""
    return (words[i, column >> 6] >> np.uint64(column & 63)) & ONE


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
    rank = 0
    for column in columns:
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
def _top_bit(row):
    """Return the index of the highest one of a row, or -1."""
    for w in range(row.shape[0] - 1, -1, -1):
        word = row[w]
        if word != NONE:
            top = 0
            while word != ONE:
                word >>= ONE
                top += 1
            return 64 * w + top
    return -1


@kernel
def first_independent(rows, reduced, by_top, chosen):
    """List the indices of the rows that are not sums of earlier ones; return their number.

    ``reduced`` and ``by_top`` are work arrays: as many rows as ``chosen``, and -1 for each column.
    """
    count = 0
    for j in range(rows.shape[0]):
        if count == chosen.shape[0]:
            break
        row = reduced[count]
        for w in range(rows.shape[1]):
            row[w] = rows[j, w]
        top = _top_bit(row)
        while top >= 0 and by_top[top] >= 0:
            earlier = reduced[by_top[top]]
            for w in range(rows.shape[1]):
                row[w] ^= earlier[w]
            top = _top_bit(row)
        if top >= 0:
            by_top[top] = count
            chosen[count] = j
            count += 1
    return count


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
            heaviest = max(heaviest, weights[64 * (w - n_words) + lowest_bit(word)])
            word &= word - ONE
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
    share = FIRST_WORDS / n_words
    spread = np.sqrt(share * (1 - share) * max(0, limit))
    limits = int(np.ceil(share * limit + _DEVIATIONS * spread)), limit
    zero, pair = work[0], work[1]
    zero[:] = NONE
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
    for g in range(table.shape[0]):
        for w in range(rows.shape[1]):
            table[g, 0, w] = NONE
        for value in range(1, 256):
            i = 8 * g + lowest_bit(np.uint64(value))
            rest = table[g, value & (value - 1)]
            for w in range(rows.shape[1]):
                table[g, value, w] = rest[w] ^ (rows[i, w] if i < n_rows else NONE)


@inline
def _pivot_byte(targets, j, draw, g, rank):
    """Return the bits of row j in the pivot columns from 8 g on, at most eight, as an integer."""
    value = 0
    for b in range(min(8, rank - 8 * g)):
        value |= np.intp(_bit(targets, j, draw.pivots[8 * g + b])) << b
    return value


@kernel
def clear_pivots(targets, draw, out):
    """out[j] = row j plus the reduced atoms that make its bits in the pivot columns zero."""
    rank = draw.pivots.shape[0]
    for j in range(targets.shape[0]):
        for w in range(targets.shape[1]):
            out[j, w] = targets[j, w]
        for g in range(draw.products.shape[0]):
            value = _pivot_byte(targets, j, draw, g, rank)
            for w in range(targets.shape[1]):
                out[j, w] ^= draw.products[g, value, w]


# Rows of the work arrays of `code_from_columns`.
_BASE, _TRIAL, _BEST = 0, 1, 2


@inline
def _code_exactly(targets, j, draw, candidates):
    """Code row j from the columns of a draw as if it had no errors in them."""
    errors, code = candidates.errors[_BASE], candidates.codes[_BASE]
    for w in range(errors.shape[0]):
        errors[w] = targets[j, w]
    for c in range(code.shape[0]):
        code[c] = NONE
    rank = draw.pivots.shape[0]
    for g in range(draw.products.shape[0]):
        value = _pivot_byte(targets, j, draw, g, rank)
        for w in range(errors.shape[0]):
            errors[w] ^= draw.products[g, value, w]
        for c in range(code.shape[0]):
            code[c] ^= draw.codes[g, value, c]


@inline
def _has_few_errors(rows, j, draw, i, most_errors, candidates):
    """Whether the code for an error in pivot column i, or none for i = -1, leaves row j at most this many errors."""
    n_errors = 0
    for w in range(draw.reduced.shape[1]):
        errors = candidates.errors[_BASE, w] ^ (draw.reduced[i, w] if i >= 0 else NONE)
        n_errors += np.intp(popcount(errors & ~unknown_word(rows, j, w)))
        if n_errors > most_errors:
            return False
    return True


@inline
def _try_candidate(rows, j, draw, i, cost, rule, candidates):
    """Try the code for an error in pivot column i, or none for i = -1; keep it and return its cost if that is lower."""
    errors, codes = candidates.errors, candidates.codes
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
    for w in range(errors.shape[1]):
        errors[_BEST, w] = errors[_TRIAL, w]
    for c in range(codes.shape[1]):
        codes[_BEST, c] = codes[_TRIAL, c]
    return new_cost


@kernel
def code_from_columns(rows, atoms, targets, rule, draw, slack, start, stop, candidates):
    """Code the rows start..stop from the columns of a draw, and keep a code that costs less than the current one.

    A code follows from the bits of a row in these columns, if there are no errors in them, or one. Codes with over
    ``slack`` more errors than the current one are passed over. ``targets`` are the rows less the bias.
    """
    for j in range(start, stop):
        before = row_price(rows.codes, rows.errors, j, rule.prices)
        if before == 0:
            continue
        most_errors = weight(rows.errors, j) + slack
        cost = before
        _code_exactly(targets, j, draw, candidates)
        for i in range(-1, draw.pivots.shape[0]):
            if _has_few_errors(rows, j, draw, i, most_errors, candidates):
                cost = _try_candidate(rows, j, draw, i, cost, rule, candidates)
        if cost < before:
            set_row(rows, j, atoms.words, candidates.codes[_BEST], candidates.errors[_BEST], None)
