"""Greedy coding of rows: toggle the best atom while one gains (Algorithm 3, corrected).

The gain of an atom is the number of errors that toggling it removes. Only *free* bits count: under XOR all known bits,
under OR those known bits that no used atom covers (to add an atom) or that only this atom covers (to drop it). A toggle
changes some bits z of the row. With e the errors after it, every other gain changes by

    c * (|d & z & e| - |d & z & ~e|)        c = 2 under XOR, 1 under OR

If z is the complete atom, the second term is a table look-up minus the first.

At prices, each bit counts as much as an error there costs. Under OR, a missed one and an added one may cost differently
(`Prices.added`), and in some columns no one may be added: atoms that would do that are excluded.
"""

from __future__ import annotations

import numpy as np

from ..jit import inline, kernel, lowest_bit
from .simd import add_overlaps, add_prices
from .words import (
    ALL,
    NONE,
    ONE,
    all_free,
    copy_row,
    cover,
    distance,
    drop_gain,
    fixed_word,
    has_costs,
    has_unknown,
    mark,
    priced_row,
    toggle_gain,
    unknown_word,
    use_price,
    weight,
)  # fmt: skip

_FEW_ATOMS = 8  # up to this many atoms, gains are computed one by one instead of in vectors
_MISSED, _ADDED, _MEAN = range(3)  # prices of errors
_USED = 1 << 30  # subtracted from the gain of a used atom under OR, so that it is not added again


@inline
def _add(factor, kind, atoms, prices, scratch, gains):
    """gains[l] += factor * (number, or total price, of the ones that bits[1] and atom l share).

    ``kind`` is the price to take: that of missed ones, of added ones, or their mean.
    """
    if prices is None:
        add_overlaps(scratch.bits, 1, factor, atoms.slices, scratch.listed, gains)
    else:
        bits = prices.bits
        if has_costs(prices) and kind != _MISSED:
            bits = prices.added if kind == _ADDED else prices.mean
        add_prices(scratch.bits, 1, factor, atoms, bits, scratch.listed, gains)


@inline
def _first_gains(rows, j, atoms, covers, prices, scratch):
    """gains[l] = gain of adding (XOR: toggling) atom l in row j.

    Every one of the atom counts -1; those that are wrong and free count +2, and those that are not free +1. With own
    costs, these are the price of an added one, twice the mean, and the price of an added one.
    """
    gains, bits = scratch.gains, scratch.bits
    for k in range(gains.shape[0]):
        gains[k] = -atoms.weights[k] - use_price(prices, k)
    for step in range(1 if all_free(rows, covers) else 2):
        for w in range(bits.shape[1]):
            fixed = fixed_word(rows, j, w, covers)
            bits[1, w] = fixed if step == 1 else rows.errors[j, w] & ~fixed
        _add(2 - step, _ADDED if step == 1 else _MEAN, atoms, prices, scratch, gains)


@inline
def _next_gains(rows, j, atoms, k, complete, adds, covers, prices, scratch):
    """Update the gains after toggling atom k, which the row uses now if it ``adds``, changed bits[0] of row j.

    First for the bits that are now wrong; then for those now right, unless ``complete`` (all bits of the atom changed),
    where the table of overlaps gives them. What an atom made wrong are added ones, what a dropped one did, missed ones.
    """
    gains, bits = scratch.gains, scratch.bits
    factor = 1 if covers else 2
    if complete:
        for i in range(gains.shape[0]):
            gains[i] -= atoms.overlaps[k, i]
    for step in range(1 if complete else 2):
        flip = NONE if step == 0 else ALL
        for w in range(bits.shape[1]):
            bits[1, w] = bits[0, w] & (rows.errors[j, w] ^ flip)
        kind = _ADDED if adds == (step == 0) else _MISSED
        _add(2 * factor if complete else factor * (1 - 2 * step), kind, atoms, prices, scratch, gains)


@inline
def _largest(gains):
    """Return the largest positive gain, or zero."""
    best = gains.dtype.type(0)
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
            k = 64 * c + lowest_bit(word)
            word &= word - ONE
            if toggled < 0 or atoms.overlaps[toggled, k] != 0:
                drops[k] = drop_gain(rows, j, atoms.words, k, prices)


