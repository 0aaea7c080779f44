"""Trials of removing atoms: the users of an atom are coded without it until it is clear that this costs too much."""

from __future__ import annotations

import math

import numpy as np

from ..jit import inline, kernel
from ..structs import REFUSED
from ..views import view
from .coding import code_row
from .packing import step_apart
from .words import NONE, ONE, copy_row, fill, first_one, list_ones, weight

MORE_ROWS = 4  # the factor by which more users are coded each time
DOUBT = 1.5  # by how much more others may save than those coded so far, times the square root of their number
ENDED, USELESS, GOES_ON = 0, 1, 2  # how a call of the kernel ends
ROUNDING = 1e-7  # of differences of logarithms: one that is an integer stays one


@inline
def _string_bits(logs, length, ones):
    """Return the bits of a string with this many ones that depend on their number."""
    return np.int64(math.ceil(logs[length] - logs[ones] - logs[length - ones] - ROUNDING))


@inline
def _error_bits(costs, i, wrong):
    """Return the cost of the errors of column i, wrong in this many rows."""
    if costs.logs.shape[0] == 0:
        return wrong
    known = costs.known[i]
    few = wrong if costs.has_bias else min(wrong, known // 3)
    return _string_bits(costs.logs, known, few) + wrong - few


@inline
def _increase(costs, k, wrong, added, uses):
    """Return by how much errors, and uses of other atoms than k, cost more after these changes."""
    total = 0
    for i in range(wrong.shape[0]):
        if wrong[i] != 0:
            before = costs.wrong[i]
            total += _error_bits(costs, i, before + wrong[i]) - _error_bits(costs, i, before)
    for i in range(added.shape[0]):
        total += (wrong[i] - added[i]) * costs.missed[i] + added[i] * costs.added[i]
    if costs.logs.shape[0] > 0:
        for i in range(uses.shape[0]):
            if uses[i] != 0 and i != k:
                before, logs = costs.uses[i], costs.logs
                total += _string_bits(logs, costs.n_rows, before + uses[i]) - _string_bits(logs, costs.n_rows, before)
    return total


@inline
def _count_changes(words, j, before, changes):
    """Add 1 to changes[i] where bit i of row j became one, -1 where it became zero."""
    for w in range(words.shape[1]):
        word = words[j, w] ^ before[w]
        while word != NONE:
            i, word = first_one(word, w)
            changes[i] += 1 if (words[j, w] >> np.uint64(i & 63)) & ONE != NONE else -1


@inline
def _take_row(rows, j, covers, own):
    """Copy row j to the only row of ``own``."""
    copy_row(rows.codes, j, own.codes[0])
    copy_row(rows.errors, j, own.errors[0])
    if covers:
        copy_row(rows.covered, j, own.covered[0])
        copy_row(rows.twice, j, own.twice[0])
    if rows.unknown.shape[0] > 0:
        copy_row(rows.unknown, j, own.unknown[0])


@inline
def _count_row(rows, j, own, wrong, added, uses, errors):
    """Add to counts what differs between row j and ``own``; ``errors`` is a work array for a row."""
    _count_changes(own.codes, 0, rows.codes[j], uses)
    _count_changes(own.errors, 0, rows.errors[j], wrong)
    if added.shape[0] > 0:
        for w in range(own.errors.shape[1]):
            own.errors[0, w] &= own.covered[0, w]
            errors[w] = rows.errors[j, w] & rows.covered[j, w]
        _count_changes(own.errors, 0, errors, added)


@kernel
def try_without(
    rows, atoms, rule, costs, tried, worth, stop, first_rows, max_rows, first, progress, own, counts, listed, scratch
):
    """Go on with trials up to ``stop`` until an atom is useless, or this many rows are coded.

    Return ENDED, USELESS or GOES_ON, if it must be called again.

    A trial codes ``first_rows`` of the users of atom tried[i] without it, then more. If it is clear from these that
    all of them would cost more than ``worth[i]``, it ends. Most trials do. If without the atom all costs no more, the
    atom is useless, first[0] becomes its index, and ``counts`` say what changes.

    Threads share ``first``, the lowest index found so far, after which there is nothing to try. ``progress`` is the
    index of the trial, the number of users coded in it, and that of all users, which are ``listed``. ``own`` has one
    row, which is coded.
    """
    rows, atoms, rule, costs, tried, worth, first, progress, own, counts, listed, scratch = view(
        (rows, atoms, rule, costs, tried, worth, first, progress, own, counts, listed, scratch)
    )
    wrong, added, uses = counts
    n_left = max_rows
    while progress[0] < stop and progress[0] < first[0]:
        k, n_coded = tried[progress[0]], progress[1]
        if n_coded == 0:
            progress[2] = list_ones(rows.users, k, 0, rows.users.shape[1], listed, 0)
            fill(wrong, 0)
            fill(added, 0)
            fill(uses, 0)
        n_users, n_wanted = progress[2], first_rows
        while n_wanted <= n_coded:
            n_wanted *= MORE_ROWS
        step, price = step_apart(n_users), rule.prices.uses[k]
        rule.prices.uses[k] = REFUSED
        fails, is_done = False, False
        while not (fails or is_done) and n_left > 0 and progress[0] < first[0]:
            last = min(n_wanted, n_users, n_coded + n_left)
            for nth in range(n_coded, last):
                j = listed[nth * step % n_users]
                _take_row(rows, j, rule.covers, own)
                code_row(own, 0, atoms, rule, weight(own.errors, 0), scratch)
                _count_row(rows, j, own, wrong, added, uses, scratch.errors[0])
            n_left -= last - n_coded
            n_coded = last
            if n_coded == min(n_wanted, n_users):
                is_done, limit = n_coded == n_users, 1.0
                if not is_done:
                    limit = min(1.0, n_wanted / n_users * (1.0 + DOUBT / math.sqrt(n_wanted)))
                fails = _increase(costs, k, wrong, added, uses) > limit * worth[progress[0]]
                n_wanted *= MORE_ROWS
        rule.prices.uses[k] = price
        progress[1] = n_coded
        if is_done and not fails:
            first[0] = min(first[0], progress[0])
            return USELESS
        if not fails:
            return GOES_ON
        progress[0] += 1
        progress[1] = 0
    return ENDED
