"""Slow, obvious answers, straight from the definitions: dense 0/1 arrays, plain loops, nothing from the package.

Rows of X are samples; ``atoms`` is (p, m), ``codes`` (n, p), ``bias`` (m,) or None. ``algebra`` is "xor" or "or".
Functions return new uint8 arrays and leave what they are given alone.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product as all_choices

import numpy as np


def combine_row(code, atoms, algebra):
    """The XOR or the OR of the atoms that a code uses."""
    row = np.zeros(atoms.shape[1], np.uint8)
    for k, used in enumerate(code):
        if used:
            row = row ^ atoms[k] if algebra == "xor" else row | atoms[k]
    return row


def product(codes, atoms, algebra):
    """codes · atoms in the algebra."""
    out = np.zeros((codes.shape[0], atoms.shape[1]), np.uint8)
    for j in range(codes.shape[0]):
        out[j] = combine_row(codes[j], atoms, algebra)
    return out


def errors(X, atoms, codes, algebra, bias=None):
    """X ⊕ bias ⊕ codes · atoms."""
    out = X ^ product(codes, atoms, algebra)
    return out if bias is None else out ^ np.asarray(bias, np.uint8)


def string_bits(n, r):
    """⌈log2 n⌉ + ⌈log2 C(n, r)⌉, with integers only; 0 for a string of length 0."""
    if n == 0:
        return 0
    return (n - 1).bit_length() + (math.comb(n, r) - 1).bit_length()


def codelength(X, atoms, codes, algebra, bias=None):
    """Bits for the errors (a string a column), the codes (a string an atom) and the atoms (a string each)."""
    n, m = X.shape
    wrong = errors(X, atoms, codes, algebra, bias)
    error_bits = sum(string_bits(n, int(wrong[:, i].sum())) for i in range(m))
    code_bits = sum(string_bits(n, int(codes[:, k].sum())) for k in range(codes.shape[1]))
    atom_bits = sum(string_bits(m, int(atom.sum())) for atom in atoms)
    if bias is not None and np.any(bias):
        atom_bits += string_bits(m, int(np.sum(bias)))
        code_bits += (n - 1).bit_length() if n else 0
    return error_bits, code_bits, atom_bits


def wrong_bits(x, atoms, code, algebra):
    """How many bits of one row are wrong under a code."""
    return int((x ^ combine_row(code, atoms, algebra)).sum())


def toggled(code, k):
    """The code with atom k taken in or out."""
    code = code.copy()
    code[k] ^= 1
    return code


def code_row(x, atoms, code, rule, algebra, max_atoms=None, residual_limit=0):
    """Toggle the best atom while that lowers the wrong bits: best by gain ("greedy") or by gain / |atom| ("bmp")."""
    code = np.array(code, np.uint8)
    while True:
        before = wrong_bits(x, atoms, code, algebra)
        if before <= residual_limit:
            return code
        best = None
        for k in range(len(atoms)):
            if max_atoms is not None and code.sum() >= max_atoms and not code[k]:
                continue
            gain = before - wrong_bits(x, atoms, toggled(code, k), algebra)
            weight = int(atoms[k].sum())
            if gain <= 0 or weight == 0:
                continue
            merit = gain if rule == "greedy" else Fraction(gain, weight)
            if best is None or merit > best[0]:
                best = merit, k
        if best is None:
            return code
        code = toggled(code, best[1])


def code(X, atoms, codes, rule, algebra, max_atoms=None, residual_limit=0):
    """`code_row` for every row."""
    out = np.array(codes, np.uint8)
    for j in range(len(X)):
        out[j] = code_row(X[j], atoms, codes[j], rule, algebra, max_atoms, residual_limit)
    return out


def in_number_order(length):
    """All strings of 0 and 1 in the order of the numbers they are, the first bit being the lowest."""
    for bits in all_choices((0, 1), repeat=length):
        yield np.array(bits[::-1], np.uint8)


def exact_code_row(x, atoms, code, algebra, max_atoms=None, residual_limit=0):
    """The best of all codes with at most max_atoms atoms: the given one, or the lowest of those strictly better."""
    best = np.array(code, np.uint8)
    fewest = wrong_bits(x, atoms, best, algebra)
    if fewest <= residual_limit:
        return best
    for candidate in in_number_order(len(atoms)):
        if max_atoms is not None and candidate.sum() > max_atoms:
            continue
        wrong = wrong_bits(x, atoms, candidate, algebra)
        if wrong < fewest:
            best, fewest = candidate, wrong
    return best


def exact_code(X, atoms, codes, algebra, max_atoms=None, residual_limit=0):
    """`exact_code_row` for every row."""
    out = np.array(codes, np.uint8)
    for j in range(len(X)):
        out[j] = exact_code_row(X[j], atoms, codes[j], algebra, max_atoms, residual_limit)
    return out


def exact_atoms(X, atoms, codes, algebra):
    """Per feature the best of all columns of atoms: the given one, or the lowest of those strictly better."""
    out = np.array(atoms, np.uint8)
    for i in range(X.shape[1]):
        wanted = X[:, i : i + 1]
        fewest = int(errors(wanted, out[:, i : i + 1], codes, algebra).sum())
        for candidate in in_number_order(len(atoms)):
            wrong = int(errors(wanted, candidate[:, np.newaxis], codes, algebra).sum())
            if wrong < fewest:
                out[:, i], fewest = candidate, wrong
    return out


def without(k, code):
    """The code with atom k left out."""
    code = code.copy()
    code[k] = 0
    return code


def wanted_and_open(X, atoms, codes, k, algebra):
    """What each row would have of atom k, its other atoms standing, and where it has a say: (n, m) each.

    Under XOR atom k always decides the bit; under OR only where no other used atom covers it.
    """
    wanted = np.zeros_like(X)
    is_open = np.ones(X.shape, bool)
    for j in range(len(X)):
        others = combine_row(without(k, codes[j]), atoms, algebra)
        wanted[j] = X[j] ^ others if algebra == "xor" else X[j]
        if algebra == "or":
            is_open[j] = others == 0
    return wanted, is_open


def vote(X, atoms, codes, k, algebra):
    """Atom k as the majority of its users want it, bit by bit; a tie gives 0, and a bit without a voter stays."""
    wanted, is_open = wanted_and_open(X, atoms, codes, k, algebra)
    atom = atoms[k].copy()
    for i in range(X.shape[1]):
        voters = [j for j in range(len(X)) if codes[j, k] and is_open[j, i]]
        if voters:
            yes = sum(int(wanted[j, i]) for j in voters)
            atom[i] = 2 * yes > len(voters)
    return atom


def mob_sweep(X, atoms, codes, algebra):
    """MOB: every used atom in index order takes the vote of its users, the errors fresh each time."""
    atoms = np.array(atoms, np.uint8)
    for k in range(len(atoms)):
        if codes[:, k].any():
            atoms[k] = vote(X, atoms, codes, k, algebra)
    return atoms


def use_where_it_pays(X, atoms, codes, k, algebra, max_atoms=None):
    """The uses of atom k over all rows: where more than half of its bits that it decides are wrong without it."""
    wanted, is_open = wanted_and_open(X, atoms, codes, k, algebra)
    uses = np.zeros(len(X), np.uint8)
    for j in range(len(X)):
        if max_atoms is not None and codes[j].sum() >= max_atoms and not codes[j, k]:
            continue
        decided = [i for i in range(X.shape[1]) if atoms[k, i] and is_open[j, i]]
        uses[j] = 2 * sum(int(wanted[j, i]) for i in decided) > len(decided)
    return uses


def kprox_sweep(X, atoms, codes, algebra, max_atoms=None):
    """K-PROX: every used atom in index order, the vote and then its codes over all rows, until neither changes."""
    atoms, codes = np.array(atoms, np.uint8), np.array(codes, np.uint8)
    for k in range(len(atoms)):
        while codes[:, k].any():
            atom = vote(X, atoms, codes, k, algebra)
            same_atom = np.array_equal(atom, atoms[k])
            atoms[k] = atom
            uses = use_where_it_pays(X, atoms, codes, k, algebra, max_atoms)
            same_uses = np.array_equal(uses, codes[:, k])
            codes[:, k] = uses
            if same_atom and same_uses:
                break
    return atoms, codes


def rank_one(E, atom):
    """Proximus from an atom: users by the majority of its bits, the atom by the majority of its users, in turn."""
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
    """Proposition 1: no single flip in the users or in the atom lowers the number of wrong bits of E ⊕ users·atom."""
    wrong = int((E ^ np.outer(users, atom)).sum())
    flips = [(toggled(users, j), atom) for j in range(len(users))] + [
        (users, toggled(atom, i)) for i in range(len(atom))
    ]
    return all(int((E ^ np.outer(u, v)).sum()) >= wrong for u, v in flips)
