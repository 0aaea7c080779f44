"""Sheets of .xlsx files: read as rows of text, without trusting them; the same rows are written as the same bytes."""

from __future__ import annotations

import datetime
import itertools
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from ..formatting import listed_names, quoted
from .cells import MISSING_WORDS, are_cells, is_text
from .errors import FileError
from .limits import (
    FREE_SHEET_PART,
    LONGEST_SHEET_TEXT,
    MAX_BLANK_ROWS,
    MAX_SHEET_COLUMNS,
    MAX_SHEET_COMPRESSION,
    MAX_SHEET_ROWS,
    TABLE_ROWS,
)
from .stream import Source

_PARSED_RATIO = 12  # bytes of texts in memory per byte of their XML
_PROLOG = 1 << 16  # bytes within which the first element of a part must begin
_FIRST_ELEMENT = re.compile(rb"<[A-Za-z_]")
_FORMULA = re.compile(rb"[<:]f[\s/>]")  # the beginning of an element
_CREATOR = "bitatoms"  # in a file that is written: its names are exact
_EPOCH = (1980, 1, 1, 0, 0, 0)
_MODIFIED = re.compile(rb"(<dcterms:(created|modified)[^>]*>)[^<]*")


class SheetRows:
    """The rows of a sheet as numbers and text cells; they can be iterated once.

    They begin and end with a row that is not blank, and have as many cells as the header, or as the longest of the
    first rows: a table need not begin in the first column, and rows end with their last cell that is not blank.

    Parameters
    ----------
    source : Source
        The file.
    sheet : str or int, optional
        Name or number of the sheet; the first one by default.
    header : bool, optional
        Whether the first row holds column names; detected by default.
    """

    def __init__(self, source: Source, sheet: str | int | None, header: bool | None) -> None:
        self._source, self._sheet, self._header = source, sheet, header
        self._first_values: list[list[Any]] = []  # those that are not blank, of the first two rows

    def has_text_header(self) -> bool:
        """Return whether the first row, which was read, is text that looks like ones and zeros, above other values."""
        are_text = [all(isinstance(value, str) for value in row) for row in self._first_values]
        if are_text != [True, False] or not are_cells(self._first_values[0]):
            return False
        return any(value.strip().lower() not in MISSING_WORDS for value in self._first_values[0])

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        rows = self._trimmed()
        head = list(itertools.islice(rows, TABLE_ROWS))
        used = [cells for _, cells in head if cells]
        start = min((next(index for index, cell in enumerate(cells) if cell.strip()) for cells in used), default=0)
        has_header = bool(used) and self._header is not False
        has_header = has_header and all(is_text(cell) for cell in used[0][start:] if cell.strip())
        width = len(used[0]) if has_header else max(map(len, used), default=0)
        n_blank = 0
        for number, cells in itertools.chain(head, rows):
            n_blank = 0 if cells else n_blank + 1
            if n_blank > MAX_BLANK_ROWS:
                raise self._source.error(
                    f"more than {MAX_BLANK_ROWS} rows after row {number - n_blank} are blank, and others follow; "
                    "delete what follows, or write 0 into blank rows that belong to the table"
                )
            if any(cell.strip() for cell in cells[:start]):
                raise self._source.error(
                    f"row {number} has a cell to the left of column {start + 1}, where the table begins; remove that "
                    "cell, or move the table to the first column"
                )
            yield number, [*cells, *[""] * (width - len(cells))][start:]

    def _trimmed(self) -> Iterator[tuple[int, list[str]]]:
        """Yield the rows from the first to the last one that is not blank, up to the last cell that is not blank."""
        blank: list[int] | None = None
        for number, row in _read_rows(self._source, self._sheet):
            cells = [_to_text(value) for value in row]
            while cells and not cells[-1].strip():
                cells.pop()
            if not cells:
                if blank is not None:
                    blank.append(number)
                continue
            if len(self._first_values) < 2:
                self._first_values.append([value for value in row if _to_text(value).strip()])
            yield from ((each, []) for each in blank or ())
            blank = []
            yield number, cells


def _read_rows(source: Source, sheet: str | int | None) -> Iterator[tuple[int, Sequence[Any]]]:
    """Yield the number and the values of each row of a sheet."""
    has_formulas = _check_parts(source)
    with open(source.path, "rb") as file:  # by name, openpyxl would require an extension
        page = _open_page(source, file, sheet)
        is_exact = page.parent.properties.creator == _CREATOR  # blanks around the cells of others are mostly mistakes
        rows = page.iter_rows(values_only=not has_formulas)
        if has_formulas:
            rows = _stored_values(source, rows, _open_page(source, file, sheet, data_only=False).iter_rows())
        with source.catch_library_errors():  # also while the caller uses a row: what it raises is not raised here
            for number, row in enumerate(rows, 1):
                if number > MAX_SHEET_ROWS or len(row) > MAX_SHEET_COLUMNS:
                    raise source.error("the sheet is larger than Excel allows: corrupt or malicious")
                yield number, row if is_exact else [value.strip() if isinstance(value, str) else value for value in row]


def _open_page(source: Source, file: IO[bytes], sheet: str | int | None, data_only: bool = True) -> Any:
    """Open a sheet: with the stored values of formulas, or with the formulas themselves."""
    import openpyxl

    with source.catch_library_errors():
        book = openpyxl.load_workbook(file, read_only=True, data_only=data_only, keep_links=False)
    page = _select(source, book, sheet)
    page.reset_dimensions()  # what the file claims need not be true
    return page


