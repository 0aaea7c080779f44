"""Draw the figures of the README, the site and the tutorials, and, with Playwright and Chromium, a report."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import bitatoms as ba

SHOWN = 40  # number of atoms, the most useful ones


def model(path: Path) -> None:
    """Draw a small table as the product of codes and atoms, plus errors."""
    data = ba.datasets.planted(90, 36, 3, algebra="or", atom_density=0.3, code_density=0.45, noise=0.03, random_state=3)
    result = ba.factorize(data.X, algebra="or", random_state=0)
    codes, atoms = result.codes.to_dense(), result.atoms.to_dense()
    rows = np.lexsort(codes.T[::-1])[::-1]
    columns = np.lexsort(atoms[::-1])[::-1]
    wrong = data.X != result.reconstruct().to_dense()
    parts = {
        "a table": data.X,
        "rows and columns sorted": data.X[rows][:, columns],
        "codes": codes[rows],
        f"{len(atoms)} atoms": atoms[:, columns],
        "wrong cells": wrong[rows][:, columns],
    }
    figure = Figure(figsize=(12, 2.9), layout="constrained")
    axes = figure.subplots(1, 5, width_ratios=[36, 36, 10, 36, 36])
    for ax, (title, part), sign in zip(axes, parts.items(), ("", "→", "=", "×", "+"), strict=True):
        ax.imshow(part, cmap="gray_r", aspect="auto", interpolation="none")
        ax.set(xticks=[], yticks=[])
        ax.set_title(title, fontsize=11)
        ax.text(-0.05, 0.5, sign, transform=ax.transAxes, ha="right", va="center", fontsize=16)
    figure.savefig(path, dpi=110)


def genotypes(path: Path) -> None:
    """Draw the table of `datasets.genotypes` and its atoms, ordered by position on the chromosome."""
    table = ba.datasets.genotypes()
    model = ba.BinaryDictionaryLearning(random_state=0).fit(table)
    atoms = model.components_[:SHOWN]
    middle = (atoms * np.arange(atoms.shape[1])).sum(axis=1) / atoms.sum(axis=1)
    figure = Figure(figsize=(12, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.imshow(table.to_dense(), cmap="gray_r", aspect="auto", interpolation="none")
    populations = [name.split()[0] for name in table.row_names]
    starts = [i for i in range(len(populations)) if i == 0 or populations[i] != populations[i - 1]]
    left.set_yticks(starts, [populations[start] for start in starts], va="top")
    left.set(title=f"genotypes of {len(table)} people", xlabel="SNPs, two bits each")
    right.imshow(atoms[np.argsort(middle)], cmap="gray_r", aspect="auto", interpolation="none")
    right.set(title=f"the {len(atoms)} most useful of {model.n_components_} atoms", xlabel="SNPs", yticks=[])
    figure.savefig(path, dpi=110)


def genome(path: Path) -> None:
    """Draw atoms along the genome and the shares of atoms by population, as in docs/tutorials/genomes.md."""
    table = ba.datasets.genotypes(600, 80)
    model = ba.BinaryDictionaryLearning(algebra="or", random_state=0).fit(table)
    figure = Figure(figsize=(12, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    ba.plots.genome_atoms(model.components_, table, table.column_data["position"], ax=left)
    ba.plots.atom_shares(model.decision_function(table), table.row_data["population"], most=8, ax=right)
    figure.savefig(path, dpi=110)


def baskets(path: Path, matrix_path: Path, chromium: str) -> None:
    """Take screenshots of the report on `datasets.baskets`: its beginning, and the matrix with a pattern marked."""
    from playwright.sync_api import sync_playwright

    table = ba.datasets.baskets()
    model = ba.BinaryDictionaryLearning(random_state=0).fit(table)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = Path(folder) / "report.html"
        ba.write_report(model, table, page, title="baskets.csv")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": 1100, "height": 1550})
        view.goto(page.as_uri())
        view.locator("#view-patterns button.entry").first.click()
        view.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
        view.screenshot(path=path)
        view.set_viewport_size({"width": 1100, "height": 950})
        view.locator("#tab-matrix").click()
        view.evaluate("document.activeElement.blur()")
        view.locator("#explorer").screenshot(path=matrix_path)
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("docs/pictures"), help="folder to write the figures to")
    folder = parser.parse_args().folder
    model(folder / "model.png")
    genotypes(folder / "genotypes.png")
    genome(folder / "genome.png")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("Chromium not found: no screenshot of the report.")
    else:
        baskets(folder / "baskets.png", folder / "report.png", chromium)


if __name__ == "__main__":
    main()
