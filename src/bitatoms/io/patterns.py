"""Write the patterns of a model as a table to read: CSV, JSON, Markdown or a sheet; read one as atoms."""

from __future__ import annotations

import csv
import io
import itertools
import json
import os
from pathlib import Path

import numpy as np

from ..bits import BitMatrix
from ..columns.table import Table
from ..columns.variables import parse_number
from ..model.model import Model
from ..model.patterns import Pattern
from ..verbosity import escape_name
from .atomic import atomic_write
from .errors import FileError
from .formats.registry import infer_format, load_reader, sniff_format
from .name_lists import join_names, split_names
from .options import ReadOptions
from .records import is_blank, read_records, unit_of
from .sheets import write_sheet
from .stream import Source
from .text_lines import open_text_writer

EXTENSIONS = {".csv": "csv", ".json": "json", ".md": "markdown", ".xlsx": "xlsx"}
_MARKDOWN_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;"} | {mark: f"\\{mark}" for mark in "\\|[`"})


def write_patterns(model: Model, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Write each atom: its features, the numbers of rows that use it and that have it complete, the bits it saves.

    If complete rows were counted, the expected ones and the lifts are written too, as is how often the atom recurs, if
    `bitatoms.stability` has counted it, and where it is, if its features have positions.

    Parameters
    ----------
    model : Model
        The model; `BinaryDictionaryLearning.as_model` returns it.
    path : str or path-like
        The file; its extension, .csv, .json, .md or .xlsx, selects the format.
    format : {"csv", "json", "markdown", "xlsx"}, optional
        The format, if the extension does not select it.
    """
    path = Path(path)
    format = format or patterns_format(path)
    if format == "xlsx":
        load_reader("xlsx", str(path))  # raises an error that names the extra to install
        rows = csv.reader(io.StringIO(format_patterns(model.patterns(), "csv")))
        with atomic_write(path) as temporary:
            write_sheet(temporary, ([_number_or_text(cell) for cell in row] for row in rows))
        return
    with atomic_write(path) as temporary, open_text_writer(temporary) as file:
        file.write(format_patterns(model.patterns(), format))


def _number_or_text(cell: str) -> float | str:
    """Return a cell of CSV as a number, if it is one."""
    number = parse_number(cell)
    return cell if number is None else number


def patterns_format(path: Path) -> str:
    """Return the format that an extension selects."""
    format = EXTENSIONS.get(path.suffix.lower())
    if format is None:
        raise FileError(f"{path}: patterns are written as .csv, .json, .md or .xlsx; use one of these extensions")
    return format


def format_patterns(patterns: list[Pattern], format: str) -> str:
    """Return the patterns as text in "csv", "json" or "markdown"."""
    if format == "json":
        return json.dumps([as_json(pattern) for pattern in patterns], ensure_ascii=False, indent=1) + "\n"
    rows = [
        (
            pattern.atom,
            join_names(pattern.features),
            pattern.size,
            pattern.rows,
            f"{pattern.share:.4f}",
            pattern.bits_saved,
            "" if pattern.complete is None else pattern.complete,
            *(() if pattern.expected is None else (f"{pattern.expected:.6g}", _number(pattern.lift), _lifts(pattern))),
            *(() if pattern.recurs is None else (f"{pattern.recurs:.4f}",)),
            *(() if pattern.span is None else (pattern.span,)),
        )
        for pattern in patterns
    ]
    names: tuple[str, ...] = ("atom", "features", "size", "rows", "share", "bits_saved", "complete")
    if any(pattern.expected is not None for pattern in patterns):
        names += ("expected", "lift", "member_lifts")
    if any(pattern.recurs is not None for pattern in patterns):
        names += ("recurs",)
    if any(pattern.span is not None for pattern in patterns):
        names += ("span",)
    if format == "csv":
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([names, *rows])
        return text.getvalue()
    lines = [_markdown_row(names), f"|---:|---|{'---:|' * (len(names) - 2)}", *map(_markdown_row, rows)]
    return "\n".join(lines) + "\n"


def read_patterns(path: Path) -> Table | None:
    """Return the atoms of a pattern file, CSV or a sheet, as a table with one row each; None if it is another file.

    Of its columns, ``features`` is read; lines may be removed and changed. Features are in the order in which they
    occur.
    """
    if path.suffix.lower() in (".json", ".md"):
        raise FileError(f"{path}: patterns are read as .csv or .xlsx; write them with one of these extensions")
    source = Source(path, infer_format(path), os.fspath(path))
    if source.format not in ("csv", "tsv", "xlsx") or not path.is_file() or sniff_format(path) not in (None, "xlsx"):
        return None
    records = (record for record in read_records(source, ReadOptions()) if not is_blank(record[1]))
    labels = [cell.strip() for cell in next(records, (0, []))[1]]
    if not {"atom", "features"} <= set(labels):
        return None
    index, unit = labels.index("features"), unit_of(source)
    patterns: list[tuple[str, ...]] = []
    for line, cells in records:
        text = cells[index] if index < len(cells) else ""
        try:
            patterns.append(split_names(text))
        except ValueError as error:
            raise source.error(f"{unit} {line}, column 'features': {error}") from error
        if not patterns[-1]:
            raise source.error(f"{unit} {line}, column 'features': the pattern has no features; remove the {unit}")
    columns = {name: number for number, name in enumerate(dict.fromkeys(itertools.chain(*patterns)))}
    bits = np.zeros((len(patterns), len(columns)), bool)
    for row, names in enumerate(patterns):
        bits[row, [columns[name] for name in names]] = True
    return Table(BitMatrix.from_dense(bits), columns=tuple(columns))


def _number(lift: float | None) -> str:
    """Return a lift with four digits, empty if it is unknown."""
    return "" if lift is None else f"{lift:.4g}"


def _lifts(pattern: Pattern) -> str:
    """Return the lifts of the features of a pattern, as its features are listed."""
    return "; ".join(map(_number, pattern.member_lifts or ()))


def as_json(pattern: Pattern) -> dict[str, object]:
    """Return a pattern as JSON values; its span only where features have positions."""
    values = pattern._asdict() | {"size": pattern.size}
    if pattern.span is None:
        del values["span"]
    return values


def _markdown_row(cells: tuple[object, ...]) -> str:
    """Return one row of a Markdown table, with control characters and markup escaped."""
    return f"| {' | '.join(escape_name(str(cell)).translate(_MARKDOWN_ESCAPES) for cell in cells)} |"