@inline
def _best_drop(rows, j, weights, by_ratio, drops, best, gain):
    """Return the given toggle, or a better one of an atom in use."""
    for c in range(rows.codes.shape[1]):
        word = rows.codes[j, c]
        while word != NONE:
            k = 64 * c + lowest_bit(word)
            word &= word - ONE
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
def toggle(rows, j, atom_words, k, covers, bits):
    """Toggle atom k in row j and write the changed bits to bits[0].

    Return whether they are the complete atom, and whether the row now uses it.
    """
    c = k >> 6
    bit = ONE << np.uint64(k & 63)
    rows.codes[j, c] ^= bit
    rows.users[k, j >> 6] ^= ONE << np.uint64(j & 63)
    adds = rows.codes[j, c] & bit != NONE
    complete = True
    for w in range(bits.shape[1]):
        atom = atom_words[k, w]
        change = atom
        if covers:
            covered = rows.covered[j, w]
            if adds:
                change &= ~covered
                rows.twice[j, w] |= covered & atom
                rows.covered[j, w] = covered | atom
            else:
                change &= covered & ~rows.twice[j, w]
            complete &= change == atom
        elif has_unknown(rows):
            change &= ~rows.unknown[j, w]
            complete &= change == atom
        bits[0, w] = change
        rows.errors[j, w] ^= change
    if covers and not adds:
        cover(rows, j, atom_words)
    return complete, adds


@inline
def _mark_used(gains, codes, j, covers, prices):
    """Adjust the gains of the atoms that row j uses: excluded under OR; under XOR dropping one gains its price."""
    for c in range(codes.shape[1]):
        word = codes[j, c]
        while word != NONE:
            k = 64 * c + lowest_bit(word)
            word &= word - ONE
            if covers:
                gains[k] -= _USED
            else:
                gains[k] += 2 * use_price(prices, k)


@inline
def start_gains(rows, j, atoms, rule, scratch):
    """gains[l] = gain of toggling atom l in row j."""
    _first_gains(rows, j, atoms, rule.covers, rule.prices, scratch)
    _mark_used(scratch.gains, rows.codes, j, rule.covers, rule.prices)
    _exclude_forbidden(rows, j, atoms.words, rule.prices, scratch.gains)


@inline
def _adds_forbidden(rows, j, atom_words, k, prices):
    """Return whether atom k has a column in which no one may be added, and in which row j has none."""
    lacked = NONE
    for w in range(prices.forbidden.shape[0]):
        lacked |= atom_words[k, w] & prices.forbidden[w] & ~(rows.errors[j, w] ^ rows.covered[j, w])
    return lacked != NONE


@inline
def _exclude_forbidden(rows, j, atom_words, prices, gains):
    """Exclude the atoms that would add a one to row j where none may be added; the row uses none of them."""
    if prices is None:
        return
    if prices.forbidden.shape[0] > 0:
        for k in range(atom_words.shape[0]):
            if _adds_forbidden(rows, j, atom_words, k, prices):
                gains[k] -= _USED


@inline
def _drop_forbidden(rows, j, atom_words, rule, bits):
    """Drop the atoms of row j that add a one where none may be added; return how many."""
    n_dropped = 0
    if rule.prices.forbidden.shape[0] > 0:
        for k in range(atom_words.shape[0]):
            uses = rows.codes[j, k >> 6] >> np.uint64(k & 63) & ONE != NONE
            if uses and _adds_forbidden(rows, j, atom_words, k, rule.prices):
                toggle(rows, j, atom_words, k, rule.covers, bits)
                n_dropped += 1
    return n_dropped


@inline
def _is_mostly_alone(rows, j, atom_words):
    """Return whether the bits of the atoms that row j uses are more often covered by one of them than by several."""
    n_bits = 0
    for c in range(rows.codes.shape[1]):
        word = rows.codes[j, c]
        while word != NONE:
            n_bits += weight(atom_words, 64 * c + lowest_bit(word))
            word &= word - ONE
    return n_bits < 2 * weight(rows.covered, j)


