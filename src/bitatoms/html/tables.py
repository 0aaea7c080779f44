"""Tables that people read, written as CSV, TSV, JSON, Markdown, HTML or a sheet."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from ..formatting import escape_name
from ..io.atomic import atomic_write
from ..io.errors import FileError
from ..io.formats.registry import load_reader
from ..io.labels.names import join_names
from ..io.sheets import write_sheet
from ..io.text import open_text_writer
from .document import Section, html_document
from .text import class_attribute, escape, format_count, truncated

_FORMATS = {f".{name}": name for name in ("csv", "tsv", "json", "md", "html", "xlsx")} | {".htm": "html"}
_DELIMITERS = {"csv": ",", "tsv": "\t"}
_WORDS = {None: "", True: "yes", False: "no"}
_MARKUP = re.compile(r"[\\`*\[\]<>|#&~]|(?<![^\W_])_|_(?![^\W_])")  # an underscore within a word is not markup


def readable_format(path: Path, contents: str = "tables") -> str:
    """Return the format that the ending of a file selects, and check that it can be written.

    ``contents`` is what the message of an error calls the contents of the file, such as "patterns".
    """
    ending = Path(path.name.lower().removesuffix(".gz")).suffix
    if ending not in _FORMATS or path.name.lower().endswith(".xlsx.gz"):
        endings = ".csv, .tsv, .json, .md, .html or .xlsx"
        raise FileError(f"{path}: {contents} are written as {endings}; use one of these extensions")
    if ending == ".xlsx":
        load_reader("xlsx", str(path))  # raises an error that names the extra to install
    return _FORMATS[ending]


@dataclass(frozen=True)
class DataTable:
    """A table that people read: named columns, and one value per column in each row.

    A value is text, a number, a boolean, None if it is unknown, or several of these in a tuple.

    Attributes
    ----------
    columns : tuple of str
        Names of the columns.
    rows : iterable of sequences
        The values of each row. A generator can be written once; CSV, TSV and sheets are written row by row.
    formats : mapping of str to str
        How numbers of a column are written, such as ".4f"; JSON has all digits. Without a format, CSV and sheets have
        all digits, too; Markdown and HTML have three significant digits and thousands separators.
    optional : frozenset of str
        Columns that only JSON has if all their values are unknown.
    """

    columns: tuple[str, ...]
    rows: Iterable[Sequence[Any]]
    formats: Mapping[str, str] = field(default_factory=dict)
    optional: frozenset[str] = frozenset()

    @classmethod
    def from_rows(cls, columns: Sequence[str], rows: Iterable[Sequence[Any]], **formats: str) -> DataTable:
        """Return the table of these rows, with the formats of the columns that have one."""
        return cls(tuple(columns), tuple(map(tuple, rows)), formats)

    def write(self, path: str | os.PathLike[str], format: str | None = None) -> None:
        """Write the table to a file. The write is atomic.

        Parameters
        ----------
        path : str or path-like
            The file. Its ending selects the format: .csv, .tsv, .json, .md, .html or .xlsx. Files of text are
            compressed if they also end in .gz.
        format : {"csv", "tsv", "json", "md", "html", "xlsx"}, optional
            The format, if the ending does not select it.
        """
        path = Path(path)
        format = format or readable_format(path)
        with atomic_write(path) as temporary:
            if format == "xlsx":
                write_sheet(temporary, self._lines(_sheet_value))
                return
            with open_text_writer(temporary) as file:
                if format in _DELIMITERS:
                    self._write_lines(file, _DELIMITERS[format])
                elif format == "json":
                    file.write(json.dumps(self.records(), ensure_ascii=False, indent=1) + "\n")
                else:
                    file.write(self.to_markdown() if format == "md" else self._to_page(path.stem))

    def records(self) -> list[dict[str, Any]]:
        """Return a dictionary of the values of each row by column."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def to_csv(self) -> str:
        """Return the table as CSV, unknown values empty."""
        buffer = io.StringIO(newline="")
        self._write_lines(buffer, ",")
        return buffer.getvalue()

    def to_markdown(self) -> str:
        """Return the table as Markdown, numbers aligned to the right."""
        columns, *rows = ([escape_markdown(cell) for cell in line] for line in self._lines(_shown_text))
        return table_markdown(columns, rows, self._are_numeric())

    def to_html(self, label: str) -> str:
        """Return the table as HTML that scrolls horizontally; ``label`` is its accessible name."""
        columns, *rows = self._lines(_html_text)
        return table_html(columns, rows, self._are_numeric(), label)

    def _to_page(self, title: str) -> str:
        """Return the table as an HTML document."""
        sections = [Section(f"<section>{self.to_html(title)}</section>")]
        return html_document(title, "A table", sections)

    def _write_lines(self, file: IO[str], delimiter: str) -> None:
        """Write the table as lines of cells."""
        csv.writer(file, delimiter=delimiter, lineterminator="\n").writerows(self._lines(_plain_text))

    def _lines(self, to_cell: Callable[[Any, str], Any]) -> Iterator[list[Any]]:
        """Yield the names of the columns, and the cells of each row, made from a value and the format of its column."""
        kept = [(index, self.formats.get(self.columns[index], "")) for index in self._kept()]
        yield [self.columns[index] for index, _ in kept]
        for row in self.rows:
            yield [to_cell(row[index], format) for index, format in kept]

    def _kept(self) -> list[int]:
        """Return the indices of the columns that files other than JSON have."""
        return [
            index
            for index, name in enumerate(self.columns)
            if name not in self.optional or any(row[index] is not None for row in self.rows)
        ]

    def _are_numeric(self) -> list[bool]:
        """Return for each column that is shown whether all its known values, at least one, are numbers."""
        columns = ([row[index] for row in self.rows if row[index] is not None] for index in self._kept())
        return [bool(known) and all(map(_is_number, known)) for known in columns]


