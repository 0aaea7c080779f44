"""Rows held out of a search on a sample: atoms that fit the sample alone make nothing shorter there."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..core.block import Block
from ..core.coding import code_and_mend
from ..core.objective import Objective
from ..mdl import string_bits
from ..parallel import Workers
from .moves.drop import savings


@dataclass(frozen=True)
class HoldOut:
    """Rows that a search does not see, by which it compares its states."""

    rows: BitMatrix
    n_all: int  # rows of the whole table, of which these and those searched are a sample
    workers: Workers

    def cost(self, block: Block, objective: Objective) -> int:
        """The bits that the whole table would take if all its rows were like these.

        They are coded with the atoms of the block, at its prices; a wrong bit and a use cost by how rare they are in
        the block, and each atom itself and how often it is used once.
        """
        n, m, wrong, uses = block.n_rows, block.n_features, block.wrong(), block.uses()
        others = self._coded(block, objective)
        bits = self._bits(others.wrong(), wrong, n) + self._bits(others.uses(), uses, n)
        once = string_bits(m, block.weights()).sum() + block.n_atoms * string_bits(self.n_all, 0)
        return round(bits * self.n_all / len(self.rows)) + int(once)

    def cost_of_nothing(self) -> int:
        """The same without any atom."""
        return int(string_bits(len(self.rows), self.rows.column_weights()).sum() * self.n_all / len(self.rows))

    def saves(self, block: Block, objective: Objective) -> NDArray[np.bool_]:
        """Which atoms of a block make these rows shorter, the atom itself and how often it is used paid in part."""
        return savings(self._coded(block, objective), replace(objective, share=len(self.rows) / self.n_all)) > 0

    def _coded(self, block: Block, objective: Objective) -> Block:
        """These rows, coded with the atoms of a block at its prices."""
        atoms, _ = block.factors()
        others = Block(self.rows, atoms, None, block.covers, self.workers, block.bias)
        code_and_mend(others, objective.rule(block))
        return others

    def _bits(self, ones: NDArray[np.int64], seen: NDArray[np.int64], n_seen: int) -> float:
        """Bits of strings with so many ones, by how many of their like the block has."""
        share = (seen + 0.5) / (n_seen + 1)
        return float(-(ones * np.log2(share) + (len(self.rows) - ones) * np.log2(1 - share)).sum())