@inline
def _start_gains_of_code(rows, j, atoms, rule, prices, scratch):
    """`start_gains` for a row that uses these atoms: under OR, what they cover is the sum of their overlaps.

    Bits that several of them cover are subtracted.
    """
    if prices is None:  # most rows are not stale: not worth compiling it
        start_gains(rows, j, atoms, rule, scratch)
        return
    gains, bits = scratch.gains, scratch.bits
    is_plain = rule.covers and not has_unknown(rows) and not has_costs(prices)
    if not is_plain or not _is_mostly_alone(rows, j, atoms.words):
        start_gains(rows, j, atoms, rule, scratch)
        return
    for k in range(gains.shape[0]):
        gains[k] = -atoms.weights[k] - use_price(rule.prices, k)
    for w in range(bits.shape[1]):
        bits[0, w] = NONE
    c, word, factor = -1, NONE, -1
    while factor < 0:
        while word == NONE and c + 1 < rows.codes.shape[1]:
            c += 1
            word = rows.codes[j, c]
        if word == NONE:  # after the last atom: the errors
            factor = 2
            for w in range(bits.shape[1]):
                bits[1, w] = rows.errors[j, w] & ~rows.covered[j, w]
        else:
            k = 64 * c + lowest_bit(word)
            word &= word - ONE
            for i in range(gains.shape[0]):
                gains[i] += atoms.overlaps[k, i]
            gains[k] -= _USED
            for w in range(bits.shape[1]):
                bits[1, w] = bits[0, w] & atoms.words[k, w]
                bits[0, w] |= atoms.words[k, w]
        _add(factor, _MISSED, atoms, rule.prices, scratch, gains)


@inline
def _overlaps_tell_gains(prices):
    """Return whether the table of overlaps has the price of all errors in the bits that atoms share."""
    if prices is None:
        return True
    return not has_costs(prices)


@inline
def _toggle_and_update(rows, j, atoms, k, rule, scratch):
    """Toggle atom k in row j and update the gains; return whether the row now uses it."""
    gains = scratch.gains
    complete, adds = toggle(rows, j, atoms.words, k, rule.covers, scratch.bits)
    complete &= _overlaps_tell_gains(rule.prices)
    _next_gains(rows, j, atoms, k, complete, adds, rule.covers, rule.prices, scratch)
    if rule.covers:
        gains[k] += -_USED if adds else _USED
    else:
        gains[k] += (2 if adds else -2) * use_price(rule.prices, k)
    return adds


@inline
def _gains_without(rows, j, atoms, k, rule, scratch):
    """trial[l] = gain of toggling atom l after dropping atom k, which row j uses.

    The bits that change become right where they were wrong, and vice versa. Under OR they are those that only k covers,
    which become free. Under XOR, where all bits of the row are known, they are all bits of k, and the gain of l rises
    by 2 |d_k & d_l| - 4 |d_k & d_l & errors|.
    """
    trial, bits = scratch.trial, scratch.bits
    complete = all_free(rows, rule.covers)
    for i in range(trial.shape[0]):
        trial[i] = scratch.gains[i]
    if complete:
        for i in range(trial.shape[0]):
            trial[i] += atoms.overlaps[k, i]
    factor = 1 if rule.covers else 2
    for step in range(1 if complete else 2):
        flip = NONE if step == 0 else ALL
        for w in range(bits.shape[1]):
            change = atoms.words[k, w]
            if rule.covers:
                change &= rows.covered[j, w] & ~rows.twice[j, w]
            else:
                change &= ~unknown_word(rows, j, w)
            bits[1, w] = change & (rows.errors[j, w] ^ flip)
        kind = _ADDED if step == 0 else _MISSED
        _add(-2 * factor if complete else factor * (2 * step - 1), kind, atoms, rule.prices, scratch, trial)


