"""What commands print: lines, tables, notes, errors and JSON; progress; and parameters spelled as options."""

from __future__ import annotations

import functools
import json
import logging
import os
import shlex
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import click
from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from ..errors import Message, Parameter, in_python
from ..formatting import CONTROLS, counted, escape_controls, escape_name, listed_names, quote_name
from ..io.errors import FileError

if TYPE_CHECKING:
    from types import FrameType

    from rich.status import Status
    from rich.table import Table as Grid

    from ..model.result import Round

STANDARD = Path("-")  # the standard input or output
_INTERVAL = 10.0  # seconds between lines of progress without a terminal
_MAX_NAMES = 12  # listed in a line


# --- parameters as they are written on the command line: ``missing="zero"`` is ``--missing zero``


@functools.cache
def _options() -> dict[str, str]:
    """Return the name of the option of each parameter that has one."""
    from ..covers.options import CoverOptions
    from ..images.options import DenoiseOptions
    from ..io.options import ReadOptions
    from ..model.options import RuleOptions
    from ..parameters import flat_declarations
    from ..roles.options import AuditOptions
    from ..run_options import NewRowOptions
    from ..search.options import FitOptions

    kinds = (CoverOptions, ReadOptions, FitOptions, NewRowOptions, DenoiseOptions, RuleOptions, AuditOptions)
    declared = {name: param.option for kind in kinds for name, (_, param) in flat_declarations(kind).items()}
    same = ("output", "threshold", "tile", "groups")
    others = {"sample_weight": "weight-column", "max_rows": "max-rows"}
    return {name: option for name, option in declared.items() if option} | dict(zip(same, same, strict=True)) | others


_COMMANDS = {"bitatoms.cover": "bitatoms roles"}  # that do what a function does
_REPEATED = ("without", "as_category", "as_number")  # options that take one of several values each time


def as_option(parameter: Parameter) -> str:
    """Spell a parameter as an option; as in Python where the command line has no such option.

    Control characters are escaped: the commands accept names of columns in this spelling.
    """
    name, value = parameter.name, parameter.value
    if name not in _options():
        return _COMMANDS.get(name) or in_python(parameter)
    option = _options()[name]
    if value is None or isinstance(value, bool):
        return f"--no-{option}" if value is False else f"--{option}"
    joint = "," if name == "long" else "x"
    text = joint.join(map(str, value)) if isinstance(value, tuple) else str(value)
    spelled = f"--{option} {shlex.quote(escape_name(text))}"
    return f"run {shlex.join(('bitatoms', *sys.argv[1:]))} {spelled}" if parameter.reads_file else spelled


def describe(error: BaseException | str) -> str:
    """Return the message of an error or a warning, with its parameters spelled as options."""
    return error.describe(as_option) if isinstance(error, Message) else str(error)


def as_arguments(options: Mapping[str, Any]) -> str:
    """Return options as they are written on the command line, each with a blank before it."""
    words = []
    for name, value in options.items():
        values = value if name in _REPEATED else (value,)
        words += [f" {as_option(Parameter(name, each))}" for each in values]
    return "".join(words)


def quote_path(path: Path) -> str:
    """Return a path as it is written on the command line."""
    text = str(path)
    return shlex.quote(f"./{text}" if text.startswith("-") and path != STANDARD else text)


# --- printing


class SafeConsole(Console):
    """A console that escapes control characters, apart from its own, and ignores that its reader has gone."""

    def render(self, *args: Any, **kwargs: Any) -> Iterator[Segment]:
        """Render text with its control characters escaped."""
        for segment in super().render(*args, **kwargs):
            yield segment if segment.control else segment._replace(text=escape_controls(segment.text))

    def on_broken_pipe(self) -> None:
        """Let the command continue where rich would exit: it may still have files to write."""
        discard_output(self.file)


