"""`Problem`: the ones to cover. Equal rows and equal columns are one each, which loses nothing.

Equal rows can use the same roles, and equal columns can be in the same roles, in some best cover: all of them take
over what the cheapest of them has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from .masks import Weights, full, indices, masks_of_rows, rows_of_masks


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

    @classmethod
    def from_bits(cls, data: BitMatrix) -> Problem:
        """Return the problem of a table whose cells are all known."""
        distinct, row_of, row_counts = _distinct(data)
        transposed, column_of, column_counts = _distinct(distinct.T)
        dense = transposed.to_dense(bool)  # columns x rows; equal columns do not make rows equal
        return cls(
            data.shape,
            masks_of_rows(dense.T),
            masks_of_rows(dense),
            Weights(row_counts.tolist()),
            Weights(column_counts.tolist()),
            row_of,
            column_of,
        )

    @property
    def n_ones(self) -> int:
        """Number of ones of the distinct rows and columns."""
        return sum(mask.bit_count() for mask in self.rows)

    @property
    def row_roles(self) -> tuple[Role, ...]:
        """The cover with one role per distinct row."""
        return tuple(Role(1 << row, columns) for row, columns in enumerate(self.rows))

    @property
    def column_roles(self) -> tuple[Role, ...]:
        """The cover with one role per distinct column."""
        return tuple(Role(rows, 1 << column) for column, rows in enumerate(self.columns))

    def support(self, permissions: int) -> int:
        """Return the rows that have all of these columns."""
        users = full(len(self.rows))
        for column in indices(permissions):
            users &= self.columns[column]
        return users

    def common(self, users: int) -> int:
        """Return the columns that all of these rows have."""
        permissions = full(len(self.columns))
        for row in indices(users):
            permissions &= self.rows[row]
        return permissions

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


def _expanded(masks: list[int], element_of: NDArray[np.intp], n: int) -> BitMatrix:
    """Return sets of distinct rows or columns as bits of those of the table."""
    dense = rows_of_masks(masks, n)
    padded = np.concatenate([dense, np.zeros((len(masks), 1), bool)], axis=1)  # index -1: without ones
    return BitMatrix.from_dense(padded[:, element_of])
