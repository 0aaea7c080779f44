"""Roles and users as tables with common columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, islice
from typing import Any

import numpy as np

from ..columns.table import Names, Table, first_duplicate
from ..covers.result import Cover
from ..errors import InputError
from ..formatting import listed_names


def role_names(n_roles: int, known: Names = ()) -> Names:
    """Return the names of roles: first the known ones, then role 1, role 2, ... by their position, if it is free."""
    taken = set(known)
    free = (name for number in count(len(known) + 1) if (name := f"role {number}") not in taken)
    return (*known, *islice(free, n_roles - len(known)))


def as_roles(roles: Any, names: Sequence[str] | None = None) -> Table:
    """Return roles as a table of roles x permissions whose rows have different names."""
    table = Table(roles.atoms) if isinstance(roles, Cover) else Table.from_any(roles, missing="refuse")
    names = table.row_names if names is None else names
    names = role_names(len(table)) if names is None else tuple(names)
    if (duplicate := first_duplicate(names)) is not None:
        raise InputError(f"two roles have the name {duplicate!r}; rename one of them")
    return Table(table.data, names, table.columns)


def aligned(**tables: Table) -> tuple[Table, ...]:
    """Return tables with the same columns: all that any of them has, those of the first one first.

    Columns are matched by name; a column that a table lacks is zero in all its rows. If a table has no names, all must
    have the same number of columns, and the names are those of the first one that has any.
    """
    (first, other), *_ = tables.items()
    named = [table.columns for table in tables.values() if table.columns is not None]
    if len(named) < len(tables):
        for name, table in tables.items():
            if table.shape[1] != other.shape[1]:
                raise InputError(
                    f"the {name} have {table.shape[1]} columns, and the {first} {other.shape[1]}; pass tables whose "
                    "columns have names, or with the same columns"
                )
        columns = named[0] if named else None
        return tuple(Table(table.bits, table.row_names, columns) for table in tables.values())
    _check_common(dict(zip(tables, named, strict=True)))
    union = tuple(dict.fromkeys(name for names in named for name in names))
    found = []
    for table, names in zip(tables.values(), named, strict=True):
        index = {name: column for column, name in enumerate(names)}
        bits = table.bits.take_columns([index.get(name, -1) for name in union])
        found.append(Table(bits, table.row_names, union))
    return tuple(found)


def without(first: Any, second: Any) -> Any:
    """Return the ones of a sparse array where another one has none, sorted in each row."""
    left = (first - first.multiply(second.astype(bool).astype(np.int64))).tocsr()
    left.eliminate_zeros()
    left.sort_indices()
    return left


def _check_common(named: dict[str, Names]) -> None:
    """Raise if a table has no column that any other has."""
    for name, columns in reversed(named.items()):
        others = {other: names for other, names in named.items() if other != name and names}
        if columns and others and set(columns).isdisjoint(set().union(*others.values())):
            (other, names), *_ = others.items()
            raise InputError(
                f"the {name} have no column of the {other}: they have {listed_names(columns)}, and the {other} "
                f"{listed_names(names)}; pass tables with one column per permission, whose names are spelled alike"
            )
