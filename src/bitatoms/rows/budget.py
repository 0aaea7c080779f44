"""How much memory work on a store may take, and how many of its rows are held at a time so that it does."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import Any

from ..core.block import lanes_of
from .memory import chunk_rows

DEFAULT = 512 << 20  # bytes
_RUNNING = 8  # times what its rows take is what a piece takes while it is worked on (measured: 4.5 under XOR)
_WAITING = 4  # pieces that wait for a thread, are on their way in, or just done
_SEARCHED = 8  # times what its rows take is what a search of them takes
_READ = 3  # times what is read together: as it is on disk, unpacked, and put together
_GENERATIONS = 3  # of codes that are kept: those of the pass, of the one before, of the best
_POWERS = ("", "k", "m", "g", "t")
_AMOUNT = re.compile(
    r"(?P<number>\d+\.?\d*|\.\d+)\s*(?P<power>[kmgt]?)(?P<binary>(?<=[a-z])i)?b?", re.IGNORECASE | re.ASCII
)


@dataclass(frozen=True)
class Memory:
    """A limit in bytes, and what it leaves for pieces of rows.

    It bounds rows, codes and counts; Python, its libraries and the compiled kernels take some 200 MB beside it.
    """

    limit: int
    n_features: int
    n_threads: int
    read_bytes: int

    def chunk_rows(self, n_atoms: int) -> int:
        """How many rows to work on together with so many atoms; a multiple of 64. ValueError where none would fit."""
        row = 8 * (-(-self.n_features // 64) + 2 * -(-n_atoms // 64)) + 1
        in_flight = _RUNNING * self.n_threads + _WAITING
        fixed = _READ * self.read_bytes + self._counts(n_atoms)
        fitting = (self.limit - fixed) // (in_flight * row) // 64 * 64
        if fitting < 64:
            raise too_small(self.limit, fixed + 64 * in_flight * row, f"{n_atoms} atoms in {self.n_threads} threads")
        return min(chunk_rows(self.n_features), int(fitting))

    def _counts(self, n_atoms: int) -> int:
        """Bytes of the votes of all pieces in flight and of their sum, and of the tables of atoms."""
        votes = n_atoms * self.n_features
        tables = -(-self.n_features // 8) * lanes_of(n_atoms) + 4 * n_atoms * lanes_of(n_atoms)
        running = 24 * votes + tables
        return self.n_threads * running + (self.n_threads + 4) * 16 * votes

    def holds_codes(self, n_rows: int, n_atoms: int) -> bool:
        """Whether the codes of some passes take only little of it."""
        return _GENERATIONS * n_rows * -(-n_atoms // 64) * 8 <= self.limit // 4

    def check_search(self, n_rows: int) -> None:
        """ValueError where so many rows cannot be searched within the limit."""
        needed = _SEARCHED * n_rows * -(-self.n_features // 64) * 8 + _READ * self.read_bytes
        if needed > self.limit:
            raise too_small(self.limit, needed, f"a search of {n_rows} rows", "; or pass a smaller search_rows")


def checked(max_memory: Any) -> int:
    """A limit in bytes as a user gave it: a number, or text such as "500 MB" and "2 GiB"; None is 512 MiB."""
    if max_memory is None:
        return DEFAULT
    if isinstance(max_memory, str):
        return _in_bytes(max_memory)
    if not isinstance(max_memory, Integral) or isinstance(max_memory, bool):
        raise TypeError(f"max_memory must be a whole number of bytes, text as in '500 MB', or None, not {max_memory!r}")
    if max_memory < 1:
        raise ValueError(f"max_memory must be a positive number of bytes, not {max_memory}")
    return int(max_memory)


def _in_bytes(text: str) -> int:
    """An amount of memory that is written with its unit; as everywhere, a MB is 10**6 bytes and a MiB 2**20."""
    found = _AMOUNT.fullmatch(text.strip())
    n_bytes = 0
    if found:
        unit = (1024 if found["binary"] else 1000) ** _POWERS.index(found["power"].lower())
        n_bytes = int(Fraction(found["number"]) * unit)
    if n_bytes < 1:
        raise ValueError(f"max_memory must be an amount as in '500 MB', '2 GiB' or 500000000 (bytes), not {text!r}")
    return n_bytes


def too_small(limit: int, needed: int, what: str, also: str = "") -> ValueError:
    """The error of a limit within which something cannot be done."""
    return ValueError(
        f"max_memory={limit} is too small for {what} of so many features: at least {needed} bytes "
        f"({needed / 2**20:.0f} MiB) would do{also}"
    )
