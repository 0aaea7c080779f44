"""Greedy coding of rows: toggle the atom that serves best while one does (Algorithm 3, mended).

The gain of an atom is the number of wrong bits that toggling it takes away. Only *free* bits count: under XOR all
of them, under OR the bits that no used atom covers (to add an atom) or that it alone covers (to drop it). Toggling
changes some bits z of the row; with e the errors after it, every other gain changes by

    c * (|d & z & e| - |d & z & ~e|)        c = 2 under XOR, 1 under OR

and where z is the whole atom the second term is a table look-up less the first.
"""

from __future__ import annotations

import numpy as np

from ..jit import kernel, lowest_bit, piece
from .simd import add_overlaps, add_prices
from .words import ALL, NONE, ONE, copy_row, cover, differing, drop_gain, mark, price, toggle_gain, use_price, weight

_FEW_ATOMS = 8  # so many atoms are looked at one by one, not side by side
_USED = 1 << 30  # under OR, taken off the gain of a used atom: adding it again is not on offer


@piece
def _add(factor, atoms, prices, scratch, gains):
    """gains[l] += factor * (ones that bits[1] and atom l share, or their prices)."""
    if prices is None:
        add_overlaps(scratch.bits, 1, factor, atoms.slices, scratch.listed, gains)
    else:
        add_prices(scratch.bits, 1, factor, atoms.slices, scratch.listed, gains)


@piece
def _first_gains(rows, j, atoms, covers, prices, scratch):
    """gains[l] = what adding (XOR: toggling) atom l gains in row j.

    All ones of an atom are lost in a row of zeros; each that is wrong and free counts for two, and under OR each that
    is covered for one: it is not lost.
    """
    gains, bits = scratch.gains, scratch.bits
    for k in range(gains.shape[0]):
        gains[k] = -atoms.weights[k] - use_price(prices, k)
    for step in range(2 if covers else 1):
        for w in range(bits.shape[1]):
            covered = rows.covered[j, w] if covers else NONE
            bits[1, w] = covered if step == 1 else rows.errors[j, w] & ~covered
        _add(2 - step, atoms, prices, scratch, gains)


@piece
def _next_gains(rows, j, atoms, k, whole, covers, prices, scratch):
    """Bring the gains up to date after toggling atom k changed bits[0] of row j: first for the bits now wrong, then,
    where the atom's overlaps do not tell, for those now right."""
    gains, bits = scratch.gains, scratch.bits
    factor = 1 if covers else 2
    if whole:
        for i in range(gains.shape[0]):
            gains[i] -= atoms.overlaps[k, i]
    for step in range(1 if whole else 2):
        turn = NONE if step == 0 else ALL
        for w in range(bits.shape[1]):
            bits[1, w] = bits[0, w] & (rows.errors[j, w] ^ turn)
        _add(2 * factor if whole else factor * (1 - 2 * step), atoms, prices, scratch, gains)


@piece
def _largest(gains):
    """The largest positive gain, or zero."""
    best = gains.dtype.type(0)
    for k in range(gains.shape[0]):
        if gains[k] > best:
            best = gains[k]
    return np.intp(best)


@piece
def _first_with(gains, gain):
    """The lowest atom with this gain."""
    k = 0
    while gains[k] != gain:
        k += 1
    return k


@piece
def _best_ratio(gains, weights):
    """The lowest atom with the largest gain a bit; there is one with a positive gain."""
    best = -1
    for k in range(gains.shape[0]):
        if gains[k] > 0:
            ahead = best < 0 or np.int64(gains[k]) * weights[best] > np.int64(gains[best]) * weights[k]
            if ahead:
                best = k
    return best


@piece
def _best_addition(gains, weights, by_ratio):
    """The atom to add (XOR: to toggle) and its gain; -1 and 0 when none gains."""
    gain = _largest(gains)
    if gain == 0:
        return -1, gain
    best = _best_ratio(gains, weights) if by_ratio else _first_with(gains, gain)
    return best, np.intp(gains[best])


