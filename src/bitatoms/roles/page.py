"""The page of a role report: its sections from top to bottom, and the glossary."""

from __future__ import annotations

import os

from ..html.document import glossary_section, html_document, read_asset, write_page
from ..html.text import pluralize
from .audit import RoleReport
from .diff import RoleDiff
from .listing import Listings
from .sections import (
    MAX_ROLES,
    changes_section,
    exceptions_section,
    overlaps_section,
    permissions_section,
    roles_section,
    summary,
    unfitting_section,
    users_section,
)

_GLOSSARY = (
    ("role", "A set of permissions. A user with a role has all of them."),
    ("user", "A row of the table."),
    ("permission", "A column of the table. A user has it if its cell is 1."),
    ("user assignment", "A role of a user."),
    ("permission assignment", "A permission of a role."),
    ("from no role", "A permission that a user has, but none of the user's roles: it is granted directly."),
    ("of either", "What both roles have, in percent of what at least one of them has (Jaccard index)."),
)


def role_report_html(report: RoleReport, *, title: str | None = None, diff: RoleDiff | None = None) -> str:
    """Return a role report as a string of HTML.

    Parameters
    ----------
    report : RoleReport
        What `role_report` returned.
    title : str, optional
        The title of the page, for example the name of the table's file.
    diff : RoleDiff, optional
        What `role_diff` returned, for a section about what changed from earlier roles.

    Returns
    -------
    str
        The page. Equal reports give equal pages.

    Examples
    --------
    >>> import bitatoms as ba
    >>> from bitatoms.roles.page import role_report_html
    >>> X = [[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 1, 1]]
    >>> "<h1>rights</h1>" in role_report_html(ba.role_report(X, ba.cover(X)), title="rights")
    True
    """
    users = pluralize(len(report.users), "user")
    heading = title or f"Roles of {users} and {pluralize(len(report.permissions), 'permission')}"
    listings = Listings(report.roles[:MAX_ROLES])
    sections = [
        summary(report),
        *(() if diff is None else (changes_section(diff, listings),)),
        exceptions_section(report, listings),
        unfitting_section(report, listings),
        roles_section(report),
        permissions_section(report, listings),
        users_section(report, listings),
        overlaps_section(report, listings),
        glossary_section(_GLOSSARY),
    ]
    style = read_asset("html", "cards.css") + read_asset("roles", "page.css")
    kicker, skip_link = "Roles, users and permissions", ("roles", "the roles")
    return html_document(heading, kicker, sections, title=f"{heading} – roles", skip_link=skip_link, style=style)


def write_role_report(
    report: RoleReport, path: str | os.PathLike[str], *, title: str | None = None, diff: RoleDiff | None = None
) -> None:
    """Write a role report as an HTML page that any browser opens without a network. The write is atomic.

    Parameters
    ----------
    report : RoleReport
        What `role_report` returned.
    path : str or path-like
        The file to write, usually ending in .html.
    title : str, optional
        The title of the page, for example the name of the table's file.
    diff : RoleDiff, optional
        What `role_diff` returned, for a section about what changed from earlier roles.
    """
    write_page(role_report_html(report, title=title, diff=diff), path)
