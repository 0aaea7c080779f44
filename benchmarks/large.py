"""Fit and transform a planted store that is larger than the memory limit, and compare its rate with that in memory.

    python benchmarks/large.py --rows 20000000 --folder somewhere

Each step runs in its own process, whose peak memory is reported. With --folder the store is kept for the next run.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tables import Row, Table, as_text, log_row, show

import bitatoms as ba
from bitatoms.engine.block import reconstruct
from bitatoms.engine.passes import PassSpec
from bitatoms.parallel import Workers, count_threads
from bitatoms.rows.out_of_core import StoreRows
from bitatoms.rows.source import MemoryRows, RowSource

N_FEATURES, N_ATOMS = 1000, 20
CHUNK_ROWS = 1 << 16
NOISE, USES = 6, 3  # one bit in 2^6 is flipped, an atom is used in one of 2^3 rows
MAX_MEMORY = 256  # MB that rows, codes and counts may take
ROWS_IN_MEMORY = 2_000_000  # of the comparison with memory
PREFIX = "figures: "  # of the line of JSON that a step prints


def planted_atoms() -> ba.BitMatrix:
    """Return the atoms, in which one bit in twenty is one."""
    return ba.BitMatrix.from_dense(np.random.default_rng(0).random((N_ATOMS, N_FEATURES)) < 0.05)


def rare_bits(random: np.random.Generator, shape: tuple[int, int], halvings: int) -> np.ndarray:
    """Return words in which one bit in 2^halvings is one."""
    words = random.integers(2**64, size=shape, dtype=np.uint64)
    for _ in range(halvings - 1):
        words &= random.integers(2**64, size=shape, dtype=np.uint64)
    return words


def chunks(n_rows: int) -> Iterator[ba.BitMatrix]:
    """Yield the rows in chunks: products of codes and atoms, with noise."""
    atoms, no_bias = planted_atoms(), np.zeros(N_FEATURES, np.uint8)
    n_words = atoms.words.shape[1]
    last_word = np.uint64(2 ** (N_FEATURES % 64) - 1 if N_FEATURES % 64 else 2**64 - 1)
    for start in range(0, n_rows, CHUNK_ROWS):
        random = np.random.default_rng((1, start))
        count = min(CHUNK_ROWS, n_rows - start)
        codes = rare_bits(random, (count, 1), USES) & np.uint64(2**N_ATOMS - 1)
        words = reconstruct(ba.BitMatrix(codes, N_ATOMS), atoms, no_bias, "xor").words
        words = words ^ rare_bits(random, (count, n_words), NOISE)
        words[:, -1] &= last_word
        yield ba.BitMatrix(words, N_FEATURES)


def peak() -> float:
    """Return the peak memory of this process in MB."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1e6 if sys.platform == "darwin" else most / 1024 * 1.048576


def measured(task: Any) -> Row:
    """Return the time and memory of a task, and the figures that it returns."""
    wall, cpu = time.perf_counter(), time.process_time()
    figures = task()
    return {"wall s": time.perf_counter() - wall, "CPU s": time.process_time() - cpu, "peak MB": peak(), **figures}


def make(store: Path, n_rows: int) -> Row:
    """Write the store."""
    if not store.exists():
        ba.pack(chunks(n_rows), store)
    size = sum(file.stat().st_size for file in store.rglob("*") if file.is_file())
    return {"rows": len(ba.Store(store)), "GB packed": n_rows * N_FEATURES / 8e9, "GB on disk": size / 1e9}


def fit(store: Path, model: Path, max_memory: int) -> Row:
    """Fit the store with the planted number of atoms, and count those that are found."""
    estimator = ba.BinaryDictionaryLearning(
        N_ATOMS, algebra="xor", random_state=0, n_jobs=-1, resources=ba.Resources(max_memory=max_memory)
    ).fit(store)
    estimator.save(model)
    truth, found = planted_atoms(), ba.BitMatrix.from_dense(estimator.components_)
    same = {row.tobytes() for row in truth.words} & {row.tobytes() for row in found.words}
    passes = [row for row in estimator.history_ if row.rows == len(ba.Store(store))]
    wrong = passes[-1].wrong_bits / (passes[-1].rows * N_FEATURES)
    return {"atoms found": len(same), "passes": len(passes), "wrong": wrong}


def transform(store: Path, model: Path, codes: Path, max_memory: int) -> Row:
    """Write the codes of all rows."""
    estimator = ba.load(model).set_params(n_jobs=-1, resources__max_memory=max_memory)
    return {"rows": len(estimator.transform(store, output=codes))}


