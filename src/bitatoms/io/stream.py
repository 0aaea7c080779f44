"""A table on its way in: where it comes from, how it is to be read, and its rows, block after block."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..table import Names, Picture, Table, first_duplicate
from .errors import FileError, MissingLibrary

ROWS_BITS = 1 << 23  # bits of a block of rows on its way in: a megabyte packed, eight unpacked


class Source(NamedTuple):
    """A file to read."""

    path: Path
    format: str
    name: str  # as the user wrote it, for messages

    def error(self, trouble: str) -> FileError:
        """What is wrong with this file."""
        return FileError(f"{self.name}: {trouble}")

    @contextmanager
    def foreign(self) -> Iterator[None]:
        """Whatever another library raises in here is said in one line, with the name of the file."""
        try:
            yield
        except (FileError, MissingLibrary, MemoryError):
            raise
        except Exception as error:  # other people's parsers raise anything
            said = " ".join(str(error).split()) or type(error).__name__
            raise self.error(f"damaged, or not a file of the format {self.format!r}: {said[:200]}") from error

    def check_size(self, n_rows: int, n_cols: int, by_rows: bool = False) -> None:
        """Refuse a table that, packed, does not fit into the memory of this machine.

        ``by_rows``: its rows come one after the other, so that whoever keeps none of them need not refuse it.
        """
        needed, there = max(n_rows, 1) * max(-(-n_cols // 64), 1) * 8, _memory()
        if n_rows < 0 or n_cols < 0:
            raise self.error(f"says that it has {n_rows} rows and {n_cols} columns")
        if needed > there:
            raise self.error(
                f"{n_rows} rows of {n_cols} columns take {needed / 2**30:.1f} GiB packed, "
                f"and this machine has {there / 2**30:.1f} GiB; take fewer rows or columns"
            )


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file: what counts as a one, where the names are, which part of it; see `bitatoms.read`."""

    binarize: float | None = None
    missing: str = "refuse"
    duplicates: str = "refuse"
    header: bool | None = None
    row_names: bool | None = None
    separator: str | None = None
    layer: str | None = None
    blocks: tuple[int, int] | None = None
    without: tuple[str, ...] = ()


class RowChunk(NamedTuple):
    """Some rows of a table, one after the other."""

    bits: BitMatrix
    names: Sequence[str] | None = None


@dataclass
class TableStream:
    """A table on its way in. ``blocks`` can be gone through once, and raises FileError where the file is wrong."""

    n_cols: int
    chunks: Iterator[RowChunk]
    columns: Sequence[str] | None = None
    picture: Picture | None = None


def collect(source: Source, stream: TableStream, duplicates: str) -> Table:
    """The whole table of a stream."""
    words = np.empty((0, -(-stream.n_cols // 64)), np.uint64)
    names: list[str] | None = []
    filled = 0
    for rows in stream.chunks:
        if rows.names is None:
            names = None
        elif names is not None:
            names.extend(rows.names)
        if not filled:  # often all there is: not copied
            words, filled = rows.bits.words, len(rows.bits)
            continue
        needed = filled + len(rows.bits)
        if needed > len(words):
            words = _enlarged(words, needed)
        words[filled:needed] = rows.bits.words
        filled = needed
    if filled < len(words):
        words.resize((filled, words.shape[1]), refcheck=False)
    bits = BitMatrix.from_words(words, stream.n_cols, check=False)
    columns = None if stream.columns is None else unique(source, stream.columns, duplicates)
    return Table(bits, tuple(names) if names else None, columns, stream.picture)


def _enlarged(words: NDArray[np.uint64], needed: int) -> NDArray[np.uint64]:
    """The rows, with room for a little more than is needed; large arrays are moved by the system, not copied."""
    if not words.flags.writeable or not words.flags.owndata:
        words = words.copy()
    words.resize((needed + needed // 16, words.shape[1]), refcheck=False)
    return words


def check_there(source: Source, names: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse names of columns that are not among these."""
    for name in names:
        if name not in columns:
            near = difflib.get_close_matches(name, columns, 1)
            raise source.error(f"there is no column {name[:40]!r}{f' (is it {near[0][:40]!r}?)' if near else ''}")


def unique(source: Source, names: Sequence[str], duplicates: str) -> Names:
    """Names of columns, all different: refused, or with a number put behind those that come again."""
    twice = first_duplicate(names)
    if twice is None:
        return tuple(names)
    if duplicates == "refuse":
        first, second = [place for place, name in enumerate(names) if name == twice][:2]
        raise source.error(
            f"columns {first + 1} and {second + 1} have the same name {twice[:40]!r}; rename one, "
            'or pass duplicates="number" to have them numbered'
        )
    kept: list[str] = []
    taken = set(names)
    seen: set[str] = set()
    numbers: dict[str, int] = {}  # the last one given: "." may be there a million times
    for name in names:
        new, number = name, numbers.get(name, 1)
        while new in seen or (new != name and new in taken):
            number += 1
            new = f"{name}.{number}"
        numbers[name] = number
        seen.add(new)
        kept.append(new)
    return tuple(kept)


def _memory() -> int:
    """Bytes of memory that this machine has; where it does not tell, as good as no limit."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return 1 << 46
