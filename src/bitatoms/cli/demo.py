"""`bitatoms demo`: write generated data to a file, then show and run the commands that a user would enter."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import typer

from .. import datasets
from ..bits import BitMatrix
from ..columns.table import Picture, Table
from ..html.tables import DataTable
from ..io.api import write
from .console import Display, print_json, print_line


class Demonstration(NamedTuple):
    """Data, the file to write them to, and the options for reading it."""

    about: str
    data: Callable[[], Table | dict[str, list[Any]]]  # a dict contains categories and numbers
    file: str
    options: str = ""


def _digits() -> Table:
    return Table(BitMatrix.from_dense(datasets.digits()[0]), picture=Picture((8, 8)))


def _halftone() -> Table:
    return Table(BitMatrix.from_dense(datasets.halftone()))


_ALL = {
    "baskets": Demonstration("Generated market baskets", datasets.baskets, "baskets.csv"),
    "customers": Demonstration("Generated customers of a shop", datasets.customers, "customers.csv", "--categories"),
    "genotypes": Demonstration("Generated genotypes of three populations", datasets.genotypes, "genotypes.npz"),
    "digits": Demonstration("Handwritten digits, from scikit-learn", _digits, "digits.npz"),
    "halftone": Demonstration("A halftone image", _halftone, "halftone.pbm", "--blocks 16x16"),
}


def run(which: str, folder: Path, run_command: Callable[..., Any], display: Display) -> None:
    """Write the data, fit a model and write a report, with the commands for it."""
    demonstration = _ALL[which]
    folder.mkdir(parents=True, exist_ok=True)
    data, model, page = folder / demonstration.file, folder / f"{which}-model.npz", folder / f"{which}.html"
    generated = demonstration.data()
    if isinstance(generated, Table):
        write(generated, data)
    else:
        DataTable(tuple(generated), zip(*generated.values(), strict=True)).write(data)
    if not display.is_silent:
        print_line(f"{demonstration.about}: written to {data}")
    for command in (
        ["fit", str(data), *demonstration.options.split(), "-o", str(model)],
        ["report", str(model), str(data), *demonstration.options.split(), "-o", str(page)],
    ):
        if display.is_silent:
            command.append("--quiet")
        else:
            print_line(f"\n$ bitatoms {shlex.join(command)}", style="bold")
        if code := run_command(command, standalone_mode=False):
            raise typer.Exit(code)
    if display.json:
        print_json({"about": demonstration.about, "table": str(data), "model": str(model), "report": str(page)})
