"""Functions on rows of words that the other kernels share, and kernels that are little more than one of them."""

from __future__ import annotations

import numpy as np

from ..jit import inline, kernel, lowest_bit, popcount
from ..views import flat, view

ONE = np.uint64(1)
NONE = np.uint64(0)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@inline
def first_one(word, w):
    """Return the index of the lowest one of word w of a row, and the word without it."""
    return 64 * w + lowest_bit(word), word & (word - ONE)


@inline
def weight(words, j):
    """Return the number of ones in row j."""
    total = 0
    for w in range(words.shape[1]):
        total += np.intp(popcount(words[j, w]))
    return total


@inline
def list_ones(words, j, first, last, indices, start):
    """Write the indices of the ones in words first..last of row j, from indices[start] on; return their number."""
    count = start
    for w in range(first, last):
        word = words[j, w]
        while word != NONE:
            indices[count], word = first_one(word, w)
            count += 1
    return count - start


@inline
def fill(row, value):
    """Set all items of a row to a value."""
    for i in range(row.shape[0]):
        row[i] = value


@inline
def copy_row(words, j, out):
    """out = row j."""
    for w in range(words.shape[1]):
        out[w] = words[j, w]


@inline
def copy_array(source, target):
    """Copy an array to another of the same shape and type."""
    items, copies = flat(source), flat(target)
    for i in range(items.shape[0]):
        copies[i] = items[i]


@inline
def distance(words, j, other):
    """Return the Hamming distance between row j and another row."""
    total = 0
    for w in range(words.shape[1]):
        total += np.intp(popcount(words[j, w] ^ other[w]))
    return total


@inline
def mark(words, flags):
    """flags[i] = 1 where bit i is one."""
    for c in range(words.shape[0]):
        word = words[c]
        while word != NONE:
            flags[64 * c + lowest_bit(word)] = 1
            word &= word - ONE


@inline
def next_state(state):
    """Return the next state of a generator of random bits (SplitMix64)."""
    return state + np.uint64(0x9E3779B97F4A7C15)


@inline
def random_bits(state):
    """Return the 64 random bits of a state."""
    mixed = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


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
def toggle_users(rows, j, word, c):
    """Toggle row j as a user of the atoms in word c of a code."""
    while word != NONE:
        k, word = first_one(word, c)
        rows.users[k, j >> 6] ^= ONE << np.uint64(j & 63)


@inline
def flip_errors(rows, j, words, k):
    """Flip the bits of row k of ``words``, except in unknown cells, in the errors of row j; return their number."""
    changed = 0
    for w in range(words.shape[1]):
        change = words[k, w] & ~unknown_word(rows, j, w)
        rows.errors[j, w] ^= change
        changed += np.intp(popcount(change))
    return changed


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
            k, word = first_one(word, c)
            for w in range(covered.shape[1]):
                twice[j, w] |= covered[j, w] & atoms[k, w]
                covered[j, w] |= atoms[k, w]


@inline
def refresh_row(rows, j, atoms, before):
    """Recompute row j under OR after its code or the atoms changed; return the number of changed error bits.

    ``before`` is a work array for a row.
    """
    copy_row(rows.covered, j, before)
    cover(rows, j, atoms)
    for w in range(before.shape[0]):
        rows.errors[j, w] ^= before[w] ^ rows.covered[j, w]
    return distance(rows.covered, j, before)


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
def use_price(prices, k):
    """Return the price of a use of atom k."""
    if prices is None:
        return 0
    return np.intp(prices.uses[k])


@inline
def has_costs(prices):
    """Return whether missed and added ones have prices of their own."""
    if prices is None:
        return False
    return prices.added.shape[0] > 0


@inline
def word_price(word, w, prices):
    """Return the sum of the prices of the ones in word w of a row; ``prices`` has one per bit."""
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
        total += word_price(codes[j, c], c, prices.uses)
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


# Bit-sliced counters: counter i of a word is stored in bit i of several *planes*; plane b has the value 2**b. Rows of
# bits are added for 64 columns and eight rows at a time, by carry-save adders.


@inline
def add3(a, b, c):
    """Return sum and carry of three bits, for 64 columns."""
    half = a ^ b
    return half ^ c, (a & b) | (half & c)


@inline
def add_bits(planes, plane, w, carry):
    """Add a carry to the counters of word w, starting with this plane."""
    while carry != NONE:
        held = planes[plane, w]
        planes[plane, w] = held ^ carry
        carry &= held
        plane += 1


@inline
def add_eight(words, a, b, c, d, e, f, g, h, planes):
    """Add eight rows to the counters."""
    for w in range(words.shape[1]):
        ones, two_a = add3(planes[0, w], words[a, w], words[b, w])
        ones, two_b = add3(ones, words[c, w], words[d, w])
        twos, four_a = add3(planes[1, w], two_a, two_b)
        ones, two_a = add3(ones, words[e, w], words[f, w])
        ones, two_b = add3(ones, words[g, w], words[h, w])
        twos, four_b = add3(twos, two_a, two_b)
        fours, carry = add3(planes[2, w], four_a, four_b)
        planes[0, w] = ones
        planes[1, w] = twos
        planes[2, w] = fours
        add_bits(planes, 3, w, carry)


