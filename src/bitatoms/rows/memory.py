"""Rows in memory, and what all row sources share: passes over chunks, and joining chunks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix, stack_rows
from ..engine.counts import Counts
from ..engine.pass_spec import PassSpec
from ..engine.row_pass import run_pass
from ..parallel import Workers
from ..sparse_bits import Bits, SparseBits, is_smaller_sparse, packed
from .budget import MemoryBudget, bytes_of, chunk_rows
from .source import PartialPass, SavePartial


class MemoryRows:
    """The rows of a table in memory (a `RowSource`). The codes of a pass are a list of one matrix per chunk.

    ``max_memory`` is a limit in bytes for the table, codes and counts, or None.
    """

    def __init__(self, data: Bits, workers: Workers, max_memory: int | None = None) -> None:
        self.n_rows, self.n_features = data.shape
        self.in_memory: Bits | None = data
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
        self,
        spec: PassSpec,
        codes: list[BitMatrix] | None = None,
        number: int = 1,
        partial: PartialPass | None = None,
        save: SavePartial | None = None,
        deadline: float = float("inf"),
    ) -> tuple[list[BitMatrix], Counts]:
        """Run a pass over all rows and return its codes and counts."""
        size = self._workers.chunk_rows or self._chunk_rows(spec)
        if codes and len(codes[0]) != min(size, self.n_rows):  # the size depends on the number of atoms
            codes = list(row_chunks(stack_rows(codes, codes[0].n_cols), size))
        chunks = paired_chunks(self._data, codes, size)
        return collect(run_pass_on_chunks(chunks, spec, replace(self._workers, deadline=deadline)), spec)

    def _chunk_rows(self, spec: PassSpec) -> int:
        """Return the number of rows per chunk of a pass."""
        if self._budget is None:
            return chunk_rows(self.n_features, self._workers.device is not None)
        return pass_rows(self._budget, spec)

    def fingerprint(self) -> str:
        """Return a hash that identifies the rows."""
        if isinstance(self._data, SparseBits):
            return fingerprint_of(np.array(self._data.shape), self._data.indptr, self._data.indices.astype(np.int64))
        unknown = self._data.unknown
        return fingerprint_of(self._data.words, *(() if unknown is None or not unknown.count() else (unknown.words,)))

    def load_codes(self, number: int, n_atoms: int) -> None:
        """Return None: codes in memory do not outlive the process."""
        return None

    def discard_codes(self, keep: set[int]) -> None:
        """Do nothing: the memory is freed with the last reference."""


def row_chunks(data: Bits, n_rows: int) -> Iterator[BitMatrix]:
    """Yield the rows in chunks of this size; the last one may be smaller."""
    return (packed(data[start : start + n_rows]) for start in range(0, len(data), n_rows))


def paired_chunks(
    data: Bits, codes: Iterable[BitMatrix] | None, n_rows: int
) -> Iterator[tuple[BitMatrix, BitMatrix | None]]:
    """Yield the rows in chunks, each with its codes of the previous pass."""
    chunks = row_chunks(data, n_rows)
    return zip(chunks, repeat(None)) if codes is None else zip(chunks, codes, strict=True)


def run_pass_on_chunks(
    chunks: Iterable[tuple[BitMatrix, BitMatrix | None]], spec: PassSpec, workers: Workers
) -> Iterator[tuple[BitMatrix, Counts]]:
    """Run a pass on chunks of rows with their previous codes; yield codes and counts in order.

    Each thread has a chunk, or a group of the atoms of the same chunk.
    """
    if spec.is_split:
        return (run_pass(*chunk, spec, workers) for chunk in chunks)
    return workers.map_stream(lambda own, chunk: run_pass(*chunk, spec, own), chunks)


def pass_rows(budget: MemoryBudget, spec: PassSpec) -> int:
    """Return the number of rows per chunk of a pass."""
    return budget.chunk_rows(spec.atoms.n_rows, True, spec.n_listed, spec.largest_group if spec.is_split else None)


def collect(results: Iterable[tuple[BitMatrix, Counts]], spec: PassSpec) -> tuple[list[BitMatrix], Counts]:
    """Return the codes of all chunks as a list, and the sum of their counts."""
    codes: list[BitMatrix] = []
    total = Counts.none(*spec.atoms.shape, spec.voted, spec.atoms.count())
    for chunk_codes, counts in results:
        codes.append(chunk_codes)
        total = total.add(counts)
    return codes, total


def fingerprint_of(*arrays: NDArray[Any]) -> str:
    """Return a hash that identifies the contents of arrays."""
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
