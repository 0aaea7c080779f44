"""Lists of items, a line a row: numbers as in the FIMI repository, or names with commas between them.

Which columns there are is known only at the end, so a file is gone through twice.
"""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...table import Table
from ..coo import CHUNK_ENTRIES, CooBuilder, column_indices_by_row
from ..errors import FileError
from ..stream import ReadOptions, RowChunk, Source, TableStream
from ..text_lines import open_decompressed, open_text_writer, read_lines
from ..text_numbers import NumberLines, read_numbers

_KEEPING = ".npz, .csv and .parquet keep"
_CHANGED = "it was changed while it was read; read it again"


def read(source: Source, options: ReadOptions) -> TableStream:
    """The rows of a file of lists."""
    if not source.path.stat().st_size:
        raise source.error("the file is empty")
    if source.format == "fimi":
        return _read_numbers(source, options)
    return _read_names(source, options)


def _read_numbers(source: Source, options: ReadOptions) -> TableStream:
    """Lists of numbers; the columns are in the order of these, and named by them where some are left out."""
    n_rows = 0
    items = _Distinct()
    with _open_numbers(source) as parts:
        for some in parts:
            n_rows += len(some.counts)
            items.add(some.values)
    known = items.all()
    source.check_size(n_rows, len(known))

    def blocks() -> Iterator[RowChunk]:
        entries = CooBuilder(source, options, (n_rows, len(known)))
        with _open_numbers(source) as parts:
            for some in parts:
                columns = np.searchsorted(known, some.values)
                if (known.take(columns, mode="clip") != some.values).any():
                    raise source.error(_CHANGED)
                rows = np.repeat(np.arange(some.line - 1, some.line - 1 + len(some.counts)), some.counts)
                entries.add(rows, columns, np.ones(len(rows), np.bool_))
        yield RowChunk(entries.build())

    plain = len(known) == 0 or known[-1] == len(known) - 1
    return TableStream(len(known), blocks(), None if plain else list(map(str, known.tolist())))


@contextmanager
def _open_numbers(source: Source) -> Iterator[Iterator[NumberLines]]:
    """The numbers in a file."""
    hint = '; if the lines list names, pass format="baskets"'
    with open_decompressed(source) as file:
        yield read_numbers(source, file, 1, items=True, hint=hint)


class _Distinct:
    """Numbers, each once; as many are kept as there are, and about as many more on their way."""

    def __init__(self) -> None:
        self._known: NDArray[np.int64] = np.empty(0, np.int64)
        self._new: list[NDArray[np.int64]] = []
        self._n_new = 0

    def add(self, numbers: NDArray[np.int64]) -> None:
        """Numbers that may be new."""
        self._new.append(np.unique(numbers))
        self._n_new += len(self._new[-1])
        if self._n_new > max(len(self._known), CHUNK_ENTRIES):
            self.all()

    def all(self) -> NDArray[np.int64]:
        """The numbers in their order."""
        self._known = np.unique(np.concatenate((self._known, *self._new)))
        self._new, self._n_new = [], 0
        return self._known


def _read_names(source: Source, options: ReadOptions) -> TableStream:
    """Lists of names; the columns are in the order in which they come first."""
    known: dict[str, int] = {}
    n_rows = 0
    for items in _lists(source, options):
        n_rows += 1
        for item in items:
            known.setdefault(item, len(known))
    source.check_size(n_rows, len(known))

    def blocks() -> Iterator[RowChunk]:
        entries = CooBuilder(source, options, (n_rows, len(known)))
        for rows, columns in _placed(source, _lists(source, options), known):
            entries.add(np.array(rows), np.array(columns), np.ones(len(rows), np.bool_))
        yield RowChunk(entries.build())

    return TableStream(len(known), blocks(), list(known))


def _lists(source: Source, options: ReadOptions) -> Iterator[list[str]]:
    """The items of each line, without blanks around them; where there is nothing between two commas is no item."""
    separator = options.separator or ","
    if len(separator) != 1 or separator in '"\r\n':
        raise source.error(f"what separates items is one character, and not {separator!r}")
    reader = csv.reader(read_lines(source), delimiter=separator, strict=True, skipinitialspace=separator != " ")
    while True:
        try:
            record = next(reader, None)
        except csv.Error as error:
            raise source.error(f"line {reader.line_num}: {error}; look for a quote that is never closed") from error
        if record is None:
            return
        yield [item for cell in record if (item := cell.strip())]


def _placed(source: Source, lists: Iterable[list[str]], known: dict[str, int]) -> Iterator[tuple[list[int], list[int]]]:
    """The rows and columns of items, some at a time."""
    rows: list[int] = []
    columns: list[int] = []
    for row, items in enumerate(lists):
        try:
            columns += map(known.__getitem__, items)
        except KeyError:
            raise source.error(_CHANGED) from None
        rows += [row] * len(items)
        if len(rows) >= CHUNK_ENTRIES:
            yield rows, columns
            rows, columns = [], []
    if rows:
        yield rows, columns


def write(table: Table, path: Path, format: str) -> None:
    """Write the items of each row: the numbers of its columns, or their names."""
    names = _item_numbers(table, path) if format == "fimi" else _item_names(table, path)
    if table.row_names is not None:
        warnings.warn(f"{path.name}: lists of items keep no names of rows; {_KEEPING} them", stacklevel=3)
    empty = np.flatnonzero(table.bits.column_weights() == 0).tolist()
    if empty:
        some = ", ".join(table.names_of(empty[:5])) + (", ..." if len(empty) > 5 else "")
        warnings.warn(
            f"{path.name}: lists of items do not tell of columns without a one, here {len(empty)} ({some}); "
            f"{_KEEPING} them",
            stacklevel=3,
        )
    with open_text_writer(path) as file:
        if format == "fimi":
            for columns in column_indices_by_row(table.bits):
                file.write(" ".join(map(names.__getitem__, columns.tolist())) + "\n")
        else:
            writer = csv.writer(file, lineterminator="\n")
            for columns in column_indices_by_row(table.bits):
                writer.writerow(map(names.__getitem__, columns.tolist()))


def _item_numbers(table: Table, path: Path) -> list[str]:
    """The numbers that stand for columns: those that they are named by, or their places from 0 on."""
    if table.columns is None:
        return list(map(str, range(table.shape[1])))
    for name in table.columns:
        if not (name.isascii() and name.isdecimal() and len(name) < 19 and str(int(name)) == name):
            raise FileError(
                f"{path.name}: lists of numbers need columns that are named by whole numbers, or not at all, "
                f"and one is {name[:40]!r}; .basket, {_KEEPING} names"
            )
    return list(table.columns)


def _item_names(table: Table, path: Path) -> list[str]:
    """The names of columns, all of which can be told from a list."""
    names = table.names_of(range(table.shape[1]))
    for name in names:
        if not name or name != name.strip() or "\r" in name or "\0" in name:
            raise FileError(
                f"{path.name}: lists of names keep no blanks around a name and nothing that ends a line within it, "
                f"and one is {name[:40]!r}; .npz keeps such names"
            )
    return list(names)
