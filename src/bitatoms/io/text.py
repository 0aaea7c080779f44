"""CSV and TSV: a row a line, with or without names; 0 and 1, yes and no, true and false, x and blank."""

from __future__ import annotations

import csv
import itertools
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..bits import BitMatrix
from ..table import Table
from .cells import BITS, Cells, Words
from .errors import FileError
from .lines import lines, text_to
from .stream import ROWS_BITS, Options, Rows, Source, Stream

_LOOKED_AT = 100  # rows from which header and row names are told
_SEPARATORS = (",", "\t", ";", "|")


class Layout(NamedTuple):
    """Where the names are in a file of text."""

    columns: list[str] | None
    row_names: bool
    n_cols: int


def read(source: Source, options: Options) -> Stream:
    """The rows of a CSV or TSV file."""
    words = Words(Cells(source, options))
    if options.separator and (len(options.separator) != 1 or options.separator in '"\r\n'):
        raise source.error(f"what separates cells is one character, and not {options.separator!r}")
    text = lines(source)
    first = next(text, None)
    if first is None:
        raise source.error("the file is empty")
    separator = options.separator or _separator(source, first)
    records = _records(source, itertools.chain([first], text), separator)
    looked_at = list(itertools.islice(records, _LOOKED_AT))
    if not looked_at:
        raise source.error("the file holds nothing but blank lines")
    beginning = [(line, _cells(row, separator)) for line, row in looked_at]
    # Names that could be ones and zeros are told by their quotes, where what follows has none; R writes them so.
    quoted = len(looked_at) > 1 and isinstance(looked_at[1][1], str) and _is_quoted(first, beginning[0][1], separator)
    layout = _layout(source, options, words, beginning, quoted)
    body = itertools.chain(beginning[layout.columns is not None :], records)
    return Stream(layout.n_cols, _blocks(source, words, layout, separator, body), layout.columns)


def _separator(source: Source, line: str) -> str:
    """What stands between the cells: a tab in TSV; in CSV the one that the first line has most of."""
    if source.format == "tsv":
        return "\t"
    counts = [line.count(separator) for separator in _SEPARATORS]
    return _SEPARATORS[int(np.argmax(counts))]


def _records(source: Source, text: Iterator[str], separator: str) -> Iterator[tuple[int, str | list[str]]]:
    """The rows, each with the number of its line: as cells or, without a quote in it, as the line; blank ones left out.

    A line without quotes is looked at as a whole later on, which is much quicker where its cells are 0 and 1.
    """
    number = 0
    for line in text:
        number += 1
        if '"' in line:
            # A quoted cell may go on over several lines: the reader takes as many as it needs.
            reader = csv.reader(itertools.chain([line], text), delimiter=separator, strict=True)
            try:
                record = next(reader)
            except (csv.Error, StopIteration) as error:
                raise source.error(f"line {number}: {error}; look for a quote that is never closed") from error
            number += reader.line_num - 1
            yield number, record
            continue
        bare = line.rstrip("\r\n")
        if "\r" in bare:
            raise source.error(f"line {number} holds a carriage return; save the file with ordinary ends of lines")
        if bare:
            yield number, bare


def _cells(record: str | list[str], separator: str) -> list[str]:
    """The cells of a row."""
    return record.split(separator) if isinstance(record, str) else record


def _is_quoted(line: str, cells: list[str], separator: str) -> bool:
    """Whether all cells of a line stand in quotes."""
    return line.rstrip("\r\n") == separator.join(f'"{cell}"' for cell in cells)


def _begins_with_names(words: Words, records: list[list[str]]) -> bool:
    """Whether the first line holds names: a cell of it is neither a one nor a zero, and not just the name of a row."""
    first, *body = records
    if any(not words.is_one_or_zero(cell) for cell in first[1:] or first):
        return True
    below = any(not words.is_one_or_zero(record[0]) for record in body)  # there are names of rows
    return bool(body) and (not first[0].strip() if below else not words.is_one_or_zero(first[0]))


