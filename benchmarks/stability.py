"""How often atoms are found again: by `bitatoms.stability`, and in other rows of the same table.

``python benchmarks/stability.py [FOLDER]`` runs on the digits of scikit-learn, on planted tables, and on mushroom,
groceries and MNIST if the folder has them.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from tables import Row, Table, log_row, show

import bitatoms as ba
from bitatoms.model.patterns import match_atoms, overlaps
from datasets import MNIST, load

SHARES = (0.5, 0.63, 0.8, 1.0)
TRUSTED = 0.75


def tables(folder: Path | None, max_rows: int | None) -> dict[str, tuple[np.ndarray, dict[str, Any], int]]:
    """Return tables by name, of at most this many rows, each with parameters, and the rows of a part of it."""
    planted = {"atom_density": 0.15, "code_density": 0.15, "noise": 0.1, "algebra": "or"}
    sets = {
        "digits": (ba.datasets.digits()[0], {"algebra": "xor"}, 440),
        "planted, 18 atoms for 12": (
            ba.datasets.planted(4000, 80, 12, **planted, random_state=0).X,
            {"n_components": 18, "algebra": "or"},
            500,
        ),
    }
    stored = {"mushroom_fimi": ("or", 1000), MNIST: ("xor", 1200), "groceries": ("or", 2400)}
    for name, (algebra, n_rows) in stored.items() if folder is not None else ():
        if (folder / f"{name}.npz").exists():
            sets[name] = load(folder, name), {"algebra": algebra}, n_rows
    return {name: (X[:max_rows], how, min(n_rows, len(X[:max_rows]) // 2)) for name, (X, how, n_rows) in sets.items()}


def shares_of_tables(options: argparse.Namespace) -> Table:
    """Return how many atoms recur, with half of the rows and with all rows and other seeds."""
    rows: list[Row] = []
    for name, (X, how, _) in tables(options.folder, options.rows).items():
        model = ba.BinaryDictionaryLearning(**how, random_state=0).fit(X)
        row: Row = {"table": name, "atoms": model.n_components_}
        for share in (0.5, 1.0):
            begin = time.process_time()
            result = ba.stability(X, model, n_resamples=options.resamples, share=share)
            row |= {
                f"recurs, share {share:g}": float(result.recurs.mean()),
                f"stable, share {share:g}": float(result.is_stable.mean()),
                f"s, share {share:g}": time.process_time() - begin,
            }
        rows.append(log_row(row))
    return Table("Atoms of all rows", rows, "mean share of the atoms that recur; share that is stable; CPU seconds")


def calibration(options: argparse.Namespace) -> Table:
    """Return how often atoms of a part of the rows are found in other parts, next to what `stability` says."""
    rows: list[Row] = []
    for name, (X, how, n_rows) in tables(options.folder, options.rows).items():
        parts = np.array_split(np.random.default_rng(0).permutation(len(X)), len(X) // n_rows)
        model = ba.BinaryDictionaryLearning(**how, random_state=0).fit(X[parts[0]])
        learned = model.as_model()
        if not learned.atoms.n_rows:
            continue
        others = [ba.factorize(X[part], **how, random_state=seed) for seed, part in enumerate(parts[1:], start=1)]
        found = np.mean([match_atoms(overlaps(learned, other)) >= 0.8 for other in others], axis=0)
        for share in SHARES:
            said = ba.stability(X[parts[0]], model, n_resamples=options.resamples, share=share).recurs
            trusted = said >= TRUSTED
            row: Row = {"table": name, "rows": len(parts[0]), "atoms": len(said), "share": share}
            row |= {"in other rows": float(found.mean()), "recurs": float(said.mean())}
            row |= {"rms difference": float(np.sqrt(((said - found) ** 2).mean())), "stable": int(trusted.sum())}
            row |= {"stable, in other rows": float(found[trusted].mean()) if trusted.any() else None}
            rows.append(log_row(row))
    note = "share of the atoms found in other rows of the table, as many, and in resamples of the same rows"
    return Table("Atoms of a part of the rows", rows, note)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--resamples", type=int, default=20)
    parser.add_argument("--rows", type=int, help="use the first rows of each table only")
    options = parser.parse_args()
    show(shares_of_tables(options))
    show(calibration(options))


if __name__ == "__main__":
    main()
