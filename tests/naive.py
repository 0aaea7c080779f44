"""Slow reference implementations, written from the definitions: dense 0/1 arrays and loops, nothing of the package.

Rows of X are samples; ``atoms`` is (p, m), ``codes`` (n, p), ``bias`` (m,) or None. ``algebra`` is "xor" or "or". A
cell of X above 1 is unknown: it is never wrong, has no vote and costs nothing.
Functions return new uint8 arrays and do not modify their arguments.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from itertools import product as all_choices

import numpy as np


def combine_row(code, atoms, algebra):
    """Return the XOR or the OR of the atoms that a code uses."""
    return product(np.asarray(code)[np.newaxis], atoms, algebra)[0]


def product(codes, atoms, algebra):
    """Return codes · atoms in the algebra: a bit is one if an odd number of used atoms has it (XOR), or any (OR)."""
    n_having = codes.astype(np.int64) @ atoms.astype(np.int64)
    return (n_having % 2 if algebra == "xor" else n_having > 0).astype(np.uint8)


def errors(X, atoms, codes, algebra, bias=None):
    """Return X ⊕ bias ⊕ codes · atoms, and 0 in unknown cells."""
    out = X ^ product(codes, atoms, algebra)
    return known(X) * (out if bias is None else out ^ np.asarray(bias, np.uint8))


def known(X):
    """Return 1 for every known cell, 0 for the others."""
    return (X <= 1).astype(np.uint8)


def complete(X, atoms, bias=None):
    """Return which atoms are complete in which rows: their features are ones, or zeros where the bias is one."""
    wanted = np.ones(X.shape[1], np.uint8) if bias is None else 1 - np.asarray(bias, np.uint8)
    out = np.zeros((len(X), len(atoms)), np.uint8)
    for j, row in enumerate(X):
        for k, atom in enumerate(atoms):
            out[j, k] = all(row[i] == wanted[i] for i in np.flatnonzero(atom))
    return out


def lacking(X, atoms, bias=None):
    """Return, for each one of each atom, the rows whose only cell that differs from the atom, known or not, is this."""
    wanted = np.ones(X.shape[1], np.uint8) if bias is None else 1 - np.asarray(bias, np.uint8)
    out = []
    for atom in atoms:
        features = np.flatnonzero(atom)
        for feature in features:
            others = [i for i in features if i != feature]
            out.append(sum(row[feature] == 1 - wanted[feature] and all(row[others] == wanted[others]) for row in X))
    return np.array(out, np.int64)


def hidden_probability(row, column, code, atoms, algebra, bias, cells, uses, hidden=()):
    """Return the probability of a one in a column of a row if that cell is hidden and the others are as they are.

    So are the cells of other columns in ``hidden``.

    ``cells[u, v, i]`` counts rows in which u is predicted for column i and v is found; ``uses[v, k]`` rows that do not
    use atom k (v = 0), and that do (v = 1). Each atom is used or not given the code of the others, of which those that
    are parts of it may be left out if it is used.
    """
    shares = (cells + 0.5) / (cells + 0.5).sum(axis=1, keepdims=True)
    used_share = (uses + 0.5) / (uses + 0.5).sum(axis=0)
    none_covers, parity = 1.0, 1.0
    for k, atom in enumerate(atoms):
        if not atom[column]:
            continue

        def weight(*changes, k=k, atom=atom):
            changed = code.copy()
            for other, used in changes:
                changed[other] = used
            predicted = combine_row(changed, atoms, algebra) ^ bias
            weight = math.prod(used_share[used, other] for other, used in changes)
            for i in np.flatnonzero(atom):
                if i != column and i not in hidden and row[i] <= 1:
                    weight *= shares[predicted[i], row[i], i]
            return weight

        weights = [weight((k, 0)), weight((k, 1))]
        for part in np.flatnonzero(code):
            if part != k and not (atoms[part] & ~atom & 1).any():
                kept, dropped = weight((k, 1), (part, 1)), weight((k, 1), (part, 0))
                weights[1] *= 1 + dropped / kept
        probability = weights[1] / sum(weights)
        none_covers *= 1 - probability
        parity *= 1 - 2 * probability
    covered = 1 - none_covers if algebra == "or" else (1 - parity) / 2
    one = 1 - covered if bias[column] else covered
    return one * shares[1, 1, column] + (1 - one) * shares[0, 1, column]


def take_columns(X, columns):
    """Return the columns with these indices, zeros where an index is -1."""
    out = np.zeros((X.shape[0], len(columns)), np.uint8)
    for j, column in enumerate(columns):
        if column >= 0:
            out[:, j] = X[:, column]
    return out


def distance(x, y):
    """Return in how many cells two rows differ that both know."""
    return int(((x != y) & (x <= 1) & (y <= 1)).sum())


def far_rows(X, most, random, n_candidates=3):
    """Return rows drawn with the distance to the nearest one so far as weight, the best of some candidates each time.

    The first distance is that to the zero vector.
    """
    distances, chosen = [distance(x, np.zeros_like(x)) for x in X], []
    while len(chosen) < most and sum(distances):
        trials = []
        for draw in random.integers(sum(distances), size=n_candidates):
            j = next(j for j in range(len(X)) if sum(distances[: j + 1]) > draw)
            trials.append((j, [min(d, distance(x, X[j])) for d, x in zip(distances, X, strict=True)]))
        row, distances = min(trials, key=lambda trial: sum(trial[1]))
        chosen.append(row)
    return chosen


def row_hash(x):
    """Return the hash of a row: its words of 64 cells, and those of its unknown cells if there are any, in turn."""

    def mixed(state):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        state = (state ^ (state >> 27)) * 0x94D049BB133111EB % 2**64
        return state ^ (state >> 31)

    state = len(x)
    for cells in (x == 1, x > 1) if (x > 1).any() else (x == 1,):
        for first in range(0, len(x), 64):
            state = mixed(state ^ sum(int(bit) << i for i, bit in enumerate(cells[first : first + 64])))
    return mixed(state)


def string_bits(n, r):
    """Return ⌈log2 n⌉ + ⌈log2 C(n, r)⌉, computed with integers; 0 for a string of length 0."""
    if n == 0:
        return 0
    return (n - 1).bit_length() + (math.comb(n, r) - 1).bit_length()


def stretch_bits(atom, order):
    """Return the bits of an atom by its first and last column in this order, and the string between them."""
    m, ordered = len(atom), [int(atom[column]) for column in order]
    ends = 2 * (m - 1).bit_length()
    if sum(ordered) < 2:
        return ends
    between = ordered[ordered.index(1) + 1 : m - 1 - ordered[::-1].index(1)]
    return ends + string_bits(len(between), sum(between))


def codelength(X, atoms, codes, algebra, bias=None, order=None):
    """Return the bits for errors (one string per column), codes (one string per atom) and atoms.

    An atom is one string or, if columns have an order, a stretch of them.
    """
    n, m = X.shape
    is_known, wrong = known(X), errors(X, atoms, codes, algebra, bias)
    error_bits = sum(string_bits(int(is_known[:, i].sum()), int(wrong[:, i].sum())) for i in range(m))
    code_bits = sum(string_bits(n, int(codes[:, k].sum())) for k in range(codes.shape[1]))
    atom_bits = sum(string_bits(m, int(atom.sum())) if order is None else stretch_bits(atom, order) for atom in atoms)
    if bias is not None and np.any(bias):
        atom_bits += string_bits(m, int(np.sum(bias)))
        code_bits += (n - 1).bit_length() if n else 0
    return error_bits, code_bits, atom_bits


def settled_bias(X, atoms, codes, algebra, bias):
    """Return the bias with a bit flipped for every column that is wrong in more than half of the rows that know it."""
    is_known, wrong = known(X), errors(X, atoms, codes, algebra, bias).sum(axis=0, dtype=int)
    return np.array([bit ^ (2 * wrong[i] > is_known[:, i].sum()) for i, bit in enumerate(bias)], np.uint8)


def wrong_bits(x, atoms, code, algebra):
    """Return the number of errors of one row with a code."""
    return int((known(x) * (x ^ combine_row(code, atoms, algebra))).sum())


def toggled(code, k):
    """Return the code with atom k toggled."""
    code = code.copy()
    code[k] ^= 1
    return code


def code_row(x, atoms, code, rule, algebra, max_atoms=None, residual_limit=0):
    """Toggle the best atom while this reduces the errors: best by gain ("greedy") or by gain / |atom| ("bmp")."""
    code, weights = np.array(code, np.uint8), [int(atom.sum()) for atom in atoms]
    while True:
        before = wrong_bits(x, atoms, code, algebra)
        if before <= residual_limit:
            return code
        after = costs_after(x, atoms, code, algebra, (np.ones(len(x), int), np.zeros(len(atoms), int)))
        best = None
        for k, gain in enumerate((before - after).tolist()):
            if max_atoms is not None and code.sum() >= max_atoms and not code[k]:
                continue
            if gain <= 0 or weights[k] == 0:
                continue
            merit = gain if rule == "greedy" else Fraction(gain, weights[k])
            if best is None or merit > best[0]:
                best = merit, k
        if best is None:
            return code
        code = toggled(code, best[1])


def each_row(code_row, X, atoms, codes, *how):
    """Apply a function of a row, the atoms and the code of the row to every row."""
    found = [code_row(x, atoms, code, *how) for x, code in zip(X, codes, strict=True)]
    return np.array(found, np.uint8).reshape(np.shape(codes))


def code(X, atoms, codes, rule, algebra, max_atoms=None, residual_limit=0):
    """Apply `code_row` to every row."""
    return each_row(code_row, X, atoms, codes, rule, algebra, max_atoms, residual_limit)


def pursue_row(x, atoms, code, algebra, max_atoms=None, residual_limit=0):
    """Add the atoms with the largest gain / |atom| at the beginning, until one does not reduce the errors."""
    code = np.array(code, np.uint8)
    wrong = wrong_bits(x, atoms, code, algebra)
    weights = [int(atom.sum()) for atom in atoms]
    merits = {
        k: Fraction(wrong - wrong_bits(x, atoms, toggled(code, k), algebra), weights[k])
        for k in range(len(atoms))
        if weights[k] and not code[k]
    }
    while merits and wrong > residual_limit and (max_atoms is None or code.sum() < max_atoms):
        k = max(merits, key=lambda k: (merits[k], -k))
        after = wrong_bits(x, atoms, toggled(code, k), algebra)
        if after >= wrong:
            break
        code, wrong = toggled(code, k), after
        del merits[k]
    return code


def pursue(X, atoms, codes, algebra, max_atoms=None, residual_limit=0):
    """Apply `pursue_row` to every row."""
    return each_row(pursue_row, X, atoms, codes, algebra, max_atoms, residual_limit)


def learn_by_bmp(X, atoms, codes, algebra):
    """Code by BMP and vote until nothing changes; under XOR, if there are no codes, first code by `pursue` and vote."""
    pursues = algebra == "xor" and not codes.any()
    for coder in [pursue, lambda *state: code(*state[:3], "bmp", state[3])][0 if pursues else 1 :]:
        before = None
        while before is None or any((old != new).any() for old, new in zip(before, (atoms, codes), strict=True)):
            before = atoms, codes
            codes = coder(X, atoms, codes, algebra)
            atoms = mob_sweep(X, atoms, codes, algebra)
    return atoms, codes


def in_number_order(length):
    """Return all binary strings in numerical order; the first bit is the lowest."""
    return np.array([bits[::-1] for bits in all_choices((0, 1), repeat=length)], np.uint8)


def exact_code_row(x, atoms, code, algebra, max_atoms=None, residual_limit=0):
    """Return the best code with at most max_atoms atoms: the given one, or the lowest of the strictly better ones."""
    best = np.array(code, np.uint8)
    fewest = wrong_bits(x, atoms, best, algebra)
    if fewest <= residual_limit:
        return best
    candidates = in_number_order(len(atoms))
    for candidate, wrong in zip(candidates, known(x) * (x ^ product(candidates, atoms, algebra)), strict=True):
        if wrong.sum() < fewest and (max_atoms is None or candidate.sum() <= max_atoms):
            best, fewest = candidate, int(wrong.sum())
    return best


def exact_code(X, atoms, codes, algebra, max_atoms=None, residual_limit=0):
    """Apply `exact_code_row` to every row."""
    return each_row(exact_code_row, X, atoms, codes, algebra, max_atoms, residual_limit)


def exact_atoms(X, atoms, codes, algebra):
    """Set each column of the atoms to the best: the given one, or the lowest of the strictly better ones."""
    out, candidates = np.array(atoms, np.uint8), in_number_order(len(atoms))
    for i in range(X.shape[1]):
        wanted = X[:, i : i + 1]
        fewest = int(errors(wanted, out[:, i : i + 1], codes, algebra).sum())
        wrong = (known(wanted) * (wanted ^ product(codes, candidates.T, algebra))).sum(axis=0, dtype=int)
        if len(wrong) and wrong.min() < fewest:
            out[:, i] = candidates[np.argmin(wrong)]  # the first of equals
    return out


def without(k, code):
    """Return the code without atom k."""
    code = code.copy()
    code[k] = 0
    return code


def wanted_and_open(X, atoms, codes, k, algebra):
    """Return the bits of atom k that each row needs, given its other atoms, and where atom k decides: (n, m) each.

    It decides known bits, under OR only where no other used atom covers them.
    """
    others = product(codes * (np.arange(len(atoms)) != k), atoms, algebra)
    if algebra == "xor":
        return X ^ others, X <= 1
    return X, (X <= 1) & (others == 0)


def vote(X, atoms, codes, k, algebra):
    """Return atom k by majority of its users, bit by bit; a tie gives 0, a bit without a voter is unchanged."""
    wanted, is_open = wanted_and_open(X, atoms, codes, k, algebra)
    votes = is_open & (codes[:, k, np.newaxis] == 1)
    n_voters, n_yes = votes.sum(axis=0), (votes & (wanted == 1)).sum(axis=0)
    return np.where(n_voters > 0, 2 * n_yes > n_voters, atoms[k]).astype(np.uint8)


def mob_sweep(X, atoms, codes, algebra):
    """MOB: update every used atom in index order by the vote of its users, with current errors."""
    atoms = np.array(atoms, np.uint8)
    for k in range(len(atoms)):
        if codes[:, k].any():
            atoms[k] = vote(X, atoms, codes, k, algebra)
    return atoms


def use_where_it_pays(X, atoms, codes, k, algebra, max_atoms=None, residual_limit=0):
    """Return the users of atom k: rows in which more than half of the bits that it decides are wrong without it.

    A row with as many atoms as it may use, or with at most ``residual_limit`` errors, does not begin to use it.
    """
    wanted, is_open = wanted_and_open(X, atoms, codes, k, algebra)
    decided = is_open & (atoms[k] == 1)
    uses = 2 * (decided & (wanted == 1)).sum(axis=1) > decided.sum(axis=1)
    may_begin = errors(X, atoms, codes, algebra).sum(axis=1) > residual_limit
    if max_atoms is not None:
        may_begin &= codes.sum(axis=1) < max_atoms
    return (uses & (may_begin | (codes[:, k] == 1))).astype(np.uint8)


def kprox_sweep(X, atoms, codes, algebra, max_atoms=None, residual_limit=0):
    """K-PROX: for every used atom in index order, update its bits and its users alternately until neither changes."""
    atoms, codes = np.array(atoms, np.uint8), np.array(codes, np.uint8)
    for k in range(len(atoms)):
        while codes[:, k].any():
            atom = vote(X, atoms, codes, k, algebra)
            same_atom = np.array_equal(atom, atoms[k])
            atoms[k] = atom
            uses = use_where_it_pays(X, atoms, codes, k, algebra, max_atoms, residual_limit)
            same_uses = np.array_equal(uses, codes[:, k])
            codes[:, k] = uses
            if same_atom and same_uses:
                break
    return atoms, codes


def rank_one(E, atom):
    """Proximus: alternately choose users by majority of the atom's bits, and the atom by majority of its users."""
    atom = np.array(atom, np.uint8)
    users = np.zeros(len(E), np.uint8)
    while True:
        new_users = np.array([2 * int((row & atom).sum()) > int(atom.sum()) for row in E], np.uint8)
        new_atom = np.zeros_like(atom)
        for i in range(E.shape[1]):
            new_atom[i] = 2 * int((E[:, i] & new_users).sum()) > int(new_users.sum())
        if np.array_equal(new_users, users) and np.array_equal(new_atom, atom):
            return users, atom
        users, atom = new_users, new_atom


