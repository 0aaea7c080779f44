"""What ``bitatoms demo`` does: made-up data in a file, then the commands a user would give, shown and run."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import typer

from .. import datasets
from ..bits import BitMatrix
from ..io.api import write
from ..table import Picture, Table
from .console import say


class Demonstration(NamedTuple):
    """Data, the file it goes into, and options for reading it."""

    about: str
    data: Callable[[], Table]
    file: str
    options: str = ""


def _digits() -> Table:
    return Table(BitMatrix.from_dense(datasets.digits()[0]), picture=Picture((8, 8)))


def _halftone() -> Table:
    return Table(BitMatrix.from_dense(datasets.halftone()))


_ALL = {
    "baskets": Demonstration("Made-up market baskets", datasets.baskets, "baskets.csv"),
    "genotypes": Demonstration("Made-up genotypes of three populations", datasets.genotypes, "genotypes.csv"),
    "digits": Demonstration("Handwritten digits, from scikit-learn", _digits, "digits.npz"),
    "halftone": Demonstration("A halftone picture", _halftone, "halftone.pbm", "--blocks 16x16"),
}


def run(which: str, folder: Path, app: typer.Typer) -> None:
    """Write the data, learn from it and report on it."""
    demonstration = _ALL[which]
    folder.mkdir(parents=True, exist_ok=True)
    data, model, page = folder / demonstration.file, folder / f"{which}-model.npz", folder / f"{which}.html"
    write(demonstration.data(), data)
    say(f"{demonstration.about}: written to {data}")
    for command in (
        ["fit", str(data), *demonstration.options.split(), "-o", str(model)],
        ["report", str(model), str(data), *demonstration.options.split(), "-o", str(page)],
    ):
        say(f"\n$ bitatoms {shlex.join(command)}", style="bold")
        if code := app(command, standalone_mode=False):
            raise typer.Exit(code)
