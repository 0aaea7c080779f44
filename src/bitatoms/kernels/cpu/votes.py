"""Atoms by vote of the rows that use them, and the rows of one atom anew: MOB, Proximus and K-PROX.

Votes are counted for 64 bits at a time: counter i of a word is spread over bit i of several *planes*, plane b
holding the bits of weight 2**b, and eight rows are added at once by carry-save adders.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..jit import kernel, piece, popcount
from .words import NONE, ONE, copy_row, cover, differing, list_ones, mark, toggle_gain, weight

PLANES = 48  # enough to count any number of rows
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


class _Scratch(NamedTuple):
    """Room for the vote on one atom."""

    wrong: Any  # (planes, words): counters of the users that have each bit wrong
    free: Any  # (planes, words): counters of those that have it free; used under OR
    flips: Any  # (words,): the bits that the vote flips
    who: Any  # (n,): the users
    group: Any  # (8, words): the errors of eight users
    open_group: Any  # (8, words): and the bits that they have free
    eight: Any  # (8,): the rows of a group, 0 to 7
    before: Any  # (words,): what a row had
    touched: Any  # (code words,): the atoms of the rows that changed


@kernel
def _new_scratch(rows, n_rows):
    """Room for votes of up to so many rows."""
    words = rows.errors.shape[1]
    return _Scratch(
        np.empty((PLANES, words), np.uint64),
        np.empty((PLANES, words), np.uint64),
        np.empty(words, np.uint64),
        np.empty(n_rows, np.intp),
        np.empty((8, words), np.uint64),
        np.empty((8, words), np.uint64),
        np.arange(8),
        np.empty(words, np.uint64),
        np.empty(rows.codes.shape[1], np.uint64),
    )


@piece
def _add3(a, b, c):
    """Sum and carry of three bits, 64 times."""
    half = a ^ b
    return half ^ c, (a & b) | (half & c)


@piece
def _add_eight(words, who, i, planes):
    """Add the eight rows listed from place i on to the counters."""
    a, b, c, d = who[i], who[i + 1], who[i + 2], who[i + 3]
    e, f, g, h = who[i + 4], who[i + 5], who[i + 6], who[i + 7]
    for w in range(words.shape[1]):
        ones, two_a = _add3(planes[0, w], words[a, w], words[b, w])
        ones, two_b = _add3(ones, words[c, w], words[d, w])
        twos, four_a = _add3(planes[1, w], two_a, two_b)
        ones, two_a = _add3(ones, words[e, w], words[f, w])
        ones, two_b = _add3(ones, words[g, w], words[h, w])
        twos, four_b = _add3(twos, two_a, two_b)
        fours, carry = _add3(planes[2, w], four_a, four_b)
        planes[0, w] = ones
        planes[1, w] = twos
        planes[2, w] = fours
        plane = 3
        while carry != NONE:
            planes[plane, w], carry = planes[plane, w] ^ carry, planes[plane, w] & carry
            plane += 1


@kernel
def add_planes(planes, more):
    """Add other counters to these."""
    for w in range(planes.shape[1]):
        carry = NONE
        for b in range(planes.shape[0]):
            planes[b, w], carry = _add3(planes[b, w], more[b, w], carry)


@piece
def _read_planes(planes, n_planes, counts, k):
    """counts[k, i] = what counter i holds."""
    for i in range(counts.shape[1]):
        total = 0
        for b in range(n_planes):
            total |= np.int64((planes[b, i >> 6] >> np.uint64(i & 63)) & ONE) << b
        counts[k, i] = total


@piece
def _clear_planes(n_users, planes):
    """Empty as many planes as the votes of so many users can fill; returns how many those are."""
    n_planes = 3
    while n_users >> (n_planes - 1):
        n_planes += 1
    for b in range(n_planes):
        for w in range(planes.shape[1]):
            planes[b, w] = NONE
    return n_planes


@piece
def _vote(rows, atoms, k, n_users, covers, wrong, free, scratch):
    """Count, for each bit, the listed users that have it free and those of them that have it wrong.

    A bit is free in a row when no other used atom decides it: always under XOR, so that ``free`` stays untouched.
    """
    group, open_group = scratch.group, scratch.open_group
    for first in range(0, n_users, 8):
        if not covers and first + 8 <= n_users:
            _add_eight(rows.errors, scratch.who, first, wrong)
            continue
        for i in range(8):
            j = scratch.who[min(first + i, n_users - 1)]
            mask = _ALL if first + i < n_users else NONE
            for w in range(group.shape[1]):
                open_bits = mask
                if covers:
                    atom = atoms.words[k, w]
                    alone = rows.covered[j, w] & ~rows.twice[j, w]
                    open_bits &= (atom & alone) | ~(atom | rows.covered[j, w])
                open_group[i, w] = open_bits
                group[i, w] = rows.errors[j, w] & open_bits
        _add_eight(group, scratch.eight, 0, wrong)
        if covers:
            _add_eight(open_group, scratch.eight, 0, free)


@piece
def _majority(wrong, free, planes, n_users, covers, atoms, k, flips):
    """Bits to flip: wrong in more than half of the users that have them free, or in just half and now one."""
    flipped = 0
    for w in range(flips.shape[0]):
        more, equal, some = NONE, _ALL, NONE
        for b in range(planes - 1, -1, -1):  # compare twice the wrong with the free, highest bit first
            if covers:
                half = free[b, w]
            else:
                half = _ALL if (n_users >> b) & 1 else NONE
            some |= half
            twice = wrong[b - 1, w] if b > 0 else NONE
            more |= equal & twice & ~half
            equal &= ~(twice ^ half)
        flips[w] = more | (equal & some & atoms[k, w])
        flipped += np.intp(popcount(flips[w]))
    return flipped


@piece
def _follow_atoms(rows, j, atoms, scratch):
    """Under OR, bring row j up to date with its code and the atoms; returns the errors changed."""
    copy_row(rows.covered, j, scratch.before)
    cover(rows, j, atoms.words)
    for w in range(scratch.before.shape[0]):
        rows.errors[j, w] ^= scratch.before[w] ^ rows.covered[j, w]
    return differing(rows.covered, j, scratch.before)


@piece
def _flip(rows, atoms, k, flips, n_users, covers, scratch):
    """Bring the listed users of atom k up to date after its bits were flipped; returns the errors changed.

    The rows become stale, and so do the other atoms that they use.
    """
    touched = scratch.touched
    size = 0
    for w in range(flips.shape[0]):
        size += np.intp(popcount(flips[w]))
    for c in range(touched.shape[0]):
        touched[c] = NONE
    changed = 0
    for i in range(n_users):
        j = scratch.who[i]
        rows.stale[j] = 1
        for c in range(touched.shape[0]):
            touched[c] |= rows.codes[j, c]
        if covers:
            changed += _follow_atoms(rows, j, atoms, scratch)
        else:
            for w in range(flips.shape[0]):
                rows.errors[j, w] ^= flips[w]
            changed += size
    touched[k >> 6] &= ~(ONE << np.uint64(k & 63))
    mark(touched, atoms.stale)
    return changed


@kernel
def tally_users(rows, atoms, k, covers, start, stop, wrong, free):
    """Add the votes of the users of atom k among start..stop to these counters."""
    scratch = _new_scratch(rows, stop - start)
    n_users = list_ones(rows.users, k, start >> 6, (stop + 63) >> 6, scratch.who)
    _vote(rows, atoms, k, n_users, covers, wrong, free, scratch)


@kernel
def tally_atoms(rows, atoms, first, last, covers, n_features, start, stop):
    """free[k, i], wrong[k, i]: over the users of atom first + k among start..stop, see _vote."""
    scratch = _new_scratch(rows, stop - start)
    free, wrong = np.empty((last - first, n_features), np.int64), np.empty((last - first, n_features), np.int64)
    for k in range(first, last):
        n_users = list_ones(rows.users, k, start >> 6, (stop + 63) >> 6, scratch.who)
        _clear_planes(n_users, scratch.free)
        planes = _clear_planes(n_users, scratch.wrong)
        _vote(rows, atoms, k, n_users, covers, scratch.wrong, scratch.free, scratch)
        _read_planes(scratch.wrong, planes, wrong, k - first)
        if covers:
            _read_planes(scratch.free, planes, free, k - first)
        else:
            free[k - first] = n_users
    return free, wrong


@kernel
def majority_flips(wrong, free, n_users, covers, atoms, k, flips):
    """flips = the bits of atom k that so many users outvote; returns how many."""
    return _majority(wrong, free, wrong.shape[0], n_users, covers, atoms, k, flips)


@kernel
def flip_users(rows, atoms, k, flips, covers, start, stop):
    """After these bits of atom k were flipped, bring its users among start..stop up to date."""
    scratch = _new_scratch(rows, stop - start)
    n_users = list_ones(rows.users, k, start >> 6, (stop + 63) >> 6, scratch.who)
    return _flip(rows, atoms, k, flips, n_users, covers, scratch)


@piece
def _update_atom(rows, atoms, k, covers, scratch):
    """Atom k by vote of its users; returns its bits flipped, the errors changed and its users."""
    n_users = list_ones(rows.users, k, 0, rows.users.shape[1], scratch.who)
    if n_users == 0:
        return 0, 0, 0
    wrong, free, flips = scratch.wrong, scratch.free, scratch.flips
    _clear_planes(n_users, free)
    planes = _clear_planes(n_users, wrong)
    _vote(rows, atoms, k, n_users, covers, wrong, free, scratch)
    flipped = _majority(wrong, free, planes, n_users, covers, atoms.words, k, flips)
    if flipped == 0:
        return 0, 0, n_users
    for w in range(flips.shape[0]):
        atoms.words[k, w] ^= flips[w]
    return flipped, _flip(rows, atoms, k, flips, n_users, covers, scratch), n_users


@kernel
def update_atoms(rows, atoms, covers, changed):
    """MOB: the stale atoms one at a time in index order, errors refreshed; marks those that changed."""
    scratch = _new_scratch(rows, rows.errors.shape[0])
    atoms_changed = 0
    errors_changed = 0
    for k in range(atoms.words.shape[0]):
        if atoms.stale[k] == 0:
            continue
        atoms.stale[k] = 0
        flipped, errors, _ = _update_atom(rows, atoms, k, covers, scratch)
        if flipped > 0:
            changed[k] = 1
        atoms_changed += flipped
        errors_changed += errors
    return atoms_changed, errors_changed


@piece
def _refit(rows, atoms, k, rule, settled, start, stop, scratch):
    """See refit_users; ``settled`` says that a row which is not stale and does not use the atom need not be asked."""
    place, bit = k >> 6, ONE << np.uint64(k & 63)
    touched = scratch.touched
    for c in range(touched.shape[0]):
        touched[c] = NONE
    size = weight(atoms.words, k)
    codes_changed = 0
    errors_changed = 0
    for j in range(start, stop):
        uses = rows.codes[j, place] & bit != NONE
        if settled and not uses and rows.stale[j] == 0:
            continue
        gain = toggle_gain(rows, j, atoms, k, uses, rule.covers, size)
        if gain < 0 or (not uses and (gain == 0 or weight(rows.codes, j) >= rule.max_atoms)):
            continue
        rows.codes[j, place] ^= bit
        rows.users[k, j >> 6] ^= ONE << np.uint64(j & 63)
        rows.stale[j] = 1
        codes_changed += 1
        for c in range(touched.shape[0]):
            touched[c] |= rows.codes[j, c]
        if rule.covers:
            errors_changed += _follow_atoms(rows, j, atoms, scratch)
        else:
            for w in range(atoms.words.shape[1]):
                rows.errors[j, w] ^= atoms.words[k, w]
            errors_changed += size
    if codes_changed > 0:
        touched[place] |= bit
        mark(touched, atoms.stale)
    return codes_changed, errors_changed


@kernel
def refit_users(rows, atoms, k, rule, settled, start, stop):
    """The rows of atom k anew among start..stop: those in which more than half of its free bits are wrong without it.

    Returns the codes and the errors changed. The rows changed become stale, and so do all atoms they use. Where
    ``settled``, the atom is as it was when the rows were coded: a row that has not changed since does not want it.
    """
    return _refit(rows, atoms, k, rule, settled, start, stop, _new_scratch(rows, 0))


@kernel
def fit_atoms(rows, atoms, rule, first, changed):
    """K-PROX: atoms and their rows together, one at a time in index order from ``first``; marks those that changed.

    The bits of an atom and its rows are chosen in turn until neither changes; an atom without rows stays.
    """
    n_rows = rows.errors.shape[0]
    scratch = _new_scratch(rows, n_rows)
    atoms_changed = 0
    codes_changed = 0
    errors_changed = 0
    for k in range(first, atoms.words.shape[0]):
        settled = rule.residual_limit == 0
        flipped, errors, n_users = _update_atom(rows, atoms, k, rule.covers, scratch)
        while n_users > 0:
            if flipped > 0:
                changed[k] = 1
            atoms_changed += flipped
            errors_changed += errors
            codes, errors = _refit(rows, atoms, k, rule, settled and changed[k] == 0, 0, n_rows, scratch)
            codes_changed += codes
            errors_changed += errors
            if codes == 0:
                break
            flipped, errors, n_users = _update_atom(rows, atoms, k, rule.covers, scratch)
            if flipped == 0:
                break
        atoms.stale[k] = 0
    return atoms_changed, codes_changed, errors_changed
