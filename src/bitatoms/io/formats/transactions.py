"""Transactions: one line per row that lists its items, either numbers (FIMI) or names separated by commas (baskets).

The columns are known only at the end of the file; until then, items are kept as numbers.
"""

from __future__ import annotations

import csv
import itertools
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...columns.table import Table
from ...errors import Parameter
from ...formatting import quote_name, quoted
from ..cells import Indices
from ..errors import FileError
from ..layout import Layout
from ..limits import CHUNK_ENTRIES
from ..options import ReadOptions
from ..out_of_core.entries import EntriesBuilder, column_indices_by_row
from ..out_of_core.spool import Spool
from ..stream import RowChunk, Source, TableStream, named_chunks
from ..text import TextRows, is_blank, need_quotes, open_decompressed, open_text_writer
from .number_lines import read_numbers

_OTHER_FORMATS = ".npz, .csv and .parquet files can"


def read(source: Source, options: ReadOptions) -> TableStream:
    """Open a file of transactions."""
    if not source.path.stat().st_size:
        raise source.error("the file is empty")
    if source.format == "fimi":
        return _read_numbers(source, options)
    rows = TextRows(source, options, ",")
    return read_lists(rows, options, Layout.detect(rows, options))


def _read_numbers(source: Source, options: ReadOptions) -> TableStream:
    """Open lists of item numbers; columns are in increasing order, and named by their numbers."""
    entries = Spool(source, row=np.int32, item=np.int64)
    items, added, n_rows = np.empty(0, np.int64), [np.empty(0, np.int64)], 0
    hint = ("; if the lines list names, pass ", Parameter("format", "baskets"))
    with open_decompressed(source) as file:
        for lines in read_numbers(source, file, 1, items=True, hint=hint):
            n_lines = len(lines.counts)
            entries.append(np.repeat(np.arange(n_rows, n_rows + n_lines), lines.counts), lines.values)
            n_rows += n_lines
            added.append(np.unique(lines.values))
            if sum(map(len, added)) > max(len(items), CHUNK_ENTRIES):
                items, added = np.unique(np.concatenate((items, *added))), []
    items = np.unique(np.concatenate((items, *added)))
    names = list(map(str, items.tolist()))
    chunks = ((chunk["row"], np.searchsorted(items, chunk["item"])) for chunk in entries)
    return table_of_ones(source, options, (n_rows, len(items)), chunks, names)


def table_of_ones(
    source: Source, options: ReadOptions, shape: tuple[int, int], entries: Iterator[Indices], columns: list[str],
    row_names: Sequence[str] | None = None,
) -> TableStream:  # fmt: skip
    """Return the table of ones at these indices of rows and columns."""
    source.check_size(*shape, streamable=True, n_ones=0)

    def chunks() -> Iterator[RowChunk]:
        builder = EntriesBuilder(source, options, shape)
        for rows, items in entries:
            builder.add(rows, items, np.ones(len(rows), np.bool_))
        yield from named_chunks(builder.chunks(), row_names)

    return TableStream(len(columns), chunks(), columns, absent_is_zero=True)


def read_lists(rows: TextRows, options: ReadOptions, layout: Layout) -> TableStream:
    """Open lists of item names; columns are in order of first appearance."""
    source, columns, names = rows.source, dict[str, int](), list[str]()
    entries = Spool(source, row=np.int32, column=np.int32)
    row_indices: list[int] = []
    column_indices: list[int] = []
    row = -1
    for row, (name, items) in enumerate(_item_lists(rows, layout)):
        if options.row_names:
            names.append(name)
        row_indices += [row] * len(items)
        column_indices += [columns.setdefault(item, len(columns)) for item in items]
        if len(row_indices) >= CHUNK_ENTRIES:
            entries.append(row_indices, column_indices)
            row_indices, column_indices = [], []
    entries.append(row_indices, column_indices)
    found = ((chunk["row"], chunk["column"]) for chunk in entries)
    return table_of_ones(source, options, (row + 1, len(columns)), found, list(columns), names or None)


def _item_lists(rows: TextRows, layout: Layout) -> Iterator[tuple[str, list[str]]]:
    """Yield the first cell and the item names of each line, stripped; empty names are ignored.

    Every line of a file of lists is a row; in other files, those from the first to the last one that is not blank.
    """
    lines: Iterator[list[str]] = (cells for _, cells in rows)
    if layout.header or rows.source.format != "baskets":
        lines = itertools.dropwhile(is_blank, lines)
    n_blank = 0
    for cells in itertools.islice(lines, layout.header, None):
        if rows.source.format != "baskets" and is_blank(cells):
            n_blank += 1
            continue
        yield from [("", [])] * n_blank
        n_blank = 0
        yield cells[0].strip() if cells else "", [item for cell in cells[layout.columns[0] :] if (item := cell.strip())]


def write(table: Table, path: Path, format: str) -> None:
    """Write the items of each row: the numbers (FIMI) or names (baskets) of its columns."""
    items = (
        _item_numbers(table, path)
        if format == "fimi"
        else check_names(path, "column", table.names_of(range(table.shape[1])))
    )
    if table.row_names is not None:
        warnings.warn(f"{path.name}: a file of transactions cannot store names of rows; {_OTHER_FORMATS}", stacklevel=3)
    warn_about_empty(path, "columns", table.names_of(np.flatnonzero(table.data.column_weights() == 0)))
    with open_text_writer(path) as file:
        if format == "fimi":
            for columns in column_indices_by_row(table.data):
                file.write(" ".join(map(items.__getitem__, columns.tolist())) + "\n")
        else:
            dialect: dict[str, Any] = {"quoting": csv.QUOTE_ALL} if need_quotes(items) else {}
            writer = csv.writer(file, lineterminator="\n", **dialect)
            for columns in column_indices_by_row(table.data):
                writer.writerow(map(items.__getitem__, columns.tolist()))


def _item_numbers(table: Table, path: Path) -> list[str]:
    """Return the item number of each column: its name, or its index if columns have no names."""
    if table.columns is None:
        return list(map(str, range(table.shape[1])))
    for name in table.columns:
        if not (name.isascii() and name.isdecimal() and len(name) < 19 and str(int(name)) == name):
            raise FileError(
                f"{path.name}: column names must be non-negative integers in this format, got {quoted(name)}; "
                f".basket, {_OTHER_FORMATS} store other names"
            )
    return list(table.columns)


def check_names(path: Path, axis: str, names: Sequence[str]) -> Sequence[str]:
    """Return the names of rows or columns; raise FileError for a name that would not be read back."""
    for name in names:
        if not name or name != name.strip() or "\r" in name or "\0" in name:
            raise FileError(
                f"{path.name}: this format cannot store the {axis} name {quoted(name)}: names must not be empty, begin "
                "or end with blanks, or contain carriage returns or zero bytes; .npz files store any name"
            )
    return names


def warn_about_empty(path: Path, axis: str, names: Sequence[str]) -> None:
    """Warn that rows or columns with these names are not written, because they have no ones."""
    if names:
        listed = ", ".join(map(quote_name, names[:5])) + (", ..." if len(names) > 5 else "")
        warnings.warn(
            f"{path.name}: this format cannot store {axis} without ones, here {len(names)} ({listed}); "
            f"{_OTHER_FORMATS}",
            stacklevel=4,
        )
