"""Trim atoms: clear the bits that save less than they cost.

An update sets a bit if most users of the atom have it. If the column is common anyway, most users have it by chance,
and the bit saves less than it takes to describe.
"""

from __future__ import annotations

import numpy as np

from ...bits import BitMatrix
from ...core.block import Block
from ...core.objective import Objective

_ATOMS_PER_CHUNK = 64


def trim(block: Block, objective: Objective) -> int:
    """Clear bits of atoms, each of which costs more than it saves, the codes left as they are; return how many."""
    n_cleared = 0
    while True:
        before, cost = block.save(), objective.cost(block)
        useless = _useless_bits(block, objective)
        if not useless.count():
            return n_cleared
        block.flip(useless.words.copy())
        if objective.cost(block) >= cost:
            block.restore(before)
            return n_cleared
        n_cleared += useless.count()


def _useless_bits(block: Block, objective: Objective) -> BitMatrix:
    """Return bits of atoms that cost more than they save, at most one of each column: they depend on each other."""
    m, wrong, atoms = block.n_features, block.wrong(), block.atoms()
    costs_by_weight = objective.of_atoms(m, np.arange(m + 1))
    costs = np.diff(costs_by_weight, prepend=costs_by_weight[0])  # of one of the bits of an atom, by their number
    useless, is_taken = np.zeros((block.n_atoms, m), bool), np.zeros(m, bool)
    for first in range(0, block.n_atoms, _ATOMS_PER_CHUNK):
        last = min(first + _ATOMS_PER_CHUNK, block.n_atoms)
        ones = atoms[first:last].to_dense(bool)
        of_bit, columns, saved = objective.of_each_flip(block.n_known, wrong, ones, *block.votes(first, last))
        weights = ones.sum(axis=1)
        for k in np.unique(of_bit[saved < costs[weights[of_bit]]]):
            bits = np.flatnonzero((of_bit == k) & ~is_taken[columns])
            bits = bits[np.argsort(saved[bits], kind="stable")]
            is_worth_it = saved[bits] >= costs[weights[k] - np.arange(len(bits))]
            cleared = columns[bits[: int(is_worth_it.argmax()) if is_worth_it.any() else None]]
            useless[first + k, cleared] = is_taken[cleared] = True
    return BitMatrix.from_dense(useless)
