"""Rows that have all features of an atom, and rows that lack a single one of them: statistics of a result.

They depend on the rows and the atoms, not on codes, and are counted once, when a result is complete. A row that has all
features of an atom but one shows how often that feature comes with the others. The counts of all features are in one
array: those of the first atom in the order of its columns, then those of the second, and so on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..engine.distinct_rows import hash_rows
from ..kernels.cpu import words
from ..parallel import Workers
from ..sparse_bits import Bits, SparseBits, packed, sparse
from .result import ResultBase

AnyResult = TypeVar("AnyResult", bound=ResultBase)
Counted = NDArray[np.int64]

_ONES_AT_A_TIME, _WORDS_AT_A_TIME = 1 << 22, 1 << 20  # of sparse rows, as they are and packed
_PAIR_COST = 0.3  # nanoseconds per row and atom
_CELL_COST = 0.1  # nanoseconds per row and column, which are transposed
_NO_WORDS = np.zeros((0, 1), np.uint64)
_NO_WORDS.flags.writeable = False  # as the words of a BitMatrix are
_SHARED = np.int64(1) << np.int64(40)  # one common feature, in a sum with the positions of the common features


@dataclass(frozen=True, eq=False)
class MemberCounts:
    """Counts of rows by which features of atoms they lack. The counts of a table are the sum of those of its chunks.

    A feature that the bias sets counts the other way round: an atom with this feature clears it, so that a row has it
    if its cell is zero.
    """

    complete: Counted  # (n_atoms,): rows that are known to have all features of the atom
    lacking: Counted  # (ones of the atoms,): rows that are known to have all other features of the atom, and not this
    atom_known: Counted  # (n_atoms,): rows in which all features of the atom are known
    rows_hash: int | None = None  # the hash of the rows, if it is known

    def __add__(self, other: MemberCounts) -> MemberCounts:
        hashes = self.rows_hash, other.rows_hash
        return MemberCounts(
            self.complete + other.complete,
            self.lacking + other.lacking,
            self.atom_known + other.atom_known,
            None if hashes[0] is None or hashes[1] is None else (hashes[0] + hashes[1]) % 2**64,
        )

    def of_atoms(self, atoms: Bits, indices: NDArray[np.intp]) -> MemberCounts:
        """Return the counts of some of the atoms."""
        lacking = self.lacking[sparse(atoms).entries_of(indices)]
        return replace(self, complete=self.complete[indices], lacking=lacking, atom_known=self.atom_known[indices])


def with_members(result: AnyResult, members: MemberCounts) -> AnyResult:
    """Return a result with the counts of its atoms in its rows; without unknown cells, all atoms are known."""
    return replace(
        result,
        complete=members.complete,
        lacking=members.lacking,
        atom_known=None if result.known is None else members.atom_known,
        rows_hash=members.rows_hash,
    )


def members_of(result: ResultBase) -> MemberCounts | None:
    """Return the counts of the atoms of a result in its rows; None if they were not counted, as in a stream."""
    known = result.atom_known
    if known is None and result.known is None:
        known = np.full(result.atoms.n_rows, result.n_samples)
    if result.complete is None or result.lacking is None or known is None:
        return None
    return MemberCounts(result.complete, result.lacking, known)


def describe_rows(data: Bits, atoms: Bits, workers: Workers, bias: BitMatrix) -> MemberCounts:
    """Return the counts of rows, with their hash."""
    return replace(count_members(data, atoms, workers, bias), rows_hash=hash_rows(data))


def count_members(
    data: Bits, atoms: Bits, workers: Workers | None = None, bias: BitMatrix | None = None
) -> MemberCounts:
    """Count the rows that have all features of an atom, and those that lack one, for each feature of each atom.

    Parameters
    ----------
    data : BitMatrix or SparseBits of shape (n, m)
    atoms : BitMatrix or SparseBits of shape (p, m)
    workers : Workers, optional
    bias : BitMatrix of shape (1, m), optional

    Returns
    -------
    MemberCounts
    """
    workers = workers or Workers()
    if bias is not None and not bias.count():
        bias = None
    if isinstance(data, BitMatrix):
        return _count_in_packed(data, atoms, workers, bias)
    if bias is None:
        return _count_in_sparse(data, atoms)
    columns = np.flatnonzero(atoms.column_weights())  # the others would take memory, and do not matter
    data, atoms, bias = data.take_columns(columns), atoms.take_columns(columns), bias.take_columns(columns)
    size = max(64, _WORDS_AT_A_TIME // max(1, -(-len(columns) // 64)))
    chunks = (packed(data[start : start + size]) for start in range(0, max(1, len(data)), size))
    return reduce(add, (_count_in_packed(chunk, atoms, workers, bias) for chunk in chunks))


def _count_in_packed(data: BitMatrix, atoms: Bits, workers: Workers, bias: BitMatrix | None) -> MemberCounts:
    """Count in packed rows."""
    starts = np.concatenate(([0], np.cumsum(atoms.row_weights())))
    ones = sparse(atoms).indices.astype(np.int64)

    def count(start: int, stop: int) -> MemberCounts:
        complete, known = np.zeros((2, len(atoms)), np.int64)
        lacking, unknown = np.zeros(len(ones), np.int64), _NO_WORDS
        if data.unknown is not None:
            unknown = data.unknown[start:stop].T.words
        own = data[start:stop] if bias is None else data[start:stop] ^ bias
        words.count_members(own.T.words, unknown, ones, starts, stop - start, complete, lacking, known)
        return MemberCounts(complete, lacking, known if len(unknown) else known + (stop - start))

    row_cost = _PAIR_COST * len(atoms) + _CELL_COST * data.n_cols
    return reduce(add, workers.map_rows(count, len(data), row_cost))


def _count_in_sparse(data: SparseBits, atoms: Bits) -> MemberCounts:
    """Count in sparse rows, all of whose cells are known."""
    ones, weights = atoms.to_sparse(), atoms.row_weights()
    starts = ones.indptr[:-1].astype(np.int64)
    positions = np.arange(len(ones.indices)) - np.repeat(starts, weights) + 1  # of the features of each atom, from 1
    coded = ones.astype(np.int64)
    coded.data = _SHARED + positions
    coded, sums = coded.T.tocsr(), weights * (weights + 1) // 2
    lacking, (complete, n_with) = np.zeros(len(positions), np.int64), np.zeros((2, len(weights)), np.int64)
    size = max(1, _ONES_AT_A_TIME * len(data) // max(1, data.count()))
    for start in range(0, len(data), size):
        shared = data[start : start + size].to_sparse().astype(np.int64) @ coded
        n_shared, atom = shared.data >> 40, shared.indices
        n_with += np.bincount(atom, minlength=len(weights))
        complete += np.bincount(atom[n_shared == weights[atom]], minlength=len(weights))
        atom, left = atom[single := n_shared == weights[atom] - 1], shared.data
        position = sums[atom] - (left[single] & (_SHARED - 1))
        lacking += np.bincount(starts[atom] + position - 1, minlength=len(lacking))
    alone = weights == 1  # all other features, none, are in every row
    lacking[starts[alone]] = len(data) - n_with[alone]
    complete[weights == 0] = len(data)
    return MemberCounts(complete, lacking, np.full(len(weights), len(data)))
