"""Long tables: one line per one of the table, which names its row and its column, such as an order and an item.

The lines may be in any order. The rows and columns are known only at the end of the file, so it is read twice, and
twice more if it has quantities that are not above 0.
"""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ...columns.table import Table, first_duplicate
from ...columns.variables import parse_number
from ...errors import Parameter, warn
from ..cells import CellPosition, Cells
from ..errors import FileError
from ..limits import CHUNK_ENTRIES
from ..options import ReadOptions
from ..out_of_core.coo import CooBuilder, column_indices_by_row
from ..records import is_blank, read_records, unit_of
from ..shapes import column_labels, has_header, long_columns, quantity_column
from ..stream import RowChunk, Source, TableStream, find_columns, named_chunks
from ..text_lines import open_text_writer
from .transactions import CHANGED, check_names, warn_about_empty

_HEAD_LINES = 1000  # lines from which the header is detected
_HEADER = ("row", "item")
_LEAST_QUANTITY = 1e-9  # above 0: sums of decimal fractions are not exact
_POSITIVE = "123456789"  # how a quantity that is above 0 may begin; a blank one is 1


class PairsLayout(NamedTuple):
    """Where the names of the row and of the item are in the lines of a file."""

    header: bool
    n_cells: int  # per line
    indices: tuple[int, int]  # of the row and of the item among the cells
    labels: tuple[str, str]  # what messages call these columns
    quantity: int | None = None  # the column of quantities, if there is one
    quantity_label: str = ""


Line = tuple[int, str, str, str]  # its number, row, item and quantity; a blank row or item is an empty string


@dataclass(frozen=True)
class LongLines:
    """The lines of a long table, in the order of the file, without those of items that were returned."""

    source: Source
    options: ReadOptions
    layout: PairsLayout
    returned: frozenset[tuple[str, str]] = frozenset()  # rows and items whose quantities do not exceed 0

    def __iter__(self) -> Iterator[Line]:
        records = (record for record in read_records(self.source, self.options) if not is_blank(record[1]))
        n_cells, (row, item), quantity = self.layout.n_cells, self.layout.indices, self.layout.quantity
        unit, returned = unit_of(self.source), self.returned
        for number, cells in itertools.islice(records, self.layout.header, None):
            if len(cells) != n_cells:
                raise self.source.error(f"{unit} {number} has {len(cells)} cells; expected {n_cells}")
            names = cells[row].strip(), cells[item].strip()
            if not returned or names not in returned:
                yield number, *names, "" if quantity is None else cells[quantity].strip()

    def without_returned(self, suspects: Iterable[tuple[str, str]]) -> LongLines:
        """Return the lines without the items among these whose quantities in a row do not add up to more than 0."""
        sums = dict.fromkeys(suspects, 0.0)
        for _, row, item, quantity in self:
            if (row, item) in sums:
                number = _quantity(quantity)
                sums[row, item] += 1.0 if number is None else number
        return replace(self, returned=frozenset(names for names, total in sums.items() if total < _LEAST_QUANTITY))

    def note_returned(self, n_lines: int, n_rows: int) -> None:
        """Note that this many lines have quantities that are not above 0, and how many rows are left out for that."""
        lines = f"1 {unit_of(self.source)} has" if n_lines == 1 else f"{n_lines} {unit_of(self.source)}s have"
        about = f"{lines} a quantity (column {self.layout.quantity_label[:40]!r}) of 0 or less, as returns have: an "
        about += "item counts if its quantities in a row of the table add up to more than 0"
        if n_rows:
            rows, them = ("1 row", "it is") if n_rows == 1 else (f"{n_rows} rows", "they are")
            about += f"; {rows} of the table would have no items left, so {them} left out"
        warn(f"{self.source.name}: {about}; to ignore quantities, pass ", *self._ignoring_quantities())

    def nothing_left(self) -> FileError:
        """Return the error for a file in which no quantity is above 0."""
        label = f"column {self.layout.quantity_label[:40]!r}"
        advice = self._ignoring_quantities()
        return self.source.error(f"no item has a quantity above 0 in {label}; to ignore quantities, pass ", *advice)

    def _ignoring_quantities(self) -> tuple[str | Parameter, ...]:
        """Return the options that read the file without its quantities, as a part of a message."""
        return Parameter("long", self.layout.labels), " with ", Parameter("without", self.layout.quantity_label)


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
    if number is not None and math.isfinite(number):
        return sign * number
    has_unit = digits[:1].isdecimal() and digits[-1].isalnum()
    return sign if has_unit or not plain else None


