"""The statements of a role report, as plain data. Roles, users and permissions are given by their names."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

from ..columns.table import Names

Fit = Literal["shared", "own", "none", "empty"]
FITS: tuple[Fit, ...] = get_args(Fit)


class RoleEntry(NamedTuple):
    """A role.

    Attributes
    ----------
    name : str
    permissions : tuple of str
    users : tuple of str
    own_permissions : tuple of str
        Its permissions that no other role has.
    only_users : tuple of str
        Its users who have no other role.
    n_grants : int
        Its permissions, counted for each of its users.
    n_only : int
        Those of them that no other role of the same user gives.
    """

    name: str
    permissions: Names
    users: Names
    own_permissions: Names
    only_users: Names
    n_grants: int
    n_only: int


class PermissionEntry(NamedTuple):
    """A permission.

    Attributes
    ----------
    name : str
    roles : tuple of str
        The roles that give it.
    users : tuple of str
        The users who have it.
    n_direct : int
        The number of them whom no role of theirs gives it to.
    """

    name: str
    roles: Names
    users: Names
    n_direct: int


class UserEntry(NamedTuple):
    """A user.

    Attributes
    ----------
    row : int
        Its row in the table, counted from 0.
    name : str
    roles : tuple of str
    n_permissions : int
    direct : tuple of str
        Its permissions that none of its roles gives.
    fit : {"shared", "own", "none", "empty"}
        Whether it has a role that others have too, only roles that nobody else has, permissions but no role, or no
        permission.
    """

    row: int
    name: str
    roles: Names
    n_permissions: int
    direct: Names
    fit: Fit


class RolePair(NamedTuple):
    """Two roles with common permissions, or with nearly the same users.

    Attributes
    ----------
    first, second : str
    n_permissions, n_users : int
        Permissions and users of both.
    permission_overlap, user_overlap : float
        Their Jaccard index: what both have, divided by what either has.
    within : str or None
        The role all of whose permissions the other one has; the second one, if both have the same.
    """

    first: str
    second: str
    n_permissions: int
    permission_overlap: float
    n_users: int
    user_overlap: float
    within: str | None


class PeerDifference(NamedTuple):
    """A permission in which a user differs from the other users of a role.

    Attributes
    ----------
    row : int
        The row of the user in the table, counted from 0.
    user, permission : str
    role : str
        The role of the user whose other users it is compared with.
    n_peers : int
        Number of other users of the role.
    n_with : int
        Number of them who have the permission.
    given_by : tuple of str
        The roles of the user that give the permission; none if it lacks it or has it from no role.
    """

    row: int
    user: str
    permission: str
    role: str
    n_peers: int
    n_with: int
    given_by: Names = ()
