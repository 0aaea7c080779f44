"""Matrix Market: an entry a line, or a value a line; names go along as comments, which other programs pass over."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...table import Table
from ..coo import CooBuilder, column_indices_by_row
from ..stream import ReadOptions, RowChunk, Source, TableStream
from ..text_lines import open_decompressed, open_text_writer
from ..text_numbers import NumberLines, read_numbers

_BANNER = "%%MatrixMarket"
_NAMES = {"rows": "%bitatoms rows ", "columns": "%bitatoms columns "}  # each followed by a list in JSON
_LONG_LINE = 1 << 20  # bytes; what JSON says takes many times its length
_SHORT_LINE = 1000  # characters; the format allows 1024, and some programs take no more
_FIELDS = ("pattern", "integer", "unsigned-integer", "real", "double")
_SYMMETRIES = ("general", "symmetric", "skew-symmetric")


class MatrixMarketHeader(NamedTuple):
    """What the first lines of a file say."""

    sparse: bool  # an entry a line, with its row and column; else a value a line, column after column
    pattern: bool  # entries without values, all of them ones
    symmetry: str
    shape: tuple[int, int]
    n_entries: int
    n_lines: int  # that this takes


def read(source: Source, options: ReadOptions) -> TableStream:
    """The rows of a Matrix Market file."""
    with open_decompressed(source) as file:
        header = _header(source, file)
    source.check_size(*header.shape)
    with open_decompressed(source) as file:
        rows, columns = _names(source, file, header)

    def blocks() -> Iterator[RowChunk]:
        entries = CooBuilder(source, options, header.shape, first=1)
        with open_decompressed(source) as file:
            for _ in range(header.n_lines):
                _line(source, file)
            n_entries = 0
            for some in read_numbers(source, file, header.n_lines + 1):
                n_entries += _put(source, header, some, n_entries, entries)
        if n_entries < header.n_entries:
            raise source.error(f"it ends after {n_entries} of the {header.n_entries} entries it should have: truncated")
        yield RowChunk(entries.build(), rows)

    return TableStream(header.shape[1], blocks(), columns)


def _line(source: Source, file: IO[bytes]) -> str:
    """A line of the header; it is there."""
    try:
        line = file.readline(_LONG_LINE)
    except (EOFError, OSError, zlib.error) as error:
        raise source.error(f"corrupt, or truncated: {error}") from error
    if not line:
        raise source.error("it ends before the line that tells its size: truncated")
    if len(line) == _LONG_LINE:
        raise source.error(
            f"it has a line of more than {_LONG_LINE >> 20} MiB before its size: corrupt, or no .mtx file"
        )
    return line.decode("utf-8", "replace")  # what others write into comments may be anything


def _header(source: Source, file: IO[bytes]) -> MatrixMarketHeader:
    """The first lines of a file, up to the one that tells its size."""
    if not source.path.stat().st_size:
        raise source.error("the file is empty")
    words = _line(source, file).removeprefix("\ufeff").lower().split()
    if (
        len(words) != 5
        or words[0] != _BANNER.lower()
        or words[1] != "matrix"
        or words[2] not in ("coordinate", "array")
    ):
        raise source.error(f"its first line is not '{_BANNER} matrix coordinate pattern general' or the like")
    sparse, field, symmetry = words[2] == "coordinate", words[3], words[4]
    if field not in _FIELDS or symmetry not in _SYMMETRIES or (field == "pattern" and symmetry == "skew-symmetric"):
        raise source.error(f"a matrix that is {field[:20]} and {symmetry[:20]} is no table of 0 and 1")
    if field == "pattern" and not sparse:
        raise source.error("it says 'array' and 'pattern', so that there would be nothing in it")
    n_lines = 2
    while (line := _line(source, file)).startswith("%") or not line.strip():
        n_lines += 1
    sizes = [int(word) for word in line.split() if word.isdecimal() and word.isascii() and len(word) < 20]
    if len(sizes) != len(line.split()) or len(sizes) != 2 + sparse:
        wanted = "rows, columns and entries" if sparse else "rows and columns"
        raise source.error(f"line {n_lines} should tell the numbers of {wanted}, and is {line.strip()[:40]!r}")
    n_rows, n_cols = sizes[:2]
    if symmetry != "general" and n_rows != n_cols:
        raise source.error(f"a {symmetry} matrix of {n_rows} rows and {n_cols} columns: corrupt")
    if sparse:
        n_entries = sizes[2]
    elif symmetry == "general":
        n_entries = n_rows * n_cols
    else:  # the diagonal and below it, or only below
        n_entries = n_rows * (n_rows + 1 if symmetry == "symmetric" else n_rows - 1) // 2
    return MatrixMarketHeader(sparse, field == "pattern", symmetry, (n_rows, n_cols), n_entries, n_lines)


def _names(source: Source, file: IO[bytes], header: MatrixMarketHeader) -> tuple[list[str] | None, list[str] | None]:
    """The names of rows and columns that `write` has put into comments; there are as many as of these, or none."""
    found: dict[str, list[str]] = {what: [] for what in _NAMES}
    sizes = dict(zip(_NAMES, header.shape, strict=True))
    for number in range(1, header.n_lines):
        line = _line(source, file)
        for what, begin in _NAMES.items():
            if not line.startswith(begin):
                continue
            try:
                names = json.loads(line.removeprefix(begin))
            except (ValueError, RecursionError):
                names = None
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise source.error(f"line {number} should name {what} in a list of JSON; mend it or take it out")
            found[what] += names
            if len(found[what]) > sizes[what]:
                raise source.error(f"line {number}: there are more names than the {sizes[what]} {what}; mend it")
    for what, names in found.items():
        if names and len(names) != sizes[what]:
            raise source.error(f"its comments name {len(names)} {what}, and it has {sizes[what]}; mend them")
    return found["rows"] or None, found["columns"] or None


def _put(source: Source, header: MatrixMarketHeader, some: NumberLines, before: int, entries: CooBuilder) -> int:
    """Put the entries of some lines into their places; returns how many there were."""
    width = 1 if not header.sparse else 2 if header.pattern else 3
    odd = (some.counts != width) & (some.counts != 0)
    if odd.any():
        line = int(np.argmax(odd))
        what = ("a value", "row and column", "row, column and value")[width - 1]
        raise source.error(f"line {some.line + line} has {some.counts[line]} numbers where {width} should be: {what}")
    table = some.values.reshape(-1, width)
    if before + len(table) > header.n_entries:
        line = some.line_of((header.n_entries - before) * width)
        raise source.error(f"line {line}: there are more entries than the {header.n_entries} that it should have")
    if header.sparse:
        rows, columns = _indices(source, some, table, 0), _indices(source, some, table, 1)
    else:
        rows, columns = _down_the_columns(header, np.arange(before, before + len(table)))
    values = np.ones(len(table), np.uint8) if header.pattern else table[:, -1]
    entries.add(rows, columns, values)
    if header.symmetry != "general":
        other = rows != columns
        mirrored = values[other] if header.symmetry == "symmetric" else -values[other]
        entries.add(columns[other], rows[other], mirrored)
    return len(table)


def _indices(source: Source, some: NumberLines, table: NDArray[Any], field: int) -> NDArray[np.int64]:
    """The rows or columns of entries, counted from 0; they may be written as 1.0, but not as 1.5."""
    found = table[:, field]
    if found.dtype != np.int64:
        broken = np.floor(found) != found
        if broken.any():
            place = int(np.argmax(broken))
            line = some.line_of(place * table.shape[1])
            raise source.error(f"line {line}: {found[place]} is no number of a {('row', 'column')[field]}")
        found = found.clip(-1, 2.0**62).astype(np.int64)  # so that it fits; that it is too large is seen later
    return found - 1


def _down_the_columns(
    header: MatrixMarketHeader, places: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows and columns of values that come column after column, of a symmetric matrix from the diagonal down."""
    n_rows = header.shape[0]
    if header.symmetry == "general":
        columns, rows = np.divmod(places, max(n_rows, 1))
        return rows, columns
    below = int(header.symmetry != "symmetric")  # 1 where the diagonal is left out
    column = np.arange(n_rows)
    starts = column * (n_rows - below) - column * (column - 1) // 2
    columns = np.searchsorted(starts, places, "right") - 1
    return places - starts[columns] + columns + below, columns


def write(table: Table, path: Path, format: str) -> None:
    """Write the places of the ones, and the names as comments."""
    with open_text_writer(path) as file:
        file.write(f"{_BANNER} matrix coordinate pattern general\n")
        for what, begin in _NAMES.items():
            for some in _short_lists((table.row_names if what == "rows" else table.columns) or ()):
                file.write(f"{begin}{some}\n")
        file.write(f"{table.shape[0]} {table.shape[1]} {table.bits.count()}\n")
        for row, columns in enumerate(column_indices_by_row(table.bits), 1):
            if len(columns):
                file.write(f"{row} " + f"\n{row} ".join(map(str, (columns + 1).tolist())) + "\n")


def _short_lists(names: Sequence[str]) -> Iterator[str]:
    """Names as lists of JSON, each as long as a line may be (a name that is longer has a line to itself)."""
    begun: list[str] = []
    length = 0
    for name in map(json.dumps, names):
        if begun and length + len(name) > _SHORT_LINE - 20:
            yield f"[{', '.join(begun)}]"
            begun, length = [], 0
        begun.append(name)
        length += len(name) + 2
    if begun:
        yield f"[{', '.join(begun)}]"
