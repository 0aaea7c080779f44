"""The bias takes every column that is wrong in more than half of the rows that know it.

log2 (n choose e) is symmetric in e: a column that is wrong in every row costs no more bits than one that is right in
every row. A search for the shortest codelength would therefore use atoms that no row has. Flipping a bit of the bias
exchanges right and wrong in its column, under XOR and under OR, and leaves codes and atoms as they are.

The objective of a search, and the prices at which coding one row lowers it.

The codelength depends on the rows only through e, in how many rows each bit is wrong, and r, how many rows use each
atom. log2 (n choose e) is concave in e, so its tangent at the current counts lies above it. Rows that cost less at the
slope of the tangent, each coded on its own, therefore shorten the codelength too, while the counts stay below n / 2.

There are two objectives, the codelength and the number of wrong cells, distinguished by ``by_codelength``. A third
needs costs and prices here, and a choice where that flag is read: the driver, the monitor, the passes and the stream.

Missed and added ones may cost more than their code (`ErrorCosts`). Without a bias, a column that is mostly wrong is
described by few bits, but still wrong: from a third of the rows on, each error costs one bit, at which the slope of the
code has fallen to one bit too.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.structs import MAX_PRICE, Prices, Rule
from ..sparse_bits import Bits
from .block import Block, Rest, lanes_of
from .codelength import spans, stretch_bits, string_bits
from .coding import coding_rule, typical_cost
from .counts import Counts
from .prices import ErrorCosts

AnyCounts = TypeVar("AnyCounts", bound=Any)  # `Counts` or `DecayedCounts`


def settle_bias(
    n_known: NDArray[np.int64], wrong: NDArray[np.int64], bias: BitMatrix
) -> tuple[BitMatrix, NDArray[np.int64]]:
    """Return the bias that takes the columns wrong in most rows, and in how many rows each column is wrong with it.

    ``n_known`` is the number of rows in which each column is known.
    """
    flips = mostly_wrong(n_known, wrong)
    if not flips.any():
        return bias, wrong
    return flip_bias(bias, flips), np.where(flips, n_known - wrong, wrong)


def settle_counts(bias: BitMatrix, counts: AnyCounts, settles: bool) -> tuple[BitMatrix, AnyCounts]:
    """Return the bias that takes the columns wrong in most rows, and the counts with it.

    Both are unchanged unless ``settles``: whether the objective has this rule (`SearchParams.settles_bias`).
    """
    flips = mostly_wrong(counts.known, counts.wrong)
    if not settles or not flips.any():
        return bias, counts
    return flip_bias(bias, flips), flip_counts(counts, flips)


def mostly_wrong(n_known: NDArray[np.int64], wrong: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which columns are wrong in more than half of the rows that know them."""
    return 2 * wrong > n_known


def flip_bias(bias: BitMatrix, flips: NDArray[np.bool_]) -> BitMatrix:
    """Return the bias with these bits flipped."""
    return BitMatrix.from_dense(bias.to_dense(bool) ^ flips)


def flip_counts(counts: AnyCounts, flips: NDArray[np.bool_]) -> AnyCounts:
    """Return the counts of the same codes and atoms after these bits of the bias are flipped.

    The numbers of complete rows are not changed: of atoms with these bits, they are those with the earlier bias.
    """
    flips_vote = flips if counts.free.ndim == 2 else flips[counts.voted.indices]
    return replace(
        counts,
        wrong=np.where(flips, counts.known - counts.wrong, counts.wrong),
        missed=np.where(flips, counts.ones - counts.missed, counts.missed),
        bad=np.where(flips_vote, counts.free - counts.bad, counts.bad),
    )


_MIN_ERROR_BITS = 0.05  # the price of an error where half of the rows have one
_MIN_ERROR_BITS_WITHOUT_BIAS = 1.0  # the slope of the code where a third of the rows have an error
_FIRST_USE_BITS = 5.06  # the price of using an atom that no row uses yet: that of an atom used by 3 % of the rows
MAX_COSTLY_PRICE, _MAX_ROW_PRICE = 1 << 12, 1 << 28  # of a cell and of a row, where errors have costs
_MAX_FLAT_DENSITY = 0.3  # with more errors, each would cost next to nothing, and no row would be coded