def discard_output(stream: IO[Any]) -> None:
    """Discard what is written to a standard stream from now on, and what is left to flush."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


out = SafeConsole(highlight=False, soft_wrap=True)
err = SafeConsole(stderr=True, highlight=False, soft_wrap=True)
_lines = out  # where lines are printed


class Display(NamedTuple):
    """What to print."""

    quiet: bool = False
    json: bool = False
    top: int = 5  # number of atoms, rows, rules or roles

    @property
    def is_silent(self) -> bool:
        """Whether no lines are printed: nothing is, or JSON instead."""
        return self.quiet or self.json


@contextmanager
def writing_to_stdout() -> Iterator[None]:
    """Discard the rest if the standard output is closed, as by `head`; name it in other errors."""
    try:
        yield
    except BrokenPipeError:
        discard_output(sys.stdout)
    except OSError as error:
        discard_output(sys.stdout)
        raise FileError(f"standard output: cannot be written: {error.strerror or error}") from error


@contextmanager
def lines_to_stderr(is_used: bool = True) -> Iterator[None]:
    """Print lines to standard error, if it is used for them."""
    global _lines
    _lines = err if is_used else out
    try:
        yield
    finally:
        _lines = out


def width_of_lines() -> int:
    """Return the number of characters of a line."""
    return _lines.width


def print_line(text: str, style: str = "") -> None:
    """Print a line to standard output, without markup."""
    print_rich(Text(text, style=style))


def print_rich(content: Any, **options: Any) -> None:
    """Print text or a table of rich to standard output."""
    with writing_to_stdout() if _lines is out else nullcontext():
        _lines.print(content, **options)


def new_grid() -> Grid:
    """Return an empty table without lines, whose columns have headings."""
    from rich.table import Table as Grid

    return Grid(box=None, pad_edge=False, show_edge=False, header_style="bold")


def print_page(text: str) -> None:
    """Print help, without styles if standard output is not a terminal."""
    with writing_to_stdout():
        click.echo(text)
        sys.stdout.flush()


def print_json(value: Any) -> None:
    """Print a value as JSON to standard output; control characters in strings are escaped, as JSON allows."""
    text = json.dumps(value, ensure_ascii=False, indent=1)
    with writing_to_stdout():
        sys.stdout.write(CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n")
        sys.stdout.flush()


def print_result(values: dict[str, Any], display: Display, *lines: str) -> None:
    """Print the result of a command: its values as JSON, or lines, or nothing."""
    if display.json:
        print_json(values)
    elif not display.quiet:
        for line in lines:
            print_line(line)


def print_lists(heading: str, lists: Sequence[tuple[str, Sequence[str]]], n_shown: int) -> None:
    """Print a name and other names in each line, and how many lines there are more."""
    if not lists or not n_shown:
        return
    print_line(heading)
    for name, others in lists[:n_shown]:
        print_line(f"  {escape_name(name)}" + (f": {first_names(others)}" if others else ""))
    print_rest(len(lists), n_shown)


def first_names(names: Sequence[str], show: Callable[[str], str] = quote_name) -> str:
    """Return the first names, and the number of the others."""
    return listed_names(names, len(names) if len(names) <= _MAX_NAMES + 2 else _MAX_NAMES, show)


def print_rest(n_all: int, n_shown: int) -> None:
    """Print how many are not shown, if any."""
    if n_all > n_shown:
        print_line(f"and {n_all - n_shown} more (--top {n_all} shows all)")


def print_note(message: Warning | str) -> None:
    """Print a warning to standard error."""
    err.print(Text(f"Note: {describe(message)}", style="yellow"))


def print_error(error: BaseException | str) -> None:
    """Print an error to standard error, in one line."""
    message = describe(error) or type(error).__name__
    err.print(Text.assemble(("bitatoms: ", "bold red"), " ".join(message.split())))


# --- signals: SIGTERM, which `timeout`, `kill` and batch systems send, interrupts a command as Ctrl-C does

_received: signal.Signals | None = None


@contextmanager
def interrupted_by_sigterm() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM, unless the process ignores it.

    Only the first SIGTERM counts: `timeout` sends several, and what follows saves what was done so far.
    """
    global _received
    _received = None
    in_main_thread = threading.current_thread() is threading.main_thread()  # only there, handlers can be installed
    if not in_main_thread or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _received
    if _received is None:
        _received = signal.Signals(number)
        raise KeyboardInterrupt


def interrupt_exit_code() -> int:
    """Return the exit code of an interrupted command: 128 and the number of the signal."""
    return 128 + (_received or signal.SIGINT)


def describe_interrupt() -> str:
    """Return what ended a command."""
    return "interrupted" if _received is None else f"interrupted by {_received.name}"


# --- notes about kernels that are compiled, and about the device


