"""Row sources: the interface through which learning sees the rows of a table, and rows in memory.

A search needs only two operations: take rows by index, and run a pass over all rows that returns counts. Counts add up
over chunks, so an algorithm is written once and gives the same bits for rows in memory, in a store or on a cluster.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import replace
from functools import reduce
from itertools import repeat
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..engine.counts import Counts
from ..engine.passes import PassSpec, run_pass
from ..errors import InputError, Parameter
from ..model.complete_rows import MemberCounts, describe_rows
from ..parallel import Workers
from ..sparse_bits import Bits, SparseBits, is_smaller_sparse, packed
from .budget import MemoryBudget, bytes_of, chunk_rows


class PartialPass(NamedTuple):
    """An unfinished pass: the rows before ``next_row`` are counted, and their codes are kept."""

    next_row: int
    counts: Counts


class PassRun(NamedTuple):
    """The place of a pass in a fit, and when it must end."""

    number: int = 1  # identifies its codes in a later process
    partial: PartialPass | None = None  # the part of it that an earlier process completed
    save: Callable[[PartialPass], None] | None = None  # called now and then, if the source can resume a pass
    deadline: float = float("inf")  # a time of `time.perf_counter`, after which OutOfTime is raised


ONLY_PASS = PassRun()


class RowSource(ABC):
    """The rows of a table, wherever they are.

    The codes that a pass returns have a type of the source's choice; they are only passed to its next pass.
    """

    n_rows: int
    n_features: int
    in_memory: Bits | None = None  # all rows, if they are in memory

    @abstractmethod
    def ones(self) -> SparseBits | None:
        """Return all rows by their ones, or None if these are many, some cells are unknown, or the table is narrow.

        Raises MemoryLimitError if a search of them does not fit into the memory limit.
        """

    def max_search_rows(self, least: int, by_windows: bool) -> int | None:
        """Return how many rows can be searched within the memory limit, or None if the user has set no limit.

        Raises MemoryLimitError if these are fewer than ``least``. A search ``by_windows`` of columns takes less memory.
        """
        return None

    @abstractmethod
    def take(self, rows: NDArray[np.int64]) -> BitMatrix:
        """Return the rows with these indices, which are in increasing order."""

    @abstractmethod
    def run_pass(self, spec: PassSpec, codes: Any = None, run: PassRun = ONLY_PASS) -> tuple[Any, Counts]:
        """Run a pass over all rows, from the codes that the previous one returned; return its codes and counts."""

    @abstractmethod
    def count_members(self, spec: PassSpec) -> MemberCounts:
        """Count the rows that have all features of the atoms of a pass, or all but one, and hash all rows."""

    @abstractmethod
    def fingerprint(self) -> str:
        """Return a hash that identifies the rows."""

    def load_codes(self, number: int, n_atoms: int) -> Any | None:
        """Return the codes of a pass of an earlier process, or None if they were not kept."""
        return None

    def discard_codes(self, keep: set[int]) -> None:
        """Discard the codes of all passes but these, unless they are freed with their last reference."""
        return None


class MemoryRows(RowSource):
    """The rows of a table in memory. The codes of a pass are a BitMatrix.

    ``max_memory`` is a limit in bytes for the table, codes and counts, or None.
    """

    def __init__(self, data: Bits, workers: Workers, max_memory: int | None = None) -> None:
        self.n_rows, self.n_features = data.shape
        self.in_memory = data
        self._data, self._workers = data, workers
        self._budget: MemoryBudget | None = None
        if max_memory is not None:
            has_unknown, held = data.n_unknown > 0, bytes_of(data)
            on_device = workers.device is not None
            self._budget = MemoryBudget(max_memory, data.n_cols, workers.n_at_once, 0, has_unknown, held, on_device)

    def ones(self) -> SparseBits | None:
        """Return all rows by their ones, or None if these are many, some cells are unknown, or the table is narrow."""
        data = self._data
        if data.n_unknown or not is_smaller_sparse(data.shape, n_ones := data.count()):
            return None
        if self._budget is not None:
            self._budget.check_ones(self.n_rows, n_ones)
        return SparseBits.from_bits(data) if isinstance(data, BitMatrix) else data

    def max_search_rows(self, least: int, by_windows: bool) -> int | None:
        """Return how many rows can be searched within the memory limit, or None if there is none."""
        return None if self._budget is None else self._budget.search_rows(least, by_windows)

    def take(self, rows: NDArray[np.int64]) -> BitMatrix:
        """Return the rows with these indices."""
        return packed(self._data[rows])

    def run_pass(
        self, spec: PassSpec, codes: BitMatrix | None = None, run: PassRun = ONLY_PASS
    ) -> tuple[BitMatrix, Counts]:
        """Run a pass over all rows and return its codes and counts."""
        size = self._workers.chunk_rows or self._chunk_rows(spec, self._workers.device is not None)
        before = repeat(None) if codes is None else row_chunks(codes, size)
        chunks = zip(row_chunks(self._data, size), before, strict=codes is not None)
        words, row = np.empty((self.n_rows, -(-spec.atoms.n_rows // 64)), np.uint64), 0
        total = Counts.none(*spec.atoms.shape, spec.voted)
        for after, counts in run_pass_on_chunks(chunks, spec, replace(self._workers, deadline=run.deadline)):
            words[row : row + len(after)] = after.words
            row += len(after)
            total = total.add(counts)
        return BitMatrix.from_words(words, spec.atoms.n_rows, check=False), total

    def _chunk_rows(self, spec: PassSpec, on_device: bool) -> int:
        """Return the number of rows per chunk of a pass."""
        return chunk_rows(self.n_features, on_device) if self._budget is None else pass_rows(self._budget, spec)

    def count_members(self, spec: PassSpec) -> MemberCounts:
        """Count the rows that have all features of the atoms of a pass, or all but one, and hash all rows."""
        return describe_chunks(row_chunks(self._data, self._chunk_rows(spec, False)), spec, self._workers)

    def fingerprint(self) -> str:
        """Return a hash that identifies the rows."""
        if isinstance(self._data, SparseBits):
            return fingerprint_of(np.array(self._data.shape), self._data.indptr, self._data.indices.astype(np.int64))
        unknown = self._data.unknown
        return fingerprint_of(self._data.words, *(() if unknown is None or not unknown.count() else (unknown.words,)))


def row_chunks(data: Bits, n_rows: int) -> Iterator[BitMatrix]:
    """Yield the rows in chunks of this size; the last one may be smaller."""
    return (packed(data[start : start + n_rows]) for start in range(0, len(data), n_rows))


def run_pass_on_chunks(
    chunks: Iterable[tuple[BitMatrix, BitMatrix | None]], spec: PassSpec, workers: Workers
) -> Generator[tuple[BitMatrix, Counts]]:
    """Run a pass on chunks of rows with their previous codes; yield codes and counts in order.

    Each thread has a chunk, or a group of the atoms of the same chunk.
    """
    if spec.is_split:
        return (run_pass(*chunk, spec, workers) for chunk in chunks)
    return workers.map_stream(lambda own, chunk: run_pass(*chunk, spec, own), chunks)


def describe_chunks(chunks: Iterable[BitMatrix], spec: PassSpec, workers: Workers) -> MemberCounts:
    """Return the counts of `describe_rows` with the atoms of a pass, on the host."""
    own = workers.without_device
    return reduce(add, own.map_stream(lambda own, chunk: describe_rows(chunk, spec.atoms, own, spec.bias), chunks))


def pass_rows(budget: MemoryBudget, spec: PassSpec) -> int:
    """Return the number of rows per chunk of a pass."""
    return budget.chunk_rows(spec.atoms.n_rows, True, spec.n_listed, spec.largest_group if spec.is_split else None)


def init_of_rows(init: Any, n_rows: int, take: Callable[[BitMatrix], BitMatrix]) -> Any:
    """Return the start of a search of rows that are taken from all rows: initial codes, if any, are taken alike."""
    if not isinstance(init, tuple) or len(init) != 2 or init[1] is None:
        return init
    codes = BitMatrix.from_any(init[1], name="init (codes)")
    if len(codes) != n_rows:
        raise InputError("the codes in ", Parameter("init"), f" have {len(codes)} rows, but X has {n_rows}")
    return init[0], take(codes)


def fingerprint_of(*arrays: NDArray[Any]) -> str:
    """Return a hash that identifies the contents of arrays."""
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
