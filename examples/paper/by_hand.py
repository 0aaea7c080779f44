"""The experiments of the paper in a few lines each, with public functions only.

``make paper`` runs them in full, with figures and the claims of the paper.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import bitatoms as ba
from bitatoms import datasets, plots

UPDATES = {"mob": "MOB", "k-prox": "K-PROX"}


def models(X: np.ndarray, name: str) -> dict[str, ba.Factorization]:
    """Run forward selection from 16 random samples, with both updates."""
    results = {}
    for update, method in UPDATES.items():
        result = results[update] = ba.factorize(X, search=ba.PaperSearch(update=update, patience=10), random_state=0)
        bits = result.codelength.total / len(X)
        print(f"{name}, forward selection with {method}: {result.atoms.n_rows} atoms, {bits:.1f} bits per sample")
    return results


def starts(X: np.ndarray, name: str) -> None:
    """Learn 36 atoms from each kind of start, with both updates."""
    for start in ("bernoulli", "samples"):
        for update, method in UPDATES.items():
            result = ba.factorize(X, 36, search=ba.PaperSearch(update=update), init=start, random_state=0)
            used, bits = 36 - result.n_unused, result.codelength.total / len(X)
            print(f"{name}, {method} from {start}: {used} of 36 atoms used, {bits:.1f} bits, {result.n_iter} steps")


def curve(X: np.ndarray, n_atoms: int) -> tuple[ba.Factorization, Figure]:
    """Continue forward selection to this number of atoms, and plot the codelength and its parts."""
    result = ba.factorize(
        X, search=ba.PaperSearch(patience=None), constraints=ba.Constraints(max_components=n_atoms), random_state=0
    )
    figure = Figure(layout="constrained")
    plots.codelength_curve(result.history, ax=figure.subplots())
    return result, figure


def convergence(X: np.ndarray, name: str) -> None:
    """Learn 36 atoms until a step changes nothing."""
    for update, method in UPDATES.items():
        steps = ba.factorize(X, 36, search=ba.PaperSearch(update=update), random_state=0).history
        first, last = steps[0], steps[-1]
        changed = last.codes_changed + last.atoms_changed + last.errors_changed
        print(
            f"{name}, {method}: {len(steps)} steps, {first.bits / len(X):.1f} bits per sample after the first and "
            f"{last.bits / len(X):.1f} after the last, which changes {changed} bits"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("."), help="folder for the figures")
    folder = parser.parse_args().folder
    digits, blocks = datasets.digits()[0], datasets.cut_blocks(datasets.halftone())
    for X, name, n_atoms in ((digits, "digits", 48), (blocks, "halftone", 240)):
        results = models(X, name)
        starts(X, name)
        convergence(X, name)
        result, figure = curve(X, n_atoms)
        print(f"{name}, selection up to {n_atoms} atoms: the codelength is shortest with {result.atoms.n_rows}")
        figure.savefig(folder / f"{name}-curve.png")
        ax = plots.mosaic(results["k-prox"].atoms)
        ax.figure.savefig(folder / f"{name}-atoms.png")


if __name__ == "__main__":
    main()
