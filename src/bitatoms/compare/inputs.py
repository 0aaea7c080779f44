"""What a comparison is given, in whichever form, as it goes on with it: tables by name, and numbers of atoms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any

from ..bits import BitMatrix
from ..validation import check_int
from .datasets import BUNDLED

ONE = "table"  # what a table without a name is called


def tables_of(data: Any) -> tuple[dict[str, BitMatrix], dict[str, str]]:
    """The tables by name, packed, and what they are."""
    if _is_table(data):
        data = {ONE: data}
    if isinstance(data, Mapping):
        tables = {str(name): BitMatrix.from_any(table) for name, table in data.items()}
    else:
        tables = {name: BUNDLED[name].make() for name in _names(data)}
    if not tables:
        raise ValueError("there is no table to compare on; name one")
    for name, table in tables.items():
        if 0 in table.shape:
            what = "rows" if table.n_rows == 0 else "columns"
            raise ValueError(f"{name}: the table has no {what}: there is nothing to compare on")
    return tables, {name: BUNDLED[name].about if name in BUNDLED else "" for name in tables}


def ranks_of(ranks: Any) -> list[int]:
    """The numbers of atoms, from few to many; one may stand alone."""
    if isinstance(ranks, Integral):
        ranks = [ranks]
    if isinstance(ranks, str) or not isinstance(ranks, Iterable):
        raise ValueError(f"ranks is {ranks!r}; give a number of atoms, or several, such as [2, 4, 8]")
    wanted = list(ranks)
    if not wanted:
        raise ValueError("ranks is empty; give the numbers of atoms to ask for, such as 2, 4, 8")
    return sorted({check_int("ranks", rank, 1) for rank in wanted})


def _is_table(data: Any) -> bool:
    """Whether this is one table: an array, a frame, packed bits, a sparse matrix; or a list of rows that are lists."""
    if hasattr(data, "shape") or hasattr(data, "bits"):
        return True
    return isinstance(data, (list, tuple)) and bool(data) and all(isinstance(row, (list, tuple)) for row in data)


def _names(data: Any) -> list[str]:
    """The names of bundled data."""
    if isinstance(data, str):
        data = [data]
    names = list(data) if isinstance(data, Iterable) else [data]
    for name in names:
        if not isinstance(name, str):
            raise ValueError(
                f"data is or holds a {type(name).__name__}; give one table, a mapping of names to tables, or names "
                f"out of {', '.join(BUNDLED)}"
            )
        if name not in BUNDLED:
            raise ValueError(f"there is no data set {name!r}; there are {', '.join(BUNDLED)}")
    return names
