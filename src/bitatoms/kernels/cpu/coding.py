"""Greedy coding of rows: toggle the best atom while one gains (Algorithm 3, corrected), and what follows from gains."""

from __future__ import annotations

import numpy as np

from ..jit import inline, kernel
from ..views import view
from .gains import (
    USED,
    adds_forbidden,
    exclude_forbidden,
    first_gains,
    gains_without,
    start_gains,
    start_gains_of_code,
    toggle,
    toggle_and_update,
)
from .words import (
    NONE,
    ONE,
    copy_row,
    cover,
    distance,
    drop_gain,
    first_one,
    flip_errors,
    mark,
    priced_row,
    toggle_gain,
    toggle_users,
    unknown_word,
    weight,
)

_FEW_ATOMS = 8  # up to this many atoms, gains are computed one by one instead of in vectors


@inline
def _largest(gains):
    """Return the largest positive gain, or zero."""
    best = np.int32(0)
    for k in range(gains.shape[0]):
        if gains[k] > best:
            best = gains[k]
    return np.intp(best)


@inline
def _first_with(gains, gain):
    """Return the lowest atom with this gain."""
    k = 0
    while gains[k] != gain:
        k += 1
    return k


@inline
def _best_ratio(gains, weights):
    """Return the lowest atom with the largest gain per bit; at least one gain must be positive."""
    best = -1
    for k in range(gains.shape[0]):
        if gains[k] > 0:
            ahead = best < 0 or np.int64(gains[k]) * weights[best] > np.int64(gains[best]) * weights[k]
            if ahead:
                best = k
    return best


@inline
def _best_addition(gains, weights, by_ratio):
    """Return the atom to add (XOR: to toggle) and its gain, or -1 and 0 if none gains."""
    gain = _largest(gains)
    if gain == 0:
        return -1, gain
    best = _best_ratio(gains, weights) if by_ratio else _first_with(gains, gain)
    return best, np.intp(gains[best])


@inline
def _update_drops(rows, j, atoms, toggled, prices, drops):
    """drops[k] = gain of dropping atom k from row j under OR, for the used atoms that share bits with the toggled one.

    For all used atoms, if ``toggled`` is -1.
    """
    for c in range(rows.codes.shape[1]):
        word = rows.codes[j, c]
        while word != NONE:
            k, word = first_one(word, c)
            if toggled < 0 or atoms.overlaps[toggled, k] != 0:
                drops[k] = drop_gain(rows, j, atoms.words, k, prices)


@inline
def _best_drop(rows, j, weights, by_ratio, drops, best, gain):
    """Return the given toggle, or a better one of an atom in use."""
    for c in range(rows.codes.shape[1]):
        word = rows.codes[j, c]
        while word != NONE:
            k, word = first_one(word, c)
            candidate = np.intp(drops[k])
            if candidate <= 0:
                continue
            if best < 0:
                ahead = 1
            elif by_ratio:
                ahead = candidate * np.intp(weights[best]) - gain * np.intp(weights[k])
            else:
                ahead = candidate - gain
            if ahead > 0 or (ahead == 0 and k < best):
                best = k
                gain = candidate
    return best, gain


@inline
def _drop_forbidden(rows, j, atom_words, rule, bits):
    """Drop the atoms of row j that add a one where none may be added; return how many."""
    n_dropped = 0
    if rule.prices.forbidden.shape[0] > 0:
        for k in range(atom_words.shape[0]):
            uses = rows.codes[j, k >> 6] >> np.uint64(k & 63) & ONE != NONE
            if uses and adds_forbidden(rows, j, atom_words, k, rule.prices):
                toggle(rows, j, atom_words, k, rule.covers, bits)
                n_dropped += 1
    return n_dropped


@inline
def _may_replace(gains, overlaps, k, gain):
    """Return whether another atom might gain more without atom k, whose drop gains ``gain``, than that drop loses.

    Without k, the gain of another atom rises by its overlap with k at most.
    """
    own = gains[k]
    gains[k] = -USED
    best = np.int32(0)
    for i in range(gains.shape[0]):
        best = max(best, gains[i] + overlaps[k, i])
    gains[k] = own
    return best + gain > 0


@inline
def _best_swap(rows, j, atoms, rule, prices, drops, scratch):
    """Return the first used atom whose replacement gains, and the best replacement; -1 and -1 if there is none."""
    if prices is None:
        return -1, -1
    for c in range(rows.codes.shape[1]):
        word = rows.codes[j, c]
        while word != NONE:
            k, word = first_one(word, c)
            gain = np.intp(drops[k])
            if not _may_replace(scratch.gains, atoms.overlaps, k, gain):
                continue
            gains_without(rows, j, atoms, k, rule, scratch)
            scratch.trial[k] = -USED
            best = _largest(scratch.trial)
            if best > 0 and best + gain > 0:
                return k, _first_with(scratch.trial, best)
    return -1, -1


