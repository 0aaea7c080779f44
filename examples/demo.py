"""Learn atoms of a halftone image and of handwritten digits with the paper's methods and with the default search."""

from __future__ import annotations

import argparse
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

import bitatoms as ba
from bitatoms import datasets, plots

BLOCK = (16, 16)
CROP = np.s_[64:176, 288:512]  # part of the image to draw
SHOWN = 64  # number of atoms in a mosaic, the most useful ones


class Run(NamedTuple):
    """One method on one table."""

    method: str
    result: ba.Factorization
    seconds: float


def runs(X: np.ndarray, n_components: int, start: int) -> list[Run]:
    """Run the paper's methods, with a given and with a selected number of atoms, and the default search."""
    forward = ba.PaperSearch(coder="greedy", start_components=start, patience=10)
    methods = {
        "paper: MOB, BMP": {"search": ba.PaperSearch(), "n_components": n_components},
        "paper: MOB, greedy": {"search": ba.PaperSearch(coder="greedy"), "n_components": n_components},
        "paper: K-PROX, greedy": {
            "search": ba.PaperSearch(coder="greedy", update="k-prox"),
            "n_components": n_components,
        },
        f"paper: forward from {start}": {"search": forward},
        "fast, the default": {},
    }
    found = []
    for method, how in methods.items():
        begin = perf_counter()
        result = ba.factorize(X, algebra="xor", random_state=0, **how)
        found.append(Run(method, result, perf_counter() - begin))
    return found


def report(title: str, X: np.ndarray, found: list[Run]) -> None:
    """Print a table of the runs, and a summary of the one with the shortest codelength."""
    n_samples, n_features = X.shape
    nothing = ba.codelength(X).total / n_samples
    print(f"\n{title}: {n_samples} samples of {n_features} bits; {nothing:.1f} bits per sample without atoms")
    print(f"  {'method':<28}{'atoms':>6}{'used':>6}{'wrong bits':>12}{'fraction':>9}{'bits/sample':>14}{'seconds':>9}")
    for method, result, seconds in found:
        atoms = len(result.atoms)
        print(
            f"  {method:<28}{atoms:>6}{atoms - result.n_unused:>6}{result.wrong_bits:>12}"
            f"{result.wrong_bits / X.size:>9.1%}{result.codelength.total / n_samples:>14.1f}{seconds:>9.3f}"
        )
    best = min((run.result for run in found), key=lambda result: result.codelength.total)
    codes, errors, atoms = (getattr(best.codelength, part) / n_samples for part in ("codes", "errors", "atoms"))
    print("  Summary: " + best.summary().replace("\n", "\n  "))
    print(
        f"  Bits per sample: {codes:.1f} for its code, {errors:.1f} for its errors,\n"
        f"  and {atoms:.1f} for its share of the atoms."
    )


def draw(picture: np.ndarray, halftone: ba.Factorization, digits: ba.Factorization, path: Path) -> None:
    """Draw the image, its reconstruction, and the atoms of both data sets."""
    figure = Figure(figsize=(12, 4.3), layout="constrained")
    panels = figure.subplot_mosaic([["picture", "halftone", "digits"], ["product", "halftone", "digits"]])
    product = datasets.stitch_blocks(halftone.reconstruct(), picture.shape, BLOCK)
    for name, title, image in (("picture", "part of the halftone", picture), ("product", "codes × atoms", product)):
        panels[name].imshow(image[CROP], cmap="gray_r", interpolation="nearest")
        panels[name].set_title(title)
        panels[name].set_axis_off()
    for name, result, shape in (("halftone", halftone, BLOCK), ("digits", digits, (8, 8))):
        atoms = result.atoms.to_dense() ^ result.bias  # a sample that uses only this atom
        plots.mosaic(atoms[:SHOWN], shape, ax=panels[name])
        on = " on the bias" if result.bias.any() else ""
        panels[name].set_title(f"{name}: {min(SHOWN, len(atoms))} of {len(atoms)} atoms{on}")
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", type=Path, default=Path("demo-atoms.png"), help="file to write the figure to")
    path = parser.parse_args().picture
    print("Compiling kernels (only the first time; 10 to 30 seconds) ...", end=" ", flush=True)
    begin = perf_counter()
    ba.warm_up(kinds=["search, xor", "paper, greedy, xor", "paper, bmp, xor", "k-prox, xor"])
    runs(datasets.planted(64, 65, 4, random_state=0).X, 4, 4)
    print(f"{perf_counter() - begin:.1f} s")
    picture = datasets.halftone()
    blocks = datasets.cut_blocks(picture, BLOCK)
    halftone = runs(blocks, 36, 16)
    report("Halftone image in blocks of 16 × 16", blocks, halftone)
    X, _ = datasets.digits()
    digits = runs(X, 64, 64)
    report("Handwritten digits of 8 × 8 pixels", X, digits)
    draw(picture, halftone[-1].result, digits[-1].result, path)
    print(f"\nThe atoms are drawn in {path}.")


if __name__ == "__main__":
    main()
