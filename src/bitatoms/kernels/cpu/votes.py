"""Atoms by vote of the rows that use them, and the rows of one atom anew: MOB, Proximus and K-PROX."""

from __future__ import annotations

import numpy as np

from ..jit import fetch_ahead, kernel, piece, popcount
from ..structs import CHUNK
from .counters import add3, add_eight, add_one, clear, read
from .words import ALL, NONE, ONE, copy_row, cover, differing, list_ones, mark, toggle_gain, weight

# What a sweep over atoms does to each.
VOTE = 0  # MOB: its bits by vote
FIT = 1  # K-PROX: its bits by vote, then its rows, in turn
GROW = 2  # Proximus: its rows, then its bits, in turn

_AHEAD = 32  # users whose rows are on their way into the cache while one is counted


@piece
def _add_users(words, who, i, planes):
    """Add the eight rows listed from place i on to the counters."""
    add_eight(words, who[i], who[i + 1], who[i + 2], who[i + 3], who[i + 4], who[i + 5], who[i + 6], who[i + 7], planes)


@piece
def _vote_listed(rows, atoms, k, n_users, covers, scratch):
    """Add the votes of the listed users to the counters."""
    who, group, open_group = scratch.who, scratch.group, scratch.open_group
    whole = n_users - n_users % 8
    if not covers:
        for first in range(0, whole, 8):
            for i in range(first + _AHEAD, min(first + _AHEAD + 8, n_users)):
                fetch_ahead(rows.errors, who[i])
            _add_users(rows.errors, who, first, scratch.wrong)
        for i in range(whole, n_users):
            add_one(rows.errors, who[i], scratch.wrong)
        return
    for first in range(0, n_users, 8):
        for i in range(8):
            j = who[min(first + i, n_users - 1)]
            mask = ALL if first + i < n_users else NONE
            for w in range(group.shape[1]):
                atom = atoms.words[k, w]
                alone = rows.covered[j, w] & ~rows.twice[j, w]
                open_group[i, w] = mask & ((atom & alone) | ~(atom | rows.covered[j, w]))
                group[i, w] = rows.errors[j, w] & open_group[i, w]
        _add_users(group, scratch.eight, 0, scratch.wrong)
        _add_users(open_group, scratch.eight, 0, scratch.free)


@piece
def _vote(rows, atoms, k, covers, start, stop, scratch):
    """Count, for each bit, the users among start..stop that have it free and those of them that have it wrong.

    A bit is free in a row when no other used atom decides it: always under XOR, so that ``free`` stays untouched.
    Returns how many users there are.
    """
    n_users = 0
    last = (stop + 63) >> 6
    for chunk in range(start >> 6, last, CHUNK):
        listed = list_ones(rows.users, k, chunk, min(chunk + CHUNK, last), scratch.who)
        _vote_listed(rows, atoms, k, listed, covers, scratch)
        n_users += listed
    return n_users


@piece
def _majority(wrong, free, planes, n_users, covers, atoms, k, flips):
    """Bits to flip: wrong in more than half of the users that have them free, or in just half and now one."""
    flipped = 0
    for w in range(flips.shape[0]):
        more, equal, some = NONE, ALL, NONE
        for b in range(planes - 1, -1, -1):  # compare twice the wrong with the free, highest bit first
            if covers:
                half = free[b, w]
            else:
                half = ALL if (n_users >> b) & 1 else NONE
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
def _flip(rows, atoms, k, covers, start, stop, flips, scratch):
    """Bring the users of atom k among start..stop up to date after its bits were flipped; returns the errors changed.

    The rows become stale, and so do the other atoms that they use.
    """
    touched, who = scratch.touched, scratch.who
    size = 0
    for w in range(flips.shape[0]):
        size += np.intp(popcount(flips[w]))
    for c in range(touched.shape[0]):
        touched[c] = NONE
    changed = 0
    last = (stop + 63) >> 6
    for chunk in range(start >> 6, last, CHUNK):
        n_users = list_ones(rows.users, k, chunk, min(chunk + CHUNK, last), who)
        for i in range(n_users):
            if i + _AHEAD < n_users:
                fetch_ahead(rows.errors, who[i + _AHEAD])
                fetch_ahead(rows.codes, who[i + _AHEAD])
            j = who[i]
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
def tally_users(rows, atoms, k, covers, start, stop, scratch):
    """Count the votes of the users of atom k among start..stop in the counters of the scratch."""
    n_rows = rows.errors.shape[0]  # so many may be counted there in the end
    clear(scratch.free, n_rows)
    clear(scratch.wrong, n_rows)
    return _vote(rows, atoms, k, covers, start, stop, scratch)


