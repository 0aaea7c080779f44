"""The reference of the command line, from the declarations of the commands.

It takes the place of a comment in a page: ``<!-- commands -->``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from bitatoms.cli.app import COMMANDS
from bitatoms.cli.app import app as group
from bitatoms.cli.help import Argument, Command, Option, panels, values_of
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
    """Yield lines of Markdown: a list of the commands by groups, then a section per command."""
    found: dict[str, Command] = {}
    for title, names in COMMANDS.items():
        yield from [f"**{title}**", "", "| command | purpose |", "|---|---|"]
        for name in names:
            found[name] = group.get_command(click.Context(group), name)
            summary = " ".join(found[name].help.split("\n\n")[0].split())
            yield f"| [`bitatoms {name}`](#bitatoms-{name}) | {summary} |"
        yield ""
    yield from ["**Options**", "", *HEADER]
    yield from (f"| {_names(one)} | {one.help} | |" for one in group.params)
    yield ""
    reading: dict[str, None] = {}
    for name, command in found.items():
        arguments = [one for one in command.params if isinstance(one, Argument)]
        usage = " ".join(["bitatoms", name, "[OPTIONS]", *map(_argument, arguments)])
        yield from [f"## bitatoms {name}", "", "```text", usage, "```", "", *command.help.splitlines(), ""]
        if arguments:
            yield from ["**Arguments**", "", *HEADER]
            yield from (f"| `{one.name.upper()}` | {_cell(one.text)} | {_default(one)} |" for one in arguments)
            yield ""
        for panel, members in panels(command.options()).items():
            if panel != READING:
                yield from [f"**{panel}**", "", *HEADER, *map(_row, members), ""]
                continue
            yield from [f"[{READING}](#reading-options): {', '.join(f'`{one.opts[0]}`' for one in members)}.", ""]
            reading |= dict.fromkeys(map(_row, members))
        yield from ["Examples:", "", *(line for example in command.examples for line in (f"`{example}`", ""))]
        if command.formats:
            yield from ["Formats:", ""]
            yield from (line for name, about in command.formats.items() for line in (f"`{name}`: {about}", ""))
    yield from [f"## {READING}", "", "Commands that read a table share these options.", "", *HEADER, *sorted(reading)]


def _argument(parameter: Argument) -> str:
    """Return an argument as in a usage line."""
    name = parameter.name.upper() + ("..." if parameter.nargs == -1 else "")
    return name if parameter.required else f"[{name}]"


def _row(option: Option) -> str:
    """Return an option as a row of a table."""
    values = f" `{_cell(values_of(option))}`" if values_of(option) else ""
    return f"| {_names(option)}{values} | {_cell(option.help)} | {_default(option)} |"


def _names(option: click.Option) -> str:
    """Return the names of an option as code."""
    return ", ".join(f"`{name}`" for name in [*option.opts, *option.secondary_opts])


def _default(parameter: Argument | Option) -> str:
    """Return the default of a parameter, if it has one."""
    value = parameter.to_info_dict()["default"]
    if parameter.required:
        return "required"
    if getattr(parameter, "is_flag", False):
        value = {True: parameter.opts[0]}.get(value)
    return "" if value is None else f"`{_cell(str(value))}`"


def _cell(text: str) -> str:
    """Return text for a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")
