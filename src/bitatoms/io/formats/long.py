"""Long tables: one line per one of the table, which names its row and its column, such as an order and an item.

The lines may be in any order. They are read once; what they name is kept as numbers until the end of the file.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...columns.table import Table, first_duplicate
from ...columns.variables import parse_number
from ...errors import Parameter, warn
from ...formatting import be, counted, have, noun, quoted
from ..cells import Cells, Indices
from ..errors import FileError
from ..layout import Layout
from ..limits import CHUNK_ENTRIES
from ..options import ReadOptions
from ..out_of_core.entries import column_indices_by_row
from ..out_of_core.spool import Spool
from ..stream import Source, TableStream
from ..text import TextRows, open_text_writer
from .transactions import check_names, table_of_ones, warn_about_empty

_HEADER = ("row", "item")
_LEAST_QUANTITY = 1e-9  # above 0: sums of decimal fractions are not exact


def read(source: Source, options: ReadOptions) -> TableStream:
    """Open a long table; rows and columns are in order of first appearance."""
    rows = TextRows(source, options)
    layout = Layout.detect(rows, options)
    lines = LongLines(rows, options, layout)
    if lines.n_returns:
        lines.remove_returned()
    return table_of_ones(source, options, (len(lines.rows), len(lines.items)), lines.entries(), lines.items, lines.rows)


@lru_cache(1 << 16)
def _quantity(text: str) -> float | None:
    """Return a quantity; 1 if it is blank, 1 or -1 for a number with a unit, None for other text.

    Examples
    --------
    >>> [_quantity(text) for text in ("2", "", "-0,5", "- 1 l", "4 kg", "two", "2-", "(3)")]
    [2.0, 1.0, -0.5, -1.0, 1.0, None, None, None]
    """
    plain = text.strip().replace("\N{MINUS SIGN}", "-")
    sign = -1.0 if plain.startswith("-") else 1.0
    digits = plain.lstrip("-+ ").replace(",", ".")
    number = parse_number(digits)
    if number is not None:
        return sign * number
    has_unit = digits[:1].isdecimal() and digits[-1].isalnum()
    return sign if has_unit or not plain else None


class LongLines:
    """What the lines of a long table name: rows and items, in order of first appearance, and entries of their indices.

    All lines are read at once, and missing names are reported.
    """

    def __init__(self, rows: TextRows, options: ReadOptions, layout: Layout) -> None:
        self._source, self._layout = rows.source, layout
        self._entries = Spool(rows.source, row=np.int32, item=np.int32, quantity=np.float64)  # a blank item is -1
        self.n_returns = 0  # lines whose quantities are not above 0
        row_index: dict[str, int] = {}
        item_index: dict[str, int] = {}
        unnamed: list[int] = []
        unread: list[tuple[int, str]] = []  # lines whose quantity is not a number, and the quantity
        # Nothing is known of an item without a name: no cell of the row could be unknown.
        missing = "refuse" if options.missing == "unknown" else options.missing
        blank_items = Cells(rows.source, replace(options, missing=missing), layout.position_of(rows.source))
        chunk: tuple[list[int], list[int], list[float]] = ([], [], [])
        row_column, (item_column,), quantity_column = layout.row_names or 0, layout.columns, layout.quantity
        for line, cells in layout.rows_below(rows):
            row, item = cells[row_column].strip(), cells[item_column].strip()
            if not row:
                unnamed.append(line)
                continue
            if not item:
                blank_items.missing.add(1, line, 0)
            text = "" if quantity_column is None else cells[quantity_column]
            quantity = _quantity(text)
            if quantity is None:
                unread.append((line, text))
                quantity = 1.0
            self.n_returns += quantity <= 0
            chunk[0].append(row_index.setdefault(row, len(row_index)))
            chunk[1].append(item_index.setdefault(item, len(item_index)) if item else -1)
            chunk[2].append(quantity)
            if len(chunk[0]) == CHUNK_ENTRIES:
                self._entries.append(*chunk)
                chunk = ([], [], [])
        self._entries.append(*chunk)
        self.rows, self.items = list(row_index), list(item_index)
        if unnamed:
            self._report_unnamed(unnamed, options.missing == "zero")
        blank_items.check_missing()
        if unread:
            (line, text), n = unread[0], len(unread)
            lines, first = counted(n, rows.source.unit), f"first: {rows.source.unit} {line}, {quoted(text)}"
            about = f"{lines} {have(n)} a quantity ({self._column(layout.quantity)}) that is not a number"
            advice = "write those of returned items as -2"
            warn(f"{rows.source.name}: {about}, and {be(n)} read as 1 ({first}); {advice}")

    def _column(self, index: int | None) -> str:
        """Return what messages call a column."""
        return f"column {quoted(self._layout.labels[index or 0])}"

    def _ignoring_quantities(self) -> tuple[str | Parameter, ...]:
        """Return the options that read the file without its quantities, as a part of a message."""
        labels, (item,) = self._layout.labels, self._layout.columns
        chosen = labels[self._layout.row_names or 0], labels[item]
        return Parameter("long", chosen), " with ", Parameter("without", labels[self._layout.quantity or 0])

    def _report_unnamed(self, lines: Sequence[int], are_left_out: bool) -> None:
        """Note that lines which name no row are left out, or raise FileError."""
        unit, label = self._source.unit, self._column(self._layout.row_names)
        if are_left_out:
            about = (
                f"{counted(len(lines), unit)} {be(len(lines))} left out, because {label}, which names the row, is blank"
            )
            warn(f"{self._source.name}: {about} (first: {lines[0]})")
            return
        others = f" (as in {len(lines) - 1} more {noun(len(lines) - 1, unit)})" if len(lines) > 1 else ""
        them = f"these {unit}s" if len(lines) > 1 else f"the {unit}"
        raise self._source.error(
            f"{unit} {lines[0]}: {label}, which names the row, is blank{others}; fill it in, or pass ",
            Parameter("missing", "zero"), f" to leave {them} out",
        )  # fmt: skip

    def entries(self) -> Iterator[Indices]:
        """Yield the indices of the rows and items of the ones."""
        for chunk in self._entries:
            ones = chunk[chunk["item"] >= 0]
            yield ones["row"], ones["item"]

    def remove_returned(self) -> None:
        """Remove items whose quantities in a row do not add up to more than 0, and rows and items without others."""
        keys = [self._keys(chunk)[chunk["quantity"] <= 0] for chunk in self._entries]
        returned = np.unique(np.concatenate(keys))
        sums = np.zeros(len(returned))
        for chunk in self._entries:
            cells = self._keys(chunk)
            is_suspect = np.isin(cells, returned)
            np.add.at(sums, np.searchsorted(returned, cells[is_suspect]), chunk["quantity"][is_suspect])
        returned = returned[sums < _LEAST_QUANTITY]
        kept = Spool(self._source, row=np.int32, item=np.int32, quantity=np.float64)
        rows, items = _Renumbering(len(self.rows)), _Renumbering(len(self.items))
        for chunk in self._entries:
            left = chunk[~np.isin(self._keys(chunk), returned)]
            kept.append(rows.new(left["row"]), items.new(left["item"]), left["quantity"])
        n_rows = len(self.rows)
        self._entries, self.rows, self.items = kept, rows.kept(self.rows), items.kept(self.items)
        quantity = self._column(self._layout.quantity)
        if not self.rows:
            problem = f"no item has a quantity above 0 in {quantity}; to ignore quantities, pass "
            raise self._source.error(problem, *self._ignoring_quantities())
        lines = f"{counted(self.n_returns, self._source.unit)} {have(self.n_returns)}"
        about = f"{lines} a quantity ({quantity}) of 0 or less, as returns have: an item counts if its quantities in a "
        about += "row of the table add up to more than 0"
        if n_lost := n_rows - len(self.rows):
            them = "it is" if n_lost == 1 else "they are"
            about += f"; {counted(n_lost, 'row')} of the table would have no items left, so {them} left out"
        warn(f"{self._source.name}: {about}; to ignore quantities, pass ", *self._ignoring_quantities())

    def _keys(self, chunk: NDArray[Any]) -> NDArray[np.int64]:
        """Return numbers of the row and the item, also of a blank item, of each entry."""
        return chunk["row"].astype(np.int64) * (len(self.items) + 1) + chunk["item"] + 1


class _Renumbering:
    """New indices, in order of first appearance; -1 stays."""

    def __init__(self, n: int) -> None:
        self._new = np.full(n + 1, -1, np.int32)
        self._old = np.empty(0, np.intp)

    def new(self, indices: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the new indices."""
        found, first = np.unique(indices, return_index=True)
        added = found[np.argsort(first)]
        added = added[(added >= 0) & (self._new[added] < 0)]
        self._new[added] = np.arange(len(self._old), len(self._old) + len(added))
        self._old = np.append(self._old, added)
        return self._new[indices]

    def kept(self, names: Sequence[str]) -> list[str]:
        """Return the names of the new indices."""
        return [names[index] for index in self._old.tolist()]


def write(table: Table, path: Path, format: str) -> None:
    """Write the row and the column of each one."""
    rows = check_names(path, "row", table.row_names or tuple(map(str, range(len(table)))))
    items = check_names(path, "column", table.names_of(range(table.shape[1])))
    if (duplicate := first_duplicate(rows)) is not None:
        raise FileError(f"{path.name}: this format cannot store two rows with the name {quoted(duplicate)}; rename one")
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
