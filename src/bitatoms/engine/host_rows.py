"""HostRows: rows in the memory of the host, processed by its threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.cpu import beam, coding, dictionary, exact, gf2, packing, votes, words
from ..kernels.cpu.packing import step_apart
from ..kernels.structs import (
    PLANES,
    AtomArrays,
    CodingRule,
    ColumnDraw,
    Prices,
    RowArrays,
    VoteScratch,
    beam_scratch,
    coding_scratch,
    vote_scratch,
)
from .row_state import Changes, RowState, Tables, Votes, Words, lanes_of

ROW_COST = 50.0  # nanoseconds per row of a light pass
_ATOM_COST = 2000.0  # nanoseconds per atom and word of a vote
_LANES_PER_LISTED = 64  # atoms that are added to at once take about as long as one that is listed


class HostRows(RowState):
    """Rows in the memory of the host. Their arrays are also changed by `engine.update` and `engine.exchange`."""

    @cached_property
    def _scratches(self) -> dict[tuple[int, int], VoteScratch]:
        """The scratches for votes, by the first row of a chunk and the words of codes."""
        return {}

    def transposed(self, words: Any, n_cols: int) -> Any:
        """Return the transpose of packed rows of ``n_cols`` bits."""
        return transposed(words, n_cols)

    def _row_weights(self, words: Any) -> Any:
        return row_weights(words)

    def _column_weights(self, words: Any) -> NDArray[np.int64]:
        n_words = words.shape[1]

        def count(start: int, stop: int) -> NDArray[np.int64]:
            counts = np.empty(self.n_features, np.int64)
            packing.column_weights(read_only(words[start:stop]), np.empty((PLANES, n_words), np.uint64), counts)
            return counts

        return reduce(np.add, self.map(count, 2.0 * n_words))

    def map(self, task: Callable[[int, int], Any], row_cost: float) -> list[Any]:
        """Run a task on chunks of rows by all threads, and return its results in order."""
        return self.workers.map_rows(task, self.n_rows, row_cost)

    # Products of codes and atoms.

    def _multiply(self, codes: Any, atoms: Words, unknown: Any, out: Any) -> None:
        codes, atoms = read_only(codes), read_only(atoms)

        def add(start: int, stop: int) -> None:
            row = np.empty(out.shape[1], np.uint64)
            words.add_product(codes, atoms, self.covers, unknown, start, stop, row, out)

        self.workers.map_rows(add, len(out), ROW_COST)

    def cover(self, atoms: Words) -> None:
        """Set which bits are covered once and twice, from codes and atoms."""
        if self.covers:
            self.map(lambda start, stop: words.cover_rows(self.arrays, atoms, start, stop), ROW_COST)

    def follow_flips(self, atoms: Words, flips: Words, flipping: Words) -> int:
        """Update rows after bits of the atoms were flipped; return the number of changed error bits.

        ``flipping`` are the atoms with such bits, packed.
        """

        flips = read_only(flips)

        def follow(start: int, stop: int) -> int:
            before = np.empty(flips.shape[1], np.uint64)
            return votes.follow_flips(self.arrays, atoms, flips, flipping, self.covers, start, stop, before)

        return sum(self.map(follow, ROW_COST))

    # Counts.

    def votes(self, atoms: AtomArrays, first: int, last: int) -> Votes:
        """Return the votes on the atoms first..last, free and wrong (see `Block.votes`)."""
        return self._tally(self._read, atoms, first, last)

    def votes_of(self, users: Words) -> Votes:
        """Return the votes on new atoms without ones, each with these rows as its users."""
        zeros = atom_tables(np.zeros((len(users), self.n_words), np.uint64), self.n_features, self.covers)
        return self._tally(self._read._replace(users=users), zeros, 0, len(users))

    def _tally(self, rows: RowArrays, atoms: AtomArrays, first: int, last: int) -> Votes:
        """Return the votes of the users that ``rows`` lists for the atoms first..last."""
        n_atoms, shape = last - first, (2, last - first, self.n_features)

        def tally(start: int, stop: int) -> NDArray[np.int32]:
            counts = np.empty(shape, np.int32)
            how = np.arange(first, last), first, self.covers, start, stop
            votes.tally_atoms(rows, atoms, *how, *counts, self.vote_scratch(start))
            return counts

        def tally_some(start: int, stop: int) -> None:
            how = order[start:stop], first, self.covers, 0, self.n_rows
            votes.tally_atoms(rows, atoms, *how, *counts, self.vote_scratch(start))

        # Chunks of atoms, if they are enough for all threads: counts of chunks of rows must be added.
        if n_atoms >= 2 * self.workers.n_threads:
            counts = np.empty(shape, np.int32)
            order = first + apart(np.argsort(row_weights(rows.users[first:last]), kind="stable"))
            self.workers.map_rows(tally_some, n_atoms, _ATOM_COST * self.n_words, 1)
        else:
            counts = reduce(np.add, self.map(tally, self.vote_cost(self.n_rows)))
        return counts[0], counts[1]

    def vote_scratch(self, start: int) -> VoteScratch:
        """Return the scratch for votes of the chunk of rows from ``start`` on, allocated once: a vote is short."""
        key = start, self._read.codes.shape[1]
        if key not in self._scratches:
            self._scratches[key] = vote_scratch(self._read)
        return self._scratches[key]

    def vote_cost(self, n_users: int) -> float:
        """Return about how many nanoseconds per row a vote of these users takes."""
        return (10.0 + 4.0 * self.n_words) * n_users / max(1, self.n_rows)

    def pairs(self) -> NDArray[np.int32]:
        """Return how many rows use both of two atoms, below and on the diagonal."""
        n_atoms = self.n_atoms

        def count(start: int, stop: int) -> NDArray[np.int32]:
            counts = np.zeros((n_atoms, n_atoms), np.int32)
            votes.count_pairs(self._read.codes, start, stop, np.empty(n_atoms, np.int64), counts)
            return counts

        return reduce(np.add, self.map(count, ROW_COST))

    def row_costs(self, prices: Prices) -> Any:
        """Return the cost of each row at these prices, as an array."""
        costs = np.empty(self.n_rows, np.int64)
        coding.price_rows(self._read, prices, costs)
        return costs

    def improvable(self, rule: CodingRule) -> NDArray[np.bool_]:
        """Return which rows have a fixable error and may use one more atom."""
        fixable = np.empty(self.n_rows, np.bool_)
        words.improvable(self._read, rule.covers, rule.max_atoms, rule.residual_limit, fixable)
        return fixable

    def errors_fixed_by(self, atoms: Words) -> NDArray[np.int64]:
        """Return how many errors each candidate would fix as an additional atom, used where it helps."""
        tables = atom_tables(atoms, self.n_features, self.covers)

        def rate(start: int, stop: int) -> NDArray[np.int64]:
            totals = np.empty(len(atoms), np.int64)
            coding.rate_atoms(self._read, tables, self.covers, start, stop, totals)
            return totals

        return reduce(np.add, self.map(rate, 5.0 * atoms.size))

    # Coding.

    def tables(self, atoms: AtomArrays) -> Tables:
        """Return the tables of the atoms for coding by numbers of errors; mark rows that could use changed atoms."""
        changed = np.flatnonzero(atoms.changed)
        if len(changed) == 0:
            return atoms
        dictionary.slice_atoms(atoms.words, atoms.weights, atoms.slices)
        dictionary.overlap_atoms(atoms.words, atoms.changed, 1 if self.covers else 2, atoms.overlaps)
        atoms.changed[:] = 0
        if len(changed) == self.n_atoms:
            self.arrays.stale[:] = 1
            return atoms
        tables = atom_tables(atoms.words[changed], self.n_features, self.covers)
        dictionary.slice_atoms(tables.words, tables.weights, tables.slices)

        def recheck(start: int, stop: int) -> None:
            coding.recheck_rows(self.arrays, tables, self.covers, start, stop, coding_scratch(self._read, tables))

        self.map(recheck, self.code_cost() * len(changed) / self.n_atoms)
        return atoms

    def priced(self, atoms: Words, prices: Prices) -> Tables:
        """Return the tables of these atoms for coding at these prices.

        If atoms have few of the columns, those of each column are listed: a wrong bit then concerns only these. So they
        are where missed and added ones have prices of their own; the weights of atoms are then at the prices of added
        ones.
        """
        given = atom_tables(atoms, self.n_features, self.covers, has_overlaps=False)
        lanes, n_ones = len(given.weights), int(np.bitwise_count(atoms).sum())
        tables = given._replace(
            weights=np.zeros(lanes, np.int32),
            slices=np.empty((0, lanes), np.uint8),
            overlaps=np.empty((len(atoms), lanes), np.int32),
        )
        if n_ones * _LANES_PER_LISTED < self.n_features * lanes or prices.own_costs():
            by_column = BitMatrix.from_words(atoms.copy(), self.n_features, check=False).T.to_sparse()
            starts, listed_atoms = by_column.indptr.astype(np.int64), by_column.indices.astype(np.int32)
            tables = tables._replace(column_starts=starts, column_atoms=listed_atoms)
        else:
            tables = tables._replace(slices=np.empty((self.n_features, lanes), np.uint8))
            dictionary.slice_atoms(atoms, given.weights, given.slices)
        listed, factor = np.empty(self.n_features + 1, np.int64), 1 if self.covers else 2
        dictionary.price_atoms(given, prices.bits, factor, listed, tables)
        if prices.own_costs():
            tables.weights[:] = np.bincount(
                tables.column_atoms, np.repeat(prices.added, np.diff(tables.column_starts)), lanes
            )
        return tables

    def code_cost(self) -> float:
        """Return about how many nanoseconds it takes to code a row."""
        return ROW_COST + 0.1 * -(-self.n_features // 8) * lanes_of(self.n_atoms)

    def code_stale(self, tables: Tables, rule: CodingRule) -> Changes:
        """Code the stale rows greedily from their codes, by numbers of errors."""

        def code(start: int, stop: int) -> Changes:
            return coding.code_rows(self.arrays, tables, rule, start, stop, coding_scratch(self._read, tables))

        return summed(self.map(code, self.code_cost()))

    def code_at_prices(self, tables: Tables, rule: CodingRule, from_scratch: bool = False) -> Changes:
        """Code all rows greedily at prices: from their codes, or from no atoms, which is kept where it costs less."""

        def code(start: int, stop: int) -> Changes:
            scratch, rows = coding_scratch(self._read, tables), np.arange(start, stop)
            return coding.code_at_prices(self.arrays, tables, rule, rows, from_scratch, scratch)

        return summed(self.map(code, (4 if from_scratch else 1) * self.code_cost()))

    def code_by_beam(self, tables: Tables, rule: CodingRule, width: int, patience: int) -> Changes:
        """Code the stale rows by a beam of this width, up to ``patience`` levels without a better code."""
        marks = fingerprints(tables.words)

        def code(start: int, stop: int) -> Changes:
            scratches = beam_scratch(self._read, tables, width), coding_scratch(self._read, tables)
            return beam.beam_rows(self.arrays, tables, rule, marks, patience, start, stop, *scratches)

        share = float(self._read.stale.mean()) if self.n_rows else 0.0
        return summed(self.map(code, 10 * width * share * self.code_cost()))

    def code_from_draws(
        self, atoms: AtomArrays, draws: list[ColumnDraw], targets: Any, rule: CodingRule, slack: int
    ) -> None:
        """Code rows from draws of columns, one after the other, and keep a code that costs less."""

        def code(start: int, stop: int) -> None:
            scratch = coding_scratch(self._read, atoms)
            for draw in draws:
                gf2.code_from_columns(self.arrays, atoms, targets, rule, draw, slack, start, stop, scratch)

        self.map(code, len(draws) * (ROW_COST + atoms.words.size))

    def code_exactly(self, atoms: AtomArrays, rule: CodingRule) -> Changes:
        """Give every row the best of all codes; for few atoms."""
        self.arrays.stale[:] = 1
        half = (self.n_atoms + 1) // 2
        low = np.empty((1 << half, self.n_words), np.uint64)
        high = np.empty((1 << (self.n_atoms - half), self.n_words), np.uint64)
        exact.list_products(atoms.words, 0, self.covers, low)
        exact.list_products(atoms.words, half, self.covers, high)
        low = np.ascontiguousarray(low.T)

        def code(start: int, stop: int) -> Changes:
            work = np.empty(low.shape[1], np.int32), coding_scratch(self._read, atoms)
            return exact.code_rows_exactly(self.arrays, atoms, low, high, rule, start, stop, *work)

        return summed(self.map(code, ROW_COST + low.size * len(high)))

    def offer(self, tables: Tables, rule: CodingRule) -> Words:
        """Return the rows that would gain from each of these atoms, added alone: bits of shape (atoms, rows)."""
        users = np.zeros((len(tables.words), self._read.users.shape[1]), np.uint64)

        def offer(start: int, stop: int) -> None:
            coding.offer_atoms(self._read, tables, rule, start, stop, coding_scratch(self._read, tables), users)

        self.map(offer, ROW_COST + 0.1 * self.n_features * len(tables.weights))
        return users

    def _nearest(self, patterns: BitMatrix, rule: CodingRule, uses: NDArray[np.int32]) -> Any:
        assert rule.prices is not None
        slices = np.zeros((self.n_features, len(uses)), np.uint8)
        bit_prices = rule.prices.bits.astype(np.uint8)[:, np.newaxis]
        np.multiply(patterns.to_dense().T, bit_prices, out=slices[:, : len(patterns)])
        tables = AtomArrays(
            words=patterns.words.copy(),
            weights=slices.sum(axis=0, dtype=np.int32),
            slices=slices,
            overlaps=np.empty((0, len(uses)), np.int32),
            stale=np.empty(0, np.uint8),
            changed=np.empty(0, np.uint8),
        )
        # Which pattern is nearest is a matter of XOR in both algebras.
        of_patterns = rule._replace(covers=False, prices=Prices(rule.prices.bits, uses))
        found = np.empty(self.n_rows, np.int64)

        def find(start: int, stop: int) -> None:
            scratch = coding_scratch(self._read, tables)
            coding.find_nearest(self._read, tables, of_patterns, start, stop, scratch, found)

        self.map(find, ROW_COST + 0.02 * slices.size)
        return found

    def subset_codes(self, atoms: Words, max_atoms: int) -> Any:
        """Return codes, as an array, of all atoms that are subsets of each row, or of none if these are too many.

        The rows use no atom, under OR. Unknown cells count as ones.
        """
        targets = self._read.errors | self._read.covered  # only unknown cells are covered
        lacking = np.ascontiguousarray(~targets.T)
        within = np.empty((len(atoms), len(targets)), bool)
        for atom, has_it in zip(atoms, within, strict=True):
            own = np.flatnonzero(atom)  # few, in wide tables
            lacked = np.bitwise_or.reduce(lacking[own] & atom[own, np.newaxis], axis=0)
            np.equal(lacked, 0, out=has_it)
        return BitMatrix.from_dense((within & (within.sum(axis=0) <= max_atoms)).T).words

    def _put_rows(self, atoms: Words, indices: Any, codes: Any, errors: Any) -> None:
        coding.restore_rows(self.arrays, atoms, indices, codes, errors, self.covers)


def apart(items: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return items in an order in which the first ones, and any others in a row, are from all parts of the list."""
    n_items = max(1, len(items))
    return items[np.arange(len(items)) * step_apart(n_items) % n_items]


