"""`bitatoms demo` and `bitatoms warmup`: try the program, and compile its kernels before they are needed."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from .. import datasets
from . import options
from .output import Display, print_json, print_line, print_result, show_status

if TYPE_CHECKING:
    from ..columns.table import Table


class Demonstration(NamedTuple):
    """Data, the file to write them to, and the options for reading it."""

    about: str
    data: Callable[[], Table | dict[str, list[Any]]]  # a dict contains categories and numbers
    file: str
    options: str = ""


def _pictures(pixels: Any, tile: tuple[int, int] | None = None) -> Table:
    from ..bits import BitMatrix
    from ..columns.table import Picture, Table

    return Table(BitMatrix.from_dense(pixels), picture=None if tile is None else Picture(tile))


_ALL = {
    "baskets": Demonstration("Generated market baskets", lambda: datasets.baskets(), "baskets.csv"),
    "customers": Demonstration(
        "Generated customers of a shop", lambda: datasets.customers(), "customers.csv", "--categories"
    ),
    "genotypes": Demonstration(
        "Generated genotypes of three populations", lambda: datasets.genotypes(), "genotypes.npz"
    ),
    "digits": Demonstration(
        "Handwritten digits, from scikit-learn", lambda: _pictures(datasets.digits()[0], (8, 8)), "digits.npz"
    ),
    "halftone": Demonstration(
        "A halftone image", lambda: _pictures(datasets.halftone()), "halftone.pbm", "--blocks 16x16"
    ),
}


@options.command("bitatoms demo", "bitatoms demo genotypes --folder somewhere")
def demo(
    data: str = options.argument("The data to use.", click.Choice(list(_ALL)), None, default="baskets"),
    folder: Path = options.option("--folder", Path("bitatoms-demo"), "Folder to write to."),
    shown: Display = options.display(),
) -> None:
    """Try bitatoms: write an example table, learn its patterns and write a report. Prints the commands it runs."""
    from ..columns.table import Table
    from ..html.tables import DataTable
    from ..io.api import write
    from .app import app

    about, generate, name, reading = _ALL[data]
    folder.mkdir(parents=True, exist_ok=True)
    table, model, page = folder / name, folder / f"{data}-model.npz", folder / f"{data}.html"
    generated = generate()
    if isinstance(generated, Table):
        write(generated, table)
    else:
        DataTable(tuple(generated), zip(*generated.values(), strict=True)).write(table)
    if not shown.is_silent:
        print_line(f"{about}: written to {table}")
    for words in (
        ["fit", str(table), *reading.split(), "-o", str(model)],
        ["report", str(model), str(table), *reading.split(), "-o", str(page)],
    ):
        if shown.is_silent:
            words.append("--quiet")
        else:
            print_line(f"\n$ bitatoms {shlex.join(words)}", style="bold")
        if code := app.main(words, prog_name="bitatoms", standalone_mode=False):
            raise click.exceptions.Exit(code)
    if shown.json:
        print_json({"about": about, "table": str(table), "model": str(model), "report": str(page)})


@options.command("bitatoms warmup", "NUMBA_CACHE_DIR=/opt/kernels bitatoms warmup", "bitatoms warmup --device cuda")
def warmup(
    how: options.RunSettings = options.run(
        "n_jobs",
        "device",
        n_jobs={"help": "Processes; -1 is one per processor."},
        device={"help": "With cuda, also compile the kernels of the GPU; auto: if there is one.", "convert": None},
    ),
    shown: Display = options.display(),
) -> None:
    """Compile the kernels of all common calls now, for container images, clusters and demonstrations.

    This takes about a minute. Without it, a kernel is compiled when it is first needed, and the fit waits.
    """
    from .. import warmup

    with show_status("compiling kernels", shown.is_silent) as line:

        def show(name: str, n_done: int, n_all: int) -> None:
            line.update(f"compiling kernels: {n_done} of {n_all}, {line.seconds}", f" (done: {name})")

        kernels = warmup.warm_up(callback=show, **how.threads)
    text = f"Kernels for this kind of processor are compiled and stored in {kernels}."
    if how.device == "cuda":
        text += " Those for this kind of GPU are in the cache of CuPy."
    print_result({"kernels": str(kernels)}, shown, text)
