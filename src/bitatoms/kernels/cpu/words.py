"""Small functions on rows of words that the other kernels share."""

from __future__ import annotations

import numpy as np

from ..jit import inline, kernel, lowest_bit, popcount

ONE = np.uint64(1)
NONE = np.uint64(0)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@inline
def weight(words, j):
    """Return the number of ones in row j."""
    total = 0
    for w in range(words.shape[1]):
        total += np.intp(popcount(words[j, w]))
    return total


@inline
def list_ones(words, j, first, last, indices):
    """Write the indices of the ones in words first..last of row j; return their number."""
    count = 0
    for w in range(first, last):
        word = words[j, w]
        while word != NONE:
            indices[count] = 64 * w + lowest_bit(word)
            count += 1
            word &= word - ONE
    return count


@inline
def copy_row(words, j, out):
    """out = row j."""
    for w in range(words.shape[1]):
        out[w] = words[j, w]


@inline
def distance(words, j, other):
    """Return the Hamming distance between row j and another row."""
    total = 0
    for w in range(words.shape[1]):
        total += np.intp(popcount(words[j, w] ^ other[w]))
    return total


@inline
def has_unknown(rows):
    """Return whether rows may have unknown cells."""
    return rows.unknown.shape[0] > 0


@inline
def unknown_word(rows, j, w):
    """Return the unknown cells of word w of row j."""
    return rows.unknown[j, w] if has_unknown(rows) else NONE


@inline
def all_free(rows, covers):
    """Return whether every bit of every row is free: under XOR, if no cell is unknown."""
    if covers:
        return False
    return not has_unknown(rows)


@inline
def fixed_word(rows, j, w, covers):
    """Return the bits of word w of row j that one more atom cannot change: unknown, or under OR covered."""
    return rows.covered[j, w] if covers else unknown_word(rows, j, w)


@inline
def cover(rows, j, atoms):
    """Set ``covered`` and ``twice`` of row j from its code.

    Unknown cells count as covered twice: no atom that is added or dropped changes them.
    """
    covered, twice = rows.covered, rows.twice
    for w in range(covered.shape[1]):
        covered[j, w] = unknown_word(rows, j, w)
        twice[j, w] = covered[j, w]
    for c in range(rows.codes.shape[1]):
        word = rows.codes[j, c]
        while word != NONE:
            k = 64 * c + lowest_bit(word)
            word &= word - ONE
            for w in range(covered.shape[1]):
                twice[j, w] |= covered[j, w] & atoms[k, w]
                covered[j, w] |= atoms[k, w]


@kernel
def cover_rows(rows, atoms, start, stop):
    """Set ``covered`` and ``twice`` of rows start..stop from their codes."""
    for j in range(start, stop):
        cover(rows, j, atoms)


@kernel
def add_product(codes, atoms, covers, unknown, start, stop, product, out):
    """out[i] ^= the product of row i of the codes and the atoms in the algebra, for i in start..stop.

    Unknown cells do not change. ``product`` is a work array for one row.
    """
    for i in range(start, stop):
        for w in range(out.shape[1]):
            product[w] = NONE
        for c in range(codes.shape[1]):
            word = codes[i, c]
            while word != NONE:
                k = 64 * c + lowest_bit(word)
                word &= word - ONE
                if covers:
                    for w in range(out.shape[1]):
                        product[w] |= atoms[k, w]
                else:
                    for w in range(out.shape[1]):
                        product[w] ^= atoms[k, w]
        for w in range(out.shape[1]):
            out[i, w] ^= product[w] & ~unknown[i, w] if unknown.shape[0] > 0 else product[w]


@kernel
def find_complete(data, atoms, anchors, start, stop, out):
    """Set bit k of out[i] where row i has all ones of atom k, for i in start..stop.

    ``anchors[k]`` is the word of atom k to compare first.
    """
    for i in range(start, stop):
        for k in range(atoms.shape[0]):
            anchor = anchors[k]
            if atoms[k, anchor] & ~data[i, anchor] != NONE:
                continue
            lacking = NONE
            for w in range(atoms.shape[1]):
                lacking |= atoms[k, w] & ~data[i, w]
            if lacking == NONE:
                out[i, k >> 6] |= ONE << np.uint64(k & 63)


@kernel
def count_members(columns, unknown, ones, starts, n_rows, complete, lacking, known):
    """Count the rows that have all ones of each atom, and those that lack a single one. Each row is a bit of the words.

    Rows that have all columns ``ones[starts[k]:starts[k + 1]]``, the ones of atom k, are added to ``complete[k]``, and
    rows that lack ``ones[entry]`` only to ``lacking[entry]``. If there are unknown cells, rows in which all ones of
    atom k are known are added to ``known[k]``, and others do not count.
    """
    for k in range(starts.shape[0] - 1):
        for w in range(columns.shape[1]):
            has_all = ~NONE if n_rows - 64 * w >= 64 else (ONE << np.uint64(n_rows - 64 * w)) - ONE
            if unknown.shape[0] > 0:
                for entry in range(starts[k], starts[k + 1]):
                    has_all &= ~unknown[ones[entry], w]
                known[k] += popcount(has_all)
            lacks_one = NONE
            for entry in range(starts[k], starts[k + 1]):
                word = columns[ones[entry], w]
                lacks_one = (lacks_one & word) | (has_all & ~word)
                has_all &= word
                if has_all | lacks_one == NONE:
                    break
            complete[k] += popcount(has_all)
            if lacks_one != NONE:
                for entry in range(starts[k], starts[k + 1]):
                    lacking[entry] += popcount(lacks_one & ~columns[ones[entry], w])


