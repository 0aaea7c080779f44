"""`RoleLimits`: roles that are known, and what the other roles may have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..errors import InputError, Parameter
from ..table import Names, Table, listed_names

_NAMES = ("fixed_atoms", "max_features_per_atom", "apart", "together")
FeatureSets = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class RoleLimits:
    """Fixed roles, and limits of the roles that are searched. All are given by columns of the table.

    Attributes
    ----------
    fixed : BitMatrix of shape (n_fixed, n_features)
        Roles that are kept as they are.
    max_features : int or None
        Number of columns that a role has at most.
    apart : tuple of tuples of int
        Sets of columns of which a role has at most one.
    together : tuple of tuples of int
        Sets of columns of which a role has all or none. Every row has all or none of them too.
    """

    fixed: BitMatrix
    max_features: int | None = None
    apart: FeatureSets = ()
    together: FeatureSets = ()

    @property
    def restricts(self) -> bool:
        """Whether not every set of columns may be a role; subsets of sets that may be roles may be, too."""
        return self.max_features is not None or bool(self.apart)

    def groups(self) -> NDArray[np.intp]:
        """Return for each column the first one of those that it is together with, itself included."""
        group = np.arange(self.fixed.n_cols)
        for columns in self.together:
            joined = np.isin(group, group[list(columns)])
            group[joined] = group[joined].min()
        return group


def has_limits(params: Mapping[str, Any]) -> bool:
    """Return whether parameters of a cover limit its roles."""
    return any(params[name] is not None and not _is_empty(params[name]) for name in _NAMES)


def _is_empty(value: Any) -> bool:
    return isinstance(value, tuple) and not value


def role_limits(params: Mapping[str, Any], table: Table) -> RoleLimits:
    """Return the limits that parameters give; raise `InputError` if no cover of the table keeps to them."""
    limits = RoleLimits(
        _fixed_bits(params["fixed_atoms"], table),
        params["max_features_per_atom"],
        *(_columns(name, params[name], table) for name in ("apart", "together")),
    )
    _check_rows(limits, table)
    _check_groups(limits, table)
    _check_fixed(limits, table)
    return limits


def _fixed_bits(fixed: Any, table: Table) -> BitMatrix:
    """Return fixed roles with the columns of the table."""
    n_columns = table.shape[1]
    if fixed is None:
        return BitMatrix.zeros(0, n_columns)
    roles = Table.from_any(fixed, missing="refuse")
    if roles.columns is None or table.columns is None:
        if roles.shape[1] != n_columns:
            raise InputError(
                Parameter("fixed_atoms"),
                f" have {roles.shape[1]} columns, and the table {n_columns}; pass tables whose columns have names, or "
                "with the same columns",
            )
        return roles.bits
    known = set(table.columns)
    used = roles.bits.column_weights()
    lacking = [name for name, n in zip(roles.columns, used, strict=True) if n and name not in known]
    if lacking:
        raise InputError(
            Parameter("fixed_atoms"), f" have columns that the table lacks: {listed_names(lacking)}; add or remove them"
        )
    index = {name: column for column, name in enumerate(roles.columns)}
    return roles.bits.take_columns(np.array([index.get(name, -1) for name in table.columns], np.int64))


def _columns(parameter: str, sets: Sequence[Sequence[int | str]], table: Table) -> FeatureSets:
    """Return sets of features as sets of columns."""
    index = {} if table.columns is None else {name: column for column, name in enumerate(table.columns)}
    found = []
    for features in sets:
        columns = set()
        for feature in features:
            column = index.get(feature, -1) if isinstance(feature, str) else int(feature)
            if not 0 <= column < table.shape[1]:
                raise InputError(
                    Parameter(parameter),
                    f" names a feature that the table does not have: {feature!r}; check its spelling",
                )
            columns.add(column)
        found.append(tuple(sorted(columns)))
    return tuple(found)


def _check_rows(limits: RoleLimits, table: Table) -> None:
    """Raise if a row has only some of the columns that are together."""
    for columns in limits.together:
        members = table.bits.take_columns(np.array(columns, np.int64)).to_dense(bool)
        partly = members.any(axis=1) & ~members.all(axis=1)
        if partly.any():
            row = int(np.argmax(partly))
            has, lacks = (
                table.names_of(column for column, is_in in zip(columns, members[row], strict=True) if is_in == wanted)
                for wanted in (True, False)
            )
            raise InputError(
                Parameter("together"),
                f" cannot be kept: {table.row_name(row)!r} has {listed_names(has)}, but not {listed_names(lacks)} "
                f"({int(partly.sum())} such row{'s' * (int(partly.sum()) > 1)}); change the table or omit the set",
            )


def _check_groups(limits: RoleLimits, table: Table) -> None:
    """Raise if columns that are together are apart too, or more than a role may have."""
    groups = limits.groups()
    for columns in limits.apart:
        for one, other in combinations(columns, 2):
            if groups[one] == groups[other]:
                raise InputError(
                    f"{listed_names(table.names_of((one, other)))} are in a set of ",
                    Parameter("together"),
                    " and in one of ",
                    Parameter("apart"),
                    "; remove one of the sets",
                )
    largest = int(np.bincount(groups, minlength=1).max()) if len(groups) else 0
    if limits.max_features is not None and largest > limits.max_features:
        raise InputError(
            Parameter("together"), f" has {largest} features that stay together, more than ",
            Parameter("max_features_per_atom", limits.max_features), "; raise it",
        )  # fmt: skip


def _check_fixed(limits: RoleLimits, table: Table) -> None:
    """Raise if a fixed role does not keep to the limits."""
    for number, role in enumerate(limits.fixed.to_dense(bool), start=1):
        broken: str | None = None
        if limits.max_features is not None and role.sum() > limits.max_features:
            broken = f"{int(role.sum())} features, but max_features_per_atom is {limits.max_features}"
        for columns in limits.apart:
            if role[list(columns)].sum() > 1:
                broken = f"{_named(columns, role, table)}, which are apart"
        for columns in limits.together:
            if role[list(columns)].any() and not role[list(columns)].all():
                broken = f"{_named(columns, role, table)} only, of features that are together"
        if broken is not None:
            raise InputError(f"role {number} of ", Parameter("fixed_atoms"), f" has {broken}; change one of them")


def _named(columns: Iterable[int], role: NDArray[np.bool_], table: Table) -> str:
    """Return the names of the columns that a role has."""
    names: Names = table.names_of(column for column in columns if role[column])
    return listed_names(names)