@dataclass(frozen=True)
class Objective:
    """What a search minimizes, the codelength or the number of errors, and the limits of Algorithm 3.

    ``share`` is the share of all rows that the search sees: all rows together pay for an atom. ``n_features`` is the
    number of columns of the table, if the search sees only a window of them: an atom costs what it costs in the table.
    ``ranks`` are those of the columns in their order, where atoms are described by stretches. ``costs`` are those of
    missed and added ones, if they cost more than their code. Unless it ``has_bias``, no column is taken by the bias.
    """

    by_codelength: bool
    algebra: str
    max_atoms: int | None = None
    residual_limit: int = 0
    share: float = 1.0
    n_features: int | None = None
    ranks: NDArray[np.int64] | None = field(default=None, compare=False)
    costs: ErrorCosts | None = field(default=None, compare=False)
    has_bias: bool = True

    def errors_only(self) -> Objective:
        """Return the objective of the fewest errors, within the same limits; missed and added ones count alike."""
        return replace(self, by_codelength=False, costs=None)

    def cost(self, block: Block) -> int:
        """Return the cost of a block."""
        n, m, wrong = block.n_samples, block.n_features, block.wrong()
        errors = self.of_errors(block.n_known, wrong)
        parts = errors, self.of_uses(n, block.uses()), self.of_atoms(m, block.weights(), self.spans(block.atoms()))
        cost = sum(int(part.sum()) for part in parts) + int(self.of_bias(n, block.n_known, wrong, block.bias))
        return cost + self._of_costs(block)

    def cost_of_counts(self, counts: Counts, atoms: Bits, bias: BitMatrix) -> int:
        """Return the cost of coded rows from their counts; the bias is settled."""
        if not self.by_codelength:
            return int(counts.wrong.sum())
        cost = counts.codelength(atoms, bias, self.ranks).total
        if not self.has_bias:
            cost += self._beyond_code(counts.known, counts.wrong)
        return cost + (self.costs.of_counts(counts.wrong, counts.wrong - counts.missed) if self.costs else 0)

    def cost_beyond_codelength(self, block: Block) -> int:
        """Return what a block costs beyond its codelength: by the costs of errors, and of errors without a bias."""
        beyond, wrong = self._of_costs(block), block.wrong()
        if self.by_codelength and not self.has_bias:
            beyond += self._beyond_code(block.n_known, wrong)
        return beyond

    def _of_costs(self, block: Block) -> int:
        """Return what the errors of a block cost beyond their code by the costs of missed and added ones."""
        return 0 if self.costs is None else self.costs.of_counts(block.wrong(), block.added())

    def _beyond_code(self, n_known: NDArray[np.int64], wrong: NDArray[np.int64]) -> int:
        """Return what errors cost beyond their code where there is no bias."""
        return int((self.of_errors(n_known, wrong) - string_bits(n_known, wrong)).sum())

    def cost_of_nothing(self, data: BitMatrix, rest: Rest | None = None) -> int:
        """Return the cost without any atom, with rows that are only counted."""
        n_more, more = rest or (0, 0)
        ones = data.column_weights() + more
        beyond = 0 if self.costs is None else self.costs.of_counts(ones, np.zeros_like(ones))
        return int(self.of_errors(data.n_known + n_more, ones).sum()) + beyond

    def settled_bias(self, block: Block) -> tuple[BitMatrix, NDArray[np.int64]]:
        """Return the bias of a state, which takes the columns wrong in most rows, and the wrong rows per column.

        With the fewest errors as the objective, a table is codes times atoms: there is no bias to settle.
        """
        if not (self.by_codelength and self.has_bias):
            return block.bias, block.wrong()
        return settle_bias(block.n_known, block.wrong(), block.bias)

    def of_errors(self, n_known: NDArray[np.int64], wrong: NDArray) -> NDArray[np.int64]:
        """Return the cost of the errors of features that are wrong in this many of the rows that know them."""
        if not self.by_codelength:
            return wrong.astype(np.int64)
        if self.has_bias:
            return string_bits(n_known, wrong)
        few = np.minimum(wrong, n_known // 3)
        return string_bits(n_known, few) + (wrong - few)

    def of_flips(
        self,
        n_known: NDArray[np.int64],
        wrong: NDArray[np.int64],
        flips: NDArray[np.bool_],
        are_ones: bool | NDArray[np.bool_],
        free: NDArray[np.integer],
        bad: NDArray[np.integer],
    ) -> NDArray[np.int64]:
        """Return by how much the errors cost more after the flips of bits of each atom alone.

        ``are_ones``: the bits are ones before the flips; all of them, none, or as in an array of the shape of
        ``flips``. ``free`` and ``bad`` are the votes on the bits (see `Block.votes`): a flip exchanges right and wrong.
        """
        atoms, _, costs = self.of_each_flip(n_known, wrong, flips, are_ones, free, bad)
        sums = np.append(0, np.cumsum(costs))
        return np.diff(sums[np.searchsorted(atoms, np.arange(len(flips) + 1))])

    def of_each_flip(
        self,
        n_known: NDArray[np.int64],
        wrong: NDArray[np.int64],
        flips: NDArray[np.bool_],
        are_ones: bool | NDArray[np.bool_],
        free: NDArray[np.integer],
        bad: NDArray[np.integer],
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int64]]:
        """Return the atom and the column of each flip, atom by atom, and by how much the errors cost more after it."""
        index = np.flatnonzero(flips)  # few, while arrays of all bits take long
        atoms, columns = np.divmod(index, len(wrong))
        now_ones = are_ones.ravel()[index] if isinstance(are_ones, np.ndarray) else are_ones
        return atoms, columns, self.of_votes(n_known, wrong, columns, now_ones, free.ravel()[index], bad.ravel()[index])

    def of_votes(
        self,
        n_known: NDArray[np.int64],
        wrong: NDArray[np.int64],
        columns: NDArray[np.integer],
        are_ones: bool | NDArray[np.bool_],
        free: NDArray[np.integer],
        bad: NDArray[np.integer],
    ) -> NDArray[np.int64]:
        """Return by how much the errors cost more after flips of bits in these columns, each with its votes."""
        known, before = n_known[columns], wrong[columns]
        after = before + free - 2 * bad
        more = self.of_errors(known, after) - self.of_errors(known, before)
        return more if self.costs is None else more + self.costs.of_flips(columns, are_ones, free, bad)

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
        self, n_rows: int, n_known: NDArray[np.int64], wrong: NDArray[np.int64], bias: BitMatrix
    ) -> NDArray[np.int64]:
        """Return the cost of the bias after it takes the columns that are wrong in most rows.

        ``wrong`` has the features along its last axis; one cost is returned for each index of the others.
        """
        flips = mostly_wrong(n_known, wrong) if self.has_bias else np.zeros(wrong.shape, bool)
        ones = np.count_nonzero(bias.to_dense(bool)[0] ^ flips, axis=-1)
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
        n_known: NDArray[np.int64],
        wrong: NDArray[np.int64],
        uses: NDArray[np.int64],
        flat: bool = False,
    ) -> Rule:
        """Return the same from counts: in how many rows each bit is known and wrong, and how many use each atom."""
        if self.by_codelength:
            prices = codelength_prices(n_rows, n_known, wrong, uses, flat, self.costs, self.has_bias)
        else:
            prices = unit_prices(len(wrong), len(uses))
        rule = coding_rule("mdl", self.algebra, self.max_atoms, self.residual_limit, prices)
        return rule._replace(typical=typical_cost(prices, n_rows, wrong, uses))


