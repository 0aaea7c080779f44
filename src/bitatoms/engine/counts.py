"""Counts: all that learning needs to know about coded rows, as integers that add up over chunks.

Votes on all bits of the atoms of a wide table, atoms times columns, would take much memory: there, only some bits of
the atoms have votes (`voted_bits`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..bits import BitMatrix
from ..sparse_bits import Bits, SparseBits, sparse, stack_bits
from .codelength import AtomCode, Codelength

_MIN_FEATURES = 1 << 11  # of tables in which only some bits have votes
MAX_VOTES = 1 << 21  # up to this number, all bits have votes; also the limit of candidates
_MAX_CANDIDATES = 1 << 9  # of an atom, in addition to its own bits
_MAX_LINKED = 1 << 8  # atoms that have a column; if more have it, they need not be related
_OWN = 1 << 30  # a weight above that of any candidate
_ATOMS_PER_STEP = 16


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

    def codelength(self, atoms: Bits, bias: BitMatrix, code: AtomCode) -> Codelength:
        """Return the codelength of the rows with the atoms they are coded with."""
        return code.codelength(self.n_rows, self.wrong, self.uses, atoms, bias.count(), self.known)


_SUMMED = tuple(field.name for field in fields(Counts) if field.name != "voted")
_ARRAYS = tuple(field for field in _SUMMED if field not in ("n_rows", "codes_changed"))


def lists_votes(n_atoms: int, n_features: int) -> bool:
    """Return whether only some bits of the atoms have votes."""
    return n_features >= _MIN_FEATURES and n_atoms * n_features > MAX_VOTES


def voted_bits(atoms: Bits) -> SparseBits | None:
    """Return the bits of the atoms that have votes; None if all have.

    They are the ones of an atom, and those that it might take: the ones of atoms with which it shares some, in columns
    that not many atoms have. If these are many, those that most such atoms have, weighted by the number of shared ones;
    ties go to the lowest column.
    """
    if not lists_votes(*atoms.shape):
        return None
    most = min(_MAX_CANDIDATES, MAX_VOTES // atoms.n_rows)
    ones = sparse(atoms).to_sparse()
    links = ones[:, np.flatnonzero(atoms.column_weights() <= _MAX_LINKED)]
    by_column = links.T.tocsr()
    chosen = []
    for first in range(0, atoms.n_rows, _ATOMS_PER_STEP):
        step = slice(first, first + _ATOMS_PER_STEP)
        weights = csr_array(links[step] @ by_column) @ ones + _OWN * ones[step]
        chosen.append(_heaviest(weights, np.diff(ones[step].indptr) + most))
    return stack_bits(chosen, atoms.n_cols)


def are_ones(atoms: Bits, voted: SparseBits) -> NDArray[np.bool_]:
    """Return which of the voted bits of the atoms are ones."""
    ones, m = sparse(atoms), np.int64(atoms.n_cols)
    (atom, column), (of_one, at) = voted.cells(), ones.cells()
    are = np.zeros(voted.count(), bool)
    are[np.searchsorted(atom * m + column, of_one * m + at)] = True
    return are


def cells_of(voted: SparseBits, first: int, last: int) -> tuple[slice, tuple[NDArray[np.intp], NDArray[np.integer]]]:
    """Return which of the voted bits belong to the atoms first..last, and their indices in an array of these atoms."""
    return slice(int(voted.indptr[first]), int(voted.indptr[last])), voted[first:last].cells()


def _heaviest(weights: csr_array, most: NDArray[np.integer]) -> SparseBits:
    """Return the entries with the greatest weights, at most this many in each row; ties go to the first columns."""
    found = weights.tocoo()
    order = np.lexsort((found.col, -found.data, found.row))
    row = found.row[order]
    rank = np.arange(len(row)) - np.searchsorted(row, row)
    kept = order[rank < most[row]]
    kept = kept[np.lexsort((found.col[kept], found.row[kept]))]
    return SparseBits.from_cells(found.row[kept], found.col[kept], weights.shape)
