"""Extend atoms under OR, so that one atom can take the place of two that are parts of it.

Where other atoms cover a bit in every row that uses an atom, it makes no difference whether the atom has the bit, and
updates clear it. So an atom can be learned as two: one has most of its bits, the other has the rest and is used where
nothing else covers them. Neither can be dropped, and no flip of a bit gains anything. `extend` gives all atoms the bits
that do no harm. Rows coded anew then use fewer atoms, and atoms that no row needs any more are dropped.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix
from ...core.block import Block, Change
from ...core.coding import code_from_scratch
from ...core.objective import Objective
from ...kernels.structs import Rule
from .sweep import sweep


def extend(block: Block, objective: Objective) -> Change:
    """Extend the atoms and sweep; undo it if it raises the cost."""
    if not block.covers or block.n_atoms < 2:
        return Change()
    atoms, codes = block.factors()
    sweep(block, objective, _extend_and_code)
    return Change(codes=(codes ^ block.codes()).count(), atoms=(atoms ^ block.atoms()).count())


def harmless_bits(block: Block) -> NDArray[np.bool_]:
    """Return which bits the atoms in use lack that would make no cell wrong, if one atom got one of them."""
    free, wrong = block.votes(0, block.n_atoms)
    return (free == wrong) & (block.atoms().to_dense() == 0) & block.in_use()[:, np.newaxis]


def _extend_and_code(block: Block, rule: Rule) -> Change:
    """Give the atoms all harmless bits, and code the rows."""
    return block.flip(BitMatrix.from_dense(harmless_bits(block)).words) + code_from_scratch(block, rule)
