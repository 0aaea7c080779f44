"""`RoleLimits`: roles that are known, and what the other roles may have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..columns.table import Header, Names, Table, as_bits, axis_names
from ..engine.limits import AtomLimits, FeatureSets
from ..errors import InputError, Parameter
from ..formatting import counted, listed_names
from ..sparse_bits import packed
from .options import CoverOptions, has_atoms


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

    @classmethod
    def none(cls, n_features: int) -> RoleLimits:
        """Return neither fixed roles nor limits."""
        return cls(BitMatrix.zeros(0, n_features))

    @property
    def restricts(self) -> bool:
        """Whether not every set of columns may be a role; subsets of sets that may be roles may be, too."""
        return self.max_features is not None or bool(self.apart)

    @property
    def has_any(self) -> bool:
        """Whether there are fixed roles or limits."""
        return len(self.fixed) > 0 or self.restricts or bool(self.together)

    def groups(self) -> NDArray[np.intp]:
        """Return for each column the first one of those that it is together with, itself included."""
        group = np.arange(self.fixed.n_cols)
        for columns in self.together:
            joined = np.isin(group, group[list(columns)])
            group[joined] = group[joined].min()
        return group


def role_limits(options: CoverOptions, table: Table) -> RoleLimits:
    """Return the limits that options give; raise `InputError` if no cover of the table keeps to them."""
    given = AtomLimits(options.max_features_per_atom, None, options.apart, options.together)
    found = given.in_columns(table.shape[1], table.columns)
    fixed = fixed_bits(options.fixed_atoms, table.header)
    limits = RoleLimits(fixed, found.max_features, found.apart, found.together)
    _check_rows(limits, table)
    _check_fixed(limits, table)
    return limits


def fixed_bits(fixed: Any, header: Header) -> BitMatrix:
    """Return fixed roles, or other atoms, with the columns of a table; they need not have all of them."""
    if not has_atoms(fixed):
        return BitMatrix.zeros(0, header.n_cols)
    roles = Table(packed(as_bits(fixed, name="fixed_atoms")), None, axis_names(fixed)[1])
    if roles.columns is None or header.names is None:
        if roles.shape[1] != header.n_cols:
            raise InputError(
                Parameter("fixed_atoms"),
                f" have {roles.shape[1]} columns, and the table {header.n_cols}; pass tables whose columns have names, "
                "or with the same columns",
            )
        return roles.bits
    known = set(header.names)
    used = roles.bits.column_weights()
    lacking = [name for name, n in zip(roles.columns, used, strict=True) if n and name not in known]
    if lacking:
        raise InputError(
            "the table lacks columns of ", Parameter("fixed_atoms"), f": {listed_names(lacking)}; add or remove them; "
            "in a pattern file, a name with a semicolon is in quotes",
        )  # fmt: skip
    index = {name: column for column, name in enumerate(roles.columns)}
    return roles.bits.take_columns(np.array([index.get(name, -1) for name in header.names], np.int64))


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
                f"({counted(int(partly.sum()), 'such row')}); change the table or omit the set",
            )


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
