"""DeviceRows: rows in the memory of a device, processed there; `run_in_chunks`, where that memory is small."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.gpu import coding, rows
from ..kernels.gpu.device import Device, DeviceMemoryError
from ..kernels.gpu.rows import joint_counts, rows_at_a_time, unpacked
from ..kernels.structs import AtomArrays, CodingRule, ColumnDraw, Prices
from ..parallel import Workers
from .host_rows import fingerprints
from .row_state import Changes, RowState, Tables, Votes, Words

_CHUNK_ROWS = 1 << 20  # that are coded again at a time, while the codes that they have are kept
_LEAST_ROWS = 128  # that a device must have memory for

Result = TypeVar("Result")


class DeviceRows(RowState):
    """Rows in the memory of the device of their workers. The methods are those of `HostRows`, with the same results."""

    min_chunk_rows = _CHUNK_ROWS

    @property
    def device(self) -> Device:
        """The device."""
        assert self.workers.device is not None
        return self.workers.device

    @property
    def xp(self) -> Any:
        """The array library of the device."""
        return self.device.xp

    def asarray(self, words: Any) -> Any:
        """Return an array on the device, to read it."""
        return self.device.asarray(words)

    def _table(self, words: Words) -> Any:
        return self.device.resident(words)

    def _data(self, data: BitMatrix, atoms: Words, bias: BitMatrix) -> Any:
        words, unknown = self.targets(atoms) ^ self.asarray(bias.words), self._read.unknown
        return words & ~unknown if len(unknown) else words

    def to_host(self, array: Any) -> NDArray[Any]:
        """Return an array on the host."""
        return self.device.to_host(array)

    copy_to_host = to_host

    def transposed(self, words: Any, n_cols: int) -> Any:
        """Return the transpose of packed rows of ``n_cols`` bits."""
        return rows.transposed(self.device, words, n_cols)

    def _row_weights(self, words: Any) -> Any:
        return rows.row_weights(self.device, words)

    def _column_weights(self, words: Any) -> NDArray[np.int64]:
        return self.to_host(rows.column_weights(self.device, words, self.n_features))

    def _count_differences(self, words: Any, others: Any) -> int:
        return rows.count_differences(self.device, words, others)

    # Products of codes and atoms.

    def _multiply(self, codes: Any, atoms: Words, unknown: Any, out: Any) -> None:
        rows.multiply(self.device, codes, self.asarray(atoms), unknown, bool(self.covers), out)

    def cover(self, atoms: Words) -> None:
        """Set which bits are covered once and twice, from codes and atoms."""
        if self.covers:
            state, words = self.arrays, self.asarray(atoms)
            rows.multiply(self.device, state.codes, words, state.unknown, True, None, state.covered, state.twice)

    def follow_flips(self, atoms: Words, flips: Words, flipping: Words) -> int:
        """Update rows after bits of the atoms were flipped; return the number of changed error bits."""
        on_device = self.asarray(atoms), self.asarray(flips), self.asarray(flipping)
        return rows.follow_flips(self.device, self.arrays, *on_device, bool(self.covers))

    # Counts.

    def votes(self, atoms: AtomArrays, first: int, last: int) -> Votes:
        """Return the votes on the atoms first..last, free and wrong."""
        users = self.transposed(self._read.users[first:last], self.n_rows)
        return self._votes(users, atoms.words[first:last])

    def votes_of(self, users: Words) -> Votes:
        """Return the votes on new atoms without ones, each with these rows as its users."""
        codes = self.transposed(self.asarray(users), self.n_rows)
        return self._votes(codes, np.zeros((len(users), self.n_words), np.uint64))

    def _votes(self, codes: Any, atoms: Words) -> Votes:
        """Return the votes on atoms by the rows that use them: packed, one row for each row."""
        state, p, m = self._read, len(atoms), self.n_features

        def count(words: Any) -> NDArray[np.int32]:
            return self.to_host(joint_counts(self.device, codes, p, words, m)).astype(np.int32)

        if not self.covers:
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
        codes, p = self._read.codes, self.n_atoms
        return np.tril(self.to_host(joint_counts(self.device, codes, p, codes, p)).astype(np.int32))

    def row_costs(self, prices: Prices) -> Any:
        """Return the cost of each row at these prices, as an array."""
        return coding.price_rows(self.device, self._read, prices, bool(self.covers))

    def improvable(self, rule: CodingRule) -> NDArray[np.bool_]:
        """Return which rows have a fixable error and may use one more atom."""
        return self.to_host(rows.improvable(self.device, self._read, rule)).astype(np.bool_)

    def errors_fixed_by(self, atoms: Words) -> NDArray[np.int64]:
        """Return how many errors each candidate would fix as an additional atom, used where it helps."""
        return coding.rate_atoms(self.device, self._read, self._tables(atoms), CodingRule(self.covers, False, 0, 0))

    # Coding.

    def _tables(self, atoms: Words, prices: Prices | None = None) -> Tables:
        """Return the tables of these atoms for coding at these prices, or by numbers of errors."""
        return coding.atom_tables(self.device, atoms, self.n_features, bool(self.covers), prices)

    def tables(self, atoms: AtomArrays) -> Tables:
        """Return the tables of the atoms for coding by numbers of errors; all rows become stale."""
        atoms.changed[:], atoms.stale[:] = 0, 1
        self.arrays.stale[:] = 1
        return self._tables(atoms.words)

    def priced(self, atoms: Words, prices: Prices) -> Tables:
        """Return the tables of these atoms for coding at these prices."""
        return self._tables(atoms, prices)

    def code_stale(self, tables: Tables, rule: CodingRule) -> Changes:
        """Code the stale rows greedily from their codes, by numbers of errors."""
        return self._code(tables, rule, stale_only=True)

    def code_at_prices(self, tables: Tables, rule: CodingRule, from_scratch: bool = False) -> Changes:
        """Code all rows greedily at prices: from their codes, or from no atoms, which is kept where it costs less."""
        if not from_scratch:
            return self._code(tables, rule)
        self.workers.check_deadline()
        prices, n_dropped = rule.prices, 0
        assert prices is not None
        if len(prices.forbidden):  # codes that add ones where none may be added are not kept; errors are not counted
            n_dropped, _ = coding.code_rows(self.device, self.arrays, tables, rule._replace(residual_limit=1 << 60))

        def code(chunk: DeviceRows) -> None:
            coding.code_rows(self.device, chunk.arrays, tables, rule)

        codes, errors = self.keep_cheaper(tables.words, prices, code, 0, rule.residual_limit)
        return n_dropped + codes, errors

    def code_by_beam(self, tables: Tables, rule: CodingRule, width: int, patience: int) -> Changes:
        """Code the stale rows by a beam of this width, up to ``patience`` levels without a better code."""
        self.workers.check_deadline()
        marks = self.asarray(fingerprints(self.to_host(tables.words)))
        changes = coding.beam_rows(self.device, self.arrays, tables, rule, marks, width, patience)
        self._refresh_users()
        return changes

    def code_from_draws(
        self, atoms: AtomArrays, draws: list[ColumnDraw], targets: Any, rule: CodingRule, slack: int
    ) -> None:
        """Code rows from draws of columns, one after the other, and keep a code that costs less."""
        self.workers.check_deadline()
        coding.code_from_columns(self.device, self.arrays, targets, rule, draws, slack)
        self._refresh_users()

    def code_exactly(self, atoms: AtomArrays, rule: CodingRule) -> Changes:
        """Give every row the best of all codes; for few atoms."""
        self.workers.check_deadline()
        self.arrays.stale[:] = 1
        changes = coding.code_rows_exactly(self.device, self.arrays, self.asarray(atoms.words), rule)
        self._refresh_users()
        return changes

    def offer(self, tables: Tables, rule: CodingRule) -> Words:
        """Return the rows that would gain from each of these atoms, added alone: bits of shape (atoms, rows)."""
        offers = coding.offer_atoms(self.device, self._read, tables, rule)
        return self.to_host(self.transposed(offers, tables.n_atoms))

    def _nearest(self, patterns: BitMatrix, rule: CodingRule, uses: NDArray[np.int32]) -> Any:
        assert rule.prices is not None
        prices = Prices(rule.prices.bits, uses)
        tables = coding.atom_tables(self.device, patterns.words.copy(), patterns.n_cols, False, prices)
        return coding.find_nearest(self.device, self._read, tables, rule._replace(covers=False))

    def subset_codes(self, atoms: Words, max_atoms: int) -> Any:
        """Return codes, as an array, of all atoms that are subsets of each row, or of none if these are too many."""
        targets, m, p = self._read.errors | self._read.covered, self.n_features, len(atoms)
        features = np.zeros((-(-m // 8) * 8, -(-p // 8) * 8), np.float16)  # a factor of products
        features[:m, :p] = BitMatrix.from_words(atoms.copy(), m, check=False).to_dense(bool).T
        on_device, codes = self.asarray(features), self.xp.empty((len(targets), -(-p // 64)), np.uint64)
        size = rows_at_a_time(self.device, m + 4 * features.shape[1])
        for start in range(0, len(targets), size):
            own = slice(start, start + size)
            within = self.device.matmul(unpacked(self.device, ~targets[own], m), on_device)[:, :p] == 0
            within &= (within.sum(axis=1) <= max_atoms)[:, np.newaxis]
            codes[own] = rows.packed(self.device, within)
        return codes

    def _code(self, tables: Tables, rule: CodingRule, stale_only: bool = False, indices: Any = None) -> Changes:
        """Code rows from their codes: all, those with these indices, or the stale ones."""
        self.workers.check_deadline()
        changes = coding.code_rows(self.device, self.arrays, tables, rule, stale_only, indices)
        self._refresh_users()
        return changes

    def _put_rows(self, atoms: Words, indices: Any, codes: Any, errors: Any) -> None:
        rows.restore_rows(self.device, self.arrays, self.asarray(atoms), indices, codes, errors)

    def _refresh_users(self) -> None:
        self.arrays.users[:] = self.transposed(self._read.codes, self.n_atoms)


def run_in_chunks(run: Callable[[slice], Result], n_rows: int, workers: Workers, start: int = 0) -> list[Result]:
    """Return the results of a function of rows from ``start`` on: of all, or of chunks if a device has little memory.

    Raises
    ------
    DeviceMemoryError
        It is too small for a few rows.
    """
    try:
        with workers.on_device():
            return [run(slice(start, start + n_rows))]
    except DeviceMemoryError:
        if n_rows <= _LEAST_ROWS:
            raise
    assert workers.device is not None
    workers.device.release()
    half = -(-n_rows // 128) * 64  # a multiple of 64
    first = run_in_chunks(run, half, workers, start)
    return first + run_in_chunks(run, n_rows - half, workers, start + half)
