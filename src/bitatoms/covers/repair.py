"""Cover ones by roles that cost little for what they cover: existing roles, and new ones from common columns of rows.

The columns that rows have in common are the permissions of formal concepts, the rectangles of ones that cannot be
extended. New roles take those of them that are not covered yet.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import NamedTuple

from .masks import indices, union
from .problem import Role
from .state import CoverState

_MAX_ROWS = 48  # rows that are compared with the row to cover
_MAX_CANDIDATES = 40


class Uncovered:
    """Ones that no role covers: the columns of each row that has any, and the rows of each column."""

    def __init__(self, columns_of: Mapping[int, int]) -> None:
        self.rows = {row: columns for row, columns in columns_of.items() if columns}
        self.columns: dict[int, int] = {}
        for row, columns in self.rows.items():
            for column in indices(columns):
                self.columns[column] = self.columns.get(column, 0) | 1 << row

    def cover(self, role: Role) -> None:
        """Remove the ones of a role."""
        for row in indices(role.users):
            if rest := self.rows.get(row, 0) & ~role.permissions:
                self.rows[row] = rest
            else:
                self.rows.pop(row, None)
        for column in indices(role.permissions):
            if column in self.columns:
                self.columns[column] &= ~role.users


class _Choice(NamedTuple):
    """A role that covers more: its permissions, users to add and, if it exists, its number."""

    permissions: int
    users: int
    number: int | None


def repair(
    state: CoverState,
    uncovered: Uncovered,
    rng: random.Random,
    noise: float,
    should_stop: Callable[[], bool] = lambda: False,
) -> bool:
    """Cover all ones, greedily: a random row gets the role that covers the most ones of the table per cost.

    Parameters
    ----------
    state : CoverState
    uncovered : Uncovered
        The ones to cover. Nothing is left of them.
    rng : random.Random
    noise : float
        How much chance decides: the value of each role is multiplied by a random number from 1 to 1 + noise.
    should_stop : callable
        Asked for each role whether to give up.

    Returns
    -------
    bool
        Whether all ones are covered.
    """
    while uncovered.rows:
        if should_stop():
            return False
        row = rng.choice(list(uncovered.rows))
        permissions, users, number = _best_choice(state, row, uncovered, rng, noise)
        if number is None:
            state.add(Role(users, permissions))
        else:
            state.set(number, Role(state.roles[number].users | users, permissions))
        uncovered.cover(Role(users, permissions))
    return True


def _best_choice(state: CoverState, row: int, uncovered: Uncovered, rng: random.Random, noise: float) -> _Choice:
    """Return the best role for a row."""
    best, best_value = _Choice(state.problem.allowed_parts(uncovered.rows[row])[0], 1 << row, None), -1.0
    for permissions, number in _candidates(state, row, uncovered, rng):
        value, users = _value(state, permissions, number, uncovered)
        value *= 1 + noise * rng.random()
        if value > best_value:
            best, best_value = _Choice(permissions, users, number), value
    return best


def _candidates(state: CoverState, row: int, uncovered: Uncovered, rng: random.Random) -> list[tuple[int, int | None]]:
    """Return sets of permissions that a row has, of existing roles with their numbers."""
    rows, lacking = state.problem.rows, uncovered.rows[row]
    others = list(uncovered.rows)
    if len(others) > _MAX_ROWS:
        others = rng.sample(others, _MAX_ROWS)
    shared = [lacking]
    for other in others:
        shared += (lacking & uncovered.rows[other], lacking & rows[other])
    if state.problem.restricts:
        shared = [_allowed(state, permissions, rng) for permissions in shared]
    found: dict[int, int | None] = {permissions: None for permissions in shared if permissions}
    for number in indices(union(state.column_roles[column] for column in indices(lacking))):
        permissions = state.roles[number].permissions
        if permissions & ~rows[row] == 0:
            found[permissions] = number
    candidates = list(found.items())
    return candidates if len(candidates) <= _MAX_CANDIDATES else rng.sample(candidates, _MAX_CANDIDATES)


def _allowed(state: CoverState, permissions: int, rng: random.Random) -> int:
    """Return permissions if they may be a role, otherwise some of them that may."""
    if state.problem.allows(permissions):
        return permissions
    columns = list(indices(permissions))
    rng.shuffle(columns)
    return state.problem.allowed_part(columns)


def _value(state: CoverState, permissions: int, number: int | None, uncovered: Uncovered) -> tuple[float, int]:
    """Return the ones of the table per cost that a role covers with the best further users, and these users.

    Users for whom the role covers more come first; others are added as long as the value rises.
    """
    problem, cost = state.problem, state.role_cost
    n_permissions = problem.column_counts.of(permissions)
    n_users = paid = covered = 0
    if number is not None:
        n_users = problem.row_counts.of(state.roles[number].users)
        paid = cost.of(n_users, n_permissions)
    value, users = -1.0, 0
    for gain, added in _gains(state, permissions, uncovered):
        weight = problem.row_counts.of(added)
        covered += gain * weight
        n_users += weight
        new_value = covered / max(cost.of(n_users, n_permissions) - paid, 1e-9)
        if new_value <= value:
            break
        value, users = new_value, users | added
    return value, users


def _gains(state: CoverState, permissions: int, uncovered: Uncovered) -> list[tuple[int, int]]:
    """Return how many columns of the table a role would cover for users, and these users, the most first."""
    state.work += 4
    problem, every, some = state.problem, -1, 0
    for column in indices(permissions):
        lacking = uncovered.columns.get(column, 0)
        every &= lacking
        some |= lacking
    by_gain = {problem.column_counts.of(permissions): every} if every else {}
    for row in indices(some & ~every & problem.support(permissions)):
        gain = problem.column_counts.of(uncovered.rows[row] & permissions)
        by_gain[gain] = by_gain.get(gain, 0) | 1 << row
    return sorted(by_gain.items(), reverse=True)
