"""Passes over rows on a Dask cluster: scaling from one to two workers, and the overhead of a pass.

``python benchmarks/cluster.py [--rows N]``; ``make bench`` runs it as the part "cluster".
"""

from __future__ import annotations

import argparse
import pickle
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from tables import Row, Table, log_row, show

import bitatoms as ba
from bitatoms import BitMatrix
from bitatoms.bits import stack_rows
from bitatoms.engine.coding import coding_rule
from bitatoms.engine.passes import PassSpec
from bitatoms.parallel import Workers
from bitatoms.rows.dask import DaskRows
from bitatoms.rows.passes import PassResult
from bitatoms.rows.source import MemoryRows, RowSource
from bitatoms.rows.subsample import learn

FEATURES, ATOMS, CODE_DENSITY, NOISE = 500, 40, 0.08, 0.02
SAMPLE = 8192  # rows searched at most, by the driver alone, so the time does not depend on the cluster
WORKERS = (1, 2)
PARTITIONS = 16
COST_PARTITIONS = (4, 16, 64)


def partition(number: int, n_rows: int) -> np.ndarray:
    """Make the rows of one partition, on the worker that needs them: the same atoms in all, other codes and noise."""
    random = np.random.default_rng([1, number])
    codes = random.random((n_rows, ATOMS), np.float32) < CODE_DENSITY
    made = (codes.astype(np.float32) @ atoms().astype(np.float32)) % 2 == 1
    return made ^ (random.random(made.shape, np.float32) < NOISE)


def atoms() -> np.ndarray:
    """Return the planted atoms."""
    return np.random.default_rng(0).random((ATOMS, FEATURES)) < 0.1


def table(n_rows: int, n_partitions: int) -> Any:
    """Return the rows as a Dask array."""
    import dask
    import dask.array as da

    sizes = np.diff(np.linspace(0, n_rows, n_partitions + 1).astype(int))
    made = [dask.delayed(partition)(number, int(size)) for number, size in enumerate(sizes)]
    return da.concatenate(
        [da.from_delayed(part, (size, FEATURES), bool) for part, size in zip(made, sizes.tolist(), strict=True)]
    )


class TimedRows:
    """A row source that records the seconds of each pass and the CPU seconds of the workers."""

    def __init__(self, rows: RowSource, clock: Callable[[], float]) -> None:
        self.rows, self.clock = rows, clock
        self.passes: list[float] = []
        self.cpu = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rows, name)

    def run_pass(self, *arguments: Any) -> Any:
        """Run a pass and record its time."""
        before, begin = self.clock(), time.perf_counter()
        done = self.rows.run_pass(*arguments)
        self.passes.append(time.perf_counter() - begin)
        self.cpu += self.clock() - before
        return done


def sample_rows(n_rows: int) -> int:
    """Return the number of rows that are searched: few enough that passes over all rows follow."""
    return min(SAMPLE, n_rows // 4)


def fit(rows: RowSource, clock: Callable[[], float]) -> tuple[PassResult, TimedRows, float]:
    """Return the result, the recorded times, and the seconds of the fit."""
    timed = TimedRows(rows, clock)
    settings = ba.BinaryDictionaryLearning(ATOMS, algebra="xor", search_rows=sample_rows(rows.n_rows))._search_params()
    begin = time.perf_counter()
    passes = learn(timed, settings, Workers(1), np.random.default_rng(0))
    assert isinstance(passes, PassResult)
    return passes, timed, time.perf_counter() - begin


@contextmanager
def start_cluster(n_workers: int, n_rows: int) -> Iterator[Any]:
    """Yield a client of workers that are processes with one thread each and have their kernels loaded."""
    from distributed import Client, LocalCluster

    options = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster, set_as_default=False) as client:
        fit(DaskRows(table(min(2 * SAMPLE, n_rows), 4 * n_workers), None, client), time.process_time)
        yield client


def scaling_row(where: str, rows: RowSource, packing: float, clock: Callable[[], float]) -> tuple[Row, BitMatrix]:
    """Fit, and return the times of the passes and of the search of the sample, which the driver does alone."""
    passes, timed, seconds = fit(rows, clock)
    row = {
        "where": where,
        "make, pack s": packing,
        "search s": seconds - sum(timed.passes),
        "passes": len(timed.passes),
        "first s": timed.passes[0],
        "a later s": median(timed.passes[1:]),
        "all s": sum(timed.passes),
        "CPU s": timed.cpu,
        "Mrows/s": rows.n_rows * len(timed.passes) / sum(timed.passes) / 1e6,
    }
    return log_row(row), passes.result.atoms


