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
from ..kernels.structs import CodingRule, RemovalCosts
from ..sparse_bits import Bits
from .block import Block, CountedRows
from .codelength import STRINGS, AtomCode, log2_factorials, string_bits
from .coding import coding_rule, typical_cost
from .counts import Counts
from .prices import EQUAL_COSTS, ErrorCosts, codelength_prices, unit_prices
from .row_state import Words

Counted = NDArray[np.int64]
Ints = NDArray[np.integer]
AnyCounts = TypeVar("AnyCounts", bound=Any)  # `Counts` or `DecayedCounts`


def settle_bias(n_known: Counted, wrong: Counted, bias: BitMatrix) -> tuple[BitMatrix, Counted]:
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


def mostly_wrong(n_known: Counted, wrong: Counted) -> NDArray[np.bool_]:
    """Return which columns are wrong in more than half of the rows that know them."""
    return 2 * wrong > n_known


def flip_bias(bias: BitMatrix, flips: NDArray[np.bool_]) -> BitMatrix:
    """Return the bias with these bits flipped."""
    return BitMatrix.from_dense(bias.to_dense(bool) ^ flips)


def flip_counts(counts: AnyCounts, flips: NDArray[np.bool_]) -> AnyCounts:
    """Return the counts of the same codes and atoms after these bits of the bias are flipped."""
    flips_vote = flips if counts.free.ndim == 2 else flips[counts.voted.indices]
    return replace(
        counts,
        wrong=np.where(flips, counts.known - counts.wrong, counts.wrong),
        missed=np.where(flips, counts.ones - counts.missed, counts.missed),
        bad=np.where(flips_vote, counts.free - counts.bad, counts.bad),
    )


