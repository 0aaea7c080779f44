"""`role_report`: what an auditor asks about roles, users and permissions, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..columns.table import Table, feature_names
from ..covers.coding import code_from_below
from ..covers.result import Cover
from ..formatting import be, counted, have, tally, verb
from ..parameters import with_options
from .entries import FITS, Fit, PeerDifference, PermissionEntry, RoleEntry, RolePair, UserEntry
from .options import AuditOptions
from .pairs import overlapping_pairs
from .peers import Difference, Peers
from .tables import aligned, as_roles, without


@dataclass(frozen=True, eq=False, kw_only=True)
class RoleReport:
    """Statements about roles, users and permissions; `role_report` returns it, `write_role_report` writes it as HTML.

    The entries are named tuples, so that ``pandas.DataFrame(report.users)`` is a table of them.

    Attributes
    ----------
    roles : tuple of RoleEntry
        Permissions, users, and what only this role explains.
    permissions : tuple of PermissionEntry
        Roles that give each one, and users who have it.
    users : tuple of UserEntry
        Roles, permissions that come from no role, and whether the user fits a role.
    overlaps : tuple of RolePair
        Pairs of roles with common permissions or nearly the same users; if there are more than 5000, those that overlap
        most.
    n_overlaps : int
        Number of all such pairs.
    unusual : tuple of PeerDifference
        Permissions of users that nearly all others with their roles lack, and that no role of many users gives them.
    missing : tuple of PeerDifference
        Permissions that users lack and nearly all others with one of their roles have.
    codes : Table
        Users x roles.
    direct : Table
        Users x permissions: those that come from no role.
    min_peers : int
        Number of other users that a role has at least if its users are compared.
    min_share : float
        What nearly all means.
    cover : Cover or None
        The cover, if the roles are those of a cover of this table.
    """

    roles: tuple[RoleEntry, ...] = field(repr=False)
    permissions: tuple[PermissionEntry, ...] = field(repr=False)
    users: tuple[UserEntry, ...] = field(repr=False)
    overlaps: tuple[RolePair, ...] = field(repr=False)
    n_overlaps: int = field(repr=False)
    unusual: tuple[PeerDifference, ...] = field(repr=False)
    missing: tuple[PeerDifference, ...] = field(repr=False)
    codes: Table = field(repr=False)
    direct: Table = field(repr=False)
    min_peers: int
    min_share: float
    cover: Cover | None = None

    @property
    def n_grants(self) -> int:
        """Number of ones of the table: permissions of all users together."""
        return sum(user.n_permissions for user in self.users)

    @property
    def n_direct(self) -> int:
        """Number of those that come from no role."""
        return sum(len(user.direct) for user in self.users)

    @property
    def n_user_assignments(self) -> int:
        """Number of roles of all users together."""
        return sum(len(user.roles) for user in self.users)

    @property
    def n_permission_assignments(self) -> int:
        """Number of permissions of all roles together."""
        return sum(len(role.permissions) for role in self.roles)

    @property
    def single_user_roles(self) -> tuple[RoleEntry, ...]:
        """Roles that a single user has."""
        return tuple(role for role in self.roles if len(role.users) == 1)

    @property
    def unassigned_roles(self) -> tuple[RoleEntry, ...]:
        """Roles that no user has."""
        return tuple(role for role in self.roles if not role.users)

    def users_by_fit(self, fit: Fit) -> tuple[UserEntry, ...]:
        """Return the users that fit roles in this way; see `UserEntry`."""
        return tuple(user for user in self.users if user.fit == fit)

    def permissions_of(self, n_users: int) -> tuple[PermissionEntry, ...]:
        """Return the permissions that this many users have."""
        return tuple(permission for permission in self.permissions if len(permission.users) == n_users)

    def summary(self) -> str:
        """Return a description in a few sentences."""
        n_users, n_with_direct = len(self.users), sum(bool(user.direct) for user in self.users)
        lines = [
            f"{counted(len(self.roles), 'role')} for {counted(n_users, 'user')} and "
            f"{counted(len(self.permissions), 'permission')}: "
            f"{counted(self.n_user_assignments, 'user assignment')} and "
            f"{counted(self.n_permission_assignments, 'permission assignment')}"
        ]
        if self.n_direct:
            lines.append(
                f"Of {counted(self.n_grants, 'permission')} of users, {self.n_direct} "
                f"{verb(self.n_direct, 'come')} from no role ({counted(n_with_direct, 'user')})"
            )
        else:
            lines.append(f"The roles give all users exactly their permissions, {self.n_grants} in all")
        n_own, n_none, n_empty = map(len, map(self.users_by_fit, FITS[1:]))
        n_single, n_unassigned = len(self.single_user_roles), len(self.unassigned_roles)
        lines.append(tally("role", (n_single, have, "a single user"), (n_unassigned, have, "no user")))
        lines.append(
            tally(
                "user",
                (n_own, have, "only roles that nobody else has"),
                (n_none, have, "no role"),
                (n_empty, have, "no permission"),
            )
        )
        differences = tally("permission", (len(self.unusual), be, "unusual"), (len(self.missing), be, "missing"))
        lines.append(differences and f"Compared with users of the same roles, {differences}")
        return ".\n".join(filter(None, lines)) + "."

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a dictionary that can be stored as JSON."""
        entries = ("roles", "permissions", "users", "overlaps", "unusual", "missing")
        numbers = ("n_grants", "n_direct", "n_user_assignments", "n_permission_assignments", "n_overlaps")
        found: dict[str, Any] = {name: getattr(self, name) for name in (*numbers, "min_peers", "min_share")}
        return found | {name: [entry._asdict() for entry in getattr(self, name)] for name in entries}


