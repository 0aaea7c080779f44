"""DeviceKernels: the rows of a block in the memory of a device, processed there.

Its methods are those of `HostKernels`, with the same results. Atoms, and what is decided from counts, stay on the host.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.gpu import beam, coding, exact, information_sets, rows
from ..kernels.gpu.device import Device, DeviceMemoryError
from ..kernels.gpu.products import joint_counts, rows_at_a_time, unpacked
from ..kernels.structs import ColumnDraw, Prices, Rule
from ..parallel import Workers
from .host_kernels import Changes, Tables, fingerprints
from .members import MemberCounts

if TYPE_CHECKING:
    from .block import Block, Words

_CHUNK_ROWS = 1 << 20  # that are coded again at a time, while the codes that they have are kept
_LEAST_ROWS = 128  # that a device must have memory for

Result = TypeVar("Result")


class DeviceKernels:
    """Kernels on the rows of a block. "Arrays" are arrays of the device."""

    min_chunk_rows = _CHUNK_ROWS

    def __init__(self, block: Block, device: Device) -> None:
        self._block, self.device = block, device
        self.xp = device.xp

    # Arrays.

    def array(self, words: Any) -> Any:
        """Return an array with a copy of these values of the host, or of the device."""
        return self.device.asarray(words) if isinstance(words, np.ndarray) else words.copy()

    def asarray(self, words: Any) -> Any:
        """Return an array with these values of the host, or of the device."""
        return self.device.asarray(words)

    def read_only(self, words: Words) -> Any:
        """Return an array with the words of a table, to read it."""
        return self.device.resident(words)

    def words_of(self, data: BitMatrix) -> Any:
        """Return the words of the data of the block, to read them."""
        words, unknown = self._block._targets() ^ self.array(self._block.bias.words), self._block._read_rows.unknown
        return words & ~unknown if len(unknown) else words

    def to_host(self, array: Any) -> NDArray[Any]:
        """Return a copy of an array on the host."""
        return self.device.to_host(array)

    copy_to_host = to_host

    def transposed(self, words: Any, n_cols: int) -> Any:
        """Return the transpose of packed rows of ``n_cols`` bits."""
        return rows.transposed(self.device, words, n_cols)

    def column_weights(self, words: Any) -> NDArray[np.int64]:
        """Return how many of these packed rows have each feature."""
        return self.to_host(rows.column_weights(self.device, words, self._block.n_features))

    def count_differences(self, words: Any, others: Any) -> int:
        """Return in how many bits two arrays differ."""
        return rows.count_differences(self.device, words, others)

    # Products of codes and atoms.

    def add_product(self, codes: Any, unknown: Any, out: Any) -> None:
        """Add the products of codes and atoms to rows, except in unknown cells."""
        rows.multiply(self.device, codes, self._atoms, unknown, self._covers, out)

    def cover(self) -> None:
        """Set which bits are covered once and twice, from codes and atoms."""
        rows.cover(self.device, self._block._rows, self._atoms)

    def follow_flips(self, flips: Words, flipping: Words) -> int:
        """Update rows after bits of the atoms were flipped; return the number of changed error bits."""
        state = self._block._rows
        return rows.follow_flips(self.device, state, self._atoms, self.array(flips), self.array(flipping), self._covers)

    # Counts.

    def uses(self) -> NDArray[np.int64]:
        """Return how many rows use each atom."""
        return self.to_host(rows.row_weights(self.device, self._block._read_rows.users))

    def votes(self, first: int, last: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the votes on the atoms first..last, free and wrong."""
        users = self.transposed(self._block._read_rows.users[first:last], self._block.n_rows)
        return self._votes(users, self._block._atoms.words[first:last])

    def votes_of(self, users: Words) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the votes on new atoms without ones, each with these rows as its users."""
        codes = self.transposed(self.array(users), self._block.n_rows)
        return self._votes(codes, np.zeros((len(users), self._block.n_words), np.uint64))

    def _votes(self, codes: Any, atoms: Words) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the votes on atoms by the rows that use them: packed, one row for each row of the block."""
        state, p, m = self._block._read_rows, len(atoms), self._block.n_features

        def count(words: Any) -> NDArray[np.int32]:
            return self.to_host(joint_counts(self.device, codes, p, words, m)).astype(np.int32)

        if not self._covers:
            wrong = count(state.errors)
            if len(state.unknown):
                return count(~state.unknown), wrong
            uses = rows.column_weights(self.device, codes, p)
            return np.repeat(self.to_host(uses).astype(np.int32)[:, np.newaxis], m, axis=1), wrong
        # A bit of the atom is free where no other atom covers it; another bit, where no atom does.
        has_bit = BitMatrix.from_words(atoms.copy(), m, check=False).to_dense(bool)
        alone, uncovered = state.covered & ~state.twice, ~state.covered
        free = np.where(has_bit, count(alone), count(uncovered))
        return free, np.where(has_bit, count(alone & state.errors), count(uncovered & state.errors))

    def pairs(self) -> NDArray[np.int32]:
        """Return how many rows use both of two atoms, below and on the diagonal."""
        codes, p = self._block._read_rows.codes, self._block.n_atoms
        return np.tril(self.to_host(joint_counts(self.device, codes, p, codes, p)).astype(np.int32))

    def ones(self, data: BitMatrix) -> NDArray[np.int64]:
        """Return how many rows have each feature; ``data`` is that of the block."""
        return self.column_weights(self.words_of(data))

    def hash_rows(self, data: BitMatrix) -> int:
        """Return a hash of the rows; ``data`` is that of the block."""
        words, unknown = self.words_of(data), self._block._read_rows.unknown
        return rows.hash_rows(self.device, words, unknown, self._block.n_features)

    def members(self, data: BitMatrix) -> MemberCounts:
        """Return in how many rows each atom is complete, and how many rows lack one feature of it.

        How many features of an atom a row has is a matrix product.
        """
        block, device = self._block, self.device
        m, targets, unknown = block.n_features, block._targets(), block._read_rows.unknown
        has_bit = block.atoms().to_dense(bool)
        members, features = rows.Members(device, self._atoms, has_bit.sum(axis=1)), self._features(has_bit)
        size = rows_at_a_time(device, m + 2 * features.shape[1])
        for start in range(0, block.n_rows, size):
            own = slice(start, start + size)
            shared = device.matmul(unpacked(device, targets[own], m), features)
            hidden = None
            if len(unknown):
                hidden = device.matmul(unpacked(device, unknown[own], m), features)
            members.count(targets[own], shared, hidden)
        complete, known, lacking = members.counts()
        return MemberCounts(complete, lacking, known if len(unknown) else np.full(block.n_atoms, block.n_rows))

    def _features(self, has_bit: NDArray[np.bool_]) -> Any:
        """Return atoms as a factor of products: transposed, in multiples of eight."""
        p, m = has_bit.shape
        features = np.zeros((-(-m // 8) * 8, -(-p // 8) * 8), np.float16)
        features[:m, :p] = has_bit.T
        return self.array(features)

    def row_costs(self, prices: Prices) -> Any:
        """Return the cost of each row at these prices, as an array."""
        return coding.price_rows(self.device, self._block._read_rows, prices, self._covers)

    def improvable(self, rule: Rule) -> NDArray[np.bool_]:
        """Return which rows have a fixable error and may use one more atom."""
        state = self._block._read_rows
        return self.to_host(rows.improvable(self.device, state, rule)).astype(np.bool_)

    def errors_fixed_by(self, atoms: Words) -> NDArray[np.int64]:
        """Return how many errors each candidate would fix as an additional atom, used where it helps."""
        tables = coding.atom_tables(self.device, atoms, self._block.n_features, self._covers)
        rule = Rule(self._block.covers, None, 0, 0)
        return coding.rate_atoms(self.device, self._block._read_rows, tables, rule)

    # Coding.

    def tables(self) -> Tables:
        """Return the tables of the atoms for coding by numbers of errors; all rows become stale."""
        self._block._atoms.changed[:] = 0
        self._block._rows.stale[:] = 1
        return coding.atom_tables(self.device, self._block._atoms.words, self._block.n_features, self._covers)

    def priced(self, words: Words, prices: Prices) -> Tables:
        """Return the tables of these atoms for coding at these prices."""
        return coding.atom_tables(self.device, words, self._block.n_features, self._covers, prices)

    def code_stale(self, tables: Tables, rule: Rule) -> Changes:
        """Code the stale rows greedily from their codes, by numbers of errors."""
        self._block.workers.check_deadline()
        self._block._atoms.stale[:] = 1
        changes = coding.code_rows(self.device, self._block._rows, tables, rule, stale_only=True)
        self._refresh_users()
        return changes

    def code_at_prices(self, tables: Tables, rule: Rule, from_scratch: bool = False) -> Changes:
        """Code all rows greedily at prices: from their codes, or from no atoms, which is kept where it costs less."""
        self._block.workers.check_deadline()
        if from_scratch:
            return self._code_from_scratch(tables, rule)
        changes = coding.code_rows(self.device, self._block._rows, tables, rule)
        self._refresh_users()
        return changes

    def _code_from_scratch(self, tables: Tables, rule: Rule) -> Changes:
        """Code rows from no atoms, and keep that where it costs less."""
        block, prices = self._block, rule.prices
        assert prices is not None
        old_codes = block._rows.codes.copy()
        if len(prices.forbidden):  # codes that add ones where none may be added are not kept
            coding.code_rows(self.device, block._rows, tables, rule._replace(residual_limit=1 << 60))
        old_errors = block._rows.errors.copy()  # as on the host: errors that this changes are not counted
        costs, wrong = self.row_costs(prices), rows.row_weights(self.device, block._rows.errors)
        for chunk in block.uncoded_chunks(self.min_chunk_rows):
            own = slice(chunk.start, chunk.start + chunk.block.n_rows)
            coding.code_rows(self.device, chunk.block._rows, tables, rule)
            is_better = chunk.block.kernels.row_costs(prices) < costs[own]
            better = self.xp.flatnonzero(is_better & (wrong[own] > rule.residual_limit))
            taken = chunk.block._rows.codes[better], chunk.block._rows.errors[better]
            self._restore(better + chunk.start, *taken)
        self._refresh_users()
        count = self.count_differences
        return count(old_codes, block._rows.codes), count(old_errors, block._rows.errors)

    def code_by_beam(self, tables: Tables, rule: Rule, width: int, patience: int) -> Changes:
        """Code the stale rows by a beam of this width, up to ``patience`` levels without a better code."""
        self._block.workers.check_deadline()
        marks = self.array(fingerprints(self._block._atoms.words))
        changes = beam.beam_rows(self.device, self._block._rows, tables, rule, marks, width, patience)
        self._refresh_users()
        return changes

    def code_from_draws(self, draws: list[ColumnDraw], targets: Any, rule: Rule, slack: int) -> None:
        """Code rows from draws of columns, one after the other, and keep a code that costs less."""
        self._block.workers.check_deadline()
        information_sets.code_from_columns(self.device, self._block._rows, targets, rule, draws, slack)
        self._refresh_users()

    def code_exactly(self, rule: Rule) -> Changes:
        """Give every row the best of all codes; for few atoms."""
        self._block.workers.check_deadline()
        self._block._rows.stale[:] = 1
        changes = exact.code_rows_exactly(self.device, self._block._rows, self._atoms, rule)
        self._refresh_users()
        return changes

    def offer(self, tables: Tables, rule: Rule) -> Words:
        """Return the rows that would gain from each of these atoms, added alone: bits of shape (atoms, rows)."""
        offers = coding.offer_atoms(self.device, self._block._read_rows, tables, rule)
        return self.to_host(self.transposed(offers, tables.n_atoms))

    def nearest(self, patterns: BitMatrix, rule: Rule, uses: NDArray[np.int32]) -> Any:
        """Return, as an array, which pattern alone lowers the cost of each row most, or -1."""
        assert rule.prices is not None
        prices = Prices(rule.prices.bits, uses)
        tables = coding.atom_tables(self.device, patterns.words.copy(), patterns.n_cols, False, prices)
        return coding.find_nearest(self.device, self._block._read_rows, tables, rule._replace(covers=None))

    def subset_codes(self, targets: Any, atoms: Words, max_atoms: int) -> Any:
        """Return codes, as an array, of all atoms that are subsets of each target, or of none if these are too many."""
        m, p = self._block.n_features, len(atoms)
        features = self._features(BitMatrix.from_words(atoms.copy(), m, check=False).to_dense(bool))
        codes = self.xp.empty((len(targets), -(-p // 64)), np.uint64)
        size = rows_at_a_time(self.device, m + 4 * features.shape[1])
        for start in range(0, len(targets), size):
            own = slice(start, start + size)
            within = self.device.matmul(unpacked(self.device, ~targets[own], m), features)[:, :p] == 0
            within &= (within.sum(axis=1) <= max_atoms)[:, np.newaxis]
            codes[own] = rows.packed(self.device, within)
        return codes

    def restore_rows(self, indices: Any, codes: Any, errors: Any) -> None:
        """Set the codes of the rows with these indices, and the errors that they have with them."""
        self._restore(indices, codes, errors)
        self._refresh_users()

    def _restore(self, indices: Any, codes: Any, errors: Any) -> None:
        state = self._block._rows
        rows.restore_rows(self.device, state, self._atoms, indices, codes, errors)

    def removal(self, rule: Rule) -> DeviceRemoval:
        """Return what codes rows without some of the atoms."""
        return DeviceRemoval(self._block, self, rule)

    def _refresh_users(self) -> None:
        """Transpose the codes, which have changed."""
        state = self._block._rows
        state.users[:] = self.transposed(state.codes, self._block.n_atoms)

    @property
    def _atoms(self) -> Any:
        return self.array(self._block._atoms.words)

    @property
    def _covers(self) -> bool:
        return bool(self._block.covers)


def run_in_chunks(run: Callable[[slice], Result], n_rows: int, workers: Workers) -> list[Result]:
    """Return the results of a function of some rows: of all of them, or of chunks if the memory of the device is small.

    Raises
    ------
    DeviceMemoryError
        It is too small for a few rows.
    """
    return _run_in_chunks(run, slice(0, n_rows), workers)


def _run_in_chunks(run: Callable[[slice], Result], rows: slice, workers: Workers) -> list[Result]:
    try:
        with workers.on_device():
            return [run(rows)]
    except DeviceMemoryError:
        if rows.stop - rows.start <= _LEAST_ROWS:
            raise
    assert workers.device is not None
    workers.device.release()
    middle = rows.start + -(-(rows.stop - rows.start) // 128) * 64  # a multiple of 64
    halves = slice(rows.start, middle), slice(middle, rows.stop)
    return [result for half in halves for result in _run_in_chunks(run, half, workers)]


class DeviceRemoval:
    """Codes rows at prices without atoms, on a device."""

    def __init__(self, block: Block, kernels: DeviceKernels, rule: Rule) -> None:
        assert rule.prices is not None
        self._block, self._kernels, self._rule = block, kernels, rule
        self._tables = kernels.priced(block._atoms.words, rule.prices)

    def changes(
        self, tested: NDArray[np.intp], tests: NDArray[np.intp], indices: NDArray[np.intp]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return by how much errors per feature, added ones, and uses per atom change if rows do without an atom."""
        given = self._block._read_rows, self._tables, self._rule, tested, tests, indices
        return coding.code_without(self._kernels.device, *given)

    def code_without(self, k: int, rows: NDArray[np.intp]) -> None:
        """Code these rows without atom k, which cannot be used from now on."""
        self._block.workers.check_deadline()
        assert self._tables.prices is not None
        self._tables.prices.uses[k] = coding.REFUSED
        kernels = self._kernels
        indices = kernels.array(rows.astype(np.int64))
        coding.code_rows(kernels.device, self._block._rows, self._tables, self._rule, indices=indices)
        kernels._refresh_users()
