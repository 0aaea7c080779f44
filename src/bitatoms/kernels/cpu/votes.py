"""Update atoms by the vote of their users, one at a time or all together, and the users of an atom.

One at a time: MOB, Proximus and K-PROX. All together, from the counts of one pass: which bits to flip so that the
errors cannot increase. Flipping bit i of atom k alone removes exactly ``2 * wrong[k, i] - free[k, i]`` errors. Flipping
several bits of a column removes at least the sum of these minus ``factor`` times the number of rows that two of the
atoms share, for every pair (factor 2 under XOR, 1 under OR).
"""

from __future__ import annotations

import numpy as np

from ..jit import inline, kernel, popcount, prefetch
from ..structs import USER_WORDS
from ..views import view
from .words import (
    ALL,
    NONE,
    ONE,
    add_eight,
    add_one,
    all_free,
    clear,
    copy_row,
    distance,
    fill,
    first_one,
    flip_errors,
    list_ones,
    mark,
    read,
    refresh_row,
    toggle_gain,
    unknown_word,
    weight,
)

# What `sweep_atoms` does to each atom.
VOTE = 0  # MOB: update its bits by vote
FIT = 1  # K-PROX: update its bits by vote and its users, alternately
GROW = 2  # Proximus: update its users and its bits by vote, alternately

_AHEAD = 32  # number of users whose rows are prefetched


@inline
def _vote_listed(rows, atoms, k, n_users, covers, scratch):
    """Add the votes of the listed users to the counters."""
    users, group, free_group = scratch.users, scratch.group, scratch.free_group
    in_groups = n_users - n_users % 8
    if all_free(rows, covers):
        for first in range(0, in_groups, 8):
            for i in range(first + _AHEAD, min(first + _AHEAD + 8, n_users)):
                prefetch(rows.errors, users[i])
            a, b, c, d = users[first], users[first + 1], users[first + 2], users[first + 3]
            e, f, g, h = users[first + 4], users[first + 5], users[first + 6], users[first + 7]
            add_eight(rows.errors, a, b, c, d, e, f, g, h, scratch.wrong)
        for i in range(in_groups, n_users):
            add_one(rows.errors, users[i], scratch.wrong)
        return
    for first in range(0, n_users, 8):
        for i in range(8):
            j = users[min(first + i, n_users - 1)]
            mask = ALL if first + i < n_users else NONE
            for w in range(group.shape[1]):
                free = ~unknown_word(rows, j, w)
                if covers:
                    atom = atoms.words[k, w]
                    alone = rows.covered[j, w] & ~rows.twice[j, w]
                    free = (atom & alone) | ~(atom | rows.covered[j, w])
                free_group[i, w] = mask & free
                group[i, w] = rows.errors[j, w] & free_group[i, w]
        add_eight(group, 0, 1, 2, 3, 4, 5, 6, 7, scratch.wrong)
        add_eight(free_group, 0, 1, 2, 3, 4, 5, 6, 7, scratch.free)


@inline
def _vote(rows, atoms, k, covers, start, stop, scratch):
    """Count, for each bit, the users of start..stop in which it is free, and those of them in which it is wrong.

    A bit is free in a row if it is known and no other used atom decides it. Under XOR, if all cells are known, this is
    always so, and ``free`` is not used. Return the number of users.
    """
    n_users = 0
    last = (stop + 63) >> 6
    for first in range(start >> 6, last, USER_WORDS):
        listed = list_ones(rows.users, k, first, min(first + USER_WORDS, last), scratch.users, 0)
        _vote_listed(rows, atoms, k, listed, covers, scratch)
        n_users += listed
    return n_users


@kernel
def tally_atoms(rows, atoms, listed, first, covers, start, stop, free, wrong, scratch):
    """free[k - first, b], wrong[k - first, b] = votes on bit b of each listed atom k by its users in start..stop.

    See `_vote`.
    """
    rows, atoms, listed, free, wrong, scratch = view((rows, atoms, listed, free, wrong, scratch))
    for nth in range(listed.shape[0]):
        k, i, n_users = listed[nth], listed[nth] - first, 0
        for w in range(start >> 6, (stop + 63) >> 6):
            n_users += np.intp(popcount(rows.users[k, w]))
        clear(scratch.free, n_users)
        n_planes = clear(scratch.wrong, n_users)
        n_users = _vote(rows, atoms, k, covers, start, stop, scratch)
        read(scratch.wrong, n_planes, wrong[i])
        if all_free(rows, covers):
            fill(free[i], n_users)
        else:
            read(scratch.free, n_planes, free[i])