def cost_row(n_partitions: int, n_rows: int, n_workers: int, client: Any) -> Row:
    """Return the overhead of a first pass, from scratch, with the planted atoms."""
    from distributed import get_task_stream

    rows = DaskRows(table(n_rows, n_partitions), None, client)
    spec = PassSpec(BitMatrix.from_dense(atoms()), BitMatrix.zeros(1, FEATURES), "greedy", coding_rule("greedy", "xor"))
    before = sum(moved_bytes(client))
    with messages(client) as sent, get_task_stream(client) as stream:
        begin = time.perf_counter()
        _, counts = rows.run_pass(spec)
        wall = time.perf_counter() - begin
    parts = [part for task in stream.data for part in task["startstops"] if part["action"] == "compute"]
    seconds = sum(part["stop"] - part["start"] for part in parts)
    row = {
        "partitions": n_partitions,
        "tasks": len(stream.data),
        "messages": len(sent),
        "kB sent": sum(sent) / 1e3,
        "of it atoms": len(pickle.dumps(spec)) / 1e3,
        "kB received": len(pickle.dumps(counts)) / 1e3,
        "MB among workers": (sum(moved_bytes(client)) - before) / 1e6,
        "wall s": wall,
        "work s": seconds,
        "overhead %": 100 * (1 - seconds / (wall * n_workers)),
    }
    return log_row(row)


@contextmanager
def messages(client: Any) -> Iterator[list[int]]:
    """Record the bytes of each message from the driver to the scheduler."""
    comm, sizes = client.scheduler_comm.comm, []
    write = comm.write

    async def measured(*what: Any, **how: Any) -> int:
        sizes.append(await write(*what, **how))
        return sizes[-1]

    comm.write = measured
    try:
        yield sizes
    finally:
        del comm.write


def moved_bytes(client: Any) -> list[int]:
    """Return the bytes that each worker received from others."""
    return list(client.run(_bytes_received).values())


def _worker_cpu_seconds(client: Any) -> float:
    return sum(client.run(time.process_time).values())


def _bytes_received(dask_worker: Any) -> int:
    return sum(transfer["total"] for transfer in dask_worker.transfer_incoming_log)


def cluster(options: argparse.Namespace) -> list[Table]:
    """Measure strong scaling over worker processes, and the overhead of a pass."""
    n_rows = options.rows
    begin = time.perf_counter()
    partitions = table(n_rows, PARTITIONS).blocks.ravel()
    data = stack_rows((BitMatrix.from_dense(each.compute()) for each in partitions), FEATURES)
    in_memory = MemoryRows(data, Workers(1))
    row, expected = scaling_row("memory, 1 thread", in_memory, time.perf_counter() - begin, time.process_time)
    scaling, costs = [row | {"x faster": None, "same bits": True}], []
    for n_workers in WORKERS:
        with start_cluster(n_workers, n_rows) as client:
            begin = time.perf_counter()
            rows = DaskRows(table(n_rows, PARTITIONS), None, client)
            name = f"{n_workers} worker{'s' if n_workers > 1 else ''}"
            row, found = scaling_row(name, rows, time.perf_counter() - begin, partial(_worker_cpu_seconds, client))
            alone = [*scaling, row][1]["all s"]  # what one worker takes, the first after memory
            scaling.append(row | {"x faster": alone / row["all s"], "same bits": found == expected})
            if n_workers == max(WORKERS):
                del rows
                costs = [cost_row(n_partitions, n_rows, n_workers, client) for n_partitions in COST_PARTITIONS]
    what = f"planted {n_rows} x {FEATURES}, p = {ATOMS}"
    note = f"search: on {sample_rows(n_rows)} rows, by the driver. all, CPU: of the passes. x faster: than 1 worker."
    overhead = "overhead: share of the workers' time outside tasks. kB: between driver and scheduler."
    return [
        Table(f"Workers, {what}, {PARTITIONS} partitions", scaling, note),
        Table(f"A pass from scratch, {what}, {max(WORKERS)} workers", costs, overhead),
    ]


def main(argv: list[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=400_000, help="rows of the table (default: %(default)s)")
    for each in cluster(parser.parse_args(argv)):
        show(each)


if __name__ == "__main__":
    main()
