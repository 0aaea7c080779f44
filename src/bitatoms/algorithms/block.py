"""Block: rows in memory while they are learned from, and the few operations through which algorithms see them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.cpu import coding, dictionary, exact, packing, votes, words
from ..kernels.tables import PLANES, Atoms, Covers, Rows, Rule, VoteScratch, coding_scratch, vote_scratch
from ..mdl import Codelength, codelength_from_counts
from ..parallel import BREATH, Workers

Words = NDArray[np.uint64]
_LANES = 16  # atoms are coded so many at a time
_ROW_COST = 50.0  # nanoseconds of a light pass, a row
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


class Block:
    """Samples, their codes and errors, and the atoms they are coded with.

    The one mutable thing in learning. Its operations keep ``errors = data - codes * atoms`` in the algebra, and
    remember which rows and atoms are *stale*, so that nothing is computed twice that cannot have changed.

    Parameters
    ----------
    data : BitMatrix of shape (n, m)
    atoms : BitMatrix of shape (p, m)
    codes : BitMatrix of shape (n, p), optional
        Where the rows start; without them no atom is used.
    covers : bool or None
        True for the OR algebra.
    workers : Workers
    """

    def __init__(
        self, data: BitMatrix, atoms: BitMatrix, codes: BitMatrix | None, covers: bool | None, workers: Workers
    ) -> None:
        n, n_words = data.words.shape
        self.n_features = data.n_cols
        self.covers: Covers = True if covers else None
        self.workers = workers
        if codes is None:
            codes = BitMatrix.zeros(n, atoms.n_rows)
        masks = np.zeros((n if covers else 0, n_words), np.uint64)
        self.rows = Rows(
            errors=data.words.copy(),
            codes=codes.words.copy(),
            users=codes.T.words.copy(),
            covered=masks,
            twice=masks.copy(),
            stale=np.ones(n, np.uint8),
        )
        self.atoms = self._tables(atoms.words.copy())
        self._rooms: dict[int, VoteScratch] = {}
        self._add_product(self.rows.errors)
        self._cover()

    def _tables(self, atoms: Words) -> Atoms:
        """Tables for these atoms, not filled in yet."""
        p = len(atoms)
        lanes = -(-p // _LANES) * _LANES
        gains = np.int16 if not self.covers and self.n_features <= _WIDEST_SHORT else np.int32
        return Atoms(
            words=atoms,
            weights=np.zeros(lanes, np.int32),
            slices=np.zeros((-(-self.n_features // 8), lanes), np.uint8),
            overlaps=np.zeros((p, lanes), gains),
            stale=np.ones(p, np.uint8),
            changed=np.ones(p, np.uint8),
        )

    def _add_product(self, out: Words) -> None:
        """Add the product of codes and atoms, which turns data into errors and errors into data."""

        def add(start: int, stop: int) -> None:
            row = np.empty(out.shape[1], np.uint64)
            words.add_product(self.rows.codes, self.atoms.words, self.covers, start, stop, row, out)

        self._each_block(add, _ROW_COST)

    def _cover(self) -> None:
        """Which bits are covered once and twice, from codes and atoms."""
        if self.covers:
            self._each_block(lambda i, j: words.cover_rows(self.rows, self.atoms.words, i, j), _ROW_COST)

    def _each_block(self, task: Any, row_cost: float) -> list[Any]:
        return self.workers.over_rows(task, self.n_rows, row_cost)

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

    def wrong(self) -> NDArray[np.int64]:
        """In how many rows each bit is wrong."""
        n_words = self.rows.errors.shape[1]

        def count(start: int, stop: int) -> NDArray[np.int64]:
            counts = np.empty(self.n_features, np.int64)
            packing.column_weights(self.rows.errors[start:stop], np.empty((PLANES, n_words), np.uint64), counts)
            return counts

        return reduce(np.add, self._each_block(count, 2.0 * n_words))

    def mendable_bits(self, row: int) -> Words:
        """The wrong bits of a row that one more atom could mend: under OR those that no atom covers."""
        errors = self.rows.errors[row]
        return errors & ~self.rows.covered[row] if self.covers else errors.copy()

    def mendable_rows(self, rule: Rule) -> NDArray[np.intp]:
        """Rows that have such a bit and may use one more atom."""
        able = np.empty(self.n_rows, np.bool_)
        words.mendable(self.rows, rule.covers, rule.max_atoms, able)
        return np.flatnonzero(able)

    def with_factors(self, atoms: BitMatrix, codes: BitMatrix) -> Block:
        """The same data with other atoms and codes."""
        data = self.rows.errors.copy()
        self._add_product(data)
        return Block(BitMatrix.trusted(data, self.n_features), atoms, codes, self.covers, self.workers)

    def rate(self, atoms: Words) -> NDArray[np.int64]:
        """How many wrong bits each of these would take away as one more atom, used where it helps."""
        tables = self._tables(atoms)

        def rate(start: int, stop: int) -> NDArray[np.int64]:
            totals = np.empty(len(atoms), np.int64)
            coding.rate_atoms(self.rows, tables, self.covers, start, stop, totals)
            return totals

        return reduce(np.add, self._each_block(rate, 5.0 * atoms.size))

    def factors(self) -> tuple[BitMatrix, BitMatrix]:
        """The atoms and the codes as they are now."""
        atoms = BitMatrix.trusted(self.atoms.words.copy(), self.n_features)
        return atoms, BitMatrix.trusted(self.rows.codes.copy(), self.n_atoms)

    def codelength(self, wrong: NDArray[np.int64]) -> Codelength:
        """Bits that describe the data by these atoms and codes, of which so many rows have each bit wrong."""
        weights = np.empty(self.n_atoms, np.int64)
        packing.row_weights(self.atoms.words, weights)
        return codelength_from_counts(self.n_rows, self.n_features, wrong, self.uses(), weights)

    def votes(self, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For the atoms first..last and each bit, their users in whose row no other atom decides it, and those of
        them in which it is wrong."""

        def tally(start: int, stop: int) -> NDArray[np.int64]:
            counts = np.empty((2, last - first, self.n_features), np.int64)
            scratch = self._room(start)
            votes.tally_atoms(self.rows, self.atoms, first, self.covers, start, stop, counts[0], counts[1], scratch)
            return counts

        free, wrong = reduce(np.add, self._each_block(tally, self._vote_cost(self.n_rows)))
        return free, wrong

    # What the algorithms do to the rows and the atoms.

    def code(self, rule: Rule) -> Change:
        """Code the rows greedily from the codes they have; only rows that can change are looked at."""
        if self.n_atoms == 0:
            return Change()
        self._refresh_tables()

        def code(start: int, stop: int) -> tuple[int, int]:
            scratch = coding_scratch(self.rows, self.atoms)
            return coding.code_rows(self.rows, self.atoms, rule, start, stop, scratch)

        return _coded(self._each_block(code, self._code_cost()))

    def _refresh_tables(self) -> None:
        """Bring the tables up to date with the atoms changed, and find the rows that could use those."""
        changed = np.flatnonzero(self.atoms.changed)
        if len(changed) == 0:
            return
        dictionary.slice_atoms(self.atoms.words, self.atoms.weights, self.atoms.slices)
        dictionary.overlap_atoms(self.atoms.words, self.atoms.changed, 1 if self.covers else 2, self.atoms.overlaps)
        self.atoms.changed[:] = 0
        if len(changed) == self.n_atoms:
            self.rows.stale[:] = 1
        else:
            some = self._tables(self.atoms.words[changed])
            dictionary.slice_atoms(some.words, some.weights, some.slices)
            cost = self._code_cost() * len(changed) / self.n_atoms

            def recheck(start: int, stop: int) -> None:
                coding.recheck_rows(self.rows, some, self.covers, start, stop, coding_scratch(self.rows, some))

            self._each_block(recheck, cost)

    def _code_cost(self) -> float:
        """About how many nanoseconds it takes to code a row."""
        return _ROW_COST + 0.1 * self.atoms.slices.size

    def code_exactly(self, rule: Rule) -> Change:
        """Give every row the best of all codes; for few atoms."""
        if self.n_atoms == 0 or not self.atoms.changed.any():
            return Change()
        self.atoms.changed[:] = 0
        self.rows.stale[:] = 1
        half = (self.n_atoms + 1) // 2
        low = np.empty((1 << half, self.rows.errors.shape[1]), np.uint64)
        high = np.empty((1 << (self.n_atoms - half), self.rows.errors.shape[1]), np.uint64)
        exact.list_products(self.atoms.words[:half], self.covers, low)
        exact.list_products(self.atoms.words[half:], self.covers, high)
        low = np.ascontiguousarray(low.T)

        def code(start: int, stop: int) -> tuple[int, int]:
            distances, scratch = np.empty(low.shape[1], np.int32), coding_scratch(self.rows, self.atoms)
            return exact.code_rows_exactly(self.rows, self.atoms, low, high, rule, start, stop, distances, scratch)

        return _coded(self._each_block(code, _ROW_COST + low.size * len(high)))

    def update(self) -> Change:
        """MOB: stale atoms by vote of their users, one at a time in index order, errors refreshed."""
        if self._small_votes():
            return self._sweep(votes.VOTE, Rule(self.covers, False, 0, 0))
        total = Change()
        for k in range(self.n_atoms):
            if self.atoms.stale[k]:
                total += self._update_atom(k)
        return total

    def update_exactly(self) -> Change:
        """Give every feature the best of all columns of the atoms; for few atoms."""
        if self.n_atoms == 0:
            return Change()
        before = self.rows.errors.copy()
        self._add_product(self.rows.errors)
        columns = np.zeros((self.n_features, -(-self.n_rows // 64)), np.uint64)
        packing.transpose(self.rows.errors, self.n_rows, self.n_features, np.empty(64, np.uint64), columns)
        old = self.atoms.words.copy()

        def choose(start: int, stop: int) -> int:
            scores = np.empty(1 << self.n_atoms, np.int32)
            return exact.best_columns(columns, self.rows.codes, self.atoms.words, self.covers, start, stop, scores)

        flipped = self.workers.over_rows(choose, self.n_features, self.n_rows + self.n_atoms * 2.0**self.n_atoms)
        self._add_product(self.rows.errors)
        self._cover()
        self.atoms.changed[:] |= (old != self.atoms.words).any(axis=1)
        return Change(atoms=sum(flipped), errors=int(np.bitwise_count(before ^ self.rows.errors).sum()))

    def fit(self, rule: Rule) -> Change:
        """K-PROX: each atom together with its rows, over all rows, in index order."""
        if self._small_votes():
            return self._sweep(votes.FIT, rule)
        total = Change()
        for k in range(self.n_atoms):
            total += self._fit_atom(k, rule)
        return total

    def grow(self, atom: Words, rule: Rule) -> Change:
        """Proximus: one more atom, fitted together with its rows from the one given."""
        self.append(atom)
        if self._small_votes():
            return self._sweep(votes.GROW, rule, self.n_atoms - 1)
        return self._refit(self.n_atoms - 1, rule) + self._fit_atom(self.n_atoms - 1, rule)

    def _sweep(self, work: int, rule: Rule, first: int = 0) -> Change:
        """Better atoms from ``first`` on, as many in one call as leave Ctrl-C a chance."""
        scratch = self._room(0)
        cost = self.n_rows * (self._vote_cost(self.n_rows) + 10.0 * self.rows.errors.shape[1])
        at_once = 1 + int(BREATH / max(1.0, cost))
        total = Change()
        for k in range(first, self.n_atoms, at_once):
            last = min(k + at_once, self.n_atoms)
            total += Change(*votes.sweep_atoms(self.rows, self.atoms, rule, work, k, last, scratch))
        return total

    def _fit_atom(self, k: int, rule: Rule) -> Change:
        """One atom and its rows in turn until neither changes, block by block."""
        total = self._update_atom(k)
        while self.rows.users[k].any():
            refit = self._refit(k, rule)
            total += refit
            if refit.codes == 0:
                break
            update = self._update_atom(k)
            total += update
            if update.atoms == 0:
                break
        self.atoms.stale[k] = 0
        return total

    def _refit(self, k: int, rule: Rule) -> Change:
        """The rows of atom k anew: those in which more than half of its free bits are wrong without it."""
        settled = rule.residual_limit == 0 and bool(self.atoms.changed[k] == 0)

        def refit(start: int, stop: int) -> tuple[int, int]:
            return votes.refit_users(self.rows, self.atoms, k, rule, settled, start, stop, self._room(start))

        return _coded(self._each_block(refit, 5.0 * self.rows.errors.shape[1]))

    def append(self, atom: Words) -> None:
        """One more atom, used by no row."""
        n_words = -(-(self.n_atoms + 1) // 64)
        old = self.atoms
        codes = self.rows.codes
        if n_words > codes.shape[1]:
            codes = np.hstack([codes, np.zeros((self.n_rows, 1), np.uint64)])
        self.rows = self.rows._replace(
            codes=codes,
            users=np.vstack([self.rows.users, np.zeros_like(self.rows.users, shape=(1, self.rows.users.shape[1]))]),
        )
        self._rooms.clear()
        self.atoms = self._tables(np.vstack([old.words, atom]))
        self.atoms.overlaps[: len(old.words), : old.overlaps.shape[1]] = old.overlaps
        self.atoms.stale[:-1] = old.stale
        self.atoms.changed[:-1] = old.changed

    def _room(self, start: int) -> VoteScratch:
        """Scratch for votes of the block of rows from ``start`` on, made once: a vote is short."""
        if start not in self._rooms:
            self._rooms[start] = vote_scratch(self.rows)
        return self._rooms[start]

    def _small_votes(self) -> bool:
        """Whether votes are too small to share out."""
        return self.workers.is_one_block(self.n_rows, self._vote_cost(self.n_rows))

    def _update_atom(self, k: int) -> Change:
        """One atom by vote, block by block."""
        self.atoms.stale[k] = 0
        n_users = int(np.bitwise_count(self.rows.users[k]).sum())
        if n_users == 0:
            return Change()
        cost = self._vote_cost(n_users)

        def tally(start: int, stop: int) -> VoteScratch:
            scratch = self._room(start)
            votes.tally_users(self.rows, self.atoms, k, self.covers, start, stop, scratch)
            return scratch

        total, *others = self._each_block(tally, cost)
        for other in others:
            votes.add_tallies(total, other)
        flipped = votes.flip_atom(self.atoms, k, n_users, self.covers, total)
        if flipped == 0:
            return Change()
        self.atoms.changed[k] = 1

        def follow(start: int, stop: int) -> int:
            scratch = self._room(start)
            return votes.flip_users(self.rows, self.atoms, k, self.covers, start, stop, total.flips, scratch)

        return Change(atoms=flipped, errors=sum(self._each_block(follow, cost)))

    def _vote_cost(self, n_users: int) -> float:
        """About how many nanoseconds a vote of so many users takes, spread over all rows."""
        return (10.0 + 4.0 * self.rows.errors.shape[1]) * n_users / max(1, self.n_rows)


def _coded(parts: list[tuple[int, int]]) -> Change:
    """What coding changed, from the codes and errors changed in each block."""
    return Change(codes=sum(codes for codes, _ in parts), errors=sum(errors for _, errors in parts))
