"""Costs of errors: what a missed one (a false negative) and an added one (a false positive) cost, under OR.

The codelength counts both alike. A cost c > 1 adds ``(c - 1) * ERROR_BITS`` bits to what a search minimizes, for each
such error. They are the same bits wherever an error is, so that they add up over rows, chunks and columns, and so that
a higher cost of added ones cannot make the best factorization add more of them. An infinite cost forbids the error.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix

ERROR_BITS = 8  # what the code of an error takes in a column that is wrong in 1 of 256 rows
_INFINITE_BITS = 1 << 32  # more than any atom saves; sums over 2**30 cells fit into 64 bits
_MAX_FINITE_BITS = 1 << 30
_WEIGHT_UNIT, _INFINITE_WEIGHT = 16, 1 << 24  # costs in votes, as integers


@dataclass(frozen=True, eq=False)
class ErrorCosts:
    """The cost of a missed and of an added one in each column, 1 or more."""

    missed: NDArray[np.float64]  # (m,)
    added: NDArray[np.float64]  # (m,)

    @classmethod
    def of_columns(cls, missed: float | NDArray, added: float | NDArray, n_features: int) -> ErrorCosts | None:
        """Return the costs of this many columns, from one cost for all or one for each; None if all are 1."""
        arrays = [np.broadcast_to(np.asarray(costs, np.float64), n_features) for costs in (missed, added)]
        return None if all((costs == 1).all() for costs in arrays) else cls(*arrays)

    def take_columns(self, columns: NDArray[np.intp]) -> ErrorCosts:
        """Return the costs of some columns."""
        return ErrorCosts(self.missed[columns], self.added[columns])

    def limited(self, most: float) -> ErrorCosts:
        """Return the costs, none higher than this."""
        return ErrorCosts(np.minimum(self.missed, most), np.minimum(self.added, most))

    @cached_property
    def missed_bits(self) -> NDArray[np.int64]:
        """The bits that a missed one in each column costs beyond its code."""
        return _bits(self.missed)

    @cached_property
    def added_bits(self) -> NDArray[np.int64]:
        """The bits that an added one in each column costs beyond its code."""
        return _bits(self.added)

    @property
    def forbids_missed(self) -> bool:
        """Whether there are columns in which no one may be missed."""
        return bool(np.isinf(self.missed).any())

    @property
    def forbidden(self) -> NDArray[np.uint64]:
        """The columns in which no one may be added, packed; empty if there are none."""
        never = np.isinf(self.added)
        return BitMatrix.from_dense(never[np.newaxis]).words[0].copy() if never.any() else np.empty(0, np.uint64)

    def of_counts(self, wrong: NDArray[np.int64], added: NDArray[np.int64]) -> int:
        """Return what errors cost beyond their code: the wrong cells of each column, and the added ones among them."""
        return int(self.missed_bits @ (wrong - added) + self.added_bits @ added)

    def of_flips(
        self,
        columns: NDArray[np.integer],
        are_ones: bool | NDArray[np.bool_],
        free: NDArray[np.integer],
        bad: NDArray[np.integer],
    ) -> NDArray[np.int64]:
        """Return by how much errors cost more, beyond their code, after flips of bits in these columns, each alone.

        ``are_ones``: the bits are ones now. ``free`` and ``bad`` are the votes on them (see `Block.votes`): a bit that
        becomes one fixes missed ones in the rows of bad votes, and makes added ones in those of the others.
        """
        missed, added, right = self.missed_bits[columns], self.added_bits[columns], free.astype(np.int64) - bad
        return np.where(are_ones, missed * right - added * bad, added * right - missed * bad)

    def weighted_votes(
        self,
        are_ones: bool | NDArray[np.bool_],
        free: NDArray[np.integer],
        bad: NDArray[np.integer],
        columns: slice | NDArray[np.integer] = slice(None),
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return votes in which errors count as much as they cost: a flip helps if most of the votes are bad."""
        missed, added = _weights(self.missed[columns]), _weights(self.added[columns])
        fixed = np.where(are_ones, added, missed) * bad
        return fixed + np.where(are_ones, missed, added) * (free.astype(np.int64) - bad), fixed

    @property
    def largest_weight(self) -> int:
        """The largest weight of a vote."""
        return int(max(_weights(self.missed).max(initial=0), _weights(self.added).max(initial=0)))


def _bits(costs: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the bits beyond the code of an error of these costs."""
    finite = np.minimum(costs, _MAX_FINITE_BITS / ERROR_BITS)  # an infinite one, too
    return np.where(np.isinf(costs), _INFINITE_BITS, np.rint((finite - 1) * ERROR_BITS).astype(np.int64))


def _weights(costs: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return costs as integers."""
    return np.rint(_WEIGHT_UNIT * np.minimum(costs, _INFINITE_WEIGHT / _WEIGHT_UNIT)).astype(np.int64)
