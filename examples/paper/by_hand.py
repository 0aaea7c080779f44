"""The experiments of the paper in a few lines each, with nothing but the public functions.

``bitatoms reproduce`` does them in full, with figures and with what the paper says beside them.
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
    """Forward selection from 16 random samples, with both updates."""
    found = {}
    for update, method in UPDATES.items():
        found[update] = ba.factorize(X, search="paper", update=update, patience=10, random_state=0)
        bits = found[update].codelength.total / len(X)
        print(f"{name}, forward selection with {method}: {found[update].atoms.n_rows} atoms, {bits:.1f} bits a sample")
    return found


def starts(X: np.ndarray, name: str) -> None:
    """36 atoms from either start, with both updates."""
    for start in ("bernoulli", "samples"):
        for update, method in UPDATES.items():
            result = ba.factorize(X, 36, search="paper", update=update, init=start, random_state=0)
            used, bits = 36 - result.n_unused, result.codelength.total / len(X)
            print(f"{name}, {method} from {start}: {used} of 36 atoms used, {bits:.1f} bits, {result.n_iter} steps")


def curve(X: np.ndarray, most: int) -> tuple[ba.Factorization, Figure]:
    """Forward selection, forced on to so many atoms: the codelength and its parts at each."""
    result = ba.factorize(X, search="paper", patience=None, max_components=most, random_state=0)
    figure = Figure(layout="constrained")
    plots.codelength_curve(result.history, ax=figure.subplots())
    return result, figure


def convergence(X: np.ndarray, name: str) -> None:
    """Each step of learning 36 atoms, to the last, which changes nothing."""
    for update, method in UPDATES.items():
        steps = ba.factorize(X, 36, search="paper", update=update, random_state=0).history
        first, last = steps[0], steps[-1]
        changed = last.codes_changed + last.atoms_changed + last.errors_changed
        print(
            f"{name}, {method}: {len(steps)} steps, {first.bits / len(X):.1f} bits after the first and "
            f"{last.bits / len(X):.1f} at the end; the last changes {changed} bits"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("."), help="where to draw")
    folder = parser.parse_args().folder
    digits, blocks = datasets.digits()[0], datasets.cut_blocks(datasets.halftone())
    for X, name, most in ((digits, "digits", 48), (blocks, "halftone", 240)):
        found = models(X, name)
        starts(X, name)
        convergence(X, name)
        result, figure = curve(X, most)
        print(f"{name}, forced on to {most}: the shortest codelength is that of {result.atoms.n_rows} atoms")
        figure.savefig(folder / f"{name}-curve.png")
        ax = plots.mosaic(found["k-prox"].atoms)
        ax.figure.savefig(folder / f"{name}-atoms.png")


if __name__ == "__main__":
    main()
