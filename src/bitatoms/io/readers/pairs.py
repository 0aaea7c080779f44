"""Long tables: one line per one of the table, which names its row and its column, such as an order and an item.

The lines may be in any order. The rows and columns are known only at the end of the file, so it is read twice.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...errors import Parameter, warn
from ...table import Table, first_duplicate
from ..cells import CellPosition, Cells
from ..coo import CHUNK_ENTRIES, CooBuilder, column_indices_by_row
from ..errors import FileError
from ..records import read_records, unit_of
from ..shapes import column_labels, has_header, long_columns
from ..stream import ReadOptions, RowChunk, Source, TableStream, find_columns, named_chunks
from ..text_lines import open_text_writer
from .transactions import CHANGED, check_names, warn_about_empty

_HEAD_LINES = 1000  # lines from which the header is detected
_HEADER = ("row", "item")


class PairsLayout(NamedTuple):
    """Where the names of the row and of the item are in the lines of a file."""

    header: bool
    n_cells: int  # per line
    indices: tuple[int, int]  # of the row and of the item among the cells
    labels: tuple[str, str]  # what messages call these columns


def read(source: Source, options: ReadOptions) -> TableStream:
    """Open a long table; rows and columns are in order of first appearance."""
    layout = _detect_layout(source, options)
    # Nothing is known of an item without a name: no cell of the row could be unknown.
    cells = Cells(source, replace(options, missing="refuse") if options.missing == "unknown" else options)
    rows: dict[str, int] = {}
    items: dict[str, int] = {}
    for line, row, item in _read_pairs(source, options, layout):
        rows.setdefault(row, len(rows))
        if item:
            items.setdefault(item, len(items))
        else:
            cells.add_missing(1, CellPosition(line, layout.labels[1], unit=unit_of(source)))
    cells.check_missing()
    source.check_size(len(rows), len(items), streamable=True, n_ones=0)

    def chunks() -> Iterator[RowChunk]:
        builder = CooBuilder(source, options, (len(rows), len(items)))
        pairs = ((row, item) for _, row, item in _read_pairs(source, options, layout) if item)
        while chunk := list(itertools.islice(pairs, CHUNK_ENTRIES)):
            try:
                indices = np.array([(rows[row], items[item]) for row, item in chunk])
            except KeyError:
                raise source.error(CHANGED) from None
            builder.add(indices[:, 0], indices[:, 1], np.ones(len(chunk), np.bool_))
        yield from named_chunks(builder.chunks(), list(rows))

    return TableStream(len(items), chunks(), list(items), absent_is_zero=True)


def _detect_layout(source: Source, options: ReadOptions) -> PairsLayout:
    """Detect the separator and the header from the first lines, and select the two columns."""
    records = (cells for _, cells in read_records(source, options) if cells)
    head = list(itertools.islice(records, _HEAD_LINES))
    if not head:
        raise source.error("the file is empty")
    header = has_header(head) if options.header is None else options.header
    labels = column_labels(head[0], header)
    excluded = find_columns(source, options.without, labels)
    kept = [index for index, label in enumerate(labels) if label not in excluded]
    if options.long is not None:
        row, item = (_index_of(source, name, labels) for name in options.long)
    elif len(kept) == 2:
        row, item = kept
    else:
        row, item = _named_columns(source, [labels[index] for index in kept] if header else [], labels, kept)
    return PairsLayout(header, len(labels), (row, item), (labels[row], labels[item]))


def find_long(source: Source, options: ReadOptions) -> tuple[str, str] | None:
    """Return the columns of rows and items that a header names, with a note; None if it does not."""
    head = list(itertools.islice((cells for _, cells in read_records(source, options) if cells), _HEAD_LINES))
    labels = column_labels(head[0], True) if head and has_header(head) else []
    chosen = long_columns(labels)
    if chosen is None:
        return None
    row, item = (labels[index] for index in chosen)
    _note_columns(source, row, item)
    return row, item


def _note_columns(source: Source, row: str, item: str) -> None:
    """Note which columns were chosen by their names."""
    about = f"rows are named by column {row[:40]!r} and items by column {item[:40]!r}; "
    warn(f"{source.name}: {about}", Parameter("long"), " chooses other columns")


def _index_of(source: Source, name: str, labels: Sequence[str]) -> int:
    """Return the index of a column by its name."""
    (found,) = find_columns(source, (name,), labels)
    return labels.index(found)


def _named_columns(source: Source, names: Sequence[str], labels: Sequence[str], kept: Sequence[int]) -> tuple[int, int]:
    """Return the columns of rows and items by their names, with a note; raise if these do not show which they are."""
    listed = ", ".join(repr(labels[index][:40]) for index in kept[:10])
    if chosen := long_columns(names):
        row, item = kept[chosen[0]], kept[chosen[1]]
        _note_columns(source, labels[row], labels[item])
        return row, item
    needed = "; two are needed, one with the row and one with the item of each line"
    others = ("; choose them with ", Parameter("long"), ", or drop the others with ", Parameter("without"))
    single = ("; if each line lists the items of one row, pass ", Parameter("format", "baskets"))
    raise source.error(f"the columns are {listed}{needed}", *(single if len(kept) < 2 else others))


def _read_pairs(source: Source, options: ReadOptions, layout: PairsLayout) -> Iterator[tuple[int, str, str]]:
    """Yield the line number, the row and the item of each line; a blank item is an empty string."""
    records = ((line, cells) for line, cells in read_records(source, options) if cells)
    row, item = layout.indices
    unit = unit_of(source)
    for line, cells in itertools.islice(records, layout.header, None):
        if len(cells) != layout.n_cells:
            raise source.error(f"{unit} {line} has {len(cells)} cells; expected {layout.n_cells}")
        name = cells[row].strip()
        if not name:
            raise source.error(CellPosition(line, layout.labels[0], unit=unit), ": the row has no name; fill it in")
        yield line, name, cells[item].strip()


def write(table: Table, path: Path, format: str) -> None:
    """Write the row and the column of each one."""
    rows = check_names(path, "row", table.row_names or tuple(map(str, range(len(table)))))
    items = check_names(path, "column", table.names_of(range(table.shape[1])))
    if (duplicate := first_duplicate(rows)) is not None:
        raise FileError(f"{path.name}: this format cannot store two rows with the name {duplicate[:40]!r}; rename one")
    if not table.data.count():
        raise FileError(f"{path.name}: this format cannot store a table without ones; .npz and .csv files can")
    for axis, names, weights in (
        ("columns", items, table.data.column_weights()), ("rows", rows, table.data.row_weights())
    ):  # fmt: skip
        warn_about_empty(path, axis, [names[index] for index in np.flatnonzero(weights == 0).tolist()])
    header = [_distinct_from(names, label) for names, label in zip((rows, items), _HEADER, strict=True)]
    with open_text_writer(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        for name, columns in zip(rows, column_indices_by_row(table.data), strict=True):
            writer.writerows([name, items[column]] for column in columns.tolist())


def _distinct_from(names: Sequence[str], label: str) -> str:
    """Return a label for a column of names, such that it is read as a header."""
    existing = set(names)
    while label in existing:
        label += "_"
    return label
