"""A planted store that is larger than the memory it may take: fitted, transformed, and its rate beside that in memory.

    python benchmarks/large.py --rows 20000000 --folder somewhere

Each step runs in a process of its own, of which the peak memory is told; the store is kept for the next time where a
folder is given.
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
from bitatoms.core.pass_spec import PassSpec
from bitatoms.core.result import reconstruct
from bitatoms.parallel import Workers, count_threads
from bitatoms.rows.memory import MemoryRows
from bitatoms.rows.source import RowSource
from bitatoms.rows.store import StoreRows

N_FEATURES, N_ATOMS = 1000, 20
BLOCK = 1 << 16  # rows made at a time
NOISE, USED = 6, 3  # one bit in 2^6 is flipped, an atom is used in one row of 2^3
MAX_MEMORY = 256  # MB that rows, codes and counts may take
IN_MEMORY = 2_000_000  # rows of the comparison in memory
TOLD = "figures: "


def planted_atoms() -> ba.BitMatrix:
    """The atoms: one bit in twenty is one."""
    return ba.BitMatrix.from_dense(np.random.default_rng(0).random((N_ATOMS, N_FEATURES)) < 0.05)


def rare_bits(random: np.random.Generator, shape: tuple[int, int], halvings: int) -> np.ndarray:
    """Words of which one bit in 2^halvings is one."""
    words = random.integers(2**64, size=shape, dtype=np.uint64)
    for _ in range(halvings - 1):
        words &= random.integers(2**64, size=shape, dtype=np.uint64)
    return words


def blocks(n_rows: int) -> Iterator[ba.BitMatrix]:
    """The rows, block after block: a product of codes and atoms, with noise."""
    atoms, nothing = planted_atoms(), np.zeros(N_FEATURES, np.uint8)
    n_words = atoms.words.shape[1]
    past = np.uint64(2 ** (N_FEATURES % 64) - 1 if N_FEATURES % 64 else 2**64 - 1)
    for start in range(0, n_rows, BLOCK):
        random = np.random.default_rng((1, start))
        count = min(BLOCK, n_rows - start)
        codes = rare_bits(random, (count, 1), USED) & np.uint64(2**N_ATOMS - 1)
        words = reconstruct(ba.BitMatrix(codes, N_ATOMS), atoms, nothing, "xor").words
        words = words ^ rare_bits(random, (count, n_words), NOISE)
        words[:, -1] &= past
        yield ba.BitMatrix(words, N_FEATURES)


def peak() -> float:
    """The most memory that this process has had, in MB."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / 1e6 if sys.platform == "darwin" else most / 1024 * 1.048576


def measured(task: Any) -> Row:
    """What a task takes, and what it returns of figures."""
    wall, cpu = time.perf_counter(), time.process_time()
    figures = task()
    return {"wall s": time.perf_counter() - wall, "CPU s": time.process_time() - cpu, "peak MB": peak(), **figures}


def made(store: Path, n_rows: int) -> Row:
    """Write the store."""
    if not store.exists():
        ba.pack(blocks(n_rows), store)
    size = sum(file.stat().st_size for file in store.rglob("*") if file.is_file())
    return {"rows": len(ba.Store(store)), "GB packed": n_rows * N_FEATURES / 8e9, "GB on disk": size / 1e9}


def fitted(store: Path, model: Path, max_memory: int) -> Row:
    """Fit the store with a given number of atoms; how many of the planted ones are found."""
    estimator = ba.BinaryDictionaryLearning(N_ATOMS, random_state=0, n_jobs=-1, max_memory=max_memory).fit(store)
    estimator.save(model)
    truth, found = planted_atoms(), ba.BitMatrix.from_dense(estimator.components_)
    same = {row.tobytes() for row in truth.words} & {row.tobytes() for row in found.words}
    passes = [row for row in estimator.history_ if row.rows == len(ba.Store(store))]
    wrong = passes[-1].wrong_bits / (passes[-1].rows * N_FEATURES)
    return {"atoms found": len(same), "passes": len(passes), "wrong": wrong}


def transformed(store: Path, model: Path, codes: Path, max_memory: int) -> Row:
    """Write the codes of all rows."""
    estimator = ba.load(model).set_params(n_jobs=-1, max_memory=max_memory)
    return {"rows": len(estimator.transform(store, output=codes))}


