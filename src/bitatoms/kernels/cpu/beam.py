"""Beam coding of rows under XOR, where coding by single toggles gets stuck.

Starting with no atom, each level adds one atom to every partial code and keeps the best few; of partial codes with the
same errors only the best is kept. The best code found replaces the code of the row if it costs less. Fingerprints
include unknown cells, so that some partial codes with the same errors are both kept.
"""

from __future__ import annotations

import numpy as np

from ..jit import inline, kernel
from ..views import view
from .coding import drop_all, set_row
from .gains import start_gains, update_gains
from .words import NONE, ONE, copy_row, distance, fill, has_unknown, row_price, unknown_word, weight

_ROTATION = 23  # a fingerprint is the XOR of the words of a row, word w rotated by this many bits times w


@inline
def _fingerprint(words, j):
    """Return a hash of row j; the fingerprint of the XOR of two rows is the XOR of their fingerprints."""
    total = NONE
    for w in range(words.shape[1]):
        rotation = np.uint64((_ROTATION * w) & 63)
        word = words[j, w]
        total ^= (word << rotation) | ((word >> ONE) >> (np.uint64(63) - rotation))
    return total


@kernel
def fingerprint_atoms(words, out):
    """out[k] = the fingerprint of atom k."""
    words, out = view((words, out))
    for k in range(words.shape[0]):
        out[k] = _fingerprint(words, k)


@inline
def _shift(beam, first, last, step):
    """Move candidates first..last by one index, up or down."""
    for i in range(first, last) if step < 0 else range(last - 1, first - 1, -1):
        beam.score[i + step] = beam.score[i]
        beam.parent[i + step] = beam.parent[i]
        beam.atom[i + step] = beam.atom[i]
        beam.mark[i + step] = beam.mark[i]


@inline
def _insert(beam, count, score, parent, atom, fingerprint):
    """Insert a candidate into the sorted list of the best; return the number of candidates."""
    for i in range(count):
        if beam.mark[i] == fingerprint:
            if beam.score[i] >= score:
                return count
            _shift(beam, i + 1, count, -1)  # the same errors at a lower cost: replace it
            count -= 1
            break
    index = count
    while index > 0 and beam.score[index - 1] < score:
        index -= 1
    width = beam.score.shape[0] - 1
    _shift(beam, index, min(count, width - 1), 1)
    beam.score[index] = score
    beam.parent[index] = parent
    beam.atom[index] = atom
    beam.mark[index] = fingerprint
    return min(count + 1, width)


@inline
def _extend_all(beam, side, count, prints, n_atoms, max_atoms):
    """Collect the best candidates that add one atom to the current partial codes; return their number."""
    chosen = 0
    width = beam.score.shape[0] - 1
    for s in range(count):
        value = beam.value[side, s]
        gains = beam.gains[side, s]
        if weight(beam.codes[side], s) >= max_atoms:
            continue
        for k in range(n_atoms):
            if chosen == width and value + gains[k] <= beam.score[width - 1]:
                continue
            c, bit = k >> 6, ONE << np.uint64(k & 63)
            if beam.codes[side, s, c] & bit != NONE:
                continue
            score = value + np.int64(gains[k])
            chosen = _insert(beam, chosen, score, s, k, beam.prints[side, s] ^ prints[k])
    return chosen


@inline
def _apply(rows, j, beam, side, i, atoms, prices, scratch):
    """Compute partial code i of row j at the next level from its parent, which is on the other side."""
    other = 1 - side
    s, k = beam.parent[i], beam.atom[i]
    copy_row(beam.codes[other], s, beam.codes[side, i])
    beam.codes[side, i, k >> 6] |= ONE << np.uint64(k & 63)
    for w in range(beam.errors.shape[2]):
        scratch.bits[0, w] = atoms.words[k, w] & ~unknown_word(rows, j, w)
        beam.errors[side, i, w] = beam.errors[other, s, w] ^ scratch.bits[0, w]
    gains = beam.gains[side, i]
    copy_row(beam.gains[other], s, gains)
    update_gains(gains, 1, beam.errors[side], i, atoms, k, not has_unknown(rows), True, False, prices, scratch)
    beam.value[side, i] = beam.score[i]
    beam.prints[side, i] = beam.mark[i]


@inline
def _search(rows, j, atoms, rule, prints, patience, beam, scratch):
    """Find the best code for row j, which uses no atom; return its gain, and leave code and errors in the scratch."""
    start_gains(rows, j, atoms, rule, scratch)
    for a in range(scratch.gains.shape[0]):
        beam.gains[0, 0, a] = scratch.gains[a]
    fill(beam.codes[0, 0], NONE)
    copy_row(rows.errors, j, beam.errors[0, 0])
    copy_row(rows.codes, j, scratch.codes[0])
    copy_row(rows.errors, j, scratch.errors[0])
    beam.value[0, 0] = 0
    beam.prints[0, 0] = _fingerprint(rows.errors, j)
    best, side, count, idle = np.int64(0), 0, 1, 0
    while idle < patience:
        count = _extend_all(beam, side, count, prints, atoms.words.shape[0], rule.max_atoms)
        if count == 0:
            break
        side = 1 - side
        for i in range(count):
            _apply(rows, j, beam, side, i, atoms, rule.prices, scratch)
        idle += 1
        if beam.value[side, 0] > best:
            best = beam.value[side, 0]
            idle = 0
            copy_row(beam.codes[side], 0, scratch.codes[0])
            copy_row(beam.errors[side], 0, scratch.errors[0])
    return best


@kernel
def beam_rows(rows, atoms, rule, prints, patience, start, stop, beam, scratch):
    """Beam-code the stale rows of start..stop, and keep the new code where it costs less than the current one.

    ``prints`` are the fingerprints of the atoms. A row is done after ``patience`` levels without a better code. Return
    the numbers of changed code and error bits.
    """
    rows, atoms, rule, prints, beam, scratch = view((rows, atoms, rule, prints, beam, scratch))
    codes, errors = scratch.codes, scratch.errors  # row 0 is the code found, row 1 the one before
    codes_changed, errors_changed = 0, 0
    for j in range(start, stop):
        if rows.stale[j] == 0 or weight(rows.errors, j) <= rule.residual_limit:
            continue
        before = row_price(rows.codes, rows.errors, j, rule.prices)
        copy_row(rows.codes, j, codes[1])
        copy_row(rows.errors, j, errors[1])
        drop_all(rows, j, atoms.words, rule.covers)
        without = row_price(rows.codes, rows.errors, j, rule.prices)
        better = without - _search(rows, j, atoms, rule, prints, patience, beam, scratch) < before
        kept = 0 if better else 1
        set_row(rows, j, atoms.words, codes[kept], errors[kept], rule.covers)
        codes_changed += distance(rows.codes, j, codes[1])
        errors_changed += distance(rows.errors, j, errors[1])
    return codes_changed, errors_changed
