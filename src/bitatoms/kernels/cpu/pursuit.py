"""Matching pursuit by the gains at the beginning, which is in effect what the paper's program does.

A row takes atoms in the order of their gain per bit at the beginning, and stops at the first that does not lower its
errors. It does not drop atoms.
"""

from __future__ import annotations

import numpy as np

from ..jit import inline, kernel
from .coding import start_gains, toggle
from .words import NONE, ONE, copy_row, distance, mark, toggle_gain, weight


@inline
def _next_atom(rows, j, gains, weights):
    """Return the lowest atom with the largest gain per bit among those that row j does not use, or -1."""
    best = -1
    for k in range(rows.users.shape[0]):
        if weights[k] == 0 or rows.codes[j, k >> 6] & (ONE << np.uint64(k & 63)) != NONE:
            continue
        if best < 0 or np.int64(gains[k]) * weights[best] > np.int64(gains[best]) * weights[k]:
            best = k
    return best


@kernel
def pursue_rows(rows, atoms, rule, start, stop, scratch):
    """Code the stale rows of start..stop from their current codes; return the numbers of changed code and error bits.

    A row that changed stays stale, because its gains are no longer those that it was coded by. Atoms of rows that
    changed become stale. ``start`` is a multiple of 64, so that no two chunks share a word of ``users``.
    """
    codes_changed = 0
    errors_changed = 0
    for j in range(start, stop):
        if rows.stale[j] == 0:
            continue
        rows.stale[j] = 0
        used, wrong = weight(rows.codes, j), weight(rows.errors, j)
        if wrong <= rule.residual_limit or used >= rule.max_atoms:
            continue
        start_gains(rows, j, atoms, rule, scratch)
        while wrong > rule.residual_limit and used < rule.max_atoms:
            k = _next_atom(rows, j, scratch.gains, atoms.weights)
            if k < 0:
                break
            gain = toggle_gain(rows, j, atoms.words, k, False, rule.covers, np.intp(atoms.weights[k]))
            if gain <= 0:
                break
            if rows.stale[j] == 0:
                rows.stale[j] = 1
                copy_row(rows.codes, j, scratch.code)
                copy_row(rows.errors, j, scratch.errors)
            toggle(rows, j, atoms.words, k, rule.covers, scratch.bits)
            used, wrong = used + 1, wrong - gain
        if rows.stale[j]:
            codes_changed += distance(rows.codes, j, scratch.code)
            errors_changed += distance(rows.errors, j, scratch.errors)
            for c in range(scratch.touched.shape[0]):
                scratch.touched[c] |= scratch.code[c] | rows.codes[j, c]
    mark(scratch.touched, atoms.stale)
    return codes_changed, errors_changed
