"""Planted factors: how often the search finds a description as short as the true one.

``python benchmarks/recovery.py [--algebra xor,or] [--calls] [--jobs N]`` runs the default search on a grid of planted
tables, 192 per algebra, or on seven difficult XOR tables (``--calls``; ``--large`` adds one of a million rows). A table
fails if the codelength that is found exceeds 1.02 times that of the true factors. Tables whose true factors save less
than 2 % of the codelength without atoms are not counted. L is computed from the factors that are returned.
"""

from __future__ import annotations

import argparse
import itertools
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from statistics import median
from typing import NamedTuple

import numpy as np
from tables import Row, Table, log_row, show

import bitatoms as ba
from bitatoms.engine.codelength import string_bits

FAILED = 1.02  # times the codelength of the true factors
WORTH = 0.98  # tables whose true factors save less than this are not counted


class Call(NamedTuple):
    """The arguments of `bitatoms.datasets.planted`, and the algebra."""

    algebra: str
    n: int
    m: int
    k: int
    atom_density: float
    code_density: float
    noise: float
    seed: int = 0

    def planted(self) -> ba.datasets.Planted:
        """Return the table."""
        return ba.datasets.planted(
            self.n, self.m, self.k, algebra=self.algebra, atom_density=self.atom_density,
            code_density=self.code_density, noise=self.noise, random_state=self.seed,
        )  # fmt: skip


CALLS = [
    Call("xor", 2000, 150, 20, 0.5, 0.3, 0.0),
    Call("xor", 2000, 150, 20, 0.5, 0.125, 0.0),
    Call("xor", 2000, 150, 20, 0.3, 0.3, 0.0),
    Call("xor", 2000, 150, 20, 0.3, 0.3, 0.05),
    Call("xor", 20000, 200, 40, 0.5, 0.0625, 0.05),
    Call("xor", 2000, 150, 40, 0.1, 0.3, 0.05),
    Call("xor", 2000, 150, 20, 0.3, 0.3, 0.1),
]
LARGE = Call("xor", 1_000_000, 256, 64, 0.15, 0.15, 0.05)


def grid(algebra: str, seed: int) -> list[Call]:
    """Return the tables of the grid."""
    shapes, ks = ((300, 100), (2000, 150)), (5, 10, 20, 40)
    densities, noises = (0.1, 0.3, 0.5), (0.0, 0.05, 0.1, 0.2)
    return [
        Call(algebra, n, m, k, atom_density, code_density, noise, seed)
        for (n, m), k, sparse, atom_density, noise in itertools.product(shapes, ks, (True, False), densities, noises)
        for code_density in [2.5 / k if sparse else 0.3]
    ]


def codelength(errors: np.ndarray, codes: np.ndarray, atoms: np.ndarray, bias: np.ndarray) -> int:
    """Return L of factors, the paper's formula."""
    n, m = errors.shape
    total = string_bits(n, errors.sum(axis=0)).sum() + string_bits(n, codes.sum(axis=0)).sum()
    total += string_bits(m, atoms.sum(axis=1)).sum()
    return int(total + (string_bits(m, bias.sum()) + string_bits(n, 0) if bias.any() else 0))


def run(call: Call, search: str, seed: int) -> Row:
    """Return what a search finds on a table."""
    data = call.planted()
    no_bias = np.zeros(call.m, np.uint8)
    truth = codelength(data.X ^ data.clean, data.codes, data.atoms, no_bias)
    nothing = codelength(data.X, data.codes[:, :0], data.atoms[:0], no_bias)
    begin = time.process_time()
    result = ba.factorize(data.X, algebra=call.algebra, search=search, random_state=seed)
    seconds = time.process_time() - begin
    atoms, codes = np.asarray(result.atoms), np.asarray(result.codes)
    uses = codes.astype(np.float32) @ atoms.astype(np.float32)
    predicted = (uses % 2 if call.algebra == "xor" else uses > 0).astype(np.uint8) ^ result.bias
    found = codelength(data.X ^ predicted, codes, atoms, result.bias)
    exact = len({bytes(atom) for atom in atoms} & {bytes(atom) for atom in data.atoms})
    return {
        **call._asdict(),
        "truth": truth,
        "nothing": nothing / truth,
        "found": found / truth,
        "atoms": len(atoms),
        "exact": exact,
        "seconds": seconds,
        "failed": int(found > FAILED * truth and truth < WORTH * nothing),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--algebra", default="xor,or")
    parser.add_argument("--calls", action="store_true", help="the list of difficult XOR tables instead of the grid")
    parser.add_argument("--large", action="store_true", help="with --calls, the table of a million rows too")
    parser.add_argument("--search", default="fast")
    parser.add_argument("--data-seeds", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1, help="of the search")
    parser.add_argument("--every", type=int, default=1, help="run only one table of this many")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--all", action="store_true", help="list all tables, not only those that fail")
    options = parser.parse_args()
    calls: list[Call] = []
    for seed in range(options.data_seeds):
        if options.calls:
            calls += [call._replace(seed=seed) for call in CALLS + [LARGE] * options.large]
        else:
            calls += itertools.chain(*(grid(algebra, seed) for algebra in options.algebra.split(",")))
    jobs = [(call, seed) for call in calls[:: options.every] for seed in range(options.seeds)]
    jobs.sort(key=lambda job: -job[0].n * job[0].k)
    rows: list[Row] = []
    with ProcessPoolExecutor(options.jobs) as pool:
        waiting = [pool.submit(run, call, options.search, seed) for call, seed in jobs]
        for done in as_completed(waiting):
            rows.append(done.result() if options.jobs > 1 else log_row(done.result()))
    rows.sort(key=lambda row: [str(value) for value in row.values()][:8])
    for algebra in options.algebra.split(","):
        own = [row for row in rows if row["algebra"] == algebra]
        if not own:
            continue
        failed = [row for row in own if row["failed"]]
        seconds = [row["seconds"] for row in own]
        note = f"{len(failed)} of {len(own)} fail; CPU seconds: median {median(seconds):.2f}, most {max(seconds):.1f}"
        shown = own if options.all or options.calls else failed
        show(Table(f"{algebra}, {options.search}", shown or own[:1], note))


if __name__ == "__main__":
    main()
