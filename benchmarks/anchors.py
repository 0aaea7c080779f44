"""Wrong cells with a given number of atoms (OR), compared with the best published factorizations, or proven optima.

``python benchmarks/anchors.py FOLDER`` runs the tables of Kovács, Günlük and Hauser (2021) and of Avellaneda and
Villemaire (2022). Wrong cells are counted from the factors with NumPy, over known cells only. ``--jobs`` runs several
processes, one thread each; CPU seconds stay comparable. ``--proven`` runs 60 small tables instead, whose optimum is
found by the branch and bound of the tests.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
from tables import Row, Table, show

import bitatoms as ba


class Anchor(NamedTuple):
    """A table, a number of atoms, and the fewest wrong cells known."""

    name: str
    n_atoms: int
    best: int


# Fewest wrong cells by number of atoms: of the best factorization known, whoever found it.
_BEST = {
    "kov_zoo": {2: 271, 5: 125, 10: 39},
    "kov_heart": {2: 1185, 5: 736, 10: 419},
    "kov_lymp": {2: 1174, 5: 933, 10: 669},
    "kov_apb": {2: 776, 5: 677, 10: 566},
    "kov_tumor": {2: 1351, 5: 943, 10: 510},
    "kov_hepatitis": {2: 1264, 5: 984, 10: 695},
    "und_lymphography": {14: 712, 28: 229, 42: 33},
    "und_tictactoe": {7: 5807, 14: 3588, 21: 1518},
    "und_car": {6: 7674, 12: 4608, 18: 2016},
    "und_phishing": {7: 5550, 14: 2931, 21: 806},
    "und_chess_krvskp": {10: 10435, 20: 3023, 30: 453},
    "und_cmc": {18: 2994, 36: 1104, 54: 279},
    "und_iris": {32: 282, 64: 117, 96: 32},
    "und_breast": {23: 1755, 46: 780, 69: 203},
    "und_soybean": {25: 1727, 50: 504, 75: 28},
}
ANCHORS = tuple(Anchor(name, k, best) for name, cells in _BEST.items() for k, best in cells.items())


class Task(NamedTuple):
    """One run: everything that a process needs."""

    folder: Path
    anchor: Anchor
    search: str
    seconds: float | None
    seed: int


def load_cells(folder: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a table of 0 and 1, and which of its cells are known."""
    with np.load(folder / f"{name}.npz") as stored:
        n_cols = int(stored["shape"][1])
        X = np.unpackbits(stored["X"], axis=1, count=n_cols)
        known = np.unpackbits(stored["known"], axis=1, count=n_cols) if "known" in stored else np.ones_like(X)
    return X, known.astype(bool)


def count_wrong(X: np.ndarray, known: np.ndarray, atoms: np.ndarray, codes: np.ndarray) -> int:
    """Return the wrong cells of a Boolean product, among known cells."""
    product = codes.astype(np.int64) @ atoms.astype(np.int64) > 0
    return int(np.count_nonzero((product != X.astype(bool)) & known))


def run(task: Task) -> tuple[int, float]:
    """Return the wrong cells and the CPU seconds of one run."""
    X, known = load_cells(task.folder, task.anchor.name)
    table = ba.BitMatrix.from_dense(np.where(known, X.astype(float), np.nan), missing="unknown")
    for n_atoms in (3, 20):  # loads the kernels
        ba.factorize(table[:100], n_atoms, algebra="or", random_state=0)
    begin = time.process_time()
    result = ba.factorize(
        table,
        task.anchor.n_atoms,
        algebra="or",
        search=task.search,
        max_time=task.seconds,
        random_state=task.seed,
        n_jobs=1,
    )
    seconds = time.process_time() - begin
    return count_wrong(X, known, result.atoms.to_dense(), result.codes.to_dense()), seconds


def chosen_anchors(sets: str | None) -> Iterator[Anchor]:
    """Yield the anchors of the chosen sets: names, or names with a number of atoms, as in ``kov_zoo:5``."""
    names = None if sets is None else sets.split(",")
    for anchor in ANCHORS:
        if names is None or anchor.name in names or f"{anchor.name}:{anchor.n_atoms}" in names:
            yield anchor


