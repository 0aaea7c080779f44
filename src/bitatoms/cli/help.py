"""Help of commands: the options that people use, or with ``--help-all`` all options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any, Literal

import click

from .output import print_page

_NAMES = 32  # characters of the names of options, in their column
_FEW = 12  # options; a command with as many shows them all
_ALL = "bitatoms.help_all"  # whether all options are shown
SETTINGS = {"max_content_width": 120}
Row = tuple[str, str]
FileUse = Literal["read", "write"] | None  # of a file that a parameter names


class Option(click.Option):
    """An option of a command, and the panel of the help that shows it."""

    def __init__(
        self, names: Sequence[str], *, panel: str = "Options", is_common: bool = True, file: FileUse = None, **more: Any
    ) -> None:
        super().__init__(names, **more)
        self.panel, self.is_common, self.file = panel, is_common, file

    def row(self) -> Row:
        """Return the names of the option and its help."""
        names = " / ".join(", ".join(each) for each in (self.opts, self.secondary_opts) if each)
        default = self.show_default if isinstance(self.show_default, str) else self.default
        is_shown = self.show_default and not callable(default) and isinstance(default, (str, int, float, Path))
        shown = f"  [default: {default}]" if is_shown and not isinstance(default, bool) else ""
        required = "  [required]" if self.required else ""
        return f"{names} {values_of(self)}".rstrip(), f"{self.help}{shown}{required}"


class Argument(click.Argument):
    """An argument of a command, with its help."""

    def __init__(self, names: Sequence[str], text: str, *, file: FileUse = None, **more: Any) -> None:
        super().__init__(names, **more)
        self.text, self.file = text, file

    def row(self) -> Row:
        """Return the name of the argument and its help."""
        return (self.name or "").upper(), self.text


class Command(click.Command):
    """A command, its examples, and the option ``--help-all`` if there are options that ``--help`` only names."""

    def __init__(self, name: str, examples: Sequence[str], *, formats: Mapping[str, str], **more: Any) -> None:
        super().__init__(name, context_settings=SETTINGS, add_help_option=False, **more)
        self.examples, self.formats = examples, formats
        if len(self.options()) <= _FEW:
            for option in self.options():
                option.is_common = True
        self.hides = not all(option.is_common for option in self.options())
        self.params += help_options(self.hides)

    def options(self) -> list[Option]:
        """Return the options, without those that show help."""
        return [each for each in self.params if isinstance(each, Option) and each.expose_value]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write usage, what the command does, its options and examples."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        write_rows(formatter, "Arguments", (each.row() for each in self.params if isinstance(each, Argument)))
        options, shows_all = self.options(), ctx.meta.get(_ALL, not self.hides)
        if shows_all:
            for panel, members in panels(options).items():
                write_rows(formatter, panel, (option.row() for option in members))
        else:
            write_rows(formatter, "Options", (option.row() for option in options if option.is_common))
            rest = panels(option for option in options if not option.is_common)
            names = [(panel, " ".join(option.opts[0] for option in members)) for panel, members in rest.items()]
            write_rows(formatter, "More, described by --help-all", names)
        if shows_all:
            write_rows(formatter, "Formats", self.formats.items())
        with formatter.section(heading("Examples")):
            for example in self.examples:
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


def panels(options: Iterable[Option]) -> dict[str, list[Option]]:
    """Return options by their panels: first those of the command, last those that all commands have."""
    found: dict[str, list[Option]] = {}
    for option in options:
        found.setdefault(option.panel, []).append(option)
    return found


def values_of(option: click.Option) -> str:
    """Return what an option takes: its choices, or a word for its values."""
    if option.is_flag:
        return ""
    return option.metavar or "|".join(getattr(option.type, "choices", ()))


def heading(text: str) -> str:
    """Return a heading, in bold where the output is a terminal."""
    return click.style(text, bold=True)


def write_rows(formatter: click.HelpFormatter, title: str, rows: Iterable[Row]) -> None:
    """Write names and their meaning in two columns below a heading; names are not broken."""
    listed = list(rows)
    if not listed:
        return
    indent = min(_NAMES, max(len(name) for name, _ in listed)) + 4
    with formatter.section(heading(title)):
        for name, text in listed:
            first, *others = wrap(text, formatter.width - indent, break_on_hyphens=False)
            is_short = len(name) <= indent - 4
            shown = f"  {click.style(name, fg='cyan')}"
            gap = " " * (indent - len(name) - 2) if is_short else "\n" + " " * indent
            formatter.write("".join([f"{shown}{gap}{first}\n", *(f"{'':{indent}}{line}\n" for line in others)]))


def help_options(hides: bool = False) -> list[click.Parameter]:
    """Return the options that print help."""
    more = " (--help-all describes all options)" if hides else ""
    found = [acting("-h/--help", f"Print this help{more}.", _print_help)]
    return [*found, acting("--help-all", "Print the help of all options.", _print_all, hidden=not hides)]


def acting(names: str, help: str, action: Callable[[click.Context, Any, bool], None], **more: Any) -> Any:
    """Return an option that does something itself, before a command runs."""
    how: dict[str, Any] = {"is_flag": True, "is_eager": True, "expose_value": False, "callback": action}
    return click.Option(names.split("/"), help=help, **how | more)


def _print_help(ctx: click.Context, option: click.Parameter, is_requested: bool) -> None:
    if is_requested and not ctx.resilient_parsing:
        print_page(ctx.get_help())
        ctx.exit()


def _print_all(ctx: click.Context, option: click.Parameter, is_requested: bool) -> None:
    ctx.meta[_ALL] = is_requested
    _print_help(ctx, option, is_requested)
