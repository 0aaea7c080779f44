"""A column of a file that holds the weights of its rows, such as how often each row was counted."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..columns.variables import parse_number
from ..errors import Parameter
from ..formatting import quoted
from ..validation import weight_advice
from .formats.registry import infer_format
from .options import ReadOptions
from .stream import Source, find_columns
from .text import TextRows

_TEXT, _ARROW = ("csv", "tsv", "xlsx"), ("parquet", "feather")


class WeightColumn(NamedTuple):
    """The weights of the rows, and whether their column is the first of the file."""

    weights: NDArray[np.float64]
    is_first: bool


def read_weight_column(path: str | os.PathLike[str], column: str, options: ReadOptions) -> WeightColumn:
    """Return the numbers of a column of a text file, a sheet, or a Parquet or Feather file, one per row of the table.

    Raises FileError if there is no such column, or several, or if a cell of it is not a whole number from 0 up.
    """
    source = Source(Path(path), infer_format(path, options.format), os.fspath(path))
    given = Parameter("sample_weight", column)
    if source.format not in (*_TEXT, *_ARROW):
        formats = ", ".join((*_TEXT, *_ARROW))
        raise source.error(given, f" applies to {formats}, not to {source.format!r}; omit it")
    for name in ("long", "transpose"):
        if getattr(options, name):
            raise source.error(given, " cannot be combined with ", Parameter(name))
    if not source.path.is_file():
        raise source.error("there is no such file")
    return _in_text(source, column, options) if source.format in _TEXT else _in_arrow(source, column)


def _in_text(source: Source, column: str, options: ReadOptions) -> WeightColumn:
    """Return the weights of a text file or a sheet, whose first row has the names of the columns."""
    records = (record for record in TextRows(source, options) if record[1])
    first, second = next(records, (0, [])), next(records, None)
    labels = [cell.strip() for cell in first[1]]
    if second is not None and len(second[1]) == len(labels) + 1 and second[1][-1].strip():
        labels = ["", *labels]  # R writes no cell above the names of rows
    index = _find(source, column, labels)
    body = itertools.chain(() if second is None else (second,), records)
    return WeightColumn(np.fromiter(_numbers(source, column, index, body), float), index == 0)


def _numbers(source: Source, column: str, index: int, records: Iterator[tuple[int, list[str]]]) -> Iterator[float]:
    """Yield the number in a cell of each row."""
    for line, cells in records:
        text = cells[index].strip() if index < len(cells) else ""
        yield _checked(source, f"{source.unit} {line}", column, text, parse_number(text))


def _in_arrow(source: Source, column: str) -> WeightColumn:
    """Return the weights of a Parquet or Feather file."""
    from .formats.arrow_chunks import open_arrow

    with source.catch_library_errors(), open_arrow(source) as file:
        index = _find(source, column, file.names)
        chunks = (part[0] for chunk in file.chunks() for part in chunk.read_columns([index], max(1, chunk.n_rows)))
        values = [value for part in chunks for value in part.to_pylist()]
    for row, value in enumerate(values):
        number = float(value) if isinstance(value, (int, float)) else None
        _checked(source, f"row {row}", column, str(value), number)
    return WeightColumn(np.array(values, float), index == 0)


def _checked(source: Source, where: str, column: str, text: str, number: float | None) -> float:
    """Return the number in a cell; raise FileError with the cell's text if it is no weight."""
    problem, advice = "a number", "a weight is a whole number from 0 up"
    if number is not None:
        fix = weight_advice(number)
        if fix is None:
            return number
        problem, advice = "a whole number from 0 up", fix
    raise source.error(f"{where}, column {column!r}: {quoted(text)} is not {problem}; {advice}")


def _find(source: Source, column: str, labels: list[str]) -> int:
    """Return the index of a column."""
    (name,) = find_columns(source, [column], labels)
    first, *others = (index for index, label in enumerate(labels) if label == name)
    if others:
        raise source.error(f"columns {first + 1} and {others[0] + 1} have the same name {quoted(name)}; rename one")
    return first
