"""What a search makes small, and the prices at which coding a row makes it smaller.

The codelength depends on the rows only through e, in how many rows each bit is wrong, and r, how many rows use each
atom. log2 (n choose e) is concave in e, so its tangent at the present counts lies above it: rows coded for less at the
slope of the tangent, each on its own, make the codelength smaller too, as long as the counts stay below n / 2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.structs import MAX_PRICE, Prices, Rule
from ..mdl import string_bits
from .block import Block, lanes_of
from .coding import coding_rule, typical_cost

_LEAST_SLOPE = 0.05  # bits: a wrong bit costs something even where every second one is wrong
_FIRST_USE = 5.06  # bits: what the use of an atom costs that no row uses yet, as of one that 3 % of the rows use
_DENSE = 0.3  # share of wrong bits above which they would cost next to nothing, and no row would be coded


@dataclass(frozen=True)
class Objective:
    """What a search makes small: the codelength, or the wrong bits; and the limits of Algorithm 3.

    ``share`` is that of all rows which are seen: an atom is paid for by all of them.
    """

    by_codelength: bool
    algebra: str
    max_atoms: int | None = None
    residual_limit: int = 0
    share: float = 1.0

    def cost(self, block: Block) -> int:
        """What is made small, for a block as it is."""
        wrong = block.wrong()
        if not self.by_codelength:
            return int(wrong.sum())
        length = block.codelength(wrong)
        if self.share == 1:
            return length.total
        uses, ones = self.of_uses(block.n_rows, block.uses()), self.of_atoms(block.n_features, block.weights())
        bias = self.of_atoms(block.n_features, np.array(block.bias.count())) if block.bias.count() else 0
        return int(length.errors + uses.sum() + ones.sum() + bias)

    def cost_of_nothing(self, data: BitMatrix) -> int:
        """What is made small, without any atom."""
        return int(self.of_errors(data.n_rows, data.column_weights()).sum())

    def of_errors(self, n_rows: int, wrong: NDArray) -> NDArray[np.int64]:
        """What the errors of each feature cost, of which so many rows are wrong."""
        return string_bits(n_rows, wrong) if self.by_codelength else wrong.astype(np.int64)

    def of_uses(self, n_rows: int, uses: NDArray) -> NDArray[np.int64]:
        """What the uses of atoms cost, of which so many rows use each."""
        if not self.by_codelength:
            return np.zeros(np.shape(uses), np.int64)
        return string_bits(n_rows, uses) - self._spared(string_bits(n_rows, 0))

    def of_atoms(self, n_features: int, ones: NDArray) -> NDArray[np.int64]:
        """What atoms cost that have so many ones."""
        if not self.by_codelength:
            return np.zeros(np.shape(ones), np.int64)
        bits = string_bits(n_features, ones)
        return bits - self._spared(bits)

    def _spared(self, bits: NDArray[np.int64]) -> NDArray[np.int64]:
        """What other rows pay of costs that do not grow with the rows."""
        return np.rint((1 - self.share) * bits).astype(np.int64)

    def rule(self, block: Block, flat: bool = False) -> Rule:
        """How rows are coded at the prices of now; ``flat``, with one price for all features."""
        return self.rule_from_counts(block.n_rows, block.wrong(), block.uses(), flat)

    def rule_from_counts(
        self, n_rows: int, wrong: NDArray[np.int64], uses: NDArray[np.int64], flat: bool = False
    ) -> Rule:
        """The same from counts: in how many rows each bit is wrong, and how many use each atom."""
        if self.by_codelength:
            prices = codelength_prices(n_rows, wrong, uses, flat)
        else:
            prices = unit_prices(len(wrong), len(uses))
        rule = coding_rule("mdl", self.algebra, self.max_atoms, self.residual_limit, prices)
        return rule._replace(typical=typical_cost(prices, n_rows, wrong, uses))


def unit_prices(n_features: int, n_atoms: int) -> Prices:
    """A wrong bit costs 1, an atom nothing."""
    return Prices(np.ones(n_features, np.int32), np.zeros(lanes_of(n_atoms), np.int32))


def codelength_prices(n_rows: int, wrong: NDArray[np.int64], uses: NDArray[np.int64], flat: bool = False) -> Prices:
    """The slope of the codelength at these counts, in whole numbers of the same unit for bits and uses.

    ``flat``: one price for all bits, from their mean count but of at most _DENSE of the rows; for a start.
    """
    if flat:
        wrong = np.full(len(wrong), min(wrong.sum() / max(1, len(wrong)), _DENSE * n_rows))
    bits = np.maximum(_LEAST_SLOPE, _slope(n_rows, wrong))
    each_use = np.where(uses == 0, _FIRST_USE, np.maximum(0.0, _slope(n_rows, uses)))
    unit = MAX_PRICE / bits.max(initial=_LEAST_SLOPE)
    padded = np.zeros(lanes_of(len(uses)), np.int32)
    padded[: len(uses)] = np.rint(each_use * unit)
    return Prices(np.maximum(1, np.rint(bits * unit)).astype(np.int32), padded)


def _slope(n_rows: int, ones: NDArray) -> NDArray[np.float64]:
    """What one more one costs in a string of n_rows bits with so many."""
    return np.log2((n_rows - ones + 0.5) / (ones + 0.5))
