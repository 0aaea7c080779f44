"""Excel workbooks: a sheet is read as a CSV file with the same cells, of any shape; see `bitatoms.io.sheets`."""

from __future__ import annotations

import itertools
from pathlib import Path

from ...columns.table import Table
from ..cells import MISSING_WORDS, are_cells
from ..errors import FileError
from ..sheets import write_sheet
from .csv import check_writable, header_cells, read, row_cells

__all__ = ["read", "write"]


def write(table: Table, path: Path, format: str) -> None:
    """Write a table of 0 and 1 with its names to a sheet; unknown cells are NA."""
    check_writable(table, path)
    first = table.bits[:1]
    header = [header_cells(table)] if table.columns is not None or table.row_names is not None else []
    problems = {
        "row names that are all blank": table.row_names and not any(map(str.strip, table.row_names)),
        "a last column without a name": table.columns and not table.columns[-1].strip(),
        # `has_text_header` compares the types of the first two rows.
        "column names that look like cells above a row without known cells": (
            header and are_cells(header[0][1:] or header[0]) and first.n_unknown == len(first) * first.n_cols
        ),
        "column names that are all words for missing values": (
            table.columns and all(name.strip().lower() in MISSING_WORDS for name in table.columns)
        ),
    }
    for problem, is_found in problems.items():
        if is_found:
            raise FileError(f"{path.name}: this format cannot store {problem}; change the names, or write .csv or .npz")
    write_sheet(path, itertools.chain(header, row_cells(table)))