@with_options(AuditOptions)
def role_report(users: Any, roles: Any, options: AuditOptions) -> RoleReport:
    """Collect what an auditor asks about roles: overlaps, exceptions, and who fits no role.

    Parameters
    ----------
    users : Table, or any input of Table.from_any
        A table of 0 and 1 without missing values, one row per user and one column per permission.
    roles : Cover, Table, or any input of Table.from_any
        The cover of these users, or a table with one row per role, such as one that `bitatoms roles` wrote. The columns
        of two tables with names are matched by name; permissions that only one of them has are part of the report.
        Users get roles of a table as `CoverMiner.transform` gives them: only roles all of whose permissions they have,
        and few that give as many of their permissions as these roles can.
    {parameters}

    Returns
    -------
    RoleReport

    See Also
    --------
    write_role_report : Write the report as an HTML page.
    role_diff : Compare two sets of roles.

    Examples
    --------
    >>> import bitatoms as ba
    >>> users = ba.datasets.permissions(100)
    >>> report = ba.role_report(users, ba.cover(users, random_state=0))
    >>> report.roles[0].permissions, len(report.roles[0].users)
    (('calendar', 'intranet', 'mail', 'time sheet'), 92)
    >>> [user.name for user in report.users_by_fit("empty")]
    ['user 95', 'user 96']
    """
    table, named = aligned(users=Table.from_any(users, missing="refuse"), roles=as_roles(roles, options.names))
    is_cover = isinstance(roles, Cover) and roles.codes.n_rows == len(table) and roles.reconstruct() == table.bits
    cover = roles if is_cover else None
    codes = code_from_below(table.bits, named.bits) if cover is None else cover.codes
    return _collected(table, named, Table(codes, table.row_names, named.row_names), cover, options)


def _collected(users: Table, roles: Table, codes: Table, cover: Cover | None, options: AuditOptions) -> RoleReport:
    """Return the report on users x permissions, roles x permissions and users x roles."""
    data, atoms, uses = (table.bits.to_sparse().astype(np.int64) for table in (users, roles, codes))
    times_given = (uses @ atoms).tocsr()  # how many roles of a user give each permission
    direct = without(data, times_given)
    times_given.data = (times_given.data == 1).astype(np.int64)
    n_only = np.asarray((uses.T @ times_given).multiply(atoms).sum(axis=1)).reshape(-1)
    n_direct = np.bincount(direct.indices, minlength=users.shape[1])
    n_roles, n_users = codes.bits.row_weights(), codes.bits.column_weights()  # of each user, and of each role
    n_permissions, n_having = users.bits.row_weights(), roles.bits.column_weights()  # roles with each permission
    roles_of, gives = _indices(uses), _indices(atoms)
    user_names, role_names = (tuple(map(table.row_name, range(len(table)))) for table in (users, roles))
    permission_names = users.names_of(range(users.shape[1]))
    named_users, named_roles, permissions = (
        partial(feature_names, names) for names in (user_names, role_names, permission_names)
    )

    def fit(row: int) -> Fit:
        """Return how a user fits roles."""
        if not n_roles[row]:
            return "none" if n_permissions[row] else "empty"
        return "shared" if n_users[roles_of[row]].max() > 1 else "own"

    def named(found: Difference) -> PeerDifference:
        """Return a difference with names, and with the roles of the user that give the permission."""
        row, column, role, n_peers, n_with = found
        giving = named_roles(role for role in roles_of[row] if column in gives[role])
        names = user_names[row], permission_names[column], role_names[role]
        return PeerDifference(row, *names, n_peers, n_with, giving)

    peers = Peers(data, atoms, uses, options)
    overlaps, n_overlaps = overlapping_pairs(atoms, uses, role_names)
    return RoleReport(
        roles=tuple(
            RoleEntry(
                role_names[role],
                permissions(columns),
                named_users(rows),
                permissions(columns[n_having[columns] == 1]),
                named_users(rows[n_roles[rows] == 1]),
                len(columns) * len(rows),
                int(n_only[role]),
            )
            for role, (columns, rows) in enumerate(zip(gives, _indices(uses.T), strict=True))
        ),
        permissions=tuple(
            PermissionEntry(permission_names[column], named_roles(own), named_users(rows), int(n_direct[column]))
            for column, (own, rows) in enumerate(zip(_indices(atoms.T), _indices(data.T), strict=True))
        ),
        users=tuple(
            UserEntry(row, user_names[row], named_roles(own), int(n_permissions[row]), permissions(columns), fit(row))
            for row, (own, columns) in enumerate(zip(roles_of, _indices(direct), strict=True))
        ),
        overlaps=overlaps,
        n_overlaps=n_overlaps,
        unusual=tuple(map(named, peers.unusual())),
        missing=tuple(map(named, peers.missing())),
        codes=codes,
        direct=users.with_bits(BitMatrix.from_any(direct)),
        min_peers=options.min_peers,
        min_share=options.min_share,
        cover=cover,
    )


def _indices(matrix: Any) -> list[NDArray[np.int32]]:
    """Return the indices of the entries of each row of a sparse array, sorted."""
    rows = matrix.tocsr(copy=True)
    rows.sort_indices()
    return np.split(rows.indices, rows.indptr[1:-1]) if rows.shape[0] else []
