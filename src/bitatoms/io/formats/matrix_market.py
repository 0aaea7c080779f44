"""Matrix Market files: one entry or one value per line; names are stored in comments, which other programs ignore."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...columns.annotations import Annotations
from ...columns.table import Table
from ...formatting import quoted
from ...sparse_bits import Bits
from ..limits import LONGEST_MATRIX_HEADER
from ..options import ReadOptions
from ..out_of_core.entries import EntriesBuilder, column_indices_by_row
from ..stream import RowChunk, Source, TableStream, named_chunks
from ..text import open_decompressed, open_text_writer
from . import cell_ranger
from .number_lines import NumberLines, read_numbers

_BANNER = "%%MatrixMarket"
_NAME_COMMENTS = {"rows": "%bitatoms rows ", "columns": "%bitatoms columns "}  # each followed by a JSON list
_WRITTEN_LINE = 1000  # characters; the format allows 1024, and some programs accept no more
_FIELDS = ("pattern", "integer", "unsigned-integer", "real", "double")
_SYMMETRIES = ("general", "symmetric", "skew-symmetric")


class MatrixMarketHeader(NamedTuple):
    """The contents of the lines before the first entry."""

    sparse: bool  # one entry per line, with its row and column; else one value per line, column by column
    pattern: bool  # entries without values, all of them ones
    symmetry: str
    shape: tuple[int, int]
    n_entries: int
    n_lines: int  # of the header
    n_bytes: int  # of the header
    comments: list[tuple[int, str]]  # those with names, and the numbers of their lines
    by_cell_ranger: bool


def read(source: Source, options: ReadOptions) -> TableStream:
    """Open a Matrix Market file; one of 10x Genomics by cell, if the user does not state whether to transpose it."""
    return _read(source, options, options.transpose is None)


def read_cells(source: Source, options: ReadOptions) -> TableStream:
    """Open a matrix of 10x Genomics; its rows are cells, whatever the order in the file."""
    return _read(source, options, None)


def _read(source: Source, options: ReadOptions, by_cell: bool | None) -> TableStream:
    """Open a Matrix Market file; of 10x Genomics by cell with a warning, as it is, or (None) always by cell."""
    with open_decompressed(source) as file:
        header = _read_header(source, file)
    source.check_size(*header.shape, streamable=True, n_ones=header.n_entries if header.sparse else None)
    rows, columns = _read_names(source, header)
    found = cell_ranger.FeatureMatrix()
    if rows is None and columns is None:
        found = cell_ranger.read_names(source, header.shape)
    is_by_feature = found.rows_are_features
    if rows is None and columns is None and found.features is None:
        is_by_feature = header.by_cell_ranger or by_cell is None
    is_exchanged = is_by_feature and by_cell is not False
    if is_exchanged and by_cell:
        cell_ranger.warn_exchanged(source)
    shape = header.shape[::-1] if is_exchanged else header.shape
    row_data, column_data = None, None
    if found.features is not None:
        about = Annotations({}, len(found.cells or ())), found.features
        names = found.cells, cell_ranger.feature_names(found.features)
        has_cells_first = is_exchanged or not found.rows_are_features
        (rows, columns), (row_data, column_data) = (names, about) if has_cells_first else (names[::-1], about[::-1])

    def chunks() -> Iterator[RowChunk]:
        builder = EntriesBuilder(source, options, shape, first=1, is_exchanged=is_exchanged)
        with open_decompressed(source) as file:
            file.seek(header.n_bytes)
            n_entries = 0
            for lines in read_numbers(source, file, header.n_lines + 1):
                n_entries += _add_entries(source, header, lines, n_entries, builder, is_exchanged)
        if n_entries < header.n_entries:
            raise source.error(f"truncated: it ends after {n_entries} of {header.n_entries} entries")
        yield from named_chunks(builder.chunks(), rows)

    return TableStream(shape[1], chunks(), columns, row_data=row_data, column_data=column_data)


def _read_header_line(source: Source, file: IO[bytes]) -> str:
    """Return the next line of the header."""
    line = file.readline(LONGEST_MATRIX_HEADER)
    if not line:
        raise source.error("truncated: it ends before the line with the size of the matrix")
    if len(line) == LONGEST_MATRIX_HEADER:
        raise source.error(
            f"corrupt, or not a Matrix Market file: a line before the size of the matrix is longer than "
            f"{LONGEST_MATRIX_HEADER >> 20} MiB"
        )
    return line.decode("utf-8", "replace")  # comments may be in any encoding


def _read_header(source: Source, file: IO[bytes]) -> MatrixMarketHeader:
    """Read the lines up to the size of the matrix."""
    if not source.path.stat().st_size:
        raise source.error("the file is empty")
    words = _read_header_line(source, file).removeprefix("\ufeff").lower().split()
    if (
        len(words) != 5
        or words[0] != _BANNER.lower()
        or words[1] != "matrix"
        or words[2] not in ("coordinate", "array")
    ):
        raise source.error(f"the first line must have the form '{_BANNER} matrix coordinate pattern general'")
    sparse, field, symmetry = words[2] == "coordinate", words[3], words[4]
    if field not in _FIELDS or symmetry not in _SYMMETRIES or (field == "pattern" and symmetry == "skew-symmetric"):
        raise source.error(f"a {field[:20]} {symmetry[:20]} matrix cannot be read as a table of 0 and 1")
    if field == "pattern" and not sparse:
        raise source.error("a matrix cannot be both 'array' and 'pattern': it would contain no values")
    n_lines, by_cell_ranger, comments = 2, False, []
    while (line := _read_header_line(source, file)).startswith("%") or not line.strip():
        by_cell_ranger = by_cell_ranger or line.startswith(cell_ranger.COMMENT)
        if line.startswith(tuple(_NAME_COMMENTS.values())):
            comments.append((n_lines, line))
        n_lines += 1
    sizes = [int(word) for word in line.split() if word.isdecimal() and word.isascii() and len(word) < 20]
    if len(sizes) != len(line.split()) or len(sizes) != 2 + sparse:
        expected = "rows, columns and entries" if sparse else "rows and columns"
        raise source.error(f"line {n_lines} must contain the numbers of {expected}, got {quoted(line.strip())}")
    n_rows, n_cols = sizes[:2]
    if symmetry != "general" and n_rows != n_cols:
        raise source.error(f"corrupt: a {symmetry} matrix cannot have {n_rows} rows and {n_cols} columns")
    if sparse:
        n_entries = sizes[2]
    elif symmetry == "general":
        n_entries = n_rows * n_cols
    else:  # the lower triangle, with or without the diagonal
        n_entries = n_rows * (n_rows + 1 if symmetry == "symmetric" else n_rows - 1) // 2
    read = n_lines, file.tell(), comments, by_cell_ranger
    return MatrixMarketHeader(sparse, field == "pattern", symmetry, (n_rows, n_cols), n_entries, *read)


def _read_names(source: Source, header: MatrixMarketHeader) -> tuple[Sequence[str] | None, Sequence[str] | None]:
    """Return the names of rows and columns that `write` stores in comments."""
    found: dict[str, list[str]] = {axis: [] for axis in _NAME_COMMENTS}
    sizes = dict(zip(_NAME_COMMENTS, header.shape, strict=True))
    for number, line in header.comments:
        for axis, prefix in _NAME_COMMENTS.items():
            if not line.startswith(prefix):
                continue
            try:
                names = json.loads(line.removeprefix(prefix))
            except (ValueError, RecursionError):
                names = None
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise source.error(f"line {number} must contain the names of {axis} as a JSON list; fix or delete it")
            found[axis] += names
            if len(found[axis]) > sizes[axis]:
                raise source.error(f"line {number}: there are more names than the {sizes[axis]} {axis}; fix them")
    for axis, names in found.items():
        if names and len(names) != sizes[axis]:
            raise source.error(f"the comments contain names of {len(names)} {axis}, expected {sizes[axis]}; fix them")
    return found["rows"] or None, found["columns"] or None


def _add_entries(
    source: Source,
    header: MatrixMarketHeader,
    lines: NumberLines,
    n_before: int,
    builder: EntriesBuilder,
    is_exchanged: bool,
) -> int:
    """Add the entries of some lines to the table, whose rows may be the columns of the file; return their number."""
    n_fields = 1 if not header.sparse else 2 if header.pattern else 3
    wrong = (lines.counts != n_fields) & (lines.counts != 0)
    if wrong.any():
        line = int(np.argmax(wrong))
        expected = ("a value", "row and column", "row, column and value")[n_fields - 1]
        raise source.error(
            f"line {lines.line + line} has {lines.counts[line]} numbers; expected {n_fields} ({expected})"
        )
    table = lines.values.reshape(-1, n_fields)
    if n_before + len(table) > header.n_entries:
        line = lines.line_of((header.n_entries - n_before) * n_fields)
        raise source.error(f"line {line}: there are more entries than the header states ({header.n_entries})")
    if header.sparse:
        rows, columns = _indices(source, lines, table, 0), _indices(source, lines, table, 1)
    else:
        rows, columns = _unravel(header, np.arange(n_before, n_before + len(table)))
    rows, columns = (columns, rows) if is_exchanged else (rows, columns)
    values = np.ones(len(table), np.uint8) if header.pattern else table[:, -1]
    builder.add(rows, columns, values)
    if header.symmetry != "general":
        off_diagonal = rows != columns
        mirrored = values[off_diagonal] if header.symmetry == "symmetric" else -values[off_diagonal]
        builder.add(columns[off_diagonal], rows[off_diagonal], mirrored)
    return len(table)


def _indices(source: Source, lines: NumberLines, table: NDArray[Any], field: int) -> NDArray[np.int64]:
    """Return the row or column indices of entries, from 0; in the file they may be written as 1.0 but not as 1.5."""
    found = table[:, field]
    if found.dtype != np.int64:
        fractional = np.floor(found) != found
        if fractional.any():
            entry = int(np.argmax(fractional))
            line = lines.line_of(entry * table.shape[1])
            raise source.error(f"line {line}: {found[entry]} is not a {('row', 'column')[field]} index")
        found = found.clip(-1, 2.0**62).astype(np.int64)  # still out of range, which `EntriesBuilder` checks
    return found - 1


def _unravel(header: MatrixMarketHeader, indices: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows and columns of values stored column by column, of symmetric matrices only the lower triangle."""
    n_rows = header.shape[0]
    if header.symmetry == "general":
        columns, rows = np.divmod(indices, max(n_rows, 1))
        return rows, columns
    below = int(header.symmetry != "symmetric")  # 1 if the diagonal is not stored
    column = np.arange(n_rows)
    starts = column * (n_rows - below) - column * (column - 1) // 2
    columns = np.searchsorted(starts, indices, "right") - 1
    return indices - starts[columns] + columns + below, columns


