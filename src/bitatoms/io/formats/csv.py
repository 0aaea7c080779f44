"""CSV and TSV files: one line per row, with or without names of rows and columns.

Cells are 0 and 1, yes and no, true and false, x and blank; with a threshold, numbers; in a table of numbers of copies
0, 1 and 2, each of which becomes two bits. Unknown cells are written as NA.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...columns.table import Table, first_duplicate
from ...errors import Parameter, warn
from ..cells import CellPosition, Cells, are_cells
from ..errors import FileError
from ..limits import CHUNK_BITS
from ..options import ReadOptions
from ..records import is_blank, open_lines, read_records, unit_of
from ..shapes import Advice, LongTable, column_labels, detect_shape, doubt_row_names, quantity_column, suggest_pairs
from ..sheets import has_text_header
from ..stream import RowChunk, Source, TableStream, find_columns
from ..text_lines import need_quotes, open_text_writer
from . import pairs, transactions
from .registry import sniff_format

_UNKNOWN = "NA"  # how an unknown cell is written; a blank one would be a zero in a table without other zeros
_LAYOUT_ROWS = 100  # rows from which the header and the row names are detected
_SHAPE_ROWS = 1000  # rows from which it is detected that the file is a long table or lists of items
_SHAPE_CELLS = 1000  # per row: with more, the file is a table

Record = tuple[int, str | list[str]]  # the line number of a row, and its cells or, if it has no quotes, its line


class CsvLayout(NamedTuple):
    """Where the names and the table's columns are in the lines of a file."""

    columns: list[str] | None
    has_row_names: bool
    indices: list[int]  # of the table's columns among the cells of a line
    n_cells: int  # per line
    trailing_separator: bool = False  # each line ends with a separator, so that its last cell is empty
    other_format: Advice = ()  # how to read the file if it looks like lists of items or like a long table
    doubt: Advice = ()  # a note on a first column that may not be row names

    @property
    def takes_all_cells(self) -> bool:
        """Return whether every cell of a line except the row name is in the table."""
        return len(self.indices) + self.has_row_names == self.n_cells


def read(source: Source, options: ReadOptions) -> TableStream:
    """Open a CSV or TSV file, or a sheet; also one that is detected to be a long table or lists of items."""
    is_plain = options.binarize is None and options.row_names is None and not (options.without or options.dosage)
    if is_plain:
        other = _read_other_shape(source, options)
        if other is not None:
            return other
    text_cells = Cells(source, options)
    stream, doubt = _open(source, options, text_cells)
    return replace(stream, chunks=_checked(stream.chunks, text_cells, doubt))


def _read_other_shape(source: Source, options: ReadOptions) -> TableStream | None:
    """Open a file that is clearly a long table, or lists of items, with a note; return None for other files."""
    if sniff_format(source.path) not in (None, source.format):
        return None
    head: list[list[str]] = []
    with suppress(FileError):  # raised again when the file is read as a table
        opened = None if source.format == "xlsx" else open_lines(source, options)
        if opened is not None:
            options = replace(options, separator=opened.separator)
        head = _shape_head(cells for _, cells in read_records(source, options) if not is_blank(cells))
    shape = detect_shape(head)
    if shape is None or options.header not in (None, shape.header):
        return None
    other = Parameter("categories", True), " reads a table of categories"
    if isinstance(shape, LongTable):
        labels = column_labels(head[0], shape.header)
        chosen = labels[shape.row], labels[shape.item]
        row, item = (f"{label[:40]!r}" if shape.header else label for label in chosen)
        quantity = quantity_column(labels) if shape.header else None
        ignored = "" if quantity is None else f"; column {labels[quantity][:40]!r} is its quantity"
        ignored += "" if len(labels) == 2 + (quantity is not None) else "; other columns are ignored"
        about = f"read as a long table: column {row} names the row, and column {item} the item, of each line{ignored}; "
        warn(f"{source.name}: {about}", Parameter("long"), " chooses other columns, and ", *other)
        return pairs.read(source, replace(options, long=chosen, header=shape.header))
    below = (", below a header" if shape.header else "") + (", after its length" if shape.first else "")
    about = f"each {unit_of(source)} is read as a list of items{below}; "
    confirm = () if source.format == "xlsx" else (Parameter("format", "baskets"), " confirms that, and ")
    warn(f"{source.name}: {about}", *confirm, *other)
    return transactions.read_lists(source, options, shape)


