"""Write the values of variables, such as categories that a model filled in, as CSV, TSV or a sheet."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .atomic import atomic_write
from .errors import FileError
from .sheets import write_sheet
from .text_lines import open_text_writer

_FORMATS = ("csv", "tsv", "xlsx")
_WORDS = {None: "", True: "yes", False: "no"}


def check_values_format(format: str, name: str) -> None:
    """Raise FileError if files of a format cannot hold values of all types."""
    if format not in _FORMATS:
        raise FileError(f"{name}: categories are written as .csv, .tsv or .xlsx; use one of these extensions")


def write_values(
    columns: Mapping[str, Sequence[Any]],
    row_names: Sequence[str] | None,
    path: Path,
    format: str,
    row_label: str = "",
) -> None:
    """Write one column per variable, with the names of the rows; an unknown value is blank. The write is atomic.

    ``row_label`` is what the column of the names of the rows is called.
    """
    with atomic_write(path) as temporary:
        if format == "xlsx":
            write_sheet(temporary, _rows(columns, row_names, row_label))
            return
        with open_text_writer(temporary) as file:
            writer = csv.writer(file, delimiter="\t" if format == "tsv" else ",", lineterminator="\n")
            writer.writerows(_rows(columns, row_names, row_label))


def _rows(columns: Mapping[str, Sequence[Any]], row_names: Sequence[str] | None, row_label: str) -> Iterator[list[Any]]:
    """Yield the names of the variables, and the values of each row."""
    yield [*columns] if row_names is None else [row_label, *columns]
    for row, values in enumerate(zip(*columns.values(), strict=True)):
        cells = [_WORDS[value] if value is None or isinstance(value, bool) else value for value in values]
        yield cells if row_names is None else [row_names[row], *cells]