@inline
def _majority(wrong, free, planes, n_users, free_everywhere, atoms, k, flips):
    """Set the bits to flip: wrong in more than half of the users in which they are free, or in exactly half and one."""
    flipped = 0
    for w in range(flips.shape[1]):
        more, equal, some = NONE, ALL, NONE
        for b in range(planes - 1, -1, -1):  # compare 2 * wrong with free, highest bit first
            if free_everywhere:
                half = ALL if (n_users >> b) & 1 else NONE
            else:
                half = free[b, w]
            some |= half
            twice = wrong[b - 1, w] if b > 0 else NONE
            more |= equal & twice & ~half
            equal &= ~(twice ^ half)
        flips[0, w] = more | (equal & some & atoms[k, w])
        flipped += np.intp(popcount(flips[0, w]))
    return flipped


@inline
def _flip_users(rows, atoms, k, covers, flips, scratch):
    """Update the users of atom k after the bits flips[0] of it were flipped.

    Return the number of changed error bits. The rows become stale, and so do the other atoms that they use.
    """
    touched, users = scratch.touched, scratch.users
    fill(touched, NONE)
    changed = 0
    last = (rows.errors.shape[0] + 63) >> 6
    for first in range(0, last, USER_WORDS):
        n_users = list_ones(rows.users, k, first, min(first + USER_WORDS, last), users, 0)
        for i in range(n_users):
            if i + _AHEAD < n_users:
                prefetch(rows.errors, users[i + _AHEAD])
                prefetch(rows.codes, users[i + _AHEAD])
            j = users[i]
            rows.stale[j] = 1
            for c in range(touched.shape[0]):
                touched[c] |= rows.codes[j, c]
            if covers:
                changed += refresh_row(rows, j, atoms.words, scratch.before)
            else:
                changed += flip_errors(rows, j, flips, 0)
    touched[k >> 6] &= ~(ONE << np.uint64(k & 63))
    mark(touched, atoms.stale)
    return changed


@inline
def _update_atom(rows, atoms, k, covers, scratch):
    """Update atom k by vote; return the numbers of its flipped bits, of changed error bits and of its users."""
    n_rows = rows.errors.shape[0]
    clear(scratch.free, n_rows)
    n_planes = clear(scratch.wrong, n_rows)
    n_users = _vote(rows, atoms, k, covers, 0, n_rows, scratch)
    if n_users == 0:
        return 0, 0, 0
    flips = scratch.flips
    free_everywhere = all_free(rows, covers)
    flipped = _majority(scratch.wrong, scratch.free, n_planes, n_users, free_everywhere, atoms.words, k, flips)
    if flipped == 0:
        return 0, 0, n_users
    for w in range(flips.shape[1]):
        atoms.words[k, w] ^= flips[0, w]
    return flipped, _flip_users(rows, atoms, k, covers, flips, scratch), n_users


@inline
def _refit_users(rows, atoms, k, rule, settled, scratch):
    """Choose the users of atom k: the rows in which more than half of its free bits are wrong without it.

    Return the numbers of changed codes and error bits. Rows that change become stale, and so do all atoms that they
    use. ``settled``: the atom has not changed since the rows were coded, so a row that is not stale does not gain by
    it.
    """
    k_word, bit = k >> 6, ONE << np.uint64(k & 63)
    touched = scratch.touched
    fill(touched, NONE)
    size = weight(atoms.words, k)
    codes_changed, errors_changed = 0, 0
    for j in range(rows.errors.shape[0]):
        if settled and rows.stale[j] == 0 and rows.codes[j, k_word] & bit == NONE:
            continue
        uses = False  # under XOR the gain does not depend on it
        if rule.covers:
            uses = rows.codes[j, k_word] & bit != NONE
        gain = toggle_gain(rows, j, atoms.words, k, uses, rule.covers, size)
        if gain < 0:
            continue
        uses = rows.codes[j, k_word] & bit != NONE
        if not uses and (
            gain == 0 or weight(rows.codes, j) >= rule.max_atoms or weight(rows.errors, j) <= rule.residual_limit
        ):
            continue
        rows.codes[j, k_word] ^= bit
        rows.users[k, j >> 6] ^= ONE << np.uint64(j & 63)
        rows.stale[j] = 1
        codes_changed += 1
        for c in range(touched.shape[0]):
            touched[c] |= rows.codes[j, c]
        if rule.covers:
            errors_changed += refresh_row(rows, j, atoms.words, scratch.before)
        else:
            errors_changed += flip_errors(rows, j, atoms.words, k)
    if codes_changed > 0:
        touched[k_word] |= bit
        mark(touched, atoms.stale)
    return codes_changed, errors_changed


