"""All atoms from one pass of counts: which bits to flip so that the wrong bits cannot rise, and the rows after that.

Flipping bit i of atom k alone takes away exactly ``2 * wrong[k, i] - free[k, i]`` wrong bits. Flipping several in one
column takes away at least the sum of those less ``factor`` times the rows that two of them share, for every pair
(factor 2 under XOR, 1 under OR).
"""

from __future__ import annotations

import numpy as np

from ..jit import kernel, lowest_bit
from .words import NONE, ONE, copy_row, cover, differing, list_ones


@kernel
def count_pairs(codes, start, stop, listed, pairs):
    """pairs[k, l] += rows among start..stop that use both atoms, for k >= l."""
    for j in range(start, stop):
        used = list_ones(codes, j, 0, codes.shape[1], listed)
        for a in range(used):
            for b in range(a + 1):
                pairs[listed[a], listed[b]] += 1


@kernel
def list_candidates(free, wrong, atoms, columns, who, helps):
    """List the flips that help, or do no harm and clear a bit: column, atom and wrong bits taken away.

    Returns how many there are, also when there is no room for so many.
    """
    count = 0
    for k in range(free.shape[0]):
        for i in range(free.shape[1]):
            gain = 2 * wrong[k, i] - free[k, i]
            if gain < 0 or free[k, i] == 0:
                continue
            if gain == 0 and (atoms[k, i >> 6] >> np.uint64(i & 63)) & ONE == NONE:
                continue
            if count < columns.shape[0]:
                columns[count] = i
                who[count] = k
                helps[count] = gain
            count += 1
    return count


@kernel
def admit_flips(columns, who, helps, pairs, factor, atoms, admitted, flips):
    """Of the listed flips, in order and column by column, set those in ``flips`` that surely help; returns how many.

    ``admitted`` is room for as many numbers as there are atoms.
    """
    flipped = 0
    in_column = 0
    for c in range(columns.shape[0]):
        i, k = columns[c], who[c]
        if c == 0 or i != columns[c - 1]:
            in_column = 0
        place, bit = i >> 6, ONE << np.uint64(i & 63)
        surely = np.int64(helps[c])
        for a in range(in_column):
            surely -= factor * np.int64(pairs[max(k, admitted[a]), min(k, admitted[a])])
        if surely > 0 or (surely == 0 and atoms[k, place] & bit != NONE):
            admitted[in_column] = k
            in_column += 1
            flips[k, place] |= bit
            flipped += 1
    return flipped


@kernel
def follow_flips(rows, atoms, flips, flipping, covers, start, stop, before):
    """Bring the rows among start..stop up to date after these bits of the atoms were flipped.

    ``flipping`` has a one for each atom with a flip; ``before`` is room for a row. Rows that use one become stale.
    Returns the errors changed.
    """
    changed = 0
    for j in range(start, stop):
        touched = NONE
        for c in range(rows.codes.shape[1]):
            touched |= rows.codes[j, c] & flipping[c]
        if touched == NONE:
            continue
        rows.stale[j] = 1
        copy_row(rows.errors, j, before)
        if covers:
            for w in range(flips.shape[1]):
                rows.errors[j, w] ^= rows.covered[j, w]
            cover(rows, j, atoms)
            for w in range(flips.shape[1]):
                rows.errors[j, w] ^= rows.covered[j, w]
        else:
            for c in range(rows.codes.shape[1]):
                word = rows.codes[j, c] & flipping[c]
                while word != NONE:
                    k = 64 * c + lowest_bit(word)
                    word &= word - ONE
                    for w in range(flips.shape[1]):
                        rows.errors[j, w] ^= flips[k, w]
        changed += differing(rows.errors, j, before)
    return changed
