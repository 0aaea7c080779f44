"""Row sources: the interface through which learning sees the rows of a table, and rows in memory.

A search needs only two operations: take rows by index, and run a pass over all rows that returns counts. Counts add up
over chunks, so an algorithm is written once and gives the same bits for rows in memory, in a store or on a cluster.
"""

from __future__ import annotations

import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import replace
from functools import reduce
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
from ..sparse_bits import Bits, SparseBits, is_smaller_sparse, packed, sparse
from .budget import NO_LIMIT, MemoryBudget, bytes_of
from .code_file import CodeFile


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
Codes = BitMatrix | CodeFile


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


class ChunkedRows(RowSource):
    """Rows that this process reads in order, in chunks, while threads process earlier chunks.

    The codes of a pass are a BitMatrix, or in a file if they are large or must survive the process.
    """

    save_interval = 30.0  # seconds between two calls of ``save`` during a pass

    def __init__(self, shape: tuple[int, int], workers: Workers, budget: MemoryBudget, is_limited: bool) -> None:
        self.n_rows, self.n_features = shape
        self._workers, self._budget = workers, budget
        self._is_limited = is_limited  # by the user
        self._is_persistent = False  # whether another process can resume from the files of codes

    @abstractmethod
    def _chunks(self, n_rows: int, start: int = 0) -> Iterator[BitMatrix]:
        """Yield the rows from ``start`` on, in chunks of this size; the last one may be smaller."""

    def _code_file(self, number: int, n_atoms: int) -> CodeFile | None:
        """Return a file for the codes of a pass; None if they are kept in memory."""
        return None

    def max_search_rows(self, least: int, by_windows: bool) -> int | None:
        """Return how many rows can be searched within the memory limit, or None if the user has set none."""
        return self._budget.search_rows(least, by_windows) if self._is_limited else None

    def run_pass(self, spec: PassSpec, codes: Codes | None = None, run: PassRun = ONLY_PASS) -> tuple[Any, Counts]:
        """Run a pass over all rows and return its codes and counts."""
        size = self._workers.chunk_rows or self._budget.pass_rows(spec)
        workers = replace(self._workers, deadline=run.deadline)
        partial, n_atoms = run.partial, spec.atoms.n_rows
        file = self._code_file(run.number, n_atoms)
        row = 0 if file is None else file.begin(partial.next_row if partial else 0)
        words = np.empty((self.n_rows if file is None else 0, -(-n_atoms // 64)), np.uint64)
        total = partial.counts.copy() if partial and row else Counts.none(*spec.atoms.shape, spec.voted)
        chunks = _with_codes(self._chunks(size, row), row, None if spec.kept is None else codes)
        saved_at = time.monotonic()
        with closing(_run_pass_on_chunks(chunks, spec, workers)) as results:
            for after, counts in results:
                if file is None:
                    words[row : row + len(after)] = after.words
                else:
                    file.write(row, after)
                total = total.add(counts)
                row += len(after)
                is_due = time.monotonic() - saved_at >= self.save_interval
                if file is not None and run.save is not None and self._is_persistent and row < self.n_rows and is_due:
                    file.sync()
                    run.save(PartialPass(row, total.copy()))
                    saved_at = time.monotonic()
        if file is None:
            return BitMatrix.from_words(words, n_atoms, check=False), total
        if self._is_persistent:
            file.sync()
        return file, total

    def count_members(self, spec: PassSpec) -> MemberCounts:
        """Count the rows that have all features of the atoms of a pass, or all but one, and hash all rows."""
        size = self._workers.chunk_rows or replace(self._budget, on_device=False).pass_rows(spec)
        own, chunks = self._workers.without_device, self._chunks(size)
        return reduce(add, own.map_stream(lambda own, rows: describe_rows(rows, spec.atoms, own, spec.bias), chunks))


def _with_codes(
    chunks: Iterator[BitMatrix], start: int, codes: Codes | None
) -> Iterator[tuple[BitMatrix, BitMatrix | None]]:
    """Yield chunks of the rows from ``start`` on with their previous codes."""
    for data in chunks:
        yield data, None if codes is None else codes[start : start + len(data)]
        start += len(data)


def _run_pass_on_chunks(
    chunks: Iterator[tuple[BitMatrix, BitMatrix | None]], spec: PassSpec, workers: Workers
) -> Generator[tuple[BitMatrix, Counts]]:
    """Run a pass on chunks of rows with their previous codes; yield codes and counts in order.

    Each thread has a chunk, or a group of the atoms of the same chunk.
    """
    if spec.is_split:
        return (run_pass(*chunk, spec, workers) for chunk in chunks)
    return workers.map_stream(lambda own, chunk: run_pass(*chunk, spec, own), chunks)


class MemoryRows(ChunkedRows):
    """The rows of a table in memory.

    ``max_memory`` is a limit in bytes for the table, codes and counts, or None.
    """

    def __init__(self, data: Bits, workers: Workers, max_memory: int | None = None) -> None:
        has_unknown, held, on_device = data.n_unknown > 0, bytes_of(data), workers.device is not None
        limit = NO_LIMIT if max_memory is None else max_memory
        budget = MemoryBudget(limit, data.n_cols, workers.n_at_once, 0, has_unknown, held, on_device)
        super().__init__(data.shape, workers, budget, max_memory is not None)
        self.in_memory = self._data = data

    def ones(self) -> SparseBits | None:
        """Return all rows by their ones, or None if these are many, some cells are unknown, or the table is narrow."""
        data = self._data
        if data.n_unknown or not is_smaller_sparse(data.shape, n_ones := data.count()):
            return None
        self._budget.check_ones(self.n_rows, n_ones)
        return sparse(data)

    def take(self, rows: NDArray[np.int64]) -> BitMatrix:
        """Return the rows with these indices."""
        return packed(self._data[rows])

    def _chunks(self, n_rows: int, start: int = 0) -> Iterator[BitMatrix]:
        return row_chunks(self._data, n_rows)

    def fingerprint(self) -> str:
        """Return a hash that identifies the rows."""
        if isinstance(self._data, SparseBits):
            return fingerprint_of(np.array(self._data.shape), self._data.indptr, self._data.indices.astype(np.int64))
        unknown = self._data.unknown
        return fingerprint_of(self._data.words, *(() if unknown is None or not unknown.count() else (unknown.words,)))


def row_chunks(data: Bits, n_rows: int) -> Iterator[BitMatrix]:
    """Yield the rows in chunks of this size; the last one may be smaller."""
    return (packed(data[start : start + n_rows]) for start in range(0, len(data), n_rows))


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
