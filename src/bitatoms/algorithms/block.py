"""Block: rows in memory while they are learned from, and the few operations through which algorithms see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.cpu import coding, dictionary, exact, packing, votes, words
from ..kernels.tables import Atoms, Rows, Rule
from ..mdl import Codelength, codelength_from_counts
from ..parallel import Workers

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
    covers : bool
        True for the OR algebra, False for XOR.
    workers : Workers
    """

    def __init__(
        self, data: BitMatrix, atoms: BitMatrix, codes: BitMatrix | None, covers: bool, workers: Workers
    ) -> None:
        n, n_words = data.words.shape
        self.n_features = data.n_cols
        self.covers = covers
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
        self.changed = np.ones(atoms.n_rows, np.uint8)  # atoms changed since the rows were last coded
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
            losses=np.zeros(lanes, gains),
            slices=np.zeros((-(-self.n_features // 8), lanes), np.uint8),
            overlaps=np.zeros((p, lanes), gains),
            stale=np.ones(p, np.uint8),
        )

    def _add_product(self, out: Words) -> None:
        """Add the product of codes and atoms, which turns data into errors and errors into data."""
        self._each_block(
            lambda i, j: words.add_product(self.rows.codes, self.atoms.words, self.covers, i, j, out), _ROW_COST
        )

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
        counts = np.zeros(self.n_features, np.int64)
        packing.column_weights(self.rows.errors, self.n_features, counts)
        return counts

    def mendable_bits(self, row: int) -> Words:
        """The wrong bits of a row that one more atom could mend: under OR those that no atom covers."""
        errors = self.rows.errors[row]
        return errors & ~self.rows.covered[row] if self.covers else errors.copy()

    def mendable_rows(self, rule: Rule) -> NDArray[np.intp]:
        """Rows that have such a bit and may use one more atom."""
        able = np.empty(self.n_rows, np.bool_)
        words.mendable(self.rows, rule.covers, rule.max_atoms, able)
        return np.flatnonzero(able)

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
        parts = self._each_block(
            lambda i, j: votes.tally_atoms(self.rows, self.atoms, first, last, self.covers, self.n_features, i, j),
            self._vote_cost(self.n_rows),
        )
        return np.sum([part[0] for part in parts], axis=0), np.sum([part[1] for part in parts], axis=0)

    # What the algorithms do to the rows and the atoms.

    def code(self, rule: Rule) -> Change:
        """Code the rows greedily from the codes they have; only rows that can change are looked at."""
        if self.n_atoms == 0:
            return Change()
        self._refresh_tables()
        parts = self._each_block(lambda i, j: coding.code_rows(self.rows, self.atoms, rule, i, j), self._code_cost())
        return Change(codes=sum(part[0] for part in parts), errors=sum(part[1] for part in parts))

    def _refresh_tables(self) -> None:
        """Bring the tables up to date with the atoms changed, and find the rows that could use those."""
        changed = np.flatnonzero(self.changed)
        if len(changed) == 0:
            return
        dictionary.slice_atoms(self.atoms.words, self.atoms.weights, self.atoms.losses, self.atoms.slices)
        dictionary.overlap_atoms(self.atoms.words, self.changed, 1 if self.covers else 2, self.atoms.overlaps)
        self.changed[:] = 0
        if len(changed) == self.n_atoms:
            self.rows.stale[:] = 1
        else:
            some = self._tables(self.atoms.words[changed])
            dictionary.slice_atoms(some.words, some.weights, some.losses, some.slices)
            cost = self._code_cost() * len(changed) / self.n_atoms
            self._each_block(lambda i, j: coding.recheck_rows(self.rows, some, self.covers, i, j), cost)

    def _code_cost(self) -> float:
        """About how many nanoseconds it takes to code a row."""
        return _ROW_COST + 0.1 * self.atoms.slices.size

    def code_exactly(self, rule: Rule) -> Change:
        """Give every row the best of all codes; for few atoms."""
        if self.n_atoms == 0 or not self.changed.any():
            return Change()
        self.changed[:] = 0
        self.rows.stale[:] = 1
        half = (self.n_atoms + 1) // 2
        low = np.empty((1 << half, self.rows.errors.shape[1]), np.uint64)
        high = np.empty((1 << (self.n_atoms - half), self.rows.errors.shape[1]), np.uint64)
        exact.list_products(self.atoms.words[:half], self.covers, low)
        exact.list_products(self.atoms.words[half:], self.covers, high)
        low = np.ascontiguousarray(low.T)
        parts = self._each_block(
            lambda i, j: exact.code_rows_exactly(self.rows, self.atoms, low, high, rule, i, j),
            _ROW_COST + low.size * len(high),
        )
        return Change(codes=sum(part[0] for part in parts), errors=sum(part[1] for part in parts))

    def update(self) -> Change:
        """MOB: stale atoms by vote of their users, one at a time in index order, errors refreshed."""
        if self._small_votes():
            atoms, errors = votes.update_atoms(self.rows, self.atoms, self.covers, self.changed)
            return Change(atoms=atoms, errors=errors)
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
        packing.transpose(self.rows.errors, self.n_rows, self.n_features, columns)
        old = self.atoms.words.copy()
        flipped = self.workers.over_rows(
            lambda i, j: exact.best_columns(columns, self.rows.codes, self.atoms.words, self.covers, i, j),
            self.n_features,
            self.n_rows + self.n_atoms * 2.0**self.n_atoms,
        )
        self._add_product(self.rows.errors)
        self._cover()
        self.changed |= (old != self.atoms.words).any(axis=1)
        return Change(atoms=sum(flipped), errors=int(np.bitwise_count(before ^ self.rows.errors).sum()))

    def fit(self, rule: Rule, first: int = 0) -> Change:
        """K-PROX: each atom together with its rows, over all rows, in index order from atom ``first``."""
        if self._small_votes():
            atoms, codes, errors = votes.fit_atoms(self.rows, self.atoms, rule, first, self.changed)
            return Change(codes, atoms, errors)
        total = Change()
        for k in range(first, self.n_atoms):
            total += self._fit_atom(k, rule)
        return total

    def _fit_atom(self, k: int, rule: Rule) -> Change:
        """One atom and its rows in turn until neither changes, block by block."""
        total = update = self._update_atom(k)
        while self.rows.users[k].any():
            refit = self.refit(k, rule)
            total += refit
            if refit.codes == 0:
                break
            update = self._update_atom(k)
            total += update
            if update.atoms == 0:
                break
        self.atoms.stale[k] = 0
        return total

    def refit(self, k: int, rule: Rule) -> Change:
        """The rows of atom k anew: those in which more than half of its free bits are wrong without it."""
        settled = rule.residual_limit == 0 and self.changed[k] == 0
        parts = self._each_block(
            lambda i, j: votes.refit_users(self.rows, self.atoms, k, rule, settled, i, j),
            _ROW_COST / 10 * self.rows.errors.shape[1],
        )
        return Change(codes=sum(part[0] for part in parts), errors=sum(part[1] for part in parts))

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
        self.atoms = self._tables(np.vstack([old.words, atom]))
        self.atoms.overlaps[: len(old.words), : old.overlaps.shape[1]] = old.overlaps
        self.atoms.stale[:-1] = old.stale
        self.changed = np.append(self.changed, np.uint8(1))

    def _small_votes(self) -> bool:
        """Whether votes are too small to share out."""
        return self.workers.is_one_block(self.n_rows, self._vote_cost(self.n_rows))

    def _update_atom(self, k: int) -> Change:
        """One atom by vote, block by block."""
        self.atoms.stale[k] = 0
        wrong, free, n_users = self._tally(k)
        if n_users == 0:
            return Change()
        flips = np.empty(wrong.shape[1], np.uint64)
        flipped = votes.majority_flips(wrong, free, n_users, self.covers, self.atoms.words, k, flips)
        if flipped == 0:
            return Change()
        self.atoms.words[k] ^= flips
        self.changed[k] = 1
        errors = self._each_block(
            lambda i, j: votes.flip_users(self.rows, self.atoms, k, flips, self.covers, i, j), self._vote_cost(n_users)
        )
        return Change(atoms=flipped, errors=sum(errors))

    def _tally(self, k: int) -> tuple[Words, Words, int]:
        """The votes of the users of atom k: bit-sliced counts of wrong and of free bits, and how many users."""

        def count(start: int, stop: int) -> Words:
            planes = np.zeros((2, votes.PLANES, self.rows.errors.shape[1]), np.uint64)
            votes.tally_users(self.rows, self.atoms, k, self.covers, start, stop, planes[0], planes[1])
            return planes

        n_users = int(np.bitwise_count(self.rows.users[k]).sum())
        parts = self._each_block(count, self._vote_cost(n_users))
        wrong, free = parts[0]
        for more_wrong, more_free in parts[1:]:
            votes.add_planes(wrong, more_wrong)
            votes.add_planes(free, more_free)
        return wrong, free, n_users

    def _vote_cost(self, n_users: int) -> float:
        """About how many nanoseconds a vote of so many users takes, spread over all rows."""
        return (5.0 + 2.0 * self.rows.errors.shape[1]) * n_users / max(1, self.n_rows)
