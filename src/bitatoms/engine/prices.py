"""Prices of errors and uses, at which coding one row lowers the cost, and costs of errors, by which prices differ.

The price of an error, and of a use, is the slope of the codelength at the current counts (see `engine.objective`).

Under OR, a missed one (a false negative) and an added one (a false positive) may have costs (`ErrorCosts`).
The codelength counts both alike. A cost c > 1 adds ``(c - 1) * ERROR_BITS`` bits to what a search minimizes, for each
such error. They are the same bits wherever an error is, so that they add up over rows, chunks and columns, and so that
a higher cost of added ones cannot make the best factorization add more of them. An infinite cost forbids added ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.structs import MAX_PRICE, Prices
from .block import Block
from .row_state import Words, lanes_of

Counted = NDArray[np.int64]
Ints = NDArray[np.integer]
Votes = tuple[Ints, Ints]  # free and bad ones

ERROR_BITS = 8  # what the code of an error takes in a column that is wrong in 1 of 256 rows
_INFINITE_BITS = 1 << 32  # more than any atom saves; sums over 2**30 cells fit into 64 bits
_MAX_FINITE_BITS = 1 << 30
_WEIGHT_UNIT, _INFINITE_WEIGHT = 16, 1 << 24  # costs in votes, as integers

_MIN_ERROR_BITS = 0.05  # the price of an error where half of the rows have one
_MIN_ERROR_BITS_WITHOUT_BIAS = 1.0  # the slope of the code where a third of the rows have an error
_FIRST_USE_BITS = 5.06  # the price of using an atom that no row uses yet: that of an atom used by 3 % of the rows
MAX_COSTLY_PRICE, _MAX_ROW_PRICE = 1 << 12, 1 << 28  # of a cell and of a row, where errors have costs
_MAX_FLAT_DENSITY = 0.3  # with more errors, each would cost next to nothing, and no row would be coded


@dataclass(frozen=True, eq=False)
class ErrorCosts:
    """The cost of a missed and of an added one in each column, 1 or more. `EQUAL_COSTS` if all are 1.

    These have no columns, and are false: errors cost what their code takes, and votes count as they are.
    """

    missed: NDArray[np.float64]  # (m,)
    added: NDArray[np.float64]  # (m,)

    def __bool__(self) -> bool:
        """Whether any error costs more than its code."""
        return len(self.missed) > 0

    @classmethod
    def of_columns(cls, missed: float | NDArray, added: float | NDArray, n_features: int) -> ErrorCosts:
        """Return the costs of this many columns, from one cost for all or one for each."""
        arrays = [np.broadcast_to(np.asarray(costs, np.float64), n_features) for costs in (missed, added)]
        return EQUAL_COSTS if all((costs == 1).all() for costs in arrays) else cls(*arrays)

    def take_columns(self, columns: NDArray[np.intp]) -> ErrorCosts:
        """Return the costs of some columns."""
        return ErrorCosts(self.missed[columns], self.added[columns]) if self else self

    def limited(self, most: float) -> ErrorCosts:
        """Return the costs, none higher than this."""
        return ErrorCosts(np.minimum(self.missed, most), np.minimum(self.added, most))

    @cached_property
    def missed_bits(self) -> Counted:
        """The bits that a missed one in each column costs beyond its code."""
        return _bits(self.missed)

    @cached_property
    def added_bits(self) -> Counted:
        """The bits that an added one in each column costs beyond its code."""
        return _bits(self.added)

    @property
    def forbidden(self) -> NDArray[np.uint64]:
        """The columns in which no one may be added, packed; empty if there are none."""
        never = np.isinf(self.added)
        return BitMatrix.from_dense(never[np.newaxis]).words[0].copy() if never.any() else np.empty(0, np.uint64)

    def adds_forbidden(self, block: Block) -> bool:
        """Return whether a block adds ones where none may be added."""
        never = np.isinf(self.added)
        return bool(never.any() and block.added()[never].any())

    def of_counts(self, wrong: Counted, added: Counted) -> Any:
        """Return what errors cost beyond their code: the wrong cells of each column, and the added ones among them.

        Columns are along the last axis; one cost is returned for each index of the other.
        """
        return (wrong - added) @ self.missed_bits + added @ self.added_bits if self else 0

    def of_block(self, block: Block) -> int:
        """Return what the errors of a block cost beyond their code."""
        return int(self.of_counts(block.wrong(), block.added())) if self else 0

    def of_flips(self, columns: Ints, are_ones: bool | NDArray[np.bool_], free: Ints, bad: Ints) -> Counted | int:
        """Return by how much errors cost more, beyond their code, after flips of bits in these columns, each alone.

        ``are_ones``: the bits are ones now. ``free`` and ``bad`` are the votes on them (see `Block.votes`): a bit that
        becomes one fixes missed ones in the rows of bad votes, and makes added ones in those of the others.
        """
        if not self:
            return 0
        missed, added, right = self.missed_bits[columns], self.added_bits[columns], free.astype(np.int64) - bad
        return np.where(are_ones, missed * right - added * bad, added * right - missed * bad)

    def weighted_votes(
        self, are_ones: bool | NDArray[np.bool_], free: Ints, bad: Ints, columns: slice | Ints = slice(None)
    ) -> Votes:
        """Return votes in which errors count as much as they cost: a flip helps if most of the votes are bad."""
        if not self:
            return free, bad
        missed, added = _weights(self.missed[columns]), _weights(self.added[columns])
        fixed = np.where(are_ones, added, missed) * bad
        return fixed + np.where(are_ones, missed, added) * (free.astype(np.int64) - bad), fixed

    def weighted_votes_on(self, atoms: Words, free: Ints, bad: Ints) -> Votes:
        """Return such votes on all bits of these atoms."""
        if not self:
            return free, bad
        are_ones = BitMatrix.from_words(atoms.copy(), free.shape[1], check=False).to_dense(bool)
        return self.weighted_votes(are_ones, free, bad)

    @property
    def largest_weight(self) -> int:
        """The largest weight of a vote."""
        return int(max(_weights(costs).max() for costs in (self.missed, self.added))) if self else 1

    def prices(self, bits: NDArray[np.float64], bits_per_use: NDArray[np.float64]) -> Prices:
        """Return prices in bits as integers of one unit; errors also cost what they cost beyond their code."""
        if not self:
            unit = MAX_PRICE / bits.max(initial=_MIN_ERROR_BITS)
            return Prices(np.maximum(1, np.rint(bits * unit)).astype(np.int32), _use_prices(bits_per_use, unit))
        # A missed one that is forbidden is worth any use, and an added one any missed ones; these are excluded, too.
        most = 2 * (bits.max(initial=0.0) + bits_per_use.max(initial=0.0))
        missed, added = (bits + np.minimum(beyond, most) for beyond in (self.missed_bits, self.added_bits))
        highest = min(MAX_COSTLY_PRICE, _MAX_ROW_PRICE / max(1, len(bits)))
        unit = highest / max(missed.max(initial=1), added.max(initial=1))
        missed, added = (np.maximum(1, np.rint(each * unit / 2)).astype(np.int32) for each in (missed, added))
        return Prices(2 * missed, _use_prices(bits_per_use, unit), 2 * added, missed + added, self.forbidden)


EQUAL_COSTS = ErrorCosts(np.ones(0), np.ones(0))


def _bits(costs: NDArray[np.float64]) -> Counted:
    """Return the bits beyond the code of an error of these costs."""
    finite = np.minimum(costs, _MAX_FINITE_BITS / ERROR_BITS)  # an infinite one, too
    return np.where(np.isinf(costs), _INFINITE_BITS, np.rint((finite - 1) * ERROR_BITS).astype(np.int64))


def _weights(costs: NDArray[np.float64]) -> Counted:
    """Return costs as integers."""
    return np.rint(_WEIGHT_UNIT * np.minimum(costs, _INFINITE_WEIGHT / _WEIGHT_UNIT)).astype(np.int64)


def _use_prices(bits_per_use: NDArray[np.float64], unit: float) -> NDArray[np.int32]:
    """Return prices of uses as integers of this unit, padded to the number of atoms coded at a time."""
    n_atoms = len(bits_per_use)
    return np.pad(np.rint(bits_per_use * unit), (0, lanes_of(n_atoms) - n_atoms)).astype(np.int32)


def unit_prices(n_features: int, n_atoms: int) -> Prices:
    """Return the prices for the fewest errors: an error costs 1, a use nothing."""
    return Prices(np.ones(n_features, np.int32), np.zeros(lanes_of(n_atoms), np.int32))


def codelength_prices(
    n_rows: int,
    n_known: Counted,
    wrong: Counted,
    uses: Counted,
    flat: bool = False,
    costs: ErrorCosts = EQUAL_COSTS,
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
    return costs.prices(bits, bits_per_use)


def _slope(length: float | NDArray, ones: NDArray) -> NDArray[np.float64]:
    """Return the cost of one more one in a string of this length."""
    return np.log2((length - ones + 0.5) / (ones + 0.5))