def _shape_head(records: Iterator[list[str]]) -> list[list[str]]:
    """Return the first rows, from which a shape is detected; none if the second one consists of ones and zeros."""
    head = list(itertools.islice(records, 2))
    if len(head) < 2 or max(map(len, head)) > _SHAPE_CELLS:
        return []
    words = [cell for cell in head[1][1:] if cell.strip()]
    if words and are_cells(words):
        return []
    return [*head, *itertools.islice(records, _SHAPE_ROWS - 2)]


def _checked(chunks: Iterator[RowChunk], text_cells: Cells, doubt: Advice) -> Iterator[RowChunk]:
    """Yield the chunks, then check missing cells, and note a doubt about row names."""
    yield from chunks
    text_cells.check_missing()
    if doubt:
        warn(*doubt)


def _open(source: Source, options: ReadOptions, text_cells: Cells) -> tuple[TableStream, Advice]:
    """Open a file whose cells are converted by these ``text_cells``; return also a note on its row names, or ()."""
    opened = None if source.format == "xlsx" else open_lines(source, options)
    records: Iterator[Record]
    texts: list[str] = []
    if opened is None:
        separator, records = ",", read_records(source, options)
    else:
        separator = opened.separator
        records = _records(source, opened.lines, separator, int(opened.is_declared), texts)
    head = list(itertools.islice(records, _LAYOUT_ROWS))
    if not head:
        raise source.error(f"the file contains only blank {unit_of(source)}s")
    split_head = [(line, _split(record, separator)) for line, record in head]
    # A quoted first line above another one is a header, even if its names look like bits; R writes such files.
    is_quoted = texts[:1] == [separator.join(map(_quoted, split_head[0][1]))]
    if is_quoted and len(texts) > 1:
        is_quoted = any(cell and _quoted(cell) not in texts[1] for cell in split_head[1][1])
    if source.format == "xlsx" and are_cells(split_head[0][1]):
        is_quoted = has_text_header(source, options.sheet)
    layout = _detect_layout(source, options, text_cells, split_head, is_quoted)
    has_duplicates = layout.columns is not None and first_duplicate(layout.columns) is not None
    if has_duplicates and layout.other_format and options.duplicates == "refuse":
        raise _not_a_table(source, *split_head[1], layout.other_format)
    body = itertools.chain(split_head[layout.columns is not None :], records)
    chunks = _chunks(source, options, text_cells, layout, separator, body)
    return TableStream(len(layout.indices), chunks, layout.columns), layout.doubt


def _records(source: Source, lines: Iterator[str], separator: str, number: int, texts: list[str]) -> Iterator[Record]:
    """Yield the rows that have text; ``number`` is the number of the line before the first.

    Blanks around a cell are part of it only if it is quoted. ``texts`` gets the texts of the first two rows.
    """
    for line in lines:
        number += 1
        if '"' in line:
            # A quoted cell may span several lines; the reader takes as many as it needs.
            taken: list[str] = []
            rest = _noted(itertools.chain([line], lines), taken)
            reader = csv.reader(rest, delimiter=separator, strict=True, skipinitialspace=separator != " ")
            try:
                record = next(reader)
            except (csv.Error, StopIteration) as error:
                raise source.error(f"line {number}: {error}; check for an unclosed quote") from error
            number += reader.line_num - 1
            text = "".join(taken).rstrip("\r\n")
            if len(texts) < 2:
                texts.append(text)
            stripped = zip(record, map(str.strip, record), strict=True)
            yield number, [cell if cell == bare or _quoted(cell) in text else bare for cell, bare in stripped]
            continue
        bare = line.rstrip("\r\n")
        if "\r" in bare:
            raise source.error(f"line {number} contains a carriage return; save the file with \\n or \\r\\n line ends")
        if bare:
            if len(texts) < 2:
                texts.append(bare)
            yield number, bare  # as text: rows of single-character cells are converted without splitting