@dataclass(frozen=True)
class Objective:
    """What a search minimizes, the codelength or the number of errors, and how many atoms a row may use.

    ``share`` is the share of all rows that the search sees: all rows together pay for an atom. ``code`` describes
    atoms. ``costs`` are those of missed and added ones beyond their code. Unless it ``has_bias``, no column is taken by
    the bias.
    """

    by_codelength: bool
    algebra: str
    max_atoms: int | None = None
    share: float = 1.0
    code: AtomCode = field(default=STRINGS, compare=False)
    costs: ErrorCosts = field(default=EQUAL_COSTS, compare=False)
    has_bias: bool = True

    def errors_only(self) -> Objective:
        """Return the objective of the fewest errors, within the same limit; missed and added ones count alike."""
        return replace(self, by_codelength=False, costs=EQUAL_COSTS)

    def cost(self, block: Block) -> int:
        """Return the cost of a block."""
        bias, _ = self.settled_bias(block)
        of_factors = self._of_factors(block.n_samples, block.n_known, block.wrong(), block.uses(), block.atoms(), bias)
        return of_factors + self.costs.of_block(block)

    def cost_of_counts(self, counts: Counts, atoms: Bits, bias: BitMatrix) -> int:
        """Return the cost of coded rows from their counts; the bias is settled."""
        of_factors = self._of_factors(counts.n_rows, counts.known, counts.wrong, counts.uses, atoms, bias)
        return of_factors + int(self.costs.of_counts(counts.wrong, counts.wrong - counts.missed))

    def _of_factors(
        self, n_rows: int, n_known: Counted, wrong: Counted, uses: Counted, atoms: Bits, bias: BitMatrix
    ) -> int:
        """Return the cost of errors, uses, atoms and the bias."""
        of_bias = self.of_bias_ones(n_rows, len(wrong), np.array(bias.count()))
        parts = self.of_errors(n_known, wrong), self.of_uses(n_rows, uses), self.of_atoms(atoms), of_bias
        return sum(int(part.sum()) for part in parts)

    def cost_beyond_codelength(self, block: Block) -> int:
        """Return what a block costs beyond its codelength: by the costs of errors, and of errors without a bias."""
        beyond = self.costs.of_block(block)
        if self.by_codelength and not self.has_bias:
            n_known, wrong = block.n_known, block.wrong()
            beyond += int((self.of_errors(n_known, wrong) - string_bits(n_known, wrong)).sum())
        return beyond

    def cost_of_nothing(self, data: BitMatrix, counted: CountedRows | None = None) -> int:
        """Return the cost without any atom, with rows that are only counted."""
        n_more, more = counted or CountedRows()
        ones = data.column_weights() + more
        beyond = self.costs.of_counts(ones, np.zeros_like(ones))
        return int(self.of_errors(data.n_known + n_more, ones).sum() + beyond)

    def settled_bias(self, block: Block) -> tuple[BitMatrix, Counted]:
        """Return the bias of a state, which takes the columns wrong in most rows, and the wrong rows per column.

        With the fewest errors as the objective, a table is codes times atoms: there is no bias to settle.
        """
        if not (self.by_codelength and self.has_bias):
            return block.bias, block.wrong()
        return settle_bias(block.n_known, block.wrong(), block.bias)

    def of_errors(self, n_known: Counted, wrong: NDArray) -> Counted:
        """Return the cost of the errors of features that are wrong in this many of the rows that know them."""
        if not self.by_codelength:
            return wrong.astype(np.int64)
        if self.has_bias:
            return string_bits(n_known, wrong)
        few = np.minimum(wrong, n_known // 3)
        return string_bits(n_known, few) + (wrong - few)

    def of_flips(
        self, block: Block, flips: NDArray[np.bool_], are_ones: bool | NDArray[np.bool_], free: Ints, bad: Ints
    ) -> Counted:
        """Return by how much the errors of a block cost more after the flips of bits of each atom alone.

        ``are_ones``: the bits are ones before the flips; all of them, none, or as in an array of the shape of
        ``flips``. ``free`` and ``bad`` are the votes on the bits (see `Block.votes`): a flip exchanges right and wrong.
        """
        atoms, _, costs = self.of_each_flip(block, flips, are_ones, free, bad)
        sums = np.append(0, np.cumsum(costs))
        return np.diff(sums[np.searchsorted(atoms, np.arange(len(flips) + 1))])

    def of_each_flip(
        self, block: Block, flips: NDArray[np.bool_], are_ones: bool | NDArray[np.bool_], free: Ints, bad: Ints
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], Counted]:
        """Return the atom and the column of each flip, atom by atom, and by how much the errors cost more after it."""
        index = np.flatnonzero(flips)  # few, while arrays of all bits take long
        atoms, columns = np.divmod(index, block.n_features)
        now_ones = are_ones.ravel()[index] if isinstance(are_ones, np.ndarray) else are_ones
        votes = free.ravel()[index], bad.ravel()[index]
        return atoms, columns, self.of_votes(block.n_known, block.wrong(), columns, now_ones, *votes)

    def of_votes(
        self, n_known: Counted, wrong: Counted, columns: Ints, are_ones: bool | NDArray[np.bool_], free: Ints, bad: Ints
    ) -> Counted:
        """Return by how much the errors cost more after flips of bits in these columns, each with its votes."""
        known, before = n_known[columns], wrong[columns]
        after = before + free - 2 * bad
        more = self.of_errors(known, after) - self.of_errors(known, before)
        return more + self.costs.of_flips(columns, are_ones, free, bad)

    def of_uses(self, n_rows: int, uses: NDArray) -> Counted:
        """Return the cost of the uses of atoms that this many rows use."""
        if not self.by_codelength:
            return np.zeros(np.shape(uses), np.int64)
        bits = string_bits(n_rows, uses)
        return bits if self.share == 1 else bits - self._spared(string_bits(n_rows, 0))

    def of_atoms(self, atoms: Bits) -> Counted:
        """Return the cost of these atoms."""
        if not self.by_codelength:
            return np.zeros(atoms.n_rows, np.int64)
        return self._of_bits(self.code.bits_of(atoms))

    def of_ones(self, n_features: int, ones: NDArray, ends: Counted) -> Counted:
        """Return the cost of atoms with this many ones between these ends (see `AtomCode.ends`)."""
        if not self.by_codelength:
            return np.zeros(np.shape(ones), np.int64)
        return self._of_bits(self.code.bits(n_features, ones, ends))

    def _of_bits(self, bits: Counted) -> Counted:
        """Return what atoms of these bits cost: the share of the rows."""
        return bits if self.share == 1 else bits - self._spared(bits)

    def far_bits(
        self, n_features: int, of_bit: NDArray[np.intp], columns: NDArray[np.intp], saved: Counted
    ) -> NDArray[np.bool_]:
        """Return which bits at one end of each atom are not worth a longer stretch: without them, all costs less.

        ``of_bit`` and ``columns`` are the atom and the column of each bit, atom by atom, and ``saved`` is what the bit
        saves. Strings have no such bits.
        """
        far = np.zeros(len(of_bit), bool)
        if self.code.ranks is None or not len(of_bit):
            return far
        ranks = self.code.ranks[columns]
        order = np.lexsort((ranks, of_bit))
        ranks, saved = ranks[order], saved[order]
        edges = np.append(np.flatnonzero(np.diff(of_bit, prepend=-1)), len(of_bit))
        starts, weights = edges[:-1], np.diff(edges)
        first, last = np.repeat(starts, weights), np.repeat(edges[1:] - 1, weights)
        index, sums = np.arange(len(of_bit)), np.append(0, np.cumsum(saved))
        # What an atom costs that ends, or begins, at each of its bits, and what the bits that it loses save.
        until, since = sums[last + 1] - sums[index + 1], sums[index] - sums[first]
        until += self.of_ones(n_features, index - first + 1, np.stack([ranks[first], ranks]))
        since += self.of_ones(n_features, last - index + 1, np.stack([ranks, ranks[last]]))
        least = np.minimum(np.minimum.reduceat(until, starts), np.minimum.reduceat(since, starts))
        gains = least < since[starts]
        for start, stop in zip(starts[gains].tolist(), edges[1:][gains].tolist(), strict=True):
            end, begin = int(until[start:stop].argmin()), int(since[start:stop].argmin())
            if until[start + end] <= since[start + begin]:
                far[order[start + end + 1 : stop]] = True
            else:
                far[order[start : start + begin]] = True
        return far

    def without_far_bits(self, block: Block, flips: Words, free: Ints, bad: Ints) -> Words:
        """Return flips of bits of atoms by which these get no far bits, and lose those that they have.

        ``free`` and ``bad`` are the votes on all bits (see `Block.votes`).
        """
        if not self.code.by_stretches:
            return flips
        m, atoms = block.n_features, block.atoms()
        after, are_ones = atoms ^ BitMatrix.from_words(flips.copy(), m, check=False), atoms.to_dense(bool)
        are_ones_after = after.to_dense(bool)
        of_bit, columns, costs = self.of_each_flip(block, are_ones_after, are_ones, free, bad)
        is_flipped = (are_ones ^ are_ones_after)[of_bit, columns]
        far = self.far_bits(m, of_bit, columns, np.where(is_flipped, -costs, costs))
        cleared = np.zeros((len(atoms), m), bool)
        cleared[of_bit[far], columns[far]] = True
        return flips ^ BitMatrix.from_dense(cleared).words

    def of_bias_ones(self, n_rows: int, n_features: int, ones: NDArray) -> Counted:
        """Return the cost of a bias with this many ones."""
        if not self.by_codelength:
            return np.zeros(np.shape(ones), np.int64)
        cost = self._of_bits(string_bits(self.code.n_features or n_features, ones)) + self.of_uses(n_rows, np.array(0))
        return np.where(ones > 0, cost, 0)

    def _spared(self, bits: Counted) -> Counted:
        """Return the part of these bits that rows outside the data pay: all rows share the cost of an atom."""
        return np.rint((1 - self.share) * bits).astype(np.int64)

    def removal_costs(self, block: Block) -> RemovalCosts:
        """Return from what kernels compute by how much errors and uses cost more after some changes."""
        n_rows, costs = block.n_samples, self.costs
        logs = log2_factorials(n_rows) if self.by_codelength else np.zeros(0)
        beyond = (costs.missed_bits, costs.added_bits) if costs else (np.zeros(0, np.int64),) * 2
        return RemovalCosts(logs, n_rows, block.n_known.copy(), block.wrong(), block.uses(), *beyond, self.has_bias)

    def rule(self, block: Block, flat: bool = False) -> CodingRule:
        """Return the rule of coding at the current prices; ``flat``: one price for all features."""
        return self.rule_from_counts(block.n_samples, block.n_known, block.wrong(), block.uses(), flat)

    def rule_from_counts(
        self, n_rows: int, n_known: Counted, wrong: Counted, uses: Counted, flat: bool = False
    ) -> CodingRule:
        """Return the same from counts: in how many rows each bit is known and wrong, and how many use each atom."""
        if self.by_codelength:
            prices = codelength_prices(n_rows, n_known, wrong, uses, flat, self.costs, self.has_bias)
        else:
            prices = unit_prices(len(wrong), len(uses))
        rule = coding_rule("mdl", self.algebra, self.max_atoms, prices=prices)
        return rule._replace(typical=typical_cost(prices, n_rows, wrong, uses))