def proximus_is_local_optimum(E, users, atom):
    """Proposition 1: no single flip in the users or in the atom reduces the number of known ones in E ⊕ users·atom."""

    def count(users, atom):
        return int((known(E) * (E ^ np.outer(users, atom))).sum())

    wrong = count(users, atom)
    flips = [(toggled(users, j), atom) for j in range(len(users))] + [
        (users, toggled(atom, i)) for i in range(len(atom))
    ]
    return all(count(u, v) >= wrong for u, v in flips)


def row_cost(x, atoms, code, algebra, prices):
    """Return the cost of the errors of one row and of the atoms it uses; ``prices`` are (bits (m,), uses (p,)).

    With two more, added (m,) and forbidden (m,), ``bits`` are the prices of missed ones, and ``added`` those of others.
    """
    return (known(x) * (x ^ combine_row(code, atoms, algebra))) @ error_prices(x, prices) + code @ prices[1]


def error_prices(x, prices):
    """Return the price of an error in each cell of a row."""
    return np.where(x == 1, prices[0], prices[2]) if len(prices) > 2 else prices[0]


def forbidden_atoms(x, atoms, prices):
    """Return which atoms would add a one to a row in a forbidden column."""
    return (atoms[:, (x == 0) & prices[3]] == 1).any(axis=1) if len(prices) > 2 else np.zeros(len(atoms), bool)


