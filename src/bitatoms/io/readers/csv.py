"""CSV and TSV: a row a line, with or without names; 0 and 1, yes and no, true and false, x and blank."""

from __future__ import annotations

import csv
import itertools
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...bits import BitMatrix
from ...errors import Parameter
from ...table import Table
from ..cells import CELL_WORDS, CellPosition, Cells, TextCells
from ..errors import FileError
from ..stream import CHUNK_BITS, ReadOptions, RowChunk, Source, TableStream
from ..text_lines import open_text_writer, read_lines
from .csv_layout import Layout, is_quoted, laid_out

_FEW = 10  # lines from which the separator is told
_LOOKED_AT = 100  # rows from which header and row names are told
_SEPARATORS = (",", "\t", ";", "|")
_TOLD = re.compile(r"sep=(?P<separator>[^\r\n])[\r\n]*", re.IGNORECASE)


def read(source: Source, options: ReadOptions) -> TableStream:
    """The rows of a CSV or TSV file."""
    words = TextCells(Cells(source, options))
    if options.separator and (len(options.separator) != 1 or options.separator in '"\r\n'):
        raise source.error(Parameter("separator"), f" must be one character, got {options.separator!r}")
    text = read_lines(source)
    first = next(text, None)
    if first is None:
        raise source.error("the file is empty")
    told = _TOLD.fullmatch(first)
    if told:  # as spreadsheets write it for each other
        first = next(text, "")
    some = [first, *itertools.islice(text, _FEW)]
    separator = options.separator or (told["separator"] if told else _separator(source, some))
    records = _records(source, itertools.chain(some, text), separator, 1 if told else 0)
    looked_at = list(itertools.islice(records, _LOOKED_AT))
    if not looked_at:
        raise source.error("the file holds nothing but blank lines")
    beginning = [(line, _cells(row, separator)) for line, row in looked_at]
    # Names that could be ones and zeros are told by their quotes, where what follows has none; R writes them so.
    quoted = len(looked_at) > 1 and isinstance(looked_at[1][1], str) and is_quoted(first, beginning[0][1], separator)
    layout = laid_out(source, options, words, beginning, quoted)
    body = itertools.chain(beginning[layout.columns is not None :], records)
    return TableStream(len(layout.places), _blocks(source, words, layout, separator, body), layout.columns)


def _separator(source: Source, some: list[str]) -> str:
    """What stands between the cells: a tab in TSV; in CSV what all of the first lines have, and most of it."""
    if source.format == "tsv":
        return "\t"
    counts = [min((line.count(separator) for line in some if line.strip()), default=0) for separator in _SEPARATORS]
    return _SEPARATORS[int(np.argmax(counts))]


def _records(source: Source, text: Iterator[str], separator: str, number: int) -> Iterator[tuple[int, str | list[str]]]:
    """The rows, each with the number of its line: as cells or, without a quote in it, as the line; blank ones left out.

    A line without quotes is looked at as a whole later on, which is much quicker where its cells are 0 and 1.
    ``number`` is that of the line before the first.
    """
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


def _blocks(
    source: Source, words: TextCells, layout: Layout, separator: str, records: Iterator[tuple[int, str | list[str]]]
) -> Iterator[RowChunk]:
    """The rows as packed bits, some at a time."""
    skip, n_cols = int(layout.row_names), len(layout.places)
    block = np.empty((max(1, CHUNK_BITS // max(1, n_cols)), n_cols), np.uint8)
    between = separator * (n_cols - 1)
    names: list[str] = []
    filled = 0
    for line, record in records:
        name, bits = "", None
        if isinstance(record, str) and layout.is_whole:
            name, _, rest = record.partition(separator) if skip else ("", "", record)
            if len(rest) == 2 * n_cols - 1 and rest[1::2] == between:
                bits = words.characters_to_bits(rest[::2])
        if bits is None:
            cells = _cells(record, separator)
            if len(cells) != layout.width or (layout.trailing and cells[-1].strip()):
                raise source.error(
                    f"line {line} has {len(cells)} cells where {layout.width - layout.trailing} were expected; mend it "
                    '(if every line lists the items of one row, pass format="baskets")'
                )

            def position(column: int, line: int = line) -> CellPosition:
                if layout.columns is not None:
                    return CellPosition(line, layout.columns[column], unit="line")
                number = layout.places[column] + 1
                return CellPosition(line, number, unit="line")

            own = [cells[place] for place in layout.places]
            if own and all(map(words.is_text, own)):
                raise source.error(
                    f"line {line} holds neither ones nor zeros, but {own[0].strip()[:40]!r}; if every line lists the "
                    'items of one row, pass format="baskets"'
                )
            name, bits = cells[0], words.row_to_bits(own, position)
        block[filled] = bits
        names.append(name.strip())
        filled += 1
        if filled == len(block):
            yield RowChunk(BitMatrix.from_dense(block), names if skip else None)
            names, filled = [], 0
    if filled:
        yield RowChunk(BitMatrix.from_dense(block[:filled]), names if skip else None)
    words.check_missing()


def write(table: Table, path: Path, format: str) -> None:
    """Write a table of 0 and 1, with its names."""
    _check_names(table, path)
    how: dict[str, Any] = {"delimiter": "\t" if format == "tsv" else ",", "lineterminator": "\n"}
    with open_text_writer(path) as file:
        writer = csv.writer(file, **how)
        if table.columns is not None or table.row_names is not None:
            corner = [] if table.row_names is None else [""]
            header = [*corner, *table.names_of(range(table.shape[1]))]
            bits = all(name.strip().lower() in CELL_WORDS for name in header[1:] or header)
            # Names that could be ones and zeros are put in quotes, lest they be taken for such.
            (csv.writer(file, **how, quoting=csv.QUOTE_ALL) if bits else writer).writerow(header)
        at_a_time = max(1, CHUNK_BITS // max(1, table.shape[1]))
        for start in range(0, len(table), at_a_time):
            dense = table.bits[start : start + at_a_time].to_dense()
            for row, cells in enumerate(dense.tolist(), start):
                writer.writerow(cells if table.row_names is None else [table.row_names[row], *cells])


def _check_names(table: Table, path: Path) -> None:
    """Refuse names that would not come back, and say what becomes of others."""
    names = [*(table.columns or ()), *(table.row_names or ())]
    for name in names:
        if "\r" in name or "\0" in name:
            raise FileError(f"{path.name}: a text file cannot store the name {name[:40]!r}; rename it, or write .npz")
    if table.row_names is None and table.columns and not table.columns[0].strip():
        raise FileError(f"{path.name}: the first column has no name, so it would be taken for names of rows; name it")
    if any(name != name.strip() for name in names):
        warnings.warn(
            f"{path.name}: blanks around names of rows and columns are not read back from text; .npz keeps them",
            stacklevel=4,
        )
