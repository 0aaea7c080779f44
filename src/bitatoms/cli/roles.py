"""`bitatoms roles`: an exact cover of a table of users and permissions."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from rich.table import Table as Grid
from rich.text import Text

from ..api import checked_cover, cover
from ..core.result import Interrupted
from ..covers.monitor import CoverRound
from ..covers.result import Cover
from ..io.errors import FileError
from ..parameters import CoverKwargs, with_defaults
from ..table import Table
from ..verbosity import escape_name
from .commands import listed
from .console import Display, print_json, print_line, print_rich
from .files import check_writable, read_with_status, table_format, write_code_table, write_table
from .options import Input
from .progress import ProgressLine, show_status
from .streams import is_stdout
from .summary import describe_table

_MAX_NAMES = 12  # permissions listed for a role


class RoleOutputs(NamedTuple):
    """The tables to write."""

    roles: Path | None = None
    codes: Path | None = None
    direct: Path | None = None

    @property
    def paths(self) -> list[Path]:
        """The files that are requested."""
        return [path for path in self if path is not None]


def find_roles(data: Input, outputs: RoleOutputs, parameters: dict[str, Any], display: Display) -> str | None:
    """Find roles, write them, and print a summary. If Ctrl-C ended it early, return what was written."""
    params = checked_cover(with_defaults(CoverKwargs, parameters))
    if outputs.direct is not None and params["direct_weight"] is None:
        raise FileError(
            f"{outputs.direct}: without --direct-weight no permission is granted directly; pass "
            "--objective assignments and --direct-weight, such as 2, or omit --direct"
        )
    check_writable(*outputs, read=(data.path,))
    if display.json and any(map(is_stdout, outputs.paths)):
        raise FileError("standard output: --json already writes to it; choose a file for other output")
    for path in outputs.paths:
        table_format(path)
    quiet = display.quiet or display.json
    table = read_with_status(data.with_all_known(), quiet)
    if 0 in table.shape:
        raise FileError(f"{data.name}: the table has no {'rows' if len(table) == 0 else 'columns'}")
    if not quiet:
        print_line(f"{data.title}: {describe_table(table)}")
    found = _found(table, parameters, quiet)
    _write(found, table, outputs)
    if display.json:
        print_json(_as_json(found, table, display.top))
    elif not quiet:
        print_line(f"\n{found.summary()}")
        _print_roles(found, table, display.top)
        written = f"Written: {listed(outputs.paths)}" if outputs.paths else "Nothing was written; -o keeps the roles."
        print_line(f"\n{written}")
    if found.ended != "interrupted":
        return None
    return f"the best roles so far are in {listed(outputs.paths)}" if outputs.paths else "nothing was written"


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


def _role_names(found: Cover) -> tuple[str, ...]:
    """Return the names of roles in tables."""
    return tuple(f"role {number}" for number in range(1, found.n_roles + 1))


def _write(found: Cover, table: Table, outputs: RoleOutputs) -> None:
    """Write what was requested."""
    names = _role_names(found)
    if outputs.roles is not None:
        write_table(Table(found.atoms, names, table.columns), outputs.roles)
    if outputs.codes is not None:
        write_code_table(Table(found.codes, table.row_names, names), outputs.codes)
    if outputs.direct is not None:
        write_table(Table(found.direct, table.row_names, table.columns), outputs.direct)


def _print_roles(found: Cover, table: Table, n_shown: int) -> None:
    """Print the roles that cover most ones, with the names of their permissions."""
    n_shown = min(n_shown, found.n_roles)
    if not n_shown:
        return
    print_line("\nThe largest roles:")
    grid = Grid(box=None, pad_edge=False, show_edge=False, header_style="bold")
    grid.add_column("role", justify="right")
    grid.add_column("permissions", ratio=1)
    grid.add_column("users", justify="right", no_wrap=True)
    users = found.codes.column_weights()
    for role in range(n_shown):
        names = table.names_of(found.atoms[role].nonzero()[0])
        shown = len(names) if len(names) <= _MAX_NAMES + 2 else _MAX_NAMES
        text = ", ".join(map(escape_name, names[:shown]))
        text += f" and {len(names) - shown} more" if len(names) > shown else ""
        grid.add_row(str(role + 1), Text(text), str(users[role]))
    print_rich(grid, soft_wrap=False)
    if found.n_roles > n_shown:
        print_line(f"and {found.n_roles - n_shown} more (--top {found.n_roles} shows all)")


def _as_json(found: Cover, table: Table, n_shown: int) -> dict[str, Any]:
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
                "users": users[role],
                "permissions": list(table.names_of(found.atoms[role].nonzero()[0])),
            }
            for role in range(min(n_shown, found.n_roles))
        ],
    }
