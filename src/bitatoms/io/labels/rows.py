"""What files tell of the rows of a table: weights in a column, and labels, such as populations and cell types."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...columns.table import Names
from ...columns.variables import parse_number
from ...errors import Parameter
from ...formatting import quoted
from ...validation import weight_advice
from ..formats.registry import infer_format
from ..options import CELL_FORMATS, DOSAGE_FORMATS, ReadOptions
from ..stream import Source, find_columns
from ..text import TextRows, is_blank

Cell = tuple[str, str, float | None]  # where it is, its text, and the number that it is


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
    if source.format not in DOSAGE_FORMATS:
        raise source.error(given, f" applies to {', '.join(DOSAGE_FORMATS)}, not to {source.format!r}; omit it")
    for name in ("long", "transpose"):
        if getattr(options, name):
            raise source.error(given, " cannot be combined with ", Parameter(name))
    source.check_path()
    is_text = source.format in CELL_FORMATS
    index, cells = _text_column(source, column, options) if is_text else _arrow_column(source, column)
    weights = [_checked(source, column, *cell) for cell in cells]
    return WeightColumn(np.array(weights, float), index == 0)


def _text_column(source: Source, column: str, options: ReadOptions) -> tuple[int, Iterator[Cell]]:
    """Return the index of a column of a text file or a sheet, whose first row has the names, and its cells."""
    rows = (row for row in TextRows(source, options) if row[1])
    (_, labels), *second = [*itertools.islice(rows, 2)] or [(0, [])]
    if second and len(second[0][1]) == len(labels) + 1 and second[0][1][-1].strip():
        labels = ["", *labels]  # R writes no cell above the names of rows
    index = _find(source, column, [label.strip() for label in labels])
    texts = (
        (line, cells[index].strip() if index < len(cells) else "") for line, cells in itertools.chain(second, rows)
    )
    return index, ((f"{source.unit} {line}", text, parse_number(text)) for line, text in texts)


def _arrow_column(source: Source, column: str) -> tuple[int, Iterator[Cell]]:
    """Return the index of a column of a Parquet or Feather file, and its cells."""
    from ..formats.arrow_chunks import open_arrow

    with source.catch_library_errors(), open_arrow(source) as file:
        index = _find(source, column, file.names)
        chunks = (part[0] for chunk in file.chunks() for part in chunk.read_columns([index], max(1, chunk.n_rows)))
        values = [value for part in chunks for value in part.to_pylist()]
    numbers = (float(value) if isinstance(value, (int, float)) else None for value in values)
    return index, ((f"row {row}", str(values[row]), number) for row, number in enumerate(numbers))


def _checked(source: Source, column: str, where: str, text: str, number: float | None) -> float:
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


def read_group_labels(path: Path, row_names: Names | None, n_rows: int) -> list[str | None]:
    """Return the label of each row from a text file.

    Each line has the name of a row and its label, separated by a comma or a tab (the last field is the label), or only
    a label, in the order of the rows. A first line that names no row is a header. Rows without a label get None.

    Parameters
    ----------
    path : Path
        The file.
    row_names : tuple of str or None
        The names of the rows. A file may leave out the family that precedes the name of an individual, and the number
        of the haplotype that follows it.
    n_rows : int
        The number of rows.
    """
    source = Source(path, "csv", str(path))
    source.check_path()
    rows = (cells for _, cells in TextRows(source, ReadOptions()) if not is_blank(cells))
    fields = [[cell.strip() for cell in cells] for cells in rows]
    if fields and all(len(cells) == 1 for cells in fields):
        return _in_order(source, [cells[0] for cells in fields], n_rows)
    if row_names is None:
        raise source.error("it has names of rows, but the rows of the table have none; pass one label per line")
    labels = {cells[0]: cells[-1] for cells in fields}
    found = [next((labels[name] for name in _spellings(each) if name in labels), None) for each in row_names]
    if not any(label is not None for label in found):
        raise source.error(
            f"none of its names is a row of the table: it has {quoted(fields[-1][0])}, and the table "
            f"{quoted((row_names or ('no rows',))[0])}"
            if fields
            else "the file is empty"
        )
    return [label or None for label in found]


def _in_order(source: Source, labels: Sequence[str], n_rows: int) -> list[str | None]:
    """Return labels in the order of rows; one more is a header."""
    if len(labels) not in (n_rows, n_rows + 1):
        raise source.error(f"it has {len(labels)} labels for {n_rows} rows; pass one per row, or names and labels")
    return [label or None for label in labels[len(labels) - n_rows :]]


def _spellings(name: str) -> list[str]:
    """Return a name, and the same without the number of the haplotype and without the family."""
    person = name.removesuffix("/1").removesuffix("/2")
    return [name, person, person.rpartition(" ")[2]]