def _layout(
    source: Source, options: Options, words: Words, beginning: list[tuple[int, list[str]]], quoted: bool
) -> Layout:
    """Tell from the first rows whether the first line and the first column hold names."""
    first = beginning[0][1]
    header = options.header
    if header is None:
        header = quoted or _begins_with_names(words, [record for _, record in beginning])
    body = beginning[1:] if header else beginning
    width = len(body[0][1]) if body else len(first)
    named = options.row_names
    if named is None:
        column = [record[0] for _, record in body]
        strange = any(not words.is_one_or_zero(cell) for cell in column)
        # R writes a header without a cell for the row names; where all lines end in a separator, there are none.
        named = bool(column) and (
            (header and len(first) == width - 1 and any(record[-1].strip() for _, record in body))
            or (header and not first[0].strip() and len(first) == width)
            or (strange and len(set(column)) == len(column) and width > 1)
        )
    columns = None
    if header:
        columns = [name.strip() for name in first]
        if named and len(columns) == width:
            columns = columns[1:]
        expected = width - named if body else len(columns)
        if len(columns) != expected:
            raise source.error(
                f"the first line names {len(columns)} columns, but line {body[0][0]} has {expected} cells"
            )
    return Layout(columns, named, len(columns) if columns is not None else width - named)


def _blocks(
    source: Source, words: Words, layout: Layout, separator: str, records: Iterator[tuple[int, str | list[str]]]
) -> Iterator[Rows]:
    """The rows as packed bits, some at a time."""
    skip = int(layout.row_names)
    block = np.empty((max(1, ROWS_BITS // max(1, layout.n_cols)), layout.n_cols), np.uint8)
    between = separator * (layout.n_cols - 1)
    names: list[str] = []
    filled = 0
    for line, record in records:
        name, bits = "", None
        if isinstance(record, str):
            name, _, rest = record.partition(separator) if skip else ("", "", record)
            if len(rest) == 2 * layout.n_cols - 1 and rest[1::2] == between:
                bits = words.letters(rest[::2])
        if bits is None:
            cells = _cells(record, separator)
            if len(cells) != layout.n_cols + skip:
                raise source.error(
                    f"line {line} has {len(cells)} cells where {layout.n_cols + skip} were expected; mend it (if every "
                    'line lists the items of one row, pass format="baskets")'
                )

            def where(column: int, line: int = line) -> str:
                name = repr(layout.columns[column][:40]) if layout.columns is not None else str(column + skip + 1)
                return f"line {line}, column {name}"

            name, bits = cells[0], words.row(cells[skip:], where)
        block[filled] = bits
        names.append(name.strip())
        filled += 1
        if filled == len(block):
            yield Rows(BitMatrix.from_dense(block), names if skip else None)
            names, filled = [], 0
    if filled:
        yield Rows(BitMatrix.from_dense(block[:filled]), names if skip else None)
    words.settle()


def write(table: Table, path: Path, format: str) -> None:
    """Write a table of 0 and 1, with its names."""
    _check_names(table, path)
    how: dict[str, Any] = {"delimiter": "\t" if format == "tsv" else ",", "lineterminator": "\n"}
    with text_to(path) as file:
        writer = csv.writer(file, **how)
        if table.columns is not None or table.rows is not None:
            corner = [] if table.rows is None else [""]
            header = [*corner, *table.names_of(range(table.shape[1]))]
            bits = all(name.strip().lower() in BITS for name in header[1:] or header)
            # Names that could be ones and zeros are put in quotes, lest they be taken for such.
            (csv.writer(file, **how, quoting=csv.QUOTE_ALL) if bits else writer).writerow(header)
        at_a_time = max(1, ROWS_BITS // max(1, table.shape[1]))
        for start in range(0, len(table), at_a_time):
            dense = table.bits[start : start + at_a_time].to_dense()
            for row, cells in enumerate(dense.tolist(), start):
                writer.writerow(cells if table.rows is None else [table.rows[row], *cells])


def _check_names(table: Table, path: Path) -> None:
    """Refuse names that would not come back, and say what becomes of others."""
    names = [*(table.columns or ()), *(table.rows or ())]
    for name in names:
        if "\r" in name or "\0" in name:
            raise FileError(f"{path.name}: text keeps no name such as {name[:40]!r}; rename it, or write .npz")
    if table.rows is None and table.columns and not table.columns[0].strip():
        raise FileError(f"{path.name}: the first column has no name, so it would be taken for names of rows; name it")
    if any(name != name.strip() for name in names):
        warnings.warn(
            f"{path.name}: blanks around names of rows and columns are not read back from text; .npz keeps them",
            stacklevel=4,
        )