@piece
def _or_better_drop(rows, j, atoms, rule, gains, best, gain):
    """The given toggle, or, where that is better, one of an atom in use."""
    for c in range(rows.codes.shape[1]):
        word = rows.codes[j, c]
        while word != NONE:
            k = 64 * c + lowest_bit(word)
            word &= word - ONE
            mine = drop_gain(rows, j, atoms, k, rule.prices) if rule.covers else np.intp(gains[k])
            if mine <= 0:
                continue
            if best < 0:
                ahead = 1
            elif rule.by_ratio:
                ahead = mine * np.intp(atoms.weights[best]) - gain * np.intp(atoms.weights[k])
            else:
                ahead = mine - gain
            if ahead > 0 or (ahead == 0 and k < best):
                best = k
                gain = mine
    return best, gain


@piece
def _toggle(rows, j, atoms, k, covers, bits):
    """Toggle atom k in row j; bits[0] receives the bits of the row that this changed.

    Returns whether those are the whole atom, and whether the row now uses it.
    """
    place = k >> 6
    bit = ONE << np.uint64(k & 63)
    rows.codes[j, place] ^= bit
    rows.users[k, j >> 6] ^= ONE << np.uint64(j & 63)
    adds = rows.codes[j, place] & bit != NONE
    whole = True
    for w in range(bits.shape[1]):
        atom = atoms.words[k, w]
        change = atom
        if covers:
            covered = rows.covered[j, w]
            if adds:
                change &= ~covered
                rows.twice[j, w] |= covered & atom
                rows.covered[j, w] = covered | atom
            else:
                change &= covered & ~rows.twice[j, w]
            whole &= change == atom
        bits[0, w] = change
        rows.errors[j, w] ^= change
    if covers and not adds:
        cover(rows, j, atoms.words)
    return whole, adds


@piece
def _mark_used(gains, codes, j, covers, prices):
    """For the atoms that row j uses: under OR take them out of the offer, under XOR their price is what to gain."""
    for c in range(codes.shape[1]):
        word = codes[j, c]
        while word != NONE:
            k = 64 * c + lowest_bit(word)
            word &= word - ONE
            if covers:
                gains[k] -= _USED
            else:
                gains[k] += 2 * use_price(prices, k)


@piece
def start_gains(rows, j, atoms, rule, scratch):
    """gains[l] = what toggling atom l gains in row j as it is."""
    _first_gains(rows, j, atoms, rule.covers, rule.prices, scratch)
    _mark_used(scratch.gains, rows.codes, j, rule.covers, rule.prices)


@piece
def _turn(rows, j, atoms, k, rule, scratch):
    """Toggle atom k in row j and bring the gains up to date; returns whether the row now uses it."""
    gains = scratch.gains
    whole, adds = _toggle(rows, j, atoms, k, rule.covers, scratch.bits)
    _next_gains(rows, j, atoms, k, whole, rule.covers, rule.prices, scratch)
    if rule.covers:
        gains[k] += -_USED if adds else _USED
    else:
        gains[k] += (2 if adds else -2) * use_price(rule.prices, k)
    return adds


@piece
def _gains_without(rows, j, atoms, k, rule, scratch):
    """trial[l] = what toggling atom l would gain after dropping atom k, which row j uses; returns the gain of that.

    Under XOR the gain of l rises by twice what d_k and d_l share less four times what they share of the errors. Under
    OR the bits that k alone covers become free, each wrong one right and each right one wrong.
    """
    trial, bits = scratch.trial, scratch.bits
    if rule.covers:
        gain = drop_gain(rows, j, atoms, k, rule.prices)
        for i in range(trial.shape[0]):
            trial[i] = scratch.gains[i]
        for step in range(2):
            turn = NONE if step == 0 else ALL
            for w in range(bits.shape[1]):
                alone = atoms.words[k, w] & rows.covered[j, w] & ~rows.twice[j, w]
                bits[1, w] = alone & (rows.errors[j, w] ^ turn)
            _add(2 * step - 1, atoms, rule.prices, scratch, trial)
        return gain
    for i in range(trial.shape[0]):
        trial[i] = scratch.gains[i] + atoms.overlaps[k, i]
    for w in range(bits.shape[1]):
        bits[1, w] = atoms.words[k, w] & rows.errors[j, w]
    _add(-4, atoms, rule.prices, scratch, trial)
    return np.intp(scratch.gains[k])