@inline
def add_one(words, i, planes):
    """Add row i to the counters."""
    for w in range(words.shape[1]):
        add_bits(planes, 0, w, words[i, w])


@inline
def clear(planes, count):
    """Clear the planes needed for counts up to ``count``, and one more; return their number."""
    n_planes = 3
    while count >> (n_planes - 1):
        n_planes += 1
    for b in range(n_planes):
        fill(planes[b], NONE)
    return n_planes


@inline
def read(planes, n_planes, out):
    """out[i] = value of counter i, for all i in out."""
    for w in range(planes.shape[1]):
        first = 64 * w
        last = min(first + 64, out.shape[0])
        for i in range(first, last):
            out[i] = 0
        for b in range(n_planes):
            plane = planes[b, w]
            if plane != NONE:
                for i in range(first, last):
                    out[i] += np.int64(((plane >> np.uint64(i - first)) & ONE) << np.uint64(b))


# Kernels on all rows.


@kernel
def cover_rows(rows, atoms, start, stop):
    """Set ``covered`` and ``twice`` of rows start..stop from their codes."""
    rows, atoms = view((rows, atoms))
    for j in range(start, stop):
        cover(rows, j, atoms)


@kernel
def add_product(codes, atoms, covers, unknown, start, stop, product, out):
    """out[i] ^= the product of row i of the codes and the atoms in the algebra, for i in start..stop.

    Unknown cells do not change. ``product`` is a work array for one row.
    """
    codes, atoms, unknown, product, out = view((codes, atoms, unknown, product, out))
    for i in range(start, stop):
        fill(product, NONE)
        for c in range(codes.shape[1]):
            word = codes[i, c]
            while word != NONE:
                k, word = first_one(word, c)
                if covers:
                    for w in range(out.shape[1]):
                        product[w] |= atoms[k, w]
                else:
                    for w in range(out.shape[1]):
                        product[w] ^= atoms[k, w]
        for w in range(out.shape[1]):
            out[i, w] ^= product[w] & ~unknown[i, w] if unknown.shape[0] > 0 else product[w]


@kernel
def improvable(rows, covers, max_atoms, residual_limit, out):
    """out[j] = row j has an error that one more atom could remove, and may use one more atom."""
    rows, out = view((rows, out))
    for j in range(rows.errors.shape[0]):
        wrong = NONE
        for w in range(rows.errors.shape[1]):
            wrong |= rows.errors[j, w] & ~rows.covered[j, w] if covers else rows.errors[j, w]
        out[j] = wrong != NONE and weight(rows.codes, j) < max_atoms and weight(rows.errors, j) > residual_limit


@kernel
def count_members(columns, unknown, ones, starts, n_rows, complete, lacking, known):
    """Count the rows that have all ones of each atom, and those that lack a single one. Each row is a bit of the words.

    Rows that have all columns ``ones[starts[k]:starts[k + 1]]``, the ones of atom k, are added to ``complete[k]``, and
    rows that lack ``ones[entry]`` only to ``lacking[entry]``. If there are unknown cells, rows in which all ones of
    atom k are known are added to ``known[k]``, and others do not count.
    """
    columns, unknown, ones, starts, complete, lacking, known = view(
        (columns, unknown, ones, starts, complete, lacking, known)
    )
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
def _distance_of_known(rows, unknown, i, others, unknown_of_others, j):
    """Return the Hamming distance between row i and row j of others, over the cells that both know."""
    total = 0
    for w in range(rows.shape[1]):
        different = rows[i, w] ^ others[j, w]
        if unknown.shape[0] > 0:
            different &= ~unknown[i, w]
        if unknown_of_others.shape[0] > 0:
            different &= ~unknown_of_others[j, w]
        total += np.intp(popcount(different))
    return total


@kernel
def choose_far_row(rows, unknown, draws, distances, trials):
    """Choose a row far from those before, and keep the distances to the nearest; return the row and their sum.

    Numbers drawn below the sum of the distances choose rows with their distances as weights; that of these rows is best
    which leaves the least sum. ``trials`` is a work array with a row for each.
    """
    rows, unknown, draws, distances, trials = view((rows, unknown, draws, distances, trials))
    chosen, least, best = -1, -1, 0
    for c in range(draws.shape[0]):
        j, end = 0, distances[0]
        while end <= draws[c]:
            j += 1
            end += distances[j]
        total = 0
        for i in range(distances.shape[0]):
            distance = min(distances[i], _distance_of_known(rows, unknown, i, rows, unknown, j))
            trials[c, i] = distance
            total += distance
        if least < 0 or total < least:
            chosen, least, best = j, total, c
    for i in range(distances.shape[0]):
        distances[i] = trials[best, i]
    return chosen, least


@kernel
def find_nearest_rows(rows, unknown, others, unknown_of_others, start, stop, out):
    """out[i] = the lowest row at the least Hamming distance to row i of others, for i in start..stop.

    Only cells that both know count.
    """
    rows, unknown, others, unknown_of_others, out = view((rows, unknown, others, unknown_of_others, out))
    for i in range(start, stop):
        least = 64 * rows.shape[1] + 1
        for j in range(rows.shape[0]):
            total = _distance_of_known(rows, unknown, j, others, unknown_of_others, i)
            if total < least:
                least = total
                out[i] = j
