"""One pass over rows, wherever they are: what is ordered of it, what is done to some of the rows, and what is counted.

The rows that a search goes through may lie in memory, in a store or on a cluster. All that it wants of them is counts,
which add up over any blocks of rows, and rows taken by their numbers; so it is written once, and gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.tables import Prices, Rule
from ..mdl import Codelength, codelength_from_counts
from ..parallel import Workers
from .block import Block
from .coding import CODERS, code_and_mend


@dataclass(frozen=True, eq=False)
class Order:
    """What a pass does: code the rows with these atoms, and count.

    ``kept`` are the places that the atoms had among those of the pass before, from whose codes the rows are coded on;
    None where they are coded from nothing. ``coder`` is a name of CODERS, or "mend" (`code_and_mend`).
    """

    atoms: BitMatrix
    bias: BitMatrix
    coder: str
    rule: Rule
    kept: NDArray[np.intp] | None = None


@dataclass(frozen=True, eq=False)
class Counts:
    """What learning needs to know of rows that are coded: counts, which add up."""

    n_rows: int
    uses: NDArray[np.int64]  # (p,): rows that use each atom
    wrong: NDArray[np.int64]  # (m,): rows in which each bit is wrong
    free: NDArray[np.int64]  # (p, m): users of each atom in whose row no other atom decides the bit,
    bad: NDArray[np.int64]  # (p, m): and those of them in which it is wrong
    pairs: NDArray[np.int64]  # (p, p): rows that use both of two atoms, below the diagonal and on it
    ones: NDArray[np.int64]  # (m,): rows in which each bit of the data is one,
    missed: NDArray[np.int64]  # (m,): and those of them in which it is wrong
    codes_changed: int  # bits of codes that the pass changed

    @classmethod
    def none(cls, n_atoms: int, n_features: int) -> Counts:
        """Those of no rows."""
        p, m = n_atoms, n_features
        uses, wrong, free, bad, pairs, ones, missed = (
            np.zeros(shape, np.int64) for shape in ((p,), (m,), (p, m), (p, m), (p, p), (m,), (m,))
        )
        return cls(0, uses, wrong, free, bad, pairs, ones, missed, codes_changed=0)

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Counts)))

    def add(self, more: Counts) -> Counts:
        """The sum, made in the arrays of this one: they are as large as atoms by features."""
        for field in _ARRAYS:
            sums: NDArray[np.int64] = getattr(self, field)
            sums += getattr(more, field)
        return replace(self, n_rows=self.n_rows + more.n_rows, codes_changed=self.codes_changed + more.codes_changed)

    def copy(self) -> Counts:
        """The same counts in arrays of their own."""
        return self + Counts.none(*self.free.shape)

    def votes(self, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The votes on the atoms first..last."""
        return self.free[first:last], self.bad[first:last]

    def codelength(self, atoms: BitMatrix, bias: BitMatrix) -> Codelength:
        """Bits that describe the rows, of which these are the counts, by the atoms they are coded with."""
        weights = atoms.row_weights(), bias.count()
        return codelength_from_counts(self.n_rows, len(self.wrong), self.wrong, self.uses, *weights)


_ARRAYS = tuple(field.name for field in fields(Counts) if field.type != "int")


class Partial(NamedTuple):
    """A pass that is not done: the rows before this one are counted, and their codes kept."""

    next_row: int
    counts: Counts


class AllRows(Protocol):
    """The rows of a table, wherever they are.

    ``codes`` is what a pass left to the next: the codes of all rows, in whatever form, or None.
    """

    n_rows: int
    n_features: int
    whole: BitMatrix | None  # all rows, where they are in memory anyway

    def take(self, rows: NDArray[np.int64]) -> BitMatrix:
        """These rows, given by their numbers in rising order."""
        ...

    def sweep(
        self, order: Order, codes: Any, number: int, partial: Partial | None, keep: Callable[[Partial], None]
    ) -> tuple[Any, Counts]:
        """Pass ``number`` over all rows, on from a part of it that was done before; its codes and counts.

        ``keep`` may be called every now and then with the part that is done.
        """
        ...

    def fingerprint(self) -> str:
        """Some letters that tell these rows from others."""
        ...

    def codes_of(self, number: int) -> Any | None:
        """The codes that a pass of an earlier call left, where they were kept."""
        ...

    def forget(self, keep: set[int]) -> None:
        """The codes of all passes but these are no longer wanted."""
        ...


def work(data: BitMatrix, codes: BitMatrix | None, order: Order, workers: Workers) -> tuple[BitMatrix, Counts]:
    """Do what is ordered with some rows and the codes they had; their codes now, and the counts."""
    if order.kept is None or codes is None:
        codes = None
    elif len(order.kept) != codes.n_cols or (np.diff(order.kept) != 1).any():
        codes = codes.T[order.kept].T
    block = coded_block(data, codes, order, workers)
    _, after = block.factors()
    p, m = block.n_atoms, block.n_features
    free, bad = block.votes(0, p) if p else (np.zeros((0, m), np.int64),) * 2
    ones = data.column_weights()
    missed = BitMatrix.trusted(data.words & block.rows.errors, m).column_weights()
    before = np.zeros_like(after.words) if codes is None else codes.words
    counts = Counts(
        n_rows=len(data),
        uses=block.uses(),
        wrong=block.wrong(),
        free=free.astype(np.int64),
        bad=bad.astype(np.int64),
        pairs=block.pairs().astype(np.int64),
        ones=ones,
        missed=missed,
        codes_changed=int(np.bitwise_count(before ^ after.words).sum()),
    )
    return after, counts


def coded_block(data: BitMatrix, codes: BitMatrix | None, order: Order, workers: Workers) -> Block:
    """Rows coded as ordered, on from the codes they have or from nothing."""
    block = Block(data, order.atoms, codes, order.rule.covers, workers, order.bias)
    prices = order.rule.prices
    if prices is not None:  # own copies: numba compiles a kernel anew for arrays that are read-only
        prices = Prices(prices.bits.copy(), prices.uses.copy())
    coder = code_and_mend if order.coder == "mend" else CODERS[order.coder]
    coder(block, order.rule._replace(prices=prices))
    return block
