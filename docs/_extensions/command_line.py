"""The reference of the command line, from the declarations of the commands.

It takes the place of a comment in a page: ``<!-- commands -->``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer

from bitatoms.cli.app import app as commands
from bitatoms.cli.options import READING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

MARKER = "<!-- commands -->"
HEADER = ["| name | meaning | default |", "|---|---|---|"]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension."""
    app.connect("source-read", insert_commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def insert_commands(app: Sphinx, docname: str, source: list[str]) -> None:
    """Replace the marker of a page by the description of all commands."""
    if MARKER in source[0]:
        source[0] = source[0].replace(MARKER, "\n".join(described_commands()))


def described_commands() -> Iterator[str]:
    """Yield lines of Markdown: a list of the commands, then a section per command."""
    group = typer.main.get_command(commands)
    top = group.context_class(group, info_name="bitatoms")
    shown = {name: command for name, command in group.commands.items() if not command.hidden}
    yield from ["| command | purpose |", "|---|---|"]
    for name, command in shown.items():
        yield f"| [`bitatoms {name}`](#bitatoms-{name}) | {_summary(command)} |"
    yield ""
    yield from _options(group.params, top)
    reading: dict[str, str] = {}
    for name, command in shown.items():
        context = command.context_class(command, info_name=name, parent=top)
        arguments = [_argument(parameter) for parameter in command.params if _is_argument(parameter)]
        usage = " ".join(["bitatoms", name, "[OPTIONS]", *arguments])
        yield from [f"## bitatoms {name}", "", "```text", usage, "```", "", *command.help.splitlines(), ""]
        shared = [one for one in command.params if getattr(one, "rich_help_panel", None) == READING and not one.hidden]
        yield from _options([one for one in command.params if one not in shared], context)
        if shared:
            names = ", ".join(f"`{one.opts[0]}`" for one in shared)
            yield from [f"[{READING}](#reading-options): {names}.", ""]
            reading = {_row(one, context): "" for one in shared} | reading
        if command.epilog:
            yield from [*command.epilog.splitlines(), ""]
    yield from [f"## {READING}", "", "Commands that read a table share these options.", "", *HEADER, *sorted(reading)]


def _summary(command: Any) -> str:
    """Return the first sentence of the help of a command."""
    return " ".join(command.help.split("\n\n")[0].split())


def _is_argument(parameter: Any) -> bool:
    return parameter.param_type_name == "argument"


def _argument(parameter: Any) -> str:
    """Return an argument as in a usage line."""
    name = (parameter.metavar or parameter.name).upper() + ("..." if parameter.nargs == -1 else "")
    return name if parameter.required else f"[{name}]"


def _options(parameters: list[Any], context: Any) -> Iterator[str]:
    """Yield a table of arguments and one per group of options, in the order of the help of the command."""
    groups: dict[str, list[Any]] = {}
    for parameter in parameters:
        if not parameter.hidden:
            panel = "Arguments" if _is_argument(parameter) else parameter.rich_help_panel or "Options"
            groups.setdefault(panel, []).append(parameter)
    for panel, members in groups.items():
        yield from [f"**{panel}**", "", *HEADER, *(_row(one, context) for one in members), ""]


def _row(parameter: Any, context: Any) -> str:
    """Return a parameter as a row of a table."""
    return f"| {_spelled(parameter, context)} | {_cell(parameter.help)} | {_default(parameter)} |"


def _spelled(parameter: Any, context: Any) -> str:
    """Return the names of a parameter with its type, each as code."""
    if _is_argument(parameter):
        return f"`{_argument(parameter).strip('[]')}`"
    names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    values = parameter.get_help_record(context)[0].rpartition(parameter.opts[0])[2].strip("<> ")
    values = "" if parameter.is_flag else values.removesuffix(" range").removeprefix("list[").removesuffix("]")
    return f"{names} `{_cell(values)}`" if values else names


def _default(parameter: Any) -> str:
    """Return the default of a parameter, if it has one."""
    value = parameter.default
    if parameter.required:
        return "required"
    if getattr(parameter, "is_flag", False):
        on, off = parameter.opts[0], [*parameter.secondary_opts, ""][0]
        value = {True: on, False: off or None}.get(value)
    if value is None or callable(value) or value == ():
        return ""
    return f"`{_cell(str(value))}`"


def _cell(text: str) -> str:
    """Return text for a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")
