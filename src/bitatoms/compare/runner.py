"""Contenders are run one after the other, by the same clock, and what they find is counted by the same function."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits  # comes with scikit-learn

from ..api import codelength
from ..bits import BitMatrix
from ..core.result import reconstruct
from ..mdl import Codelength
from ..parallel import count_threads
from .methods import Factors, Method, Task

_FEW = 100  # rows that a contender is run on before its time is taken
_LONGEST = 200  # letters of a reason


@dataclass(frozen=True)
class Run:
    """One run of a contender: what it was asked for, what it reached, and what that took."""

    data: str
    contender: Method
    asked: int | None  # None: it chose itself
    seed: int | None  # None: it has no use for one
    atoms: int | None = None
    wrong: int | None = None  # cells
    bits: Codelength | None = None
    cpu: float | None = None  # seconds of all processors together
    wall: float | None = None
    why_not: str = ""  # why there are no figures

    @property
    def done(self) -> bool:
        """Whether there are figures."""
        return self.bits is not None


@dataclass(frozen=True)
class Plan:
    """What is run on each table."""

    contenders: Sequence[Method]
    ranks: Mapping[str, Sequence[int]]  # by the name of the table
    seeds: Sequence[int]
    max_time: float
    n_jobs: int | None

    def count(self) -> int:
        """How many runs there are."""
        return sum(len(self.tasks(contender, data)) for contender in self.contenders for data in self.ranks)

    def tasks(self, contender: Method, data: str) -> list[tuple[int | None, int | None]]:
        """The numbers of atoms, from few to many, each with all seeds."""
        return [(rank, seed) for rank in self._asked(contender, data) for seed in self._seeds(contender)]

    def _asked(self, contender: Method, data: str) -> Sequence[int | None]:
        """The numbers of atoms that a contender is asked for."""
        return (None,) if contender.chooses else self.ranks[data]

    def _seeds(self, contender: Method) -> Sequence[int | None]:
        """The seeds that a contender is run with."""
        return self.seeds if contender.seeded else (None,)


Progress = Callable[[int, int, Run], object]


def run_all(tables: Mapping[str, BitMatrix], plan: Plan, progress: Progress | None = None) -> Iterator[Run]:
    """All runs; before each, ``progress`` is told how many are done, of how many, and which one comes next."""
    done, count, loaded = 0, plan.count(), set()
    with threadpool_limits(count_threads(plan.n_jobs)):  # the libraries under other methods would take all processors
        for name, data in tables.items():
            for contender in plan.contenders:
                too_slow = ""
                for asked, seed in plan.tasks(contender, name):
                    run = Run(name, contender, asked, seed)
                    if progress is not None:
                        progress(done, count, run)
                    if contender.key not in loaded:
                        _load(contender, data, plan)
                        loaded.add(contender.key)
                    run = replace(run, why_not=too_slow) if too_slow else _timed(run, data, plan.n_jobs)
                    done += 1
                    if run.wall is not None and run.wall > plan.max_time:
                        too_slow = f"not run: {_asked(asked)} took {run.wall:.3g} s, more than {plan.max_time:g}"
                    yield run


def scored(data: BitMatrix, found: Factors, algebra: str) -> tuple[int, int, Codelength]:
    """How many atoms were found, how many cells their product gets wrong, and the bits that it takes."""
    bits = codelength(data, found.atoms, found.codes, found.bias, algebra)  # looks at the shapes, too
    atoms, codes = (BitMatrix.from_any(part) for part in found[:2])
    bias = np.zeros(data.n_cols, np.uint8) if found.bias is None else np.asarray(found.bias, np.uint8)
    made = reconstruct(codes, atoms, bias, algebra)
    return atoms.n_rows, (data ^ made).count(), bits


def _timed(run: Run, data: BitMatrix, n_jobs: int | None) -> Run:
    """A run with its figures, or with the reason why there are none."""
    task = Task(data, run.asked, run.seed or 0, n_jobs)
    begun_cpu, begun = _cpu(), time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they warn of, such as fewer atoms than asked for, is in the table
            found = run.contender.run(task)
        run = replace(run, cpu=_cpu() - begun_cpu, wall=time.perf_counter() - begun)
        atoms, wrong, bits = scored(data, found, run.contender.algebra)
    except Exception as error:  # programs of others fail in any way; that is a result, too
        took = time.perf_counter() - begun
        return replace(run, cpu=None, wall=took, why_not=f"failed: {_reason(error)}")
    return replace(run, atoms=atoms, wrong=wrong, bits=bits)


def _load(contender: Method, data: BitMatrix, plan: Plan) -> None:
    """Run it on a few rows with the fewest and the most atoms, so that compiling and loading are not counted."""
    asked = [rank for name in plan.ranks for rank, _ in plan.tasks(contender, name)]
    few = data[: min(_FEW, data.n_rows)]
    for rank in dict.fromkeys((min(asked, key=_size), max(asked, key=_size))):
        _timed(Run("", contender, rank, None), few, plan.n_jobs)  # should it fail, the run that counts says why


def _size(rank: int | None) -> int:
    """A number of atoms to compare with others."""
    return rank or 0


def _cpu() -> float:
    """Seconds of all processors, for this process and those it waited for."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def _asked(rank: int | None) -> str:
    """What was asked for."""
    return "it" if rank is None else "1 atom" if rank == 1 else f"{rank} atoms"


def _reason(error: Exception) -> str:
    """An error in a line."""
    said = " ".join(str(error).split()) or type(error).__name__
    return said if len(said) <= _LONGEST else said[: _LONGEST - 1] + "…"
