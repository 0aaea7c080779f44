"""Exhaustive steps for few atoms: the best of all codes of a row, the best of all columns of the atoms.

A code of p atoms is an integer below 2**p with atom 0 as its lowest bit; so is a column of the atoms. The product of a
code is combined from two short tables, one for its low and one for its high bits.
"""

from __future__ import annotations

import numpy as np

from ..jit import inline, kernel, lowest_bit, popcount
from ..views import view
from .words import NONE, ONE, cover, fill, mark, toggle_users, unknown_word, weight


@inline
def _combine(one, other, covers):
    """Combine two products in the algebra."""
    return one | other if covers else one ^ other


@kernel
def list_products(atoms, first, covers, products):
    """products[c] = the product of code c and the atoms from ``first`` on."""
    atoms, products = view((atoms, products))
    fill(products[0], NONE)
    for code in range(1, products.shape[0]):
        atom = atoms[first + lowest_bit(np.uint64(code))]
        rest = products[code & (code - 1)]
        for w in range(products.shape[1]):
            products[code, w] = _combine(rest[w], atom[w], covers)


@inline
def _distances(row, known, high, low, covers, out):
    """out[c] = errors of a row coded by ``high`` combined with code c of the low atoms (low: words x codes)."""
    fill(out, 0)
    for w in range(row.shape[0]):
        base = row[w]
        fixed = high[w]
        counted = known[w]
        if covers:
            for c in range(out.shape[0]):
                out[c] += np.int32(popcount((base ^ (fixed | low[w, c])) & counted))
        else:
            base ^= fixed
            for c in range(out.shape[0]):
                out[c] += np.int32(popcount((base ^ low[w, c]) & counted))


@inline
def _smallest(values):
    """Return the smallest value."""
    best = values[0]
    for i in range(1, values.shape[0]):
        if values[i] < best:
            best = values[i]
    return best


@inline
def _least(row, known, high, within, covers):
    """Return the number of errors that no code of the low atoms can remove; ``within`` is their union."""
    wrong = 0
    for w in range(row.shape[0]):
        if covers:
            wrong += np.intp(popcount(((high[w] & ~row[w]) | (row[w] & ~high[w] & ~within[w])) & known[w]))
        else:
            wrong += np.intp(popcount((row[w] ^ high[w]) & ~within[w] & known[w]))
    return wrong


@inline
def _best_code(row, known, code, wrong, low, high, within, rule, distances):
    """Return the code with the fewest errors: the given one unless another is strictly better, then the lowest."""
    low_bits = lowest_bit(np.uint64(distances.shape[0]))
    for h in range(high.shape[0]):
        if _least(row, known, high[h], within, rule.covers) >= wrong:
            continue
        _distances(row, known, high[h], low, rule.covers, distances)
        if _smallest(distances) >= wrong:
            continue
        for c in range(distances.shape[0]):
            if distances[c] < wrong:
                candidate = np.uint64((h << low_bits) | c)
                if np.intp(popcount(candidate)) <= rule.max_atoms:
                    code = candidate
                    wrong = np.intp(distances[c])
    return code


@kernel
def code_rows_exactly(rows, atoms, low, high, rule, start, stop, distances, scratch):
    """Set each stale row of start..stop to the best of all codes; return the numbers of changed code and error bits.

    ``low`` (words, codes) and ``high`` (codes, words) are the products of the low and the high atoms; ``distances`` is
    a work array with one entry per low code. Atoms of rows that changed become stale.
    """
    rows, atoms, low, high, rule, distances, scratch = view((rows, atoms, low, high, rule, distances, scratch))
    words = rows.errors.shape[1]
    row, within = scratch.bits[0], scratch.bits[1]
    before, known = scratch.errors[0], scratch.errors[1]
    for w in range(words):
        within[w] = NONE
        for c in range(low.shape[1]):
            within[w] |= low[w, c]
    low_bits = lowest_bit(np.uint64(low.shape[1]))
    codes_changed, errors_changed = 0, 0
    scratch.touched[0] = NONE
    for j in range(start, stop):
        if rows.stale[j] == 0:
            continue
        rows.stale[j] = 0
        wrong = weight(rows.errors, j)
        if wrong <= rule.residual_limit:
            continue
        old = rows.codes[j, 0]
        o_low, o_high = np.intp(old) & (low.shape[1] - 1), np.intp(old) >> low_bits
        for w in range(words):
            before[w] = rows.errors[j, w]
            row[w] = before[w] ^ _combine(low[w, o_low], high[o_high, w], rule.covers)
            known[w] = ~unknown_word(rows, j, w)
        new = _best_code(row, known, old, wrong, low, high, within, rule, distances)
        if new == old:
            continue
        n_low, n_high = np.intp(new) & (low.shape[1] - 1), np.intp(new) >> low_bits
        for w in range(words):
            rows.errors[j, w] = (row[w] ^ _combine(low[w, n_low], high[n_high, w], rule.covers)) & known[w]
            errors_changed += np.intp(popcount(before[w] ^ rows.errors[j, w]))
        rows.codes[j, 0] = new
        if rule.covers:
            cover(rows, j, atoms.words)
        toggle_users(rows, j, old ^ new, 0)
        codes_changed += np.intp(popcount(old ^ new))
        scratch.touched[0] |= old | new
    mark(scratch.touched, atoms.stale)
    return codes_changed, errors_changed


@inline
def _transform(scores, covers):
    """In place: the Walsh-Hadamard transform for XOR, the sum over all subsets of a code for OR."""
    half = 1
    while half < scores.shape[0]:
        for first in range(0, scores.shape[0], 2 * half):
            for c in range(first, first + half):
                a, b = scores[c], scores[c + half]
                if covers:
                    scores[c + half] = a + b
                else:
                    scores[c] = a + b
                    scores[c + half] = a - b
        half *= 2


@kernel
def best_columns(columns, unknown, codes, atoms, covers, start, stop, scores):
    """Set each feature of start..stop to the best of all columns of the atoms; return the number of changed bits.

    ``columns`` is the transposed data, and ``unknown`` its unknown cells; no rows if all cells are known. Over the rows
    with code c, scores[c] sums +1 where the bit is 0, -1 where it is 1, and 0 where it is unknown. The transform gives,
    for each column, agreements minus disagreements (XOR), or the same over the codes that the column does not cover,
    indexed by its complement (OR).
    """
    columns, unknown, codes, atoms, scores = view((columns, unknown, codes, atoms, scores))
    n_atoms = atoms.shape[0]
    full = (1 << n_atoms) - 1
    changed = 0
    for i in range(start, stop):
        fill(scores, 0)
        for j in range(codes.shape[0]):
            one = (columns[i, j >> 6] >> np.uint64(j & 63)) & ONE
            if unknown.shape[0] > 0 and (unknown[i, j >> 6] >> np.uint64(j & 63)) & ONE != NONE:
                continue
            scores[np.intp(codes[j, 0])] += 1 - 2 * np.int32(one)
        _transform(scores, covers)
        w, shift = i >> 6, np.uint64(i & 63)
        old = 0
        for k in range(n_atoms):
            old |= np.intp((atoms[k, w] >> shift) & ONE) << k
        complement = full if covers else 0
        new = old
        best = scores[old ^ complement]
        for column in range(scores.shape[0]):
            if scores[column ^ complement] > best:
                best = scores[column ^ complement]
                new = column
        for k in range(n_atoms):
            if ((old ^ new) >> k) & 1:
                atoms[k, w] ^= ONE << shift
                changed += 1
    return changed
