"""Joint update of all atoms from the counts of one pass: which bits to flip so that the errors cannot increase.

Flipping bit i of atom k alone removes exactly ``2 * wrong[k, i] - free[k, i]`` errors. Flipping several bits of a
column removes at least the sum of these minus ``factor`` times the number of rows that two of the atoms share, for
every pair (factor 2 under XOR, 1 under OR).
"""

from __future__ import annotations

import numpy as np

from ..jit import kernel, lowest_bit
from .words import NONE, ONE, copy_row, cover, distance, list_ones, unknown_word


@kernel
def count_pairs(codes, start, stop, listed, pairs):
    """pairs[k, l] += number of rows of start..stop that use both atoms, for k >= l."""
    for j in range(start, stop):
        used = list_ones(codes, j, 0, codes.shape[1], listed)
        for a in range(used):
            for b in range(a + 1):
                pairs[listed[a], listed[b]] += 1


@kernel
def list_candidates(free, wrong, atoms, columns, flipped_atoms, gains):
    """List the flips that gain, or that gain nothing and clear a bit: column, atom and number of errors removed.

    Return their number, even if it exceeds the size of the arrays.
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
                flipped_atoms[count] = k
                gains[count] = gain
            count += 1
    return count


@kernel
def admit_flips(columns, flipped_atoms, gains, pairs, factor, atoms, admitted, flips):
    """Set in ``flips`` those of the listed flips that certainly gain, in order within each column; return their number.

    ``admitted`` is a work array with one entry per atom.
    """
    flipped = 0
    in_column = 0
    for c in range(columns.shape[0]):
        i, k = columns[c], flipped_atoms[c]
        if c == 0 or i != columns[c - 1]:
            in_column = 0
        w, bit = i >> 6, ONE << np.uint64(i & 63)
        bound = np.int64(gains[c])
        for a in range(in_column):
            bound -= factor * np.int64(pairs[max(k, admitted[a]), min(k, admitted[a])])
        if bound > 0 or (bound == 0 and atoms[k, w] & bit != NONE):
            admitted[in_column] = k
            in_column += 1
            flips[k, w] |= bit
            flipped += 1
    return flipped


@kernel
def follow_flips(rows, atoms, flips, flipping, covers, start, stop, before):
    """Update rows start..stop after these bits of the atoms were flipped; return the number of changed error bits.

    ``flipping`` has a one for each atom with a flip; ``before`` is a work array for a row. Rows that use such an atom
    become stale.
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
                        rows.errors[j, w] ^= flips[k, w] & ~unknown_word(rows, j, w)
        changed += distance(rows.errors, j, before)
    return changed
