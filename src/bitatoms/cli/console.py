"""Printing: lines, notes, errors and JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console
from rich.text import Text

from .spelling import describe

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def print_line(text: str, style: str = "") -> None:
    """Print a line to standard output, without markup."""
    out.print(Text(text, style=style))


def print_json(value: Any) -> None:
    """Print a value as JSON to standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=1) + "\n")


def print_note(message: Warning | str) -> None:
    """Print a warning to standard error."""
    err.print(Text(f"Note: {describe(message)}", style="yellow"))


def print_error(error: BaseException | str) -> None:
    """Print an error to standard error, in one line."""
    message = describe(error) or type(error).__name__
    err.print(Text.assemble(("bitatoms: ", "bold red"), " ".join(message.split())))