def _is_number(value: Any) -> bool:
    """Return whether a value is a number; a boolean is not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _plain_text(value: Any, format: str) -> str:
    """Return a value as a cell of CSV."""
    if isinstance(value, (tuple, list)):
        return join_names(_plain_text(item, format) for item in value)
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    return value.__format__(format) if isinstance(value, (int, float)) else str(value)


def _shown_text(value: Any, format: str) -> str:
    """Return a value as people read it: fractions are rounded, unless the column has a format."""
    if value is None:
        return "–"
    return format_cell(value) if _is_number(value) and not format else _plain_text(value, format)


def _html_text(value: Any, format: str) -> str:
    """Return a value as people read it, as HTML; long text is cut."""
    return escape(truncated(value) if isinstance(value, str) else _shown_text(value, format))


def _sheet_value(value: Any, format: str) -> Any:
    """Return a value as a cell of a sheet, which has a type."""
    if _is_number(value):
        return float(_plain_text(value, format)) if format else value
    return _plain_text(value, format) if isinstance(value, (bool, tuple, list)) else value


def escape_markdown(text: str) -> str:
    """Return text that Markdown shows literally, on one line."""
    return _MARKUP.sub(r"\\\g<0>", escape_name(" ".join(text.split())))


def format_cell(value: float) -> str:
    """Return a number for display: thousands separators, and three significant digits of fractions."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 100 else f"{value:.1f}"
    return format_count(value)


def table_markdown(columns: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[bool]) -> str:
    """Return a Markdown table of escaped cells, numeric columns aligned to the right."""
    lines = [columns, ["---:" if is_number else "---" for is_number in numeric], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def table_html(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    numeric: Sequence[bool],
    label: str,
    css_class: str = "",
) -> str:
    """Return an HTML table that scrolls horizontally.

    Cells are HTML, names of columns are text. ``label`` is the accessible name.
    """
    cell_classes = [class_attribute("number" if is_number else "") for is_number in numeric]
    head = "".join(
        f'<th scope="col"{attribute}>{escape(name)}</th>' for name, attribute in zip(columns, cell_classes, strict=True)
    )
    body = "".join(
        f'<tr><th scope="row"{cell_classes[0]}>{row[0]}</th>'
        + "".join(f"<td{attribute}>{cell}</td>" for cell, attribute in zip(row[1:], cell_classes[1:], strict=True))
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" role="region" aria-label="{escape(label)}" tabindex="0">'
        f"<table{class_attribute(css_class)}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