@kernel
def sweep_atoms(rows, atoms, rule, action, first, last, scratch):
    """Update atoms first..last one at a time, in index order, with current errors; see VOTE, FIT and GROW.

    Return the numbers of changed bits of codes, atoms and errors. MOB skips atoms that are not stale. K-PROX updates
    the bits and the users of an atom alternately until neither changes; an atom without users is not changed.
    """
    rows, atoms, rule, scratch = view((rows, atoms, rule, scratch))
    codes_changed, atoms_changed, errors_changed = 0, 0, 0
    for k in range(first, last):
        if action == VOTE and atoms.stale[k] == 0:
            continue
        atoms.stale[k] = 0
        users_first = action == GROW
        codes = 0
        while True:
            if not users_first:
                flipped, errors, n_users = _update_atom(rows, atoms, k, rule.covers, scratch)
                atoms_changed += flipped
                errors_changed += errors
                if flipped > 0:
                    atoms.changed[k] = 1
                if action == VOTE or n_users == 0 or (codes > 0 and flipped == 0):
                    break
            users_first = False
            settled = rule.residual_limit == 0 and atoms.changed[k] == 0
            codes, errors = _refit_users(rows, atoms, k, rule, settled, scratch)
            codes_changed += codes
            errors_changed += errors
            if codes == 0:
                break
        atoms.stale[k] = 0
    return codes_changed, atoms_changed, errors_changed


@kernel
def count_pairs(codes, start, stop, listed, pairs):
    """pairs[k, l] += number of rows of start..stop that use both atoms, for k >= l."""
    codes, listed, pairs = view((codes, listed, pairs))
    for j in range(start, stop):
        used = list_ones(codes, j, 0, codes.shape[1], listed, 0)
        for a in range(used):
            for b in range(a + 1):
                pairs[listed[a], listed[b]] += 1


@inline
def _list_candidates(free, wrong, first_column, atoms, first_atom, counts, listed, gains):
    """List the atoms that gain by a flip of their bit, or gain nothing and lose it, for each column.

    Those of column i are the first counts[i] of listed[i], the largest gain first.
    """
    fill(counts, 0)
    for k in range(first_atom, free.shape[0]):
        for i in range(free.shape[1]):
            gain = 2 * wrong[k, i] - free[k, i]
            if gain < 0 or free[k, i] == 0:
                continue
            column = first_column + i
            if gain == 0 and (atoms[k, column >> 6] >> np.uint64(column & 63)) & ONE == NONE:
                continue
            place = counts[i]
            while place > 0 and gains[i, place - 1] < gain:
                gains[i, place], listed[i, place] = gains[i, place - 1], listed[i, place - 1]
                place -= 1
            gains[i, place], listed[i, place] = gain, k
            counts[i] += 1


@kernel
def choose_flips(free, wrong, first_column, pairs, factor, atoms, first_atom, counts, listed, gains, flips):
    """Set in ``flips`` bits whose flips together certainly gain, in order of the gain of each; return their number.

    ``free`` and ``wrong`` are the votes on the columns from ``first_column`` on. Atoms before ``first_atom`` stay as
    they are. ``counts``, ``listed`` and ``gains`` are work arrays with one row for each column.
    """
    free, wrong, pairs, atoms, counts, listed, gains, flips = view(
        (free, wrong, pairs, atoms, counts, listed, gains, flips)
    )
    _list_candidates(free, wrong, first_column, atoms, first_atom, counts, listed, gains)
    flipped = 0
    for i in range(free.shape[1]):
        column, n_admitted, admitted = first_column + i, 0, listed[i]  # the first ones, which have been looked at
        w, bit = column >> 6, ONE << np.uint64(column & 63)
        for c in range(counts[i]):
            k, bound = listed[i, c], gains[i, c]
            for a in range(n_admitted):
                bound -= factor * pairs[max(k, admitted[a]), min(k, admitted[a])]
            if bound > 0 or (bound == 0 and atoms[k, w] & bit != NONE):
                admitted[n_admitted] = k
                n_admitted += 1
                flips[k, w] |= bit
        flipped += n_admitted
    return flipped


@kernel
def follow_flips(rows, atoms, flips, flipping, covers, start, stop, before):
    """Update rows start..stop after these bits of the atoms were flipped; return the number of changed error bits.

    ``flipping`` has a one for each atom with a flip; ``before`` is a work array for a row. Rows that use such an atom
    become stale.
    """
    rows, atoms, flips, flipping, before = view((rows, atoms, flips, flipping, before))
    changed = 0
    for j in range(start, stop):
        touched = NONE
        for c in range(rows.codes.shape[1]):
            touched |= rows.codes[j, c] & flipping[c]
        if touched == NONE:
            continue
        rows.stale[j] = 1
        if covers:
            changed += refresh_row(rows, j, atoms, before)
        else:
            copy_row(rows.errors, j, before)
            for c in range(rows.codes.shape[1]):
                word = rows.codes[j, c] & flipping[c]
                while word != NONE:
                    k, word = first_one(word, c)
                    flip_errors(rows, j, flips, k)
            changed += distance(rows.errors, j, before)
    return changed
