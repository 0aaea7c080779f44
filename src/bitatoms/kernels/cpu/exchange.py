"""Trials of a search for a given number of atoms: drop some atoms, grow others in their place, code and update.

A whole sequence of trials is one call: on small tables, calling a kernel for each step takes longer than the step.
The current state is kept in ``now``; a trial changes a copy of it, ``after``, which replaces it if it is accepted.
"""

from __future__ import annotations

import numpy as np

from ..jit import inline, kernel, lowest_bit, subroutine
from ..views import view
from .coding import code_rows, errors_fixed, recheck
from .dictionary import overlap_atoms, slice_atoms
from .exact import best_columns, code_rows_exactly, list_products
from .votes import GROW, VOTE, sweep_atoms
from .words import (
    NONE,
    ONE,
    add_product,
    copy_array,
    copy_row,
    cover,
    fill,
    first_one,
    flip_errors,
    next_state,
    random_bits,
    refresh_row,
    weight,
)

_ROWS, _COLUMNS, _PAIRS, _POOL = range(4)  # where the candidates for a new atom come from
_MAX_DOUBLINGS = 5  # a new atom is the best of up to 2**5 candidates
MAX_CANDIDATES = 1 << _MAX_DOUBLINGS
_MAX_DRAWS = 64  # rows drawn at most, until one has an error that a new atom could fix

_add_product = subroutine(add_product)
_best_columns, _list_products = subroutine(best_columns), subroutine(list_products)
_code_rows, _code_rows_exactly = subroutine(code_rows), subroutine(code_rows_exactly)
_overlap_atoms, _slice_atoms = subroutine(overlap_atoms), subroutine(slice_atoms)
_sweep_atoms = subroutine(sweep_atoms)


@inline
def _below(random, n):
    """Return a random integer from 0 to n - 1, for n below 2**31."""
    random[0] = next_state(random[0])
    return np.intp(((random_bits(random[0]) >> np.uint64(33)) * np.uint64(n)) >> np.uint64(31))


@inline
def _copy_rows(rows, out):
    """Copy the state of the rows."""
    copy_array(rows.errors, out.errors)
    copy_array(rows.codes, out.codes)
    copy_array(rows.users, out.users)
    copy_array(rows.covered, out.covered)
    copy_array(rows.twice, out.twice)
    copy_array(rows.stale, out.stale)


@inline
def _copy_atoms(atoms, out):
    """Copy the atoms and their tables."""
    copy_array(atoms.words, out.words)
    copy_array(atoms.weights, out.weights)
    copy_array(atoms.slices, out.slices)
    copy_array(atoms.overlaps, out.overlaps)
    copy_array(atoms.stale, out.stale)
    copy_array(atoms.changed, out.changed)


@inline
def _count_errors(rows):
    """Return the number of errors."""
    total = 0
    for j in range(rows.errors.shape[0]):
        total += weight(rows.errors, j)
    return total


@subroutine
def _clear_atom(rows, atoms, k, covers, row):
    """Make atom k empty, without users. The rows that used it become stale; ``row`` is a work array."""
    c, bit = k >> 6, ONE << np.uint64(k & 63)
    for j in range(rows.errors.shape[0]):
        if rows.codes[j, c] & bit == NONE:
            continue
        rows.codes[j, c] ^= bit
        rows.stale[j] = 1
        if covers:
            refresh_row(rows, j, atoms.words, row)
        else:
            flip_errors(rows, j, atoms.words, k)
    fill(rows.users[k], NONE)
    fill(atoms.words[k], NONE)
    atoms.changed[k] = 1
    atoms.stale[k] = 1


@subroutine
def _refresh(rows, atoms, covers):
    """Update the tables of changed atoms, and mark the rows that could gain by them as stale."""
    any_changed = False
    for k in range(atoms.words.shape[0]):
        any_changed |= atoms.changed[k] != 0
    if not any_changed:
        return
    _slice_atoms(atoms.words, atoms.weights, atoms.slices)
    _overlap_atoms(atoms.words, atoms.changed, 1 if covers else 2, atoms.overlaps)
    for k in range(atoms.words.shape[0]):
        if atoms.changed[k] == 0:
            continue
        atoms.changed[k] = 0
        if atoms.weights[k] > 0:
            recheck(rows, atoms, k, covers, 0, rows.errors.shape[0])


@inline
def _code_exactly(rows, atoms, rule, coding, exact):
    """Give every row the best of all codes; return the number of changed code bits."""
    n_low = lowest_bit(np.uint64(exact.low.shape[1]))
    _list_products(atoms.words, 0, rule.covers, exact.low_rows)
    _list_products(atoms.words, n_low, rule.covers, exact.high)
    for c in range(exact.low.shape[1]):
        for w in range(exact.low.shape[0]):
            exact.low[w, c] = exact.low_rows[c, w]
    n = rows.errors.shape[0]
    for j in range(n):
        rows.stale[j] = 1
    codes, _ = _code_rows_exactly(rows, atoms, exact.low, exact.high, rule, 0, n, exact.distances, coding)
    return codes


@inline
def _update_exactly(rows, atoms, covers, coding, exact):
    """Give every feature the best of all columns of the atoms; return the number of changed bits."""
    n_columns = exact.columns.shape[0]
    factors = rows.codes, atoms.words
    bits = _best_columns(exact.columns, exact.unknown, *factors, covers, 0, n_columns, exact.scores)
    if bits > 0:
        n = rows.errors.shape[0]
        copy_array(exact.data, rows.errors)
        _add_product(*factors, covers, rows.unknown, 0, n, coding.errors[0], rows.errors)
        if covers:
            for j in range(n):
                cover(rows, j, atoms.words)
    return bits


