"""Gains of atoms in a row: how many errors toggling each atom removes, and how gains change with a toggle.

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

from ..jit import inline
from .dictionary import add_overlaps, add_prices
from .words import (
    ALL,
    NONE,
    ONE,
    all_free,
    cover,
    first_one,
    fixed_word,
    has_costs,
    has_unknown,
    unknown_word,
    use_price,
    weight,
)

_MISSED, _ADDED, _MEAN = range(3)  # prices of errors
USED = 1 << 30  # subtracted from the gain of a used atom under OR, so that it is not added again


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
def first_gains(rows, j, atoms, covers, prices, scratch):
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
def update_gains(gains, sign, errors, j, atoms, k, complete, adds, covers, prices, scratch):
    """Update gains after a toggle of atom k changed bits[0] of row j, if ``sign`` is 1; before it, if it is -1.

    ``errors`` are those of the rows now. First for the bits that are wrong; then for those that are right, unless
    ``complete`` (all bits of the atom change), where the table of overlaps gives them. What an atom that a toggle
    ``adds`` makes wrong are added ones, what one that it drops does, missed ones.
    """
    bits = scratch.bits
    factor = sign if covers else 2 * sign
    if complete:
        for i in range(gains.shape[0]):
            gains[i] -= sign * atoms.overlaps[k, i]
    for step in range(1 if complete else 2):
        flip = NONE if step == 0 else ALL
        for w in range(bits.shape[1]):
            bits[1, w] = bits[0, w] & (errors[j, w] ^ flip)
        kind = _ADDED if adds == (step == 0) else _MISSED
        _add(2 * factor if complete else factor * (1 - 2 * step), kind, atoms, prices, scratch, gains)


@inline
def _mark_used(gains, codes, j, covers, prices):
    """Adjust the gains of the atoms that row j uses: excluded under OR; under XOR dropping one gains its price."""
    for c in range(codes.shape[1]):
        word = codes[j, c]
        while word != NONE:
            k, word = first_one(word, c)
            if covers:
                gains[k] -= USED
            else:
                gains[k] += 2 * use_price(prices, k)


@inline
def adds_forbidden(rows, j, atom_words, k, prices):
    """Return whether atom k has a column in which no one may be added, and in which row j has none."""
    lacked = NONE
    for w in range(prices.forbidden.shape[0]):
        lacked |= atom_words[k, w] & prices.forbidden[w] & ~(rows.errors[j, w] ^ rows.covered[j, w])
    return lacked != NONE


@inline
def exclude_forbidden(rows, j, atom_words, prices, gains):
    """Exclude the atoms that would add a one to row j where none may be added; the row uses none of them."""
    if prices is None:
        return
    if prices.forbidden.shape[0] > 0:
        for k in range(atom_words.shape[0]):
            if adds_forbidden(rows, j, atom_words, k, prices):
                gains[k] -= USED


@inline
def start_gains(rows, j, atoms, rule, scratch):
    """gains[l] = gain of toggling atom l in row j."""
    first_gains(rows, j, atoms, rule.covers, rule.prices, scratch)
    _mark_used(scratch.gains, rows.codes, j, rule.covers, rule.prices)
    exclude_forbidden(rows, j, atoms.words, rule.prices, scratch.gains)


@inline
def _is_mostly_alone(rows, j, atom_words):
    """Return whether the bits of the atoms that row j uses are more often covered by one of them than by several."""
    n_bits = 0
    for c in range(rows.codes.shape[1]):
        word = rows.codes[j, c]
        while word != NONE:
            k, word = first_one(word, c)
            n_bits += weight(atom_words, k)
    return n_bits < 2 * weight(rows.covered, j)


@inline
def start_gains_of_code(rows, j, atoms, rule, prices, scratch):
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
            k, word = first_one(word, c)
            for i in range(gains.shape[0]):
                gains[i] += atoms.overlaps[k, i]
            gains[k] -= USED
            for w in range(bits.shape[1]):
                bits[1, w] = bits[0, w] & atoms.words[k, w]
                bits[0, w] |= atoms.words[k, w]
        _add(factor, _MISSED, atoms, rule.prices, scratch, gains)


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
def toggle_and_update(rows, j, atoms, k, rule, scratch):
    """Toggle atom k in row j and update the gains; return whether the row now uses it."""
    gains = scratch.gains
    complete, adds = toggle(rows, j, atoms.words, k, rule.covers, scratch.bits)
    complete &= not has_costs(rule.prices)  # otherwise, overlaps do not have the price of all errors
    update_gains(gains, 1, rows.errors, j, atoms, k, complete, adds, rule.covers, rule.prices, scratch)
    if rule.covers:
        gains[k] += -USED if adds else USED
    else:
        gains[k] += (2 if adds else -2) * use_price(rule.prices, k)
    return adds


@inline
def gains_without(rows, j, atoms, k, rule, scratch):
    """trial[l] = gain of toggling atom l after dropping atom k, which row j uses.

    The bits that change are, under OR, those that only k covers, and under XOR all known bits of k. What k made wrong
    are added ones.
    """
    trial = scratch.trial
    for i in range(trial.shape[0]):
        trial[i] = scratch.gains[i]
    for w in range(scratch.bits.shape[1]):
        changing = rows.covered[j, w] & ~rows.twice[j, w] if rule.covers else ~unknown_word(rows, j, w)
        scratch.bits[0, w] = atoms.words[k, w] & changing
    complete = all_free(rows, rule.covers)
    update_gains(trial, -1, rows.errors, j, atoms, k, complete, True, rule.covers, rule.prices, scratch)
