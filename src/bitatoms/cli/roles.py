"""`bitatoms roles`: an exact cover of a table of users and permissions, and the report on it or on given roles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table as Grid
from rich.text import Text

from ..api import cover
from ..columns.table import Names, Table
from ..covers.monitor import CoverRound
from ..covers.options import CoverOptions
from ..covers.result import Cover
from ..errors import InputError, Parameter
from ..formatting import listed_names
from ..io.errors import FileError
from ..model.result import Interrupted
from ..roles.audit import RoleReport, role_report
from ..roles.diff import RoleDiff
from ..roles.options import AuditOptions
from ..roles.page import write_role_report
from ..roles.tables import as_roles, role_names
from ..verbosity import escape_name, quote_name
from .commands import listed
from .console import Display, print_json, print_line, print_rich
from .files import (
    check_html_extension,
    check_json_output,
    check_writable,
    read_atoms,
    read_with_status,
    table_format,
    write_code_table,
    write_table,
)
from .options import PLAIN, Input
from .progress import ProgressLine, show_status
from .streams import output_file
from .summary import describe_table

_MAX_NAMES = 12  # permissions listed for a role


class RoleOutputs(NamedTuple):
    """The files to write."""

    roles: Path | None = None
    codes: Path | None = None
    direct: Path | None = None
    report: Path | None = None

    def check(self, read: tuple[Path, ...], json: bool) -> None:
        """Check before long work that all files can be written."""
        check_writable(*self, read=read)
        check_json_output(json, *self)
        for path in (self.roles, self.codes, self.direct):
            if path is not None:
                table_format(path)
        if self.report is not None:
            check_html_extension(self.report)

    @property
    def paths(self) -> list[Path]:
        """The files that are requested."""
        return [path for path in self if path is not None]


class RoleSearch(NamedTuple):
    """How roles are searched, and which users the report compares."""

    parameters: dict[str, Any]
    peers: dict[str, Any]
    fixed: Path | None = None


def find_roles(data: Input, outputs: RoleOutputs, search: RoleSearch, display: Display) -> str | None:
    """Find roles, write them, and print a summary. If Ctrl-C ended it early, return what was written."""
    options = CoverOptions(**search.parameters)
    checked_peers(search.peers, outputs.report)
    if outputs.direct is not None and options.direct_weight is None:
        raise FileError(
            f"{outputs.direct}: without --direct-weight no permission is granted directly; pass "
            "--objective assignments and --direct-weight, such as 2, or omit --direct"
        )
    outputs.check((data.path,) if search.fixed is None else (data.path, search.fixed), display.json)
    table = read_users(data, display.is_silent)
    fixed = None if search.fixed is None else read_roles(search.fixed, display.is_silent)
    found = _found(table, search.parameters | {"fixed_atoms": fixed}, display.is_silent)
    names = role_names(found.n_roles, () if fixed is None else fixed.row_names or ())
    _write(found, names, table, outputs)
    report = None
    if outputs.report is not None:
        report = role_report(table, found, names=names, **search.peers)
        write_role_page(report, outputs.report, data.title, display.is_silent)
    if display.json:
        print_json(
            _as_json(found, names, table, display.top) | ({} if report is None else {"report": report.to_dict()})
        )
    elif not display.quiet:
        print_line(f"\n{found.summary()}")
        _print_roles(found, names, table, display.top)
        written = f"Written: {listed(outputs.paths)}" if outputs.paths else "Nothing was written; -o keeps the roles."
        print_line(f"\n{written}")
        if found.n_direct and outputs.direct is None:
            print_line("Direct grants were not written; --direct FILE keeps them.")
    if found.ended != "interrupted":
        return None
    return f"the best roles so far are in {listed(outputs.paths)}" if outputs.paths else "nothing was written"


def checked_peers(peers: dict[str, Any], report: Path | None) -> dict[str, Any]:
    """Return the options of a report after checking them; raise if there is none that they could apply to."""
    options = AuditOptions(**peers)
    for name in peers:
        if report is None and getattr(options, name) != getattr(AuditOptions, name):
            raise InputError(Parameter(name), " requires --report; pass it, or omit this option")
    return peers


def audit_roles(data: Input, roles: Path, outputs: RoleOutputs, search: RoleSearch, display: Display) -> None:
    """Give users roles that are known, write these and the report, and print a summary."""
    for name, value in (search.parameters | {"fixed_atoms": search.fixed}).items():
        if value != (0 if name == "random_state" else getattr(CoverOptions, name)):
            raise InputError(
                Parameter(name), f" is for a search, but --roles {roles} gives the roles; omit one of them"
            )
    if outputs.roles is not None:
        raise FileError(f"{outputs.roles}: --roles {roles} already gives the roles; omit --output")
    outputs.check((data.path, roles), display.json)
    table, given = read_users(data, display.is_silent), read_roles(roles, display.is_silent)
    report = role_report(table, given, **search.peers)
    if outputs.codes is not None:
        write_code_table(report.codes, outputs.codes)
    if outputs.direct is not None:
        write_table(report.direct, outputs.direct)
    if outputs.report is not None:
        write_role_page(report, outputs.report, data.title, display.is_silent)
    if display.json:
        print_json({"users": len(report.users), "roles": len(report.roles), "report": report.to_dict()})
    elif not display.quiet:
        print_line(f"\n{report.summary()}")
        direct = [(user.name, user.direct) for user in report.users if user.direct]
        print_lists("\nPermissions that come from no role:", direct, display.top)
        own = [(user.name, user.roles) for user in report.users_by_fit("own")]
        print_lists("\nUsers with roles that nobody else has:", own, display.top)
        print_lists("\nUsers without a role:", [(user.name, ()) for user in report.users_by_fit("none")], display.top)
        if outputs.paths:
            print_line(f"\nWritten: {listed(outputs.paths)}")


def read_users(data: Input, quiet: bool) -> Table:
    """Read a table of users and permissions without missing values, and describe it."""
    table = read_with_status(data.with_all_known(), quiet)
    if 0 in table.shape:
        raise FileError(f"{data.name}: the table has no {'rows' if len(table) == 0 else 'columns'}")
    if not quiet:
        print_line(f"{data.title}: {describe_table(table)}")
    return table


def read_roles(path: Path, quiet: bool) -> Table:
    """Read a table of roles, with the defaults of all options for reading, or a pattern file."""
    table = read_atoms(path, quiet)
    try:
        return as_roles(table)
    except InputError as error:
        raise FileError(f"{Input(path, PLAIN).name}: ", *error.args) from error


def write_role_page(report: RoleReport, path: Path, title: str, quiet: bool, diff: RoleDiff | None = None) -> None:
    """Write the page of a report to a file or a stream."""
    with show_status("Writing the report", quiet), output_file(path, ".html") as file:
        write_role_report(report, file, title=title, diff=diff)


def print_lists(heading: str, lists: Sequence[tuple[str, Sequence[str]]], n_shown: int) -> None:
    """Print a name and other names in each line, and how many lines there are more."""
    if not lists or not n_shown:
        return
    print_line(heading)
    for name, others in lists[:n_shown]:
        print_line(f"  {escape_name(name)}" + (f": {_cut(others)}" if others else ""))
    if len(lists) > n_shown:
        print_line(f"and {len(lists) - n_shown} more (--top {len(lists)} shows all)")


def _cut(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    shown = len(names) if len(names) <= _MAX_NAMES + 2 else _MAX_NAMES
    return listed_names(names, shown, quote_name) if names else ""


def _found(table: Table, parameters: dict[str, Any], quiet: bool) -> Cover:
    """Search with progress; after Ctrl-C, return the best cover so far."""
    with show_status("Searching", quiet) as status:
        progress = ProgressLine(quiet, status)

        def update(row: CoverRound) -> None:
            text = f"Searching: {row.roles} roles, {row.assignments} assignments, {progress.seconds}"
            progress.update(text, "  (Ctrl-C keeps the best cover so far)")

        try:
            return cover(table, **parameters, callbacks=update)
        except Interrupted as interrupted:
            return interrupted.result


def _write(found: Cover, names: Names, table: Table, outputs: RoleOutputs) -> None:
    """Write what was requested."""
    if outputs.roles is not None:
        write_table(Table(found.atoms, names, table.columns), outputs.roles)
    if outputs.codes is not None:
        write_code_table(Table(found.codes, table.row_names, names), outputs.codes)
    if outputs.direct is not None:
        write_table(Table(found.direct, table.row_names, table.columns), outputs.direct)


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
    grid = Grid(box=None, pad_edge=False, show_edge=False, header_style="bold")
    grid.add_column("role")
    grid.add_column("permissions", ratio=1)
    grid.add_column("users", justify="right", no_wrap=True)
    users = found.codes.column_weights()
    for role in shown:
        permissions = table.names_of(found.atoms[role].nonzero()[0])
        grid.add_row(Text(escape_name(names[role])), Text(_cut(permissions)), str(users[role]))
    print_rich(grid, soft_wrap=False)
    if found.n_roles > len(shown):
        print_line(f"and {found.n_roles - len(shown)} more (--top {found.n_roles} shows all)")


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