@inline
def code_row(rows, j, atoms, rule, wrong, scratch):
    """Toggle atoms in row j, which has ``wrong`` errors, while one gains; return whether the row changed.

    In this case, row 0 of ``scratch.codes`` and ``scratch.errors`` is its previous code and errors.
    """
    gains = scratch.gains
    used = weight(rows.codes, j)
    start_gains_of_code(rows, j, atoms, rule, rule.prices, scratch)
    drops = gains  # under XOR, toggling an atom in use drops it
    if rule.covers:
        drops = scratch.drops
    toggled, last = False, -1
    while wrong > rule.residual_limit:
        if rule.covers:
            _update_drops(rows, j, atoms, last, rule.prices, drops)
        k, gain, replacement = -1, 0, -1
        if used < rule.max_atoms:
            k, gain = _best_addition(gains, atoms.weights, rule.by_ratio)
        if rule.covers or used >= rule.max_atoms:
            k, gain = _best_drop(rows, j, atoms.weights, rule.by_ratio, drops, k, gain)
        if k < 0 and rule.swaps:
            k, replacement = _best_swap(rows, j, atoms, rule, rule.prices, drops, scratch)
        if k < 0:
            break
        if not toggled:
            toggled = True
            copy_row(rows.codes, j, scratch.codes[0])
            copy_row(rows.errors, j, scratch.errors[0])
        last = k if replacement < 0 else -1
        while k >= 0:  # twice for a swap
            used += 1 if toggle_and_update(rows, j, atoms, k, rule, scratch) else -1
            k, replacement = replacement, -1
        wrong = weight(rows.errors, j)
    return toggled


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


@inline
def _pursue_row(rows, j, atoms, rule, wrong, scratch):
    """Add atoms to row j in the order of their gain per bit at first, until one gains nothing; as `code_row`.

    This matching pursuit is in effect what the paper's program does.
    """
    used = weight(rows.codes, j)
    if used < rule.max_atoms:
        start_gains(rows, j, atoms, rule, scratch)
    toggled = False
    while wrong > rule.residual_limit and used < rule.max_atoms:
        k = _next_atom(rows, j, scratch.gains, atoms.weights)
        if k < 0:
            break
        gain = toggle_gain(rows, j, atoms.words, k, False, rule.covers, np.intp(atoms.weights[k]))
        if gain <= 0:
            break
        if not toggled:
            toggled = True
            copy_row(rows.codes, j, scratch.codes[0])
            copy_row(rows.errors, j, scratch.errors[0])
        toggle(rows, j, atoms.words, k, rule.covers, scratch.bits)
        used, wrong = used + 1, wrong - gain
    return toggled


@kernel
def code_rows(rows, atoms, rule, start, stop, scratch):
    """Code the stale rows of start..stop from their current codes; return the numbers of changed code and error bits.

    Atoms of rows that changed become stale. ``start`` is a multiple of 64, so that no two chunks share a word of
    ``users``. A row that changed by matching pursuit stays stale, because its gains are no longer those it was coded
    by.
    """
    rows, atoms, rule, scratch = view((rows, atoms, rule, scratch))
    codes_changed, errors_changed = 0, 0
    for j in range(start, stop):
        if rows.stale[j] == 0:
            continue
        rows.stale[j] = 0
        wrong = weight(rows.errors, j)
        if wrong <= rule.residual_limit:
            continue
        if rule.pursues:
            changed = _pursue_row(rows, j, atoms, rule, wrong, scratch)
            rows.stale[j] = changed
        else:
            changed = code_row(rows, j, atoms, rule, wrong, scratch)
        if changed:
            for c in range(scratch.touched.shape[0]):
                scratch.touched[c] |= scratch.codes[0, c] | rows.codes[j, c]
            codes_changed += distance(rows.codes, j, scratch.codes[0])
            errors_changed += distance(rows.errors, j, scratch.errors[0])
    mark(scratch.touched, atoms.stale)
    return codes_changed, errors_changed


@inline
def drop_all(rows, j, atom_words, covers):
    """Remove all atoms from row j."""
    if covers:
        for w in range(rows.errors.shape[1]):
            unknown = unknown_word(rows, j, w)
            rows.errors[j, w] ^= rows.covered[j, w] & ~unknown
            rows.covered[j, w] = unknown
            rows.twice[j, w] = unknown
    for c in range(rows.codes.shape[1]):
        word = rows.codes[j, c]
        rows.codes[j, c] = NONE
        toggle_users(rows, j, word, c)
        while word != NONE and not covers:
            k, word = first_one(word, c)
            flip_errors(rows, j, atom_words, k)


@inline
def set_row(rows, j, atom_words, code, errors, covers):
    """Set the code of row j and the errors that it has with this code."""
    for c in range(code.shape[0]):
        toggle_users(rows, j, rows.codes[j, c] ^ code[c], c)
        rows.codes[j, c] = code[c]
    for w in range(errors.shape[0]):
        rows.errors[j, w] = errors[w]
    if covers:
        cover(rows, j, atom_words)


