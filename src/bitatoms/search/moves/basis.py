"""Changes of basis, under XOR: atoms are replaced by sums of atoms. The errors do not change.

A basis move adds one atom to another: atom k becomes d_k + d_l, and l gets the users of k too. The product of codes and
atoms stays the same, and both may take fewer bits.

Where sums of many atoms are better, no such pair may save anything. Light sums replace atoms by sums of any number of
atoms, so that codes have fewer ones: sums of columns of the codes replace the columns, and the atoms follow.
Sums with few ones are sought as the theory of error-correcting codes looks for words of low weight: reduce the columns
to pivots in rows drawn at random. A column with few ones has ones in few of these rows, so that it is the sum of two or
three reduced columns. Of all sums found, the lightest that are independent replace the columns; this choice is optimal,
because independent sums are a matroid.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from ...bits import BitMatrix, count_ones
from ...engine.block import Block, Words
from ...engine.host_rows import read_only, transposed
from ...engine.information_sets import identity
from ...engine.objective import Objective
from ...kernels.cpu import dictionary, gf2, words

_SAMPLE_ROWS = 4096  # rows in which the ones of a column are counted, while sums are sought
_MAX_SUMS = 4096  # kept per draw
_MAX_DRAWS = 20_000  # in all
_LEAST_GAIN = 1e-4  # of the ones of all columns, or a draw has failed
_MISSED = 0.2  # probability that a vector as light as those found is missed,
_QUANTILE = 0.75  # if it has as many ones as this quantile of those found
_DEVIATIONS = 3.5  # standard deviations by which a light sum has fewer ones than random bits
_MAX_ATOMS = 128  # with more, a table is seldom a sum of so few
_MAX_TRIPLE_ATOMS = 64  # with more, only sums of two reduced vectors are tried


def change_basis(block: Block, objective: Objective, max_moves: int = 200) -> int:
    """Make the move that saves most bits in atoms and codes, until none saves any; return how many were made."""
    n, m, p = block.n_samples, block.n_features, block.n_atoms
    if block.covers or p < 2:
        return 0
    atoms, users = block.atoms().words.copy(), block.rows.users()
    overlaps = np.empty((p, p), np.int32)
    dictionary.overlap_atoms(atoms, np.ones(p, np.uint8), 1, overlaps)
    pairs = block.rows.pairs()
    pairs += np.tril(pairs, -1).T
    weights, uses = overlaps.diagonal().copy(), pairs.diagonal().copy()
    ends = objective.code.ends(block.atoms())
    # saved[k, l]: bits saved by adding atom l to atom k and the users of k to those of l.
    saved = objective.of_ones(m, weights, ends)[:, np.newaxis] - objective.of_ones(
        m, weights[:, np.newaxis] + weights - 2 * overlaps, objective.code.ends_of_sums(ends)
    )
    saved += objective.of_uses(n, uses) - objective.of_uses(n, uses[:, np.newaxis] + uses - 2 * pairs)
    np.fill_diagonal(saved, 0)
    best = saved.argmax(axis=1)  # the best atom to add to each atom
    most = saved[np.arange(p), best]
    n_moves = 0
    while n_moves < max_moves:
        k = int(most.argmax())
        other = int(best[k])
        if most[k] <= 0:
            break
        pairs[other] = pairs[:, other] = _pairs_of_sum(users, pairs, other, k)
        users[other] ^= users[k]
        atoms[k] ^= atoms[other]
        overlaps[k] = overlaps[:, k] = np.bitwise_count(atoms & atoms[k]).sum(axis=1)
        weights[k], uses[other] = overlaps[k, k], pairs[other, other]
        ends[:, k] = objective.code.ends(BitMatrix.from_words(atoms[k : k + 1].copy(), m, check=False))[:, 0]
        for i in (k, other):
            of_sums = objective.code.ends_of_sums(ends, i)
            sum_atoms = objective.of_ones(m, weights + weights[i] - 2 * overlaps[i], of_sums)
            sum_uses = objective.of_uses(n, uses + uses[i] - 2 * pairs[i])
            now_atoms = objective.of_ones(m, weights, ends)
            now_uses = objective.of_uses(n, uses)
            saved[i] = now_atoms[i] - sum_atoms + now_uses - sum_uses
            saved[:, i] = now_atoms - sum_atoms + now_uses[i] - sum_uses
            saved[i, i] = 0
        # Elsewhere, these two columns alone have changed.
        is_old = (best == k) | (best == other)
        is_old[[k, other]] = True
        for i in sorted((k, other)):
            is_better = ~is_old & ((saved[:, i] > most) | ((saved[:, i] == most) & (i < best)))
            best[is_better], most[is_better] = i, saved[is_better, i]
        best[is_old] = saved[is_old].argmax(axis=1)
        most[is_old] = saved[is_old, best[is_old]]
        n_moves += 1
    if n_moves:
        block.change_basis(atoms, users)
    return n_moves


def _pairs_of_sum(users: Words, pairs: NDArray[np.int32], k: int, other: int) -> NDArray[np.int64]:
    """Return in how many rows each atom is used together with atom k, once k gets the users of another atom.

    Rows that use both atoms are few, so that only some words of all users are read.
    """
    both = users[k] & users[other]
    words = np.flatnonzero(both)
    all_three = count_ones(users[:, words] & both[words])
    counts = pairs[k] + pairs[other] - 2 * all_three
    counts[k] = pairs[k, k] + pairs[other, other] - 2 * pairs[k, other]
    return counts


def lighten(
    block: Block, objective: Objective, random: np.random.Generator, patience: int = 10, max_patience: int = 10
) -> bool:
    """Replace atoms by sums of atoms so that the codes have fewer ones; return whether that saves bits.

    Sums are sought until ``patience`` draws in a row gain hardly anything, or up to ``max_patience`` where columns as
    light as those found so far are rarely drawn.
    """
    if block.covers or not 1 < block.n_atoms <= _MAX_ATOMS:
        return False
    n, users, atoms = block.n_samples, block.rows.users(), block.atoms()
    sums = _lightest_sums(_sampled_users(block, random), random, patience, max_patience)
    if sums is None:
        return False
    new_atoms, new_users = _times(_transposed_inverse(sums), atoms.words), _times(sums, users)
    before = objective.of_atoms(atoms).sum() + objective.of_uses(n, block.uses()).sum()
    as_bits = BitMatrix.from_words(new_atoms.copy(), block.n_features, check=False)
    if objective.of_atoms(as_bits).sum() + objective.of_uses(n, count_ones(new_users)).sum() >= before:
        return False
    block.change_basis(new_atoms, new_users)
    return True


def _sampled_users(block: Block, random: np.random.Generator) -> BitMatrix:
    """Return the columns of the codes, in a sample of the rows if these are many."""
    users = BitMatrix.from_words(block.rows.users(), block.n_rows, check=False)
    if block.n_rows > _SAMPLE_ROWS:
        users = users.T[np.sort(random.choice(block.n_rows, _SAMPLE_ROWS, replace=False))].T
    return users


def _lightest_sums(vectors: BitMatrix, random: np.random.Generator, patience: int, max_patience: int) -> Words | None:
    """Return as many independent sums of vectors, each as the vectors to add; None if none is lighter.

    Sums with as many ones as random bits have are not sought.
    """
    (p, length), n_words = vectors.shape, max(gf2.FIRST_WORDS, vectors.words.shape[1])
    limit = int(length / 2 - _DEVIATIONS * np.sqrt(length) / 2)
    current = original = np.pad(vectors.words, ((0, 0), (0, n_words - vectors.words.shape[1])))
    sums = unit = identity(p)
    width = n_words + sums.shape[1]
    work, found = np.empty((2, width), np.uint64), np.empty((_MAX_SUMS, width), np.uint64)
    no_sums, pivots = np.empty((p, 0), np.uint64), np.empty(p, np.int64)
    depth = min(p, 3 if p <= _MAX_TRIPLE_ATOMS else 2)
    ones, n_draws, failures = count_ones(current), 0, 0
    while failures < patience and n_draws < _MAX_DRAWS and limit > 0:
        n_draws += 1
        reduced = np.hstack([current, unit])[random.permutation(p)]
        rank = gf2.reduce_rows(reduced, no_sums, random.permutation(length), pivots)
        count = gf2.list_light_sums(reduced, work, ones, rank, n_words, min(limit, int(ones.max())), depth, found)
        failures += 1
        if count:
            pool = np.vstack([current, found[:count, :n_words]])
            made_of = np.vstack([unit, found[:count, n_words:]])
            order = np.argsort(count_ones(pool), kind="stable")
            chosen = order[_first_independent(made_of[order], p)]
            current, sums = pool[chosen], _times(made_of[chosen], sums)
            before, ones = ones, count_ones(current)
            if ones.sum() < (1 - _LEAST_GAIN) * before.sum():
                failures = 0
        if failures == patience < max_patience and (ones < limit).any():
            likely = bdtr(
                depth, p, np.quantile(ones[ones < limit], _QUANTILE) / length
            )  # for a draw to find another one
            patience = max(patience, min(max_patience, int(-np.log(_MISSED) / max(1e-9, likely))))
    return sums if current is not original else None


def _first_independent(rows: Words, rank: int) -> NDArray[np.int64]:
    """Return the indices of the rows, of ``rank`` columns, that are not sums of earlier ones; they have this rank."""
    pivots = np.empty(rank, np.int64)
    gf2.reduce_rows(transposed(rows, rank), np.empty((rank, 0), np.uint64), np.arange(len(rows)), pivots)
    return pivots


def _times(sums: Words, rows: Words) -> Words:
    """Return the sums of rows, each given by the rows to add."""
    product = np.zeros((len(sums), rows.shape[1]), np.uint64)
    factors = read_only(sums), read_only(rows)
    words.add_product(*factors, False, np.empty((0, 0), np.uint64), 0, len(sums), product[0].copy(), product)
    return product


def _transposed_inverse(sums: Words) -> Words:
    """Return the transpose of the inverse of an invertible square matrix."""
    p = len(sums)
    inverse = identity(p)
    gf2.reduce_rows(sums.copy(), inverse, np.arange(p), np.empty(p, np.int64))
    return BitMatrix.from_words(inverse, p, check=False).T.words
