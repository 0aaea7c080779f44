"""The sections of a role report."""

from __future__ import annotations

from collections.abc import Sequence

from ..formatting import be, have, noun, percent, verb
from ..html.document import Section, more, part, section, summary_section
from ..html.text import escape, format_count, name_html, pluralize
from .audit import RoleReport
from .diff import RoleDiff
from .entries import PeerDifference, PermissionEntry, RoleEntry, UserEntry
from .listing import MAX_ROWS, Column, Listings, chips

MAX_ROLES = 500  # cards
_MAX_PERMISSIONS, _MAX_USERS = 40, 200  # names on a card
_COMPARED = "compared with users of the same roles"
_USER: Sequence[Column] = (
    ("user", "name"), ("permissions", "n_permissions"), ("roles", "roles"), ("from no role", "direct"),
)  # fmt: skip


def summary(report: RoleReport) -> Section:
    """Return the section at the top: the numbers, and how far they are from the lowest possible."""
    n_roles, n_users = len(report.roles), len(report.users)
    figures = [
        (format_count(n_roles), noun(n_roles, "role")),
        (format_count(report.n_user_assignments), "roles of users: user assignments"),
        (format_count(report.n_permission_assignments), "permissions of roles: permission assignments"),
        (format_count(report.n_direct), "permissions of users that come from no role"),
    ]
    of_users = f"{pluralize(n_roles, 'role')} {verb(n_roles, 'give')} {pluralize(n_users, 'user')}"
    lede = f"{of_users} <b>exactly the permissions they have</b>, {format_count(report.n_grants)} in all."
    if report.n_direct:
        n_given = report.n_grants - report.n_direct
        share = f"{format_count(n_given)} of {format_count(report.n_grants)} ({percent(n_given, report.n_grants)})"
        lede = f"{of_users} <b>{share} of the permissions they have</b>, and no others."
    return summary_section(lede, figures, [*_optimality(report), _exceptions_in_short(report)])


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


def changes_section(diff: RoleDiff, listings: Listings) -> Section:
    """Return what changed from an earlier set of roles, and for whom."""
    changed: Sequence[Column] = (
        ("role", "new"),
        ("before", "old"),
        ("overlap", "overlap"),
        ("permissions", lambda change: _gained_and_lost(change.added, change.removed)),
    )
    unmatched = (("role", "name"), ("permissions", "permissions"))
    users: Sequence[Column] = (
        ("user", "name"),
        ("roles: + new, − old", lambda user: _gained_and_lost(user.gained, user.lost)),
        ("permissions from roles", lambda user: _gained_and_lost(user.permissions_gained, user.permissions_lost)),
    )
    return section(
        "changes",
        "Changes",
        *(f"<p>{line.rstrip('.')}.</p>" for line in diff.summary().splitlines()),
        listings.part("Changed roles", diff.changed, changed),
        listings.part("New roles", diff.new, unmatched),
        listings.part("Roles that are gone", diff.gone, unmatched),
        listings.part("Users", diff.users or (), users),
    )


def exceptions_section(report: RoleReport, listings: Listings) -> Section:
    """Return the section of direct grants, single-user roles, and permissions that differ from those of peers."""
    direct = [user for user in report.users if user.direct]
    roles: Sequence[Column] = (
        ("role", lambda role: listings.links([role.name])), ("user", "users"), ("permissions", "permissions"),
    )  # fmt: skip
    no_users = "No user has all permissions of these roles, or other roles give the users the same."
    nearly_all = f"{100 * report.min_share:g}%"
    compared = f"Only roles with at least {pluralize(report.min_peers, 'other user')} are compared."
    unusual = (
        f"The user has them, but at least {nearly_all} of the other users of each of the user's roles lack them. "
        f"They come from roles of few users, or from no role. {compared}"
    )
    missing = (
        f"The user lacks them, but at least {nearly_all} of the other users of one of the user's roles have them. "
        f"{compared}"
    )
    return section(
        "exceptions",
        "Exceptions",
        listings.part("Permissions that come from no role", direct, _USER),
        listings.part("Roles of a single user", report.single_user_roles, roles),
        listings.part("Roles without users", report.unassigned_roles, roles, no_users),
        _differences("Unusual permissions", report.unusual, listings, unusual),
        _differences("Missing permissions", report.missing, listings, missing),
        otherwise="<p>There are none.</p>",
    )


def unfitting_section(report: RoleReport, listings: Listings) -> Section:
    """Return the section of users who have no role that others have, or no permission."""
    own, none, empty = (report.users_by_fit(fit) for fit in ("own", "none", "empty"))
    return section(
        "unfitting",
        "Who fits no role",
        listings.part("Only roles of their own", own, _USER, "Nobody else has any of the roles of these users."),
        listings.part("No role", none, _USER, "They have all permissions of no role."),
        _names("No permission", empty, MAX_ROWS),
        otherwise="<p>Every user has a role that others have too.</p>",
    )


