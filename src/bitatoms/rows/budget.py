"""Chunk sizes: how many rows are processed together, by default and within a memory limit."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Integral
from typing import Any

from ..bits import BitMatrix
from ..engine.counts import MAX_VOTES, lists_votes
from ..engine.passes import PassSpec
from ..engine.row_state import lanes_of
from ..errors import InputError, Parameter
from ..formatting import counted
from ..model.model import Model
from ..sparse_bits import Bits

DEFAULT_LIMIT, NO_LIMIT = 512 << 20, 1 << 62  # bytes

_CHUNK_BYTES = 1 << 22  # packed rows of a chunk
_MIN_CHUNK_ROWS = 1 << 10  # the counts of a chunk take memory too, whatever its size
_MAX_CHUNK_ROWS = 1 << 15  # Ctrl-C waits for the chunks in progress
_DEVICE_BYTES, _MAX_DEVICE_ROWS = 1 << 26, 1 << 21  # the same for a device
_RUNNING_FACTOR = 8  # memory of a chunk in progress per byte of its rows (measured: 4.5 under XOR)
_WAITING_CHUNKS = 4  # read or finished, and not in progress
# Memory of a search per byte of its rows, as a whole or by windows of columns; more threads take more, but must not
# change the result.
SEARCH_FACTOR, _WINDOWS_FACTOR = 14, 4
_ONES_BYTES, _BYTES_PER_ONE, _BYTES_PER_LINE = 96 << 20, 32, 16  # of a search by ones; per one; per row and column
_READ_FACTOR = 3  # memory of a read per byte: compressed, decompressed and concatenated
_CACHED_PASSES = 3  # whose codes are kept: this pass, the previous one, the best one
_PREFIXES = ("", "k", "m", "g", "t")
_AMOUNT = re.compile(
    r"(?P<number>\d+\.?\d*|\.\d+)\s*(?P<prefix>[kmgt]?)(?P<binary>(?<=[a-z])i)?b?", re.IGNORECASE | re.ASCII
)


def chunk_rows(n_features: int, on_device: bool = False) -> int:
    """Return the default number of rows per chunk, a multiple of 64; a device processes more of them at a time."""
    n_bytes, most = (_DEVICE_BYTES, _MAX_DEVICE_ROWS) if on_device else (_CHUNK_BYTES, _MAX_CHUNK_ROWS)
    fitting = n_bytes // max(1, -(-n_features // 64) * 8) // 64 * 64
    return min(most, max(_MIN_CHUNK_ROWS, fitting))


class MemoryLimitError(InputError):
    """Some work does not fit into ``max_memory``."""


@dataclass(frozen=True)
class MemoryBudget:
    """A memory limit in bytes for rows, codes and counts, and the chunk sizes that keep to it.

    Rows with unknown cells take twice the memory. Python, its libraries and the compiled kernels take up to 350 MB in
    addition.
    """

    limit: int
    n_features: int
    n_threads: int
    read_bytes: int
    has_unknown: bool = False
    held: int = 0  # bytes of the table, if it is in memory
    on_device: bool = False  # rows are processed on a device

    def chunk_rows(
        self,
        n_atoms: int,
        counts_votes: bool = True,
        n_listed: int | None = None,
        largest_group: tuple[int, int] | None = None,
    ) -> int:
        """Return the number of rows per chunk for this many atoms; raise MemoryLimitError if not even 64 rows fit.

        Passes of a fit count the votes of the users of each atom on each feature, or on ``n_listed`` bits of atoms;
        rows that are only coded have none. Where rows are coded with groups of atoms, ``largest_group`` is the largest
        number of atoms, and of columns, of a group.
        """
        fixed, per_row = self._pass_bytes(n_atoms, counts_votes, n_listed, largest_group)
        fitting = (self.limit - self.held - fixed) // per_row // 64 * 64
        if fitting < 64:
            task = f"{counted(n_atoms, 'atom')} and {counted(self.n_threads, 'thread')}"
            raise self._too_small(fixed + 64 * per_row, task)
        return min(chunk_rows(self.n_features, self.on_device), int(fitting))

    def pass_rows(self, spec: PassSpec) -> int:
        """Return the number of rows per chunk of a pass."""
        return self.chunk_rows(spec.atoms.n_rows, True, spec.n_listed, spec.largest_group if spec.is_split else None)

    def coding_rows(self, model: Model) -> int:
        """Return the number of rows per chunk that a model codes, without votes."""
        return self.chunk_rows(model.atoms.n_rows, counts_votes=False, largest_group=model.pass_spec.largest_group)

    def search_rows(self, least: int, by_windows: bool = False) -> int:
        """Return how many rows can be searched within the limit; raise MemoryLimitError if fewer than ``least``."""
        self.check_search(least, by_windows)
        fixed = self._search_bytes(0, by_windows)
        return (self.limit - self.held - fixed) // (self._search_bytes(1, by_windows) - fixed)

    def check_ones(self, n_rows: int, n_ones: int) -> None:
        """Raise MemoryLimitError if a search of a table by its ones does not fit into the limit.

        A sample, packed, would take less, but show few of the patterns that are in few rows.
        """
        needed = _ONES_BYTES + _BYTES_PER_ONE * n_ones + _BYTES_PER_LINE * (n_rows + self.n_features)
        if needed > self.limit - self.held:
            raise self._too_small(
                needed, f"a search of {n_rows} rows by their ones", ", or set ", Parameter("search_rows")
            )

    def needed(self, n_searched: int, n_atoms: int) -> int:
        """Return the least limit with which this many rows can be searched, and all rows coded with this many atoms."""
        fixed, per_row = self._pass_bytes(n_atoms)
        return max(self._search_bytes(n_searched), fixed + 64 * per_row)

    def _pass_bytes(
        self,
        n_atoms: int,
        counts_votes: bool = True,
        n_listed: int | None = None,
        largest_group: tuple[int, int] | None = None,
    ) -> tuple[int, int]:
        """Return the bytes of a pass: a fixed number, and those per row of a chunk.

        The first is that of reads, the lookup tables of atoms, the counts of all chunks in flight, and their sum.
        """
        row, running = self._row_bytes(n_atoms), _RUNNING_FACTOR * self.n_threads
        n_coded, n_columns = largest_group or (n_atoms, self.n_features)
        per_row = (running + _WAITING_CHUNKS) * row
        n_chunks = self.n_threads
        if largest_group is not None:  # threads share a chunk
            of_group = replace(self, n_features=n_columns)._row_bytes(n_coded)
            per_row = (self.n_threads + _WAITING_CHUNKS) * row + running * of_group
            n_chunks = 1
        tables = -(-n_columns // 8) * lanes_of(n_coded) + 4 * n_coded * lanes_of(n_coded)
        fixed = _READ_FACTOR * self.read_bytes + self.n_threads * tables
        if counts_votes and n_listed is None and lists_votes(n_atoms, self.n_features):
            n_listed = MAX_VOTES  # approximately, as long as the atoms are not known
        if n_listed is not None:
            return fixed + (2 * n_chunks + 4) * 8 * n_listed + 32 * n_listed, per_row
        votes = n_atoms * self.n_features if counts_votes else 0
        return fixed + self.n_threads * 24 * votes + (self.n_threads + 4) * 16 * votes, per_row

    def _search_bytes(self, n_rows: int, by_windows: bool = False) -> int:
        """Return the bytes of a search of this many rows."""
        factor = _WINDOWS_FACTOR if by_windows else SEARCH_FACTOR
        return factor * n_rows * self._bits_bytes + _READ_FACTOR * self.read_bytes

    def _row_bytes(self, n_atoms: int) -> int:
        """Return the bytes of a row with its codes before and after a pass, and a flag."""
        return self._bits_bytes + 16 * -(-n_atoms // 64) + 1

    @property
    def _bits_bytes(self) -> int:
        """The bytes of a packed row, with its unknown cells."""
        return (2 if self.has_unknown else 1) * 8 * -(-self.n_features // 64)

    def holds_codes(self, n_rows: int, n_atoms: int) -> bool:
        """Return whether the codes of all cached passes fit into a quarter of the limit."""
        return _CACHED_PASSES * n_rows * -(-n_atoms // 64) * 8 <= self.limit // 4

    def check_search(self, n_rows: int, by_windows: bool = False) -> None:
        """Raise MemoryLimitError if a search of this many rows does not fit into the limit."""
        if (needed := self._search_bytes(n_rows, by_windows)) > self.limit - self.held:
            raise self._too_small(
                needed, f"a search of {n_rows} rows", ", or pass a smaller ", Parameter("search_rows")
            )

    def _too_small(self, needed: int, task: str, *alternative: str | Parameter) -> MemoryLimitError:
        return MemoryLimitError(
            Parameter("max_memory", self.limit),
            f" is too small for {task} with {self.n_features} features; pass at least {self.held + needed} bytes "
            f"({-(-(self.held + needed) // 2**20)} MiB)",
            *alternative,
        )


def bytes_of(data: Bits) -> int:
    """Return the bytes of a table in memory."""
    if isinstance(data, BitMatrix):
        return data.words.nbytes * (2 if data.unknown is not None else 1)
    return data.indptr.nbytes + data.indices.nbytes


def coding_rows(data: Bits, model: Model, max_memory: int | None) -> int | None:
    """Return how many rows of a table in memory a model may code at a time within a limit, or None without one."""
    if max_memory is None:
        return None
    held = bytes_of(data) + len(data) * -(-model.atoms.n_rows // 64) * 8
    return MemoryBudget(max_memory, data.n_cols, 1, 0, data.n_unknown > 0, held).coding_rows(model)


def given_memory_limit(max_memory: Any) -> int | None:
    """Return a memory limit in bytes, or None if the user has set none."""
    return None if max_memory is None else parse_memory_limit(max_memory)


def parse_memory_limit(max_memory: Any) -> int:
    """Return a memory limit in bytes: from a number, from text such as "500 MB" or "2 GiB", or 512 MiB for None."""
    if max_memory is None:
        return DEFAULT_LIMIT
    if isinstance(max_memory, str):
        return _parse_amount(max_memory)
    if not isinstance(max_memory, Integral) or isinstance(max_memory, bool):
        raise TypeError(f"max_memory must be a number of bytes, text such as '500 MB', or None, not {max_memory!r}")
    if max_memory < 1:
        raise InputError(Parameter("max_memory"), f" must be a positive number of bytes, not {max_memory}")
    return int(max_memory)


def _parse_amount(text: str) -> int:
    """Return the bytes of an amount with a unit: an MB is 10**6 bytes, a MiB 2**20."""
    match = _AMOUNT.fullmatch(text.strip())
    n_bytes = 0
    if match:
        unit = (1024 if match["binary"] else 1000) ** _PREFIXES.index(match["prefix"].lower())
        n_bytes = int(Fraction(match["number"]) * unit)
    if n_bytes < 1:
        raise InputError(
            Parameter("max_memory"), f" must be an amount such as '500 MB', '2 GiB' or 500000000 (bytes), not {text!r}"
        )
    return n_bytes
