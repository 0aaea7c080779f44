"""Codelengths of the fast and the thorough search, compared with targets.

The targets (bars and stretch goals) were set before the search was written, from a prototype. L is computed from the
factors by the reference implementation of the tests.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from tables import Row, Table, log_row

import bitatoms as ba
from datasets import EINSTEIN, MNIST, QUICK_ROWS, bundled_sets, chosen, digits_set, load, planted_set

SEARCHES = ("fast", "thorough")
MAX_SECONDS = 4  # with a given number of atoms


class Target(NamedTuple):
    """Targets of both searches on one data set: L in bits, and CPU seconds."""

    name: str
    algebra: str
    bars: tuple[float | None, float | None] = (None, None)
    stretch: int | None = None
    seconds: tuple[float | None, float | None] = (None, None)


CODELENGTHS = (
    Target(EINSTEIN, "xor", (228_000, 221_000), 217_000, (0.8, 5)),
    Target(MNIST, "xor", (900_000, 880_000), 850_000, (2, 10)),
    Target(MNIST, "or", (900_000, 880_000), 850_000, (2, 10)),
    Target("mnist10k_28x28", "auto"),
    Target("digits_8x8", "auto", (57_700, 56_500), 56_000),
    Target("mushroom_fimi", "xor", (215_000, 200_000), 190_000),
    Target("role_fire1", "auto", (12_600, 11_800), 10_000),
    Target("role_americas_small", "auto", (63_000, 61_000), 55_000),
    # Tables with few patterns: 1.002 × the best result of the prototype's greedy coder, and at most the codelength
    # without atoms; and the best result of the prototype.
    Target("groceries", "auto", (244_121, 243_930)),
    Target("pbmc68k_reduced", "auto", (1.002 * 373_414, 373_414)),
    Target("hgdp_paper_1043x1998", "auto", (1.002 * 1_157_148, 1_157_148)),
    Target("bmf_dblp", "auto", (1.002 * 65_054, 64_541)),
    Target("bmf_zoo", "auto", (1.002 * 1_393, 1_393)),
    Target("halftone", "xor"),
    Target("digits", "auto", (57_700, 56_500), 56_000),
)
# Fraction of wrong cells: data set, algebra, number of atoms, and the bar.
SHARES = (
    ("digits", "or", 16, 0.0720),
    ("digits", "xor", 16, 0.0860),
    ("planted_bool", "or", 8, 0.0500),
    ("planted_gf2", "xor", 8, 0.0503),
    ("planted_gf2dense", "xor", 8, 0.0503),
)
# Planted atoms to recover without knowing their number: samples, features, atoms, algebra, density of the atoms; and
# the bars: the maximum number of atoms, and L relative to that of the planted factors.
HIDDEN = (
    (5000, 200, 20, "or", 0.15, 20, 1.0),
    (20_000, 400, 60, "or", 0.15, 60, 1.0),
    (5000, 200, 20, "xor", 0.3, 30, 1.05),
)


def oracle() -> Any:
    """Return the reference implementations of the tests."""
    found = importlib.util.spec_from_file_location("naive", Path(__file__).parents[1] / "tests" / "naive.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


NAIVE = oracle()


def codelength_of(X: np.ndarray, result: ba.Factorization) -> int:
    """Return L computed from the factors, after checking that the result has the same."""
    parts = NAIVE.codelength(X, result.atoms.to_dense(), result.codes.to_dense(), result.algebra, result.bias)
    if sum(parts) != result.codelength.total:
        raise AssertionError(f"the factors take {sum(parts)} bits, but the result has {result.codelength.total}")
    return sum(parts)


def timed(X: np.ndarray, seed: int, **how: Any) -> tuple[ba.Factorization, float]:
    """Return a factorization and its CPU seconds, with loaded kernels."""
    if seed == 0:  # the first call loads the kernels
        ba.factorize(X[:100], **how, random_state=0)
    begin = time.process_time()
    result = ba.factorize(X, **how, random_state=seed)
    return result, time.process_time() - begin


def met(*pairs: tuple[float, float | None]) -> str:
    """Return whether all values meet their bars, or an empty string if there is no bar."""
    bars = [(value, bar) for value, bar in pairs if bar is not None]
    return "" if not bars else "yes" if all(value <= bar for value, bar in bars) else "no"


def codelength_row(X: np.ndarray, target: Target, search: str, seeds: int) -> Row:
    """Run one search on one data set."""
    runs = [timed(X, seed, algebra=target.algebra, search=search) for seed in range(seeds)]
    bits = [min(codelength_of(X, result), *result.codelengths.values()) for result, _ in runs]
    middle, seconds, nothing = int(median(bits)), median(taken for _, taken in runs), ba.codelength(X).total
    bar, most = target.bars[search == "thorough"], target.seconds[search == "thorough"]
    won, atoms = sorted({result.algebra for result, _ in runs}), median(len(result.atoms) for result, _ in runs)
    row: Row = {"data": target.name, "algebra": target.algebra, "search": search, "won": " ".join(won), "p": int(atoms)}
    row |= {"L": middle, "worst": max(bits), "no model": nothing}
    row |= {"bar": bar and int(bar), "met": met((middle, bar), (max(bits), nothing))}
    row |= {"stretch": target.stretch, "L / stretch": target.stretch and middle / target.stretch}
    return log_row(row | {"CPU s": seconds, "s bar": most, "in time": met((seconds, most))})


def share_row(folder: Path | None, name: str, algebra: str, p: int, bar: float, search: str, seeds: int) -> Row:
    """Run a search with a given number of atoms on one data set."""
    X = digits_set(folder) if name == "digits" else planted_set(folder, name)
    runs = [timed(X, seed, n_components=p, algebra=algebra, search=search) for seed in range(seeds)]
    shares, seconds = [result.wrong_bits / X.size for result, _ in runs], median(taken for _, taken in runs)
    row: Row = {"data": name, "algebra": algebra, "search": search, "p": p}
    row |= {"wrong share": median(shares), "worst": max(shares), "bar": bar, "met": met((median(shares), bar))}
    row |= {"CPU s": seconds, "s bar": MAX_SECONDS if search == "fast" else None}
    return log_row(row | {"in time": met((seconds, row["s bar"]))})


def hidden_row(planted: tuple[int, int, int, str, float, int, float], search: str, seeds: int, max_rows: int) -> Row:
    """Recover planted atoms without knowing their number."""
    n, m, p, algebra, density, most, over = planted
    n = min(n, max_rows)
    found, right, lengths, seconds = [], [], [], []
    for seed in range(seeds):
        made = ba.datasets.planted(n, m, p, algebra=algebra, atom_density=density, random_state=seed)
        result, taken = timed(made.X, seed, algebra=algebra, search=search)
        known = {atom.tobytes() for atom in result.atoms.to_dense()}
        found.append(len(result.atoms))
        right.append(sum(atom.tobytes() in known for atom in made.atoms))
        truth = ba.codelength(made.X, made.atoms, made.codes, algebra=algebra).total
        lengths.append(codelength_of(made.X, result) / truth)
        seconds.append(taken)
    row: Row = {"data": f"{n} x {m}", "algebra": algebra, "search": search, "planted": p, "p": int(median(found))}
    row |= {"most p": max(found), "right": int(median(right)), "fewest right": min(right), "L / truth": median(lengths)}
    row |= {"worst": max(lengths), "bar": over}
    row |= {"met": met((median(found), most), (median(lengths), over), (p, median(right))), "CPU s": median(seconds)}
    return log_row(row)


def noise_row(density: float, search: str, seeds: int, max_rows: int) -> Row:
    """Run a search on random bits, which have no patterns."""
    atoms, more, n = [], [], min(2000, max_rows)
    for seed in range(seeds):
        X = (np.random.default_rng(seed).random((n, 100)) < density).astype(np.uint8)
        result, taken = timed(X, seed, algebra="auto", search=search)
        atoms.append(len(result.atoms))
        more.append(codelength_of(X, result) - ba.codelength(X).total)
    row: Row = {"data": f"{n} x 100, density {density}", "search": search, "most atoms": max(atoms)}
    return log_row(
        row | {"bits above no model": max(more), "met": met((max(atoms), 0), (max(more), 0)), "CPU s": taken}
    )


def quality(options: argparse.Namespace) -> list[Table]:
    """Compare codelengths, wrong cells, recovered atoms and noise with their targets."""
    folder, seeds, max_rows = options.folder, options.seeds, QUICK_ROWS if options.quick else 10**9
    sets = bundled_sets() if folder is None else {}
    rows = []
    for target in CODELENGTHS:
        if target.name not in sets and not (folder is not None and (folder / f"{target.name}.npz").exists()):
            continue
        if chosen(options, target.name):
            X = sets[target.name] if folder is None else load(folder, target.name)
            rows += [codelength_row(X, target, search, seeds) for search in SEARCHES]
    shares = [
        share_row(folder, *row, search, seeds) for row in SHARES for search in SEARCHES if chosen(options, row[0])
    ]
    both = [(search, seeds, max_rows) for search in SEARCHES]
    hidden = [hidden_row(row, *how) for row in HIDDEN for how in both if chosen(options, "hidden")]
    noise = [noise_row(share, *how) for share in (0.5, 0.1) for how in both if chosen(options, "noise")]
    of = f"median of {seeds} seeds, n_jobs=1"
    note = "L: from the factors; if both algebras are tried, the shorter. met: L within the bar, and no seed above L "
    note += "without atoms. won: algebras kept."
    tables = [
        Table(f"Codelengths in bits, {of}", rows, note),
        Table(f"A given number of atoms, wrong cells, {of}", shares, "Fractions of all cells, including noise."),
        Table(f"Recovered planted atoms, {of}", hidden, "5 % noise, codes .15. The seed also determines the data."),
        Table(f"Noise, algebra auto, worst of {seeds} seeds", noise, "There are no patterns to find."),
    ]
    return [table for table in tables if table.rows]