@inline
def _may_replace(gains, overlaps, k, gain):
    """Return whether another atom might gain more without atom k, whose drop gains ``gain``, than that drop loses.

    Without k, the gain of another atom rises by its overlap with k at most.
    """
    own = gains[k]
    gains[k] = -_USED
    best = gains.dtype.type(0)
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
            k = 64 * c + lowest_bit(word)
            word &= word - ONE
            gain = np.intp(drops[k])
            if not _may_replace(scratch.gains, atoms.overlaps, k, gain):
                continue
            _gains_without(rows, j, atoms, k, rule, scratch)
            scratch.trial[k] = -_USED
            best = _largest(scratch.trial)
            if best > 0 and best + gain > 0:
                return k, _first_with(scratch.trial, best)
    return -1, -1


@inline
def _code_row(rows, j, atoms, rule, wrong, scratch):
    """Toggle atoms in row j, which has ``wrong`` errors, while one gains; return whether the row changed.

    In this case ``scratch`` contains its previous code and errors.
    """
    gains = scratch.gains
    used = weight(rows.codes, j)
    _start_gains_of_code(rows, j, atoms, rule, rule.prices, scratch)
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
            copy_row(rows.codes, j, scratch.code)
            copy_row(rows.errors, j, scratch.errors)
        last = k if replacement < 0 else -1
        while k >= 0:  # twice for a swap
            used += 1 if _toggle_and_update(rows, j, atoms, k, rule, scratch) else -1
            k, replacement = replacement, -1
        wrong = weight(rows.errors, j)
    return toggled


@kernel
def code_rows(rows, atoms, rule, start, stop, scratch):
    """Code the stale rows of start..stop from their current codes; return the numbers of changed code and error bits.

    Atoms of rows that changed become stale. ``start`` is a multiple of 64, so that no two chunks share a word of
    ``users``.
    """
    codes_changed = 0
    errors_changed = 0
    for j in range(start, stop):
        if rows.stale[j] == 0:
            continue
        rows.stale[j] = 0
        wrong = weight(rows.errors, j)
        if wrong > rule.residual_limit and _code_row(rows, j, atoms, rule, wrong, scratch):
            codes_changed += distance(rows.codes, j, scratch.code)
            errors_changed += distance(rows.errors, j, scratch.errors)
            for c in range(scratch.touched.shape[0]):
                scratch.touched[c] |= scratch.code[c] | rows.codes[j, c]
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
        while word != NONE:
            k = 64 * c + lowest_bit(word)
            word &= word - ONE
            rows.users[k, j >> 6] ^= ONE << np.uint64(j & 63)
            if not covers:
                for w in range(rows.errors.shape[1]):
                    rows.errors[j, w] ^= atom_words[k, w] & ~unknown_word(rows, j, w)


@inline
def set_row(rows, j, atom_words, code, errors, covers):
    """Set the code of row j and the errors that it has with this code."""
    for c in range(code.shape[0]):
        word = rows.codes[j, c] ^ code[c]
        rows.codes[j, c] = code[c]
        while word != NONE:
            rows.users[64 * c + lowest_bit(word), j >> 6] ^= ONE << np.uint64(j & 63)
            word &= word - ONE
    for w in range(errors.shape[0]):
        rows.errors[j, w] = errors[w]
    if covers:
        cover(rows, j, atom_words)


@kernel
def rate_atoms(rows, atoms, covers, start, stop, out):
    """out[k] = number of errors that atom k, used where it gains, would remove from rows start..stop."""
    for k in range(out.shape[0]):
        size = weight(atoms.words, k)
        total = 0
        for j in range(start, stop):
            total += max(0, toggle_gain(rows, j, atoms.words, k, False, covers, size))
        out[k] = total


@kernel
def recheck_rows(rows, changed, covers, start, stop, scratch):
    """Mark each row of start..stop as stale in which one of these changed atoms gains.

    A row that is not stale uses none of them (its errors would have changed), and no other atom gains in it. If none of
    the changed atoms gains, coding the row again would change nothing.
    """
    n_changed = changed.words.shape[0]
    if n_changed <= _FEW_ATOMS:
        for k in range(n_changed):
            size = np.intp(changed.weights[k])
            for j in range(start, stop):
                if rows.stale[j] == 0:
                    rows.stale[j] = toggle_gain(rows, j, changed.words, k, False, covers, size) > 0
        return
    for j in range(start, stop):
        if rows.stale[j] == 0:
            _first_gains(rows, j, changed, covers, None, scratch)
            rows.stale[j] = _largest(scratch.gains) > 0


