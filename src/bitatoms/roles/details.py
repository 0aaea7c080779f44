"""The sections that list everything: roles, permissions, users and overlaps of roles; and changes of roles."""

from __future__ import annotations

from collections.abc import Sequence

from ..formatting import noun, percent
from ..html.text import format_count, name_html, pluralize
from .audit import RoleReport
from .diff import RoleChange, RoleDiff, UnmatchedRole
from .entries import RoleEntry, RolePair
from .listing import MAX_ROWS, RoleLinks, chips, folded, listing

MAX_ROLES = 500  # cards
_MAX_PERMISSIONS, _MAX_USERS = 40, 200  # names on a card
_MAX_NAMES = 20  # names in a cell


def roles_section(report: RoleReport) -> str:
    """Return one card per role."""
    if not report.roles:
        return '<section id="roles"><h2>Roles</h2><p>There are no roles.</p></section>'
    cards = "".join(_card(number, role) for number, role in enumerate(report.roles[:MAX_ROLES], start=1))
    n_more = len(report.roles) - MAX_ROLES
    more = f'<p class="note">and {format_count(n_more)} more</p>' if n_more > 0 else ""
    return f"""<section id="roles"><h2>Roles</h2>
<p>A permission of a user <em>needs</em> a role if no other role of the user gives it.</p>
<ul role="list" class="cards roles">{cards}</ul>{more}</section>"""


def permissions_section(report: RoleReport, links: RoleLinks) -> str:
    """Return the table of permissions, after those that everybody, one user or nobody has."""
    if not report.permissions:
        return ""
    n_users = len(report.users)
    groups = [("Held by a single user", 1), ("Held by nobody", 0)]
    if n_users > 1:
        groups.insert(0, (f"Held by all {format_count(n_users)} users", n_users))
    special = ""
    for heading, count in groups:
        names = [permission.name for permission in report.permissions_of(count)]
        special += f"<h3>{heading}</h3>{chips(names, 100)}" if names else ""
    rows = [
        (
            name_html(permission.name),
            format_count(len(permission.users)),
            links.of(permission.roles),
            format_count(permission.n_direct),
        )
        for permission in report.permissions[:MAX_ROWS]
    ]
    columns = ("permission", "users", "roles that give it", "users from no role")
    table = listing("Permissions", columns, rows, (columns[1], columns[3]), len(report.permissions))
    heading = "<h3>All permissions</h3>" if special else ""
    return f'<section id="permissions"><h2>Permissions</h2>{special}{heading}{table}</section>'


def users_section(report: RoleReport, links: RoleLinks) -> str:
    """Return the table of users."""
    if not report.users:
        return ""
    rows = [
        (
            name_html(user.name),
            format_count(user.n_permissions),
            format_count(len(user.roles)),
            links.of(user.roles),
            chips(user.direct, _MAX_NAMES),
        )
        for user in report.users[:MAX_ROWS]
    ]
    columns = ("user", "permissions", "number of roles", "roles", "from no role")
    table = listing("Users", columns, rows, columns[1:3], len(report.users))
    return f'<section id="users"><h2>Users</h2>{table}</section>'


def overlaps_section(report: RoleReport, links: RoleLinks) -> str:
    """Return pairs of roles: contained in each other, with common permissions, and with the same users."""
    contained = [pair for pair in report.overlaps if pair.within is not None]
    same_users = [pair for pair in report.overlaps if pair.user_overlap == 1]
    sharing = [pair for pair in report.overlaps if pair.n_permissions]
    body = ""
    if contained:
        sentences = [
            (links.of([pair.within or ""]), links.of([_other(pair)]), format_count(pair.n_permissions))
            for pair in contained[:MAX_ROWS]
        ]
        columns = ("role", "all its permissions are in", "permissions")
        table = listing("Roles within others", columns, sentences, columns[2:], len(contained))
        body += f"<h3>Roles within others</h3>{table}"
    if same_users:
        table = _pairs("Roles with the same users", same_users, links)
        body += f"<h3>Roles with the same users</h3><p>The same users have both roles of each pair.</p>{table}"
    if sharing:
        body += f"<h3>Common permissions</h3>{_pairs('Roles with common permissions', sharing, links)}"
    if report.n_overlaps > len(report.overlaps):
        n_pairs, n_kept = format_count(report.n_overlaps), format_count(len(report.overlaps))
        body = f"<p>{n_pairs} pairs of roles overlap. These are the {n_kept} that overlap most.</p>{body}"
    body = body or "<p>No two roles have common permissions, or the same users.</p>"
    return f'<section id="overlaps"><h2>Overlaps of roles</h2>{body}</section>'


