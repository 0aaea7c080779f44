"""`role_diff`: what changes from one set of roles to another, and for whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..bits import BitMatrix
from ..columns.table import Names, Table, feature_names
from ..covers.coding import code_from_below
from ..engine.block import reconstruct
from ..formatting import counted, tally, verb
from ..model.patterns import atom_overlaps, match_pairs
from ..validation import check_fraction
from .tables import aligned, as_roles


class RoleChange(NamedTuple):
    """A role of the old set and its counterpart in the new set.

    Attributes
    ----------
    old, new : str
        Its names.
    overlap : float
        The Jaccard index of its permissions before and after.
    added, removed : tuple of str
        Permissions that it gains and loses.
    n_users : tuple of int or None
        Number of its users before and after, if users are given.
    """

    old: str
    new: str
    overlap: float
    added: Names
    removed: Names
    n_users: tuple[int, int] | None


class UnmatchedRole(NamedTuple):
    """A role that only one of the sets has.

    Attributes
    ----------
    name : str
    permissions : tuple of str
    n_users : int or None
        Number of its users, if users are given.
    """

    name: str
    permissions: Names
    n_users: int | None


class UserChange(NamedTuple):
    """A user whose roles, or whose permissions from roles, are others.

    Attributes
    ----------
    row : int
        Its row in the table, counted from 0.
    name : str
    gained : tuple of str
        Roles of the new set that it has now, and whose counterpart in the old set it did not have.
    lost : tuple of str
        Roles of the old set that it had, and whose counterpart in the new set it does not have.
    permissions_gained, permissions_lost : tuple of str
        Permissions that roles give it now and did not give it before, and the other way round. The user has all of
        them: a permission that no role gives any more must be granted directly, or is lost.
    """

    row: int
    name: str
    gained: Names
    lost: Names
    permissions_gained: Names
    permissions_lost: Names


@dataclass(frozen=True, eq=False, kw_only=True)
class RoleDiff:
    """The difference of two sets of roles, as `role_diff` returns it.

    Attributes
    ----------
    unchanged, changed : tuple of RoleChange
        Roles of both sets, with the same permissions and with others.
    new, gone : tuple of UnmatchedRole
        Roles that only the new set has, or only the old set.
    users : tuple of UserChange or None
        Users whose roles, or whose permissions from roles, are others; None if no users are given.
    n_users : int
        Number of all users.
    threshold : float
        The overlap from which a role of the new set can be the counterpart of one of the old set.
    """

    unchanged: tuple[RoleChange, ...] = field(repr=False)
    changed: tuple[RoleChange, ...] = field(repr=False)
    new: tuple[UnmatchedRole, ...] = field(repr=False)
    gone: tuple[UnmatchedRole, ...] = field(repr=False)
    users: tuple[UserChange, ...] | None = field(default=None, repr=False)
    n_users: int = 0
    threshold: float = 0.5

    @property
    def has_same_roles(self) -> bool:
        """Whether both sets have the same roles, whatever their names are."""
        return not (self.changed or self.new or self.gone)

    @property
    def keeps_permissions(self) -> bool | None:
        """Whether all users get the same permissions from roles as before; None if no users are given."""
        if self.users is None:
            return None
        return not any(user.permissions_gained or user.permissions_lost for user in self.users)

    def summary(self) -> str:
        """Return a description in a few sentences."""
        n_both = len(self.unchanged) + len(self.changed)
        kinds = ("unchanged", "changed", "new", "gone")
        numbers = ", ".join(f"{len(getattr(self, kind))} {kind}" for kind in kinds if getattr(self, kind))
        roles = f"{counted(n_both + len(self.gone), 'role')} before and {n_both + len(self.new)} after: {numbers}"
        lines = [roles.removesuffix(": ")]
        if self.users is not None:
            n_others = sum(bool(user.gained or user.lost) for user in self.users)
            n_losing, n_gaining = (
                sum(bool(getattr(user, name)) for user in self.users)
                for name in ("permissions_lost", "permissions_gained")
            )
            verb = "gains or loses" if n_others <= 1 else "gain or lose"
            lines.append(f"Of {counted(self.n_users, 'user')}, {n_others or 'none'} {verb} roles")
            if self.keeps_permissions:
                lines.append("The roles give every user the same permissions as before")
            else:
                more, fewer = (f"{amount} permissions from roles than before" for amount in ("more", "fewer"))
                lines.append(tally("user", (n_gaining, _get, more), (n_losing, _get, fewer)))
        return ".\n".join(lines) + "."

    def to_dict(self) -> dict[str, Any]:
        """Return the difference as a dictionary that can be stored as JSON."""
        kinds = ("unchanged", "changed", "new", "gone", *(() if self.users is None else ("users",)))
        found: dict[str, Any] = {name: [entry._asdict() for entry in getattr(self, name)] for name in kinds}
        if self.users is not None:
            found |= {"n_users": self.n_users, "keeps_permissions": self.keeps_permissions}
        return found | {"has_same_roles": self.has_same_roles, "threshold": self.threshold}


def role_diff(old: Any, new: Any, users: Any = None, *, threshold: float = 0.5) -> RoleDiff:
    """Compare two sets of roles: which are unchanged, changed, new and gone, and what that means for users.

    Roles are matched one to one by their permissions, whatever their names are: the two that overlap most first, on a
    tie those with the same name.

    Parameters
    ----------
    old, new : Cover, Table, or any input of Table.from_any
        The roles, one row per role and one column per permission. Columns that have names are matched by name.
    users : Table, or any input of Table.from_any, optional
        Users and their permissions. They get roles of both sets as `CoverMiner.transform` gives them: only roles all of
        whose permissions they have, and few that give as many of their permissions as these roles can.
    threshold : float, default=0.5
        The overlap of permissions (Jaccard index) from which a role is changed; below, one role is gone and another one
        is new.

    Returns
    -------
    RoleDiff

    Examples
    --------
    >>> import bitatoms as ba
    >>> diff = ba.role_diff([[1, 1, 0, 0], [0, 0, 1, 1]], [[1, 1, 0, 0], [0, 1, 1, 1], [1, 0, 0, 0]])
    >>> print(diff.summary())
    2 roles before and 3 after: 1 unchanged, 1 changed, 1 new.
    >>> diff.changed[0].added
    ('x1',)
    """
    threshold = check_fraction("threshold", threshold)
    tables = {"old roles": as_roles(old), "new roles": as_roles(new)}
    if users is not None:
        tables["users"] = Table.from_any(users, missing="refuse")
    before, after, *given = aligned(**tables)
    people = given[0] if given else Table(BitMatrix.zeros(0, before.shape[1]), None, before.columns)
    codes = [code_from_below(people.bits, roles.bits) for roles in (before, after)]
    n_before, n_after = (each.column_weights().tolist() if given else [None] * each.n_cols for each in codes)
    pairs = _matched(before, after, threshold)
    changes = []
    for old, new, overlap in pairs:
        had, has = before.bits[old], after.bits[new]
        added, removed = (before.names_of(np.flatnonzero(more)) for more in (has > had, had > has))
        n_users = (n_before[old], n_after[new]) if given else None
        changes.append(RoleChange(before.row_name(old), after.row_name(new), overlap, added, removed, n_users))
    return RoleDiff(
        unchanged=tuple(change for change in changes if not (change.added or change.removed)),
        changed=tuple(change for change in changes if change.added or change.removed),
        new=_unmatched(after, n_after, {new for _, new, _ in pairs}),
        gone=_unmatched(before, n_before, {old for old, _, _ in pairs}),
        users=_user_changes(people, (before, after), codes, pairs) if given else None,
        n_users=len(people),
        threshold=threshold,
    )


def _matched(before: Table, after: Table, threshold: float) -> list[tuple[int, int, float]]:
    """Return pairs of roles that are each other's counterpart, and their overlaps, in the order of the new roles."""
    overlap = atom_overlaps(before.bits, after.bits)
    overlap[np.ix_(before.bits.row_weights() == 0, after.bits.row_weights() == 0)] = 1  # roles without permissions
    overlap[overlap < threshold] = 0
    names, others = (np.array(table.row_names, object) for table in (before, after))
    pairs = match_pairs(overlap, np.asarray(names[:, np.newaxis] == others, bool).reshape(overlap.shape))
    return [(old, new, float(overlap[old, new])) for old, new in sorted(pairs, key=lambda pair: pair[1])]