def costs(X, atoms, codes, algebra, prices):
    """Return `row_cost` of every row."""
    return [row_cost(x, atoms, code, algebra, prices) for x, code in zip(X, codes, strict=True)]


def costs_after(x, atoms, code, algebra, prices):
    """Return `row_cost` of one row after toggling each atom alone: (p,)."""
    bits, uses = error_prices(x, prices), prices[1]
    turn = 1 - 2 * code.astype(int)  # one use more or less
    used_with = code @ atoms.astype(int) + turn[:, np.newaxis] * atoms  # used atoms that have each bit
    made = used_with % 2 if algebra == "xor" else used_with > 0
    return ((made != x) & (x <= 1)) @ bits + code @ uses + turn * uses


def swapped(x, atoms, code, algebra, prices):
    """Return the code after dropping the first used atom that gains in combination with the best other toggle.

    Return None if there is no such pair. Under OR the other atom is one that the row does not use.
    """
    now = row_cost(x, atoms, code, algebra, prices)
    for k in np.flatnonzero(code):
        rest = without(k, code)
        after = costs_after(x, atoms, rest, algebra, prices)
        forbidden = forbidden_atoms(x, atoms, prices)
        others = [o for o in range(len(atoms)) if o != k and (algebra == "xor" or not code[o]) and not forbidden[o]]
        if others:
            best = min(others, key=lambda o: after[o])  # the first of equals
            if after[best] < now:
                return toggled(rest, best)
    return None


def priced_code_row(x, atoms, code, algebra, prices, max_atoms=None, residual_limit=-1, swaps=True):
    """Toggle the atom that gains most at these prices, or swap two atoms if no toggle gains, until neither gains."""
    code = np.array(code, np.uint8)
    forbidden = forbidden_atoms(x, atoms, prices)
    code[forbidden] = 0
    while len(atoms) and wrong_bits(x, atoms, code, algebra) > residual_limit:
        now = row_cost(x, atoms, code, algebra, prices)
        after = costs_after(x, atoms, code, algebra, prices)
        if max_atoms is not None and code.sum() >= max_atoms:
            after[code == 0] = now
        after[forbidden] = now
        best = int(np.argmin(after))  # the first of equals
        better = toggled(code, best) if after[best] < now else None
        if better is None and swaps:
            better = swapped(x, atoms, code, algebra, prices)
        if better is None:
            break
        code = better
    return code


def priced_code(X, atoms, codes, algebra, prices, max_atoms=None, residual_limit=-1, swaps=True):
    """Apply `priced_code_row` to every row."""
    return each_row(priced_code_row, X, atoms, codes, algebra, prices, max_atoms, residual_limit, swaps)


def first_useless(X, atoms, codes, algebra, prices, tried, worth, cost, first_rows=16, max_atoms=None):
    """Return the index of the first of these atoms without which all costs no more, and the codes without it.

    Some users are coded without the atom at first, then four times as many, until it is clear that it is useful.
    ``cost(codes, k)`` is the cost of errors and of uses of other atoms than k.
    """
    for index, k in enumerate(tried):
        users = np.flatnonzero(codes[:, k])
        n = len(users)
        step = next((step for step in range(int(0.618 * n), 0, -1) if math.gcd(step, n) == 1), 1)
        order = [users[nth * step % n] for nth in range(n)]
        refused = prices[0], np.where(np.arange(len(atoms)) == k, 1 << 27, prices[1]), *prices[2:]
        n_wanted, after = first_rows, codes.copy()
        while True:
            some = order[:n_wanted]
            after[some] = priced_code(X[some], atoms, codes[some], algebra, refused, max_atoms)
            most = worth[index]
            if n > n_wanted:
                most *= min(1.0, n_wanted / n * (1.0 + 1.5 / math.sqrt(n_wanted)))
            if cost(after, k) - cost(codes, k) > most:
                break
            if n <= n_wanted:
                return index, after
            n_wanted *= 4
    return len(tried), None


