"""What the command line says: notes, errors in its own terms, progress, and what was found."""

from __future__ import annotations

import json
import re
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.status import Status
from rich.table import Table as Grid
from rich.text import Text

if TYPE_CHECKING:
    from ..algorithms.result import Round
    from ..model import Model
    from ..table import Table

_OPTIONS = (
    "algebra binarize blocks duplicates format header layer max_iter max_time missing n_components objective row_names "
    "without search separator max_components n_jobs random_state"
)
_SPELLED = {"n_components": "atoms", "max_components": "max-atoms", "n_jobs": "jobs", "random_state": "seed"}
_ALONE = r"(?<![\w./\\'\"-])"  # not part of the name of a file, or of a column, which stands in quotes
_REMEDY = re.compile(
    rf"{_ALONE}(?P<name>{'|'.join(_OPTIONS.split())})=(?P<value>\"[^\"]*\"|'[^']*'|\([\d, ]+\)|[\w.+-]*\w)?"
)
_NAME = re.compile(rf"{_ALONE}(?P<name>{'|'.join(name for name in _OPTIONS.split() if '_' in name)})\b(?!\.?[\w/\\-])")
_EVERY = 10.0  # seconds between lines of progress where there is no terminal
_WIDEST = 40  # pixels of a picture that is drawn in the terminal
_SHOWN = 12  # features of an atom in one line

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def in_options(message: str) -> str:
    """A message with the options as they are written on the command line: missing="zero" becomes --missing zero."""

    def spelled(found: re.Match[str]) -> str:
        name, value = found.group("name"), (found.groupdict().get("value") or "").strip("\"'")
        if value.startswith("("):
            value = "x".join(re.findall(r"\d+", value))
        return f"--{_SPELLED.get(name, name).replace('_', '-')} {shlex.quote(value) if value else ''}".rstrip()

    return _NAME.sub(spelled, _REMEDY.sub(spelled, message))


def note(message: str) -> None:
    """Something worth knowing, on the standard error."""
    err.print(Text(f"Note: {in_options(message)}", style="yellow"))


def fail(message: str) -> None:
    """What went wrong, on the standard error, in one line."""
    err.print(Text.assemble(("bitatoms: ", "bold red"), " ".join(in_options(message).split())))


@contextmanager
def doing(what: str, quiet: bool) -> Iterator[Status | None]:
    """Say what is being done for as long as it takes, where there is a terminal to say it on."""
    if quiet or not err.is_terminal:
        yield None
        return
    with err.status(Text(what)) as status:
        yield status


class Progress:
    """How a search gets on: a line that changes, or where there is no terminal, one now and then."""

    def __init__(self, n_rows: int, quiet: bool, status: Status | None, keeps: bool) -> None:
        self.n_rows = max(1, n_rows)
        self.quiet = quiet
        self.started = self.told = time.monotonic()
        self._status = status
        self._hint = "  [dim](Ctrl-C keeps it)[/dim]" if keeps else ""

    def __call__(self, row: Round) -> None:
        """One more round of the search."""
        now = time.monotonic()
        atoms = "1 atom" if row.atoms == 1 else f"{row.atoms} atoms"
        told = f"{atoms} ({row.algebra.upper()}), {row.bits / self.n_rows:.2f} bits a row, {now - self.started:.0f} s"
        if self._status is not None:
            self._status.update(f"Learning: {told}{self._hint}")
        elif not self.quiet and now - self.told > _EVERY:
            self.told = now
            err.print(f"Learning: {told}")


def say(text: str, style: str = "") -> None:
    """A line on the standard output, as it is."""
    out.print(Text(text, style=style))


def in_words(table: Table) -> str:
    """How a table was understood, so that a wrong guess is seen."""
    names = [what for what, there in (("rows", table.rows), ("columns", table.columns)) if there]
    named = f"{' and '.join(names)} have names" if names else "without names"
    return f"{shape_in_words(table)}, {named}"


def shape_in_words(table: Table) -> str:
    """How large a table is."""
    rows = "1 row" if len(table) == 1 else f"{len(table)} rows"
    columns = "1 column" if table.shape[1] == 1 else f"{table.shape[1]} columns"
    return f"{rows} of {columns}, {table.bits.density:.2%} ones"


def say_json(value: Any) -> None:
    """A value as JSON on the standard output."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=1) + "\n")


def strongest(model: Model, most: int, heading: str) -> None:
    """The atoms that save most bits, by name."""
    patterns = model.patterns()[: max(0, most)]
    if not patterns:
        return
    say(heading)
    if model.picture is not None and model.picture.tile[1] <= _WIDEST:
        _pictures(model, len(patterns))
        return
    grid = Grid(box=None, pad_edge=False, show_edge=False, header_style="bold")
    grid.add_column("atom", justify="right")
    grid.add_column("features", ratio=1)
    grid.add_column("rows", justify="right", no_wrap=True)
    grid.add_column("bits saved", justify="right", no_wrap=True)
    for pattern in patterns:
        shown = len(pattern.features) if len(pattern.features) <= _SHOWN + 2 else _SHOWN
        names = ", ".join(pattern.features[:shown])
        if len(pattern.features) > shown:
            names += f" and {len(pattern.features) - shown} more"
        grid.add_row(str(pattern.atom), Text(names), f"{pattern.rows} ({pattern.share:.1%})", str(pattern.bits_saved))
    out.print(grid, soft_wrap=False)
    hidden = model.atoms.n_rows - len(patterns)
    if hidden:
        say(f"and {hidden} more (--top {model.atoms.n_rows} shows all)")


def _pictures(model: Model, most: int) -> None:
    """The atoms as pictures, on the bias, as many side by side as fit."""
    assert model.picture is not None
    tall, wide = model.picture.tile
    captions = [f"{place + 1}: {model.uses[place]} rows" for place in range(most)]
    width = max(wide, *map(len, captions))
    across = max(1, out.width // (width + 3))
    for first in range(0, most, across):
        places = range(first, min(first + across, most))
        drawn = [_drawn((model.atoms[place] ^ model.bias).reshape(tall, wide)) for place in places]
        for lines in (*zip(*drawn, strict=True), [captions[place] for place in places]):
            say("   ".join(line.ljust(width) for line in lines).rstrip())
        say("")


def _drawn(picture: np.ndarray) -> list[str]:
    """A picture in half blocks, two lines of pixels to a line of text."""
    if len(picture) % 2:
        picture = np.vstack([picture, np.zeros_like(picture[:1])])
    pairs = picture.reshape(-1, 2, picture.shape[1])
    return ["".join(" ▀▄█"[top + 2 * bottom] for top, bottom in pair.T) for pair in pairs]


def as_json(model: Model, most: int | None = None) -> dict[str, Any]:
    """What was found, for machines."""
    length = model.codelength
    return {
        "atoms": model.atoms.n_rows,
        "algebra": model.algebra,
        "samples": model.n_samples,
        "features": model.atoms.n_cols,
        "bits": length.total,
        "bits_errors": length.errors,
        "bits_codes": length.codes,
        "bits_atoms": length.atoms,
        "bits_without": model.bits_without,
        "wrong_bits": model.wrong_bits,
        "ones": None if model.ones is None else int(model.ones.sum()),
        "ones_missed": None if model.missed is None else int(model.missed.sum()),
        "ended": model.ended,
        "patterns": [pattern._asdict() for pattern in model.patterns()[:most]],
    }
