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

from ...errors import Parameter
from ...table import Table, first_duplicate
from ..cells import CELL_WORDS, ONE_WORDS, CellPosition, Cells
from ..coo import CHUNK_ENTRIES, CooBuilder, column_indices_by_row
from ..errors import FileError
from ..stream import ReadOptions, RowChunk, Source, TableStream, find_columns, named_chunks
from ..text_lines import check_separator, detect_separator, open_text_writer, read_lines, split_lines
from ..text_numbers import parse_number
from .transactions import CHANGED, check_names, warn_about_empty

_SEPARATOR_LINES = 10  # lines from which the separator is detected
_HEAD_LINES = 1000  # lines from which the header is detected
_HEADER = ("row", "item")


class PairsLayout(NamedTuple):
    """Where the names of the row and of the item are in the lines of a file."""

    separator: str
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
    for line, row, item in _read_pairs(source, layout):
        rows.setdefault(row, len(rows))
        if item:
            items.setdefault(item, len(items))
        else:
            cells.add_missing(1, CellPosition(line, layout.labels[1], unit="line"))
    cells.check_missing()
    source.check_size(len(rows), len(items), streamable=True, n_ones=0)

    def chunks() -> Iterator[RowChunk]:
        builder = CooBuilder(source, options, (len(rows), len(items)))
        pairs = ((row, item) for _, row, item in _read_pairs(source, layout) if item)
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
    lines = read_lines(source)
    first_lines = list(itertools.islice(lines, _SEPARATOR_LINES))
    separator = options.separator or detect_separator(first_lines)
    check_separator(source, separator)
    records = (cells for _, cells in split_lines(source, itertools.chain(first_lines, lines), separator) if cells)
    head = list(itertools.islice(records, _HEAD_LINES))
    if not head:
        raise source.error("the file is empty")
    header = has_header(head) if options.header is None else options.header
    labels = column_labels(head[0], header)
    excluded = find_columns(source, options.without, labels)
    kept = [index for index, label in enumerate(labels) if label not in excluded]
    if len(kept) != 2:
        listed = ", ".join(repr(labels[index][:40]) for index in kept[:10])
        needed = "; two are needed, one with the row and one with the item of each line"
        others = ("; drop the others with ", Parameter("without"))
        single = ("; if each line lists the items of one row, pass ", Parameter("format", "baskets"))
        raise source.error(f"the columns are {listed}{needed}", *(single if len(kept) < 2 else others))
    row, item = kept
    return PairsLayout(separator, header, len(labels), (row, item), (labels[row], labels[item]))


def has_header(head: Sequence[Sequence[str]]) -> bool:
    """Return whether the first line contains column names: no numbers, and nothing that occurs again in its column."""
    first, *body = head
    columns = [{cells[index] for cells in body if index < len(cells)} for index in range(len(first))]
    return bool(body) and not any(
        parse_number(cell.strip()) is not None or cell in others for cell, others in zip(first, columns, strict=True)
    )


def column_labels(first: Sequence[str], header: bool) -> list[str]:
    """Return what columns are called: their names, or their numbers, counting from 1."""
    return [cell.strip() if header else str(number) for number, cell in enumerate(first, 1)]


def _read_pairs(source: Source, layout: PairsLayout) -> Iterator[tuple[int, str, str]]:
    """Yield the line number, the row and the item of each line; a blank item is an empty string."""
    records = ((line, cells) for line, cells in split_lines(source, read_lines(source), layout.separator) if cells)
    row, item = layout.indices
    for line, cells in itertools.islice(records, layout.header, None):
        if len(cells) != layout.n_cells:
            raise source.error(f"line {line} has {len(cells)} cells; expected {layout.n_cells}")
        name = cells[row].strip()
        if not name:
            raise source.error(CellPosition(line, layout.labels[0], unit="line"), ": the row has no name; fill it in")
        yield line, name, cells[item].strip()


def suggest_pairs(head: Sequence[Sequence[str]]) -> tuple[str | Parameter, ...]:
    """Return how to read a table whose first lines look like those of a long table, as a part of a message, or ().

    They do if they have two or three cells, if the first one occurs again in other lines, if another one is always
    text (or a number, in a table of two columns), and if no column consists of ones and zeros.
    """
    header = has_header(head)
    body = head[header:]
    widths = set(map(len, body))
    if not widths <= {2, 3} or len(widths) != 1:
        return ()
    labels, columns = column_labels(head[0], header), list(zip(*body, strict=True))
    if len(labels) != len(columns):
        return ()
    words = [{cell.strip().lower() for cell in column} for column in columns]
    # Only ones may be quantities, but a column of ones and zeros is part of a table.
    if (
        len(words[0]) == len(body)
        or words[0] <= CELL_WORDS
        or any(each <= CELL_WORDS and not each <= ONE_WORDS for each in words)
    ):
        return ()
    are_items = [all(_is_text(cell) for cell in column) for column in columns[1:]]
    advice: tuple[str | Parameter, ...] = (
        "if each line names a row and one of its items, pass ",
        Parameter("format", "pairs"),
    )
    if len(columns) == 2:
        counts = ("; for counts, pass ", Parameter("binarize", 0))
        return advice if are_items[0] else (*advice, *counts)
    if all(are_items):  # such as an order, its date and an item
        return (*advice, ", and drop the other column with ", Parameter("without"))
    return (*advice, " and ", Parameter("without", labels[2 if are_items[0] else 1])) if any(are_items) else ()


def _is_text(cell: str) -> bool:
    """Return whether a cell is neither a number nor one of the words for ones, zeros and missing values."""
    return cell.strip().lower() not in CELL_WORDS and parse_number(cell.strip()) is None


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
