"""Tables of categories and numbers in text files and sheets: one column of 0 and 1 per value, and per bin of a number.

The values of a column are known only at the end of the file, so it is read twice; memory holds the distinct values.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix
from ...columns.annotations import Labels
from ...columns.encoding import Encoding, UnseenValues
from ...columns.variables import Summary, parse_number
from ...errors import InputError, Parameter, warn
from ..cells import MISSING_WORDS, CellPosition, Cells, state_of
from ..errors import FileError
from ..limits import CHUNK_BITS
from ..options import ReadOptions
from ..records import Record, is_blank, read_records, unit_of
from ..shapes import Advice, column_labels, doubt_row_names, names_rows
from ..stream import RowChunk, Source, TableStream, find_columns, unique_columns

_HEAD_ROWS = 1000  # rows from which the header is detected
_MAX_CHUNK_ROWS = 1 << 14
_MAX_TEXTS = 100_000  # distinct ones of a column that is no number and does not name the rows
_LACKING = (MISSING_WORDS - {"none"}) | {""}  # "none" is a category, such as that of a survey


class CategoryLayout(NamedTuple):
    """Where the variables are in the rows of a file."""

    header: bool
    labels: list[str]  # of all columns
    indices: dict[str, int]  # of the variables
    row_names: int | None  # the column that names the rows
    doubt: Advice = ()  # a note on a first column that may not be row names


def has_variables(source: Source, options: ReadOptions, encoding: Encoding) -> bool:
    """Return whether a file has the variables of an encoding, not their columns of 0 and 1."""
    head = _head(source, options)
    if not head:
        return False
    header = _has_header(head) if options.header is None else options.header
    are_bits = all(state_of(cell) is not None for cells in head for cell in cells)
    if not header and are_bits and len(head[0]) == len(encoding.columns):
        return False
    return encoding.is_raw(column_labels(head[0], header))


def read(source: Source, options: ReadOptions) -> TableStream:
    """Open a table of categories: learn the encoding of its values, and apply it."""
    with _named_errors(source):
        layout = _detect_layout(source, options)
        n_rows, n_blank, counts = _count_values(source, options, layout)
        layout = _with_row_names(source, options, layout, counts, n_rows - n_blank)
        summaries = {name: counts[name].summary(name in options.as_category) for name in layout.indices}
        encoding = Encoding.learned(summaries, options)
        source.check_size(n_rows, len(encoding.columns), streamable=True)
    if not encoding.variables:
        raise source.error("the table has no column with values")
    return _encoded(source, options, layout, encoding)


def read_encoded(
    source: Source, options: ReadOptions, encoding: Encoding, absent: str | None, table: str
) -> TableStream:
    """Open a table of categories with the encoding of a model; see `Encoding.apply`."""
    with _named_errors(source):
        layout = _layout_for_model(source, options, encoding)
        present, fill = encoding.match(tuple(layout.indices), absent, table)
    stream = _encoded(source, options, layout, present)
    own = {name: index for index, name in enumerate(present.columns)}
    order = np.array([own.get(name, -1) for name in encoding.columns], np.int64)
    chunks = (RowChunk(chunk.bits.take_columns(order, fill), chunk.names) for chunk in stream.chunks)
    return TableStream(len(order), chunks, encoding.columns, column_data=encoding.column_data)


def _layout_for_model(source: Source, options: ReadOptions, encoding: Encoding) -> CategoryLayout:
    """Detect the layout of a table of new rows: a first column that the model does not know may name the rows."""
    layout = _detect_layout(source, options)
    first, has_names = layout.labels[0], options.row_names
    if has_names is None:
        texts = [cells[0] for cells in _head(source, options)[layout.header :]]
        is_known = any(first == variable.name for variable in encoding.variables)
        has_names = not first or (not is_known and len(set(texts)) == len(texts))
    indices = {name: index for name, index in layout.indices.items() if index or not has_names}
    return layout._replace(indices=indices, row_names=0 if has_names else None)


def read_values(source: Source, options: ReadOptions, encoding: Encoding) -> dict[str, list[str | None]]:
    """Return the values of the variables that a file has, as it has them; None where they are missing."""
    layout = _layout_for_model(source, options, encoding)
    columns = [(variable.name, layout.indices.get(variable.name)) for variable in encoding.variables]
    values: dict[str, list[str | None]] = {name: [] for name, index in columns if index is not None}
    for chunk in _row_chunks(source, options, layout, _MAX_CHUNK_ROWS):
        texts = _columns(chunk)
        for name, index in columns:
            if index is not None:
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


def _head(source: Source, options: ReadOptions) -> list[list[str]]:
    """Return the cells of the first rows that are not blank."""
    records = (cells for _, cells in read_records(source, options) if not is_blank(cells))
    return list(itertools.islice(records, _HEAD_ROWS))


def _has_header(head: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row contains names: most of its cells are no numbers and do not occur below."""
    first, *body = head
    below = [{cells[index].strip() for cells in body if index < len(cells)} for index in range(len(first))]
    others = sum(
        parse_number(cell.strip()) is not None or (cell.strip() in values and cell.strip() != "")
        for cell, values in zip(first, below, strict=True)
    )
    return 2 * others <= len(first)


