"""How far each search is after how many seconds, beside the paper's methods in this package and in C++."""

from __future__ import annotations

import argparse
import time
from statistics import median
from typing import Any

import numpy as np
from methods import METHODS, asked
from sets import EINSTEIN, MNIST, chosen, main_sets
from tables import Row, Table, tell

import bitatoms as ba

MOST_SEEDS = 3
SIZES = (16, 36, 79, 128)
SHOWN = (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20)

Curve = list[tuple[float, int]]  # seconds, and the fewest bits until then


def curve_of(X: np.ndarray, **how: Any) -> Curve:
    """CPU seconds and the fewest bits until then, a point for each round that is better than all before."""
    points = [(0.0, ba.codelength(X).total)]  # no model is there at once
    begin = time.process_time()

    def note(row: Any) -> None:
        if row.bits < points[-1][1]:
            points.append((time.process_time() - begin, row.bits))

    ba.factorize(X, **how, callbacks=note)
    return [*points, (time.process_time() - begin, points[-1][1])]


def reached(curves: list[Curve], seconds: float) -> float:
    """The fewest bits after so many seconds, median over the seeds."""
    return median(min(bits for taken, bits in curve if taken <= seconds) for curve in curves)


def methods_of_the_paper() -> dict[str, Row]:
    """Both updates with both coders, each with four numbers of atoms, and forward selection less and more patient."""
    names = [f"{update}, {coder}" for update in ("MOB", "K-PROX") for coder in ("greedy", "BMP")]
    found = {}
    for name in names:
        found |= {f"{name}, {p}": asked(f"{name}, samples, {p}") for p in SIZES}
        found |= {f"{name}, forward, {rounds}": {**asked(f"{name}, forward"), "patience": rounds} for rounds in (1, 10)}
    return found


def compared(name: str, method: str, theirs: list[Curve], fast: list[Curve]) -> Row:
    """One method beside the fast search, at every moment at which it got better."""
    moments = sorted({seconds for curve in theirs for seconds, _ in curve[1:]})
    lower = [(seconds, reached(theirs, seconds), reached(fast, seconds)) for seconds in moments]
    lower = [(seconds, one, other) for seconds, one, other in lower if one < other]
    end = median(curve[-1][0] for curve in theirs)
    row: Row = {"data": name, "method": method, "CPU s": end, "L": int(reached(theirs, max(moments)))}
    row |= {"fast by then": int(reached(fast, end)), "lower at": len(lower), "of": len(moments)}
    worst = max(lower, key=lambda point: point[2] / point[1], default=None)
    row |= {"from s": lower[0][0] if lower else None, "to s": lower[-1][0] if lower else None}
    return tell(row | {"by % at most": worst and 100 * (worst[2] / worst[1] - 1)})


def cpp_points(name: str) -> dict[str, list[Curve]]:
    """What the paper's C++ program reached in all its seconds, as curves of one point."""
    places = {EINSTEIN: 0, MNIST: 1}
    if name not in places:
        return {}
    points = {f"C++ {method}": figures[places[name]] for method, figures in METHODS.items()}
    return {method: [[(0.0, bits), (seconds, bits)]] for method, (_, seconds, _, bits) in points.items() if bits}


def curve(options: argparse.Namespace) -> list[Table]:
    """L against seconds, XOR, one thread."""
    seeds, progress, rows = range(min(MOST_SEEDS, options.seeds)), [], []
    for name, X in main_sets(options.folder).items():
        if not chosen(options, name):
            continue
        searches = {}
        for search in ("fast", "thorough"):
            ba.factorize(X[:100], search=search, random_state=0)  # loads the kernels
            searches[search] = [curve_of(X, search=search, random_state=seed) for seed in seeds]
            after = {f"{seconds} s": int(reached(searches[search], seconds)) for seconds in SHOWN}
            progress.append(tell({"data": name, "search": search, **after}))
        for method, how in methods_of_the_paper().items():
            ba.factorize(X[:200], **{**how, "n_components": 4}, random_state=0)
            theirs = [curve_of(X, **how, random_state=seed) for seed in seeds]
            rows.append(compared(name, method, theirs, searches["fast"]))
        for method, points in cpp_points(name).items():
            rows.append(compared(name, method, points, searches["fast"]))
    of = f"XOR, n_jobs=1, median of {len(seeds)} seeds"
    note = "lower at: how many of the moments at which the method got better found it below the fast search. "
    note += "C++: one seed, another machine, files read and written too."
    tables = [
        Table(f"L after so many CPU seconds, {of}", progress, "Before the first atoms: no model."),
        Table(f"The paper's methods beside the fast search, {of}", rows, note),
    ]
    return [table for table in tables if table.rows]
