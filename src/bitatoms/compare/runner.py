"""Run the methods one at a time, time them in the same way, and score their factors with the same function."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits  # comes with scikit-learn

from ..api import codelength
from ..baselines.baseline import Factors
from ..bits import BitMatrix
from ..engine.block import reconstruct
from ..engine.codelength import Codelength
from ..parallel import count_threads
from .methods import Method, Task
from .results import Run

_WARM_UP_ROWS = 100
_MAX_REASON_LENGTH = 200  # characters


@dataclass(frozen=True)
class ComparisonPlan:
    """The runs on each table."""

    methods: Sequence[Method]
    ranks: Mapping[str, Sequence[int]]  # by the name of the table
    seeds: Sequence[int]
    max_time: float
    n_jobs: int | None

    def count(self) -> int:
        """Return the number of runs."""
        return sum(len(self.tasks(method, data)) for method in self.methods for data in self.ranks)

    def tasks(self, method: Method, data: str) -> list[tuple[int | None, int | None]]:
        """Return the pairs (number of atoms, seed) of a method on a table, by ascending number of atoms."""
        ranks: Sequence[int | None] = (None,) if method.chooses_rank else self.ranks[data]
        seeds: Sequence[int | None] = self.seeds if method.seeded else (None,)
        return [(rank, seed) for rank in ranks for seed in seeds]


ProgressCallback = Callable[[int, int, Run], object]


def run_all(
    tables: Mapping[str, BitMatrix], plan: ComparisonPlan, callback: ProgressCallback | None = None
) -> Iterator[Run]:
    """Yield all runs; ``callback(n_done, n_runs, next_run)`` is called before each."""
    n_done, n_runs, warmed_up = 0, plan.count(), set()
    with threadpool_limits(count_threads(plan.n_jobs)):  # BLAS under other methods would use all processors
        for name, data in tables.items():
            for method in plan.methods:
                too_slow = ""
                for asked, seed in plan.tasks(method, name):
                    run = Run(name, method, asked, seed)
                    if callback is not None:
                        callback(n_done, n_runs, run)
                    if method.key not in warmed_up:
                        _warm_up(method, data, plan)
                        warmed_up.add(method.key)
                    run = replace(run, why_not=too_slow) if too_slow else _timed_run(run, data, plan.n_jobs)
                    n_done += 1
                    if run.wall is not None and run.wall > plan.max_time:
                        limit = f"more than the limit of {plan.max_time:g} s"
                        too_slow = f"not run: {_asked_text(asked)} took {run.wall:.3g} s, {limit}"
                    yield run


def score_factors(data: BitMatrix, factors: Factors, algebra: str) -> tuple[int, int, Codelength]:
    """Return the number of atoms, the number of wrong cells of their product, and the codelength."""
    bits = codelength(data, factors.atoms, factors.codes, factors.bias, algebra)  # checks the shapes, too
    atoms, codes = BitMatrix.from_any(factors.atoms), BitMatrix.from_any(factors.codes)
    bias = np.zeros(data.n_cols, np.uint8) if factors.bias is None else np.asarray(factors.bias, np.uint8)
    product = reconstruct(codes, atoms, bias, algebra)
    return atoms.n_rows, (data ^ product).count(), bits


def _timed_run(run: Run, data: BitMatrix, n_jobs: int | None) -> Run:
    """Return the run with its result, or with the reason for the failure."""
    task = Task(data, run.asked, run.seed or 0, n_jobs)
    cpu_start, start = _cpu_seconds(), time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what matters, such as fewer atoms than asked for, is in the result
            factors = run.method.run(task)
        run = replace(run, cpu=_cpu_seconds() - cpu_start, wall=time.perf_counter() - start)
        atoms, wrong, bits = score_factors(data, factors, run.method.algebra)
    except Exception as error:  # third-party programs raise anything; a failure is a result, too
        wall = time.perf_counter() - start
        return replace(run, cpu=None, wall=wall, why_not=f"failed: {_one_line(error)}")
    return replace(run, atoms=atoms, wrong=wrong, bits=bits)


def _warm_up(method: Method, data: BitMatrix, plan: ComparisonPlan) -> None:
    """Run a method on a few rows with the fewest and the most atoms, so that compiling and loading are not timed."""
    ranks = [rank for name in plan.ranks for rank, _ in plan.tasks(method, name)]
    rows = data[: min(_WARM_UP_ROWS, data.n_rows)]
    for rank in dict.fromkeys((min(ranks, key=_rank_order), max(ranks, key=_rank_order))):
        _timed_run(Run("", method, rank, None), rows, plan.n_jobs)  # a failure is reported by the timed run


def _rank_order(rank: int | None) -> int:
    """Return a sort key for numbers of atoms."""
    return rank or 0


def _cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its finished children."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def _asked_text(rank: int | None) -> str:
    """Return a number of atoms as the subject of a sentence."""
    return "it" if rank is None else "1 atom" if rank == 1 else f"{rank} atoms"


def _one_line(error: Exception) -> str:
    """Return the message of an error as one line of limited length."""
    message = " ".join(str(error).split()) or type(error).__name__
    return message if len(message) <= _MAX_REASON_LENGTH else message[: _MAX_REASON_LENGTH - 1] + "…"