def anchor_row(anchor: Anchor, runs: list[tuple[int, float]]) -> Row:
    """Summarize the runs of one anchor."""
    wrong, seconds = zip(*runs, strict=True)
    middle = int(median(wrong))
    row: Row = {"set": anchor.name, "k": anchor.n_atoms, "best": anchor.best, "median": middle, "fewest": min(wrong)}
    row |= {"above %": 100 * (middle / anchor.best - 1), "at best": sum(count <= anchor.best for count in wrong)}
    return row | {"CPU s": float(median(seconds))}


def small_table(seed: int) -> tuple[np.ndarray, int]:
    """Return a table of 12 x 10 to 20 x 12 with more atoms than may be used, and noise; and the number of atoms."""
    random = np.random.default_rng(seed)
    n, m, k = random.integers(12, 21), random.integers(10, 13), int(random.integers(2, 4))
    n_planted, density = k + random.integers(0, 3), random.uniform(0.25, 0.5)
    codes, atoms = random.random((n, n_planted)) < density, random.random((n_planted, m)) < density
    noise = random.random((n, m)) < random.uniform(0.05, 0.2)
    return ((codes.astype(int) @ atoms > 0) ^ noise).astype(np.uint8), k


def run_proven(task: tuple[int, str, int]) -> tuple[int, list[int], float]:
    """Return the optimum of a small table, the wrong cells found from each seed, and CPU seconds per run."""
    seed, search, n_seeds = task
    path = Path(__file__).parents[1] / "tests" / "support" / "optimum.py"
    spec = importlib.util.spec_from_file_location("optimum", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    X, k = small_table(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fewer atoms may leave no errors
        ba.factorize(X, k, algebra="or", random_state=0)  # loads the kernels
        begin = time.process_time()
        found = [ba.factorize(X, k, algebra="or", search=search, random_state=i) for i in range(n_seeds)]
    known = np.ones(X.shape, bool)
    seconds = (time.process_time() - begin) / n_seeds
    wrong = [count_wrong(X, known, one.atoms.to_dense(), one.codes.to_dense()) for one in found]
    return module.fewest_wrong(X, k), wrong, seconds


def show_proven(search: str, n_seeds: int, n_jobs: int) -> None:
    """Print how often the proven optimum of small tables is found."""
    n_tables = 60
    with ProcessPoolExecutor(n_jobs) as pool:
        runs = list(pool.map(run_proven, [(seed, search, n_seeds) for seed in range(n_tables)]))
    n_found = sum(count == optimum for optimum, wrong, _ in runs for count in wrong)
    missed = [f"{seed} ({optimum}: {wrong})" for seed, (optimum, wrong, _) in enumerate(runs) if max(wrong) > optimum]
    share = n_found / (n_tables * n_seeds)
    print(f"search={search}: the optimum in {n_found} of {n_tables * n_seeds} runs ({share:.1%}), ", end="")
    print(f"{median(seconds for *_, seconds in runs):.2f} CPU s each")
    print("  missed:", ", ".join(missed) or "none", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="folder with NAME.npz for each table")
    parser.add_argument("--proven", action="store_true", help="small tables with a proven optimum; no folder")
    parser.add_argument("--search", default="fast", help="searches, separated by commas")
    parser.add_argument("--seconds", type=float, help="max_time of a run")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sets", help="NAME or NAME:K, separated by commas")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    options = parser.parse_args()
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    if options.proven:
        for search in options.search.split(","):
            show_proven(search, options.seeds, options.jobs)
        return
    if options.folder is None:
        parser.error("pass a folder, or --proven")
    anchors = list(chosen_anchors(options.sets))
    for search in options.search.split(","):
        tasks = [
            Task(options.folder, anchor, search, options.seconds, seed)
            for anchor in anchors
            for seed in range(options.seeds)
        ]
        rows = []
        with ProcessPoolExecutor(options.jobs) as pool:
            runs = pool.map(run, tasks)
            for anchor in anchors:
                rows.append(anchor_row(anchor, [next(runs) for _ in range(options.seeds)]))
                print(".", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        limit = "" if options.seconds is None else f", max_time={options.seconds:g}"
        note = "best: fewest wrong cells known. at best: seeds that leave no more."
        show(Table(f"Wrong cells, OR, search={search}{limit}, {options.seeds} seeds", rows, note))
        n_at_best = sum(row["median"] <= row["best"] for row in rows)
        print(f"  {n_at_best} of {len(rows)} medians at or below best", flush=True)


if __name__ == "__main__":
    main()