@piece
def _best_swap(rows, j, atoms, rule, prices, scratch):
    """The first used atom that can be dropped for another one, and the best such; -1 and -1 when there is none."""
    if prices is None:
        return -1, -1
    for c in range(rows.codes.shape[1]):
        word = rows.codes[j, c]
        while word != NONE:
            k = 64 * c + lowest_bit(word)
            word &= word - ONE
            gain = _gains_without(rows, j, atoms, k, rule, scratch)
            scratch.trial[k] = -_USED
            best = _largest(scratch.trial)
            if best > 0 and best + gain > 0:
                return k, _first_with(scratch.trial, best)
    return -1, -1


@piece
def _code_row(rows, j, atoms, rule, wrong, scratch):
    """Toggle atoms in row j, with so many wrong bits, while one gains; returns whether any was.

    ``scratch`` then holds the code and the errors that the row had.
    """
    gains = scratch.gains
    used = weight(rows.codes, j)
    start_gains(rows, j, atoms, rule, scratch)
    toggled = False
    while wrong > rule.residual_limit:
        k, gain, instead = -1, 0, -1
        if used < rule.max_atoms:
            k, gain = _best_addition(gains, atoms.weights, rule.by_ratio)
        if rule.covers or used >= rule.max_atoms:
            k, gain = _or_better_drop(rows, j, atoms, rule, gains, k, gain)
        if k < 0 and rule.swaps:
            k, instead = _best_swap(rows, j, atoms, rule, rule.prices, scratch)
        if k < 0:
            break
        if not toggled:
            toggled = True
            copy_row(rows.codes, j, scratch.code)
            copy_row(rows.errors, j, scratch.errors)
        used += 1 if _turn(rows, j, atoms, k, rule, scratch) else -1
        if instead >= 0:
            used += 1 if _turn(rows, j, atoms, instead, rule, scratch) else -1
        wrong = weight(rows.errors, j)
    return toggled


@kernel
def code_rows(rows, atoms, rule, start, stop, scratch):
    """Code the stale rows among start..stop, from the codes they have; returns the bits of codes and errors changed.

    The atoms of the rows whose code changed become stale. ``start`` is a multiple of 64, so that no two blocks of
    rows share a word of ``users``.
    """
    codes_changed = 0
    errors_changed = 0
    for j in range(start, stop):
        if rows.stale[j] == 0:
            continue
        rows.stale[j] = 0
        wrong = weight(rows.errors, j)
        if wrong > rule.residual_limit and _code_row(rows, j, atoms, rule, wrong, scratch):
            codes_changed += differing(rows.codes, j, scratch.code)
            errors_changed += differing(rows.errors, j, scratch.errors)
            for c in range(scratch.touched.shape[0]):
                scratch.touched[c] |= scratch.code[c] | rows.codes[j, c]
    mark(scratch.touched, atoms.stale)
    return codes_changed, errors_changed


@piece
def drop_all(rows, j, atoms, covers):
    """Row j as it is without any atom."""
    if covers:
        for w in range(rows.errors.shape[1]):
            rows.errors[j, w] ^= rows.covered[j, w]
            rows.covered[j, w] = NONE
            rows.twice[j, w] = NONE
    for c in range(rows.codes.shape[1]):
        word = rows.codes[j, c]
        rows.codes[j, c] = NONE
        while word != NONE:
            k = 64 * c + lowest_bit(word)
            word &= word - ONE
            rows.users[k, j >> 6] ^= ONE << np.uint64(j & 63)
            if not covers:
                for w in range(rows.errors.shape[1]):
                    rows.errors[j, w] ^= atoms.words[k, w]