def _split(record: str | list[str], separator: str) -> list[str]:
    """Return the cells of a row."""
    return [cell.strip() for cell in record.split(separator)] if isinstance(record, str) else record


def _noted(lines: Iterator[str], taken: list[str]) -> Iterator[str]:
    """Yield lines, and add them to a list."""
    for line in lines:
        taken.append(line)
        yield line


def _quoted(cell: str) -> str:
    """Return a cell as it is written in quotes."""
    return '"' + cell.replace('"', '""') + '"'


def _detect_layout(
    source: Source, options: ReadOptions, text_cells: Cells, head: list[tuple[int, list[str]]], is_quoted: bool
) -> CsvLayout:
    """Detect from the first rows whether the first line and the first column contain names."""
    first = head[0][1]
    head = [head[0], *([record for record in head[1:] if not is_blank(record[1])] or head[1:])]
    other_format = _suggest_format(text_cells, [cells for _, cells in head])
    header = options.header
    if header is None:
        header = is_quoted or _has_header(text_cells, [cells for _, cells in head])
    body = head[1:] if header else head
    rows = [cells for _, cells in body]
    n_cells = len(rows[0]) if body else len(first)
    row_names = options.row_names
    doubt: Advice = ()
    if row_names is None:
        row_names = _lacks_first_name(first if header else None, rows)
        if not row_names and _are_row_names(text_cells, rows):
            row_names = True
            label = first[0] if header else "1"
            doubt = doubt_row_names(source, label, (cells[0] for cells in rows), text_cells.is_valid)
    trailing = header and bool(body) and _ends_in_separators(first, rows, row_names)
    indices = list(range(int(row_names), n_cells - trailing))
    columns = None
    if header:
        columns = first[:-1] if trailing and len(first) == n_cells else first
        if row_names and len(columns) == len(indices) + 1:
            columns = columns[1:]
        indices = indices if body else list(range(len(columns)))
        if len(columns) != len(indices) and other_format:
            raise _not_a_table(source, *body[0], other_format)
        if len(columns) != len(indices):
            raise source.error(
                f"the first {unit_of(source)} has {len(first)} cells and {unit_of(source)} {body[0][0]} has {n_cells}; "
                f"delete any {unit_of(source)}s above the header"
            )
    layout = CsvLayout(columns, row_names, indices, n_cells, trailing, other_format, doubt)
    return _without_excluded(source, options, layout)


def _suggest_format(text_cells: Cells, rows: list[list[str]]) -> Advice:
    """Return how to read a file whose first rows look like lists of items, or like a long table; () if they do not."""
    if pairs := suggest_pairs(rows):
        return pairs
    words = [cell for cells in rows[1:] for cell in cells if cell.strip()]
    return _as_items(set(map(len, rows))) if words and all(map(text_cells.is_text, words)) else ()


def _as_items(widths: set[int]) -> Advice:
    """Return how to read lists of items; ``widths`` are the numbers of cells per line."""
    as_baskets = "if each line lists the items of one row, pass ", Parameter("format", "baskets")
    as_pairs = "; if it names a row and one of its items, pass ", Parameter("format", "pairs")
    return (*as_baskets, *as_pairs) if widths == {2} else as_baskets


_AS_CATEGORIES: Advice = ("; for categories and numbers, pass ", Parameter("categories", True))


def _not_a_table(source: Source, line: int, cells: list[str], advice: Advice) -> FileError:
    """Return the error for a line that contains no row of ones and zeros."""
    text = ", ".join(repr(cell.strip()[:20]) for cell in cells[:3])
    return source.error(
        f"{unit_of(source)} {line} contains {text} instead of ones and zeros; ", *advice, *_AS_CATEGORIES
    )


def _has_header(text_cells: Cells, rows: list[list[str]]) -> bool:
    """Return whether the first line contains column names: cells that are no bits, beyond the name of a row."""
    first, *body = rows
    if any(not text_cells.is_valid(cell) for cell in first[1:] or first):
        return True
    row_names_below = any(not text_cells.is_valid(cells[0]) for cells in body)
    return bool(body) and (not first[0].strip() if row_names_below else not text_cells.is_valid(first[0]))


