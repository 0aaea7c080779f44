"""The sections that an auditor reads first: the summary, exceptions, and users who fit no role."""

from __future__ import annotations

from collections.abc import Sequence

from ..formatting import be, have, noun, percent, verb
from ..html.text import escape, format_count, name_html, pluralize
from .audit import RoleReport
from .entries import PeerDifference, RoleEntry, UserEntry
from .listing import MAX_ROWS, RoleLinks, chips, listing

_MAX_NAMES = 20
_COMPARED = "compared with users of the same roles"


def summary_section(report: RoleReport) -> str:
    """Return the section at the top: the numbers, and how far they are from the lowest possible."""
    n_roles, n_users = len(report.roles), len(report.users)
    figures = (
        (format_count(n_roles), noun(n_roles, "role")),
        (format_count(report.n_user_assignments), "roles of users: user assignments"),
        (format_count(report.n_permission_assignments), "permissions of roles: permission assignments"),
        (format_count(report.n_direct), "permissions of users that come from no role"),
    )
    shown = "".join(f"<div><dt>{label}</dt><dd>{number}</dd></div>" for number, label in figures)
    give = f"{pluralize(n_roles, 'role')} {verb(n_roles, 'give')}"
    of_users = f"{give} {pluralize(n_users, 'user')}"
    lede = f"{of_users} <b>exactly the permissions they have</b>, {format_count(report.n_grants)} in all."
    if report.n_direct:
        n_given = report.n_grants - report.n_direct
        share = f"{format_count(n_given)} of {format_count(report.n_grants)} ({percent(n_given, report.n_grants)})"
        lede = f"{of_users} <b>{share} of the permissions they have</b>, and no others."
    sentences = filter(None, [*_optimality(report), _exceptions_in_short(report)])
    paragraphs = "".join(f"<p>{sentence}</p>" for sentence in sentences)
    return f"""<section id="summary">
<p class="lede">{lede}</p>
<dl class="figures">{shown}</dl>
<div class="sentences">{paragraphs}</div>
</section>"""


def _optimality(report: RoleReport) -> list[str]:
    """Compare what was minimized with its lower bound, if that is known."""
    if report.cover is None:
        return ["The roles were given. Users have only roles all of whose permissions they have, and few of them."]
    return [f"{escape(line.rstrip('.'))}." for line in report.cover.summary().splitlines()[1:]]


def _exceptions_in_short(report: RoleReport) -> str:
    """Count what the first sections list."""
    n_single, n_unfitting = len(report.single_user_roles), sum(user.fit in ("own", "none") for user in report.users)
    sentences = (
        (n_single, "role", f"{have(n_single)} a single user"),
        (n_unfitting, "user", f"{verb(n_unfitting, 'fit')} no role that others have"),
        (len(report.unusual), "permission", f"{be(len(report.unusual))} unusual {_COMPARED}"),
        (len(report.missing), "permission", f"{be(len(report.missing))} missing {_COMPARED}"),
    )
    return " ".join(f"{pluralize(number, noun)} {what}." for number, noun, what in sentences if number)


def exceptions_section(report: RoleReport, links: RoleLinks) -> str:
    """Return the section of direct grants, single-user roles, and permissions that differ from those of peers."""
    nearly_all = f"{100 * report.min_share:g}%"
    compared = f"Only roles with at least {pluralize(report.min_peers, 'other user')} are compared."
    direct = [user for user in report.users if user.direct]
    parts = [
        _part("Permissions that come from no role", "", _users_listing("Permissions from no role", direct, links)),
        _part("Roles of a single user", "", _roles_listing("Roles of a single user", report.single_user_roles, links)),
        _part(
            "Roles without users",
            "No user has all permissions of these roles, or other roles give the users the same.",
            _roles_listing("Roles without users", report.unassigned_roles, links),
        ),
        _part(
            "Unusual permissions",
            f"The user has them, but at least {nearly_all} of the other users of each of the user's roles lack them. "
            f"They come from roles of few users, or from no role. {compared}",
            _differences("Unusual permissions", report.unusual, links),
        ),
        _part(
            "Missing permissions",
            f"The user lacks them, but at least {nearly_all} of the other users of one of the user's roles have them. "
            f"{compared}",
            _differences("Missing permissions", report.missing, links),
        ),
    ]
    body = "".join(parts) or "<p>There are none.</p>"
    return f'<section id="exceptions"><h2>Exceptions</h2>{body}</section>'


def unfitting_section(report: RoleReport, links: RoleLinks) -> str:
    """Return the section of users who have no role that others have, or no permission."""
    own, none, empty = (report.users_by_fit(fit) for fit in ("own", "none", "empty"))
    parts = [
        _part(
            "Only roles of their own",
            "Nobody else has any of the roles of these users.",
            _users_listing("Users with roles of their own", own, links),
        ),
        _part("No role", "They have all permissions of no role.", _users_listing("Users without a role", none, links)),
        _part("No permission", "", chips([user.name for user in empty], MAX_ROWS) if empty else ""),
    ]
    body = "".join(parts) or "<p>Every user has a role that others have too.</p>"
    return f'<section id="unfitting"><h2>Who fits no role</h2>{body}</section>'


def _part(heading: str, text: str, body: str) -> str:
    """Return a part of a section; nothing if it has no body."""
    return f"<h3>{heading}</h3>{f'<p>{text}</p>' if text else ''}{body}" if body else ""


def _users_listing(label: str, users: Sequence[UserEntry], links: RoleLinks) -> str:
    """Return users with their roles and the permissions that come from none."""
    if not users:
        return ""
    rows = [
        (
            name_html(user.name),
            format_count(user.n_permissions),
            links.of(user.roles),
            chips(user.direct, _MAX_NAMES),
        )
        for user in users[:MAX_ROWS]
    ]
    columns = ("user", "permissions", "roles", "from no role")
    return listing(label, columns, rows, ("permissions",), len(users))


def _roles_listing(label: str, roles: Sequence[RoleEntry], links: RoleLinks) -> str:
    """Return roles with their users and permissions."""
    if not roles:
        return ""
    rows = [
        (links.of([role.name]), chips(role.users, _MAX_NAMES), chips(role.permissions, _MAX_NAMES))
        for role in roles[:MAX_ROWS]
    ]
    return listing(label, ("role", "user", "permissions"), rows, (), len(roles))


def _differences(label: str, found: Sequence[PeerDifference], links: RoleLinks) -> str:
    """Return a table with one row for the permissions of a user that are compared with those of the same peers."""
    if not found:
        return ""
    groups: dict[PeerDifference, list[str]] = {}
    for each in found:
        groups.setdefault(each._replace(permission=""), []).append(each.permission)
    columns = ("user", "permissions", "compared with users of", "have it", "comes from")
    rows = [
        (
            name_html(each.user),
            chips(permissions, _MAX_NAMES),
            links.of([each.role]),
            f"{format_count(each.n_with)} of {format_count(each.n_peers)}",
            links.of(each.given_by),
        )
        for each, permissions in list(groups.items())[:MAX_ROWS]
    ]
    n_columns = len(columns) if any(each.given_by for each in groups) else len(columns) - 1
    return listing(label, columns[:n_columns], [row[:n_columns] for row in rows], ("have it",), len(groups))
