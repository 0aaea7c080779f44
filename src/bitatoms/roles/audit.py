"""`role_report`: what an auditor asks about roles, users and permissions, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..bits import BitMatrix
from ..columns.table import Names, Table
from ..covers.coding import code_from_below
from ..covers.result import Cover
from ..formatting import be, counted, have, tally
from ..parameters import with_options
from .entries import FITS, Fit, PeerDifference, PermissionEntry, RoleEntry, RolePair, UserEntry
from .options import AuditOptions
from .pairs import overlapping_pairs
from .peers import Difference, Peers
from .tables import aligned, as_roles


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
                f"{'comes' if self.n_direct == 1 else 'come'} from no role ({counted(n_with_direct, 'user')})"
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
        found: dict[str, Any] = {
            "n_grants": self.n_grants,
            "n_direct": self.n_direct,
            "n_user_assignments": self.n_user_assignments,
            "n_permission_assignments": self.n_permission_assignments,
            "n_overlaps": self.n_overlaps,
            "min_peers": self.min_peers,
            "min_share": self.min_share,
        }
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
    cover = roles if isinstance(roles, Cover) and _is_cover_of(roles, table) else None
    codes = code_from_below(table.bits, named.bits) if cover is None else cover.codes
    return _Collected(table, named, Table(codes, table.row_names, named.row_names)).report(cover, options)


def _is_cover_of(cover: Cover, table: Table) -> bool:
    """Return whether a cover is one of these users."""
    return cover.codes.n_rows == len(table) and cover.reconstruct() == table.bits


class _Collected:
    """Users x permissions, roles x permissions and users x roles, and the statements about them."""

    def __init__(self, users: Table, roles: Table, codes: Table) -> None:
        self.users, self.roles, self.codes = users, roles, codes
        self.data, self.atoms, self.uses = (table.bits.to_sparse().astype(np.int64) for table in (users, roles, codes))
        self.times_given = (self.uses @ self.atoms).tocsr()  # how many roles of a user give each permission
        direct = (self.data - self.data.multiply(self.times_given.astype(bool).astype(np.int64))).tocsr()
        direct.eliminate_zeros()
        direct.sort_indices()
        self.direct = direct
        self.n_direct = np.bincount(direct.indices, minlength=users.shape[1])
        self.roles_of, self.direct_of = _lists(self.uses), _lists(direct)
        self.user_names: Names = tuple(map(users.row_name, range(len(users))))
        self.role_names: Names = tuple(map(roles.row_name, range(len(roles))))
        self.permission_names: Names = users.names_of(range(users.shape[1]))

    def report(self, cover: Cover | None, options: AuditOptions) -> RoleReport:
        """Return the report."""
        peers = Peers(self.data, self.atoms, self.uses, options)
        overlaps, n_overlaps = overlapping_pairs(self.atoms, self.uses, self.role_names)
        return RoleReport(
            roles=self._roles(),
            permissions=self._permissions(),
            users=self._users(),
            overlaps=overlaps,
            n_overlaps=n_overlaps,
            unusual=self._unusual(peers.unusual()),
            missing=tuple(self._difference(each, ()) for each in peers.missing()),
            codes=self.codes,
            direct=self.users.with_bits(BitMatrix.from_any(self.direct)),
            min_peers=options.min_peers,
            min_share=options.min_share,
            cover=cover,
        )

    def _roles(self) -> tuple[RoleEntry, ...]:
        """Return the entry of each role."""
        once = self.times_given.copy()
        once.data = (once.data == 1).astype(np.int64)
        n_only = np.asarray((self.uses.T @ once).multiply(self.atoms).sum(axis=1)).reshape(-1)
        n_roles = self.codes.bits.row_weights()  # of each user
        n_having = self.roles.bits.column_weights()  # roles with each permission
        permissions, users = _lists(self.atoms), _lists(self.uses.T)
        return tuple(
            RoleEntry(
                name,
                self._permission_names(permissions[role]),
                self._user_names(users[role]),
                self._permission_names(column for column in permissions[role] if n_having[column] == 1),
                self._user_names(row for row in users[role] if n_roles[row] == 1),
                len(permissions[role]) * len(users[role]),
                int(n_only[role]),
            )
            for role, name in enumerate(self.role_names)
        )

    def _permissions(self) -> tuple[PermissionEntry, ...]:
        """Return the entry of each permission."""
        roles, users = _lists(self.atoms.T), _lists(self.data.T)
        return tuple(
            PermissionEntry(
                name, self._role_names(roles[column]), self._user_names(users[column]), int(self.n_direct[column])
            )
            for column, name in enumerate(self.permission_names)
        )

    def _users(self) -> tuple[UserEntry, ...]:
        """Return the entry of each user."""
        n_users, n_permissions = self.codes.bits.column_weights(), self.users.bits.row_weights()
        entries = []
        for row, name in enumerate(self.user_names):
            fit: Fit = "none" if n_permissions[row] else "empty"
            roles, direct = self._role_names(self.roles_of[row]), self._permission_names(self.direct_of[row])
            if roles:
                fit = "shared" if any(n_users[role] > 1 for role in self.roles_of[row]) else "own"
            entries.append(UserEntry(row, name, roles, int(n_permissions[row]), direct, fit))
        return tuple(entries)

    def _unusual(self, differences: Sequence[Difference]) -> tuple[PeerDifference, ...]:
        """Return unusual permissions with names, and with the roles that give them."""
        gives = list(map(set, _lists(self.atoms)))
        return tuple(
            self._difference(each, [role for role in self.roles_of[each.row] if each.column in gives[role]])
            for each in differences
        )

    def _difference(self, found: Difference, giving: Sequence[int]) -> PeerDifference:
        """Return a difference with names."""
        return PeerDifference(
            found.row,
            self.user_names[found.row],
            self.permission_names[found.column],
            self.role_names[found.role],
            found.n_peers,
            found.n_with,
            self._role_names(giving),
        )

    def _role_names(self, roles: Any) -> Names:
        return tuple(self.role_names[role] for role in roles)

    def _user_names(self, rows: Any) -> Names:
        return tuple(self.user_names[row] for row in rows)

    def _permission_names(self, columns: Any) -> Names:
        return tuple(self.permission_names[column] for column in columns)


def _lists(matrix: Any) -> list[list[int]]:
    """Return the indices of the entries of each row of a sparse array, sorted."""
    rows = matrix.tocsr(copy=True)
    rows.sort_indices()
    return [part.tolist() for part in np.split(rows.indices, rows.indptr[1:-1])] if rows.shape[0] else []
