"""Draw the codelength against time for the paper's forward selection, the fast and the thorough search."""

from __future__ import annotations

import argparse
from pathlib import Path
from time import process_time

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import bitatoms as ba
from bitatoms import datasets

SEARCHES = {
    "paper": {"search": ba.PaperSearch(coder="greedy", patience=10)},
    "fast": {"search": "fast"},
    "thorough": {"search": "thorough"},
}
FIRST, LAST = 0.002, 20  # seconds
LINES = {  # distinguishable without colours
    "paper": {"color": "0.55", "linestyle": ":", "linewidth": 2.2},
    "fast": {"color": "black", "linestyle": "-", "linewidth": 1.6},
    "thorough": {"color": "black", "linestyle": "--", "linewidth": 1.1},
}


def progress(X: np.ndarray, how: dict) -> tuple[list[float], list[float]]:
    """Return CPU seconds and the fewest bits per sample so far."""
    points = []
    begin = process_time()

    def note(row) -> None:
        points.append((process_time() - begin, row.bits / len(X)))

    ba.factorize(X, **how, algebra="xor", random_state=0, callbacks=note)
    seconds, bits = zip(*points, strict=True)
    return list(seconds), np.minimum.accumulate(bits).tolist()


def draw(ax: Axes, title: str, X: np.ndarray, shown: tuple[float, float]) -> None:
    """Draw one line per search, with a dot at its end."""
    nothing = ba.codelength(X).total / len(X)
    print(f"{title}: {nothing:.1f} bits per sample without atoms")
    for name, how in SEARCHES.items():
        progress(X[:200], how)  # loads the kernels
        seconds, bits = progress(X, how)
        print(f"  {name:<9}{bits[-1]:>7.1f} bits per sample after {seconds[-1]:.2f} s")
        label = f"{name}: {bits[-1]:.1f}"
        ax.step([FIRST / 100, *seconds], [nothing, *bits], where="post", label=label, **LINES[name])
        ax.plot(seconds[-1], bits[-1], marker="o", markersize=5, color=LINES[name]["color"])
    ax.set_xscale("log")
    ax.set_xlim(FIRST, LAST)
    ax.set_ylim(shown)
    ax.set(title=title, xlabel="CPU seconds, one thread", ylabel="bits per sample")
    ax.legend(title=f"without atoms: {nothing:.1f}", frameon=False, handlelength=3, alignment="left")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--picture", type=Path, default=Path("docs/pictures/search.png"), help="file to write the figure to"
    )
    path = parser.parse_args().picture
    figure = Figure(figsize=(10, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw(left, "halftone blocks of 16 × 16, XOR", datasets.cut_blocks(datasets.halftone()), (84, 150))
    draw(right, "digits of 8 × 8, XOR", datasets.digits()[0], (30.5, 36.9))
    figure.savefig(path, dpi=100)
    print(f"Drawn in {path}.")


if __name__ == "__main__":
    main()