@inline
def _draw_fixable(rows, rule, random, out, i):
    """out[i] = the errors of a random row that a new atom could fix; return whether there are any."""
    n = rows.errors.shape[0]
    for _ in range(_MAX_DRAWS):
        j = _below(random, n)
        if weight(rows.codes, j) >= rule.max_atoms or weight(rows.errors, j) <= rule.residual_limit:
            continue
        found = NONE
        for w in range(out.shape[1]):
            out[i, w] = rows.errors[j, w] & ~rows.covered[j, w] if rule.covers else rows.errors[j, w]
            found |= out[i, w]
        if found != NONE:
            return True
    return False


@inline
def _keep_one(random, words, i):
    """Clear all ones of row i but one, drawn at random."""
    skipped = _below(random, weight(words, i))
    for w in range(words.shape[1]):
        word = words[i, w]
        words[i, w] = NONE
        while word != NONE:
            column, word = first_one(word, w)
            if skipped == 0:
                words[i, w] = ONE << np.uint64(column & 63)
            skipped -= 1


@inline
def _draw_candidate(rows, rule, pool, kind, random, out, i):
    """Write a candidate for a new atom to out[i], and return whether there is one. Row i + 1 is a work array."""
    if kind == _POOL:
        k = _below(random, pool.shape[0])
        copy_row(pool, k, out[i])
        return True
    if not _draw_fixable(rows, rule, random, out, i):
        return False
    if kind == _COLUMNS:
        _keep_one(random, out, i)
    elif kind == _PAIRS and _draw_fixable(rows, rule, random, out, i + 1):
        shared = NONE
        for w in range(out.shape[1]):
            shared |= out[i, w] & out[i + 1, w]
        if shared != NONE:
            for w in range(out.shape[1]):
                out[i, w] &= out[i + 1, w]
    return True


@subroutine
def _draw_atom(rows, atoms, k, rule, pool, random, candidates):
    """Let the empty atom k become the best of some candidates, and return whether there was one."""
    n_candidates = 1 << _below(random, _MAX_DOUBLINGS + 1)
    kind = _below(random, 4 if pool.shape[0] > 0 else 3)
    best, most = -1, 0
    for i in range(n_candidates):
        if not _draw_candidate(rows, rule, pool, kind, random, candidates, i):
            break
        fixed = errors_fixed(rows, candidates, i, rule.covers, 0, rows.errors.shape[0])
        if fixed > most:
            best, most = i, fixed
    if best < 0:
        return False
    copy_row(candidates, best, atoms.words[k])
    atoms.changed[k] = 1
    return True


@inline
def _replace_atoms(rows, atoms, rule, pool, plan, random, candidates, coding, votes, exact):
    """Drop atoms, code the rows without them, grow others, and take steps of coding and update."""
    n_atoms = atoms.words.shape[0]
    for _ in range(1 + _below(random, plan.max_dropped)):
        _clear_atom(rows, atoms, _below(random, n_atoms), rule.covers, coding.errors[0])
    step, k = 0, 0  # the step, and the first atom that may be empty
    while step <= plan.n_steps:
        if step == 1:
            while k < n_atoms and weight(atoms.words, k) > 0:
                k += 1
        grows = step == 1 and k < n_atoms
        codes, bits, action, begin, end = 0, 0, VOTE, 0, 0
        if grows:
            _clear_atom(rows, atoms, k, rule.covers, coding.errors[0])  # rows may use an atom that votes made empty
            action, begin = GROW, k
            end = k + np.intp(_draw_atom(rows, atoms, k, rule, pool, random, candidates))
            k += 1
        elif exact.scores.shape[0] == 0:
            _refresh(rows, atoms, rule.covers)
            fill(coding.touched, NONE)
            codes, _ = _code_rows(rows, atoms, rule, 0, rows.errors.shape[0], coding)
            end = n_atoms if step > 0 else 0
        else:
            codes = _code_exactly(rows, atoms, rule, coding, exact)
            bits = _update_exactly(rows, atoms, rule.covers, coding, exact) if step > 0 else 0
        if end > begin:
            _, bits, _ = _sweep_atoms(rows, atoms, rule, action, begin, end, votes)
        if not grows:
            if step > 0 and codes == 0 and bits == 0:
                break
            step += 1


@kernel
def run_trials(now, after, best, rule, pool, plan, first, last, random, counts, candidates, coding, votes, exact):
    """Run trials first..last of ``plan.n_trials``.

    A trial drops one to ``plan.max_dropped`` atoms, codes the rows without them, grows as many atoms, and takes steps
    of coding and update. It is accepted if it has at most ``plan.slack`` more errors, relatively, than the current
    state; the slack falls to zero with the last trial.

    ``now`` and ``after`` are pairs (rows, atoms), ``best`` the factors (atoms, codes) of the best state so far, and
    ``counts`` the errors of the current and the best state. ``pool`` holds atoms that may become candidates.
    """
    now, after, best, rule, pool, plan, random, counts, candidates, coding, votes, exact = view(
        (now, after, best, rule, pool, plan, random, counts, candidates, coding, votes, exact)
    )
    rows, atoms = after
    for trial in range(first, last):
        if counts[1] == 0:
            return
        _copy_rows(now[0], rows)
        _copy_atoms(now[1], atoms)
        _replace_atoms(rows, atoms, rule, pool, plan, random, candidates, coding, votes, exact)
        wrong = _count_errors(rows)
        if wrong <= counts[0] + counts[0] * plan.slack * (1 - trial / plan.n_trials):
            _copy_rows(rows, now[0])
            _copy_atoms(atoms, now[1])
            counts[0] = wrong
        if wrong < counts[1]:
            counts[1] = wrong
            copy_array(atoms.words, best[0])
            copy_array(rows.codes, best[1])