def unit_prices(n_features: int, n_atoms: int) -> Prices:
    """Return the prices for the fewest errors: an error costs 1, a use nothing."""
    return Prices(np.ones(n_features, np.int32), np.zeros(lanes_of(n_atoms), np.int32))


def codelength_prices(
    n_rows: int,
    n_known: NDArray[np.int64],
    wrong: NDArray[np.int64],
    uses: NDArray[np.int64],
    flat: bool = False,
    costs: ErrorCosts | None = None,
    has_bias: bool = True,
) -> Prices:
    """Return the slope of the codelength at these counts, as integers of the same unit for errors and uses.

    ``flat``: one price for all errors, from their mean count, limited to a density of 0.3; for a start. ``costs`` are
    what errors cost beyond their code.
    """
    least = _MIN_ERROR_BITS if has_bias else _MIN_ERROR_BITS_WITHOUT_BIAS
    if flat:
        length = float(np.mean(n_known))
        count = min(wrong.sum() / max(1, len(wrong)), _MAX_FLAT_DENSITY * length)
        bits = np.maximum(least, _slope(length, np.full(len(wrong), count)))
    else:
        bits = np.maximum(least, _slope(n_known, wrong))
    bits_per_use = np.where(uses == 0, _FIRST_USE_BITS, np.maximum(0.0, _slope(n_rows, uses)))
    return _prices(bits, bits_per_use, costs)


def _prices(bits: NDArray[np.float64], bits_per_use: NDArray[np.float64], costs: ErrorCosts | None) -> Prices:
    """Return prices in bits as integers of one unit; errors also cost what they cost beyond their code."""
    lanes = lanes_of(len(bits_per_use))
    if costs is None:
        unit = MAX_PRICE / bits.max(initial=_MIN_ERROR_BITS)
        uses = np.pad(np.rint(bits_per_use * unit), (0, lanes - len(bits_per_use)))
        return Prices(np.maximum(1, np.rint(bits * unit)).astype(np.int32), uses.astype(np.int32))
    # A missed one that is forbidden is worth any use, and an added one any missed ones; the latter are excluded, too.
    most = 2 * (bits.max(initial=0.0) + bits_per_use.max(initial=0.0))
    missed, added = (bits + np.minimum(beyond, most) for beyond in (costs.missed_bits, costs.added_bits))
    unit = min(MAX_COSTLY_PRICE, _MAX_ROW_PRICE / max(1, len(bits))) / max(missed.max(initial=1), added.max(initial=1))
    missed, added = (np.maximum(1, np.rint(each * unit / 2)).astype(np.int32) for each in (missed, added))
    uses = np.pad(np.rint(bits_per_use * unit), (0, lanes - len(bits_per_use)))
    return Prices(2 * missed, uses.astype(np.int32), 2 * added, missed + added, costs.forbidden)


def _slope(length: float | NDArray, ones: NDArray) -> NDArray[np.float64]:
    """Return the cost of one more one in a string of this length."""
    return np.log2((length - ones + 0.5) / (ones + 0.5))