def cheaper(X, atoms, codes, others, algebra, prices):
    """Return, for every row, the other code if it costs less, else the code."""
    out = np.array(codes, np.uint8)
    for j, other in enumerate(others):
        if row_cost(X[j], atoms, other, algebra, prices) < row_cost(X[j], atoms, codes[j], algebra, prices):
            out[j] = other
    return out


def code_from_scratch(X, atoms, codes, algebra, prices, max_atoms=None, residual_limit=-1):
    """Code every row above the residual limit from scratch, and keep the result where it costs less."""
    fresh = priced_code(X, atoms, np.zeros_like(codes), algebra, prices, max_atoms, residual_limit)
    for j in range(len(X)):
        if wrong_bits(X[j], atoms, codes[j], algebra) <= residual_limit:
            fresh[j] = codes[j]
    return cheaper(X, atoms, codes, fresh, algebra, prices)


def nearest_code(X, atoms, remembered, algebra, prices, max_atoms=None, residual_limit=-1):
    """Return for every row the first remembered code that costs least, or no atoms if none costs less than that."""
    out = np.zeros((len(X), len(atoms)), np.uint8)
    allowed = [code for code in remembered if max_atoms is None or code.sum() <= max_atoms]
    candidates = np.array([np.zeros(len(atoms)), *allowed], np.uint8)
    products = product(candidates, atoms, algebra)
    for x, own in zip(X, out, strict=True):
        if np.count_nonzero(x == 1) > residual_limit:
            paid = (known(x) * (x ^ products)) @ prices[0] + candidates @ prices[1]
            own[:] = candidates[np.argmin(paid)]  # the first of equals
    return out


def code_from_remembered(X, atoms, remembered, algebra, prices, max_atoms=None, residual_limit=-1):
    """Code every row from scratch, and from its nearest remembered code, which is kept where it costs less."""
    limits = max_atoms, residual_limit
    nearest = nearest_code(X, atoms, remembered, algebra, prices, *limits)
    fresh = priced_code(X, atoms, np.zeros_like(nearest), algebra, prices, *limits)
    return cheaper(X, atoms, fresh, priced_code(X, atoms, nearest, algebra, prices, *limits), algebra, prices)


def beam_row(x, atoms, prices, width, patience, max_atoms=None):
    """Return the cheapest code found by a beam search of this width under XOR, which adds one atom per level.

    Of partial codes with the same product the cheapest is kept, of equal ones the first. The search ends after
    ``patience`` levels without a cheaper code.
    """
    none = np.zeros(len(atoms), np.uint8)
    best, lowest, idle = none, row_cost(x, atoms, none, "xor", prices), 0
    beam = [none]
    while idle < patience:
        longer = {}
        for partial in beam:
            if max_atoms is not None and partial.sum() >= max_atoms:
                continue
            after = costs_after(x, atoms, partial, "xor", prices)
            for k in np.flatnonzero(partial == 0):
                product = combine_row(toggled(partial, k), atoms, "xor").tobytes()
                same = longer.get(product)
                if same is None or after[k] < same[0]:
                    longer.pop(product, None)  # insert again at the end
                    longer[product] = after[k], toggled(partial, k)
        if not longer:
            break
        chosen = sorted(longer.values(), key=lambda item: item[0])[:width]  # stable
        beam = [code for _, code in chosen]
        idle += 1
        if chosen[0][0] < lowest:
            best, lowest, idle = beam[0], chosen[0][0], 0
    return best


def beam_pass(X, atoms, codes, prices, width, patience, max_atoms=None, residual_limit=-1):
    """Beam-code every row above the residual limit under XOR, and keep the result where it costs less."""
    found = np.array(codes, np.uint8)
    for j in range(len(X)):
        if wrong_bits(X[j], atoms, codes[j], "xor") > residual_limit:
            found[j] = beam_row(X[j], atoms, prices, width, patience, max_atoms)
    return cheaper(X, atoms, codes, found, "xor", prices)


def reduced_rows(rows, columns):
    """Gauss-Jordan elimination over GF(2): the first columns of this order that allow it become unit vectors.

    Return the reduced rows, the old rows that each is the sum of, and the pivot columns. Rows move up by exchanges.
    """
    out, sums, pivots = np.array(rows, np.uint8), np.eye(len(rows), dtype=np.uint8), []
    for column in columns:
        next_row = len(pivots)
        with_one = [i for i in range(next_row, len(out)) if out[i, column]]
        if with_one:
            for table in (out, sums):
                table[[next_row, with_one[0]]] = table[[with_one[0], next_row]]
            others = [i for i in range(len(out)) if i != next_row and out[i, column]]
            for table in (out, sums):
                table[others] ^= table[next_row]
            pivots.append(int(column))
    return out, sums, pivots


def rank(rows):
    """Return the rank over GF(2)."""
    return len(reduced_rows(rows, range(rows.shape[1]))[2])


def first_independent(rows):
    """Return the indices of rows that are not sums of earlier ones."""
    chosen = []
    for j in range(len(rows)):
        if rank(rows[[*chosen, j]]) > len(chosen):
            chosen.append(j)
    return chosen


def information_set(atoms, order, columns):
    """Return the pivot columns of the atoms, taken in this order, and the atoms in use: none that depends on others."""
    _, sums, pivots = reduced_rows(atoms[order], columns)
    return pivots, order[sums[: len(pivots)].any(axis=0)]


def information_set_candidates(x, atoms, pivots, used):
    """Return the code of a row without errors in the pivot columns, then those with an error in each of them in turn.

    Solve code[used] · atoms[used][:, pivots] = bits for all of them at once, by elimination.
    """
    bits = x[pivots] % 2  # zero in unknown cells
    wanted = np.array([bits, *(toggled(bits, i) for i in range(len(bits)))])
    system = np.hstack([atoms[used][:, pivots].T, wanted.T])
    solved, _, solved_for = reduced_rows(system, range(len(used)))
    assert solved_for == list(range(len(used)))
    codes = np.zeros((len(wanted), len(atoms)), np.uint8)
    codes[:, used] = solved[:, len(used) :].T
    return codes


def information_set_code(X, atoms, codes, order, columns, prices, max_atoms=None, slack=2):
    """Code every row from one set of columns, and keep the first of the cheapest codes where it costs less.

    Codes with more than ``slack`` additional errors are passed over.
    """
    out, draw = np.array(codes, np.uint8), information_set(atoms, order, columns)
    for j, x in enumerate(X):
        most = wrong_bits(x, atoms, codes[j], "xor") + slack
        for code in information_set_candidates(x, atoms, *draw):
            if max_atoms is not None and code.sum() > max_atoms:
                continue
            is_cheaper = row_cost(x, atoms, code, "xor", prices) < row_cost(x, atoms, out[j], "xor", prices)
            if is_cheaper and wrong_bits(x, atoms, code, "xor") <= most:
                out[j] = code
    return out