def _lacks_first_name(header: list[str] | None, rows: list[list[str]]) -> bool:
    """Return whether there is a header without a name for the first column, which therefore contains row names."""
    if header is None:
        return False
    n_cells = len(rows[0]) if rows else len(header)
    # R writes a header without a cell for the row names; if all lines end in a separator, this is another file.
    if len(header) == n_cells - 1:
        return any(cells[-1].strip() for cells in rows)
    return len(header) == n_cells > 1 - len(rows) and not header[0].strip()


def _are_row_names(text_cells: Cells, rows: list[list[str]]) -> bool:
    """Return whether the cells of the first column differ and are not all cells of the table."""
    if not rows or len(rows[0]) < 2:
        return False
    first_column = [cells[0] for cells in rows]
    are_distinct = len(set(first_column)) == len(first_column)
    return are_distinct and any(not text_cells.is_valid(cell) for cell in first_column)


def _ends_in_separators(header: list[str], rows: list[list[str]], row_names: bool) -> bool:
    """Return whether all lines end in a separator, so that the last cell is always empty and unnamed."""
    n_cells = len(rows[0])
    unnamed = (len(header) == n_cells and not header[-1].strip()) or (
        len(header) == n_cells - 1 and (not row_names or header[0])
    )
    return bool(unnamed) and n_cells > 1 + row_names and not any(cells[-1].strip() for cells in rows)


def _without_excluded(source: Source, options: ReadOptions, layout: CsvLayout) -> CsvLayout:
    """Return the layout without the columns to exclude."""
    if not options.without:
        return layout
    columns = layout.columns or [str(index + 1) for index in layout.indices]
    excluded = find_columns(source, options.without, columns)
    kept = [number for number, name in enumerate(columns) if name not in excluded]
    names = None if layout.columns is None else [columns[number] for number in kept]
    return layout._replace(columns=names, indices=[layout.indices[number] for number in kept])