class _Notes(logging.Handler):
    """Shows log messages: on the line of progress or, without one, as notes."""

    def __init__(self, name: str, is_repeated: bool) -> None:
        super().__init__()
        self.logger, self.is_repeated = logging.getLogger(name), is_repeated
        self.show: Callable[[str], object] | None = None  # on the line of progress
        self._is_noted = False

    def emit(self, record: logging.LogRecord) -> None:
        """Show a message on standard error."""
        if self.show is not None:
            self.show(record.getMessage())
        elif self.is_repeated or not self._is_noted:
            self._is_noted = True
            print_note(record.getMessage())

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Show messages, until the handler is removed."""
        level, self._is_noted = self.logger.level, False
        self.logger.addHandler(self)
        self.logger.setLevel(logging.INFO)
        try:
            yield
        finally:
            self.logger.removeHandler(self)
            self.logger.setLevel(level)


_compilation = _Notes("bitatoms.kernels", is_repeated=False)
_device = _Notes("bitatoms.device_choice", is_repeated=True)


@contextmanager
def printing_notes() -> Iterator[None]:
    """Print notes when kernels are compiled and a device is chosen, until `hide_notes` is called."""
    with _compilation.installed(), _device.installed():
        yield


def hide_notes() -> None:
    """Print no warnings and no notes until the command ends: see `run` in app.py."""
    warnings.simplefilter("ignore")
    for notes in (_compilation, _device):
        notes.logger.removeHandler(notes)


# --- progress


@contextmanager
def show_status(text: str, quiet: bool, n_rows: int = 0) -> Iterator[ProgressLine]:
    """Show what is in progress, on a terminal also how many kernels are compiled; yield the line to update."""
    if quiet or not err.is_terminal:
        yield ProgressLine(quiet, None, text, n_rows)
        return
    before = _compilation.show
    with err.status(Text(text)) as status:
        _compilation.show = lambda note: status.update(Text(f"{text}: {note}"))
        try:
            yield ProgressLine(quiet, status, text, n_rows)
        finally:
            _compilation.show = before


class ProgressLine:
    """The progress of a task: a line that changes, or, without a terminal, a new line now and then."""

    def __init__(self, quiet: bool, status: Status | None, task: str = "", n_rows: int = 0) -> None:
        self.quiet, self.status = quiet, status
        self._task, self._n_rows = task, n_rows  # 0: unknown
        self._started = self._printed = time.monotonic()

    def update_rows(self, n_done: int) -> None:
        """Show how many rows have been processed."""
        rows = f"{n_done} of {self._n_rows}" if self._n_rows else f"{n_done}"
        self.update(f"{self._task}: {rows} rows, {self.seconds}")

    @property
    def seconds(self) -> str:
        """The time since the task began."""
        return f"{time.monotonic() - self._started:.0f} s"

    def update(self, text: str, hint: str = "") -> None:
        """Show a text; without a terminal, only if the last one was shown some time ago."""
        if self.status is not None:
            self.status.update(Text.assemble(text, (hint, "dim")))
        elif not self.quiet and time.monotonic() - self._printed > _INTERVAL:
            self._printed = time.monotonic()
            err.print(Text(text))


class SearchProgress:
    """The progress of a search; a callback of the estimator."""

    def __init__(self, line: ProgressLine, n_rows: int, keeps_model: bool) -> None:
        self.line, self.n_rows = line, n_rows
        self._hint = "  (Ctrl-C keeps the best model so far)" if keeps_model else ""
        self._last_pass = ""  # the result of the last pass over all rows

    def __call__(self, row: Round) -> None:
        """Show a round of the search, or a pass over all rows."""
        result = f"{counted(row.atoms, 'atom')} ({row.algebra.upper()}), {row.bits / max(1, row.rows):.2f} bits per row"
        task = "Learning"
        if row.rows < self.n_rows:
            task = f"Searching {row.rows} of {self.n_rows} rows"
        elif row.move.startswith("pass "):
            task = row.move.capitalize()
            self._last_pass = f"; after {row.move.partition(' over')[0]}: {result}"
        self.line.update(f"{task}: {result}, {self.line.seconds}", self._hint)

    def update_rows(self, n_done: int) -> None:
        """Show how far a pass over all rows has come."""
        share = f"{n_done / self.n_rows:.0%} of {self.n_rows} rows"
        # Bits per row of the subsample and of all rows are not comparable, so only those of passes are shown here.
        self.line.update(f"Processing all rows: {share}{self._last_pass}, {self.line.seconds}", self._hint)
