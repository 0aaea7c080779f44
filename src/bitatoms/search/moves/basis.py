"""Basis moves: other atoms with the same product, under XOR. Errors do not change; atoms and codes may take fewer bits.

`change_basis` adds one atom to another: atom k becomes d_k + d_l, and l gets the users of k too. Where the sums of many
atoms are better, no such pair may save anything. `lighten_codes` therefore looks for sums of any number of columns of
the codes that have few ones, as the theory of error-correcting codes looks for words of low weight: reduce the columns
to pivots in rows drawn at random. A column with few ones has ones in few of these rows, so that it is the sum of two or
three reduced columns. Of all sums found, the lightest that are independent replace the columns; this choice is optimal,
because independent sums are a matroid.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix
from ...core.block import Block, Words
from ...core.information_sets import identity
from ...core.objective import Objective
from ...kernels.cpu import dictionary, gf2, words

_SAMPLE_ROWS = 4096  # rows in which the ones of a column are counted, while sums are sought
_MAX_SUMS = 4096  # kept per draw
_MAX_DRAWS, _PATIENCE = 4000, 100  # draws of rows, and those in a row that give no lighter column
_DEVIATIONS = 3.5  # standard deviations by which a light sum has fewer ones than random bits
_MAX_ATOMS = 128  # with more, a table is seldom a sum of so few
_MAX_TRIPLE_ATOMS = 64  # with more, only sums of two reduced columns are tried


def change_basis(block: Block, objective: Objective, max_moves: int = 200) -> int:
    """Make the move that saves most bits in atoms and codes, until none saves any; return how many were made."""
    n, m, p = block.n_rows, block.n_features, block.n_atoms
    if block.covers or p < 2:
        return 0
    atoms, users = block.atoms().words.copy(), block.users()
    overlaps = np.empty((p, p), np.int32)
    dictionary.overlap_atoms(atoms, np.ones(p, np.uint8), 1, overlaps)
    pairs = block.pairs()
    pairs += np.tril(pairs, -1).T
    weights, uses = overlaps.diagonal().copy(), pairs.diagonal().copy()
    # saved[k, l]: bits saved by adding atom l to atom k and the users of k to those of l.
    saved = objective.of_atoms(m, weights)[:, np.newaxis] - objective.of_atoms(
        m, weights[:, np.newaxis] + weights - 2 * overlaps
    )
    saved += objective.of_uses(n, uses) - objective.of_uses(n, uses[:, np.newaxis] + uses - 2 * pairs)
    np.fill_diagonal(saved, 0)
    n_moves = 0
    while n_moves < max_moves:
        k, other = divmod(int(saved.argmax()), p)
        if saved[k, other] <= 0:
            break
        atoms[k] ^= atoms[other]
        users[other] ^= users[k]
        overlaps[k] = overlaps[:, k] = np.bitwise_count(atoms & atoms[k]).sum(axis=1)
        pairs[other] = pairs[:, other] = np.bitwise_count(users & users[other]).sum(axis=1)
        weights[k], uses[other] = overlaps[k, k], pairs[other, other]
        for i in (k, other):
            sum_atoms = objective.of_atoms(m, weights + weights[i] - 2 * overlaps[i])
            sum_uses = objective.of_uses(n, uses + uses[i] - 2 * pairs[i])
            now_atoms, now_uses = objective.of_atoms(m, weights), objective.of_uses(n, uses)
            saved[i] = now_atoms[i] - sum_atoms + now_uses - sum_uses
            saved[:, i] = now_atoms - sum_atoms + now_uses[i] - sum_uses
            saved[i, i] = 0
        n_moves += 1
    if n_moves:
        block.change_basis(atoms, users)
    return n_moves


def lighten_codes(block: Block, objective: Objective, random: np.random.Generator, patience: int = _PATIENCE) -> bool:
    """Replace atoms by sums of atoms so that rows use fewer of them; return whether that saves bits.

    It ends after ``patience`` draws of rows that give no lighter column.
    """
    n, m, p = block.n_rows, block.n_features, block.n_atoms
    if block.covers or not 1 < p <= _MAX_ATOMS:
        return False
    users = block.users()
    sample = BitMatrix.from_words(users, n, check=False)
    if n > _SAMPLE_ROWS:
        sample = sample.T[np.sort(random.choice(n, _SAMPLE_ROWS, replace=False))].T
    sums = _lightest_sums(sample.words, sample.n_cols, random, patience)
    if sums is None:
        return False
    users = _times(sums, users)
    atoms = _times(BitMatrix.from_words(_inverse(sums), p, check=False).T.words, block.atoms().words)
    before = objective.of_atoms(m, block.weights()).sum() + objective.of_uses(n, block.uses()).sum()
    if objective.of_atoms(m, _weights(atoms)).sum() + objective.of_uses(n, _weights(users)).sum() >= before:
        return False
    block.change_basis(atoms, users)
    return True


def _lightest_sums(columns: Words, n_rows: int, random: np.random.Generator, patience: int) -> Words | None:
    """Return as many independent sums of columns with few ones, each as the columns to add; None if none is lighter.

    ``columns`` are packed: one row of words per column.
    """
    p, n_words = columns.shape
    current, sums = columns, identity(p)
    width = n_words + sums.shape[1]
    zero, found = np.zeros(width, np.uint64), np.empty((_MAX_SUMS, width), np.uint64)
    no_sums, pivots = np.empty((p, 0), np.uint64), np.empty(p, np.int64)
    depth = 3 if p <= _MAX_TRIPLE_ATOMS else 2
    failures = 0
    for _ in range(_MAX_DRAWS):
        ones = _weights(current)
        limit = min(int(ones.max()), int(n_rows / 2 - _DEVIATIONS * np.sqrt(n_rows) / 2))
        reduced = np.hstack([current, identity(p)])[random.permutation(p)]
        rank = gf2.reduce_rows(reduced, no_sums, random.permutation(n_rows), pivots)
        count = gf2.list_light_sums(reduced, zero, ones, rank, n_words, limit, depth, found)
        failures = 0 if count else failures + 1
        if count:
            pool = np.vstack([current, found[:count, :n_words]])
            made_of = np.vstack([identity(p), found[:count, n_words:]])
            order = np.argsort(_weights(pool), kind="stable")
            chosen = order[_first_independent(made_of[order], p)]
            current, sums = pool[chosen], _times(made_of[chosen], sums)
        if failures == patience:
            break
    return sums if current is not columns else None


def _weights(rows: Words) -> NDArray[np.int64]:
    """Return the number of ones in each row."""
    return np.bitwise_count(rows).sum(axis=1, dtype=np.int64)


def _first_independent(rows: Words, rank: int) -> NDArray[np.int64]:
    """Return the indices of the first rows that are not sums of earlier ones; together they have this rank."""
    rows = np.ascontiguousarray(rows)
    chosen = np.empty(rank, np.int64)
    by_top = np.full(64 * rows.shape[1], -1, np.int64)
    count = gf2.first_independent(rows, np.empty((rank, rows.shape[1]), np.uint64), by_top, chosen)
    return chosen[:count]


def _times(sums: Words, rows: Words) -> Words:
    """Return the sums of rows, each given by the rows to add."""
    product = np.zeros((len(sums), rows.shape[1]), np.uint64)
    words.add_product(sums, rows, None, np.empty((0, 0), np.uint64), 0, len(sums), product[0].copy(), product)
    return product


def _inverse(sums: Words) -> Words:
    """Return the inverse of an invertible square matrix."""
    p = len(sums)
    inverse = identity(p)
    gf2.reduce_rows(sums.copy(), inverse, np.arange(p), np.empty(p, np.int64))
    return inverse
