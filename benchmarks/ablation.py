"""What each part of the search contributes: codelength or wrong cells, and CPU time, without it.

``make bench BENCH="--only ablation"`` leaves out each part on tables that are made here or bundled with scikit-learn,
and on those of a folder. ``python benchmarks/ablation.py [FOLDER] --jobs N --search thorough --out FILE`` runs the same
in several processes, with the parts of another search, and keeps each fit. ``--constants`` halves and
doubles constants.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import replace
from functools import cache, reduce
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from sklearn import datasets as bundled
from tables import Row, Table, log_row, show

import bitatoms as ba
from bitatoms.parallel import Workers
from bitatoms.search.constraints import search as find
from bitatoms.search.driver import SearchRequest
from bitatoms.search.options import SearchOptions
from bitatoms.search.params import resolve
from bitatoms.search.plan import Plan
from datasets import load

PARTS = (
    *("first look", "start 256", "start 0", "bias", "linear", "nmf", "close", "flat sweep"),
    *("grow", "row pairs", "columns", "column pairs", "swap", "change basis", "eliminate", "extend", "finish", "trim"),
)
CHILDREN = ("children", "more starts", "beam sweep", "perturb", "recombine")  # parts of a thorough search only
PAIRS = (("first look", "start 0"), ("first look", "nmf"), ("row pairs", "columns"), ("swap", "finish"))
FIELDS = {"close": {"close": 1.0}, "flat sweep": {"flat_sweeps": 0}}  # constants that switch a part off
PATCHES = {  # what takes the place of parts that a plan does not name
    "row pairs": ("bitatoms.search.moves.grow._PAIR_SEEDS", 0),
    "columns": ("bitatoms.search.moves.grow._COLUMN_SEEDS", 0),
    "trim": ("bitatoms.search.finish.trim", lambda block, objective: 0),
    "perturb": ("bitatoms.search.mdl_search._perturbed", lambda search, state: []),
    "recombine": ("bitatoms.search.mdl_search._recombined", lambda search, one, other: []),
}
CONSTANTS = (  # halved and doubled by ``--constants``
    *("least_gain", "patience", "first_look_atoms", "min_rows_per_atom", "rows_per_start_atom", "flat_sweeps"),
    *("min_new_atoms", "new_atoms_share", "cycle_rounds", "close"),
)


class Case(NamedTuple):
    """A table, an algebra and the number of atoms."""

    name: str
    algebra: str
    n_components: int | str = "mdl"


def planted(algebra: str, n: int, m: int, k: int, atoms: float, codes: float, noise: float) -> np.ndarray:
    """Return a table of random factors."""
    return ba.datasets.planted(
        n, m, k, algebra=algebra, atom_density=atoms, code_density=codes, noise=noise, random_state=7
    ).X


def above_medians(data: Any) -> np.ndarray:
    """Return two columns per number: above its median, and above its upper quartile."""
    return np.hstack([data > np.quantile(data, q, axis=0) for q in (0.5, 0.75)]).astype(np.uint8)


def dithered(name: str, side: int = 8) -> np.ndarray:
    """Return the blocks of a photograph, dithered by a random threshold of each pixel."""
    grey = bundled.load_sample_image(name).mean(axis=2)[::2, ::2]
    h, w = (length // side * side for length in grey.shape)
    bits = grey[:h, :w] > np.random.default_rng(0).normal(128, 40, (h, w))
    return bits.reshape(h // side, side, w // side, side).swapaxes(1, 2).reshape(-1, side * side).astype(np.uint8)


def words() -> np.ndarray:
    """Return which of the commoner words occur in each paragraph of the language reference that comes with Python."""
    from pydoc_data.topics import topics

    paragraphs = [part.lower().split() for text in topics.values() for part in text.split("\n\n")]
    paragraphs = [part for part in paragraphs if len(part) >= 8]
    counts: dict[str, int] = {}
    for part in paragraphs:
        for word in set(part):
            counts[word] = counts.get(word, 0) + 1
    index = {word: i for i, word in enumerate(sorted(word for word, n in counts.items() if 20 <= n and word.isalpha()))}
    X = np.zeros((len(paragraphs), len(index)), np.uint8)
    for i, part in enumerate(paragraphs):
        X[i, [index[word] for word in part if word in index]] = 1
    return X


MADE: dict[str, Callable[[], np.ndarray]] = {
    "xor, few atoms a row": lambda: planted("xor", 2000, 150, 20, 0.3, 0.125, 0.05),
    "xor, many atoms a row": lambda: planted("xor", 2000, 150, 20, 0.3, 0.3, 0.05),
    "xor, light atoms": lambda: planted("xor", 300, 100, 20, 0.1, 0.125, 0.1),
    "or, 40 atoms": lambda: planted("or", 2000, 150, 40, 0.1, 0.3, 0.05),
    "or, 10 atoms": lambda: planted("or", 300, 100, 10, 0.3, 0.3, 0.1),
    "or, sparse": lambda: planted("or", 4000, 200, 60, 0.04, 0.02, 0.002),
    "breast cancer": lambda: above_medians(bundled.load_breast_cancer().data),
    "wine": lambda: above_medians(bundled.load_wine().data),
    "flower": lambda: dithered("flower.jpg"),
    "words": words,
}
CASES = [
    *(Case(name, name[: name.index(",")]) for name in MADE if "," in name),
    *(Case(name, algebra) for name in ("breast cancer", "flower") for algebra in ("xor", "or")),
    *(Case("wine", "or"), Case("words", "or")),
]
FOLDER_CASES = [
    *(
        Case(name, algebra)
        for name in ("einstein_16x16_4088_zero", "mnist10k_17x17", "digits_8x8", "mushroom_fimi", "und_chess_krvskp")
        for algebra in ("xor", "or")
    ),
    *(Case(name, "or") for name in ("role_americas_small", "role_fire1", "kov_heart", "groceries", "und_soybean")),
    *(Case(name, "xor") for name in ("mnist10k_28x28", "und_cmc", "pbmc68k_reduced", "hgdp_paper_1043x1998")),
]


@cache
def bits_of(name: str, folder: Path | None) -> ba.BitMatrix:
    """Return a table that is made here or in a folder, with its unknown cells."""
    if name in MADE:
        return ba.BitMatrix.from_dense(MADE[name]())
    assert folder is not None
    X = load(folder, name)
    with np.load(folder / f"{name}.npz") as stored:
        if "known" not in stored:
            return ba.BitMatrix.from_dense(X)
        is_known = np.unpackbits(stored["known"], axis=1, count=X.shape[1])
    return ba.BitMatrix.from_any(np.ma.array(X, mask=is_known == 0), missing="unknown")


def changed(plan: Plan, part: str) -> Plan:
    """Return a plan without a part, or with a constant that is multiplied, such as "least_gain x 2"."""
    name, _, factor = part.partition(" x ")
    if factor:
        of = plan if hasattr(plan, name) else plan.mdl
        value = getattr(of, name) * float(factor)
        value = value if isinstance(getattr(of, name), float) else max(1, round(value))
        return replace(plan, **{name: value}) if of is plan else replace(plan, mdl=replace(of, **{name: value}))
    if part.startswith("start "):
        return replace(plan, starts=tuple(size for size in plan.starts if size != int(part[6:])))
    if part == "children":
        return replace(plan, children=0)
    if part == "more starts":
        return replace(plan, more_starts=())
    return replace(plan.without(part), mdl=replace(plan.mdl, **FIELDS.get(part, {})))


@cache
def load_kernels(algebra: str, search: str) -> None:
    """Make a small fit: the first one of a process loads the kernels."""
    ba.factorize(ba.datasets.digits()[0][:200], algebra=algebra, search=search, random_state=0)


def fit(case: Case, search: str, parts: tuple[str, ...], seed: int, folder: Path | None) -> Row:
    """Return what a search without some parts finds, and its CPU seconds."""
    options = SearchOptions(algebra=case.algebra, search=search, n_components=case.n_components)
    params = resolve(options)
    params = replace(params, plan=reduce(changed, parts, params.plan))
    table = bits_of(case.name, folder)
    load_kernels(case.algebra, search)
    with ExitStack() as patches:
        for part in parts:
            if part in PATCHES:
                patches.enter_context(patch(*PATCHES[part]))
        begin = time.process_time()
        result = find(SearchRequest(table, params, Workers(), np.random.default_rng(seed)))
        seconds = time.process_time() - begin
    cost = result.codelength.total if params.by_codelength else result.wrong_bits
    return {**case._asdict(), "search": search, "left out": "+".join(parts), "seed": seed, "cost": cost, "CPU": seconds}


def summary(rows: list[Row]) -> list[Row]:
    """Return for each part the cost and the CPU time without it, as a multiple of that with all parts."""
    by_case: dict[tuple[Any, ...], dict[str, list[Row]]] = {}
    for row in rows:
        key = row["name"], row["algebra"], row["n_components"], row["search"]
        by_case.setdefault(key, {}).setdefault(row["left out"], []).append(row)
    parts = list(dict.fromkeys(row["left out"] for row in rows if row["left out"]))
    found = []
    for search in dict.fromkeys(row["search"] for row in rows):
        for part in parts:
            ratios, times = {}, []
            for (name, algebra, _, of_search), runs in by_case.items():
                if of_search == search and part in runs and "" in runs:
                    cost, all_parts = (median(row["cost"] for row in runs[each]) for each in (part, ""))
                    ratios[f"{name} {algebra}"] = cost / max(1, all_parts)
                    times.append(sum(row["CPU"] for row in runs[part]) / sum(row["CPU"] for row in runs[""]))
            if ratios:
                worst = sorted(ratios, key=lambda name: -ratios[name])[:4]
                found.append(
                    {
                        "search": search,
                        "without": part,
                        "median": round(median(ratios.values()), 4),
                        "mean": round(mean(ratios.values()), 4),
                        "best": round(min(ratios.values()), 4),
                        "worst": ", ".join(f"{name} {ratios[name]:.4f}" for name in worst),
                        "CPU": round(median(times), 3),
                    }
                )
    return found


def ablation(options: argparse.Namespace) -> list[Table]:
    """Leave out each part on the tables made here and those of a folder."""
    cases = CASES + (FOLDER_CASES if options.folder else [])
    jobs = [
        (case, "fast", parts, seed, options.folder)
        for case in (cases[:2] if options.quick else cases)
        for parts in ((), *((part,) for part in PARTS))
        for seed in range(min(3, options.seeds))
    ]
    rows = [log_row(fit(*job)) for job in jobs]
    return [Table("L without a part / with all, and CPU time", summary(rows), "medians of the seeds; worst tables")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--search", default="fast")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--parts", help="parts to leave out, or several joined by +; comma-separated")
    parser.add_argument("--constants", action="store_true", help="halve and double constants, instead of leaving out")
    parser.add_argument("--cases", help="names of tables, comma-separated")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--limit", type=float, default=1e9, help="seconds")
    options = parser.parse_args()
    parts = [(), *((part,) for part in PARTS), *PAIRS]
    if options.search == "thorough":
        parts = [(), *((part,) for part in CHILDREN)]
    if options.constants:
        parts = [(), *((f"{name} x {factor}",) for name in CONSTANTS for factor in (0.5, 2))]
    if options.parts is not None:
        parts = [(), *(tuple(part.split("+")) for part in options.parts.split(",") if part)]
    cases = CASES + (FOLDER_CASES if options.folder else [])
    if options.cases:
        cases = [case for case in cases if case.name in options.cases.split(",")]
    jobs = [
        (case, search, part, seed, options.folder)
        for seed in range(options.seeds)
        for search in options.search.split(",")
        for case in cases
        for part in parts
    ]
    rows, end = [], time.perf_counter() + options.limit
    with ProcessPoolExecutor(options.jobs) as pool:
        waiting = [pool.submit(fit, *job) for job in jobs]
        for done in as_completed(waiting):
            rows.append(done.result())
            if options.out:
                with options.out.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
            if time.perf_counter() > end:
                pool.shutdown(wait=False, cancel_futures=True)
                break
    if len(parts) > 1:
        show(Table("L without a part / with all, and CPU time", summary(rows), f"{len(rows)} of {len(jobs)} fits"))


if __name__ == "__main__":
    main()
