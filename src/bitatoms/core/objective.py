"""The objective of a search, and the prices at which coding one row lowers it.

The codelength depends on the rows only through e, in how many rows each bit is wrong, and r, how many rows use each
atom. log2 (n choose e) is concave in e, so its tangent at the current counts lies above it. Rows that cost less at the
slope of the tangent, each coded on its own, therefore shorten the codelength too, while the counts stay below n / 2.

There are two objectives, the codelength and the number of wrong cells, distinguished by ``by_codelength``. A third
needs costs and prices here, and a choice where that flag is read: the driver, the monitor, the passes and the stream.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.structs import MAX_PRICE, Prices, Rule
from ..mdl import spans, stretch_bits, string_bits
from ..sparse_bits import Bits
from .bias import mostly_wrong
from .block import Block, Rest, lanes_of
from .coding import coding_rule, typical_cost

_MIN_ERROR_BITS = 0.05  # the price of an error where half of the rows have one
_FIRST_USE_BITS = 5.06  # the price of using an atom that no row uses yet: that of an atom used by 3 % of the rows
_MAX_FLAT_DENSITY = 0.3  # with more errors, each would cost next to nothing, and no row would be coded


@dataclass(frozen=True)
class Objective:
    """What a search minimizes, the codelength or the number of errors, and the limits of Algorithm 3.

    ``share`` is the share of all rows that the search sees: all rows together pay for an atom. ``n_features`` is the
    number of columns of the table, if the search sees only a window of them: an atom costs what it costs in the table.
    ``ranks`` are those of the columns in their order, where atoms are described by stretches.
    """

    by_codelength: bool
    algebra: str
    max_atoms: int | None = None
    residual_limit: int = 0
    share: float = 1.0
    n_features: int | None = None
    ranks: NDArray[np.int64] | None = field(default=None, compare=False)

    def cost(self, block: Block) -> int:
        """Return the cost of a block."""
        n, m, wrong = block.n_samples, block.n_features, block.wrong()
        errors = self.of_errors(block.n_known, wrong)
        parts = errors, self.of_uses(n, block.uses()), self.of_atoms(m, block.weights(), self.spans(block.atoms()))
        return sum(int(part.sum()) for part in parts) + int(self.of_bias(n, block.n_known, wrong, block.bias))

    def cost_of_nothing(self, data: BitMatrix, rest: Rest | None = None) -> int:
        """Return the cost without any atom, with rows that are only counted."""
        n_more, ones = rest or (0, 0)
        return int(self.of_errors(data.n_known + n_more, data.column_weights() + ones).sum())

    def of_errors(self, n_known: int | NDArray[np.int64], wrong: NDArray) -> NDArray[np.int64]:
        """Return the cost of the errors of features that are wrong in this many of the rows that know them."""
        return string_bits(n_known, wrong) if self.by_codelength else wrong.astype(np.int64)

    def of_flips(
        self,
        n_known: int | NDArray[np.int64],
        wrong: NDArray[np.int64],
        flips: NDArray[np.bool_],
        free: NDArray[np.integer],
        bad: NDArray[np.integer],
    ) -> NDArray[np.int64]:
        """Return by how much the errors cost more after the flips of bits of each atom alone.

        ``free`` and ``bad`` are the votes on the bits (see `Block.votes`): a flip exchanges right and wrong.
        """
        atoms, _, costs = self.of_each_flip(n_known, wrong, flips, free, bad)
        sums = np.append(0, np.cumsum(costs))
        return np.diff(sums[np.searchsorted(atoms, np.arange(len(flips) + 1))])

    def of_each_flip(
        self,
        n_known: int | NDArray[np.int64],
        wrong: NDArray[np.int64],
        flips: NDArray[np.bool_],
        free: NDArray[np.integer],
        bad: NDArray[np.integer],
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int64]]:
        """Return the atom and the column of each flip, atom by atom, and by how much the errors cost more after it."""
        index = np.flatnonzero(flips)  # few, while arrays of all bits take long
        atoms, columns = np.divmod(index, len(wrong))
        before = wrong[columns]
        after = before + free.ravel()[index] - 2 * bad.ravel()[index]
        known = n_known[columns] if isinstance(n_known, np.ndarray) else n_known
        return atoms, columns, self.of_errors(known, after) - self.of_errors(known, before)

    def of_uses(self, n_rows: int, uses: NDArray) -> NDArray[np.int64]:
        """Return the cost of the uses of atoms that this many rows use."""
        if not self.by_codelength:
            return np.zeros(np.shape(uses), np.int64)
        bits = string_bits(n_rows, uses)
        return bits if self.share == 1 else bits - self._spared(string_bits(n_rows, 0))

    def of_atoms(self, n_features: int, ones: NDArray, spans: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """Return the cost of atoms with this many ones and, where columns have an order, these spans."""
        if not self.by_codelength:
            return np.zeros(np.shape(ones), np.int64)
        m = self.n_features or n_features
        bits = string_bits(m, ones) if spans is None else stretch_bits(m, spans, ones)
        return bits if self.share == 1 else bits - self._spared(bits)

    def spans(self, atoms: Bits) -> NDArray[np.int64] | None:
        """Return the spans of atoms; None if columns have no order."""
        return spans(atoms, self.ranks)

    def of_bias(
        self, n_rows: int, n_known: int | NDArray[np.int64], wrong: NDArray[np.int64], bias: BitMatrix
    ) -> NDArray[np.int64]:
        """Return the cost of the bias after it takes the columns that are wrong in most rows.

        ``wrong`` has the features along its last axis; one cost is returned for each index of the others.
        """
        ones = np.count_nonzero(bias.to_dense(bool)[0] ^ mostly_wrong(n_known, wrong), axis=-1)
        return self.of_bias_ones(n_rows, wrong.shape[-1], np.asarray(ones))

    def of_bias_ones(self, n_rows: int, n_features: int, ones: NDArray) -> NDArray[np.int64]:
        """Return the cost of a bias with this many ones."""
        cost = self.of_atoms(n_features, ones) + self.of_uses(n_rows, np.array(0))
        return np.where(ones > 0, cost, 0)

    def _spared(self, bits: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the part of these bits that rows outside the data pay: all rows share the cost of an atom."""
        return np.rint((1 - self.share) * bits).astype(np.int64)

    def rule(self, block: Block, flat: bool = False) -> Rule:
        """Return the rule of coding at the current prices; ``flat``: one price for all features."""
        return self.rule_from_counts(block.n_samples, block.n_known, block.wrong(), block.uses(), flat)

    def rule_from_counts(
        self,
        n_rows: int,
        n_known: int | NDArray[np.int64],
        wrong: NDArray[np.int64],
        uses: NDArray[np.int64],
        flat: bool = False,
    ) -> Rule:
        """Return the same from counts: in how many rows each bit is known and wrong, and how many use each atom."""
        if self.by_codelength:
            prices = codelength_prices(n_rows, n_known, wrong, uses, flat)
        else:
            prices = unit_prices(len(wrong), len(uses))
        rule = coding_rule("mdl", self.algebra, self.max_atoms, self.residual_limit, prices)
        return rule._replace(typical=typical_cost(prices, n_rows, wrong, uses))