def changes_section(diff: RoleDiff) -> str:
    """Return what changed from an earlier set of roles, and for whom."""
    sentences = "".join(f"<p>{line.rstrip('.')}.</p>" for line in diff.summary().splitlines())
    body = ""
    if diff.changed:
        body += f"<h3>Changed roles</h3>{_changed(diff.changed)}"
    for heading, roles in (("New roles", diff.new), ("Roles that are gone", diff.gone)):
        body += f"<h3>{heading}</h3>{_unmatched(heading, roles)}" if roles else ""
    if diff.users:
        columns = ("user", "roles: + new, − old", "permissions from roles")
        rows = [
            (
                name_html(user.name),
                _gained_and_lost(user.gained, user.lost),
                _gained_and_lost(user.permissions_gained, user.permissions_lost),
            )
            for user in diff.users[:MAX_ROWS]
        ]
        body += f"<h3>Users</h3>{listing('Users whose roles changed', columns, rows, (), len(diff.users))}"
    return f'<section id="changes"><h2>Changes</h2>{sentences}{body}</section>'


def _card(number: int, role: RoleEntry) -> str:
    """Return the card of a role."""
    n_users, n_permissions = len(role.users), len(role.permissions)
    facts = (
        (format_count(n_users), noun(n_users, "user")),
        (format_count(n_permissions), noun(n_permissions, "permission")),
        (f"{format_count(role.n_only)} of {format_count(role.n_grants)}", "permissions of users need it"),
        (format_count(len(role.only_users)), "users have no other role"),
    )
    figures = "".join(f"<div><dt>{label}</dt><dd>{value}</dd></div>" for value, label in facts)
    own = ""
    if role.own_permissions:
        own = folded(f"{format_count(len(role.own_permissions))} in no other role", chips(role.own_permissions, 40))
    users = folded(pluralize(n_users, "user"), chips(role.users, _MAX_USERS)) if role.users else ""
    return (
        f'<li class="card" id="role-{number}"><h3>{name_html(role.name)}</h3><dl>{figures}</dl>'
        f"{chips(role.permissions, _MAX_PERMISSIONS)}{own}{users}</li>"
    )


def _other(pair: RolePair) -> str:
    """Return the role that contains the other."""
    return pair.first if pair.within == pair.second else pair.second


def _pairs(label: str, pairs: Sequence[RolePair], links: RoleLinks) -> str:
    """Return a table of pairs."""
    rows = [
        (
            f"{links.of([pair.first])} and {links.of([pair.second])}",
            format_count(pair.n_permissions),
            percent(pair.permission_overlap, 1),
            format_count(pair.n_users),
            percent(pair.user_overlap, 1),
        )
        for pair in pairs[:MAX_ROWS]
    ]
    columns = ("roles", "common permissions", "of either", "common users", "of either")
    return listing(label, columns, rows, columns[1:], len(pairs))


def _changed(changes: Sequence[RoleChange]) -> str:
    """Return a table of roles that changed."""
    rows = [
        (
            name_html(change.new),
            name_html(change.old),
            percent(change.overlap, 1),
            _gained_and_lost(change.added, change.removed),
        )
        for change in changes[:MAX_ROWS]
    ]
    columns = ("role", "before", "overlap", "permissions")
    return listing("Changed roles", columns, rows, ("overlap",), len(changes))


def _unmatched(label: str, roles: Sequence[UnmatchedRole]) -> str:
    """Return a table of roles that one set has."""
    rows = [(name_html(role.name), chips(role.permissions, _MAX_NAMES)) for role in roles[:MAX_ROWS]]
    return listing(label, ("role", "permissions"), rows, (), len(roles))


def _gained_and_lost(gained: Sequence[str], lost: Sequence[str]) -> str:
    """Return names with marks."""
    both = [chips(names, _MAX_NAMES, kind) for names, kind in ((gained, "added"), (lost, "removed")) if names]
    return "".join(both) or "–"