def atom_tables(atoms: Words, n_features: int, covers: bool, has_overlaps: bool = True) -> AtomArrays:
    """Return tables for these atoms, not filled in yet."""
    p = len(atoms)
    lanes = lanes_of(p)
    return AtomArrays(
        words=atoms,
        weights=np.zeros(lanes, np.int32),
        slices=np.zeros((-(-n_features // 8), lanes), np.uint8),
        overlaps=np.zeros((p if has_overlaps else 0, lanes), np.int32),
        stale=np.ones(p, np.uint8),
        changed=np.ones(p, np.uint8),
    )


def summed(chunks: list[Changes]) -> Changes:
    """Return the numbers of changed bits of all chunks."""
    return sum(codes for codes, _ in chunks), sum(errors for _, errors in chunks)


def fingerprints(atoms: Words) -> Words:
    """Return a hash of each atom, by which partial codes of a beam are compared."""
    out = np.empty(len(atoms), np.uint64)
    beam.fingerprint_atoms(atoms, out)
    return out


def transposed(words: Words, n_cols: int) -> Words:
    """Return the transpose of packed rows of ``n_cols`` bits."""
    out = np.zeros((n_cols, -(-len(words) // 64)), np.uint64)
    packing.transpose(read_only(words), len(words), n_cols, np.empty(64, np.uint64), out)
    return out


def row_weights(words: Words) -> NDArray[np.int64]:
    """Return the number of ones of each of these packed rows."""
    counts = np.empty(len(words), np.int64)
    packing.row_weights(read_only(words), counts)
    return counts


def read_only(words: Words) -> Words:
    """Return a view that cannot be written, as the words of a `BitMatrix`: kernels are compiled for either."""
    view = words.view()
    view.flags.writeable = False
    return view
