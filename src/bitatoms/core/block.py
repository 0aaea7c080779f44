"""Block: rows in memory while they are learned from, and the few operations through which algorithms see them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.cpu import coding, packing, together, votes, words
from ..kernels.structs import PLANES, AtomArrays, Covers, RowArrays, Rule, VoteScratch, vote_scratch
from ..mdl import Codelength, codelength_from_counts
from ..parallel import Workers

Words = NDArray[np.uint64]
_LANES = 16  # atoms are coded so many at a time
ROW_COST = 50.0  # nanoseconds of a light pass, a row
_WIDEST_SHORT = 32767  # gains of rows up to this wide fit in 16 bits


@dataclass(frozen=True)
class Change:
    """How many bits a step changed."""

    codes: int = 0
    atoms: int = 0
    errors: int = 0

    def __add__(self, other: Change) -> Change:
        return Change(self.codes + other.codes, self.atoms + other.atoms, self.errors + other.errors)

    def __bool__(self) -> bool:
        return bool(self.codes or self.atoms or self.errors)


class BlockState(NamedTuple):
    """A state of a block."""

    atoms: Words
    codes: Words


class Block:
    """Samples, their codes and errors, and the atoms they are coded with.

    The one mutable thing in learning. Its operations keep ``errors = data + bias + codes * atoms`` (sums are XOR, the
    product is in the algebra), and remember which rows and atoms are *stale*, so that nothing is computed twice that
    cannot have changed.

    Parameters
    ----------
    data : BitMatrix of shape (n, m)
    atoms : BitMatrix of shape (p, m)
    codes : BitMatrix of shape (n, p), optional
        Where the rows start; without them no atom is used.
    covers : bool or None
        True for the OR algebra.
    workers : Workers
    bias : BitMatrix of shape (1, m), optional
    """

    def __init__(
        self,
        data: BitMatrix,
        atoms: BitMatrix,
        codes: BitMatrix | None,
        covers: bool | None,
        workers: Workers,
        bias: BitMatrix | None = None,
    ) -> None:
        n, n_words = data.words.shape
        self.n_features = data.n_cols
        self.covers: Covers = True if covers else None
        self.workers = workers
        self.bias = BitMatrix.zeros(1, data.n_cols) if bias is None else bias
        if codes is None:
            codes = BitMatrix.zeros(n, atoms.n_rows)
        masks = np.zeros((n if covers else 0, n_words), np.uint64)
        self.rows = RowArrays(
            errors=data.words ^ self.bias.words,
            codes=(own_codes := codes.words.copy()),
            users=transposed(own_codes, atoms.n_rows),
            covered=masks,
            twice=masks.copy(),
            stale=np.ones(n, np.uint8),
        )
        self.atoms = self.tables(atoms.words.copy())
        self._rooms: dict[int, VoteScratch] = {}
        self.add_product(self.rows.errors)
        self.cover()

    def tables(self, atoms: Words) -> AtomArrays:
        """Tables for these atoms, not filled in yet."""
        p = len(atoms)
        lanes = lanes_of(p)
        gains = np.int16 if not self.covers and self.n_features <= _WIDEST_SHORT else np.int32
        return AtomArrays(
            words=atoms,
            weights=np.zeros(lanes, np.int32),
            slices=np.zeros((-(-self.n_features // 8), lanes), np.uint8),
            overlaps=np.zeros((p, lanes), gains),
            stale=np.ones(p, np.uint8),
            changed=np.ones(p, np.uint8),
        )

    def add_product(self, out: Words) -> None:
        """Add the product of codes and atoms, which turns data into errors and errors into data."""

        def add(start: int, stop: int) -> None:
            row = np.empty(out.shape[1], np.uint64)
            words.add_product(self.rows.codes, self.atoms.words, self.covers, start, stop, row, out)

        self.each_block(add, ROW_COST)

    def cover(self) -> None:
        """Which bits are covered once and twice, from codes and atoms."""
        if self.covers:
            self.each_block(lambda i, j: words.cover_rows(self.rows, self.atoms.words, i, j), ROW_COST)

    def each_block(self, task: Any, row_cost: float) -> list[Any]:
        return self.workers.map_rows(task, self.n_rows, row_cost)

    @property
    def n_rows(self) -> int:
        return len(self.rows.errors)

    @property
    def n_atoms(self) -> int:
        return len(self.atoms.words)

    # What the algorithms need to know of the rows: counts, which add up over blocks.

    def uses(self) -> NDArray[np.int64]:
        """How many rows use each atom."""
        counts = np.empty(self.n_atoms, np.int64)
        packing.row_weights(self.rows.users, counts)
        return counts

    def serving(self) -> NDArray[np.bool_]:
        """Which atoms some row uses and that are not all zeros."""
        return (self.uses() > 0) & (self.weights() > 0)

    def wrong(self) -> NDArray[np.int64]:
        """In how many rows each bit is wrong."""
        n_words = self.rows.errors.shape[1]

        def count(start: int, stop: int) -> NDArray[np.int64]:
            counts = np.empty(self.n_features, np.int64)
            packing.column_weights(self.rows.errors[start:stop], np.empty((PLANES, n_words), np.uint64), counts)
            return counts

        return reduce(np.add, self.each_block(count, 2.0 * n_words))

    def mendable_bits(self, rows: NDArray[np.intp]) -> Words:
        """The wrong bits of these rows that one more atom could mend: under OR those that no atom covers."""
        errors = self.rows.errors[rows]
        return errors & ~self.rows.covered[rows] if self.covers else errors

    def mendable_columns(self, features: NDArray[np.intp]) -> Words:
        """The rows in which each of these features is wrong and one more atom could mend it: bits, a feature a row."""
        rows = np.zeros((len(features), self.rows.users.shape[1]), np.uint64)
        for i, feature in enumerate(features.tolist()):
            place, shift = feature >> 6, np.uint64(feature & 63)
            column = self.rows.errors[:, place] >> shift
            if self.covers:
                column &= ~(self.rows.covered[:, place] >> shift)
            column &= np.uint64(1)
            rows[i] = BitMatrix.from_dense(column.astype(np.uint8)[np.newaxis]).words[0]
        return rows

    def mendable_rows(self, rule: Rule) -> NDArray[np.intp]:
        """Rows that have such a bit and may use one more atom."""
        able = np.empty(self.n_rows, np.bool_)
        words.mendable(self.rows, rule.covers, rule.max_atoms, rule.residual_limit, able)
        return np.flatnonzero(able)

    def with_factors(self, atoms: BitMatrix, codes: BitMatrix) -> Block:
        """The same data and bias with other atoms and codes."""
        return Block(self.data(), atoms, codes, self.covers, self.workers, self.bias)

    def data(self) -> BitMatrix:
        """The samples themselves."""
        words = self.rows.errors ^ self.bias.words
        self.add_product(words)
        return BitMatrix.from_words(words, self.n_features, check=False)

    def rate(self, atoms: Words) -> NDArray[np.int64]:
        """How many wrong bits each of these would take away as one more atom, used where it helps."""
        tables = self.tables(atoms)

        def rate(start: int, stop: int) -> NDArray[np.int64]:
            totals = np.empty(len(atoms), np.int64)
            coding.rate_atoms(self.rows, tables, self.covers, start, stop, totals)
            return totals

        return reduce(np.add, self.each_block(rate, 5.0 * atoms.size))

    def factors(self) -> tuple[BitMatrix, BitMatrix]:
        """The atoms and the codes as they are now."""
        atoms = BitMatrix.from_words(self.atoms.words.copy(), self.n_features, check=False)
        return atoms, BitMatrix.from_words(self.rows.codes.copy(), self.n_atoms, check=False)

    def codelength(self, wrong: NDArray[np.int64]) -> Codelength:
        """Bits that describe the data by these atoms and codes, of which so many rows have each bit wrong."""
        shape = self.n_rows, self.n_features
        return codelength_from_counts(*shape, wrong, self.uses(), self.weights(), self.bias.count())

    def votes(self, first: int, last: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """For the atoms first..last and each bit, their users in whose row no other atom decides it, and those of
        them in which it is wrong."""
        return self._tally(self.rows, self.atoms, first, last)

    def votes_of(self, users: Words) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The same for atoms that are not there yet, each with these rows as its users."""
        nothing = self.tables(np.zeros((len(users), self.rows.errors.shape[1]), np.uint64))
        return self._tally(self.rows._replace(users=users), nothing, 0, len(users))

    def _tally(
        self, rows: RowArrays, atoms: AtomArrays, first: int, last: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Votes of the users that ``rows`` lists for the atoms first..last."""

        def tally(start: int, stop: int) -> NDArray[np.int32]:
            counts = np.empty((2, last - first, self.n_features), np.int32)
            votes.tally_atoms(rows, atoms, first, self.covers, start, stop, counts[0], counts[1], self.room(start))
            return counts

        free, wrong = reduce(np.add, self.each_block(tally, self.vote_cost(self.n_rows)))
        return free, wrong

    def pairs(self) -> NDArray[np.int32]:
        """How many rows use both of two atoms; below the diagonal and on it."""

        def count(start: int, stop: int) -> NDArray[np.int32]:
            counts = np.zeros((self.n_atoms, self.n_atoms), np.int32)
            together.count_pairs(self.rows.codes, start, stop, np.empty(self.n_atoms, np.int64), counts)
            return counts

        return reduce(np.add, self.each_block(count, ROW_COST))

    def weights(self) -> NDArray[np.int64]:
        """How many ones each atom has."""
        counts = np.empty(self.n_atoms, np.int64)
        packing.row_weights(self.atoms.words, counts)
        return counts

    # What the algorithms do to the atoms.

    def flip(self, flips: Words) -> Change:
        """Flip these bits of the atoms."""
        changed = np.asarray(flips.any(axis=1))
        if not changed.any():
            return Change()
        self.atoms.words[:] ^= flips
        self.atoms.changed[:] |= changed
        self.atoms.stale[:] = 1
        flipping = BitMatrix.from_dense(changed[np.newaxis]).words[0].copy()

        def follow(start: int, stop: int) -> int:
            before = np.empty(flips.shape[1], np.uint64)
            return together.follow_flips(self.rows, self.atoms.words, flips, flipping, self.covers, start, stop, before)

        return Change(errors=sum(self.each_block(follow, ROW_COST)))

    def append(self, atoms: Words) -> None:
        """More atoms, used by no row."""
        old, codes = self.atoms, self.rows.codes
        n_words = -(-(len(old.words) + len(atoms)) // 64)
        if n_words > codes.shape[1]:
            codes = np.hstack([codes, np.zeros((self.n_rows, n_words - codes.shape[1]), np.uint64)])
        no_users = np.zeros((len(atoms), self.rows.users.shape[1]), np.uint64)
        self.rows = self.rows._replace(codes=codes, users=np.vstack([self.rows.users, no_users]))
        self._rooms.clear()
        self.atoms = self.tables(np.vstack([old.words, atoms]))
        self.atoms.overlaps[: len(old.words), : old.overlaps.shape[1]] = old.overlaps
        self.atoms.stale[: len(old.words)] = old.stale
        self.atoms.changed[: len(old.words)] = old.changed

    def discard(self, gone: NDArray[np.bool_]) -> None:
        """Take these atoms out, and out of the codes."""
        self.flip(np.where(gone[:, np.newaxis], self.atoms.words, np.uint64(0)))
        users = self.rows.users[~gone]
        self.rows = self.rows._replace(users=users, codes=transposed(users, self.n_rows))
        self._rooms.clear()
        self.atoms = self.tables(self.atoms.words[~gone])

    def keep(self) -> BlockState:
        """The state as it is, to go back to."""
        return BlockState(self.atoms.words.copy(), self.rows.codes.copy())

    def go_back(self, kept: BlockState) -> None:
        """Be as it was when that was kept, with as many atoms as now."""
        self.add_product(self.rows.errors)
        self.atoms.words[:] = kept.atoms
        self.rows.codes[:] = kept.codes
        self.add_product(self.rows.errors)
        self.rows = self.rows._replace(users=transposed(self.rows.codes, self.n_atoms))
        self.cover()
        self.forget_clean()

    # What the operations on a block need.

    def forget_clean(self) -> None:
        """Have every row and atom looked at again: the coder was one that does not tell which may be passed over."""
        self.rows.stale[:] = 1
        self.atoms.stale[:] = 1
        self.atoms.changed[:] = 1

    def room(self, start: int) -> VoteScratch:
        """Scratch for votes of the block of rows from ``start`` on, made once: a vote is short."""
        if start not in self._rooms:
            self._rooms[start] = vote_scratch(self.rows)
        return self._rooms[start]

    def vote_cost(self, n_users: int) -> float:
        """About how many nanoseconds a vote of so many users takes, spread over all rows."""
        return (10.0 + 4.0 * self.rows.errors.shape[1]) * n_users / max(1, self.n_rows)


def lanes_of(n_atoms: int) -> int:
    """So many atoms, padded to what is coded at a time."""
    return -(-n_atoms // _LANES) * _LANES


def coded(parts: list[tuple[int, int]]) -> Change:
    """What coding changed, from the codes and errors changed in each block."""
    return Change(codes=sum(codes for codes, _ in parts), errors=sum(errors for _, errors in parts))


def transposed(words: Words, n_cols: int) -> Words:
    """Rows of so many bits, packed, as columns."""
    out = np.zeros((n_cols, -(-len(words) // 64)), np.uint64)
    packing.transpose(words, len(words), n_cols, np.empty(64, np.uint64), out)
    return out
