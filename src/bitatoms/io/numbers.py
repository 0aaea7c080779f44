"""Write a table of numbers, such as soft codes, with the names of its rows and columns."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .atomic import atomic_write
from .errors import FileError
from .text_lines import open_text_writer

_DELIMITERS = {"csv": ",", "tsv": "\t"}
_DIGITS = 6  # significant ones, in text


def check_number_format(format: str, name: str) -> str:
    """Return the format of a file, or raise FileError if it cannot hold numbers."""
    if format != "npy" and format not in _DELIMITERS:
        raise FileError(
            f"{name}: soft codes are numbers, which are written as .csv, .tsv or .npy; a copy of an .h5ad file has "
            "them in any case: omit --soft"
        )
    return format


def write_numbers(
    values: NDArray[np.float64], row_names: Sequence[str] | None, columns: Sequence[str], path: Path, format: str
) -> None:
    """Write numbers as text with names, with six significant digits, or as an .npy file without names.

    The write is atomic. Text cannot hold a table without columns.
    """
    if not columns and format != "npy":
        raise FileError(
            f"{path.name}: the model has no atoms, so soft codes have no columns; .npy files can store them"
        )
    with atomic_write(path) as temporary:
        if format == "npy":
            with open(temporary, "wb") as array:
                np.save(array, values)
            return
        with open_text_writer(temporary) as file:
            writer = csv.writer(file, delimiter=_DELIMITERS[format], lineterminator="\n")
            writer.writerow(columns if row_names is None else ["", *columns])
            for row, numbers in enumerate(values):
                cells = [f"{number:.{_DIGITS}g}" for number in numbers.tolist()]
                writer.writerow(cells if row_names is None else [row_names[row], *cells])
