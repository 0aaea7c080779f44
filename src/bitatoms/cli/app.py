"""The command line: its commands, each imported when it is used, errors and exit codes."""

from __future__ import annotations

import io
import os
import sys
import warnings
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from .._version import __version__
from ..errors import NoAtomsWarning
from ..system.libraries import explained
from .help import SETTINGS, acting, heading, help_options, write_rows
from .output import (
    describe_interrupt,
    interrupt_exit_code,
    interrupted_by_sigterm,
    print_error,
    print_line,
    print_note,
    print_page,
    printing_notes,
)
from .shells import VARIABLE, add_powershell, completion_options

BAD_INPUT = 2
_VERBOSE = "bitatoms.verbose"  # whether --version prints more
# The modules of commands, and what they do: the first sentence of the help of each.
COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "Learn": {
        "demo": ("demo", "Try bitatoms: write an example table, learn its patterns and write a report."),
        "fit": ("learn", "Learn the patterns (atoms) of a table, and print a summary."),
        "stability": ("learn", "Search parts of the rows, and print how often each atom is found again."),
        "crossvalidate": ("learn", "Hide known cells, and compare how well models predict them."),
        "compare": ("compare", "Run bitatoms and other methods on the same data."),
        "pack": ("apply", "Pack a table into a store on disk, in chunks; the table may be larger than memory."),
        "warmup": ("demo", "Compile the kernels of all common calls now."),
    },
    "Apply": {
        "transform": ("apply", "Write the codes of a table: which atoms each row uses."),
        "reconstruct": ("apply", "Reconstruct a table from its atoms, without noise."),
        "complete": ("apply", "Fill in the missing values of a table; known values stay as they are."),
        "recommend": ("explain", "Print the next items of each row: the most probable ones that it does not have."),
        "convert": ("apply", "Convert a table to another format, with its row and column names."),
    },
    "Explain": {
        "show": ("explain", "Describe a model or a packed store."),
        "report": ("explain", "Write an HTML page to explore the patterns."),
        "rules": ("explain", "Print rules: of the rows with some features of a pattern, which share has another one."),
        "score": ("explain", "Print the rows that fit worst, with the cells that make them so."),
    },
    "Special tables": {
        "roles": ("roles", "Find the roles of a table of users and permissions: an exact cover."),
        "roles-diff": ("roles", "Compare two sets of roles: which are unchanged, changed, new and gone."),
        "denoise": ("images", "Remove noise from a black-and-white picture."),
        "inpaint": ("images", "Fill the holes of a black-and-white picture."),
    },
}
_GONE = {"reproduce": "; in a clone of the repository, 'make paper' repeats the experiments of the paper"}


class Commands(click.Group):
    """The group of commands: it imports a command when it is used, and prints errors in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, as they are grouped in the help."""
        return [name for group in COMMANDS.values() for name in group]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import a command."""
        module = next((group[name][0] for group in COMMANDS.values() if name in group), None)
        if module is None:
            return None
        found: click.Command = getattr(import_module(f".{module}", __package__), name.replace("-", "_"))
        return found

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Return the command that is named first, or raise an error with similar names."""
        if args[0] not in self.list_commands(ctx) and not args[0].startswith("-"):
            near = " or ".join(map(repr, get_close_matches(args[0], self.list_commands(ctx))))
            hint = f", did you mean {near}?" if near else _GONE.get(args[0], "")
            raise click.UsageError(f"no such command: {args[0]!r}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the program does, and its commands by groups."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        for title, group in COMMANDS.items():
            write_rows(formatter, title, ((name, about) for name, (_, about) in group.items()))
        options = [each for each in self.params if isinstance(each, click.Option)]
        write_rows(formatter, "Options", ((", ".join(each.opts), each.help or "") for each in options))
        with formatter.section(heading("Start with")):
            formatter.write("  bitatoms demo\n")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Print help if there is nothing to parse."""
        if not args and not ctx.resilient_parsing:
            print_page(ctx.get_help())
            ctx.exit(BAD_INPUT)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, and translate exceptions to exit codes."""
        if ctx.meta.get(_VERBOSE):  # otherwise the version was printed before
            raise click.UsageError("--verbose goes with --version", ctx)
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print_error(f"{describe_interrupt()}; nothing was written")
            raise click.exceptions.Exit(interrupt_exit_code()) from None
        except (ValueError, ImportError, OSError, MemoryError, EOFError) as error:
            if os.environ.get("BITATOMS_DEBUG"):
                raise
            print_error(explained(error) or error)
            raise click.exceptions.Exit(BAD_INPUT) from error


def _print_version(ctx: click.Context, option: click.Parameter, is_requested: bool) -> None:
    if is_requested:
        from ..versions import describe_installation

        print_line(describe_installation() if ctx.meta.get(_VERBOSE) else f"bitatoms {__version__}")
        ctx.exit()


def _note_verbose(ctx: click.Context, option: click.Parameter, is_requested: bool) -> None:
    ctx.meta[_VERBOSE] = is_requested


app = Commands(
    "bitatoms",
    help="Find the few binary patterns (atoms) that explain a large binary table.",
    context_settings=SETTINGS,
    add_help_option=False,
    params=[
        acting("--version", "Print the version.", _print_version, is_eager=False),
        acting("--verbose", "With --version: all that is installed, for bug reports.", _note_verbose),
        *completion_options(),
        *help_options(),
    ],
)


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    """Print a warning as a note, unless it is a deprecation meant for programmers, or said by the summary of a fit."""
    if not issubclass(category, (DeprecationWarning, PendingDeprecationWarning, NoAtomsWarning)):
        print_note(message)


def run(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0 for success, 2 for invalid input, 130 after Ctrl-C, 143 after SIGTERM."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # show characters that the terminal lacks as question marks
            stream.reconfigure(errors="replace")
    with warnings.catch_warnings(), interrupted_by_sigterm(), printing_notes():
        warnings.showwarning = _show_warning
        if VARIABLE in os.environ:  # click completes words, and ends
            add_powershell()
        try:
            sys.exit(app.main(arguments, prog_name="bitatoms", standalone_mode=False))
        except click.Abort:  # Ctrl-C before a command runs
            sys.exit(interrupt_exit_code())
        except click.ClickException as error:
            context = getattr(error, "ctx", None)
            hint = "" if context is None else f"; see {context.command_path} --help"
            print_error(f"{error.format_message().rstrip('.')}{hint}")
            sys.exit(error.exit_code)
