"""Tables as streams: `Source`, the file; `TableStream`, its rows in chunks."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..columns.annotations import Annotations
from ..columns.table import Header, Names, Picture, Table, first_duplicate
from ..errors import Parameter
from ..formatting import CONTROLS_OF_NAMES, escape_name, quoted
from ..sparse_bits import Bits, SparseBits, is_smaller_sparse, packed, stack_bits
from ..system.memory import memory_limit
from .errors import FileError, MissingLibrary
from .limits import FREE_TABLE_BYTES, MAX_TABLE_EXPANSION
from .scratch import Scratch

# Formats whose rows are all read in chunks; as a table grows with what was read, its size is not only a claim.
_STREAMED = ("parquet", "feather", "zarr")
_BYTES_PER_ONE, _BYTES_PER_LINE = 32, 8  # of a sparse table while it is sorted; per row and per column


class Source(NamedTuple):
    """A file to read."""

    path: Path
    format: str
    name: str  # as the user wrote it, for messages
    scratch: Scratch | None = None  # for cells that are not in the order of rows, if the table may exceed memory
    keeps_rows: bool = True  # otherwise the table may be larger than memory, if its format can be read in chunks
    is_transposed: bool = False  # rows and columns are exchanged in memory, which holds the table twice

    @property
    def unit(self) -> str:
        """What messages call a row of a text file or a sheet."""
        return "row" if self.format == "xlsx" else "line"

    def reserving(self, n_bytes: int) -> Self:
        """Return the source with a memory limit that leaves room for names, but at least half of the limit."""
        return self if self.scratch is None else self._replace(scratch=self.scratch.reserving(n_bytes))

    def error(self, *message: object) -> FileError:
        """Return an error about this file; the parts of the message are text, parameters and positions."""
        return FileError(f"{self.name}: ", *message)

    def check_path(self) -> None:
        """Raise if there is no such file, or a folder where a file is expected."""
        if not self.path.exists():
            raise self.error("there is no such file")
        if self.path.is_dir() and self.format not in ("zarr", "10x"):
            raise self.error("this is a folder, not a file")

    @contextmanager
    def catch_library_errors(self) -> Iterator[None]:
        """Raise whatever another library raises in this context as a one-line FileError."""
        try:
            yield
        except (FileError, MissingLibrary, MemoryError, Warning):  # a warning is an error only if the user wants that
            raise
        except Exception as error:  # libraries raise anything on corrupt files
            reason = " ".join(str(error).split()) or type(error).__name__
            raise self.error(f"corrupt, or not a file of the format {self.format!r}: {reason[:200]}") from error

    def check_size(self, n_rows: int, n_cols: int, streamable: bool = False, n_ones: int | None = None) -> None:
        """Raise if the table does not fit into memory.

        ``streamable`` means that the rows are read in chunks, so that a table of which none are kept may be larger.
        ``n_ones`` is the number of ones, if the reader does not pack a wide table with few of them; 0 if it does not
        know the number, and checks the size again before it packs rows.
        """
        if n_rows < 0 or n_cols < 0:
            raise self.error(f"corrupt: it claims to have {n_rows} rows and {n_cols} columns")
        what, packed_size = f"{n_rows} rows of {n_cols} columns", packed_bytes(n_rows, n_cols)
        needed = table_bytes(n_rows, n_cols, n_ones)
        if self.is_transposed:
            needed += table_bytes(n_cols, n_rows, n_ones)
            what += " and their transpose"
        elif not self.keeps_rows and (streamable or self.format in _STREAMED):
            if self.format not in _STREAMED:
                self.check_plausible(packed_size, n_rows, n_cols, memory_limit())
            return
        elif needed < packed_size:
            self.check_plausible(_BYTES_PER_LINE * (n_rows + n_cols), n_rows, n_cols)
        self.check_memory(needed, what, "; read fewer rows or columns")

    def check_plausible(self, n_bytes: int, n_rows: int, n_cols: int, allowed: int = 0) -> None:
        """Raise if a table of this size takes far more bytes than are allowed or the size of the file suggests."""
        files = self.path.rglob("*") if self.path.is_dir() else (self.path,)
        size = sum(file.stat().st_size for file in files)
        if n_bytes > max(allowed, FREE_TABLE_BYTES + MAX_TABLE_EXPANSION * size):
            raise self.error(
                f"it claims to have {n_rows} rows and {n_cols} columns, far more than its {size} bytes can be expected "
                "to hold: corrupt or malicious"
            )

    def check_memory(self, needed: int, what: str, hint: str = "") -> None:
        """Raise if something takes more bytes than this process may use."""
        available = memory_limit()
        if needed > available:
            raise self.error(
                f"{what} take {needed / 2**30:.1f} GiB packed, but only {available / 2**30:.1f} GiB of memory are "
                f"available{hint}"
            )


def packed_bytes(n_rows: int, n_cols: int) -> int:
    """Return the bytes of a packed table."""
    return max(n_rows, 1) * max(-(-n_cols // 64), 1) * 8


def table_bytes(n_rows: int, n_cols: int, n_ones: int | None = None) -> int:
    """Return the bytes of a table: packed, or, if the number of ones is given and these take less, by its ones."""
    if n_ones is None or not is_smaller_sparse((n_rows, n_cols), n_ones):
        return packed_bytes(n_rows, n_cols)
    return _BYTES_PER_ONE * n_ones + _BYTES_PER_LINE * (n_rows + n_cols)


class RowChunk(NamedTuple):
    """Consecutive rows of a table."""

    bits: Bits
    names: Sequence[str] | None = None


def named_chunks(chunks: Iterable[Bits], names: Sequence[str] | None) -> Iterator[RowChunk]:
    """Yield chunks of rows with their names, if rows have names."""
    start = 0
    for bits in chunks:
        yield RowChunk(bits, None if names is None else names[start : start + len(bits)])
        start += len(bits)


@dataclass
class TableStream:
    """A table read in chunks of rows. ``chunks`` can be iterated once; it raises FileError if the file is malformed."""

    n_cols: int
    chunks: Iterator[RowChunk]
    columns: Sequence[str] | None = None
    picture: Picture | None = None
    absent_is_zero: bool = False  # see Header
    row_data: Annotations | None = None  # of all rows
    column_data: Annotations | None = None

    @property
    def header(self) -> Header:
        """Its columns."""
        names = None if self.columns is None else tuple(self.columns)
        return Header(self.n_cols, names, self.absent_is_zero, self.column_data)


def collect(stream: TableStream) -> Table:
    """Return the table of a stream."""
    rows = GrowingBits(stream.n_cols)
    names: list[str] | None = []
    for chunk in stream.chunks:
        if chunk.names is None:
            names = None
        elif names is not None:
            names.extend(chunk.names)
        rows.add(chunk.bits)
    row_names = tuple(names) if names else None
    return Table(
        rows.take(),
        row_names,
        stream.header.names,
        stream.picture,
        absent_is_zero=stream.absent_is_zero,
        row_data=stream.row_data,
        column_data=stream.column_data,
    )


class GrowingBits:
    """Rows that are added in chunks: sparse as long as all chunks are, then packed."""

    def __init__(self, n_cols: int) -> None:
        self._n_cols, self._n_rows = n_cols, 0
        self._sparse: list[SparseBits] = []
        self._words, self._unknown = _GrowingWords(n_cols), _GrowingWords(n_cols)

    def add(self, bits: Bits) -> None:
        """Add rows."""
        if isinstance(bits, SparseBits) and not self._n_rows:
            self._sparse.append(bits)
            return
        for rows in (*map(packed, self._sparse), packed(bits)):
            if rows.unknown is not None:
                self._unknown.put(rows.unknown.words, self._n_rows)
            self._words.put(rows.words, self._n_rows)
            self._n_rows += len(rows)
        self._sparse = []

    def take(self) -> Bits:
        """Return all rows."""
        if self._sparse:
            return stack_bits(self._sparse, self._n_cols)
        unknown = None
        if self._unknown.n_rows:
            unknown = BitMatrix.from_words(self._unknown.take(self._n_rows), self._n_cols, check=False)
        return BitMatrix.from_words(self._words.take(self._n_rows), self._n_cols, False, unknown)


class _GrowingWords:
    """Rows of words whose number is not known in advance; rows that are skipped are zeros.

    They grow as a bytearray, which the system can enlarge without a copy; NumPy 2.5 copies an array to resize it.
    """

    def __init__(self, n_cols: int) -> None:
        self._width = -(-n_cols // 64)
        self._first = np.empty((0, self._width), np.uint64)  # often the only chunk: it is not copied
        self._words = bytearray()
        self.n_rows = 0

    def put(self, rows: NDArray[np.uint64], start: int) -> None:
        """Put rows at and after ``start``; all rows before it that were not put are zeros."""
        self.n_rows = start + len(rows)
        if not start:
            self._first = rows
            return
        self._extend_to(start)
        self._words += rows.reshape(-1).view(np.uint8).data

    def take(self, n_rows: int) -> NDArray[np.uint64]:
        """Return this many rows."""
        if n_rows == len(self._first):
            return self._first
        self._extend_to(n_rows)
        return np.frombuffer(self._words, np.uint64).reshape(n_rows, self._width)

    def _extend_to(self, n_rows: int) -> None:
        """Append zeros up to this number of rows."""
        if not self._words:
            self._words += self._first.reshape(-1).view(np.uint8).data
        self._words += bytes(8 * n_rows * self._width - len(self._words))


def find_columns(source: Source, given: Sequence[str], columns: Sequence[str]) -> set[str]:
    """Return the columns that a user names, exactly or with escapes in place of control characters, as in messages.

    Raises FileError for a name that no column has, or that means one column exactly and another one escaped.
    """
    existing = set(columns)
    escaped: dict[str, set[str]] = {}
    if any("\\" in name for name in given):
        for column in filter(CONTROLS_OF_NAMES.search, existing):
            escaped.setdefault(escape_name(column), set()).add(column)
    found: set[str] = set()
    for name in given:
        meant = escaped.get(name, set()) | ({name} & existing)
        if not meant:
            similar = difflib.get_close_matches(name, columns, 1)
            hint = f" (did you mean {quoted(similar[0])}?)" if similar else ""
            raise source.error(f"there is no column {quoted(name)}{hint}")
        if len(meant) > 1 and not meant <= set(given):
            numbers = " and ".join(str(number) for number, column in enumerate(columns, 1) if column in meant)
            raise source.error(f"columns {numbers} are both written {escape_name(name)[:40]}; rename one")
        found |= meant
    return found


def unique_columns(source: Source, names: Sequence[str], duplicates: str) -> Names:
    """Return distinct column names: number the duplicates, or raise for ``duplicates="refuse"``."""
    duplicate = first_duplicate(names)
    if duplicate is None:
        return tuple(names)
    if duplicates == "refuse":
        first, second = [index for index, name in enumerate(names) if name == duplicate][:2]
        raise source.error(
            f"columns {first + 1} and {second + 1} have the same name {quoted(duplicate)}; rename one, or pass ",
            Parameter("duplicates", "number"),
            " to number them",
        )
    distinct: list[str] = []
    given = set(names)
    used: set[str] = set()
    last_number: dict[str, int] = {}  # a name such as "." may occur a million times
    for name in names:
        new, number = name, last_number.get(name, 1)
        while new in used or (new != name and new in given):
            number += 1
            new = f"{name}.{number}"
        last_number[name] = number
        used.add(new)
        distinct.append(new)
    return tuple(distinct)