def write(table: Table, path: Path, format: str) -> None:
    """Write the indices of the ones, and the names as comments; with unknown cells, also values: 1 and nan."""
    n_unknown = table.data.n_unknown
    with open_text_writer(path) as file:
        file.write(f"{_BANNER} matrix coordinate {'real' if n_unknown else 'pattern'} general\n")
        for axis, prefix in _NAME_COMMENTS.items():
            for names in _json_lists((table.row_names if axis == "rows" else table.columns) or ()):
                file.write(f"{prefix}{names}\n")
        file.write(f"{table.shape[0]} {table.shape[1]} {table.data.count() + n_unknown}\n")
        _write_entries(file, table.data.filled(), " 1" if n_unknown else "")
        if table.data.unknown is not None:
            _write_entries(file, table.data.unknown, " nan")


def _write_entries(file: IO[str], bits: Bits, value: str) -> None:
    """Write the row and the column of each one, followed by the same value."""
    for row, columns in enumerate(column_indices_by_row(bits), 1):
        if len(columns):
            file.write(f"{row} " + f"{value}\n{row} ".join(map(str, (columns + 1).tolist())) + f"{value}\n")


def _json_lists(names: Sequence[str]) -> Iterator[str]:
    """Yield names as JSON lists that each fit on a line; a longer name has a line of its own."""
    pending: list[str] = []
    length = 0
    for name in map(json.dumps, names):
        if pending and length + len(name) > _WRITTEN_LINE - 20:
            yield f"[{', '.join(pending)}]"
            pending, length = [], 0
        pending.append(name)
        length += len(name) + 2
    if pending:
        yield f"[{', '.join(pending)}]"