@inline
def errors_fixed(rows, atom_words, k, covers, start, stop):
    """Return how many errors atom k, used where it gains, would remove from rows start..stop."""
    size, total = weight(atom_words, k), 0
    for j in range(start, stop):
        total += max(0, toggle_gain(rows, j, atom_words, k, False, covers, size))
    return total


@kernel
def rate_atoms(rows, atoms, covers, start, stop, out):
    """out[k] = number of errors that atom k, used where it gains, would remove from rows start..stop."""
    rows, atoms, out = view((rows, atoms, out))
    for k in range(out.shape[0]):
        out[k] = errors_fixed(rows, atoms.words, k, covers, start, stop)


@inline
def recheck(rows, atoms, k, covers, start, stop):
    """Mark each row of start..stop as stale in which atom k, which it does not use, gains."""
    size = np.intp(atoms.weights[k])
    for j in range(start, stop):
        if rows.stale[j] == 0:
            rows.stale[j] = toggle_gain(rows, j, atoms.words, k, False, covers, size) > 0


@kernel
def recheck_rows(rows, changed, covers, start, stop, scratch):
    """Mark each row of start..stop as stale in which one of these changed atoms gains.

    A row that is not stale uses none of them (its errors would have changed), and no other atom gains in it. If none of
    the changed atoms gains, coding the row again would change nothing.
    """
    rows, changed, scratch = view((rows, changed, scratch))
    n_changed = changed.words.shape[0]
    if n_changed <= _FEW_ATOMS:
        for k in range(n_changed):
            recheck(rows, changed, k, covers, start, stop)
        return
    for j in range(start, stop):
        if rows.stale[j] == 0:
            first_gains(rows, j, changed, covers, None, scratch)
            rows.stale[j] = _largest(scratch.gains) > 0


@kernel
def code_at_prices(rows, atoms, rule, indices, from_scratch, scratch):
    """Code the rows with these indices; return the numbers of changed code and error bits.

    Rows are coded from their current codes or, with ``from_scratch``, from no atoms, which is kept where it is cheaper.
    """
    rows, atoms, rule, indices, scratch = view((rows, atoms, rule, indices, scratch))
    code, errors = scratch.codes[1], scratch.errors[1]  # those of a row before
    codes_changed, errors_changed = 0, 0
    for i in range(indices.shape[0]):
        j = indices[i]
        codes_changed += _drop_forbidden(rows, j, atoms.words, rule, scratch.bits)
        if weight(rows.errors, j) <= rule.residual_limit:
            continue
        copy_row(rows.codes, j, code)
        copy_row(rows.errors, j, errors)
        before = 0
        if from_scratch:
            before = priced_row(rows, j, rule.prices)
            drop_all(rows, j, atoms.words, rule.covers)
        code_row(rows, j, atoms, rule, weight(rows.errors, j), scratch)
        if from_scratch and priced_row(rows, j, rule.prices) >= before:
            set_row(rows, j, atoms.words, code, errors, rule.covers)
        else:
            codes_changed += distance(rows.codes, j, code)
            errors_changed += distance(rows.errors, j, errors)
    return codes_changed, errors_changed


@kernel
def restore_rows(rows, atom_words, indices, codes, errors, covers):
    """Restore the codes and errors of the rows with these indices."""
    rows, atom_words, indices, codes, errors = view((rows, atom_words, indices, codes, errors))
    for i in range(indices.shape[0]):
        set_row(rows, indices[i], atom_words, codes[i], errors[i], covers)


@kernel
def offer_atoms(rows, atoms, rule, start, stop, scratch, users):
    """users[k] = the rows of start..stop in which adding atom k alone gains."""
    rows, atoms, rule, scratch, users = view((rows, atoms, rule, scratch, users))
    gains = scratch.gains
    for j in range(start, stop):
        first_gains(rows, j, atoms, rule.covers, rule.prices, scratch)
        exclude_forbidden(rows, j, atoms.words, rule.prices, gains)
        if _largest(gains) > 0:
            for k in range(users.shape[0]):
                if gains[k] > 0:
                    users[k, j >> 6] |= ONE << np.uint64(j & 63)


@kernel
def find_nearest(rows, patterns, rule, start, stop, scratch, nearest):
    """nearest[j] = the lowest pattern that, alone, lowers the cost of row j most, or -1, for j in start..stop.

    The rows use no atom. It is -1 where no pattern lowers the cost, and for rows that are not coded.
    """
    rows, patterns, rule, scratch, nearest = view((rows, patterns, rule, scratch, nearest))
    for j in range(start, stop):
        nearest[j] = -1
        if weight(rows.errors, j) > rule.residual_limit:
            start_gains(rows, j, patterns, rule, scratch)
            nearest[j], _ = _best_addition(scratch.gains, patterns.weights, False)


@kernel
def price_rows(rows, prices, out):
    """out[j] = cost of the errors of row j and of the atoms it uses."""
    rows, prices, out = view((rows, prices, out))
    for j in range(out.shape[0]):
        out[j] = priced_row(rows, j, prices)