@piece
def set_row(rows, j, atoms, code, errors, covers):
    """Give row j this code, with which it has these errors."""
    for c in range(code.shape[0]):
        word = rows.codes[j, c] ^ code[c]
        rows.codes[j, c] = code[c]
        while word != NONE:
            rows.users[64 * c + lowest_bit(word), j >> 6] ^= ONE << np.uint64(j & 63)
            word &= word - ONE
    for w in range(errors.shape[0]):
        rows.errors[j, w] = errors[w]
    if covers:
        cover(rows, j, atoms.words)


@kernel
def rate_atoms(rows, atoms, covers, start, stop, out):
    """out[k] = wrong bits that atom k, used where that helps, would take away from the rows among start..stop."""
    for k in range(out.shape[0]):
        size = weight(atoms.words, k)
        total = 0
        for j in range(start, stop):
            total += max(0, toggle_gain(rows, j, atoms, k, False, covers, size))
        out[k] = total


@kernel
def recheck_rows(rows, changed, covers, start, stop, scratch):
    """Make stale each row among start..stop that could use one of these changed atoms.

    A row that is not stale uses none of them (its errors would have changed with them), and no other atom serves
    it: if none of the changed atoms does now, coding it again would change nothing.
    """
    n_changed = changed.words.shape[0]
    if n_changed <= _FEW_ATOMS:
        for k in range(n_changed):
            for j in range(start, stop):
                if rows.stale[j] == 0:
                    rows.stale[j] = toggle_gain(rows, j, changed, k, False, covers, changed.weights[k]) > 0
        return
    for j in range(start, stop):
        if rows.stale[j] == 0:
            _first_gains(rows, j, changed, covers, None, scratch)
            rows.stale[j] = _largest(scratch.gains) > 0


@piece
def _count_changes(words, j, before, changes):
    """changes[i] += 1 where bit i of row j became one, -= 1 where it was one before; returns how many did."""
    count = 0
    for w in range(words.shape[1]):
        word = words[j, w] ^ before[w]
        while word != NONE:
            i = 64 * w + lowest_bit(word)
            changes[i] += 1 if (words[j, w] >> np.uint64(i & 63)) & ONE != NONE else -1
            count += 1
            word &= word - ONE
    return count


@kernel
def code_at_prices(rows, atoms, rule, listed, afresh, codes, errors, more_wrong, more_uses, scratch):
    """Code these rows, and add up in how many more rows each bit is wrong and each atom used.

    They are coded from the codes they have, or ``afresh``, from nothing, where that ends cheaper. ``codes`` and
    ``errors`` receive what they had, or, with room for one row only, what the last had. Returns the bits of codes and
    errors changed.
    """
    codes_changed = 0
    errors_changed = 0
    for i in range(listed.shape[0]):
        j = listed[i]
        at = min(i, codes.shape[0] - 1)
        copy_row(rows.codes, j, codes[at])
        copy_row(rows.errors, j, errors[at])
        if weight(rows.errors, j) <= rule.residual_limit:
            continue
        before = 0
        if afresh:
            before = price(rows.codes, rows.errors, j, rule.prices)
            drop_all(rows, j, atoms, rule.covers)
        _code_row(rows, j, atoms, rule, weight(rows.errors, j), scratch)
        if afresh and price(rows.codes, rows.errors, j, rule.prices) >= before:
            set_row(rows, j, atoms, codes[at], errors[at], rule.covers)
        else:
            codes_changed += _count_changes(rows.codes, j, codes[at], more_uses)
            errors_changed += _count_changes(rows.errors, j, errors[at], more_wrong)
    return codes_changed, errors_changed


@kernel
def put_back(rows, atoms, listed, codes, errors, covers):
    """Give the listed rows back the codes and errors they had."""
    for i in range(listed.shape[0]):
        set_row(rows, listed[i], atoms, codes[i], errors[i], covers)


@kernel
def offer_atoms(rows, atoms, rule, start, stop, scratch, users):
    """users[k] = the rows among start..stop in which adding atom k, alone, gains."""
    gains = scratch.gains
    for j in range(start, stop):
        _first_gains(rows, j, atoms, rule.covers, rule.prices, scratch)
        if _largest(gains) > 0:
            for k in range(users.shape[0]):
                if gains[k] > 0:
                    users[k, j >> 6] |= ONE << np.uint64(j & 63)
