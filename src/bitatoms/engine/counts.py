"""Counts: all that learning needs to know about coded rows, as integers that add up over chunks."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

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
    # None in a stream, whose past rows cannot be counted again when atoms change, and in older checkpoints:
    complete: NDArray[np.int64] | None = None  # (p,): rows in which each atom is complete (see `count_members`)
    rows_hash: int | None = None  # the hash of the rows
    # See `count_members`:
    lacking: NDArray[np.int64] | None = None  # (ones of the atoms,): rows that lack this feature of the atom only
    atom_known: NDArray[np.int64] | None = None  # (p,): rows in which all features of the atom are known
    voted: SparseBits | None = None  # (p, m): the bits that have votes (see `voted_bits`); None for all

    @classmethod
    def none(cls, n_atoms: int, n_features: int, voted: SparseBits | None = None, n_ones: int = 0) -> Counts:
        """Return the counts of no rows; the atoms have this many ones."""
        p, m = n_atoms, n_features
        votes, both = ((p, m), (p, p)) if voted is None else ((voted.count(),), (0, 0))
        known, uses, wrong, free, bad, pairs, ones, missed = (
            np.zeros(shape, np.int64) for shape in ((m,), (p,), (m,), votes, votes, both, (m,), (m,))
        )
        complete, lacking, atom_known = (np.zeros(length, np.int64) for length in (p, n_ones, p))
        summed = known, uses, wrong, free, bad, pairs, ones, missed
        return cls(0, *summed, 0, complete, 0, lacking, atom_known, voted)

    def __add__(self, other: Counts) -> Counts:
        sums = {field: getattr(self, field) + getattr(other, field) for field in _SUMMED}
        return replace(self, **sums, **self._sums_of_known(other))

    def add(self, more: Counts) -> Counts:
        """Return the sum, reusing the arrays of this object, which have a size of atoms times features."""
        for field in _ARRAYS:
            sums: NDArray[np.int64] = getattr(self, field)
            sums += getattr(more, field)
        n_rows, codes_changed = self.n_rows + more.n_rows, self.codes_changed + more.codes_changed
        return replace(self, n_rows=n_rows, codes_changed=codes_changed, **self._sums_of_known(more))

    def put(
        self,
        atoms: NDArray[np.intp],
        columns: NDArray[np.intp] | slice,
        ones: NDArray[np.int64],
        part: Counts,
    ) -> Counts:
        """Return the counts with those of some atoms, of their columns, which no others have, and of their ones.

        The arrays of this object are reused. Both have listed votes, and count the same rows.
        """
        assert self.voted is not None
        votes = self.voted.entries_of(atoms)
        for index, names in (
            (atoms, ("uses", "complete", "atom_known")),
            (columns, ("wrong", "missed")),
            (ones, ("lacking",)),
            (votes, ("free", "bad")),
        ):
            for name in names:
                getattr(self, name)[index] = getattr(part, name)
        return replace(self, codes_changed=self.codes_changed + part.codes_changed)

    def _sums_of_known(self, other: Counts) -> dict[str, Any]:
        """Return the sums of the fields that may be unknown."""
        sums = {}
        for name in _OPTIONAL:
            own, more = getattr(self, name), getattr(other, name)
            sums[name] = None if own is None or more is None else own + more
        if sums["rows_hash"] is not None:
            sums["rows_hash"] %= 2**64
        return sums

    def copy(self) -> Counts:
        """Return a copy with its own arrays."""
        n_ones = 0 if self.lacking is None else len(self.lacking)
        return self + Counts.none(len(self.uses), len(self.wrong), self.voted, n_ones)

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


_OPTIONAL = ("complete", "rows_hash", "lacking", "atom_known")
_SUMMED = tuple(field.name for field in fields(Counts) if field.name not in (*_OPTIONAL, "voted"))
_ARRAYS = tuple(field for field in _SUMMED if field not in ("n_rows", "codes_changed"))