class LongNames:
    """What is found in a pass over lines: the names of rows and items, lines that lack one, and returned items."""

    def __init__(self, lines: LongLines) -> None:
        source, layout, missing = lines.source, lines.layout, lines.options.missing
        # Nothing is known of an item without a name: no cell of the row could be unknown.
        missing = "refuse" if missing == "unknown" else missing
        self._cells = Cells(
            source,
            replace(lines.options, missing=missing),
            lambda line, _: CellPosition(line, layout.labels[1], unit=unit_of(source)),
        )
        self._lines = lines
        self._unnamed: list[int] = []
        self._unread: list[tuple[int, str]] = []  # lines whose quantity is no number, and that
        self.rows: dict[str, int] = {}  # indices by names
        self.items: dict[str, int] = {}
        self.n_returns = 0  # lines
        self.returns: set[tuple[str, str]] = set()  # rows and items of these lines
        for number, row, item, quantity in lines:
            if not row:
                self._unnamed.append(number)
                continue
            self.rows.setdefault(row, len(self.rows))
            if item:
                self.items.setdefault(item, len(self.items))
            else:
                self._cells.missing.add(1, number, 0)
            if quantity[:1] in _POSITIVE and quantity[-1:] != "-":
                continue
            found = _quantity(quantity)
            if found is None:
                self._unread.append((number, quantity))
            elif found <= 0:
                self.n_returns += 1
                self.returns.add((row, item))

    def check_missing(self) -> None:
        """Raise FileError if names are missing and may not be; note which lines are left out."""
        if self._unnamed:
            is_left_out = self._lines.options.missing == "zero"
            _report_unnamed(self._lines.source, self._lines.layout, self._unnamed, is_left_out)
        self._cells.check_missing()
        if self._unread:
            unit, n_lines, (first, text) = unit_of(self._lines.source), len(self._unread), self._unread[0]
            lines = f"1 {unit} has" if n_lines == 1 else f"{n_lines} {unit}s have"
            label = f"column {self._lines.layout.quantity_label[:40]!r}"
            about = f"{lines} a quantity ({label}) that is no number, and is read as 1 (first: {unit} {first}"
            warn(f"{self._lines.source.name}: {about}, {text[:40]!r})")


def read(source: Source, options: ReadOptions) -> TableStream:
    """Open a long table; rows and columns are in order of first appearance."""
    lines = LongLines(source, options, _detect_layout(source, options))
    names = LongNames(lines)
    names.check_missing()
    if names.returns:
        lines, found = lines.without_returned(names.returns), names
        names = LongNames(lines)
        if not names.rows:
            raise lines.nothing_left()
        lines.note_returned(found.n_returns, len(found.rows) - len(names.rows))
    rows, items = names.rows, names.items
    source.check_size(len(rows), len(items), streamable=True, n_ones=0)

    def chunks() -> Iterator[RowChunk]:
        builder = CooBuilder(source, options, (len(rows), len(items)))
        pairs = ((row, item) for _, row, item, _ in lines if row and item)
        while chunk := list(itertools.islice(pairs, CHUNK_ENTRIES)):
            try:
                indices = np.array([(rows[row], items[item]) for row, item in chunk])
            except KeyError:
                raise source.error(CHANGED) from None
            builder.add(indices[:, 0], indices[:, 1], np.ones(len(chunk), np.bool_))
        yield from named_chunks(builder.chunks(), list(rows))

    return TableStream(len(items), chunks(), list(items), absent_is_zero=True)


def _report_unnamed(source: Source, layout: PairsLayout, lines: Sequence[int], is_left_out: bool) -> None:
    """Note that lines which name no row are left out, or raise FileError."""
    unit, label = unit_of(source), f"column {layout.labels[0][:40]!r}"
    if is_left_out:
        n_lines = f"1 {unit} is" if len(lines) == 1 else f"{len(lines)} {unit}s are"
        warn(f"{source.name}: {n_lines} left out, because {label}, which names the row, is blank (first: {lines[0]})")
        return
    others = f" (as in {len(lines) - 1} more {unit}{'s' * (len(lines) > 2)})" if len(lines) > 1 else ""
    them = f"these {unit}s" if len(lines) > 1 else f"the {unit}"
    raise source.error(
        f"{unit} {lines[0]}: {label}, which names the row, is blank{others}; fill it in, or pass ",
        Parameter("missing", "zero"), f" to leave {them} out",
    )  # fmt: skip


def _detect_layout(source: Source, options: ReadOptions) -> PairsLayout:
    """Detect the separator and the header from the first lines, and select the two columns."""
    records = (cells for _, cells in read_records(source, options) if not is_blank(cells))
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
    chosen = quantity_column([label if index in kept else "" for index, label in enumerate(labels)]) if header else None
    quantity = None if chosen in (row, item) else chosen
    label = "" if quantity is None else labels[quantity]
    return PairsLayout(header, len(labels), (row, item), (labels[row], labels[item]), quantity, label)


def find_long(source: Source, options: ReadOptions) -> tuple[str, str] | None:
    """Return the columns of rows and items that a header names, with a note; None if it does not."""
    records = (cells for _, cells in read_records(source, options) if not is_blank(cells))
    head = list(itertools.islice(records, _HEAD_LINES))
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