def unit_prices(n_features: int, n_atoms: int) -> Prices:
    """Return the prices for the fewest errors: an error costs 1, a use nothing."""
    return Prices(np.ones(n_features, np.int32), np.zeros(lanes_of(n_atoms), np.int32))


def codelength_prices(
    n_rows: int,
    n_known: int | NDArray[np.int64],
    wrong: NDArray[np.int64],
    uses: NDArray[np.int64],
    flat: bool = False,
) -> Prices:
    """Return the slope of the codelength at these counts, as integers of the same unit for errors and uses.

    ``flat``: one price for all errors, from their mean count, limited to a density of 0.3; for a start.
    """
    if flat:
        length = float(np.mean(n_known))
        count = min(wrong.sum() / max(1, len(wrong)), _MAX_FLAT_DENSITY * length)
        bits = np.maximum(_MIN_ERROR_BITS, _slope(length, np.full(len(wrong), count)))
    else:
        bits = np.maximum(_MIN_ERROR_BITS, _slope(n_known, wrong))
    bits_per_use = np.where(uses == 0, _FIRST_USE_BITS, np.maximum(0.0, _slope(n_rows, uses)))
    unit = MAX_PRICE / bits.max(initial=_MIN_ERROR_BITS)
    padded = np.zeros(lanes_of(len(uses)), np.int32)
    padded[: len(uses)] = np.rint(bits_per_use * unit)
    return Prices(np.maximum(1, np.rint(bits * unit)).astype(np.int32), padded)


def _slope(length: float | NDArray, ones: NDArray) -> NDArray[np.float64]:
    """Return the cost of one more one in a string of this length."""
    return np.log2((length - ones + 0.5) / (ones + 0.5))
