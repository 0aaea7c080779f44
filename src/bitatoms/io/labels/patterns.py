"""Read the atoms of a pattern file: CSV, TSV or a sheet."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import numpy as np

from ...bits import BitMatrix
from ...columns.table import Table
from ..errors import FileError
from ..formats.registry import infer_format, sniff_format
from ..options import ReadOptions
from ..stream import Source
from ..text import TextRows, is_blank
from .names import split_names


def read_patterns(path: Path) -> Table | None:
    """Return the atoms of a pattern file, CSV or a sheet, as a table with one row each; None if it is another file.

    Of its columns, ``features`` is read; lines may be removed and changed. Features are in the order in which they
    occur.
    """
    if path.suffix.lower() in (".json", ".md", ".html", ".htm"):
        raise FileError(f"{path}: patterns are read as .csv or .xlsx; write them with one of these extensions")
    source = Source(path, infer_format(path), os.fspath(path))
    if source.format not in ("csv", "tsv", "xlsx") or not path.is_file() or sniff_format(path) not in (None, "xlsx"):
        return None
    records = (record for record in TextRows(source, ReadOptions()) if not is_blank(record[1]))
    labels = [cell.strip() for cell in next(records, (0, []))[1]]
    if not {"atom", "features"} <= set(labels):
        return None
    index, unit = labels.index("features"), source.unit
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