def _stored_values(source: Source, rows: Iterable[Any], formulas: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield the values of rows of cells; raise if a formula has no stored value, as openpyxl writes it.

    ``formulas`` are the same rows, with formulas instead of values. A stored value that is empty text has the type
    "str" of the results of formulas.
    """
    for row, written in zip(rows, formulas, strict=True):
        for cell, formula in zip(row, written, strict=True):
            if formula.data_type == "f" and cell.value is None and cell.data_type != "str":
                problem = f"cell {formula.coordinate} contains a formula without a stored value; open the file in a "
                raise source.error(f"{problem}spreadsheet program and save it, so that the value is stored")
        yield [cell.value for cell in row]


def _check_parts(source: Source) -> bool:
    """Return whether the file may contain formulas.

    Raise if a part of it would expand without bound, or defines entities, which could.
    """
    has_formulas = False
    with open(source.path, "rb") as raw, source.catch_library_errors(), zipfile.ZipFile(raw) as file:
        size = source.path.stat().st_size
        members = file.infolist()
        if len({member.filename for member in members}) < len(members):
            raise source.error("it contains two parts of the same name: corrupt or malicious")
        for member in members:
            name = member.filename[:40]
            allowed = MAX_SHEET_COMPRESSION * min(member.compress_size, size) + FREE_SHEET_PART
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or member.file_size > allowed:
                raise source.error(f"its part {name!r} claims an impossible size: corrupt or malicious")
            if member.filename.endswith((".xml", ".rels")):
                with file.open(member) as part:
                    beginning = part.read(_PROLOG)
                    has_formulas = has_formulas or _has_formulas(beginning, part)
                element = _FIRST_ELEMENT.search(beginning)
                if beginning and (element is None or b"<!DOCTYPE" in beginning[: element.start()].upper()):
                    raise source.error(f"its part {name!r} is not plain XML: corrupt or malicious")
            if member.filename.endswith("sharedStrings.xml"):
                source.check_memory(_PARSED_RATIO * member.file_size, "its texts", "; save the sheet as .csv")
    return has_formulas


def _has_formulas(chunk: bytes, part: IO[bytes]) -> bool:
    """Return whether a part of a file, of which ``chunk`` was read, has an element that is a formula."""
    end = b""
    while chunk:
        if _FORMULA.search(end + chunk):
            return True
        end, chunk = chunk[-2:], part.read(_PROLOG)
    return False


def _select(source: Source, book: Any, sheet: str | int | None) -> Any:
    """Return a sheet by name or number, by default the first one."""
    names = [page.title for page in book.worksheets]
    if not names:
        raise source.error("the file contains no sheet of cells")
    listed = listed_names(names, 10)
    if sheet is None:
        return book.worksheets[0]
    if sheet in names:
        return book.worksheets[names.index(sheet)]
    if str(sheet).isdecimal() and 1 <= int(sheet) <= len(names):
        return book.worksheets[int(sheet) - 1]
    raise source.error(f"there is no sheet {quoted(sheet)}; the sheets are {listed}")


def _to_text(value: Any) -> str:
    """Return a cell as text: an integer without a fraction, a date as in ISO 8601."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    return value.isoformat() if isinstance(value, (datetime.date, datetime.time)) else str(value)


def write_sheet(path: Path, rows: Iterable[Sequence[Any]], title: str = "Sheet1") -> None:
    """Write rows of text, numbers and None as the only sheet of a file; raise FileError if a sheet cannot hold them."""
    import openpyxl

    book = openpyxl.Workbook(write_only=True)
    book.properties.creator = _CREATOR
    page = book.create_sheet(title)
    try:
        for number, row in enumerate(rows, 1):
            if number > MAX_SHEET_ROWS or len(row) > MAX_SHEET_COLUMNS:
                size = f"{MAX_SHEET_ROWS} rows and {MAX_SHEET_COLUMNS} columns"
                raise FileError(f"{path.name}: a sheet has at most {size}; write .csv or .npz")
            page.append([_to_cell(page, value, path.name) for value in row])
    except FileError:
        page.close()  # openpyxl would print that it is open
        raise
    book.save(path)
    _make_reproducible(path)


def _to_cell(page: Any, value: Any, file: str) -> Any:
    """Return a cell with a value; raise FileError if it is text that a sheet cannot hold."""
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.utils.exceptions import IllegalCharacterError

    try:
        cell = WriteOnlyCell(page, value)
    except IllegalCharacterError:
        raise FileError(f"{file}: a sheet cannot store the name {quoted(value)}; rename it, or write .npz") from None
    if isinstance(value, str):
        if len(value) > LONGEST_SHEET_TEXT:
            longest = f"{LONGEST_SHEET_TEXT} characters"
            raise FileError(
                f"{file}: a sheet stores names of at most {longest}; shorten {quoted(value)}, or write .npz"
            )
        cell.data_type = "s"  # also text that begins like a formula
    return cell


def _make_reproducible(path: Path) -> None:
    """Replace the dates in a file, so that the same rows give the same bytes."""
    with zipfile.ZipFile(path) as file:
        parts = [(member.filename, file.read(member)) for member in file.infolist()]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in parts:
            if name == "docProps/core.xml":
                content = _MODIFIED.sub(rb"\g<1>1980-01-01T00:00:00Z", content)
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            file.writestr(info, content)