@inline
def use_price(prices, k):
    """Return the price of a use of atom k."""
    if prices is None:
        return 0
    return np.intp(prices.uses[k])


@inline
def has_costs(prices):
    """Return whether missed and added ones have prices of their own."""
    return prices.added.shape[0] > 0


@inline
def word_price(word, w, prices):
    """Return the sum of the prices of the ones in word w of a row; ``prices`` has one per column."""
    total = 0
    while word != NONE:
        total += np.intp(prices[64 * w + lowest_bit(word)])
        word &= word - ONE
    return total


@inline
def row_price(codes, errors, j, prices):
    """Return the cost of the errors of row j and of the atoms it uses."""
    total = 0
    for w in range(errors.shape[1]):
        total += word_price(errors[j, w], w, prices.bits)
    for c in range(codes.shape[1]):
        word = codes[j, c]
        while word != NONE:
            total += np.intp(prices.uses[64 * c + lowest_bit(word)])
            word &= word - ONE
    return total


@inline
def priced_row(rows, j, prices):
    """Return the cost of row j: of its errors, of which those that atoms cover are added ones, and of its atoms."""
    total = row_price(rows.codes, rows.errors, j, prices)
    if has_costs(prices):
        for w in range(rows.errors.shape[1]):
            added = rows.errors[j, w] & rows.covered[j, w]
            total += 2 * (word_price(added, w, prices.mean) - word_price(added, w, prices.bits))
    return total


@inline
def drop_gain(rows, j, atom_words, k, prices):
    """Return the gain of dropping atom k from row j under OR: wrong minus right among the bits that only k covers."""
    total = 0
    for w in range(atom_words.shape[1]):
        alone = atom_words[k, w] & rows.covered[j, w] & ~rows.twice[j, w]
        wrong = alone & rows.errors[j, w]
        if prices is None:
            total += 2 * np.intp(popcount(wrong)) - np.intp(popcount(alone))
        else:
            both = prices.mean if has_costs(prices) else prices.bits
            total += 2 * word_price(wrong, w, both) - word_price(alone, w, prices.bits)
    return total + use_price(prices, k)


@inline
def toggle_gain(rows, j, atom_words, k, uses, covers, size):
    """Return how many errors toggling atom k removes from row j; ``uses``: the row uses it; ``size``: its weight."""
    shared = 0
    if all_free(rows, covers):
        for w in range(atom_words.shape[1]):
            shared += np.intp(popcount(atom_words[k, w] & rows.errors[j, w]))
        return 2 * shared - size
    size = 0
    for w in range(atom_words.shape[1]):
        free = ~fixed_word(rows, j, w, covers)
        if covers and uses:
            free = rows.covered[j, w] & ~rows.twice[j, w]
        free &= atom_words[k, w]
        size += np.intp(popcount(free))
        shared += np.intp(popcount(free & rows.errors[j, w]))
    return 2 * shared - size


@inline
def mark(words, flags):
    """flags[i] = 1 where bit i is one."""
    for c in range(words.shape[0]):
        word = words[c]
        while word != NONE:
            flags[64 * c + lowest_bit(word)] = 1
            word &= word - ONE


@kernel
def improvable(rows, covers, max_atoms, residual_limit, out):
    """out[j] = row j has an error that one more atom could remove, and may use one more atom."""
    for j in range(rows.errors.shape[0]):
        wrong = NONE
        for w in range(rows.errors.shape[1]):
            wrong |= rows.errors[j, w] & ~rows.covered[j, w] if covers else rows.errors[j, w]
        out[j] = wrong != NONE and weight(rows.codes, j) < max_atoms and weight(rows.errors, j) > residual_limit


@kernel
def hamming(rows, unknown, other, unknown_of_other, out):
    """out[i] = Hamming distance between row i and the only row of another table, over the cells that both know."""
    for i in range(rows.shape[0]):
        total = 0
        for w in range(rows.shape[1]):
            different = rows[i, w] ^ other[0, w]
            if unknown.shape[0] > 0:
                different &= ~unknown[i, w]
            if unknown_of_other.shape[0] > 0:
                different &= ~unknown_of_other[0, w]
            total += np.intp(popcount(different))
        out[i] = total


@kernel
def find_nearest_rows(rows, unknown, others, unknown_of_others, start, stop, out):
    """out[i] = the lowest row at the least Hamming distance to row i of others, for i in start..stop.

    Only cells that both know count.
    """
    for i in range(start, stop):
        least = 64 * rows.shape[1] + 1
        for j in range(rows.shape[0]):
            total = 0
            for w in range(rows.shape[1]):
                different = rows[j, w] ^ others[i, w]
                if unknown.shape[0] > 0:
                    different &= ~unknown[j, w]
                if unknown_of_others.shape[0] > 0:
                    different &= ~unknown_of_others[i, w]
                total += np.intp(popcount(different))
            if total < least:
                least = total
                out[i] = j