def light_sums(rows, made_of, weights, limit, depth):
    """List sums of up to ``depth`` rows that have fewer ones than the limit and than an original row they contain.

    ``made_of`` names the original rows, of these weights, that each row is the sum of. In the first 256 columns, there
    may be fewer ones than their share of the limit and two standard deviations of it. Return pairs of a sum and of the
    original rows it is made of.
    """
    n_words = -(-rows.shape[1] // 64)  # a share of whole words
    share = min(4, n_words) / n_words
    first_limit = share * limit + 2 * math.sqrt(share * (1 - share) * limit)
    listed = []
    groups = [group[::-1] for size in range(1, depth + 1) for group in combinations(range(len(rows)), size)]
    for group in sorted(groups):
        total, names = (np.bitwise_xor.reduce(table[list(group)]) for table in (rows, made_of))
        heaviest = max(weights[names == 1], default=0)
        if total[:256].sum() < first_limit and total.sum() < min(limit, heaviest):
            listed.append((total, names))
    return listed


def bucketed_pairs(hashes, n_buckets):
    """Return the pairs (i, j) with i > j, ordered, in the bucket of the XOR of their hashes."""
    buckets = [[] for _ in range(n_buckets)]
    for i in range(len(hashes)):
        for j in range(i):
            buckets[hashes[i] ^ hashes[j]].append((i, j))
    return buckets


def distances(rows):
    """Return in how many columns each pair of rows differs."""
    return (rows[:, np.newaxis] != rows).sum(axis=2)


def near_pairs(rows, hashes, order, limit, max_compared, is_listed, most):
    """Return pairs of near rows, each row with the last one before it, in this order, that has its hash and no pair."""
    distance, listed, pairs, n_compared = distances(rows), {int(i) for i in np.flatnonzero(is_listed)}, [], 0
    for p, i in enumerate(order):
        before = [j for j in order[:p][::-1] if hashes[j] == hashes[i] and j not in listed]
        if len(pairs) == most or n_compared > max_compared or i in listed:
            continue
        near = [distance[i, j] <= limit for j in before]
        n_compared += near.index(True) + 1 if any(near) else len(near)
        if any(near):
            pairs.append([i, before[near.index(True)]])
            listed.update(pairs[-1])
    return pairs


def votes_of_checks(bits, original, checks, hashed):
    """Return one round of votes on the bits of rows, from checks of four rows; a bit with a negative sum is one.

    A check has no vote in the columns by which it was found. If it is satisfied in a share (1 + a) / 2 of the others,
    it is wrong about a bit with probability (1 - a^.75) / 2, at least 0.002, and votes with its log odds for the value
    that would satisfy it. So does the original bit, with the share of errors that the median of a suggests, from 0.01
    to 0.4.
    """

    def log_odds(share):
        share = min(max(share, 0.002), 0.5)
        return math.log((1 - share) / share)

    has_vote = [np.isin(range(bits.shape[1]), columns, invert=True) for columns in hashed]
    odd = [np.bitwise_xor.reduce(bits[check]) for check in checks]
    agreement = [max(0.0, 1 - 2 * float(np.mean(one[vote]))) for one, vote in zip(odd, has_vote, strict=True)]
    noise = min(max((1 - float(np.median(agreement)) ** 0.25) / 2, 0.01), 0.4)
    total = log_odds(noise) * (1 - 2.0 * original)
    for check, parity, vote, share in zip(checks, odd, has_vote, agreement, strict=True):
        for j in check:
            total[j] += vote * log_odds((1 - share**0.75) / 2) * (1 - 2.0 * (bits[j] ^ parity))
    return total


def is_spanned(rows, basis):
    """Return which rows are sums of rows of a basis: those that are zero after their bits in the pivots are cleared."""
    reduced, _, pivots = reduced_rows(basis, range(basis.shape[1]))
    return ~(rows ^ product(rows[:, pivots], reduced[: len(pivots)], "xor")).any(axis=1)


def who_gains(X, atoms, codes, offered, algebra, prices):
    """Return, for each offered atom, the rows that would cost less with it as an additional atom: (offered, n)."""
    bits = np.array([error_prices(x, prices) for x in X]).reshape(X.shape)
    forbidden = np.array([forbidden_atoms(x, offered, prices) for x in X], bool).reshape(len(X), len(offered))
    out = np.zeros((len(offered), len(X)), np.uint8)
    for a, atom in enumerate(offered):
        off, on = errors_without_and_with(atom, X, atoms, codes, algebra)
        out[a] = ((off - on) * bits).sum(axis=1) > prices[1][a]
    return out * (1 - forbidden.T)


def errors_without_and_with(atom, X, atoms, codes, algebra):
    """Return the errors of all rows without an additional atom, and with it."""
    larger, ones = np.vstack([atoms, atom]), np.ones((len(X), 1), np.uint8)
    return [errors(X, larger, np.hstack([codes, ones * use]), algebra).astype(int) for use in (0, 1)]


def errors_fixed_by(atom, X, atoms, codes, algebra):
    """Return how many errors an additional atom fixes if the rows that have fewer errors with it use it."""
    off, on = errors_without_and_with(atom, X, atoms, codes, algebra)
    return int(np.maximum(0, off.sum(axis=1) - on.sum(axis=1)).sum())


def free_and_wrong(X, atoms, codes, k, algebra):
    """Count, for each bit, the users of atom k in which it is known and no other atom decides it, and wrong ones."""
    cover = codes.astype(int) @ atoms
    others = cover - np.outer(codes[:, k], atoms[k])  # other used atoms that have the bit
    wrong = X != (cover % 2 if algebra == "xor" else cover > 0)
    free = (codes[:, k, np.newaxis] == 1) & ((others == 0) | (algebra == "xor")) & (X <= 1)
    return free.sum(axis=0), (free & wrong).sum(axis=0)


def update_together(X, atoms, codes, algebra, weights=None):
    """Update all atoms from one pass of counts: flips of a column by decreasing gain, less the bound for each pair.

    ``weights`` are those of missed and of added ones in each column: (m,) and (m,).
    """
    out = np.array(atoms, np.uint8)
    shared = codes.T.astype(int) @ codes
    factor = 2 if algebra == "xor" else 1
    votes = [free_and_wrong(X, atoms, codes, k, algebra) for k in range(len(atoms))]
    if weights is None:
        weights = (np.ones(X.shape[1], int),) * 2
    factor *= int(max(*weights[0], *weights[1], 0))
    for i in range(X.shape[1]):
        missed, added = weights[0][i], weights[1][i]
        gains = []
        for k, (free, wrong) in enumerate(votes):
            fixed, made = (added, missed) if atoms[k, i] else (missed, added)
            gains.append(int(fixed * wrong[i] - made * (free[i] - wrong[i])))
        candidates = [k for k in range(len(atoms)) if votes[k][0][i] > 0 and gains[k] >= 0]
        admitted = []
        for k in sorted(candidates, key=lambda k: -gains[k]):  # ties by index
            bound = gains[k] - factor * sum(int(shared[k, other]) for other in admitted)
            if bound > 0 or (bound == 0 and atoms[k, i]):
                admitted.append(k)
        out[admitted, i] ^= 1
    return out


def best_numbers(X, rows, columns):
    """Set the numbers of each row in turn, twice, to the non-negative least-squares optimum of X ≈ rows · columns.T.

    In float32; sums run in the order of the columns, then of the atoms. An unknown cell takes the value of its
    approximation by the numbers so far. Columns are taken by words of 64: their ones, then their unknown cells.
    """
    out = rows.astype(np.float32)
    n_atoms = columns.shape[1]
    for x, numbers in zip(X, out, strict=True):
        residual = np.zeros(n_atoms, np.float32)
        for first in range(0, len(x), 64):
            word = x[first : first + 64]
            for j in first + np.flatnonzero(word == 1):
                residual = residual + columns[j]
            for j in first + np.flatnonzero(word > 1):
                value = np.float32(0)
                for k in range(n_atoms):
                    value = value + numbers[k] * columns[j, k]
                residual = residual + value * columns[j]
        pairs = pair_sums(columns)
        for k in range(n_atoms):
            residual = residual - numbers[k] * pairs[k]
        for k in [*range(n_atoms), *range(n_atoms)]:
            if pairs[k, k] > 0:
                better = max(np.float32(0), numbers[k] + residual[k] / pairs[k, k])
                residual = residual - (better - numbers[k]) * pairs[k]
                numbers[k] = better
    return out


def pair_sums(columns):
    """Return columns.T · columns in float32, added column by column."""
    total = np.zeros((columns.shape[1], columns.shape[1]), np.float32)
    for numbers in columns:
        total = total + numbers[:, np.newaxis] * numbers
    return total


def cell_counts(X, predicted):
    """Return how often the known cells of each column are v where u is predicted, of shape (2, 2, columns)."""
    counts = np.zeros((2, 2, X.shape[1]), np.int64)
    for j, i in np.argwhere(X <= 1):
        counts[predicted[j, i], X[j, i], i] += 1
    return counts


def bits_of_outcome(counts, outcome, left_out=0):
    """Return minus log2 of the frequency of one of two outcomes, each counted half a time more."""
    others, total = max(counts[outcome] - left_out, 0), max(sum(counts) - left_out, 0)
    return -math.log2((others + 0.5) / (total + 1))


def row_bits(x, predicted, code, cells, uses, left_out=0):
    """Return the bits of a row at these counts of cells and uses."""
    bits = sum(bits_of_outcome(cells[predicted[i], :, i], x[i], left_out) for i in np.flatnonzero(x <= 1))
    return bits + sum(bits_of_outcome(uses[:, k], code[k], left_out) for k in range(len(code)))


def soft_codes(X, atoms, codes, algebra, bias, cells, uses):
    """Return how many more bits each row takes if its code does not have an atom than if it has, for each atom.

    ``cells`` (2, m) count right and wrong cells, ``uses`` (2, p) the rows that do not use an atom and those that do.
    """

    def bits(x, code):
        wrong = x != combine_row(code, atoms, algebra) ^ bias
        of_cells = sum(bits_of_outcome(cells[:, i], int(wrong[i])) for i in np.flatnonzero(x <= 1))
        return of_cells + sum(bits_of_outcome(uses[:, k], used) for k, used in enumerate(code))

    out = np.zeros(codes.shape)
    for j, k in np.ndindex(*codes.shape):
        off = without(k, codes[j])
        out[j, k] = bits(X[j], off) - bits(X[j], toggled(off, k))
    return out


def shorten_code(x, atoms, code, algebra, bias, cells, uses, max_atoms=None):
    """Return the code after toggling the atom that saves most bits (the first of equals), until none saves any."""

    def bits(code):
        return row_bits(x, combine_row(code, atoms, algebra) ^ bias, code, cells, uses)

    code = np.array(code, np.uint8)
    while True:
        best, least = None, bits(code) - 1e-4  # ties, up to rounding of costs, are not followed
        for k in range(len(atoms)):
            other = toggled(code, k)
            if (max_atoms is None or code[k] or code.sum() < max_atoms) and bits(other) < least:
                best, least = other, bits(other)
        if best is None:
            return code
        code = best


def cell_probabilities(x, atoms, algebra, bias, cells, uses, max_atoms=None):
    """Return the probability of a one in each cell of a row: the mean over its codes, weighted by 2^-bits."""
    codes = [code for code in in_number_order(len(atoms)) if max_atoms is None or code.sum() <= max_atoms]
    predicted = [combine_row(code, atoms, algebra) ^ bias for code in codes]
    bits = np.array([row_bits(x, *each, cells, uses) for each in zip(predicted, codes, strict=True)])
    weights = 2.0 ** -(bits - bits.min())
    ones = [[2.0 ** -bits_of_outcome(cells[u, :, i], 1) for i, u in enumerate(each)] for each in predicted]
    return weights @ np.array(ones) / weights.sum()


def neighbors(image, n_neighbors):
    """Return for every pixel the values of its nearest neighbours, ties by line, then column; 0 beyond the border."""
    height, width = image.shape
    offsets = [(i, j) for i in range(-6, 7) for j in range(-6, 7) if (i, j) != (0, 0)]
    nearest = sorted(offsets, key=lambda offset: offset[0] ** 2 + offset[1] ** 2)[:n_neighbors]

    def value(i, j):
        return int(image[i, j]) if 0 <= i < height and 0 <= j < width else 0

    return {
        (i, j): tuple(value(i + down, j + across) for down, across in nearest)
        for i in range(height)
        for j in range(width)
    }


def dude(image, n_neighbors, noise):
    """Denoise by the rule of DUDE (Weissman et al. 2005) for binary symmetric channels."""
    contexts = neighbors(image, n_neighbors)
    counts = {}
    for pixel, context in contexts.items():
        counts.setdefault(context, [0, 0])[int(image[pixel])] += 1
    out = image.copy()
    for pixel, context in contexts.items():
        same, other = counts[context][int(image[pixel])], counts[context][1 - int(image[pixel])]
        if same * ((1 - noise) ** 2 + noise**2) < other * 2 * noise * (1 - noise):
            out[pixel] = 1 - image[pixel]
    return out


def evidence(image, block, tops, lefts, atoms, algebra, prices, bias):
    """Return, for every pixel, the mean over its blocks of the cost with a zero there minus the cost with a one."""
    height, width = block
    saved = {pixel: [] for pixel in np.ndindex(*image.shape)}
    for top in tops:
        for left in lefts:
            for i, j in np.ndindex(height, width):
                cost = []
                for value in (0, 1):
                    changed = image.copy()
                    changed[top + i, left + j] = value
                    x = changed[top : top + height, left : left + width].ravel() ^ bias
                    code = priced_code_row(x, atoms, np.zeros(len(atoms), np.uint8), algebra, prices)
                    cost.append(row_cost(x, atoms, code, algebra, prices))
                saved[top + i, left + j].append(cost[0] - cost[1])
    return np.array([np.mean(values) for values in saved.values()]).reshape(image.shape)


def overlap(atom, bias, other, other_bias):
    """Return the Jaccard index of what two atoms say: sets of pairs of a feature and whether it is present."""
    said = {(i, not bias[i]) for i in np.flatnonzero(atom)}
    also = {(i, not other_bias[i]) for i in np.flatnonzero(other)}
    return len(said & also) / len(said | also) if said | also else 0.0


def match_atoms(overlaps):
    """Match atoms one to one, the largest overlap first; return that of each row with its partner, 0 without one."""
    matched = np.zeros(len(overlaps))
    rows, columns = set(range(overlaps.shape[0])), set(range(overlaps.shape[1]))
    while rows and columns:
        row, column = min(all_choices(rows, columns), key=lambda pair: (-overlaps[pair], pair))
        matched[row] = overlaps[row, column]
        rows.discard(row)
        columns.discard(column)
    return matched


def rows_with(X, columns):
    """Return the rows that have all of these columns, or in which they are unknown."""
    return [j for j in range(len(X)) if all(X[j, i] for i in columns)]


def columns_of(X, rows):
    """Return the columns that all of these rows have, or in which they are unknown."""
    return [i for i in range(X.shape[1]) if all(X[j, i] for j in rows)]


def concepts(X, n_concepts=None):
    """Run GreConD (Algorithm 2 of its paper) by its definitions and return pairs (rows, columns)."""
    uncovered = {(j, i) for j, i in zip(*np.nonzero(X == 1), strict=True)}
    found = []
    while uncovered and (n_concepts is None or len(found) < n_concepts):
        columns, covered = [], 0
        while True:
            best, most = None, covered
            for i in range(X.shape[1]):
                if i not in columns:
                    rows = rows_with(X, [*columns, i])
                    closed = columns_of(X, rows)
                    covers = len(uncovered & {(row, column) for row in rows for column in closed})
                    if covers > most:
                        best, most = closed, covers
            if best is None:
                break
            columns, covered = best, most
        rows = rows_with(X, columns)
        found.append((rows, columns))
        uncovered -= {(row, column) for row in rows for column in columns}
    return found


def connected_columns(atoms):
    """Return the columns of atoms in groups: two columns of one atom are in the same group."""
    groups = []
    for atom in atoms:
        own = set(np.flatnonzero(atom).tolist())
        if own:
            own = own.union(*(group for group in groups if group & own))
            groups = [group for group in groups if not group & own] + [own]
    return [sorted(group) for group in groups]


def nearest_genotypes(X, pairs, wrong):
    """Samples in which no variant has two copies but not one, and how many were changed."""
    X, n_changed = X.copy(), 0
    for row in X:
        for first, second in pairs:
            if row[second] and not row[first]:
                row[first] = row[second] = wrong[first] > wrong[second]
                n_changed += 1
    return X, n_changed


def same_variant(own, given):
    """How two variants (id, chromosome, position, allele, other) are the same: None, or a rank, lowest first.

    0 is the same alleles, 1 swapped ones, 2 and 3 the same where some of them are unknown.
    """
    is_same_id = own[0] is not None and own[0] == given[0]
    is_same_place = own[2] > 0 and own[1] is not None and own[1:3] == given[1:3]
    if not (is_same_id or is_same_place):
        return None
    ways = [given[3:], given[:2:-1]]
    exact = [kind for kind, alleles in enumerate(ways) if alleles == own[3:]]
    if exact:
        return exact[0]
    for kind, alleles in enumerate(ways):
        known = [(a, b) for a, b in zip(own[3:], alleles, strict=True) if None not in (a, b)]
        if known and all(a == b for a, b in known):
            return 2 + kind
    return None


def similar_row_votes(cells, j, i, others, radius, decay):
    """Return the weights of the rows that have a one, and a known value, in column i, relative to the nearest row.

    The words up to a radius from that of the column are compared. The differing cells are counted as if all cells of
    these words were known; padding is known. A distance is rounded down to quarters.
    """
    n_words = -(-cells.shape[1] // 64)
    word = i // 64
    near = [w for w in range(n_words) if abs(w - word) <= radius]
    columns = [column for column in range(cells.shape[1]) if column // 64 in near]

    def share_known(row):
        n_unknown = sum(row[column] > 1 for column in columns)
        return max(64 * len(near) - n_unknown, 1) / (64 * len(near))

    wanted = [column for column in columns if column // 64 == word and cells[j, column] > 1]
    share, distances = share_known(cells[j]), []
    for row in others:
        differing = sum({cells[j, c], row[c]} == {0, 1} for c in columns)
        distances.append(int(4 * differing / share_known(row) / share + 1e-4) / 4)
    knowing = [d for d, row in zip(distances, others, strict=True) if any(row[c] < 2 for c in wanted)]
    nearest = min(knowing, default=0)
    weights = [np.exp(-decay * max(d - nearest, 0)) for d in distances]
    ones = sum(weight for weight, row in zip(weights, others, strict=True) if row[i] == 1)
    return ones, sum(weight for weight, row in zip(weights, others, strict=True) if row[i] < 2)


def tied_runs(X):
    """Runs of columns that are unknown (above 1) in the same two rows or more, and how their values are tied."""
    n, m = X.shape
    masks = [tuple(X[:, column] > 1) for column in range(m)]
    found, start = {}, 0
    while start < m:
        stop = start + 1
        while stop < m and masks[stop] == masks[start] and sum(masks[start]) >= 2:
            stop += 1
        rows = [tuple(X[row, start:stop]) for row in range(n) if X[row, start] < 2]
        if stop - start > 1 and all(sum(row) <= 1 for row in rows):
            found[tuple(range(start, stop))] = "exclusive"
        elif stop - start == 2 and ((0, 1) not in rows or (1, 0) not in rows):
            found[(start, start + 1)] = "nested"
        start = stop
    return found


def quantile_edges(numbers, bins):
    """Divide numbers at the values that split off shares closest to equal ones; an edge has as few digits as it can."""
    numbers = sorted(numbers)
    edges = []
    for part in range(1, bins):
        best = None
        for upper in sorted(set(numbers))[1:]:
            distance = abs(sum(number < upper for number in numbers) - part * (len(numbers) / bins))
            if best is None or distance < best[0]:
                best = distance, upper
        if best is not None:
            lower = max(number for number in numbers if number < best[1])
            edges.append(shortest_between(lower, best[1]))
    return sorted(set(edges))


def shortest_between(lower, upper):
    """Return the number above lower, and at most upper, that is a multiple of the largest power of ten."""
    for exponent in range(20, -20, -1):
        step = Fraction(10) ** exponent
        multiple = float((Fraction(repr(upper)) // step) * step)
        if lower < multiple <= upper:
            return multiple
    return upper


def one_hot(values, columns):
    """Return one row per value, with a 1 in the column of its test, and None everywhere if the value is missing."""
    return [[None if value is None else int(test(value)) for test in columns] for value in values]


def hidden_cells(X, variables, numbers, fold, share):
    """Return the cells that a fold hides: the known cells of a variable in a row, by the number of its first cell."""
    hidden = np.zeros(X.shape, bool)
    for i in range(len(X)):
        for columns in variables:
            is_hidden = (numbers[i, min(columns)] - fold * share) % 1 < share
            for j in columns:
                hidden[i, j] = is_hidden and X[i, j] <= 1
    return hidden


def fit_into_one_role(X, one, other):
    """Return whether a rectangle of ones has both cells."""
    return bool(X[one[0], other[1]] and X[other[0], one[1]])


def fewest_atoms_from_below(x, atoms):
    """Return the most ones of a row that atoms within it cover, and the fewest atoms that cover so many."""
    within = [atom for atom in atoms if atom.any() and not (atom & ~x & 1).any()]
    covered = combine_row([1] * len(within), np.array(within).reshape(len(within), len(x)), "or")
    for size in range(len(within) + 1):
        for chosen in combinations(within, size):
            if (combine_row([1] * size, np.array(chosen).reshape(size, len(x)), "or") == covered).all():
                return int(covered.sum()), size
    raise AssertionError


def role_statements(X, atoms, codes, min_peers, min_share):
    """Return what a role report states, by indices: roles, permissions, users, pairs of roles, unusual and missing."""
    n, m, k = len(X), X.shape[1], len(atoms)
    has = [{j for j in range(m) if X[i, j]} for i in range(n)]
    gives = [{j for j in range(m) if atoms[r, j]} for r in range(k)]
    roles_of = [[r for r in range(k) if codes[i, r]] for i in range(n)]
    users_of = [[i for i in range(n) if codes[i, r]] for r in range(k)]
    direct = [{j for j in has[i] if not any(j in gives[r] for r in roles_of[i])} for i in range(n)]

    def role(r):
        own = [j for j in sorted(gives[r]) if not any(j in gives[s] for s in range(k) if s != r)]
        only = [i for i in users_of[r] if roles_of[i] == [r]]
        n_only = sum(not any(j in gives[s] for s in roles_of[i] if s != r) for i in users_of[r] for j in gives[r])
        return sorted(gives[r]), users_of[r], own, only, len(gives[r]) * len(users_of[r]), n_only

    def fit(i):
        if not has[i]:
            return "empty"
        if not roles_of[i]:
            return "none"
        return "shared" if any(len(users_of[r]) > 1 for r in roles_of[i]) else "own"

    def jaccard(one, other):
        return len(one & other) / max(1, len(one | other))

    pairs = []
    for r, s in combinations(range(k), 2):
        users = set(users_of[r]), set(users_of[s])
        shared, overlap, same = gives[r] & gives[s], jaccard(gives[r], gives[s]), jaccard(*users)
        if shared or same >= 0.9:
            within = s if gives[s] and gives[s] <= gives[r] else r if gives[r] and gives[r] <= gives[s] else None
            pairs.append((r, s, len(shared), overlap, len(users[0] & users[1]), same, within))
    pairs.sort(key=lambda pair: (-pair[3], -pair[5], pair[:2]))
    unusual, missing = [], []
    for i in range(n):
        peers = {r: [u for u in users_of[r] if u != i] for r in roles_of[i]}
        large = {r: others for r, others in peers.items() if len(others) >= min_peers}
        for j in range(m):
            n_with = {r: sum(int(X[u, j]) for u in others) for r, others in large.items()}
            lack = [(len(large[r]) - n_with[r]) / len(large[r]) for r in large]
            if X[i, j] and large and not any(j in gives[r] for r in large) and min(lack) >= min_share:
                r = min(large, key=lambda r: (-len(large[r]), r))
                given_by = [s for s in roles_of[i] if j in gives[s]]
                unusual.append((i, j, r, len(large[r]), n_with[r], given_by))
            having = [r for r in large if n_with[r] / len(large[r]) >= min_share and n_with[r]]
            if not X[i, j] and having:
                r = min(having, key=lambda r: (-Fraction(n_with[r], len(large[r])), -len(large[r]), r))
                missing.append((i, j, r, len(large[r]), n_with[r], []))
    return {
        "roles": [role(r) for r in range(k)],
        "permissions": [
            (
                [r for r in range(k) if j in gives[r]],
                [i for i in range(n) if j in has[i]],
                sum(j in direct[i] for i in range(n)),
            )
            for j in range(m)
        ],
        "users": [(roles_of[i], len(has[i]), sorted(direct[i]), fit(i)) for i in range(n)],
        "pairs": pairs,
        "unusual": unusual,
        "missing": missing,
    }


def matched_roles(old, new, threshold):
    """Return the pairs (old, new) of roles that are each other's counterpart: the largest overlap first."""

    def overlap(r, s):
        if not old[r].any() and not new[s].any():
            return 1.0
        return float((old[r] & new[s]).sum() / (old[r] | new[s]).sum())

    candidates = [(-overlap(r, s), r != s, r, s) for r in range(len(old)) for s in range(len(new))]
    pairs = []
    for value, _, r, s in sorted(candidates):  # role r has the name of role s if r == s
        if value and -value >= threshold and r not in [p[0] for p in pairs] and s not in [p[1] for p in pairs]:
            pairs.append((r, s))
    return sorted(pairs, key=lambda pair: pair[1])


def repeat_rows(X, weights):
    """Return the rows of a table, each as often as its weight states."""
    return np.array([row for row, weight in zip(X, weights, strict=True) for _ in range(int(weight))])


def violates_limits(atoms, max_features, apart, together):
    """Return whether an atom has too many features, several of a set that is apart, or some of a set but not all."""
    for atom in atoms:
        ones = {i for i, bit in enumerate(atom) if bit}
        if max_features is not None and len(ones) > max_features:
            return True
        if any(len(ones & set(each)) > 1 for each in apart):
            return True
        if any(0 < len(ones & set(each)) < len(set(each)) for each in together):
            return True
    return False


def pooled(shares, stated, weights, curve, values):
    """Probabilities of the values of one variable, of which each is given by its cells, by a pool of predictors.

    ``shares`` and each of ``stated`` are probabilities of ones in the cells of one row.
    """
    scores = np.zeros(len(values))
    for weight, cells in zip(weights, [shares, *stated], strict=True):
        cells = 0.99 * np.asarray(cells) + 0.01 * np.asarray(shares)
        if len(values) == len(values[0]):
            own = np.array(cells)
        elif len(values[0]) == 1:
            own = np.array([1 - cells[0], cells[0]])
        elif [1, 1] in np.asarray(values).tolist():
            own = np.array([1 - cells[0], cells[0] - cells[1], cells[1]])
        else:
            own = np.array([1 - sum(cells), *cells])
        own = np.maximum(own, 1e-9)
        scores += weight * np.log(own / own.sum())
    return bent_probabilities(scores, curve, is_binary=len(values) == 2)


def bent_probabilities(scores, curve, is_binary=False):
    """Probabilities proportional to the exponentials of scores, after a curve has bent their log odds."""
    bent = []
    for value, probability in enumerate(np.exp(scores) / np.exp(scores).sum()):
        probability = min(max(probability, 1e-7), 1 - 1e-7)
        odds, height = np.log(probability / (1 - probability)), curve[-1]
        height += curve[0] * odds
        for slope, share in zip(curve[1:5], (0.2, 0.4, 0.6, 0.8), strict=True):
            knot = np.log(share / (1 - share))
            is_beyond = odds < knot if share < 0.5 else odds > knot
            height += slope * (odds - knot) if is_beyond else 0
        bent.append(0 if value == 0 and is_binary else height)
    return np.exp(bent) / np.exp(bent).sum()


def missing_feature(shares, stated, weights, curve, row):
    """Probability of each feature that a row lacks that it is the one that is missing; 0 for those that it has."""
    lacking = [column for column, cell in enumerate(row) if cell == 0]
    scores = np.zeros(len(lacking))
    for weight, cells in zip(weights, [shares, *stated], strict=True):
        scores += weight * np.log(0.99 * np.asarray(cells)[lacking] + 0.01 * np.asarray(shares)[lacking])
    made = np.zeros(len(row))
    made[lacking] = bent_probabilities(scores, curve)
    return made


def ridge_predictions(cells, own, penalty):
    """What the other columns predict for the columns of a variable, by ridge regression on standardized columns."""
    shares = (cells.sum(axis=0) + 0.5) / (len(cells) + 1)
    scaled = (cells - shares) / np.sqrt(shares * (1 - shares))
    others = [column for column in range(cells.shape[1]) if column not in own]
    matrix = scaled[:, others].T @ scaled[:, others] + penalty * np.eye(len(others))
    weights = np.linalg.solve(matrix, scaled[:, others].T @ scaled[:, own])
    made = shares[own] + scaled[:, others] @ weights * np.sqrt(shares * (1 - shares))[own]
    return np.clip(made, 0.1 * shares[own], 1 - 0.1 * (1 - shares[own]))
