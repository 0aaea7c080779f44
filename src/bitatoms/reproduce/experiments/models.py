"""The models (the paper's second and third figure, and its supplement): atoms, residuals and codes, both methods."""

from __future__ import annotations

import numpy as np

from ...bits import BitMatrix
from ...report.html.figures import Figure, pixels
from ...report.html.tables import DataTable
from ..atoms import figure_of_atoms
from ..datasets import Subject
from ..experiment import Experiment, Panel
from ..mosaics import BLUE, GREEN, PALETTE, RED, coded_samples
from ..runs import FAILURES, UPDATES, Run, selected, shortest
from .data_sets import shown_samples
from .model_claims import claims_of_the_paper

_ACROSS = 16  # atoms
_SAMPLES_ACROSS = 20
_BLOCKS_ACROSS = 28
_COLOURS = {"red": RED, "green": GREEN, "blue": BLUE}


def models(digits: Subject, halftone: Subject, seed: int) -> Experiment:
    """Forward selection with both methods on both sets."""
    runs = {
        (subject.name, update): selected(subject.data, update, seed, patience=FAILURES)
        for subject in (digits, halftone)
        for update in UPDATES
    }
    panels = [
        _panel(subject, runs[subject.name, update], runs[subject.name, other], seed, first)
        for subject, (update, other) in ((digits, ("mob", "k-prox")), (halftone, ("k-prox", "mob")))
        for update, other, first in ((update, other, True), (other, update, False))
    ]
    about = (
        "Forward selection from 16 random samples, atoms learned by matching pursuit and one of the two updates after "
        f"each that is added. It ends, as the author's program does, after {FAILURES} atoms in a row that bring "
        "nothing, and the best model is kept. Atoms are in the order in which they came; the first 16 began as samples."
    )
    return Experiment("models", "Models", "The models, and what can be read in them", about, tuple(panels))


def _panel(subject: Subject, run: Run, other: Run, seed: int, in_paper: bool) -> Panel:
    """One model: its atoms, and some samples with their residuals and codes."""
    method = UPDATES[run.update]
    best, n_rows = shortest(run.history), subject.data.n_rows
    where = "the paper" if in_paper else "its supplement"
    about = (
        f"{run.atoms.n_rows} atoms describe a sample in {best.bits / n_rows:.1f} bits; a sample uses "
        f"{run.uses.sum() / n_rows:.1f} of them, and {best.wrong_bits / (n_rows * subject.data.n_cols):.1%} of the "
        f"pixels are wrong. This is the model of {subject.of_the_paper} that {where} shows"
        + (f", made of {subject.name}." if subject.stands_in else ".")
    )
    claims = claims_of_the_paper(subject, run, other, seed) if in_paper else ()
    return Panel(f"{subject.name} by {method}", about, _figures(subject, run, seed), claims, "wide")


def _figures(subject: Subject, run: Run, seed: int) -> tuple[Figure, Figure]:
    """The mosaic of atoms, and the samples with residuals and codes."""
    name, method = f"{subject.name}-{run.update}".lower(), UPDATES[run.update]
    rows = shown_samples(subject, seed)
    marked = marked_atoms(subject.data[rows], run.atoms, run.codes[rows])
    colours = {atom: _COLOURS[colour] for colour, atom in marked.items()}
    title = f"{subject.name}, {method}: the {run.atoms.n_rows} atoms"
    atoms = figure_of_atoms(f"{name}-atoms", title, run.atoms, run.uses, subject.tile, _ACROSS, 2, colours)
    data, errors, codes = subject.data[rows], run.errors[rows], run.codes[rows]
    across = _SAMPLES_ACROSS if subject.picture is None else _BLOCKS_ACROSS
    what = "samples" if subject.picture is None else "blocks of the stripe"
    used = codes.to_dense()
    samples = pixels(
        f"{name}-codes",
        f"{len(rows)} {what} (top), what the atoms leave of them (middle), and a band for each atom used (bottom)",
        f"{len(rows)} {what} of {subject.name} with their residuals and codes",
        coded_samples(data, errors, codes, subject.tile, across, colours),
        PALETTE,
        times=2,
        numbers=DataTable.of(
            ("sample", "black pixels", "wrong pixels", "atoms used"),
            [
                (int(row), int(ones), int(wrong), " ".join(map(str, np.flatnonzero(uses) + 1)))
                for row, ones, wrong, uses in zip(rows, data.row_weights(), errors.row_weights(), used, strict=True)
            ],
        ),
    )
    return atoms, samples


def marked_atoms(data: BitMatrix, atoms: BitMatrix, codes: BitMatrix) -> dict[str, int]:
    """The atoms that explain most of these samples, of those that at least two use and not most: red, green, blue."""
    rows, patterns, used = (table.to_dense().astype(np.int64) for table in (data, atoms, codes))
    gains = (used * (2 * rows @ patterns.T - patterns.sum(axis=1))).sum(axis=0)
    users = used.sum(axis=0)
    fit = (users >= 2) & (users <= len(rows) // 2) & (gains > 0)
    order = [int(atom) for atom in np.argsort(-gains, kind="stable") if fit[atom]]
    return dict(zip(_COLOURS, order, strict=False))
