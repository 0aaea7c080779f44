"""Merge atoms that the same rows use: parts of one atom, found in windows of columns that have been joined since.

One atom in place of two needs one list of users. Rows that use only one of the parts get the other one, too, and with
it the errors that it makes there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix, count_ones
from ...engine.block import Block, BlockState
from ...engine.objective import Objective

_MAX_PARTNERS = 4  # atoms with which each atom is compared
_PAIRS_PER_CHUNK = 64


def merge(block: Block, objective: Objective) -> int:
    """Merge pairs of atoms where that lowers the cost, each atom at most once; return how many."""
    if block.n_atoms < 2 or objective.max_atoms is not None:
        return 0
    before, cost = block.save(), objective.cost(block)
    atoms, users = before.atoms.copy(), block.rows.users()
    dropped = np.zeros(block.n_atoms, bool)
    merged = np.zeros(block.n_atoms, bool)
    pairs = _candidates(block)
    saved = _savings(block, objective, pairs)
    for i in np.argsort(-saved, kind="stable"):
        kept, other = pairs[i]
        if saved[i] <= 0:
            break
        if not (merged[kept] or merged[other]):
            merged[[kept, other]] = True
            atoms[kept] |= atoms[other]
            users[kept] |= users[other]
            atoms[other] = users[other] = 0
            dropped[other] = True
    if not dropped.any():
        return 0
    codes = BitMatrix.from_words(users, block.n_rows, check=False).T.words
    block.restore(BlockState(atoms, codes))
    if objective.cost(block) >= cost:
        block.restore(before)
        return 0
    block.discard(dropped)
    return int(dropped.sum())


def _candidates(block: Block) -> NDArray[np.intp]:
    """Return pairs of atoms of which most users are the same, the atom with more users first."""
    both = block.rows.pairs()
    both = both + np.tril(both, -1).T
    uses = both.diagonal().astype(np.int64)
    similarity = both / np.maximum(1, uses[:, np.newaxis] + uses - both)
    np.fill_diagonal(similarity, 0)
    partners = np.argsort(-similarity, axis=1, kind="stable")[:, :_MAX_PARTNERS]
    found = [
        (k, other) if (uses[k], -k) >= (uses[other], -other) else (other, k)
        for k in range(block.n_atoms)
        for other in partners[k].tolist()
        if similarity[k, other] > 0.5
    ]
    return np.array(sorted(set(found)), np.intp).reshape(-1, 2)


def _savings(block: Block, objective: Objective, pairs: NDArray[np.intp]) -> NDArray[np.int64]:
    """Return about how much lower the cost is after each of these merges alone."""
    n, m = block.n_samples, block.n_features
    atoms, users, uses = block.atoms().words, block.rows.users(), block.uses()
    wrong = block.wrong()
    now = objective.of_errors(block.n_known, wrong)
    saved = np.empty(len(pairs), np.int64)
    for start in range(0, len(pairs), _PAIRS_PER_CHUNK):
        chunk = slice(start, start + _PAIRS_PER_CHUNK)
        one, other = pairs[chunk].T
        after, beyond = np.repeat(wrong[np.newaxis], len(one), axis=0), np.zeros(len(one), np.int64)
        for atom, partner in ((one, other), (other, one)):
            free, bad = block.rows.votes_of(users[partner] & ~users[atom])
            ones = BitMatrix.from_words(atoms[atom], m, check=False).to_dense(bool)
            after += np.where(ones, free - 2 * bad, 0)
            beyond += (ones * objective.costs.of_flips(np.arange(m), False, free, bad)).sum(axis=1)
        saved[chunk] = (now - objective.of_errors(block.n_known, after)).sum(axis=1) - beyond
        saved[chunk] -= objective.of_uses(n, count_ones(users[one] | users[other]))
        united = BitMatrix.from_words(atoms[one] | atoms[other], m, check=False)
        saved[chunk] -= objective.of_atoms(united)
    pays = objective.of_uses(n, uses) + objective.of_atoms(block.atoms())
    return saved + pays[pairs].sum(axis=1)
