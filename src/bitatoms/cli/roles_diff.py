"""`bitatoms roles-diff`: what changes from one set of roles to another."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from ..formatting import counted
from ..io.errors import FileError
from ..roles.audit import role_report
from ..roles.diff import RoleChange, RoleDiff, UnmatchedRole, UserChange, role_diff
from .console import Display, print_json, print_line
from .files import check_html_extension, check_json_output, check_writable
from .options import Input
from .roles import checked_peers, print_lists, read_roles, read_users, write_role_page


class RoleSets(NamedTuple):
    """The files of old and new roles, and the table of users, if there is one."""

    old: Path
    new: Path
    users: Input | None = None


class ComparisonOptions(NamedTuple):
    """From which overlap roles are counterparts, and which users the report compares."""

    threshold: float
    peers: dict[str, Any]


def compare_roles(sets: RoleSets, report: Path | None, options: ComparisonOptions, display: Display) -> None:
    """Print which roles are changed, new and gone, and which users have others."""
    quiet, peers = display.is_silent, checked_peers(options.peers, report)
    if report is not None:
        if sets.users is None:
            raise FileError(f"{report}: the report is about users and their roles; pass --users")
        check_writable(report, read=(sets.old, sets.new, sets.users.path))
        check_json_output(display.json, report)
        check_html_extension(report)
    old, new = read_roles(sets.old, quiet), read_roles(sets.new, quiet)
    users = None if sets.users is None else read_users(sets.users, quiet)
    diff = role_diff(old, new, users, threshold=options.threshold)
    if report is not None and sets.users is not None:
        write_role_page(role_report(users, new, **peers), report, sets.users.title, quiet, diff)
    if display.json:
        print_json(diff.to_dict())
    elif not display.quiet:
        _print_diff(diff, display.top)
        if report is not None:
            print_line(f"\nWritten: {report}")


def _print_diff(diff: RoleDiff, n_shown: int) -> None:
    """Print the difference, the first roles and users of each kind."""
    print_line(diff.summary())
    print_lists("\nChanged roles:", [(_title(change), _marked(change)) for change in diff.changed], n_shown)
    for heading, roles in (("New roles", diff.new), ("Roles that are gone", diff.gone)):
        print_lists(f"\n{heading}:", [(_named(role), role.permissions) for role in roles], n_shown)
    print_lists("\nUsers:", [(user.name, _gains(user)) for user in diff.users or ()], n_shown)


def _title(change: RoleChange) -> str:
    """Return the names of a role, and how many users have it."""
    names = change.new if change.new == change.old else f"{change.new}, formerly {change.old}"
    return names if change.n_users is None else f"{names} ({change.n_users[0]} -> {change.n_users[1]} users)"


def _named(role: UnmatchedRole) -> str:
    """Return the name of a role, and how many users have it."""
    return role.name if role.n_users is None else f"{role.name} ({counted(role.n_users, 'user')})"


def _marked(change: RoleChange) -> list[str]:
    """Return the permissions that a role gains and loses."""
    return [f"+{name}" for name in change.added] + [f"-{name}" for name in change.removed]


def _gains(user: UserChange) -> list[str]:
    """Return what a user gains and loses: new roles, old roles, and permissions that come from roles."""
    roles = [f"+{name}" for name in user.gained] + [f"-{name} (old)" for name in user.lost]
    permissions = [f"+{name}" for name in user.permissions_gained] + [f"-{name}" for name in user.permissions_lost]
    if not permissions:
        return roles or ["the same permissions"]
    return [*roles, f"permissions from roles: {permissions[0]}", *permissions[1:]]
