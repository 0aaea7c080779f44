"""CSV and TSV files: one line per row, with or without names of rows and columns.

Cells are 0 and 1, yes and no, true and false, x and blank; with a threshold, numbers; in a table of numbers of copies
0, 1 and 2, each of which becomes two bits. Unknown cells are written as NA.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...columns.table import Table
from ...errors import Parameter, warn
from ...formatting import quoted
from ..cells import Cells, are_cells, is_text
from ..errors import FileError
from ..layout import Layout, as_lists, not_a_table
from ..limits import CHUNK_BITS
from ..options import ReadOptions
from ..stream import RowChunk, Source, TableStream
from ..text import TextRows, is_blank, need_quotes, open_text_writer, quote
from . import transactions
from .registry import sniff_format

_UNKNOWN = "NA"  # how an unknown cell is written; a blank one would be a zero in a table without other zeros


def read(source: Source, options: ReadOptions) -> TableStream:
    """Open a CSV or TSV file, or a sheet; also one that is detected to contain lists of items."""
    rows = TextRows(source, options)
    is_plain = options.binarize is None and options.row_names is None and not (options.without or options.dosage)
    may_be_lists = is_plain and sniff_format(source.path) in (None, source.format)
    layout = Layout.detect(rows, options, may_be_lists=may_be_lists)
    if layout.shape == "lists":
        below = (", below a header" if layout.header else "") + (", after its length" if layout.columns[0] else "")
        about = f"each {source.unit} is read as a list of items{below}; "
        confirm = () if source.format == "xlsx" else (Parameter("format", "baskets"), " confirms that, and ")
        warn(f"{source.name}: {about}", *confirm, Parameter("categories", True), " reads a table of categories")
        return transactions.read_lists(rows, options, layout)

    def read_again(ahead: Cells) -> Iterator[RowChunk]:
        return _chunks(TextRows(source, options), ahead, layout)

    cells = Cells(source, options, layout.position_of(source), read_again)

    def chunks() -> Iterator[RowChunk]:
        yield from _chunks(rows, cells, layout)
        cells.check_missing()
        if layout.doubt:
            warn(*layout.doubt)

    return TableStream(len(layout.columns), chunks(), layout.names)


def _chunks(rows: TextRows, cells: Cells, layout: Layout) -> Iterator[RowChunk]:
    """Yield the rows as packed bits."""
    n_cols, has_names, separator = len(layout.columns), layout.row_names is not None, rows.separator
    takes_all = n_cols + has_names == len(layout.labels)  # every cell but the name of the row
    separators = separator * (n_cols - 1)
    chunk = np.empty((max(1, CHUNK_BITS // max(1, n_cols)), n_cols), np.uint8)
    names: list[str] = []
    lines: list[int] = []

    def packed(is_last: bool = False) -> RowChunk:
        numbers, states = np.array(lines), chunk[: len(lines)]
        cells.count(states, lambda indices: (numbers[indices // n_cols], indices % n_cols))
        return RowChunk(cells.pack(states, is_last), names if has_names else None)

    records = (record for record in rows.records if record[1])
    for line, record in itertools.islice(records, layout.header, None):
        name, states = "", None
        if takes_all and isinstance(record, str):  # fast path for cells of one character
            name, _, rest = record.partition(separator) if has_names else ("", "", record)
            name = name.strip()
            if len(rest) == 2 * n_cols - 1 and rest[1::2] == separators:
                states = cells.characters_to_states(rest[::2])
        if states is None:
            row = rows.cells(record)
            if has_names and is_blank(row):
                continue
            name, states = row[0], _to_states(cells, layout, line, row)
        chunk[len(lines)] = states
        names.append(name)
        lines.append(line)
        if len(lines) == len(chunk):
            yield packed()
            names, lines = [], []
    if lines:
        yield packed(is_last=True)


def _to_states(cells: Cells, layout: Layout, line: int, row: list[str]) -> NDArray[np.uint8]:
    """Convert the cells of a row to states."""
    source, n_cells = cells.source, len(layout.labels)
    advice = layout.other_shape or as_lists({n_cells})
    if len(row) != n_cells or (layout.is_trailing and row[-1].strip()):
        expected = n_cells - layout.is_trailing
        problem = f"{source.unit} {line} has {len(row)} cells; expected {expected}; "
        raise source.error(problem, *as_lists({len(row), expected}))
    table_cells = [row[index] for index in layout.columns]
    if table_cells and all(map(is_text, table_cells)):
        raise not_a_table(source, line, table_cells, advice)
    try:
        return cells.words_to_states(table_cells, line)
    except FileError as error:
        if layout.other_shape:
            raise not_a_table(source, line, row, advice) from error
        raise


def write(table: Table, path: Path, format: str) -> None:
    """Write a table of 0 and 1 with its names; unknown cells are NA."""
    check_writable(table, path)
    separator = "\t" if format == "tsv" else ","
    dialect: dict[str, Any] = {"delimiter": separator, "lineterminator": "\n"}
    with open_text_writer(path) as file:
        if table.columns is not None or table.row_names is not None:
            header = header_cells(table)
            # Names that look like bits are quoted, so that they are read as a header.
            is_quoted = are_cells(header[1:] or header) or need_quotes(header)
            quoting: dict[str, Any] = {"quoting": csv.QUOTE_ALL} if is_quoted else {}
            csv.writer(file, **dialect, **quoting).writerow(header)
        if need_quotes(table.row_names or ()):
            lines = ([quote(name), *map(str, cells)] for name, *cells in row_cells(table))
            file.writelines(f"{separator.join(line)}\n" for line in lines)
        else:
            csv.writer(file, **dialect).writerows(row_cells(table))


def header_cells(table: Table) -> list[str]:
    """Return the names of the columns, after a blank cell if rows have names."""
    return [*([""] if table.row_names else []), *table.names_of(range(table.shape[1]))]


def row_cells(table: Table) -> Iterator[list[Any]]:
    """Yield the cells of each row: its name, if rows have names, ones and zeros, and NA where a cell is unknown."""
    chunk_rows = max(1, CHUNK_BITS // max(1, table.shape[1]))
    for start in range(0, len(table), chunk_rows):
        chunk = table.bits[start : start + chunk_rows]
        dense = chunk.filled().to_dense()
        if chunk.n_unknown and chunk.unknown is not None:
            dense = np.where(chunk.unknown.to_dense(bool), np.array(_UNKNOWN, object), dense.astype(object))
        for row, cells in enumerate(dense.tolist(), start):
            yield cells if table.row_names is None else [table.row_names[row], *cells]


def check_writable(table: Table, path: Path) -> None:
    """Raise FileError if a table of cells cannot hold the table."""
    if table.row_names is None and (not table.shape[1] if len(table) else table.columns is None):
        lacking = "columns and row names" if len(table) else "rows and column names"
        raise FileError(f"{path.name}: this format cannot store a table without {lacking}; .npz files can")
    names = [*(table.columns or ()), *(table.row_names or ())]
    for name in names:
        if "\r" in name or "\0" in name:
            raise FileError(f"{path.name}: this format cannot store the name {quoted(name)}; rename it, or write .npz")
    if not table.row_names and table.columns and not table.columns[0].strip():
        raise FileError(f"{path.name}: the first column has no name, so it would be read as row names; give it a name")
