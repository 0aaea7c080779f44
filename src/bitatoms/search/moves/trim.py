"""Trim atoms: clear the bits that save less than they cost.

An update sets a bit if most users of the atom have it. If the column is common anyway, most users have it by chance,
and the bit saves less than it takes to describe. Where atoms are described by stretches, the bits beyond a gap may
together save less than a longer stretch costs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix
from ...engine.block import Block
from ...engine.objective import Objective

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
    m, atoms = block.n_features, block.atoms()
    useless, is_taken = np.zeros((block.n_atoms, m), bool), np.zeros(m, bool)
    for first in range(0, block.n_atoms, _ATOMS_PER_CHUNK):
        last = min(first + _ATOMS_PER_CHUNK, block.n_atoms)
        ones, ends = atoms[first:last].to_dense(bool), objective.code.ends(atoms[first:last])
        of_bit, columns, saved = objective.of_each_flip(block, ones, True, *block.votes(first, last))
        weights = ones.sum(axis=1)
        is_far = objective.far_bits(m, of_bit, columns, saved)
        fewer = np.maximum(0, weights - 1)
        limits = objective.of_ones(m, weights, ends) - objective.of_ones(m, fewer, ends)
        for k in np.unique(of_bit[is_far | (saved < limits[of_bit])]):
            far = columns[is_far & (of_bit == k)]
            if len(far):  # all of them or none: later, if others are cleared in one of these columns
                cleared = far[: 0 if is_taken[far].any() else None]
            else:
                bits = np.flatnonzero((of_bit == k) & ~is_taken[columns])
                bits = bits[np.argsort(saved[bits], kind="stable")]
                costs = _costs_of_bits(objective, m, weights[k], ends[:, k : k + 1])
                is_worth_it = saved[bits] >= costs[weights[k] - np.arange(len(bits))]
                cleared = columns[bits[: int(is_worth_it.argmax()) if is_worth_it.any() else None]]
            useless[first + k, cleared] = is_taken[cleared] = True
    return BitMatrix.from_dense(useless)


def _costs_of_bits(objective: Objective, n_features: int, most: int, ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the cost of one of the bits of an atom, by their number; its ends remain."""
    costs = objective.of_ones(n_features, np.arange(most + 1), np.repeat(ends, most + 1, axis=1))
    return np.diff(costs, prepend=costs[0])
