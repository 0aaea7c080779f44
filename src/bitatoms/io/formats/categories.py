"""Tables of categories and numbers in text files and sheets: one column of 0 and 1 per value, and per bin of a number.

The values of a column are known only at the end of the file, so it is read twice; memory holds the distinct values.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ...columns.annotations import Labels
from ...columns.encoding import Encoding, UnseenValues
from ...columns.variables import Summary, parse_number
from ...errors import InputError, Parameter, warn
from ...formatting import quoted
from ..cells import MISSING_WORDS, Cells, are_cells
from ..errors import FileError
from ..layout import CATEGORY_NAMES, Layout, doubt_row_names, header_and_labels, names_rows
from ..limits import CHUNK_BITS, HEAD_ROWS, MAX_CATEGORIES, MAX_CHUNK_ROWS
from ..options import ReadOptions
from ..stream import RowChunk, Source, TableStream
from ..text import TextRows, is_blank

Row = tuple[int, list[str]]  # its number and cells

_LACKING = (MISSING_WORDS - {"none"}) | {""}  # "none" is a category, such as that of a survey


def has_variables(source: Source, options: ReadOptions, encoding: Encoding) -> bool:
    """Return whether a file has the variables of an encoding, not their columns of 0 and 1."""
    rows = TextRows(source, options)
    head = [cells for _, cells in rows.head(HEAD_ROWS) if not is_blank(cells)]
    if not head:
        return False
    header, labels = header_and_labels(head, options.header, CATEGORY_NAMES)
    if not header and len(labels) == len(encoding.columns) and all(map(are_cells, head)):
        return False
    return encoding.is_raw(labels)


def read(source: Source, options: ReadOptions) -> TableStream:
    """Open a table of categories: learn the encoding of its values, and apply it."""
    with _named_errors(source):
        rows = TextRows(source, options)
        layout = Layout.detect(rows, options)
        n_rows, n_blank, counts = _count_values(rows, layout)
        layout = _with_row_names(source, options, layout, counts, n_rows - n_blank)
        names = layout.column_labels
        summaries = {name: counts[name].summary(name in options.as_category) for name in names}
        encoding = Encoding.learned(summaries, options)
        source.check_size(n_rows, len(encoding.columns), streamable=True)
    if not encoding.variables:
        raise source.error("the table has no column with values")
    return _encoded(TextRows(source, options), options, layout, encoding)


def read_encoded(
    source: Source, options: ReadOptions, encoding: Encoding, absent: str | None, table: str
) -> TableStream:
    """Open a table of categories with the encoding of a model; see `Encoding.apply`."""
    with _named_errors(source):
        rows, layout = _open_for_model(source, options, encoding)
        match = encoding.match(tuple(layout.column_labels), absent, table)
    return _encoded(rows, options, layout, encoding, match.fill)


def _open_for_model(source: Source, options: ReadOptions, encoding: Encoding) -> tuple[TextRows, Layout]:
    """Open a table of new rows: a first column that the model does not know may name the rows."""
    rows = TextRows(source, options)
    known = [variable.name for variable in encoding.variables]
    return rows, Layout.detect(rows, replace(options, categories=True), known)


def read_values(source: Source, options: ReadOptions, encoding: Encoding) -> dict[str, list[str | None]]:
    """Return the values of the variables that a file has, as it has them; None where they are missing."""
    rows, layout = _open_for_model(source, options, encoding)
    own = dict(zip(layout.column_labels, layout.columns, strict=True))
    columns = [(variable.name, own[variable.name]) for variable in encoding.variables if variable.name in own]
    values: dict[str, list[str | None]] = {name: [] for name, _ in columns}
    for chunk in _row_chunks(rows, layout, MAX_CHUNK_ROWS):
        texts = _columns(chunk)
        for name, index in columns:
            values[name].extend(None if text.strip().lower() in _LACKING else text for text in texts[index])
    return values


@contextmanager
def _named_errors(source: Source) -> Iterator[None]:
    """Raise errors about the values of a file as FileErrors that name it."""
    try:
        yield
    except FileError:
        raise
    except InputError as error:
        is_named = isinstance(error.args[0], str) and error.args[0].startswith(f"{source.name}: ")
        raise (FileError(*error.args) if is_named else source.error(*error.args)) from error


def _with_row_names(
    source: Source, options: ReadOptions, layout: Layout, counts: dict[str, _ValueCounts], n_rows: int
) -> Layout:
    """Return the layout in which a first column whose values all differ names the rows, unless these are numbers.

    Numbers name the rows only if the name of the column shows that.
    """
    if options.row_names is not None or layout.row_names is not None or 0 not in layout.columns:
        return layout
    first = layout.labels[0]
    is_name = not counts[first].are_numbers or names_rows(first)
    if first in (*options.as_category, *options.as_number) or len(layout.labels) < 2 or n_rows < 2:
        return layout
    if counts[first].n_distinct < n_rows or not is_name:
        return layout
    doubt = doubt_row_names(source, first, counts[first].texts, lambda text: parse_number(text) is not None)
    return replace(layout, columns=layout.columns[1:], row_names=0, doubt=doubt)


class _ValueCounts:
    """How often each value of a column occurs: by their texts, or as numbers if these are many."""

    def __init__(self, source: Source, name: str, may_be_names: bool) -> None:
        self._source, self._name, self._may_be_names = source, name, may_be_names
        self._texts: dict[str, int] = {}
        self._numbers: list[NDArray[np.float64]] = []

    def add(self, texts: Sequence[str]) -> None:
        """Count values; missing ones are ignored."""
        counts = self._texts
        for text, count in Counter(texts).items():
            word = text.strip()
            if word.lower() not in _LACKING:
                counts[word] = counts.get(word, 0) + count
        if len(counts) > MAX_CATEGORIES:
            if self.are_numbers:
                self._numbers.append(np.repeat([float(text) for text in counts], list(counts.values())))
                self._texts = {}
            elif not self._may_be_names:
                raise self._source.error(
                    f"the column {quoted(self._name)} has more than {MAX_CATEGORIES} different texts, which are hardly "
                    "categories; leave it out with ", Parameter("without", self._name),
                )  # fmt: skip

    @property
    def texts(self) -> Iterable[str]:
        """The distinct values, unless these are many numbers."""
        return self._texts

    @property
    def are_numbers(self) -> bool:
        """Whether all values are numbers."""
        return all(parse_number(text) is not None for text in self._texts)

    @property
    def n_distinct(self) -> int:
        """The number of distinct values."""
        return len(self.summary(False).values) if self._numbers else len(self._texts)

    def summary(self, as_text: bool) -> Summary:
        """Return the distinct values, as numbers if all of them are, unless they are to be text."""
        texts, counts = tuple(self._texts), np.array([*self._texts.values()], np.int64)
        if not self._numbers and (as_text or not texts or not self.are_numbers):
            return Summary(texts, counts)
        if self._numbers and not self.are_numbers:
            text = next(text for text in texts if parse_number(text) is None)
            raise self._source.error(f"the column {quoted(self._name)} contains numbers and {quoted(text)}; correct it")
        numbers = np.concatenate([*self._numbers, np.repeat([float(text) for text in texts], counts)])
        return Summary(*np.unique(numbers, return_counts=True))


def _count_values(rows: TextRows, layout: Layout) -> tuple[int, int, dict[str, _ValueCounts]]:
    """Return the numbers of rows and of blank rows, and the values of each variable."""
    variables = list(zip(layout.column_labels, layout.columns, strict=True))
    counts = {name: _ValueCounts(rows.source, name, index == 0) for name, index in variables}
    n_rows = n_blank = 0
    for chunk in _row_chunks(rows, layout, MAX_CHUNK_ROWS):
        n_rows += len(chunk)
        n_blank += sum(is_blank(cells) for _, cells in chunk)
        columns = _columns(chunk)
        for name, index in variables:
            counts[name].add(columns[index])
    return n_rows, n_blank, counts


def _row_chunks(rows: TextRows, layout: Layout, size: int) -> Iterator[list[Row]]:
    """Yield the rows below the header, several at a time, with their numbers; without blank ones if rows have names."""
    below = layout.rows_below(rows, with_blank=layout.row_names is None)
    while chunk := list(itertools.islice(below, size)):
        yield chunk


def _columns(chunk: list[Row]) -> list[tuple[str, ...]]:
    """Return the cells of rows by column."""
    return list(zip(*(cells for _, cells in chunk), strict=True))


def _encoded(
    rows: TextRows, options: ReadOptions, layout: Layout, encoding: Encoding, fill: str = "zero"
) -> TableStream:
    """Return the rows of a file, encoded; cells of absent variables are zeros or unknown, as ``fill``."""
    source = rows.source
    size = min(MAX_CHUNK_ROWS, max(1, CHUNK_BITS // max(1, len(encoding.columns))))

    def chunks() -> Iterator[RowChunk]:
        cells, unseen = Cells(source, options, layout.position_of(source)), UnseenValues(source.name)
        for chunk in _row_chunks(rows, layout, size):
            with _named_errors(source):
                columns = _columns_to_encode(chunk, layout, encoding, cells)
                bits = encoding.packed(columns, unseen, options.missing, fill)
            names = None if layout.row_names is None else [row[layout.row_names].strip() for _, row in chunk]
            yield RowChunk(bits, names)
        unseen.warn()
        cells.check_missing()
        if layout.doubt:
            warn(*layout.doubt)

    return TableStream(len(encoding.columns), chunks(), encoding.columns, column_data=encoding.column_data)


def _columns_to_encode(chunk: list[Row], layout: Layout, encoding: Encoding, cells: Cells) -> dict[str, Labels]:
    """Return the columns of the variables in rows; missing values are counted."""
    columns, texts = {}, _columns(chunk)
    wanted = {variable.name for variable in encoding.variables}
    for number, index in enumerate(layout.columns):
        name = layout.labels[index]
        if name not in wanted:
            continue
        columns[name] = labels = _labels(texts[index])
        if n_missing := int((labels.codes < 0).sum()):
            cells.missing.add(n_missing, chunk[int(np.argmax(labels.codes < 0))][0], number)
    return columns


def _labels(texts: Sequence[str]) -> Labels:
    """Return text in which words for missing values are missing."""
    distinct = dict.fromkeys(texts)
    known = tuple(text for text in distinct if text.strip().lower() not in _LACKING)
    codes = dict.fromkeys(distinct, -1) | {text: code for code, text in enumerate(known)}
    return Labels(np.fromiter(map(codes.__getitem__, texts), np.int32, len(texts)), known)
