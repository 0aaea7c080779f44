"""The features of an atom, one by one: rows that lack a single one of them.

A row that has all features of an atom but one shows how often that feature comes with the others. The counts of all
features are in one array: those of the first atom in the order of its columns, then those of the second, and so on.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..parallel import Workers
from ..sparse_bits import Bits, SparseBits, packed

if TYPE_CHECKING:
    from .block import Rest

Counted = NDArray[np.int64]

_ROWS_AT_A_TIME = 1 << 16
_PAIR_COST = 12.0  # nanoseconds per row and atom
_SHARED = np.int64(1) << np.int64(40)  # one common feature, in a sum with the positions of the common features


class MemberCounts(NamedTuple):
    """Counts of rows by which features of atoms they lack. The counts of a table are the sums of those of its chunks.

    A feature that the bias sets counts the other way round, as in `bitatoms.core.complete.complete_atoms`.
    """

    lacking: Counted  # (ones of the atoms,): rows that are known to have all other features of the atom, and not this
    atom_known: Counted  # (n_atoms,): rows in which all features of the atom are known


def count_members(
    data: Bits, atoms: Bits, workers: Workers | None = None, bias: BitMatrix | None = None
) -> MemberCounts:
    """Count the rows that lack one feature of an atom, for each feature of each atom.

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

    def count(start: int, stop: int) -> MemberCounts:
        edges = [*range(start, stop, _ROWS_AT_A_TIME), stop]
        return sum_members([nothing, *(_count_in_chunk(shifted[at:end], ones) for at, end in pairwise(edges))])

    ones = [_AtomWords.of(atom) for atom in atoms.words]
    nothing = MemberCounts(np.zeros(atoms.count(), np.int64), np.zeros(len(atoms), np.int64))
    return sum_members([nothing, *(workers or Workers()).map_rows(count, len(data), _PAIR_COST * len(atoms))])


def sum_members(counts: Iterable[MemberCounts]) -> MemberCounts:
    """Return the sum of counts of chunks."""
    lacking, atom_known = zip(*counts, strict=True)
    return MemberCounts(sum(lacking), sum(atom_known))


class _AtomWords(NamedTuple):
    """The words of an atom that have ones, those with most first: few rows have most of these."""

    indices: NDArray[np.intp]
    words: NDArray[np.uint64]  # at these indices
    columns: NDArray[np.intp]  # of its ones

    @classmethod
    def of(cls, atom: NDArray[np.uint64]) -> _AtomWords:
        """Return the words of an atom."""
        weights = np.bitwise_count(atom).astype(np.int64)
        indices = np.argsort(-weights, kind="stable")[: np.count_nonzero(weights)]
        bits = np.unpackbits(atom.astype("<u8", copy=False).view(np.uint8), bitorder="little")
        return cls(indices, atom[indices], np.flatnonzero(bits))


def _count_in_chunk(data: BitMatrix, atoms: list[_AtomWords]) -> MemberCounts:
    """Count in a few packed rows."""
    unknown = None if data.unknown is None or not data.unknown.words.any() else data.unknown.words.T.copy()
    lacks = np.bitwise_not(data.words.T, order="C")  # words by rows, so that one word of all rows is contiguous
    lacking, atom_known = [np.empty(0, np.int64)], np.full(len(atoms), len(data))
    for k, atom in enumerate(atoms):
        rows = None
        if unknown is not None and len(atom.indices):
            rows = np.flatnonzero(~(unknown[atom.indices] & atom.words[:, np.newaxis]).any(axis=0))
            atom_known[k] = len(rows)
        counts = np.bincount(_single_lacks(lacks, atom, rows), minlength=data.n_cols)
        lacking.append(counts[atom.columns])
    return MemberCounts(np.concatenate(lacking), atom_known)


def _single_lacks(lacks: NDArray[np.uint64], atom: _AtomWords, rows: NDArray[np.intp] | None) -> NDArray[np.int64]:
    """Return the column that a row lacks of an atom, for each of the rows (None for all) that lack a single one.

    ``lacks`` are the absent features of each row, word by word.
    """
    found: NDArray[np.int64] | None = None  # the column that each of the rows lacks so far, -1 for none
    for index, word in zip(atom.indices.tolist(), atom.words, strict=True):
        own = lacks[index] if rows is None else lacks[index, rows]
        absent = own & word
        left = np.flatnonzero((absent & (absent - np.uint64(1))) == 0)  # one at most
        absent = absent[left]
        column = np.where(absent == 0, -1, 64 * index + np.bitwise_count(absent - np.uint64(1)).astype(np.int64))
        if found is not None:
            before = found[left]
            is_single = (before < 0) | (column < 0)
            left, column = left[is_single], np.maximum(before, column)[is_single]
        found, rows = column, left if rows is None else rows[left]
    return np.empty(0, np.int64) if found is None else found[found >= 0]


def _count_in_sparse(data: SparseBits, atoms: Bits) -> MemberCounts:
    """Count in sparse rows, all of whose cells are known."""
    ones, weights = atoms.to_sparse(), atoms.row_weights()
    starts = ones.indptr[:-1].astype(np.int64)
    positions = np.arange(len(ones.indices)) - np.repeat(starts, weights) + 1  # of the features of each atom, from 1
    coded = ones.astype(np.int64)
    coded.data = _SHARED + positions
    coded, sums = coded.T.tocsr(), weights * (weights + 1) // 2
    lacking, n_with = np.zeros(len(positions), np.int64), np.zeros(len(weights), np.int64)
    for start in range(0, len(data), _ROWS_AT_A_TIME):
        shared = data[start : start + _ROWS_AT_A_TIME].to_sparse().astype(np.int64) @ coded
        n_shared, atom = shared.data >> 40, shared.indices
        n_with += np.bincount(atom, minlength=len(weights))
        atom, left = atom[single := n_shared == weights[atom] - 1], shared.data
        position = sums[atom] - (left[single] & (_SHARED - 1))
        lacking += np.bincount(starts[atom] + position - 1, minlength=len(lacking))
    alone = weights == 1  # all other features, none, are in every row
    lacking[starts[alone]] = len(data) - n_with[alone]
    return MemberCounts(lacking, np.full(len(weights), len(data)))


def count_members_in_rest(rest: Rest, atoms: BitMatrix, bias: BitMatrix) -> MemberCounts:
    """Count in rows that are only counted: they have at most one feature each, and all their cells are known."""
    is_set, lacking = ~bias.to_dense(bool)[0], [np.empty(0, np.int64)]
    for k in range(len(atoms)):
        columns = np.flatnonzero(atoms[k])
        to_have, counts = is_set[columns], np.zeros(len(columns), np.int64)
        own = rest.ones[columns]
        if (n_to_have := int(to_have.sum())) == 0:
            counts = own.astype(np.int64)
        elif n_to_have == 1:
            counts[to_have] = rest.n_rows - own.sum()
        elif n_to_have == 2:
            counts[to_have] = own[to_have][::-1]
        lacking.append(counts)
    return MemberCounts(np.concatenate(lacking), np.full(len(atoms), rest.n_rows))


def ones_of(atoms: Bits, indices: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the indices of the ones of some atoms, in this order, in an array of the ones of all atoms."""
    ends = np.cumsum(atoms.row_weights())
    starts = np.concatenate(([0], ends[:-1]))
    return np.concatenate([np.empty(0, np.intp), *(np.arange(starts[k], ends[k]) for k in indices.tolist())])