def one_pass(rows: RowSource, order: PassSpec, codes: Any) -> tuple[Any, Row]:
    """A pass; rows a second of wall time and of CPU time."""
    wall, cpu = time.perf_counter(), time.process_time()
    codes, _ = rows.sweep(order, codes, 1, None, lambda part: None)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return codes, {"M rows/s": rows.n_rows / wall / 1e6, "M rows/CPU s": rows.n_rows / cpu / 1e6}


def rates(store: Path, model: Path, n_rows: int, max_memory: int) -> Row:
    """Passes over the same rows in memory and in a store: from nothing, and on from the codes."""
    opened, part = ba.Store(store), store.with_name("part.zarr")
    n_rows = min(n_rows, len(opened))
    data = opened.take(np.arange(n_rows))
    if not part.exists():
        ba.pack(data, part)
    workers = Workers(count_threads(-1))
    learned = ba.load(model).as_model()
    first = PassSpec(learned.atoms, ba.BitMatrix.from_dense(learned.bias[np.newaxis]), "mend", learned.rule)
    on = PassSpec(first.atoms, first.bias, "mdl", learned.rule, np.arange(learned.atoms.n_rows))
    figures: Row = {"rows": n_rows}
    places: dict[str, RowSource] = {
        "memory": MemoryRows(data, workers),
        "store": StoreRows(ba.Store(part), workers, max_memory),
    }
    seen: dict[tuple[str, str], Row] = {}
    for place, rows in places.items():
        codes, _ = one_pass(rows, first, None)  # a warm-up
        codes, seen[place, "from nothing"] = one_pass(rows, first, None)
        _, seen[place, "on"] = one_pass(rows, on, codes)
    for kind in ("from nothing", "on"):
        for place in places:
            figures[f"{kind}, {place}: M rows/s"] = seen[place, kind]["M rows/s"]
        figures[f"{kind}: store / memory"] = seen["store", kind]["M rows/s"] / seen["memory", kind]["M rows/s"]
    return figures


def step(name: str, options: argparse.Namespace) -> Row:
    """One of the steps, in this process."""
    store, model = options.folder / "planted.zarr", options.folder / "model.npz"
    limit = options.max_memory * 10**6
    tasks = {
        "make": lambda: made(store, options.rows),
        "fit": lambda: fitted(store, model, limit),
        "transform": lambda: transformed(store, model, options.folder / "codes.zarr", limit),
        "rates": lambda: rates(store, model, IN_MEMORY, limit),
    }
    return measured(tasks[name])


def large(options: argparse.Namespace) -> list[Table]:
    """All steps on a store that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        return all_steps(Path(folder), options.rows, MAX_MEMORY)


def all_steps(folder: Path, n_rows: int, max_memory: int) -> list[Table]:
    """All steps, each in a new process."""
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for name in ("make", "fit", "transform", "rates"):
        command = [sys.executable, __file__, "--step", name, "--rows", str(n_rows)]
        command += ["--max-memory", str(max_memory), "--folder", str(folder)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        told = next(line for line in done.stdout.splitlines() if line.startswith(TOLD))
        rows.append(log_row({"step": name, **json.loads(told.removeprefix(TOLD))}))
    common = ("step", "wall s", "CPU s", "peak MB")
    steps = [{name: row.pop(name) for name in common} for row in rows]
    for row, figures in zip(steps, rows, strict=True):
        row["us/row"] = row["wall s"] / n_rows * 1e6
        row["figures"] = ", ".join(f"{name} {as_text([value])[0]}" for name, value in figures.items())
    note = f"n_components={N_ATOMS}, max_memory={max_memory} MB beside what Python and its libraries take."
    return [
        Table(f"A planted store of {n_rows} rows x {N_FEATURES}, each step in a new process", steps[:3], note),
        Table("Passes over the same rows in memory and in a store", [rows[3]], "All threads; wall time."),
    ]


def main() -> None:
    """Parse, and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--max-memory", type=int, default=MAX_MEMORY, help="MB that rows, codes and counts may take")
    parser.add_argument("--folder", type=Path, help="where the store is made, and kept")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        print(TOLD + json.dumps(step(options.step, options)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        for table in all_steps(options.folder or Path(scratch), options.rows, options.max_memory):
            show(table)


if __name__ == "__main__":
    main()