@inline
def _count_changes(words, j, before, changes):
    """Add 1 to changes[i] where bit i of row j became one, -1 where it became zero."""
    for w in range(words.shape[1]):
        word = words[j, w] ^ before[w]
        while word != NONE:
            i = 64 * w + lowest_bit(word)
            changes[i] += 1 if (words[j, w] >> np.uint64(i & 63)) & ONE != NONE else -1
            word &= word - ONE


@kernel
def code_at_prices(rows, atoms, rule, indices, from_scratch, code, errors, scratch):
    """Code the rows with these indices; return the numbers of changed code and error bits.

    Rows are coded from their current codes or, with ``from_scratch``, from no atoms, which is kept where it is cheaper.
    ``code`` and ``errors`` hold those of a row meanwhile.
    """
    codes_changed = 0
    errors_changed = 0
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
        _code_row(rows, j, atoms, rule, weight(rows.errors, j), scratch)
        if from_scratch and priced_row(rows, j, rule.prices) >= before:
            set_row(rows, j, atoms.words, code, errors, rule.covers)
        else:
            codes_changed += distance(rows.codes, j, code)
            errors_changed += distance(rows.errors, j, errors)
    return codes_changed, errors_changed


@kernel
def code_without(rows, atoms, rule, refused, tested, tests, indices, start, stop, own, wrong, added, uses, scratch):
    """Count what changes if rows are coded without an atom; the rows are left as they are.

    Entry i of start..stop is row indices[i], without atom tested[tests[i]], whose price is ``refused``. The changes
    in errors per column and uses per atom are added to rows tests[i] of ``wrong`` and ``uses``, and those in added ones
    to ``added``, if it has rows. ``own`` has one row, which is coded.
    """
    for i in range(start, stop):
        j = indices[i]
        copy_row(rows.codes, j, own.codes[0])
        copy_row(rows.errors, j, own.errors[0])
        if rule.covers:
            copy_row(rows.covered, j, own.covered[0])
            copy_row(rows.twice, j, own.twice[0])
        if rows.unknown.shape[0] > 0:
            copy_row(rows.unknown, j, own.unknown[0])
        k = tested[tests[i]]
        price = rule.prices.uses[k]
        rule.prices.uses[k] = refused
        _code_row(own, 0, atoms, rule, weight(own.errors, 0), scratch)
        rule.prices.uses[k] = price
        _count_changes(own.codes, 0, rows.codes[j], uses[tests[i]])
        _count_changes(own.errors, 0, rows.errors[j], wrong[tests[i]])
        if added.shape[0] > 0:
            for w in range(own.errors.shape[1]):
                own.errors[0, w] &= own.covered[0, w]
                scratch.errors[w] = rows.errors[j, w] & rows.covered[j, w]
            _count_changes(own.errors, 0, scratch.errors, added[tests[i]])


@kernel
def restore_rows(rows, atom_words, indices, codes, errors, covers):
    """Restore the codes and errors of the rows with these indices."""
    for i in range(indices.shape[0]):
        set_row(rows, indices[i], atom_words, codes[i], errors[i], covers)


@kernel
def offer_atoms(rows, atoms, rule, start, stop, scratch, users):
    """users[k] = the rows of start..stop in which adding atom k alone gains."""
    gains = scratch.gains
    for j in range(start, stop):
        _first_gains(rows, j, atoms, rule.covers, rule.prices, scratch)
        _exclude_forbidden(rows, j, atoms.words, rule.prices, gains)
        if _largest(gains) > 0:
            for k in range(users.shape[0]):
                if gains[k] > 0:
                    users[k, j >> 6] |= ONE << np.uint64(j & 63)
