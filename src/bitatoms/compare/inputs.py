"""Validation of the arguments of `compare`: the tables by name, and the numbers of atoms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any

from ..bits import BitMatrix
from ..errors import InputError
from ..validation import check_int
from .datasets import BUNDLED

UNNAMED = "table"  # the name of a single table


def load_tables(data: Any) -> tuple[dict[str, BitMatrix], dict[str, str]]:
    """Return the packed tables by name, and their descriptions."""
    if _is_table(data):
        data = {UNNAMED: data}
    if isinstance(data, Mapping):
        tables = {str(name): BitMatrix.from_any(table) for name, table in data.items()}
    else:
        tables = {name: BUNDLED[name].make() for name in _check_bundled_names(data)}
    if not tables:
        raise InputError("data is empty; pass a table, or the name of a bundled data set")
    for name, table in tables.items():
        if 0 in table.shape:
            raise InputError(f"{name}: the table has no {'rows' if table.n_rows == 0 else 'columns'}")
    return tables, {name: BUNDLED[name].about if name in BUNDLED else "" for name in tables}


def check_ranks(ranks: Any) -> list[int]:
    """Return the numbers of atoms in ascending order; a single number is accepted."""
    if isinstance(ranks, Integral):
        ranks = [ranks]
    if isinstance(ranks, str) or not isinstance(ranks, Iterable):
        raise InputError(f"ranks is {ranks!r}; pass a number of atoms, or several, such as [2, 4, 8]")
    wanted = list(ranks)
    if not wanted:
        raise InputError("ranks is empty; pass the numbers of atoms, such as [2, 4, 8]")
    return sorted({check_int("ranks", rank, 1) for rank in wanted})


def _is_table(data: Any) -> bool:
    """Return whether this is one table: an array, a frame, packed bits, a sparse matrix, or a list of lists."""
    if hasattr(data, "shape") or hasattr(data, "bits"):
        return True
    return isinstance(data, (list, tuple)) and bool(data) and all(isinstance(row, (list, tuple)) for row in data)


def _check_bundled_names(data: Any) -> list[str]:
    """Return the names of bundled data sets as a list; a single name is accepted."""
    if isinstance(data, str):
        data = [data]
    names = list(data) if isinstance(data, Iterable) else [data]
    for name in names:
        if not isinstance(name, str):
            raise InputError(
                f"data is or contains an object of type {type(name).__name__}; pass one table, a mapping of names to "
                f"tables, or names from {', '.join(BUNDLED)}"
            )
        if name not in BUNDLED:
            raise InputError(f"there is no data set {name!r}; choose from {', '.join(BUNDLED)}")
    return names
