"""`Problem`: the ones to cover. Equal rows and equal columns are one each, which loses nothing.

Equal rows can use the same roles, and equal columns can be in the same roles, in some best cover: all of them take
over what the cheapest of them has. If roles are limited, equal columns stay separate, unless they are together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from .limits import RoleLimits
from .masks import Weights, full, indices, mask_of, masks_of_rows, rows_of_masks, transposed, union


class Role(NamedTuple):
    """A rectangle of ones: the set of its users (rows) and the set of its permissions (columns)."""

    users: int
    permissions: int


@dataclass(frozen=True)
class Problem:
    """Distinct rows and columns that have ones, as sets of each other, and how often each occurs in the table."""

    shape: tuple[int, int]
    rows: tuple[int, ...]  # the columns of each row
    columns: tuple[int, ...]  # the rows of each column
    row_counts: Weights
    column_counts: Weights
    row_of: NDArray[np.intp]  # the row for each row of the table, -1 for one without ones
    column_of: NDArray[np.intp]
    fixed: tuple[int, ...] = ()  # the columns of the fixed roles
    apart: tuple[int, ...] = ()  # sets of columns of which a role has at most one
    max_columns: int | None = None  # of the table, in a role

    @classmethod
    def from_bits(cls, data: BitMatrix, limits: RoleLimits | None = None) -> Problem:
        """Return the problem of a table whose cells are all known."""
        limits = RoleLimits.none(data.n_cols) if limits is None else limits
        distinct, row_of, row_counts = _distinct(data)
        has_ones = distinct.column_weights() > 0
        fixed = limits.fixed.to_dense(bool)
        fixed = fixed[~(fixed & ~has_ones).any(axis=1)]  # no row has a role with a column without ones
        keys = np.concatenate([fixed, _group_keys(limits)]) & has_ones
        by_column, column_of, column_counts = _distinct(
            BitMatrix.from_dense(np.concatenate([distinct.to_dense(bool), keys]).T)
        )
        dense = by_column.to_dense(bool)[:, : len(distinct)]  # equal columns do not make rows equal
        return cls(
            data.shape,
            masks_of_rows(dense.T),
            masks_of_rows(dense),
            Weights(row_counts.tolist()),
            Weights(column_counts.tolist()),
            row_of,
            column_of,
            fixed=tuple(_mask_of_columns(column_of[role]) for role in fixed),
            apart=tuple(_mask_of_columns(column_of[list(columns)]) for columns in limits.apart),
            max_columns=limits.max_features,
        )

    @cached_property
    def given(self) -> tuple[int, ...]:
        """The columns of each row that its fixed roles cover."""
        return tuple(union(role for role in self.fixed if not role & ~row) for row in self.rows)

    @cached_property
    def to_cover(self) -> tuple[int, ...]:
        """The columns of each row that other roles must cover."""
        return tuple(row & ~given for row, given in zip(self.rows, self.given, strict=True))

    @cached_property
    def rows_to_cover(self) -> tuple[int, ...]:
        """The rows of each column in which other roles must cover it."""
        return tuple(transposed(self.to_cover, len(self.columns)))

    @property
    def restricts(self) -> bool:
        """Whether not every set of columns may be a role."""
        return self.max_columns is not None or bool(self.apart)

    def allows(self, permissions: int) -> bool:
        """Return whether these columns may be a role; if they may, so may all of their subsets."""
        if self.max_columns is not None and self.column_counts.of(permissions) > self.max_columns:
            return False
        return all((permissions & columns).bit_count() <= 1 for columns in self.apart)

    @cached_property
    def apart_from(self) -> tuple[int, ...]:
        """The columns that no role has together with each column."""
        return tuple(
            union(columns for columns in self.apart if columns >> column & 1) & ~(1 << column)
            for column in range(len(self.columns))
        )

    def allowed_part(self, columns: Iterable[int]) -> int:
        """Return the columns that may be a role, each taken if it may be together with those before."""
        part = excluded = 0
        room = sum(self.column_counts.each) if self.max_columns is None else self.max_columns
        for column in columns:
            count = self.column_counts.each[column]
            if count <= room and not excluded >> column & 1:
                part |= 1 << column
                room -= count
                excluded |= self.apart_from[column]
            if not room:
                break
        return part

    def allowed_parts(self, permissions: int) -> list[int]:
        """Return sets of columns that may be roles, and together are these columns."""
        if not self.restricts:
            return [permissions] if permissions else []
        parts = []
        while permissions:
            parts.append(self.allowed_part(indices(permissions)))
            permissions &= ~parts[-1]
        return parts

    @cached_property
    def row_roles(self) -> tuple[Role, ...]:
        """The cover with one role per distinct row, or as many as it needs."""
        return tuple(
            Role(1 << row, part) for row, columns in enumerate(self.to_cover) for part in self.allowed_parts(columns)
        )

    @property
    def column_roles(self) -> tuple[Role, ...]:
        """The cover with one role per distinct column."""
        return tuple(Role(rows, 1 << column) for column, rows in enumerate(self.rows_to_cover) if rows)

    def support(self, permissions: int) -> int:
        """Return the rows that have all of these columns."""
        users = full(len(self.rows))
        for column in indices(permissions):
            users &= self.columns[column]
        return users

    def common(self, users: int) -> int:
        """Return the columns that all of these rows have."""
        return mask_of(np.logical_and.reduce(self._dense[list(indices(users))], axis=0))

    @cached_property
    def _dense(self) -> NDArray[np.bool_]:
        """The ones of each row."""
        return rows_of_masks(self.rows, len(self.columns))

    def size(self, role: Role) -> tuple[int, int]:
        """Return how many rows and columns of the table a role has."""
        return self.row_counts.of(role.users), self.column_counts.of(role.permissions)

    def atoms(self, roles: Sequence[Role]) -> BitMatrix:
        """Return the columns of the table that each role has, of shape (n_roles, n_features)."""
        return _expanded([role.permissions for role in roles], self.column_of, len(self.columns))

    def codes(self, roles: Sequence[Role]) -> BitMatrix:
        """Return the roles that each row of the table has, of shape (n_samples, n_roles)."""
        return _expanded([role.users for role in roles], self.row_of, len(self.rows)).T


def _distinct(data: BitMatrix) -> tuple[BitMatrix, NDArray[np.intp], NDArray[np.int64]]:
    """Return the distinct rows that have ones, the index among these of each row, or -1, and how often each occurs."""
    words, index, counts = np.unique(data.words, axis=0, return_inverse=True, return_counts=True)
    kept = words.any(axis=1)
    new_index = np.where(kept, np.cumsum(kept) - 1, -1)
    return BitMatrix.from_words(words[kept], data.n_cols, check=False), new_index[index.reshape(-1)], counts[kept]


def _group_keys(limits: RoleLimits) -> NDArray[np.bool_]:
    """Return bits that differ for columns of different groups if roles are limited; otherwise none."""
    n_digits = limits.fixed.n_cols.bit_length() if limits.restricts else 0
    return limits.groups() >> np.arange(n_digits)[:, np.newaxis] & 1 == 1


def _mask_of_columns(columns: NDArray[np.intp]) -> int:
    """Return the set of columns that are not left out."""
    return union(1 << column for column in columns.tolist() if column >= 0)


def _expanded(masks: list[int], element_of: NDArray[np.intp], n: int) -> BitMatrix:
    """Return sets of distinct rows or columns as bits of those of the table."""
    dense = rows_of_masks(masks, n)
    padded = np.concatenate([dense, np.zeros((len(masks), 1), bool)], axis=1)  # index -1: without ones
    return BitMatrix.from_dense(padded[:, element_of])
