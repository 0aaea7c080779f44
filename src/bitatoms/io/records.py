"""Records: the rows of text cells of a text file or a spreadsheet, from which readers make tables of any shape."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..columns.variables import parse_number
from .cells import state_of
from .options import ReadOptions
from .sheets import read_sheet
from .stream import Source
from .text_lines import check_separator, detect_separator, read_lines, split_lines

_HEAD_ROWS = 100  # rows of a sheet from which its width is detected
_MAX_BLANK_ROWS = 1000  # in succession; what follows more of them is hardly part of the table
_SEPARATOR_LINES = 10  # lines from which the separator is detected
_DECLARED_SEPARATOR = re.compile(r"sep=(?P<separator>[^\r\n])[\r\n]*", re.IGNORECASE)  # as Excel writes it

Record = tuple[int, list[str]]  # the number of a line or row, and its cells


class TextLines(NamedTuple):
    """The lines of a text file."""

    lines: Iterator[str]
    separator: str
    is_declared: bool  # whether the first line, which is not among these, declares the separator


def open_lines(source: Source, options: ReadOptions, separator: str | None = None) -> TextLines | None:
    """Open a text file and detect its separator, unless one is given; None if the file is empty."""
    if options.separator:
        check_separator(source, options.separator)
    lines = read_lines(source)
    first = next(lines, None)
    if first is None:
        return None
    declared = _DECLARED_SEPARATOR.fullmatch(first)
    if declared:
        first = next(lines, "")
    head = [first, *itertools.islice(lines, _SEPARATOR_LINES)]
    found = options.separator or (declared["separator"] if declared else None) or separator
    found = found or ("\t" if source.format == "tsv" else detect_separator(head))
    return TextLines(itertools.chain(head, lines), found, declared is not None)


def read_records(source: Source, options: ReadOptions, separator: str | None = None) -> Iterator[Record]:
    """Yield the cells of each line of a text file, or of each row of a sheet; of a line without text, no cells.

    A sheet begins and ends with a row that is not blank. A blank row between others has as many cells as these, as in
    the text file that a spreadsheet program saves.
    """
    if source.format == "xlsx":
        yield from _padded(source, without_outer_blanks(read_sheet(source, options.sheet)), options.header)
        return
    opened = open_lines(source, options, separator)
    if opened is None:
        raise source.error("the file is empty")
    for line, cells in split_lines(source, opened.lines, opened.separator):
        yield line + opened.is_declared, cells


def _padded(source: Source, rows: Iterator[Record], header: bool | None) -> Iterator[Record]:
    """Yield the rows of a sheet with as many cells as its header has, or the longest of the first rows.

    Rows of a sheet end with their last cell that is not blank, and a table need not begin in the first column.
    """
    head = list(itertools.islice(rows, _HEAD_ROWS))
    used = [cells for _, cells in head if cells]
    start = min((next(index for index, cell in enumerate(cells) if cell.strip()) for cells in used), default=0)
    has_header = bool(used) and header is not False
    has_header = has_header and not any(_may_be_cell(cell) for cell in used[0][start:] if cell.strip())
    width = len(used[0]) if has_header else max(map(len, used), default=0)
    n_blank = 0
    for number, cells in itertools.chain(head, rows):
        n_blank = 0 if cells else n_blank + 1
        if n_blank > _MAX_BLANK_ROWS:
            raise source.error(
                f"more than {_MAX_BLANK_ROWS} rows after row {number - n_blank} are blank, and others follow; delete "
                "what follows, or write 0 into blank rows that belong to the table"
            )
        if any(cell.strip() for cell in cells[:start]):
            raise source.error(
                f"row {number} has a cell to the left of column {start + 1}, where the table begins; remove that "
                "cell, or move the table to the first column"
            )
        yield number, [*cells, *[""] * (width - len(cells))][start:]


def _may_be_cell(cell: str) -> bool:
    """Return whether a cell is a one, a zero, missing or a number, which a header seldom contains."""
    return state_of(cell) is not None or parse_number(cell.strip()) is not None


def is_blank(cells: Sequence[str]) -> bool:
    """Return whether a line or row has no text."""
    return not any(map(str.strip, cells))


def without_outer_blanks(records: Iterator[Record]) -> Iterator[Record]:
    """Yield the records from the first to the last one that is not blank."""
    blank: list[Record] = []
    for record in itertools.dropwhile(lambda record: is_blank(record[1]), records):
        if is_blank(record[1]):
            blank.append(record)
        else:
            yield from blank
            blank.clear()
            yield record


def unit_of(source: Source) -> str:
    """Return what messages call a record."""
    return "row" if source.format == "xlsx" else "line"
