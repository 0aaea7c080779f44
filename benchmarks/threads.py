"""Wall seconds of whole fits by number of threads, and whether all give the same bits.

``python benchmarks/threads.py FOLDER [--jobs fast,auto] [--threads 1,2,4,8,16] [--repeats 1]``
"""

from __future__ import annotations

import argparse
import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scipy.sparse import csr_array, load_npz
from tables import Row, Table, log_row, show

import bitatoms as ba
from datasets import EINSTEIN, load

MNIST = "mnist10k_28x28"


def packed(folder: Path, name: str) -> ba.BitMatrix:
    """Return a data set of the folder."""
    return ba.BitMatrix.from_dense(load(folder, name))


def wide_sparse(folder: Path) -> csr_array:
    """Return baskets of a shop with thousands of articles."""
    return csr_array(load_npz(folder / "retail.sparse.npz"))[:19_412, :11_924]


def many_rows(n_rows: int) -> ba.BitMatrix:
    """Return rows with 64 planted atoms, of which a row uses four."""
    return ba.BitMatrix.from_dense(ba.datasets.planted(n_rows, 256, 64, code_density=4 / 64, random_state=0).X)


JOBS: dict[str, tuple[Callable[[argparse.Namespace], ba.BitMatrix | csr_array], dict[str, Any]]] = {
    "fast": (lambda options: packed(options.folder, MNIST), {"algebra": "xor"}),
    "thorough": (lambda options: packed(options.folder, MNIST), {"algebra": "xor", "search": "thorough"}),
    "auto": (lambda options: packed(options.folder, EINSTEIN), {"algebra": "auto"}),
    "wide sparse": (lambda options: wide_sparse(options.folder), {"n_components": 20, "algebra": "or"}),
    "fixed rank": (lambda options: packed(options.folder, EINSTEIN), {"n_components": 32, "algebra": "or"}),
    "many rows": (lambda options: many_rows(options.rows), {"algebra": "xor", "n_components": 64}),
    "paper": (
        lambda options: many_rows(options.rows),
        {"n_components": 64, "search": "paper", "max_iter": 5},
    ),
}


def digest(found: ba.Factorization) -> str:
    """Return a short hash of the factors."""
    parts = (found.atoms.words, found.codes.words, found.bias)
    return hashlib.sha256(b"".join(part.tobytes() for part in parts)).hexdigest()[:8]


def run(data: ba.BitMatrix | csr_array, how: dict[str, Any], n_threads: int) -> Row:
    """Fit, and return what it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = ba.factorize(data, **how, n_jobs=n_threads, random_state=0)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    row = {"threads": n_threads, "wall s": wall, "CPU s": cpu, "cores": cpu / wall}
    return row | {"bits": found.codelength.total, "hash": digest(found)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", default=",".join(JOBS))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--repeats", type=int, default=1, help="the fastest counts")
    parser.add_argument("--rows", type=int, default=10**6, help="of many rows (default: %(default)s)")
    options = parser.parse_args()
    for name in options.jobs.split(","):
        load_table, how = JOBS[name]
        data = load_table(options)
        rows: list[Row] = []
        n, m = data.shape
        ba.factorize(data[: 2000 if n > 10**5 else n], **how, n_jobs=2, random_state=0, max_time=20)
        for n_threads in map(int, options.threads.split(",")):
            repeats = (run(data, how, n_threads) for _ in range(options.repeats))
            row = {"job": name} | min(repeats, key=lambda row: row["wall s"])
            row["speed-up"] = (rows[0] if rows else row)["wall s"] / row["wall s"]
            rows.append(log_row(row))
        same = "all the same bits" if len({row["hash"] for row in rows}) == 1 else "NOT THE SAME BITS"
        show(Table(f"Threads, {name}, {n} x {m}, {how}", rows, f"{same}; {os.cpu_count()} processors"))


if __name__ == "__main__":
    main()
