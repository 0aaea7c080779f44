"""HostKernels: the rows of a block in the memory of the host, processed by its threads."""

from __future__ import annotations

import threading
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.cpu import beam, coding, dictionary, exact, gf2, joint_update, nearest, packing, votes, words
from ..kernels.gpu.coding import REFUSED
from ..kernels.structs import (
    PLANES,
    AtomArrays,
    CodingScratch,
    ColumnDraw,
    Prices,
    RowArrays,
    Rule,
    beam_scratch,
    candidate_scratch,
    coding_scratch,
)
from ..parallel import MAX_CHUNK_NS
from .complete import hash_rows
from .members import MemberCounts, count_members

if TYPE_CHECKING:
    from .block import Block, Words

Tables = Any  # what `tables` and `priced` return
Changes = tuple[int, int]  # numbers of code and error bits that coding changed

ROW_COST = 50.0  # nanoseconds per row of a light pass
_ATOM_COST = 2000.0  # nanoseconds per atom and word of a vote
_LANES_PER_LISTED = 64  # atoms that are added to at once take about as long as one that is listed


class HostKernels:
    """Kernels on the rows of a block. `DeviceKernels` has the same methods, with the same results, on a device.

    "Arrays" are arrays in the memory in which the rows are, here the host's.
    """

    xp: Any = np
    min_chunk_rows = 0

    def __init__(self, block: Block) -> None:
        self._block = block

    # Arrays.

    def array(self, words: NDArray[Any]) -> Any:
        """Return an array with a copy of these values of the host."""
        return words.copy()

    def asarray(self, words: Any) -> Any:
        """Return an array with these values of the host, or of a device that the rows were on, to read it."""
        return words if isinstance(words, np.ndarray) else words.get()

    def read_only(self, words: Words) -> Any:
        """Return an array with the words of a table, to read it."""
        return words

    def words_of(self, data: BitMatrix) -> Any:
        """Return the words of the data of the block, to read them."""
        return data.words

    def to_host(self, array: Any) -> NDArray[Any]:
        """Return an array on the host: the same one."""
        return np.asarray(array)

    def copy_to_host(self, array: Any) -> NDArray[Any]:
        """Return a copy of an array on the host."""
        return np.asarray(array.copy())

    def transposed(self, words: Any, n_cols: int) -> Any:
        """Return the transpose of packed rows of ``n_cols`` bits."""
        return transposed(words, n_cols)

    def column_weights(self, words: Any) -> NDArray[np.int64]:
        """Return how many of these packed rows have each feature."""
        n_words, n_features = words.shape[1], self._block.n_features

        def count(start: int, stop: int) -> NDArray[np.int64]:
            counts = np.empty(n_features, np.int64)
            packing.column_weights(read_only(words[start:stop]), np.empty((PLANES, n_words), np.uint64), counts)
            return counts

        counts: NDArray[np.int64] = reduce(np.add, self._block.map_rows(count, 2.0 * n_words))
        return counts

    def count_differences(self, words: Any, others: Any) -> int:
        """Return in how many bits two arrays differ."""
        return int(np.bitwise_count(words ^ others).sum())

    # Products of codes and atoms.

    def add_product(self, codes: Any, unknown: Any, out: Any) -> None:
        """Add the products of codes and atoms to rows, except in unknown cells."""
        block = self._block

        def add(start: int, stop: int) -> None:
            row = np.empty(out.shape[1], np.uint64)
            words.add_product(codes, block._atoms.words, block.covers, unknown, start, stop, row, out)

        block.workers.map_rows(add, len(out), ROW_COST)

    def cover(self) -> None:
        """Set which bits are covered once and twice, from codes and atoms."""
        block = self._block
        block.map_rows(lambda i, j: words.cover_rows(block._rows, block._atoms.words, i, j), ROW_COST)

    def follow_flips(self, flips: Words, flipping: Words) -> int:
        """Update rows after bits of the atoms were flipped; return the number of changed error bits."""
        block = self._block

        def follow(start: int, stop: int) -> int:
            before = np.empty(flips.shape[1], np.uint64)
            atoms = block._atoms.words
            return joint_update.follow_flips(block._rows, atoms, flips, flipping, block.covers, start, stop, before)

        return sum(block.map_rows(follow, ROW_COST))

    # Counts.

    def uses(self) -> NDArray[np.int64]:
        """Return how many rows use each atom."""
        counts = np.empty(self._block.n_atoms, np.int64)
        packing.row_weights(read_only(self._block._read_rows.users), counts)
        return counts

    def votes(self, first: int, last: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the votes on the atoms first..last, free and wrong."""
        return self._tally(self._block._read_rows, self._block._atoms, first, last)

    def votes_of(self, users: Words) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the votes on new atoms without ones, each with these rows as its users."""
        zeros = self._block.atom_tables(np.zeros((len(users), self._block.n_words), np.uint64))
        return self._tally(self._block._read_rows._replace(users=users), zeros, 0, len(users))

    def _tally(
        self, rows: RowArrays, atoms: AtomArrays, first: int, last: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the votes of the users that ``rows`` lists for the atoms first..last."""
        block, n_atoms = self._block, last - first

        def tally(start: int, stop: int) -> NDArray[np.int32]:
            counts = np.empty((2, n_atoms, block.n_features), np.int32)
            votes.tally_atoms(rows, atoms, first, block.covers, start, stop, *counts, block.vote_scratch(start))
            return counts

        def tally_some(start: int, stop: int) -> None:
            free, wrong = counts[:, start:stop]
            votes.tally_atoms(
                rows, atoms, first + start, block.covers, 0, block.n_rows, free, wrong, block.vote_scratch(start)
            )

        # Chunks of atoms, if they are enough for all threads: counts of chunks of rows must be added.
        if n_atoms >= 2 * block.workers.n_threads:
            counts = np.empty((2, n_atoms, block.n_features), np.int32)
            block.workers.map_rows(tally_some, n_atoms, _ATOM_COST * block.n_words, 1)
        else:
            counts = reduce(np.add, block.map_rows(tally, block.vote_cost(block.n_rows)))
        return counts[0], counts[1]

    def pairs(self) -> NDArray[np.int32]:
        """Return how many rows use both of two atoms, below and on the diagonal."""
        block = self._block

        def count(start: int, stop: int) -> NDArray[np.int32]:
            counts = np.zeros((block.n_atoms, block.n_atoms), np.int32)
            joint_update.count_pairs(block._read_rows.codes, start, stop, np.empty(block.n_atoms, np.int64), counts)
            return counts

        return reduce(np.add, block.map_rows(count, ROW_COST))

    def ones(self, data: BitMatrix) -> NDArray[np.int64]:
        """Return how many rows have each feature; ``data`` is that of the block."""
        return data.column_weights()

    def hash_rows(self, data: BitMatrix) -> int | None:
        """Return a hash of the rows; ``data`` is that of the block."""
        return hash_rows(data)

    def members(self, data: BitMatrix) -> MemberCounts:
        """Return in how many rows each atom is complete, and how many rows lack one feature of it."""
        return count_members(data, self._block.atoms(), self._block.workers, self._block.bias)

    def row_costs(self, prices: Prices) -> Any:
        """Return the cost of each row at these prices, as an array."""
        costs = np.empty(self._block.n_rows, np.int64)
        beam.price_rows(self._block._read_rows, prices, costs)
        return costs

    def improvable(self, rule: Rule) -> NDArray[np.bool_]:
        """Return which rows have a fixable error and may use one more atom."""
        fixable = np.empty(self._block.n_rows, np.bool_)
        words.improvable(self._block._read_rows, rule.covers, rule.max_atoms, rule.residual_limit, fixable)
        return fixable

    def errors_fixed_by(self, atoms: Words) -> NDArray[np.int64]:
        """Return how many errors each candidate would fix as an additional atom, used where it helps."""
        block = self._block
        tables = block.atom_tables(atoms)

        def rate(start: int, stop: int) -> NDArray[np.int64]:
            totals = np.empty(len(atoms), np.int64)
            coding.rate_atoms(block._read_rows, tables, block.covers, start, stop, totals)
            return totals

        return reduce(np.add, block.map_rows(rate, 5.0 * atoms.size))

    # Coding.

    def tables(self) -> Tables:
        """Return the tables of the atoms for coding by numbers of errors; mark rows that could use changed atoms."""
        block, atoms = self._block, self._block._atoms
        changed = np.flatnonzero(atoms.changed)
        if len(changed) == 0:
            return atoms
        dictionary.slice_atoms(atoms.words, atoms.weights, atoms.slices)
        dictionary.overlap_atoms(atoms.words, atoms.changed, 1 if block.covers else 2, atoms.overlaps)
        atoms.changed[:] = 0
        if len(changed) == block.n_atoms:
            block._rows.stale[:] = 1
            return atoms
        tables = block.atom_tables(atoms.words[changed])
        dictionary.slice_atoms(tables.words, tables.weights, tables.slices)

        def recheck(start: int, stop: int) -> None:
            coding.recheck_rows(block._rows, tables, block.covers, start, stop, coding_scratch(block._rows, tables))

        block.map_rows(recheck, self.code_cost() * len(changed) / block.n_atoms)
        return atoms

    def priced(self, words: Words, prices: Prices) -> Tables:
        """Return the tables of these atoms for coding at these prices.

        If atoms have few of the columns, those of each column are listed: a wrong bit then concerns only these. So they
        are where missed and added ones have prices of their own; the weights of atoms are then at the prices of added
        ones.
        """
        block = self._block
        atoms = block._atoms if words is block._atoms.words else block.atom_tables(words)
        lanes, n_ones = len(atoms.weights), int(np.bitwise_count(atoms.words).sum())
        tables = atoms._replace(
            weights=np.zeros(lanes, np.int32),
            slices=np.empty((0, lanes), np.uint8),
            overlaps=np.empty((len(atoms.words), lanes), np.int32),
        )
        if n_ones * _LANES_PER_LISTED < block.n_features * lanes or prices.own_costs():
            by_column = BitMatrix.from_words(atoms.words.copy(), block.n_features, check=False).T.to_sparse()
            starts, listed_atoms = by_column.indptr.astype(np.int64), by_column.indices.astype(np.int32)
            tables = tables._replace(column_starts=starts, column_atoms=listed_atoms)
        else:
            tables = tables._replace(slices=np.empty((block.n_features, lanes), np.uint8))
            dictionary.slice_atoms(atoms.words, atoms.weights, atoms.slices)
        listed, factor = np.empty(block.n_features + 1, np.int64), 1 if block.covers else 2
        dictionary.price_atoms(atoms, prices.bits, factor, listed, tables)
        if prices.own_costs():
            tables.weights[:] = np.bincount(
                tables.column_atoms, np.repeat(prices.added, np.diff(tables.column_starts)), lanes
            )
        return tables

    def code_cost(self) -> float:
        """Return about how many nanoseconds it takes to code a row."""
        return ROW_COST + 0.1 * self._block._atoms.slices.size

    def code_stale(self, tables: Tables, rule: Rule) -> Changes:
        """Code the stale rows greedily from their codes, by numbers of errors."""
        block = self._block

        def code(start: int, stop: int) -> Changes:
            scratch = coding_scratch(block._rows, block._atoms)
            return coding.code_rows(block._rows, tables, rule, start, stop, scratch)

        return summed(block.map_rows(code, self.code_cost()))

    def code_at_prices(self, tables: Tables, rule: Rule, from_scratch: bool = False) -> Changes:
        """Code all rows greedily at prices: from their codes, or from no atoms, which is kept where it costs less."""
        block = self._block

        def code(start: int, stop: int) -> Changes:
            scratch, rows = coding_scratch(block._rows, tables), np.arange(start, stop)
            before = np.empty(block._rows.codes.shape[1], np.uint64), np.empty(block.n_words, np.uint64)
            changes = coding.code_at_prices(block._rows, tables, rule, rows, from_scratch, *before, scratch)
            return changes

        return summed(block.map_rows(code, (4 if from_scratch else 1) * self.code_cost()))

    def code_by_beam(self, tables: Tables, rule: Rule, width: int, patience: int) -> Changes:
        """Code the stale rows by a beam of this width, up to ``patience`` levels without a better code."""
        block = self._block
        marks = fingerprints(block._atoms.words)

        def code(start: int, stop: int) -> Changes:
            scratch, saved = coding_scratch(block._rows, tables), coding_scratch(block._rows, tables)
            beams = beam_scratch(block._rows, tables, width)
            changes = beam.beam_rows(block._rows, tables, rule, marks, patience, start, stop, beams, scratch, saved)
            return changes

        share = float(block._rows.stale.mean()) if block.n_rows else 0.0
        return summed(block.map_rows(code, 10 * width * share * self.code_cost()))

    def code_from_draws(self, draws: list[ColumnDraw], targets: Any, rule: Rule, slack: int) -> None:
        """Code rows from draws of columns, one after the other, and keep a code that costs less."""
        block = self._block

        def code(start: int, stop: int) -> None:
            candidates = candidate_scratch(block._rows)
            for draw in draws:
                gf2.code_from_columns(block._rows, block._atoms, targets, rule, draw, slack, start, stop, candidates)

        block.map_rows(code, len(draws) * (ROW_COST + block._atoms.words.size))

    def code_exactly(self, rule: Rule) -> Changes:
        """Give every row the best of all codes; for few atoms."""
        block = self._block
        block._rows.stale[:] = 1
        half = (block.n_atoms + 1) // 2
        low = np.empty((1 << half, block.n_words), np.uint64)
        high = np.empty((1 << (block.n_atoms - half), block.n_words), np.uint64)
        exact.list_products(block._atoms.words[:half], block.covers, low)
        exact.list_products(block._atoms.words[half:], block.covers, high)
        low = np.ascontiguousarray(low.T)

        def code(start: int, stop: int) -> Changes:
            distances, scratch = np.empty(low.shape[1], np.int32), coding_scratch(block._rows, block._atoms)
            work = distances, np.empty(block.n_words, np.uint64), scratch
            changes = exact.code_rows_exactly(block._rows, block._atoms, low, high, rule, start, stop, *work)
            return changes

        return summed(block.map_rows(code, ROW_COST + low.size * len(high)))

    def offer(self, tables: Tables, rule: Rule) -> Words:
        """Return the rows that would gain from each of these atoms, added alone: bits of shape (atoms, rows)."""
        block = self._block
        users = np.zeros((len(tables.words), block._read_rows.users.shape[1]), np.uint64)

        def offer(start: int, stop: int) -> None:
            scratch = coding_scratch(block._read_rows, tables)
            coding.offer_atoms(block._read_rows, tables, rule, start, stop, scratch, users)

        block.map_rows(offer, ROW_COST + 0.1 * block.n_features * len(tables.weights))
        return users

    def nearest(self, patterns: BitMatrix, rule: Rule, uses: NDArray[np.int32]) -> Any:
        """Return, as an array, which pattern alone lowers the cost of each row most, or -1.

        ``uses`` is what each pattern costs; the rows use no atom.
        """
        block, lanes = self._block, len(uses)
        assert rule.prices is not None
        slices = np.zeros((block.n_features, lanes), np.uint8)
        bit_prices = rule.prices.bits.astype(np.uint8)[:, np.newaxis]
        np.multiply(patterns.to_dense().T, bit_prices, out=slices[:, : len(patterns)])
        tables = AtomArrays(
            words=patterns.words.copy(),
            weights=slices.sum(axis=0, dtype=np.int32),
            slices=slices,
            overlaps=np.empty((0, lanes), np.int32),
            stale=np.empty(0, np.uint8),
            changed=np.empty(0, np.uint8),
        )
        # Which pattern is nearest is a matter of XOR in both algebras.
        of_patterns = rule._replace(covers=None, prices=Prices(rule.prices.bits, uses))
        found = np.empty(block.n_rows, np.int64)

        def find(start: int, stop: int) -> None:
            scratch = coding_scratch(block._rows, tables)
            nearest.find_nearest(block._rows, tables, of_patterns, start, stop, scratch, found)

        block.map_rows(find, ROW_COST + 0.02 * slices.size)
        return found

    def subset_codes(self, targets: Any, atoms: Words, max_atoms: int) -> Any:
        """Return codes, as an array, of all atoms that are subsets of each target, or of none if these are too many.

        Unknown cells of targets are ones.
        """
        lacking = np.ascontiguousarray(~targets.T)
        within = np.empty((len(atoms), len(targets)), bool)
        for atom, has_it in zip(atoms, within, strict=True):
            own = np.flatnonzero(atom)  # few, in wide tables
            lacked = np.bitwise_or.reduce(lacking[own] & atom[own, np.newaxis], axis=0)
            np.equal(lacked, 0, out=has_it)
        return BitMatrix.from_dense((within & (within.sum(axis=0) <= max_atoms)).T).words

    def restore_rows(self, rows: Any, codes: Any, errors: Any) -> None:
        """Set the codes of the rows with these indices, and the errors that they have with them."""
        block = self._block
        coding.restore_rows(block._rows, block._atoms.words, rows, codes, errors, block.covers)

    def removal(self, rule: Rule) -> HostRemoval:
        """Return what codes rows without some of the atoms; the prices of their uses are changed."""
        return HostRemoval(self._block, rule, self.code_cost())


class HostRemoval:
    """Codes rows at prices without atoms: as if an atom had a price at which no row uses it, ``REFUSED``."""

    def __init__(self, block: Block, rule: Rule, row_cost: float) -> None:
        assert rule.prices is not None
        self._block, self._rule, self._row_cost, self._prices = block, rule, row_cost, rule.prices
        self._tables = block.kernels.priced(block._atoms.words, rule.prices)
        self._scratches: dict[int, tuple[Prices, RowArrays, CodingScratch]] = {}  # by thread

    def changes(
        self, tested: NDArray[np.intp], tests: NDArray[np.intp], indices: NDArray[np.intp]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return by how much errors per feature, added ones, and uses per atom change if rows do without an atom.

        Entry i is row indices[i] without atom tested[tests[i]]; the rows are left as they are. Added ones are not
        counted where they cost what missed ones do.
        """
        block, n_tests = self._block, len(tested)
        n_added = n_tests if self._prices.own_costs() else 0
        shapes = (n_tests, block.n_features), (n_added, block.n_features), (n_tests, block.n_atoms)
        adding = threading.Lock()
        totals: list[NDArray[np.int64]] = []

        def count(start: int, stop: int) -> None:
            counts = [np.zeros(shape, np.int64) for shape in shapes]
            prices, one_row, scratch = self._scratch()
            rule = self._rule._replace(prices=prices)
            coding.code_without(
                block._read_rows, self._tables, rule, REFUSED, tested, tests, indices, start, stop, one_row, *counts,
                scratch,
            )  # fmt: skip
            with adding:
                totals[:] = [own + more for own, more in zip(counts, totals, strict=True)] if totals else counts

        block.workers.map_rows(count, len(indices), self._row_cost)
        wrong, added, uses = totals
        return wrong, added, uses

    def _scratch(self) -> tuple[Prices, RowArrays, CodingScratch]:
        """Return what a thread needs for itself: prices, which it changes, and work arrays; allocated once."""
        thread, rows = threading.get_ident(), self._block._read_rows
        if thread not in self._scratches:
            own = RowArrays(*(np.zeros((min(1, len(array)), *array.shape[1:]), array.dtype) for array in rows))
            own = own._replace(users=np.zeros((self._block.n_atoms, 1), np.uint64))
            prices = self._prices._replace(uses=self._prices.uses.copy())
            self._scratches[thread] = prices, own, coding_scratch(rows, self._tables)
        return self._scratches[thread]

    def code_without(self, k: int, rows: NDArray[np.intp]) -> None:
        """Code these rows without atom k, which cannot be used from now on."""
        for prices in (self._prices, *(prices for prices, *_ in self._scratches.values())):
            prices.uses[k] = REFUSED
        block, (_, _, scratch) = self._block, self._scratch()
        rows_per_call = 1 + int(MAX_CHUNK_NS / self._row_cost)
        for start in range(0, len(rows), rows_per_call):
            block.workers.check_deadline()
            few = rows[start : start + rows_per_call]
            before = np.empty(block._read_rows.codes.shape[1], np.uint64), np.empty(block.n_words, np.uint64)
            coding.code_at_prices(block._rows, self._tables, self._rule, few, False, *before, scratch)


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


def read_only(words: Words) -> Words:
    """Return a view that cannot be written, as the words of a `BitMatrix`: kernels are compiled for either."""
    view = words.view()
    view.flags.writeable = False
    return view