@kernel
def add_tallies(scratch, more):
    """Add the counters of another scratch."""
    for w in range(scratch.flips.shape[0]):
        carry, free_carry = NONE, NONE
        for b in range(scratch.wrong.shape[0]):
            scratch.wrong[b, w], carry = add3(scratch.wrong[b, w], more.wrong[b, w], carry)
            scratch.free[b, w], free_carry = add3(scratch.free[b, w], more.free[b, w], free_carry)


@kernel
def flip_atom(atoms, k, n_users, covers, scratch):
    """Flip the bits of atom k that its users, so many, outvote; returns how many, and leaves them in the scratch."""
    flips = scratch.flips
    flipped = _majority(scratch.wrong, scratch.free, scratch.wrong.shape[0], n_users, covers, atoms.words, k, flips)
    for w in range(flips.shape[0]):
        atoms.words[k, w] ^= flips[w]
    return flipped


@kernel
def flip_users(rows, atoms, k, covers, start, stop, flips, scratch):
    """After these bits of atom k were flipped, bring its users among start..stop up to date."""
    return _flip(rows, atoms, k, covers, start, stop, flips, scratch)


@kernel
def tally_atoms(rows, atoms, first, covers, start, stop, free, wrong, scratch):
    """free[i, b], wrong[i, b] = the votes on bit b of atom first + i by its users among start..stop; see _vote."""
    for i in range(free.shape[0]):
        clear(scratch.free, stop - start)
        n_planes = clear(scratch.wrong, stop - start)
        n_users = _vote(rows, atoms, first + i, covers, start, stop, scratch)
        read(scratch.wrong, n_planes, wrong[i])
        if covers:
            read(scratch.free, n_planes, free[i])
        else:
            free[i, :] = n_users


@piece
def _update_atom(rows, atoms, k, covers, scratch):
    """Atom k by vote of its users; returns its bits flipped, the errors changed and its users."""
    n_rows = rows.errors.shape[0]
    clear(scratch.free, n_rows)
    n_planes = clear(scratch.wrong, n_rows)
    n_users = _vote(rows, atoms, k, covers, 0, n_rows, scratch)
    if n_users == 0:
        return 0, 0, 0
    flips = scratch.flips
    flipped = _majority(scratch.wrong, scratch.free, n_planes, n_users, covers, atoms.words, k, flips)
    if flipped == 0:
        return 0, 0, n_users
    for w in range(flips.shape[0]):
        atoms.words[k, w] ^= flips[w]
    return flipped, _flip(rows, atoms, k, covers, 0, n_rows, flips, scratch), n_users


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
        if settled and rows.stale[j] == 0 and rows.codes[j, place] & bit == NONE:
            continue
        uses = False  # under XOR the gain is the same either way
        if rule.covers:
            uses = rows.codes[j, place] & bit != NONE
        gain = toggle_gain(rows, j, atoms, k, uses, rule.covers, size)
        if gain < 0:
            continue
        uses = rows.codes[j, place] & bit != NONE
        if not uses and (
            gain == 0 or weight(rows.codes, j) >= rule.max_atoms or weight(rows.errors, j) <= rule.residual_limit
        ):
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
def refit_users(rows, atoms, k, rule, settled, start, stop, scratch):
    """The rows of atom k anew among start..stop: those in which more than half of its free bits are wrong without it.

    Returns the codes and the errors changed. The rows changed become stale, and so do all atoms they use. Where
    ``settled``, the atom is as it was when the rows were coded: a row that has not changed since does not want it.
    """
    return _refit(rows, atoms, k, rule, settled, start, stop, scratch)


@kernel
def sweep_atoms(rows, atoms, rule, work, first, last, scratch):
    """Better atoms first..last, one at a time in index order, errors refreshed; see VOTE, FIT and GROW.

    Returns the bits changed of codes, atoms and errors. MOB passes over atoms that are not stale. With K-PROX an
    atom's bits and its rows are chosen in turn until neither changes; an atom without rows stays as it is.
    """
    codes_changed = 0
    atoms_changed = 0
    errors_changed = 0
    for k in range(first, last):
        if work == VOTE and atoms.stale[k] == 0:
            continue
        atoms.stale[k] = 0
        rows_first = work == GROW
        codes = 0
        while True:
            if not rows_first:
                flipped, errors, n_users = _update_atom(rows, atoms, k, rule.covers, scratch)
                atoms_changed += flipped
                errors_changed += errors
                if flipped > 0:
                    atoms.changed[k] = 1
                if work == VOTE or n_users == 0 or (codes > 0 and flipped == 0):
                    break
            rows_first = False
            settled = rule.residual_limit == 0 and atoms.changed[k] == 0
            codes, errors = _refit(rows, atoms, k, rule, settled, 0, rows.errors.shape[0], scratch)
            codes_changed += codes
            errors_changed += errors
            if codes == 0:
                break
        atoms.stale[k] = 0
    return codes_changed, atoms_changed, errors_changed