def _unmatched(roles: Table, n_users: Sequence[int | None], matched: set[int]) -> tuple[UnmatchedRole, ...]:
    """Return the roles of a set without a counterpart."""
    return tuple(
        UnmatchedRole(roles.row_name(role), roles.names_of(np.flatnonzero(roles.bits[role])), n_users[role])
        for role in range(len(roles))
        if role not in matched
    )


def _user_changes(
    users: Table, roles: tuple[Table, Table], codes: list[BitMatrix], pairs: list[tuple[int, int, float]]
) -> tuple[UserChange, ...]:
    """Return the users with other roles, or other permissions from roles, than before."""
    counterpart, backwards = (np.full(len(each), -1) for each in roles)  # -1: there is none
    for old, new, _ in pairs:
        counterpart[old], backwards[new] = new, old
    no_bias = np.zeros(users.shape[1], np.uint8)
    had, has = (reconstruct(own, each.bits, no_bias, "or") for own, each in zip(codes, roles, strict=True))
    differences = (
        _minus(codes[1], codes[0].take_columns(backwards)),
        _minus(codes[0], codes[1].take_columns(counterpart)),
        _minus(has, had),
        _minus(had, has),
    )
    names = (roles[1].row_names, roles[0].row_names, users.columns, users.columns)
    return tuple(
        UserChange(
            row,
            users.row_name(row),
            *(feature_names(own, np.flatnonzero(bits[row])) for own, bits in zip(names, differences, strict=True)),
        )
        for row in np.flatnonzero(sum(bits.row_weights() for bits in differences)).tolist()
    )


def _get(number: int) -> str:
    return verb(number, "get")


def _minus(first: BitMatrix, second: BitMatrix) -> BitMatrix:
    """Return the ones of the first matrix that the second one does not have."""
    return BitMatrix.from_words(first.words & ~second.words, first.n_cols, check=False)