def _detect_layout(source: Source, options: ReadOptions) -> CategoryLayout:
    """Detect the header, and which columns are variables."""
    head = _head(source, options)
    if not head:
        raise source.error("the file is empty")
    header = _has_header(head) if options.header is None else options.header
    labels = column_labels(head[0], header)
    row_names = 0 if options.row_names or (options.row_names is None and header and not labels[0]) else None
    variables = [index for index in range(len(labels)) if index != row_names]
    if header and (blank := [index + 1 for index in variables if not labels[index]]):
        raise source.error(f"column {blank[0]} has no name; write one into the first {unit_of(source)}")
    distinct = unique_columns(source, [labels[index] for index in variables], options.duplicates)
    for index, name in zip(variables, distinct, strict=True):
        labels[index] = name
    without = find_columns(source, options.without, [labels[index] for index in variables])
    kept = {labels[index]: index for index in variables if labels[index] not in without}
    return CategoryLayout(header, labels, kept, row_names)


def _with_row_names(
    source: Source, options: ReadOptions, layout: CategoryLayout, counts: dict[str, _ValueCounts], n_rows: int
) -> CategoryLayout:
    """Return the layout in which a first column whose values all differ names the rows, unless these are numbers.

    Numbers name the rows only if the name of the column shows that.
    """
    first = layout.labels[0]
    if options.row_names is not None or layout.row_names is not None or first not in layout.indices:
        return layout
    given = (*options.as_category, *options.as_number)
    is_name = not counts[first].are_numbers or names_rows(first)
    if first in given or len(layout.labels) < 2 or counts[first].n_distinct < n_rows or not is_name or n_rows < 2:
        return layout
    others = {name: index for name, index in layout.indices.items() if name != first}
    doubt = doubt_row_names(source, first, counts[first].texts, lambda text: parse_number(text) is not None)
    return layout._replace(indices=others, row_names=0, doubt=doubt)


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
        if len(counts) > _MAX_TEXTS:
            if self.are_numbers:
                self._numbers.append(np.repeat([float(text) for text in counts], list(counts.values())))
                self._texts = {}
            elif not self._may_be_names:
                raise self._source.error(
                    f"the column {self._name[:40]!r} has more than {_MAX_TEXTS} different texts, which are hardly "
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
            raise self._source.error(f"the column {self._name[:40]!r} contains numbers and {text[:40]!r}; correct it")
        numbers = np.concatenate([*self._numbers, np.repeat([float(text) for text in texts], counts)])
        return Summary(*np.unique(numbers, return_counts=True))


def _count_values(
    source: Source, options: ReadOptions, layout: CategoryLayout
) -> tuple[int, int, dict[str, _ValueCounts]]:
    """Return the numbers of rows and of blank rows, and the values of each variable."""
    counts = {name: _ValueCounts(source, name, index == 0) for name, index in layout.indices.items()}
    n_rows = n_blank = 0
    for chunk in _row_chunks(source, options, layout, _MAX_CHUNK_ROWS):
        n_rows += len(chunk)
        n_blank += sum(is_blank(cells) for _, cells in chunk)
        columns = _columns(chunk)
        for name, index in layout.indices.items():
            counts[name].add(columns[index])
    return n_rows, n_blank, counts


def _row_chunks(source: Source, options: ReadOptions, layout: CategoryLayout, size: int) -> Iterator[list[Record]]:
    """Yield the rows below the header, several at a time, with their numbers; without blank ones if rows have names."""
    records = (record for record in read_records(source, options) if record[1])
    rows: Iterator[Record] = itertools.islice(records, int(layout.header), None)
    if layout.row_names is not None:
        rows = (record for record in rows if not is_blank(record[1]))
    while chunk := list(itertools.islice(rows, size)):
        for number, cells in chunk:
            if len(cells) != len(layout.labels):
                unit = unit_of(source)
                raise source.error(f"{unit} {number} has {len(cells)} cells; expected {len(layout.labels)}")
        yield chunk


def _columns(chunk: list[Record]) -> list[tuple[str, ...]]:
    """Return the cells of rows by column."""
    return list(zip(*(cells for _, cells in chunk), strict=True))


def _encoded(source: Source, options: ReadOptions, layout: CategoryLayout, encoding: Encoding) -> TableStream:
    """Return the rows of a file, encoded."""
    size = min(_MAX_CHUNK_ROWS, max(1, CHUNK_BITS // max(1, len(encoding.columns))))

    def chunks() -> Iterator[RowChunk]:
        names = [variable.name for variable in encoding.variables]
        cells = Cells(source, options, lambda row, index: CellPosition(row, names[index], unit=unit_of(source)))
        unseen = UnseenValues()
        for chunk in _row_chunks(source, options, layout, size):
            with _named_errors(source):
                bits = _pack(chunk, layout, encoding, cells, unseen)
            rows = None if layout.row_names is None else [row[layout.row_names].strip() for _, row in chunk]
            yield RowChunk(bits if options.missing == "unknown" else bits.filled(), rows)
        unseen.warn(source.name)
        cells.check_missing()
        if layout.doubt:
            warn(*layout.doubt)

    return TableStream(len(encoding.columns), chunks(), encoding.columns, column_data=encoding.column_data)


def _pack(
    chunk: list[Record], layout: CategoryLayout, encoding: Encoding, cells: Cells, unseen: UnseenValues
) -> BitMatrix:
    """Return rows as bits; missing and unseen values are counted."""
    columns, texts = {}, _columns(chunk)
    for index, variable in enumerate(encoding.variables):
        labels = _labels(texts[layout.indices[variable.name]])
        if n_missing := int((labels.codes < 0).sum()):
            number = chunk[int(np.argmax(labels.codes < 0))][0]
            cells.missing.add(n_missing, number, index)
        columns[variable.name] = labels
    bits, lacking = encoding.packed(columns, len(chunk), cells.source.name)
    unseen.update(lacking)
    return bits


def _labels(texts: Sequence[str]) -> Labels:
    """Return text in which words for missing values are missing."""
    distinct = dict.fromkeys(texts)
    known = tuple(text for text in distinct if text.strip().lower() not in _LACKING)
    codes = dict.fromkeys(distinct, -1) | {text: code for code, text in enumerate(known)}
    return Labels(np.fromiter(map(codes.__getitem__, texts), np.int32, len(texts)), known)
