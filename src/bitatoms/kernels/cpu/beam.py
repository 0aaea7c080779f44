"""Beam coding of rows under XOR: the best of many short ways to toggle atoms, where one toggle at a time gets stuck.

A *way* is a set of atoms put together one by one, from none. Of all ways one atom longer the best few go on; of ways
that leave the same errors only the best does. The best way ever met is taken where it costs less than the code that the
row has.
"""

from __future__ import annotations

import numpy as np

from ..jit import kernel, piece
from .coding import drop_all, set_row, start_gains
from .simd import add_prices
from .words import NONE, ONE, copy_row, differing, price, weight

_TURN = 23  # a row's fingerprint: its words, each turned by so many bits more than the one before, added up


@piece
def _fingerprint(words, j):
    """A number that nearly always differs where rows differ; that of a sum of rows is the sum of theirs."""
    total = NONE
    for w in range(words.shape[1]):
        turn = np.uint64((_TURN * w) & 63)
        word = words[j, w]
        total ^= (word << turn) | ((word >> ONE) >> (np.uint64(63) - turn))
    return total


@kernel
def fingerprint_atoms(words, out):
    """out[k] = the fingerprint of atom k."""
    for k in range(words.shape[0]):
        out[k] = _fingerprint(words, k)


@piece
def _shift(ways, first, last, step):
    """Move the chosen ways first..last by one place, up or down."""
    for i in range(first, last) if step < 0 else range(last - 1, first - 1, -1):
        ways.score[i + step] = ways.score[i]
        ways.parent[i + step] = ways.parent[i]
        ways.atom[i + step] = ways.atom[i]
        ways.mark[i + step] = ways.mark[i]


@piece
def _choose(ways, count, score, parent, atom, fingerprint):
    """Put a longer way among the best so far; returns how many there are now."""
    for i in range(count):
        if ways.mark[i] == fingerprint:
            if ways.score[i] >= score:
                return count
            _shift(ways, i + 1, count, -1)  # the same errors for less: the other way goes
            count -= 1
            break
    at = count
    while at > 0 and ways.score[at - 1] < score:
        at -= 1
    width = ways.score.shape[0] - 1
    _shift(ways, at, min(count, width - 1), 1)
    ways.score[at] = score
    ways.parent[at] = parent
    ways.atom[at] = atom
    ways.mark[at] = fingerprint
    return min(count + 1, width)


@piece
def _choose_all(ways, side, count, prints, n_atoms, max_atoms):
    """The best ways one toggle longer than these; returns how many there are."""
    chosen = 0
    width = ways.score.shape[0] - 1
    for s in range(count):
        value = ways.value[side, s]
        gains = ways.gains[side, s]
        if weight(ways.codes[side], s) >= max_atoms:
            continue
        for k in range(n_atoms):
            if chosen == width and value + gains[k] <= ways.score[width - 1]:
                continue
            place, bit = k >> 6, ONE << np.uint64(k & 63)
            if ways.codes[side, s, place] & bit != NONE:
                continue
            score = value + np.int64(gains[k])
            chosen = _choose(ways, chosen, score, s, k, ways.prints[side, s] ^ prints[k])
    return chosen


@piece
def _take(ways, side, i, atoms, scratch):
    """Make the chosen way i of what its parent is; the other side holds the parents."""
    other = 1 - side
    s, k = ways.parent[i], ways.atom[i]
    place, bit = k >> 6, ONE << np.uint64(k & 63)
    for c in range(ways.codes.shape[2]):
        ways.codes[side, i, c] = ways.codes[other, s, c]
    ways.codes[side, i, place] |= bit
    for w in range(ways.errors.shape[2]):
        wrong = ways.errors[other, s, w] ^ atoms.words[k, w]
        ways.errors[side, i, w] = wrong
        scratch.bits[1, w] = wrong & atoms.words[k, w]
    gains = ways.gains[side, i]
    for a in range(gains.shape[0]):
        gains[a] = ways.gains[other, s, a] - atoms.overlaps[k, a]
    add_prices(scratch.bits, 1, 4, atoms.slices, scratch.listed, gains)
    ways.value[side, i] = ways.score[i]
    ways.prints[side, i] = ways.mark[i]


@piece
def _search(rows, j, atoms, rule, prints, patience, ways, scratch):
    """The best way for row j, which uses no atom; returns what it gains, and leaves where it leads in the scratch."""
    start_gains(rows, j, atoms, rule, scratch)
    for a in range(scratch.gains.shape[0]):
        ways.gains[0, 0, a] = scratch.gains[a]
    for c in range(rows.codes.shape[1]):
        ways.codes[0, 0, c] = NONE
    for w in range(rows.errors.shape[1]):
        ways.errors[0, 0, w] = rows.errors[j, w]
    copy_row(rows.codes, j, scratch.code)
    copy_row(rows.errors, j, scratch.errors)
    ways.value[0, 0] = 0
    ways.prints[0, 0] = _fingerprint(rows.errors, j)
    best, side, count, idle = np.int64(0), 0, 1, 0
    while idle < patience:
        count = _choose_all(ways, side, count, prints, atoms.words.shape[0], rule.max_atoms)
        if count == 0:
            break
        side = 1 - side
        for i in range(count):
            _take(ways, side, i, atoms, scratch)
        idle += 1
        if ways.value[side, 0] > best:
            best = ways.value[side, 0]
            idle = 0
            copy_row(ways.codes[side], 0, scratch.code)
            copy_row(ways.errors[side], 0, scratch.errors)
    return best


@kernel
def price_rows(rows, prices, out):
    """out[j] = what the wrong bits of row j and the atoms it uses cost together."""
    for j in range(out.shape[0]):
        out[j] = price(rows.codes, rows.errors, j, prices)


@kernel
def beam_rows(rows, atoms, rule, prints, patience, start, stop, ways, scratch, kept):
    """Code the stale rows among start..stop by beam, and keep that where it costs less than the code they have.

    ``prints`` are the fingerprints of the atoms; after ``patience`` levels without a better way the row is done.
    ``kept`` is room for a row of codes and one of errors. Returns the
    bits of codes and errors changed.
    """
    codes_changed = 0
    errors_changed = 0
    for j in range(start, stop):
        if rows.stale[j] == 0 or weight(rows.errors, j) <= rule.residual_limit:
            continue
        before = price(rows.codes, rows.errors, j, rule.prices)
        copy_row(rows.codes, j, kept.code)
        copy_row(rows.errors, j, kept.errors)
        drop_all(rows, j, atoms, rule.covers)
        without = price(rows.codes, rows.errors, j, rule.prices)
        if without - _search(rows, j, atoms, rule, prints, patience, ways, scratch) >= before:
            set_row(rows, j, atoms, kept.code, kept.errors, rule.covers)
        else:
            set_row(rows, j, atoms, scratch.code, scratch.errors, rule.covers)
            codes_changed += differing(rows.codes, j, kept.code)
            errors_changed += differing(rows.errors, j, kept.errors)
    return codes_changed, errors_changed
