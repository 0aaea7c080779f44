"""The contribution of each move of the search: the codelength without it."""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
from tables import Row, Table, log_row

import bitatoms as ba
from bitatoms.parallel import Workers
from bitatoms.search.constraints import search as find
from bitatoms.search.driver import SearchRequest
from bitatoms.search.options import SearchOptions
from bitatoms.search.params import resolve
from bitatoms.search.plan import Plan
from datasets import EINSTEIN, bundled_sets, chosen, load

MAX_SEEDS = 3
MOVES = (
    *("linear", "nmf", "swap", "fresh sweep", "solve", "extend", "change basis", "eliminate", "grow", "thin out"),
    *("bias", "beam sweep", "perturb", "regrow", "finish"),
)


def data_and_algebras(folder: Path | None) -> dict[str, tuple[str, np.ndarray]]:
    """Return three data sets, each with an algebra."""
    if folder is not None:
        names = {EINSTEIN: "xor", "digits_8x8": "auto", "mushroom_fimi": "xor"}
        return {name: (algebra, load(folder, name)) for name, algebra in names.items()}
    bundled = {name: ("auto" if name == "digits" else "xor", X) for name, X in bundled_sets().items()}
    return {**bundled, "planted": ("xor", ba.datasets.planted(3000, 150, 15, atom_density=0.3, random_state=0).X)}


def plans(plan: Plan) -> dict[str, Plan]:
    """Return the plan unchanged, without each move, and with fewer starts."""
    without = {move: replace(plan, left_out=frozenset({move})) for move in MOVES}
    return {
        "nothing": plan,
        **without,
        "all starts but 64": replace(plan, starts=(64,)),
        "all starts but 0": replace(plan, starts=(0,)),
    }


def ablation_rows(name: str, algebra: str, X: np.ndarray, search: str, seeds: int) -> list[Row]:
    """Run one search on one data set, leaving out one move at a time."""
    params, data, rows, all_moves = (
        resolve(SearchOptions(algebra=algebra, search=search)),
        ba.BitMatrix.from_dense(X),
        [],
        0.0,
    )
    for left_out, plan in plans(params.plan).items():
        bits, seconds = [], []
        for seed in range(seeds):
            begin = time.process_time()
            random = np.random.default_rng(seed)
            result = find(SearchRequest(data, replace(params, plan=plan), Workers(), random))
            seconds.append(time.process_time() - begin)
            bits.append(result.codelength.total)
        all_moves = all_moves or median(bits)
        worse = [100 * (one / all_moves - 1) for one in (median(bits), *bits)]
        row: Row = {"data": name, "algebra": algebra, "search": search, "left out": left_out, "L": int(median(bits))}
        rows.append(log_row(row | {"worse by %": worse[0], "each seed": worse[1:], "CPU s": median(seconds)}))
    return rows


def ablation(options: argparse.Namespace) -> list[Table]:
    """Leave out each move, on three data sets."""
    seeds, rows = min(MAX_SEEDS, options.seeds), []
    for name, (algebra, X) in data_and_algebras(options.folder).items():
        if chosen(options, name):
            ba.factorize(X[:100], algebra=algebra, search="thorough", random_state=0)  # loads the kernels
            rows += [row for search in ("fast", "thorough") for row in ablation_rows(name, algebra, X, search, seeds)]
    note = "worse by: median L relative to all moves; each seed: the same per seed. Small differences are random."
    return [Table(f"Contribution of each move, median of {seeds} seeds", rows, note)] if rows else []
