"""Rows that have all features of an atom, and rows that lack a single one of them.

A row that has all features of an atom but one shows how often that feature comes with the others. The counts of all
features are in one array: those of the first atom in the order of its columns, then those of the second, and so on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.cpu import words
from ..parallel import Workers
from ..sparse_bits import Bits, SparseBits, packed

if TYPE_CHECKING:
    from .block import Rest

Counted = NDArray[np.int64]

_ROWS_AT_A_TIME = 1 << 16
_PAIR_COST = 0.3  # nanoseconds per row and atom
_CELL_COST = 0.1  # nanoseconds per row and column, which are transposed
_NO_WORDS = np.zeros((0, 1), np.uint64)
_NO_WORDS.flags.writeable = False  # as the words of a BitMatrix are
_SHARED = np.int64(1) << np.int64(40)  # one common feature, in a sum with the positions of the common features


class MemberCounts(NamedTuple):
    """Counts of rows by which features of atoms they lack. The counts of a table are the sums of those of its chunks.

    A feature that the bias sets counts the other way round: an atom with this feature clears it, so that a row has it
    if its cell is zero.
    """

    complete: Counted  # (n_atoms,): rows that are known to have all features of the atom
    lacking: Counted  # (ones of the atoms,): rows that are known to have all other features of the atom, and not this
    atom_known: Counted  # (n_atoms,): rows in which all features of the atom are known


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
    is_shifted = bias is not None and bias.count() > 0
    if isinstance(data, SparseBits):
        if not is_shifted:
            return _count_in_sparse(data, atoms)
        columns = np.flatnonzero(atoms.column_weights())  # the others would take memory, and do not matter
        data, atoms, bias = data.take_columns(columns), atoms.take_columns(columns), bias.take_columns(columns)  # type: ignore[union-attr]
    data, atoms = packed(data), packed(atoms)
    shifted = data ^ bias if is_shifted else data
    starts = np.concatenate(([0], np.cumsum(atoms.row_weights())))
    ones = atoms.to_sparse().indices.astype(np.int64)

    def count(start: int, stop: int) -> MemberCounts:
        complete, known = np.zeros((2, len(atoms)), np.int64)
        lacking, unknown = np.zeros(len(ones), np.int64), _NO_WORDS
        if data.unknown is not None:
            unknown = data.unknown[start:stop].T.words
        columns = shifted[start:stop].T.words
        words.count_members(columns, unknown, ones, starts, stop - start, complete, lacking, known)
        return MemberCounts(complete, lacking, known if len(unknown) else known + (stop - start))

    row_cost = _PAIR_COST * len(atoms) + _CELL_COST * data.n_cols
    return sum_members((workers or Workers()).map_rows(count, len(data), row_cost))


def sum_members(counts: Iterable[MemberCounts]) -> MemberCounts:
    """Return the sum of counts of chunks."""
    complete, lacking, atom_known = zip(*counts, strict=True)
    return MemberCounts(sum(complete), sum(lacking), sum(atom_known))


def _count_in_sparse(data: SparseBits, atoms: Bits) -> MemberCounts:
    """Count in sparse rows, all of whose cells are known."""
    ones, weights = atoms.to_sparse(), atoms.row_weights()
    starts = ones.indptr[:-1].astype(np.int64)
    positions = np.arange(len(ones.indices)) - np.repeat(starts, weights) + 1  # of the features of each atom, from 1
    coded = ones.astype(np.int64)
    coded.data = _SHARED + positions
    coded, sums = coded.T.tocsr(), weights * (weights + 1) // 2
    lacking, (complete, n_with) = np.zeros(len(positions), np.int64), np.zeros((2, len(weights)), np.int64)
    for start in range(0, len(data), _ROWS_AT_A_TIME):
        shared = data[start : start + _ROWS_AT_A_TIME].to_sparse().astype(np.int64) @ coded
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


def count_members_in_rest(rest: Rest, atoms: BitMatrix, bias: BitMatrix) -> MemberCounts:
    """Count in rows that are only counted: they have at most one feature each, and all their cells are known."""
    is_set, complete, lacking = ~bias.to_dense(bool)[0], np.zeros(len(atoms), np.int64), [np.empty(0, np.int64)]
    for k in range(len(atoms)):
        columns = np.flatnonzero(atoms[k])
        to_have, counts = is_set[columns], np.zeros(len(columns), np.int64)
        own = rest.ones[columns]
        if (n_to_have := int(to_have.sum())) == 0:
            complete[k] = rest.n_rows - own.sum()
            counts = own.astype(np.int64)
        elif n_to_have == 1:
            complete[k] = own[to_have].sum()
            counts[to_have] = rest.n_rows - own.sum()
        elif n_to_have == 2:
            counts[to_have] = own[to_have][::-1]
        lacking.append(counts)
    return MemberCounts(complete, np.concatenate(lacking), np.full(len(atoms), rest.n_rows))
