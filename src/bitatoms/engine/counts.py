"""Counts: all that learning needs to know about coded rows, as integers that add up over chunks."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..sparse_bits import Bits, SparseBits
from .codelength import Codelength, codelength_from_counts, spans
from .voted_bits import are_ones


@dataclass(frozen=True, eq=False)
class Counts:
    """Counts over coded rows. The counts of a table are the sum of those of its chunks."""

    n_rows: int
    known: NDArray[np.int64]  # (m,): rows in which each bit is known
    uses: NDArray[np.int64]  # (p,): rows that use each atom
    wrong: NDArray[np.int64]  # (m,): rows in which each bit is wrong
    # (p, m), or one number per voted bit:
    free: NDArray[np.integer]  # users of each atom in whose row the bit is known and no other atom decides it
    bad: NDArray[np.integer]  # the free users in which the bit is wrong
    # (p, p), or (0, 0) if only some bits have votes:
    pairs: NDArray[np.int64]  # rows that use both of two atoms, below and on the diagonal
    ones: NDArray[np.int64]  # (m,): rows in which each bit of the data is one
    missed: NDArray[np.int64]  # (m,): rows in which the bit is one and wrong
    codes_changed: int  # bits of codes that the pass changed
    voted: SparseBits | None = None  # (p, m): the bits that have votes (see `voted_bits`); None for all

    @classmethod
    def none(cls, n_atoms: int, n_features: int, voted: SparseBits | None = None) -> Counts:
        """Return the counts of no rows."""
        p, m = n_atoms, n_features
        votes, both = ((p, m), (p, p)) if voted is None else ((voted.count(),), (0, 0))
        known, uses, wrong, free, bad, pairs, ones, missed = (
            np.zeros(shape, np.int64) for shape in ((m,), (p,), (m,), votes, votes, both, (m,), (m,))
        )
        return cls(0, known, uses, wrong, free, bad, pairs, ones, missed, 0, voted)

    def __add__(self, other: Counts) -> Counts:
        return replace(self, **{field: getattr(self, field) + getattr(other, field) for field in _SUMMED})

    def add(self, more: Counts) -> Counts:
        """Return the sum, reusing the arrays of this object, which have a size of atoms times features."""
        for field in _ARRAYS:
            sums: NDArray[np.int64] = getattr(self, field)
            sums += getattr(more, field)
        n_rows, codes_changed = self.n_rows + more.n_rows, self.codes_changed + more.codes_changed
        return replace(self, n_rows=n_rows, codes_changed=codes_changed)

    def put(self, atoms: NDArray[np.intp], columns: NDArray[np.intp] | slice, part: Counts) -> Counts:
        """Return the counts with those of some atoms, and of their columns, which no others have.

        The arrays of this object are reused. Both have listed votes, and count the same rows.
        """
        assert self.voted is not None
        votes = self.voted.entries_of(atoms)
        for index, names in ((atoms, ("uses",)), (columns, ("wrong", "missed")), (votes, ("free", "bad"))):
            for name in names:
                getattr(self, name)[index] = getattr(part, name)
        return replace(self, codes_changed=self.codes_changed + part.codes_changed)

    def copy(self) -> Counts:
        """Return a copy with its own arrays."""
        return self + Counts.none(len(self.uses), len(self.wrong), self.voted)

    def votes_on_ones(self, atoms: Bits) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        """Return the votes, free and bad, on the ones of the atoms that the rows are coded with, atom after atom."""
        index = atoms.to_dense(bool) if self.voted is None else np.flatnonzero(are_ones(atoms, self.voted))
        return self.free[index], self.bad[index]

    def codelength(self, atoms: Bits, bias: BitMatrix, ranks: NDArray[np.int64] | None = None) -> Codelength:
        """Return the codelength of the rows with the atoms they are coded with.

        ``ranks`` are those of the columns in their order, where atoms are described by stretches.
        """
        counts = self.wrong, self.uses, atoms.row_weights(), bias.count(), self.known
        return codelength_from_counts(self.n_rows, len(self.wrong), *counts, spans(atoms, ranks))


_SUMMED = tuple(field.name for field in fields(Counts) if field.name != "voted")
_ARRAYS = tuple(field for field in _SUMMED if field not in ("n_rows", "codes_changed"))