def roles_section(report: RoleReport) -> Section:
    """Return one card per role."""
    if not report.roles:
        return section("roles", "Roles", "<p>There are no roles.</p>")
    cards = "".join(_card(number, role) for number, role in enumerate(report.roles[:MAX_ROLES], start=1))
    text = "\n<p>A permission of a user <em>needs</em> a role if no other role of the user gives it.</p>\n"
    cards = f'<ul role="list" class="cards roles">{cards}</ul>'
    return section("roles", "Roles", text, cards, more(len(report.roles) - MAX_ROLES))


def permissions_section(report: RoleReport, listings: Listings) -> Section:
    """Return the table of permissions, after those that everybody, one user or nobody has."""
    n_users = len(report.users)
    headings = {n_users: f"Held by all {format_count(n_users)} users", 1: "Held by a single user", 0: "Held by nobody"}
    special = "".join(_names(heading, report.permissions_of(count), 100) for count, heading in headings.items())
    columns: Sequence[Column] = (
        ("permission", "name"),
        ("users", lambda permission: format_count(len(permission.users))),
        ("roles that give it", "roles"),
        ("users from no role", "n_direct"),
    )
    table = listings.table("Permissions", report.permissions, columns)
    return section("permissions", "Permissions", special, part("All permissions", "", table) if special else table)


def users_section(report: RoleReport, listings: Listings) -> Section:
    """Return the table of users."""
    n_roles: Column = ("number of roles", lambda user: format_count(len(user.roles)))
    return section("users", "Users", listings.table("Users", report.users, (*_USER[:2], n_roles, *_USER[2:])))


def overlaps_section(report: RoleReport, listings: Listings) -> Section:
    """Return pairs of roles: contained in each other, with common permissions, and with the same users."""
    contained = [pair for pair in report.overlaps if pair.within is not None]
    same_users = [pair for pair in report.overlaps if pair.user_overlap == 1]
    sharing = [pair for pair in report.overlaps if pair.n_permissions]
    within: Sequence[Column] = (
        ("role", "within"),
        ("all its permissions are in", lambda pair: listings.links([({*pair[:2]} - {pair.within}).pop()])),
        ("permissions", "n_permissions"),
    )
    pairs: Sequence[Column] = (
        ("roles", lambda pair: f"{listings.links([pair.first])} and {listings.links([pair.second])}"),
        ("common permissions", "n_permissions"),
        ("of either", "permission_overlap"),
        ("common users", "n_users"),
        ("of either", "user_overlap"),
    )
    cut = ""
    if report.n_overlaps > len(report.overlaps):
        n_pairs, n_kept = format_count(report.n_overlaps), format_count(len(report.overlaps))
        cut = f"<p>{n_pairs} pairs of roles overlap. These are the {n_kept} that overlap most.</p>"
    return section(
        "overlaps",
        "Overlaps of roles",
        cut,
        listings.part("Roles within others", contained, within),
        listings.part("Roles with the same users", same_users, pairs, "The same users have both roles of each pair."),
        listings.part("Common permissions", sharing, pairs),
        title="Overlaps",
        otherwise="<p>No two roles have common permissions, or the same users.</p>",
    )


def _names(heading: str, entries: Sequence[UserEntry] | Sequence[PermissionEntry], limit: int) -> str:
    """Return a part with the names of entries; nothing if there are none."""
    return part(heading, "", chips([entry.name for entry in entries], limit)) if entries else ""


def _differences(heading: str, found: Sequence[PeerDifference], listings: Listings, text: str) -> str:
    """Return a part with one row for the permissions of a user that are compared with those of the same peers."""
    groups: dict[PeerDifference, list[str]] = {}
    for each in found:
        groups.setdefault(each._replace(permission=""), []).append(each.permission)
    columns: list[Column] = [
        ("user", "user"),
        ("permissions", lambda each: chips(groups[each])),
        ("compared with users of", "role"),
        ("have it", lambda each: f"{format_count(each.n_with)} of {format_count(each.n_peers)}"),
    ]
    if any(each.given_by for each in groups):
        columns.append(("comes from", "given_by"))
    return listings.part(heading, [*groups], columns, text)


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
    own = _folded(f"{format_count(len(role.own_permissions))} in no other role", role.own_permissions, _MAX_PERMISSIONS)
    users = _folded(pluralize(n_users, "user"), role.users, _MAX_USERS)
    return (
        f'<li class="card" id="role-{number}"><h3>{name_html(role.name)}</h3><dl>{figures}</dl>'
        f"{chips(role.permissions, _MAX_PERMISSIONS)}{own}{users}</li>"
    )


def _folded(summary: str, names: Sequence[str], limit: int) -> str:
    """Return names that are shown after a click; nothing if there are none."""
    return f"<details><summary>{summary}</summary>{chips(names, limit)}</details>" if names else ""


def _gained_and_lost(gained: Sequence[str], lost: Sequence[str]) -> str:
    """Return names with marks."""
    marked = ((gained, "added"), (lost, "removed"))
    return "".join(chips(names, css_class=kind) for names, kind in marked if names) or "–"