def _chunks(
    source: Source,
    options: ReadOptions,
    text_cells: Cells,
    layout: CsvLayout,
    separator: str,
    records: Iterator[Record],
) -> Iterator[RowChunk]:
    """Yield the rows as packed bits."""
    n_cols = len(layout.indices)
    chunk = np.empty((max(1, CHUNK_BITS // max(1, n_cols)), n_cols), np.uint8)
    separators = separator * (n_cols - 1)
    names: list[str] = []
    lines: list[int] = []
    filled = 0

    @cache
    def has_zeros() -> bool:
        return text_cells.has_zeros or _has_later_zeros(source, options)

    def position(line: int, column: int) -> CellPosition:
        label = layout.indices[column] + 1 if layout.columns is None else layout.columns[column]
        return CellPosition(line, label, unit=unit_of(source))

    text_cells.position = position

    def packed(has_zeros: Callable[[], bool]) -> RowChunk:
        numbers = np.array(lines)
        text_cells.count(chunk[:filled], lambda indices: (numbers[indices // n_cols], indices % n_cols))
        bits = text_cells.pack(chunk[:filled], has_zeros)
        return RowChunk(bits, names if layout.has_row_names else None)

    for line, record in records:
        name, states = "", None
        if isinstance(record, str) and layout.takes_all_cells:  # fast path for cells of one character
            name, _, rest = record.partition(separator) if layout.has_row_names else ("", "", record)
            name = name.strip()
            if len(rest) == 2 * n_cols - 1 and rest[1::2] == separators:
                states = text_cells.characters_to_states(rest[::2])
        if states is None:
            cells = _split(record, separator)
            if layout.has_row_names and is_blank(cells):
                continue
            name, states = cells[0], _row_to_states(source, text_cells, layout, line, cells)
        chunk[filled] = states
        names.append(name)
        lines.append(line)
        filled += 1
        if filled == len(chunk):
            yield packed(has_zeros)
            names, lines, filled = [], [], 0
    if filled:
        yield packed(lambda: text_cells.has_zeros)


def _has_later_zeros(source: Source, options: ReadOptions) -> bool:
    """Return whether a table whose first chunk has no zeros has one: read it again, until there is one."""
    options = replace(options, missing="zero")  # blanks have no meaning here
    ahead = Cells(source, options)
    with suppress(FileError):  # raised again when these rows are read
        return any(ahead.has_zeros for _ in _open(source, options, ahead)[0].chunks)
    return ahead.has_zeros


def _row_to_states(
    source: Source, text_cells: Cells, layout: CsvLayout, line: int, cells: list[str]
) -> NDArray[np.uint8]:
    """Convert the cells of a line to states."""
    advice = layout.other_format or _as_items({layout.n_cells})
    if len(cells) != layout.n_cells or (layout.trailing_separator and cells[-1].strip()):
        expected = layout.n_cells - layout.trailing_separator
        raise source.error(
            f"{unit_of(source)} {line} has {len(cells)} cells; expected {expected}; ",
            *_as_items({len(cells), expected}),
        )
    table_cells = [cells[index] for index in layout.indices]
    if table_cells and all(map(text_cells.is_text, table_cells)):
        raise _not_a_table(source, line, table_cells, advice)

    try:
        return text_cells.words_to_states(table_cells, line)
    except FileError as error:
        if layout.other_format:
            raise _not_a_table(source, line, cells, advice) from error
        raise


def write(table: Table, path: Path, format: str) -> None:
    """Write a table of 0 and 1 with its names; unknown cells are NA."""
    check_writable(table, path)
    separator = "\t" if format == "tsv" else ","
    dialect: dict[str, Any] = {"delimiter": separator, "lineterminator": "\n"}
    with open_text_writer(path) as file:
        if table.columns is not None or table.row_names is not None:
            header = header_cells(table)
            # Names that look like bits are quoted, so that they are read as a header.
            is_quoted = are_cells(header[1:] or header) or need_quotes(header)
            quoting: dict[str, Any] = {"quoting": csv.QUOTE_ALL} if is_quoted else {}
            csv.writer(file, **dialect, **quoting).writerow(header)
        if need_quotes(table.row_names or ()):
            lines = ([_quoted(name), *map(str, cells)] for name, *cells in row_cells(table))
            file.writelines(f"{separator.join(line)}\n" for line in lines)
        else:
            csv.writer(file, **dialect).writerows(row_cells(table))


def header_cells(table: Table) -> list[str]:
    """Return the names of the columns, after a blank cell if rows have names."""
    return [*([""] if table.row_names else []), *table.names_of(range(table.shape[1]))]


def row_cells(table: Table) -> Iterator[list[Any]]:
    """Yield the cells of each row: its name, if rows have names, ones and zeros, and NA where a cell is unknown."""
    chunk_rows = max(1, CHUNK_BITS // max(1, table.shape[1]))
    for start in range(0, len(table), chunk_rows):
        chunk = table.bits[start : start + chunk_rows]
        dense = chunk.filled().to_dense()
        if chunk.n_unknown and chunk.unknown is not None:
            dense = np.where(chunk.unknown.to_dense(bool), np.array(_UNKNOWN, object), dense.astype(object))
        for row, cells in enumerate(dense.tolist(), start):
            yield cells if table.row_names is None else [table.row_names[row], *cells]


def check_writable(table: Table, path: Path) -> None:
    """Raise FileError if a table of cells cannot hold the table."""
    if table.row_names is None and (not table.shape[1] if len(table) else table.columns is None):
        lacking = "columns and row names" if len(table) else "rows and column names"
        raise FileError(f"{path.name}: this format cannot store a table without {lacking}; .npz files can")
    names = [*(table.columns or ()), *(table.row_names or ())]
    for name in names:
        if "\r" in name or "\0" in name:
            raise FileError(f"{path.name}: this format cannot store the name {name[:40]!r}; rename it, or write .npz")
    if not table.row_names and table.columns and not table.columns[0].strip():
        raise FileError(f"{path.name}: the first column has no name, so it would be read as row names; give it a name")
