"""Reproduction of the paper's experiments: its figures, and each of its claims with what was found here."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from pathlib import Path

from bitatoms.html.tables import DataTable
from bitatoms.io.atomic import write_files
from bitatoms.validation import check_int

from .convergence import convergence
from .datasets import PaperDataset, load_digits, load_halftone
from .default_search import default_search
from .experiment import Claim, Experiment, Panel, Verdict
from .initialisation import initialisation
from .input_data import input_data
from .models import models
from .page import render
from .runs import UPDATES, run_learning, starting_atoms
from .selection import selection

__all__ = ["Claim", "Experiment", "Panel", "Verdict", "reproduce"]

_EXPERIMENTS = {
    "Drawing the data": input_data,
    "Learning the four models": models,
    "Learning from two kinds of initial atoms": initialisation,
    "Selecting the number of atoms": selection,
    "Measuring convergence": convergence,
    "Running the default search": default_search,
}
_N_WARM_UP_ROWS = 64  # rows that kernels are compiled with, so that times do not include compilation


def reproduce(
    folder: str | os.PathLike[str],
    *,
    einstein: str | os.PathLike[str] | None = None,
    mnist: str | os.PathLike[str] | None = None,
    random_state: int = 0,
    callback: Callable[[str], object] | None = None,
) -> list[Experiment]:
    """Run the experiments of the paper and write a page with the results.

    Parameters
    ----------
    folder : str or path-like
        The folder to write: ``index.html``, ``claims.csv``, and in ``figures`` one PNG per figure and one CSV with the
        numbers behind it.
    einstein : str or path-like, optional
        The halftone picture of the paper, 1160 × 896, in a file that `bitatoms.read` can read, such as a .pbm file. By
        default a halftone of another photograph, which scikit-learn contains.
    mnist : str or path-like, optional
        The digits of MNIST: "openml" to download them, an image file of the MNIST distribution, or a table of 17 × 17
        or 28 × 28 pixels in a file that `bitatoms.read` can read. By default the digits that scikit-learn contains.
    random_state : int, default=0
        The seed. Equal seeds give equal results, except for times.
    callback : callable, optional
        Called with a description of each step before it starts.

    Returns
    -------
    list of Experiment
        The experiments with their figures and claims.

    Examples
    --------
    >>> from benchmarks.paper import reproduce
    >>> experiments = reproduce("paper")  # doctest: +SKIP
    >>> [claim.statement for experiment in experiments for claim in experiment.claims]  # doctest: +SKIP
    ['The model of MNIST has 79 atoms.', ...]
    """
    seed = check_int("random_state", random_state, 0)
    report_step = callback or (lambda _: None)
    report_step("Reading the data")
    datasets = load_digits(mnist), load_halftone(einstein)
    report_step("Compiling")
    for dataset in datasets:
        _compile_kernels(dataset)
    experiments = []
    for step, experiment in _EXPERIMENTS.items():
        report_step(step)
        experiments.append(experiment(*datasets, seed))
    report_step("Writing the page")
    write_results(experiments, Path(folder), _provenance(datasets, seed))
    return experiments


def write_results(experiments: list[Experiment], folder: Path, provenance: str) -> None:
    """Write the files of every figure, the claims, and last the page."""
    files: dict[str, bytes] = {}
    claims: list[tuple[str, ...]] = []
    for experiment in experiments:
        for panel in experiment.panels:
            for figure in panel.figures:
                files |= figure.files()
            if panel.runs is not None:
                name = f"{experiment.anchor}-{panel.title}-runs".lower()
                files[f"figures/{name}.csv"] = panel.runs.to_csv().encode()
            for claim in panel.claims:
                in_paper = "yes" if claim.in_paper else "no"
                texts = claim.statement, claim.finding, str(claim.verdict), claim.explanation
                claims.append((experiment.name, panel.title, in_paper, *texts))
    columns = ("experiment", "data", "in the paper", "the paper says", "found", "verdict", "why")
    files["claims.csv"] = DataTable.from_rows(columns, claims).to_csv().encode()
    files["index.html"] = render(experiments, provenance).encode()
    write_files(folder, files)


def _compile_kernels(dataset: PaperDataset) -> None:
    """Run each method on a few rows, so that all kernels are compiled."""
    rows = dataset.data[:_N_WARM_UP_ROWS]
    for update in UPDATES:
        run_learning(rows, starting_atoms("samples", rows, 4, 0), update)


def _provenance(datasets: tuple[PaperDataset, ...], seed: int) -> str:
    """Describe the data, the seed and the machine."""
    shapes = ", ".join(f"{dataset.name} ({dataset.data.n_rows} × {dataset.data.n_cols})" for dataset in datasets)
    machine = platform.processor() or platform.machine()
    return f"Data: {shapes}. Seed {seed}; times of one thread on {machine}, Python {platform.python_version()}."
