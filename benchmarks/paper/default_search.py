"""Not in the paper: the default search of bitatoms on the same data."""

from __future__ import annotations

import time

from bitatoms.api import factorize
from bitatoms.html.tables import DataTable
from bitatoms.sparse_bits import packed

from .datasets import PaperDataset
from .experiment import BITS_PER_SAMPLE, Experiment, Panel
from .mosaics import mosaic_figure
from .runs import PATIENCE, UPDATES, best_round, run_selection

_N_ACROSS = 16


def default_search(digits: PaperDataset, halftone: PaperDataset, seed: int) -> Experiment:
    """Compare forward selection with the default search."""
    description = (
        "This section is not in the paper. The default search of bitatoms also chooses the number of atoms by the "
        "codelength printed in the paper. Unlike the paper's methods, it also codes by this codelength, adds and "
        "removes atoms, and updates all atoms together."
    )
    panels = tuple(_panel(dataset, seed) for dataset in (halftone, digits))
    return Experiment("today", "Default search", "The default search on the same data", description, panels)


def _panel(dataset: PaperDataset, seed: int) -> Panel:
    """Return the results of all searches on one data set, and the atoms of the default search."""
    n_rows = dataset.data.n_rows
    rows: list[tuple[str | int | float, ...]] = []
    for update, method in UPDATES.items():
        run = run_selection(dataset.data, update, seed, patience=PATIENCE)
        best = best_round(run.history)
        rows.append((f"forward selection, {method}", best.atoms, best.wrong_bits, best.bits / n_rows, run.seconds))
    begin = time.perf_counter()
    result = factorize(dataset.data, algebra="xor", random_state=seed)
    seconds = time.perf_counter() - begin
    bits = result.codelength.total / n_rows
    rows.append(("default search", result.atoms.n_rows, result.wrong_bits, bits, seconds))
    saving = 1 - bits / min(float(row[3]) for row in rows[:-1])
    description = (
        f"{dataset.name}: {result.atoms.n_rows} atoms and {bits:.1f} bits per sample, {abs(saving):.0%} "
        f"{'fewer' if saving > 0 else 'more'} than the better of the two methods, in {seconds:.1f} s."
    )
    columns = ("method", "atoms", "wrong pixels", BITS_PER_SAMPLE, "seconds")
    title = f"{dataset.name}: the {result.atoms.n_rows} atoms; the atom that saves most bits comes first"
    name = f"{dataset.name.lower()}-default-atoms"
    atoms = mosaic_figure(name, title, packed(result.atoms), result.uses, dataset.tile, _N_ACROSS, 2)
    return Panel(dataset.name, description, (atoms,), layout="wide", runs=DataTable.from_rows(columns, rows))