def timed_pass(rows: RowSource, spec: PassSpec, codes: Any) -> tuple[Any, Row]:
    """Run a pass and return its codes, and rows per second of wall time and of CPU time."""
    wall, cpu = time.perf_counter(), time.process_time()
    codes, _ = rows.run_pass(spec, codes)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return codes, {"M rows/s": rows.n_rows / wall / 1e6, "M rows/CPU s": rows.n_rows / cpu / 1e6}


def rates(store: Path, model: Path, n_rows: int, max_memory: int) -> Row:
    """Compare passes over the same rows in memory and in a store: from scratch, and from previous codes."""
    opened, part = ba.Store(store), store.with_name("part.zarr")
    n_rows = min(n_rows, len(opened))
    data = opened.take(np.arange(n_rows))
    if not part.exists():
        ba.pack(data, part)
    workers = Workers(count_threads(-1))
    learned = ba.load(model).as_model()
    first = PassSpec(learned.atoms, ba.BitMatrix.from_dense(learned.bias[np.newaxis]), "mend", learned.rule)
    later = PassSpec(first.atoms, first.bias, "mdl", learned.rule, np.arange(learned.atoms.n_rows))
    figures: Row = {"rows": n_rows}
    sources: dict[str, RowSource] = {
        "memory": MemoryRows(data, workers),
        "store": StoreRows(ba.Store(part), workers, max_memory),
    }
    seen: dict[tuple[str, str], Row] = {}
    for source, rows in sources.items():
        codes, _ = timed_pass(rows, first, None)  # a warm-up
        codes, seen[source, "first"] = timed_pass(rows, first, None)
        _, seen[source, "later"] = timed_pass(rows, later, codes)
    for kind in ("first", "later"):
        for source in sources:
            figures[f"{kind}, {source}: M rows/s"] = seen[source, kind]["M rows/s"]
        figures[f"{kind}: store / memory"] = seen["store", kind]["M rows/s"] / seen["memory", kind]["M rows/s"]
    return figures


def step(name: str, options: argparse.Namespace) -> Row:
    """Run one of the steps in this process."""
    store, model = options.folder / "planted.zarr", options.folder / "model.npz"
    limit = options.max_memory * 10**6
    tasks = {
        "make": lambda: make(store, options.rows),
        "fit": lambda: fit(store, model, limit),
        "transform": lambda: transform(store, model, options.folder / "codes.zarr", limit),
        "rates": lambda: rates(store, model, ROWS_IN_MEMORY, limit),
    }
    return measured(tasks[name])


def large(options: argparse.Namespace) -> list[Table]:
    """Run all steps on a temporary store."""
    with tempfile.TemporaryDirectory() as folder:
        return all_steps(Path(folder), options.rows, MAX_MEMORY)


def all_steps(folder: Path, n_rows: int, max_memory: int) -> list[Table]:
    """Run all steps, each in a new process."""
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for name in ("make", "fit", "transform", "rates"):
        command = [sys.executable, __file__, "--step", name, "--rows", str(n_rows)]
        command += ["--max-memory", str(max_memory), "--folder", str(folder)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        figures = next(line for line in done.stdout.splitlines() if line.startswith(PREFIX))
        rows.append(log_row({"step": name, **json.loads(figures.removeprefix(PREFIX))}))
    common = ("step", "wall s", "CPU s", "peak MB")
    steps = [{name: row.pop(name) for name in common} for row in rows]
    for row, other in zip(steps, rows, strict=True):
        row["us/row"] = row["wall s"] / n_rows * 1e6
        row["figures"] = ", ".join(f"{name} {as_text([value])[0]}" for name, value in other.items())
    note = f"n_components={N_ATOMS}, max_memory={max_memory} MB in addition to Python and its libraries."
    return [
        Table(f"A planted store of {n_rows} rows x {N_FEATURES}, each step in a new process", steps[:3], note),
        Table("Passes over the same rows in memory and in a store", [rows[3]], "All threads; wall time."),
    ]


def main() -> None:
    """Parse the options and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--max-memory", type=int, default=MAX_MEMORY, help="MB that rows, codes and counts may take")
    parser.add_argument("--folder", type=Path, help="folder to make the store in, and to keep it")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        print(PREFIX + json.dumps(step(options.step, options)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        for table in all_steps(options.folder or Path(scratch), options.rows, options.max_memory):
            show(table)


if __name__ == "__main__":
    main()
