"""Printing: lines, notes, errors and JSON."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import IO, Any, NamedTuple

from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from ..io.errors import FileError
from ..verbosity import CONTROLS, escape_controls
from .spelling import describe


def discard_output(stream: IO[Any]) -> None:
    """Discard what is written to a standard stream from now on, and what is left to flush."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _on_broken_pipe(console: Console) -> None:
    """Let the command continue where rich would exit: it may still have files to write."""
    discard_output(console.file)


def _render_escaped(console: Console, *args: Any, **kwargs: Any) -> Iterator[Segment]:
    """Render text with its control characters escaped; those that rich itself emits are kept."""
    for segment in _render(console, *args, **kwargs):
        yield segment if segment.control else segment._replace(text=escape_controls(segment.text))


_render = Console.render
Console.render = _render_escaped  # type: ignore[method-assign, assignment]  # also where typer prints usage errors
Console.on_broken_pipe = _on_broken_pipe  # type: ignore[method-assign, assignment]  # also where typer prints help
out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)
_lines = out  # where lines are printed


class _CompilationNotes(logging.Handler):
    """Shows what the kernels log, how many are compiled: on the line of progress or, without one, as one note."""

    show: Callable[[str], object] | None = None  # on the line of progress
    _is_noted = False

    def emit(self, record: logging.LogRecord) -> None:
        """Show a message on standard error."""
        if self.show is not None:
            self.show(record.getMessage())
        elif not self._is_noted:
            self._is_noted = True
            print_note(record.getMessage())


class _DeviceNotes(logging.Handler):
    """Shows where ``--device auto`` computes, and why."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a message to standard error."""
        print_note(record.getMessage())


_kernels, _notes = logging.getLogger("bitatoms.kernels"), _CompilationNotes()
_devices, _device_notes = logging.getLogger("bitatoms.device_choice"), _DeviceNotes()


@contextmanager
def printing_notes() -> Iterator[None]:
    """Print notes when kernels are compiled and a device is chosen, until `hide_notes` is called."""
    levels, _notes._is_noted = (_kernels.level, _devices.level), False
    for logger, handler in ((_kernels, _notes), (_devices, _device_notes)):
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        hide_notes()
        _kernels.setLevel(levels[0])
        _devices.setLevel(levels[1])


@contextmanager
def showing_compilation(show: Callable[[str], object]) -> Iterator[None]:
    """Show on a line of progress how many kernels are compiled."""
    before, _notes.show = _notes.show, show
    try:
        yield
    finally:
        _notes.show = before


def hide_notes() -> None:
    """Print no notes about compilation and devices."""
    _kernels.removeHandler(_notes)
    _devices.removeHandler(_device_notes)


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
def lines_to_stderr() -> Iterator[None]:
    """Print lines to standard error."""
    global _lines
    _lines = err
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


def print_json(value: Any) -> None:
    """Print a value as JSON to standard output; control characters in strings are escaped, as JSON allows."""
    text = json.dumps(value, ensure_ascii=False, indent=1)
    with writing_to_stdout():
        sys.stdout.write(CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n")
        sys.stdout.flush()


class Display(NamedTuple):
    """What to print."""

    quiet: bool = False
    json: bool = False
    top: int = 5  # number of atoms

    @property
    def is_silent(self) -> bool:
        """Whether no lines are printed: nothing is, or JSON instead."""
        return self.quiet or self.json


def print_result(values: dict[str, Any], display: Display, *lines: str) -> None:
    """Print the result of a command: its values as JSON, or lines, or nothing."""
    if display.json:
        print_json(values)
    elif not display.quiet:
        for line in lines:
            print_line(line)


def print_note(message: Warning | str) -> None:
    """Print a warning to standard error."""
    err.print(Text(f"Note: {describe(message)}", style="yellow"))


def print_error(error: BaseException | str) -> None:
    """Print an error to standard error, in one line."""
    message = describe(error) or type(error).__name__
    err.print(Text.assemble(("bitatoms: ", "bold red"), " ".join(message.split())))
