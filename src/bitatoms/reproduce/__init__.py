"""The experiments of the paper, done again: figures, and each of its claims beside what is found."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from pathlib import Path

from ..io.atomic import write_files
from ..report.html.tables import DataTable
from ..validation import check_int
from .datasets import Subject, halftone, handwriting
from .experiment import Claim, Experiment, Panel, Verdict
from .experiments.convergence import convergence
from .experiments.data_sets import data_sets
from .experiments.default_search import today
from .experiments.initialisation import initialisation
from .experiments.models import models
from .experiments.selection import selection
from .page import render
from .runs import UPDATES, learned, starting_atoms

__all__ = ["Claim", "Experiment", "Panel", "Verdict", "reproduce"]

_EXPERIMENTS = {
    "Drawing the data": data_sets,
    "Learning the four models": models,
    "Learning from two starts": initialisation,
    "Selecting how many atoms": selection,
    "Following convergence": convergence,
    "Searching as the default does": today,
}
_WARMING = 64  # rows that kernels are compiled with, so that no time is taken of that


def reproduce(
    folder: str | os.PathLike[str],
    *,
    einstein: str | os.PathLike[str] | None = None,
    mnist: str | os.PathLike[str] | None = None,
    random_state: int = 0,
    callback: Callable[[str], object] | None = None,
) -> list[Experiment]:
    """Do the experiments of the paper again, and write a page of what comes out.

    Parameters
    ----------
    folder : str or path-like
        Where to write: ``index.html``, ``claims.csv``, and in ``figures`` a PNG of every figure and a CSV of the
        numbers behind it.
    einstein : str or path-like, optional
        The halftone picture of the paper, 1160 × 896, in a file that `bitatoms.read` takes, such as a .pbm. By default
        another photograph, which comes with scikit-learn, as a halftone.
    mnist : str or path-like, optional
        Digits of MNIST: "openml" to fetch them, a file of pictures as MNIST is published, or a table of 17 × 17 or 28
        × 28 pixels in a file that `bitatoms.read` takes. By default the digits that come with scikit-learn.
    random_state : int, default=0
        The same number gives the same figures, but for those of time.
    callback : callable, optional
        Called with what is being done, in words.

    Returns
    -------
    list of Experiment
        With figures and claims.

    Examples
    --------
    >>> from bitatoms.reproduce import reproduce
    >>> experiments = reproduce("paper")  # doctest: +SKIP
    >>> [claim.says for experiment in experiments for claim in experiment.claims]  # doctest: +SKIP
    ['The model of MNIST has 79 atoms.', ...]
    """
    seed = check_int("random_state", random_state, 0)
    tell = callback or (lambda _: None)
    tell("Reading the data")
    subjects = handwriting(mnist), halftone(einstein)
    tell("Compiling")
    for subject in subjects:
        _warm(subject)
    experiments = []
    for doing, experiment in _EXPERIMENTS.items():
        tell(doing)
        experiments.append(experiment(*subjects, seed))
    tell("Writing the page")
    write(experiments, Path(folder), _how(subjects, seed))
    return experiments


def write(experiments: list[Experiment], folder: Path, how: str) -> None:
    """Write the page, and the files of every figure; the page comes last, when all that it names is there."""
    files: dict[str, bytes] = {}
    claims: list[tuple[str, ...]] = []
    for experiment in experiments:
        for panel in experiment.panels:
            for figure in panel.figures:
                files |= figure.files()
            if panel.numbers is not None:
                name = f"{experiment.place}-{panel.title}-runs".lower()
                files[f"figures/{name}.csv"] = panel.numbers.to_csv().encode()
            for claim in panel.claims:
                whose = "yes" if claim.of_paper else "no"
                told = claim.says, claim.found, str(claim.verdict), claim.why
                claims.append((experiment.name, panel.title, whose, *told))
    columns = ("experiment", "data", "in the paper", "the paper says", "found", "verdict", "why")
    files["claims.csv"] = DataTable.of(columns, claims).to_csv().encode()
    files["index.html"] = render(experiments, how).encode()
    write_files(folder, files)


def _warm(subject: Subject) -> None:
    """Have all kernels compiled."""
    few = subject.data[:_WARMING]
    for update in UPDATES:
        learned(few, starting_atoms("samples", few, 4, 0), update)


def _how(subjects: tuple[Subject, ...], seed: int) -> str:
    """On what it was made."""
    sets = ", ".join(f"{subject.name} ({subject.data.n_rows} × {subject.data.n_cols})" for subject in subjects)
    machine = platform.processor() or platform.machine()
    return f"Data: {sets}. Seed {seed}; times of one thread on {machine}, Python {platform.python_version()}."
