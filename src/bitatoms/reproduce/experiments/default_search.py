"""Beside the paper's methods: what the default search of this program finds in the same data."""

from __future__ import annotations

import time

from ...api import factorize
from ...report.html.tables import DataTable
from ..atoms import figure_of_atoms
from ..datasets import Subject
from ..experiment import Experiment, Panel
from ..runs import FAILURES, UPDATES, selected, shortest

_ACROSS = 16


def today(digits: Subject, halftone: Subject, seed: int) -> Experiment:
    """Codelengths of forward selection and of the default search."""
    about = (
        "Nothing here is in the paper. The default search of this program also chooses the number of atoms by the "
        "codelength that the paper prints, but codes by it as well, grows and drops atoms, and updates all together."
    )
    panels = tuple(_panel(subject, seed) for subject in (halftone, digits))
    return Experiment("today", "Since then", "What the default search finds in the same data", about, panels)


def _panel(subject: Subject, seed: int) -> Panel:
    """One set: the figures of both, and the atoms of the default search."""
    n_rows = subject.data.n_rows
    rows: list[tuple[str | int | float, ...]] = []
    for update, method in UPDATES.items():
        run = selected(subject.data, update, seed, patience=FAILURES)
        best = shortest(run.history)
        rows.append((f"forward selection, {method}", best.atoms, best.wrong_bits, best.bits / n_rows, run.seconds))
    begin = time.perf_counter()
    found = factorize(subject.data, random_state=seed)
    seconds = time.perf_counter() - begin
    bits = found.codelength.total / n_rows
    rows.append(("default search", found.atoms.n_rows, found.wrong_bits, bits, seconds))
    fewer = 1 - bits / min(float(row[3]) for row in rows[:-1])
    about = (
        f"{subject.name}: {found.atoms.n_rows} atoms and {bits:.1f} bits a sample, {abs(fewer):.0%} "
        f"{'fewer' if fewer > 0 else 'more'} than the better of the two methods, in {seconds:.1f} s."
    )
    columns = ("method", "atoms", "wrong pixels", "bits a sample", "seconds")
    title = f"{subject.name}: the {found.atoms.n_rows} atoms, the one that saves most bits first"
    name = f"{subject.name.lower()}-default-atoms"
    atoms = figure_of_atoms(name, title, found.atoms, found.uses, subject.tile, _ACROSS, 2)
    return Panel(subject.name, about, (atoms,), layout="wide", numbers=DataTable.of(columns, rows))
