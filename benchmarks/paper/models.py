"""The models (Figures 2 and 3 of the paper, and its supplement): atoms, residuals and codes of both methods."""

from __future__ import annotations

import numpy as np

from bitatoms.bits import BitMatrix
from bitatoms.html.tables import DataTable

from .datasets import PaperDataset
from .experiment import Experiment, Panel
from .figures import Figure, pixel_figure
from .input_data import sample_indices
from .model_claims import model_claims
from .mosaics import BLUE, GREEN, PALETTE, RED, coded_samples, mosaic_figure
from .runs import PATIENCE, UPDATES, MethodRun, best_round, run_selection

_ATOMS_ACROSS = 16
_SAMPLES_ACROSS = 20
_BLOCKS_ACROSS = 28
_COLOURS = {"red": RED, "green": GREEN, "blue": BLUE}


def models(digits: PaperDataset, halftone: PaperDataset, seed: int) -> Experiment:
    """Run forward selection with both methods on both data sets."""
    runs = {
        (dataset.name, update): run_selection(dataset.data, update, seed, patience=PATIENCE)
        for dataset in (digits, halftone)
        for update in UPDATES
    }
    panels = [
        _panel(dataset, runs[dataset.name, update], runs[dataset.name, other], seed, in_paper)
        for dataset, (update, other) in ((digits, ("mob", "k-prox")), (halftone, ("k-prox", "mob")))
        for update, other, in_paper in ((update, other, True), (other, update, False))
    ]
    description = (
        "Forward selection starts from 16 random samples. After each added atom, all atoms are learned by matching "
        "pursuit and one of the two updates. As in the author's program, it ends after "
        f"{PATIENCE} added atoms in a row without improvement, and the best model is kept. Atoms are shown in the "
        "order in which they were added; the first 16 started as samples."
    )
    return Experiment("models", "Models", "The models and their interpretation", description, tuple(panels))


def _panel(dataset: PaperDataset, run: MethodRun, other: MethodRun, seed: int, in_paper: bool) -> Panel:
    """Return one model: its atoms, and some samples with their residuals and codes."""
    method = UPDATES[run.update]
    best, n_rows = best_round(run.history), dataset.data.n_rows
    where = "the paper" if in_paper else "its supplement"
    description = (
        f"The model has {run.atoms.n_rows} atoms and takes {best.bits / n_rows:.1f} bits per sample. A sample uses "
        f"{run.uses.sum() / n_rows:.1f} atoms on average, and "
        f"{best.wrong_bits / (n_rows * dataset.data.n_cols):.1%} of the pixels are wrong. "
        f"This is the model of {dataset.paper_name} in {where}"
        + (f", here learned from {dataset.name}." if dataset.is_substitute else ".")
    )
    claims = model_claims(dataset, run, other, seed) if in_paper else ()
    return Panel(f"{dataset.name} by {method}", description, _figures(dataset, run, seed), claims, "wide")


def _figures(dataset: PaperDataset, run: MethodRun, seed: int) -> tuple[Figure, Figure]:
    """Return the mosaic of atoms, and samples with residuals and codes."""
    name, method = f"{dataset.name}-{run.update}".lower(), UPDATES[run.update]
    rows = sample_indices(dataset, seed)
    data, errors, codes = dataset.data[rows], run.errors[rows], run.codes[rows]
    colours = {atom: _COLOURS[colour] for colour, atom in highlighted_atoms(data, run.atoms, codes).items()}
    title = f"{dataset.name}, {method}: the {run.atoms.n_rows} atoms"
    atoms = mosaic_figure(f"{name}-atoms", title, run.atoms, run.uses, dataset.tile, _ATOMS_ACROSS, 2, colours)
    n_across = _SAMPLES_ACROSS if dataset.picture is None else _BLOCKS_ACROSS
    noun = "samples" if dataset.picture is None else "blocks of the stripe"
    used = codes.to_dense()
    samples = pixel_figure(
        f"{name}-codes",
        f"{len(rows)} {noun} (top), their residuals (middle), and one bar per atom used (bottom)",
        f"{len(rows)} {noun} of {dataset.name} with their residuals and codes",
        coded_samples(data, errors, codes, dataset.tile, n_across, colours),
        PALETTE,
        scale=2,
        table=DataTable.from_rows(
            ("sample", "black pixels", "wrong pixels", "atoms used"),
            [
                (int(row), int(n_ones), int(n_wrong), " ".join(map(str, np.flatnonzero(uses) + 1)))
                for row, n_ones, n_wrong, uses in zip(rows, data.row_weights(), errors.row_weights(), used, strict=True)
            ],
        ),
    )
    return atoms, samples


def highlighted_atoms(data: BitMatrix, atoms: BitMatrix, codes: BitMatrix) -> dict[str, int]:
    """Return by colour the atoms that explain most of these samples, among those used by two to half of them."""
    rows, patterns, used = (bits.to_dense().astype(np.int64) for bits in (data, atoms, codes))
    gains = (used * (2 * rows @ patterns.T - patterns.sum(axis=1))).sum(axis=0)
    n_users = used.sum(axis=0)
    eligible = (n_users >= 2) & (n_users <= len(rows) // 2) & (gains > 0)
    order = [int(atom) for atom in np.argsort(-gains, kind="stable") if eligible[atom]]
    return dict(zip(_COLOURS, order, strict=False))
