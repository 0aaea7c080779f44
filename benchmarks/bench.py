"""Time, memory and codelength of bitatoms, compared with the paper's C++ program and with NumPy.

With a folder of data sets (NAME.npz with ``X``, rows from ``np.packbits``, and ``shape``) models are fitted to the data
sets of the paper and to planted ones; without one, to data bundled with scikit-learn and to generated data.
``--quick`` runs all of it, and all other scripts of this folder, on small tables: to see that they run.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numba
import numpy as np
from ablation import ablation
from cluster import cluster
from curve import curve
from large import large
from llvmlite.binding import get_host_cpu_name
from methods import FORCED, METHODS, arguments_of
from quality import quality
from tables import Row, Table, best_of, show
from threadpoolctl import threadpool_limits

import bitatoms as ba
from bitatoms.engine.block import Block
from bitatoms.engine.coding import code, coding_rule
from bitatoms.engine.update import fit_each, update_each
from bitatoms.parallel import Workers
from bitatoms.search.starts import initial
from datasets import EINSTEIN, MNIST, PLANTED, QUICK_ROWS, main_sets, planted_set, write_quick_sets
from online import online

GREEDY, BMP = coding_rule("greedy", "xor"), coding_rule("bmp", "xor")
STEEP = 2.2  # a larger factor per doubling is flagged
# Fraction of wrong cells: the planted noise, MOB in the same C++ program, and the best of the other systems tested (an
# alternating search with exact codes and restarts) with its seconds.
OTHERS = {
    "planted_bool": (0.04985, ".091-.209", 0.04985, 1.0),
    "planted_gf2": (0.05017, ".086-.203", 0.05017, 2.8),
    "planted_gf2dense": (0.05019, ".37", 0.05019, 2.9),
}


def peak_megabytes(task: Callable[[], Any]) -> float:
    """Return the peak memory of a call in megabytes, beyond what was allocated before."""
    tracemalloc.start()
    task()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def over_seeds(X: np.ndarray, seeds: int, how: Row) -> tuple[list[ba.Factorization], Row]:
    """Return the results for all seeds, the median CPU seconds (best of three if fast) and the peak memory."""
    results, seconds = [], []
    for seed in range(seeds):
        again = {**how, "random_state": seed}
        begin = time.process_time()
        results.append(ba.factorize(X, **again))  # warm-up: the first call loads the kernels
        fast = time.process_time() - begin < 1
        seconds.append(best_of(3 if fast else 1, lambda again=again: ba.factorize(X, **again)))
    memory = peak_megabytes(lambda: ba.factorize(X, **how, random_state=0))
    return results, {"CPU s": median(seconds), "peak MB": memory}


def model_row(name: str, method: str, X: np.ndarray, seeds: int) -> Row:
    """Run one method on one data set, and compare with the C++ program if it was run on it."""
    results, cost = over_seeds(X, seeds, arguments_of(method, FORCED[name]))
    ends = [(len(result.atoms), result.wrong_bits, result.codelength.total) for result in results]
    if method.endswith("forced"):
        ends = [(last.atoms, last.wrong_bits, last.bits) for last in (result.history[-1] for result in results)]
    p, wrong, bits = (int(median(values)) for values in zip(*ends, strict=True))
    row = {"data": name, "method": method, "p": p, **cost, "wrong bits": wrong, "L": bits, "bits/sample": bits / len(X)}
    if name in (EINSTEIN, MNIST):
        cpp_p, cpp_s, cpp_wrong, cpp_bits = METHODS[method][name == MNIST]
        row |= {"C++ p": cpp_p, "C++ s": cpp_s, "C++ wrong": cpp_wrong, "C++ L": cpp_bits}
        row |= {"x faster": cpp_s / cost["CPU s"] if cpp_p == p else None, "L / C++": cpp_bits and bits / cpp_bits}
    return row


def exact_row(name: str, X: np.ndarray, seeds: int, known: bool) -> Row:
    """Run exact steps on planted factors, and compare with other systems where known."""
    how = {"n_components": 8, "algebra": PLANTED[name], "search": ba.PaperSearch(coder="exact"), "n_init": 10}
    results, cost = over_seeds(X, seeds, how)
    shares = [result.wrong_bits / X.size for result in results]
    row = {"data": name, "algebra": PLANTED[name], **cost, "wrong share": median(shares), "worst seed": max(shares)}
    return row | (dict(zip(("noise", "C++ MOB", "best other", "its s"), OTHERS[name], strict=True)) if known else {})


def models(options: argparse.Namespace) -> list[Table]:
    """Measure CPU seconds, memory, wrong bits and codelength of the methods."""
    sets = main_sets(options.folder)
    rows = [model_row(name, method, X, options.seeds) for name, X in sets.items() for method in METHODS]
    folder = options.folder
    exact = [exact_row(name, planted_set(folder, name), options.seeds, folder is not None) for name in PLANTED]
    note = "forward: from 16, patience 10. forced: from 16 to that p in any case. x faster: where p is the same."
    return [
        Table(f"Models, n_jobs=1, median of {options.seeds} seeds (C++: one seed, files too)", rows, note),
        Table("Planted factors, p = 8, exact steps, n_init=10", exact, "Fractions of all cells, including noise."),
    ]


def fresh(data: ba.BitMatrix, atoms: ba.BitMatrix) -> tuple[Block]:
    """Return a block without codes, with the tables of the atoms computed, as within a loop."""
    block = Block(data, atoms, None, False, Workers())
    code(block, coding_rule("greedy", "xor", residual_limit=data.n_cols))  # codes no row, but computes the tables
    block.rows.arrays.stale[:] = 1  # only the rows: the tables stay valid
    return (block,)


def count_by_words(rows: np.ndarray, atoms: np.ndarray, out: np.ndarray) -> None:
    """out[i, k] = number of ones that row i and atom k share, by NumPy in chunks that fit into the cache."""
    step = max(1, (1 << 15) // atoms.size)
    for i in range(0, len(rows), step):
        np.bitwise_count(rows[i : i + step, np.newaxis] & atoms).sum(axis=2, dtype=np.float32, out=out[i : i + step])


def coding_row(name: str, X: np.ndarray, p: int) -> Row:
    """Measure the rate of complete greedy coding, and of computing the initial overlaps with NumPy."""
    data = ba.BitMatrix.from_dense(X)
    atoms = initial.samples(data, p, np.random.default_rng(0))
    floats, patterns = X.astype(np.float32), atoms.to_dense(np.float32).T
    by_blas, by_words = np.empty((2, len(X), len(atoms)), np.float32)
    seconds = {
        "coding": best_of(7, lambda block: code(block, GREEDY), lambda: fresh(data, atoms)),
        "BLAS counts": best_of(7, lambda: np.matmul(floats, patterns, out=by_blas)),
        "bitwise_count": best_of(3, lambda: count_by_words(data.words, atoms.words, by_words)),
    }
    if (by_blas != by_words).any():
        raise AssertionError("the counts differ")
    rates = {task: len(X) / taken / 1e3 for task, taken in seconds.items()}
    return {
        "data": name,
        "m": data.n_cols,
        "p": len(atoms),
        **rates,
        "coding / BLAS": seconds["BLAS counts"] / seconds["coding"],
    }


def word_rows(n: int) -> list[Row]:
    """Measure the rate of kernels on n packed rows, and of NumPy on bytes for the same result."""
    made = ba.datasets.planted(n, 256, 128, code_density=4 / 128, random_state=0)
    X, floats, users = made.X, made.X.astype(np.float32), made.codes.T.astype(bool)
    data, atoms, codes = (ba.BitMatrix.from_dense(bits) for bits in (X, made.atoms, made.codes))
    block = Block(data, atoms, codes, False, Workers())
    pack, packed = ba.BitMatrix.from_dense, data.words.nbytes

    def all_vote() -> tuple[()]:
        block._atoms.stale[:] = 1
        return ()

    tasks = {
        "votes": (
            codes.count() * packed // n,
            lambda: update_each(block),
            lambda: [X[rows].sum(axis=0) for rows in users],
        ),
        "transpose": (packed, data.transpose, lambda: np.packbits(X.T, axis=1)),
        "column weights": (packed, data.column_weights, lambda: X.sum(axis=0)),
        "packing uint8": (X.nbytes, lambda: pack(X), lambda: np.packbits(X, axis=1)),
        "packing float32": (floats.nbytes, lambda: pack(floats, 0.5), lambda: np.packbits(floats > 0.5, axis=1)),
    }
    rows = []
    for task, (size, ours, numpys) in tasks.items():
        taken, numpy_taken = best_of(7, ours, all_vote), best_of(3, numpys)
        rates = {"GB/s": size / taken / 1e9, "NumPy GB/s": size / numpy_taken / 1e9}
        rows.append({"task": task, "rows": n, "ms": 1e3 * taken, **rates, "x faster": numpy_taken / taken})
    return rows


def kernels(options: argparse.Namespace) -> list[Table]:
    """Compare the rates of the kernels with those of NumPy."""
    with threadpool_limits(1):  # for BLAS
        sets = main_sets(options.folder)
        rows = [coding_row(name, X, p) for name, X in sets.items() for p in (32, 128, 512)]
        words = [row for n in ((QUICK_ROWS,) if options.quick else (10_000, 200_000)) for row in word_rows(n)]
    note = "coding: complete, from zero codes. NumPy only counts |atom & row| of all atoms and rows, BLAS in float32."
    size = (
        "Bytes: of the packed rows (NumPy uses unpacked ones); in packing, of the table (which bitatoms also checks)."
    )
    return [
        Table("Coding, one thread, thousand rows per second", rows, note),
        Table("Kernels, one thread, planted, 256 columns, 128 atoms, four per row", words, size),
    ]


def step_seconds(n: int, m: int, p: int) -> dict[str, float]:
    """Measure the CPU seconds of coding and updating, on rows that use four atoms for any size."""
    made = ba.datasets.planted(n, m, p, code_density=4 / p, random_state=0)
    flips = np.random.default_rng(1).random(made.atoms.shape) < 0.05  # so that there is something to learn
    data, atoms = ba.BitMatrix.from_dense(made.X), ba.BitMatrix.from_dense(made.atoms ^ flips)

    def start(coded: bool) -> tuple[Block]:
        block = Block(data, atoms, None, False, Workers())
        if coded:
            code(block, GREEDY)
        return (block,)

    return {
        "coding, greedy": best_of(5, lambda block: code(block, GREEDY), lambda: start(False)),
        "coding, BMP": best_of(5, lambda block: code(block, BMP), lambda: start(False)),
        "update, MOB": best_of(5, lambda block: update_each(block), lambda: start(True)),
        "update, K-PROX": best_of(5, lambda block: fit_each(block, GREEDY), lambda: start(True)),
    }


def scaling(options: argparse.Namespace) -> list[Table]:
    """Measure the cost of doubling the rows, the features or the atoms."""
    n = QUICK_ROWS if options.quick else 20_000
    sizes = {"n": (n, 2 * n, 4 * n, 8 * n), "m": (128, 256, 512, 1024), "p": (32, 64, 128, 256)}
    rows = []
    for axis, values in sizes.items():
        runs = [step_seconds(**{"n": n, "m": 256, "p": 64, axis: value}) for value in values]
        for task in runs[0]:
            seconds = [run[task] for run in runs]
            ratios = [after / before for before, after in itertools.pairwise(seconds)]
            exponent = float(np.polyfit(np.log(values), np.log(seconds), 1)[0])
            row = {"task": task, "grows": axis, "from": values[0], "to": values[-1], "exponent": exponent}
            row |= {"for each doubling": ratios, "ms": [1e3 * taken for taken in seconds]}
            rows.append(row | {"flag": f"above {STEEP}" if max(ratios) > STEEP else ""})
    note = f"Otherwise n = {n}, m = 256, p = 64. Planted, four atoms per row. Coding includes the tables of the atoms."
    return [Table("Scaling of one coding pass and of one update, CPU time", rows, note)]


def threads(options: argparse.Namespace) -> list[Table]:
    """Wall time on many rows with one thread and with two, and whether both find the same."""
    data = ba.BitMatrix.from_dense(ba.datasets.planted(options.rows, 256, 64, code_density=4 / 64, random_state=0).X)
    how = {"n_components": 64, "search": ba.PaperSearch(coder="greedy"), "init": "samples", "random_state": 0}
    first = ba.factorize(data, **how, max_iter=14)
    best: dict[int, Row] = {}
    for jobs in (1, 2) * 2:
        wall, cpu = time.perf_counter(), time.process_time()
        found = ba.factorize(data, **how, max_iter=14, n_jobs=jobs)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        row = {"n_jobs": jobs, "wall s": wall, "CPU s": cpu, "cores": cpu / wall, "iterations": found.n_iter}
        row |= {"wrong bits": found.wrong_bits, "same bits": found.atoms == first.atoms and found.codes == first.codes}
        best[jobs] = min(best.get(jobs, row), row, key=lambda row: row["wall s"])
    rows = [row | {"of one": row["wall s"] / best[1]["wall s"]} for row in best.values()]
    note = "The better of two, without packing. cores: CPU / wall; if well below n_jobs, the machine was busy."
    return [Table(f"Threads, planted {options.rows} x 256, p = 64, MOB, greedy, samples", rows, note)]


def process_seconds(code: str, cache: str) -> tuple[float, float]:
    """Return wall and CPU seconds of a new process that runs this code with this numba cache."""
    path = os.pathsep.join([str(Path(ba.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    wall, before = time.perf_counter(), os.times()
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "PYTHONPATH": path}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    wall, after = time.perf_counter() - wall, os.times()
    return wall, sum(after[2:4]) - sum(before[2:4])


def startup(options: argparse.Namespace) -> list[Table]:
    """Time a small default fit in a new process, with an empty and with a filled numba cache."""
    data = "import numpy, bitatoms; X = numpy.random.default_rng(0).random((200, 50)) < 0.3; "
    jobs = {
        "import bitatoms": "import bitatoms",
        "import numpy, numba": "import numpy, numba",
        "import and factorize": data + "bitatoms.factorize(X, algebra='xor', random_state=0)",
        "import and estimator": data + "bitatoms.BinaryDictionaryLearning(algebra='xor', random_state=0).fit(X)",
    }
    rows = []
    for job, program in jobs.items():
        with tempfile.TemporaryDirectory() as cache:
            if options.quick:  # an empty cache takes minutes to fill
                cold, *warm = [process_seconds(program, os.environ.get("NUMBA_CACHE_DIR", ""))] * 2
            else:
                cold, *warm = (process_seconds(program, cache) for _ in range(4))
        row = {"job": job, "cold wall s": cold[0], "cold CPU s": cold[1]}
        rows.append({**row, "warm wall s": min(warm)[0], "warm CPU s": min(warm)[1]})
    return [Table("Startup of a new process", rows, "cold: empty numba cache. warm: filled, the best of three.")]


PARTS = {
    "models": models,
    "quality": quality,
    "ablation": ablation,
    "curve": curve,
    "kernels": kernels,
    "scaling": scaling,
    "threads": threads,
    "startup": startup,
    "large": large,
    "cluster": cluster,
    "online": online,
}


# Scripts with options of their own, and those of a quick run; FOLDER has the tables of `write_quick_sets`.
SCRIPTS = {
    "algebras.py": "FOLDER --sets kov_zoo",
    "anchors.py": "FOLDER --sets kov_zoo:2 --seeds 1",
    "completion.py": "--seeds 1",
    "fuzz_cover.py": "--covers 100",
    "fuzz_factorize.py": "--fits 40",
    "gpu.py": "coding passes fit transform --rows 100000",
    "images.py": "--only halftone,text --noise 0.05 --side 60",
    "mutants.py": "draw --number 20 FOLDER/mutants.json",
    "prediction.py": (
        "imputation recommendation anomalies classification --folder FOLDER --sets digits,mushroom --classes wine "
        "--splits 1"
    ),
    "recovery.py": "--every 97",
    "stability.py": "--rows 100 --resamples 2",
    "threads.py": "FOLDER --rows 500",
    "kernel_profile.py": "FOLDER",
    "transform.py": "FOLDER --sets digits_8x8",
    "wide.py": "FOLDER --only founders,groceries,bundles --scale 0.002 --rows 300",
}


def run_script(name: str, folder: Path) -> None:
    """Run a script of this folder on small tables, in a new process."""
    options = [word.replace("FOLDER", str(folder)) for word in SCRIPTS[name].split()]
    print(f"\n{name} {SCRIPTS[name]}", flush=True)
    subprocess.run([sys.executable, Path(__file__).with_name(name), *options], check=True)


def main() -> None:
    """Run the parts and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, help="data sets as NAME.npz (default: bundled data)")
    parser.add_argument("--quick", action="store_true", help="run all parts and scripts on small tables, in minutes")
    parser.add_argument("--only", help=f"parts to run, comma-separated (default: {','.join(PARTS)})")
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds per model (default: %(default)s)")
    parser.add_argument("--sets", help="data sets of quality, ablation and curve, comma-separated (default: all)")
    rows = "rows for threads, large and cluster (default: %(default)s)"
    parser.add_argument("--rows", type=int, default=1_000_000, help=rows)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to this file")
    options = parser.parse_args()
    known = [*PARTS, *(SCRIPTS if options.quick else ())]
    parts = options.only.split(",") if options.only else known
    if unknown := [part for part in parts if part not in known]:
        parser.error(f"--only: unknown part {unknown[0]!r}; choose from {', '.join(known)}")
    if options.quick and options.folder:
        parser.error("--quick makes its own tables; leave the folder out")
    versions = {"Python": platform.python_version(), "NumPy": np.__version__, "numba": numba.__version__}
    host = {"platform": platform.platform(), "processor": get_host_cpu_name(), "processors": os.cpu_count()}
    figures: Row = {"machine": {**host, **versions, "bitatoms": ba.__version__}}
    print(", ".join(f"{name} {value}" for name, value in figures["machine"].items()), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        if options.quick:
            print("Small tables, and filled caches: the figures show only that each benchmark runs.")
            options.folder, options.seeds, options.rows = write_quick_sets(Path(folder)), 1, 4000
        for part in parts:
            begin = time.perf_counter()
            if part in SCRIPTS:
                run_script(part, options.folder)
            else:
                tables = PARTS[part](options)
                figures[part] = {table.title: table.rows for table in tables}
                for table in tables:
                    show(table)
            print(f"\n{part} took {time.perf_counter() - begin:.0f} s", flush=True)
    if options.json is not None:  # atomic: an interrupted run leaves no partial file
        temporary = options.json.with_name(options.json.name + ".part")
        temporary.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        temporary.replace(options.json)


if __name__ == "__main__":
    main()
