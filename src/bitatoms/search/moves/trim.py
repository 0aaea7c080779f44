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
    m, wrong = block.n_features, block.wrong()
    now = objective.of_errors(block.n_known, wrong)
    useless, is_taken = np.zeros((block.n_atoms, m), bool), np.zeros(m, bool)
    for first in range(0, block.n_atoms, _ATOMS_PER_CHUNK):
        last = min(first + _ATOMS_PER_CHUNK, block.n_atoms)
        free, bad = block.votes(first, last)
        ones = block.atoms()[first:last].to_dense(bool)
        without = wrong + np.where(ones, free - 2 * bad, 0)
        saved = objective.of_errors(block.n_known, without) - now
        for k in range(last - first):
            weight = int(ones[k].sum())
            bits = np.flatnonzero(ones[k] & ~is_taken)
            for bit in bits[np.argsort(saved[k, bits], kind="stable")].tolist():
                longer, shorter = objective.of_atoms(m, np.array([weight, weight - 1]))
                if saved[k, bit] >= longer - shorter:
                    break
                useless[first + k, bit] = is_taken[bit] = True
                weight -= 1
    return BitMatrix.from_dense(useless)
