"""What a cover costs: the sum of the costs of its roles, each a function of its numbers of users and permissions.

A role that is cheaper as permissions granted to its users directly costs that; `RoleCost.is_direct` recognizes it.
Costs are integers, so that no rounding decides which cover is better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

from ..engine.codelength import string_bits


class RoleCost(Protocol):
    """The cost of a role."""

    scale: int  # what the costs are multiplied by to be integers

    def of(self, n_users: int, n_permissions: int) -> int:
        """Return the cost of a role with this many users and permissions of the table."""

    def is_direct(self, n_users: int, n_permissions: int) -> bool:
        """Whether the permissions are granted directly, without a role."""


def unscaled(cost: int, scale: int) -> float:
    """Return a cost as an integer, or as a float if weights are fractions."""
    return cost // scale if cost % scale == 0 else cost / scale


class AssignmentCost:
    """Weighted structural complexity: roles, user assignments, permission assignments and, if allowed, direct grants.

    Parameters
    ----------
    weights : sequence of three numbers
        The weights of a role, of a user assignment and of a permission assignment.
    direct : number, optional
        The weight of a permission granted to a user directly; not allowed by default.
    """

    def __init__(self, weights: Sequence[float], direct: float | None = None) -> None:
        given = [*weights] if direct is None else [*weights, direct]
        exact = [Fraction(str(weight)) for weight in given]  # 0.1 is a tenth
        self.scale = math.lcm(*(weight.denominator for weight in exact))
        scaled = [int(weight * self.scale) for weight in exact]
        self.role, self.user, self.permission = scaled[:3]
        self.direct = None if direct is None else scaled[3]

    def of_fixed(self, n_users: int, n_permissions: int) -> int:
        """Return the cost of a role that is never granted directly instead."""
        return self.role + self.user * n_users + self.permission * n_permissions

    def of(self, n_users: int, n_permissions: int) -> int:
        """Return the cost of a role with this many users and permissions of the table."""
        cost = self.of_fixed(n_users, n_permissions)
        return cost if self.direct is None else min(cost, self.direct * n_users * n_permissions)

    def is_direct(self, n_users: int, n_permissions: int) -> bool:
        """Whether the permissions are granted directly, without a role."""
        return self.direct is not None and self.direct * n_users * n_permissions < self.of_fixed(n_users, n_permissions)


def fewest_roles(n_rows: int, n_columns: int, most: int) -> AssignmentCost:
    """Return the cost by which a cover with fewer roles is better, and of those the one with fewer assignments.

    The search starts with ``most`` roles or fewer, so that one role less outweighs the rest.
    """
    return AssignmentCost([most * (n_rows + n_columns) + 1, 1, 1])


class CodelengthCost:
    """Bits that describe the users and the permissions of a role; an exact cover has no errors to describe."""

    scale = 1

    def __init__(self, n_rows: int, n_columns: int) -> None:
        self._users = string_bits(n_rows, range(n_rows + 1)).tolist()
        self._permissions = string_bits(n_columns, range(n_columns + 1)).tolist()
        self.cheapest = min(self._users) + min(self._permissions)  # of all roles

    def of(self, n_users: int, n_permissions: int) -> int:
        """Return the bits of a role with this many users and permissions of the table."""
        return self._users[n_users] + self._permissions[n_permissions]

    of_fixed = of

    def least_of(self, n_permissions: int) -> int:
        """Return the fewest bits of a role with this many permissions."""
        return min(self._users) + self._permissions[n_permissions]

    def is_direct(self, n_users: int, n_permissions: int) -> bool:
        """Whether the permissions are granted directly: never."""
        return False
