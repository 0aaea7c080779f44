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
    from ..core.model import Model
    from ..core.result import Round
    from ..table import Table

_OPTIONS = (
    "algebra binarize blocks checkpoint duplicates format header layer max_iter max_memory max_time missing tile "
    "n_components objective resume row_names sample_rows without search separator max_components n_jobs random_state"
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
        value = "" if value == "True" else value
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


class Line:
    """How long work gets on: a line that changes, or where there is no terminal, one now and then."""

    def __init__(self, quiet: bool, status: Status | None, what: str = "", n_rows: int = 0) -> None:
        self.quiet = quiet
        self.n_rows = n_rows  # 0: not known
        self.started = self.told = time.monotonic()
        self._status = status
        self._what = what

    def rows(self, done: int) -> None:
        """So many rows are gone through."""
        far = f"{done} of {self.n_rows}" if self.n_rows else f"{done}"
        self.tell(f"{self._what}: {far} rows, {self.seconds}")

    @property
    def seconds(self) -> str:
        """For how long it has gone on."""
        return f"{time.monotonic() - self.started:.0f} s"

    def tell(self, told: str, hint: str = "") -> None:
        """Say this, if it is time."""
        if self._status is not None:
            self._status.update(Text.assemble(told, (hint, "dim")))
        elif not self.quiet and time.monotonic() - self.told > _EVERY:
            self.told = time.monotonic()
            err.print(Text(told))


class Progress(Line):
    """How a search gets on. The bits of a sample and those of all rows are never said together."""

    def __init__(self, n_rows: int, quiet: bool, status: Status | None, keeps: bool) -> None:
        super().__init__(quiet, status, n_rows=n_rows)
        self._hint = "  (Ctrl-C keeps it)" if keeps else ""
        self._figures = ""  # of the last pass over all rows

    def __call__(self, row: Round) -> None:
        """One more round of the search, or pass over all rows."""
        atoms = "1 atom" if row.atoms == 1 else f"{row.atoms} atoms"
        figures = f"{atoms} ({row.algebra.upper()}), {row.bits / max(1, row.rows):.2f} bits a row"
        what = "Learning"
        if row.rows < self.n_rows:
            what = f"Searching {row.rows} of {self.n_rows} rows"
        elif row.move.startswith("pass "):
            what = row.move.capitalize()
            self._figures = f"; after {row.move.partition(' over')[0]}: {figures}"
        self.tell(f"{what}: {figures}, {self.seconds}", self._hint)

    def rows(self, done: int) -> None:
        """A pass over all rows has come so far."""
        far = f"{done / self.n_rows:.0%} of {self.n_rows} rows"
        self.tell(f"Going through all rows: {far}{self._figures}, {self.seconds}", self._hint)


def say(text: str, style: str = "") -> None:
    """A line on the standard output, as it is."""
    out.print(Text(text, style=style))


def in_words(table: Table) -> str:
    """How a table was understood, so that a wrong guess is seen."""
    return f"{shape_in_words(table)}, {names_in_words(table.row_names, table.columns)}"


def shape_in_words(table: Table) -> str:
    """How large a table is, and how full."""
    return f"{size_in_words(table.shape)}, {table.bits.density:.2%} ones"


def size_in_words(shape: tuple[int, int]) -> str:
    """How large a table is."""
    rows = "1 row" if shape[0] == 1 else f"{shape[0]} rows"
    return f"{rows} of {'1 column' if shape[1] == 1 else f'{shape[1]} columns'}"


def names_in_words(rows: object, columns: object) -> str:
    """Whether the rows and the columns of a table have names."""
    names = [what for what, there in (("rows", rows), ("columns", columns)) if there]
    return f"{' and '.join(names)} have names" if names else "without names"


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
