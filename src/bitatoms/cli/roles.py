"""`bitatoms roles` and `roles-diff`: roles of users and permissions, reports on them, and what changes in them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.text import Text

from ..covers.options import CoverOptions
from ..errors import InputError, Parameter
from ..formatting import counted, escape_name
from ..io.errors import FileError
from ..roles.options import AuditOptions
from . import options
from .output import (
    Display,
    first_names,
    new_grid,
    print_json,
    print_line,
    print_lists,
    print_rest,
    print_rich,
    show_status,
)
from .paths import Input, OutputTable, listed, output_file, print_written

if TYPE_CHECKING:
    from ..columns.table import Names, Table
    from ..covers.result import Cover
    from ..roles.audit import RoleReport
    from ..roles.diff import RoleChange, RoleDiff, UnmatchedRole, UserChange

_SEARCH: dict[str, Any] = {  # how options of a search are called for roles
    "fixed_atoms": {
        "help": "Keep these roles, a table with one row per role, as they are, and find others for the rest.",
        "file": "read",
    },
    "apart": {"help": f"Permissions of which a role has at most one, {options.QUOTED}", "metavar": "PERMISSION,..."},
    "together": {"help": f"Permissions of which a role has all or none, {options.QUOTED}", "metavar": "PERMISSION,..."},
    "random_state": {"flags": "--seed --random-state"},
}


@options.command(
    "bitatoms roles users.csv -o roles.csv",
    "bitatoms roles users.csv -o roles.csv --codes user-roles.csv --objective assignments",
    "bitatoms roles users.csv -o roles.csv --objective assignments --direct-weight 2 --direct exceptions.csv",
    "bitatoms roles users.csv -o roles.csv --fixed known-roles.csv --apart 'pay,approve'",
    "bitatoms roles users.csv -o roles.csv --report roles.html",
    "bitatoms roles users.csv --roles roles.csv --report roles.html --direct exceptions.csv",
)
def roles(
    data: Input = options.table(),
    output: OutputTable | None = options.table_file(
        "--output -o", "Write the roles, one row per role, as a table, in any format.", is_common=True
    ),
    codes: OutputTable | None = options.table_file(
        "--codes", "Write the roles of each user as a table, in any format."
    ),
    direct: OutputTable | None = options.table_file(
        "--direct", "Write the permissions granted outside of roles, in any format."
    ),
    report: Path | None = options.page(
        "--report", "Write a report for auditors, an HTML page; with --json, its data are printed too."
    ),
    given: Path | None = options.input_file(
        "--roles",
        "Give the users these roles, a table with one row per role, instead of a search.",
        panel=options.SEARCH,
    ),
    search: CoverOptions = options.declared_options(CoverOptions, without=("binarize",), **_SEARCH),
    audit: AuditOptions = options.declared_options(AuditOptions, "Report options"),
    shown: Display = options.display(5, "roles to show"),
) -> str | None:
    """Find the roles of a table of users and permissions: an exact cover, with no one missed and none added.

    A user gets every permission of each of its roles, and no other. The summary gives a lower bound: no cover has
    fewer roles, or a lower cost.

    With --roles, nothing is searched: users get those of the given roles all of whose permissions they have, and few
    that give as many of their permissions as these roles can. Columns are matched by name. The report lists the
    permissions that come from no role, unusual permissions, and who fits no role.
    """
    from ..columns.table import Table
    from ..roles.audit import role_report
    from ..roles.tables import role_names
    from .files import write_code_table, write_table

    outputs = [output, codes, direct, report]
    if given is not None:
        _audit(data, given, search, audit, outputs, shown)
        return None
    _check_audit(audit, report)
    if direct is not None and search.direct_weight is None:
        raise FileError(
            f"{direct.path}: without --direct-weight no permission is granted directly; pass "
            "--objective assignments and --direct-weight, such as 2, or omit --direct"
        )
    quiet = shown.is_silent
    users = _read_users(data, quiet)
    fixed = None if search.fixed_atoms is None else _read_roles(search.fixed_atoms, quiet)
    found = _found(users, search.get_params() | {"fixed_atoms": fixed}, quiet)
    names = role_names(found.n_roles, () if fixed is None else fixed.row_names or ())
    write_table(Table(found.atoms, names, users.columns), output)
    write_code_table(Table(found.codes, users.row_names, names), codes)
    write_table(Table(found.direct, users.row_names, users.columns), direct)
    audited = None
    if report is not None:
        audited = role_report(users, found, **audit.get_params() | {"names": names})
        _write_page(audited, report, data.title, quiet)
    if shown.json:
        print_json(
            _as_json(found, names, users, shown.top) | ({} if audited is None else {"report": audited.to_dict()})
        )
    elif not shown.quiet:
        print_line(f"\n{found.summary()}")
        _print_roles(found, names, users, shown.top)
        print_written(outputs, "Nothing was written; -o keeps the roles.")
        if found.n_direct and direct is None:
            print_line("Direct grants were not written; --direct FILE keeps them.")
    if found.ended != "interrupted":
        return None
    return f"the best roles so far are in {listed(outputs)}" if listed(outputs) else "nothing was written"


def _check_audit(audit: AuditOptions, report: Path | None) -> None:
    """Raise if there is no report that its options could apply to."""
    for name, value in audit.get_params().items():
        if report is None and value != getattr(AuditOptions, name):
            raise InputError(Parameter(name), " requires --report; pass it, or omit this option")


def _audit(
    data: Input, given: Path, search: CoverOptions, audit: AuditOptions, outputs: list[Any], shown: Display
) -> None:
    """Give users roles that are known, write these and the report, and print a summary."""
    from ..roles.audit import role_report
    from .files import write_code_table, write_table

    output, codes, direct, report = outputs
    defaults = CoverOptions(random_state=0).get_params()
    for name, value in search.get_params().items():
        if value != defaults[name]:
            raise InputError(
                Parameter(name), f" is for a search, but --roles {given} gives the roles; omit one of them"
            )
    if output is not None:
        raise FileError(f"{output.path}: --roles {given} already gives the roles; omit --output")
    users, known = _read_users(data, shown.is_silent), _read_roles(given, shown.is_silent)
    audited = role_report(users, known, **audit.get_params())
    write_code_table(audited.codes, codes)
    write_table(audited.direct, direct)
    if report is not None:
        _write_page(audited, report, data.title, shown.is_silent)
    if shown.json:
        print_json({"users": len(audited.users), "roles": len(audited.roles), "report": audited.to_dict()})
    elif not shown.quiet:
        print_line(f"\n{audited.summary()}")
        exceptions = [(user.name, user.direct) for user in audited.users if user.direct]
        print_lists("\nPermissions that come from no role:", exceptions, shown.top)
        own = [(user.name, user.roles) for user in audited.users_by_fit("own")]
        print_lists("\nUsers with roles that nobody else has:", own, shown.top)
        print_lists("\nUsers without a role:", [(user.name, ()) for user in audited.users_by_fit("none")], shown.top)
        print_written(outputs)


def _read_users(data: Input, quiet: bool) -> Table:
    """Read a table of users and permissions without missing values, and describe it."""
    from .files import described, read_table

    return described(read_table(data.with_all_known(), quiet), data, quiet)


def _read_roles(path: Path, quiet: bool) -> Table:
    """Read a table of roles, with the defaults of all options for reading, or a pattern file."""
    from ..roles.tables import as_roles
    from .files import read_atoms

    given = read_atoms(path, quiet)
    try:
        return as_roles(given)
    except InputError as error:
        raise FileError(f"{Input(path).name}: ", *error.args) from error


def _write_page(report: RoleReport, path: Path, title: str, quiet: bool, diff: RoleDiff | None = None) -> None:
    """Write the page of a report to a file or a stream."""
    from ..roles.page import write_role_report

    with show_status("Writing the report", quiet), output_file(path, ".html") as file:
        write_role_report(report, file, title=title, diff=diff)


def _found(users: Table, parameters: dict[str, Any], quiet: bool) -> Cover:
    """Search with progress; after Ctrl-C, return the best cover so far."""
    from .. import api
    from ..model.result import Interrupted

    with show_status("Searching", quiet) as line:

        def update(row: Any) -> None:
            text = f"Searching: {row.roles} roles, {row.assignments} assignments, {line.seconds}"
            line.update(text, "  (Ctrl-C keeps the best cover so far)")

        try:
            return api.cover(users, **parameters | {"callbacks": update})
        except Interrupted as interrupted:
            return interrupted.result


def _largest(found: Cover, n_shown: int) -> list[int]:
    """Return the roles that cover most ones; fixed roles need not come first."""
    covered = found.codes.column_weights() * found.atoms.row_weights()
    return np.argsort(-covered, kind="stable")[:n_shown].tolist()


def _print_roles(found: Cover, names: Names, table: Table, n_shown: int) -> None:
    """Print the roles that cover most ones, with the names of their permissions."""
    shown = _largest(found, n_shown)
    if not shown:
        return
    print_line("\nThe largest roles:")
    grid = new_grid()
    grid.add_column("role")
    grid.add_column("permissions", ratio=1)
    grid.add_column("users", justify="right", no_wrap=True)
    users = found.codes.column_weights()
    for role in shown:
        permissions = table.names_of(found.atoms[role].nonzero()[0])
        grid.add_row(Text(escape_name(names[role])), Text(first_names(permissions)), str(users[role]))
    print_rich(grid, soft_wrap=False)
    print_rest(found.n_roles, len(shown))


def _as_json(found: Cover, names: Names, table: Table, n_shown: int) -> dict[str, Any]:
    """Return the figures of a cover and its largest roles, for ``--json``."""
    users = found.codes.column_weights().tolist()
    return {
        "objective": found.objective,
        "cost": found.cost,
        "lower_bound": found.lower_bound,
        "is_optimal": found.is_optimal,
        "roles": found.n_roles,
        "user_assignments": found.n_user_assignments,
        "permission_assignments": found.n_permission_assignments,
        "direct_grants": found.n_direct,
        "independent_ones": len(found.independent),
        "users": table.shape[0],
        "permissions": table.shape[1],
        "ended": found.ended,
        "largest": [
            {
                "role": role + 1,
                "name": names[role],
                "users": users[role],
                "permissions": list(table.names_of(found.atoms[role].nonzero()[0])),
            }
            for role in _largest(found, n_shown)
        ],
    }


@options.command(
    "bitatoms roles-diff old-roles.csv roles.csv",
    "bitatoms roles-diff old-roles.csv roles.csv --users users.csv --report changes.html",
)
def roles_diff(
    old: Path = options.argument("The old roles, a table with one row per role."),
    new: Path = options.argument("The new roles."),
    users: Input | None = options.table(
        "Users and their permissions, to see whose roles change; options for reading apply to this table.", "--users"
    ),
    report: Path | None = options.page(
        "--report", "Write the report on the new roles with the changes, an HTML page; needs --users."
    ),
    threshold: float = options.option(
        "--threshold",
        0.5,
        "Overlap of permissions (Jaccard index) from which a role is changed; below it, one is gone and one is new.",
    ),
    audit: AuditOptions = options.declared_options(AuditOptions, "Report options"),
    shown: Display = options.display(10, "roles and users to show"),
) -> None:
    """Compare two sets of roles: which are unchanged, changed, new and gone, and whose roles change.

    Roles are matched by their permissions, and permissions by their names. Users get roles of both sets as by 'bitatoms
    roles --roles'.
    """
    from ..roles import diff
    from ..roles.audit import role_report

    _check_audit(audit, report)
    if report is not None and users is None:
        raise FileError(f"{report}: the report is about users and their roles; pass --users")
    quiet = shown.is_silent
    before, after = _read_roles(old, quiet), _read_roles(new, quiet)
    people = None if users is None else _read_users(users, quiet)
    found = diff.role_diff(before, after, people, threshold=threshold)
    if report is not None and users is not None:
        _write_page(role_report(people, after, **audit.get_params()), report, users.title, quiet, found)
    if shown.json:
        print_json(found.to_dict())
    elif not shown.quiet:
        _print_diff(found, shown.top)
        print_written([report])


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
