"""Codelength of each search against seconds, compared with the paper's methods in this package and in C++."""

from __future__ import annotations

import argparse
import time
from statistics import median
from typing import Any

import numpy as np
from methods import METHODS, arguments_of
from tables import Row, Table, log_row

import bitatoms as ba
from datasets import EINSTEIN, MNIST, chosen, main_sets

MAX_SEEDS = 3
SIZES = (16, 36, 79, 128)
SHOWN = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20)

Curve = list[tuple[float, int]]  # seconds, and the fewest bits so far


def curve_of(X: np.ndarray, **how: Any) -> Curve:
    """Return CPU seconds and codelength of each improvement."""
    points = [(0.0, ba.codelength(X).total)]  # without atoms, at time 0
    begin = time.process_time()

    def note(row: Any) -> None:
        if row.bits < points[-1][1]:
            points.append((time.process_time() - begin, row.bits))

    ba.factorize(X, **how, callbacks=note)
    return [*points, (time.process_time() - begin, points[-1][1])]


def reached(curves: list[Curve], seconds: float) -> float:
    """Return the fewest bits after this many seconds, median over the seeds."""
    return median(min(bits for taken, bits in curve if taken <= seconds) for curve in curves)


def methods_of_the_paper() -> dict[str, Row]:
    """Return all updates and coders, each with four numbers of atoms and with two kinds of forward selection."""
    names = [f"{update}, {coder}" for update in ("MOB", "K-PROX") for coder in ("greedy", "BMP")]
    found = {}
    for name in names:
        found |= {f"{name}, {p}": arguments_of(f"{name}, samples, {p}") for p in SIZES}
        found |= {f"{name}, forward, {rounds}": arguments_of(f"{name}, forward", patience=rounds) for rounds in (1, 10)}
    return found


def compared(name: str, method: str, theirs: list[Curve], fast: list[Curve]) -> Row:
    """Compare one method with the fast search at the time of each of its improvements."""
    times = sorted({seconds for curve in theirs for seconds, _ in curve[1:]})
    lower = [(seconds, reached(theirs, seconds), reached(fast, seconds)) for seconds in times]
    lower = [(seconds, one, other) for seconds, one, other in lower if one < other]
    end = median(curve[-1][0] for curve in theirs)
    row: Row = {"data": name, "method": method, "CPU s": end, "L": int(reached(theirs, max(times)))}
    row |= {"fast by then": int(reached(fast, end)), "ahead at": len(lower), "of": len(times)}
    worst = max(lower, key=lambda point: point[2] / point[1], default=None)
    row |= {"from s": lower[0][0] if lower else None, "to s": lower[-1][0] if lower else None}
    return log_row(row | {"by at most %": worst and 100 * (worst[2] / worst[1] - 1)})


def cpp_points(name: str) -> dict[str, list[Curve]]:
    """Return the results of the paper's C++ program as curves of one point."""
    columns = {EINSTEIN: 0, MNIST: 1}
    if name not in columns:
        return {}
    points = {f"C++ {method}": figures[columns[name]] for method, figures in METHODS.items()}
    return {method: [[(0.0, bits), (seconds, bits)]] for method, (_, seconds, _, bits) in points.items() if bits}


def curve(options: argparse.Namespace) -> list[Table]:
    """Measure L against seconds, XOR, one thread."""
    seeds, progress, rows = range(min(MAX_SEEDS, options.seeds)), [], []
    for name, X in main_sets(options.folder).items():
        if not chosen(options, name):
            continue
        searches = {}
        for search in ("fast", "thorough"):
            ba.factorize(X[:100], algebra="xor", search=search, random_state=0)  # loads the kernels
            searches[search] = [curve_of(X, algebra="xor", search=search, random_state=seed) for seed in seeds]
            after = {f"{seconds} s": int(reached(searches[search], seconds)) for seconds in SHOWN}
            progress.append(log_row({"data": name, "search": search, **after}))
        for method, how in methods_of_the_paper().items():
            ba.factorize(X[:200], **{**how, "n_components": 4}, random_state=0)
            theirs = [curve_of(X, **how, random_state=seed) for seed in seeds]
            rows.append(compared(name, method, theirs, searches["fast"]))
        for method, points in cpp_points(name).items():
            rows.append(compared(name, method, points, searches["fast"]))
    of = f"XOR, n_jobs=1, median of {len(seeds)} seeds"
    note = "ahead at: number of improvements at which the method was below the fast search. "
    note += "C++: one seed, another machine, including file input and output."
    tables = [
        Table(f"L against CPU seconds, {of}", progress, "Before the first atoms: without atoms."),
        Table(f"The paper's methods compared with the fast search, {of}", rows, note),
    ]
    return [table for table in tables if table.rows]
