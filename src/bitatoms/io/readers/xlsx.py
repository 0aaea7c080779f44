"""Excel workbooks: a sheet is read as a CSV file with the same cells, of any shape; see `bitatoms.io.sheets`."""

from __future__ import annotations

import itertools
from pathlib import Path

from ...table import Table
from ..sheets import write_sheet
from .csv import check_writable, header_cells, read, row_cells

__all__ = ["read", "write"]


def write(table: Table, path: Path, format: str) -> None:
    """Write a table of 0 and 1 with its names to a sheet; unknown cells are NA."""
    check_writable(table, path)
    has_header = table.columns is not None or table.row_names is not None
    write_sheet(path, itertools.chain([header_cells(table)] if has_header else [], row_cells(table)))
