"""Run the methods one at a time, time them in the same way, and score their factors with the same function."""

from __future__ import annotations

import os
import platform
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from numbers import Real
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # comes with scikit-learn

from .._version import __version__
from ..api import codelength
from ..baselines.baseline import Factors
from ..bits import BitMatrix
from ..engine.block import reconstruct
from ..engine.codelength import Codelength
from ..errors import InputError, Parameter
from ..formatting import counted
from ..parallel import count_threads
from ..validation import check_int
from .comparison import COMMAND, Comparison
from .inputs import BUNDLED, check_ranks, default_ranks, load_tables
from .methods import Method, Task, select_methods
from .results import Dataset, Run

_WARM_UP_ROWS = 100
_MAX_REASON_LENGTH = 200  # characters

ProgressCallback = Callable[[int, int, Run], object]


def compare(
    data: Any,
    ranks: int | Iterable[int] | None = None,
    *,
    only: str | Method | Iterable[str | Method] | None = None,
    leave_out: str | Method | Iterable[str | Method] = (),
    seeds: int = 1,
    random_state: int = 0,
    max_time: float = 60.0,
    n_jobs: int | None = None,
    callback: ProgressCallback | None = None,
    command: str | None = None,
) -> Comparison:
    """Run bitatoms and other methods on the same tables, and measure wrong cells, codelength and time.

    Wrong cells and codelength are computed by the same function for all methods, from their atoms and codes. Each
    method is first run on a few rows, so that compiling and loading are not timed.

    Parameters
    ----------
    data : table, mapping of names to tables, str, or iterable of str
        The tables, each in any form that `bitatoms.factorize` accepts. A single table is named "table". A str is the
        name of a bundled data set: digits, halftone, baskets, genotypes, planted-or, planted-xor or planted-dense.
    ranks : int or iterable of int, optional
        The numbers of atoms to ask for. By default those of 2, 4, 8 and 16 that are at most half the number of rows
        and of columns.
    only : str or Method, or several, optional
        The methods to run, by key (``[method.key for method in all_methods()]``) or as `Method` objects; by default
        all.
    leave_out : str or Method, or several, default=()
        The methods not to run.
    seeds : int, default=1
        The number of seeds. Methods whose result depends on the seed are run once per seed.
    random_state : int, default=0
        The first seed; the others are the numbers that follow.
    max_time : float, default=60
        Limit in seconds. A method with a slower run is not run again on the same table, neither with more atoms nor
        with another seed.
    n_jobs : int, optional
        Number of threads: None is 1, -1 all processors.
    callback : callable, optional
        Called before each run as ``callback(n_done, n_runs, next_run)``.
    command : str, optional
        The command that repeats the comparison, to show with the results.

    Returns
    -------
    Comparison
        After Ctrl-C, it holds the runs finished by then; ``not_reached`` names the tables without any.

    Examples
    --------
    >>> import bitatoms as ba
    >>> from bitatoms.compare import compare
    >>> X = ba.datasets.planted(200, 40, 3, algebra="or", noise=0.02, random_state=0).X
    >>> found = compare({"planted": X}, [1, 3], only=["bitatoms-or", "grecond"])
    >>> [(run.method.key, run.asked, run.atoms) for run in found.runs]
    [('bitatoms-or', 1, 1), ('bitatoms-or', 3, 3), ('grecond', 1, 1), ('grecond', 3, 3)]
    >>> found.runs[1].wrong < found.runs[3].wrong
    True
    """
    tables = load_tables(data)
    methods = select_methods(only, leave_out)
    asked = {
        name: check_ranks(ranks) if ranks is not None else default_ranks(table.shape) for name, table in tables.items()
    }
    first_seed = check_int("random_state", random_state, 0)
    all_seeds = range(first_seed, first_seed + check_int("seeds", seeds, 1))
    if isinstance(max_time, bool) or not isinstance(max_time, Real) or not max_time > 0:
        raise InputError(Parameter("max_time"), f" must be a number of seconds greater than 0, not {max_time!r}")
    abouts = {name: bundled.about for name, bundled in BUNDLED.items()}
    datasets = [
        Dataset(name, table.shape, table.density, codelength(table).total, asked[name], abouts.get(name, ""))
        for name, table in tables.items()
    ]
    how = _describe_environment(all_seeds, float(max_time), n_jobs, command)
    planned = [
        Run(name, method, rank, seed)
        for name in tables
        for method in methods
        for rank in ([None] if method.chooses_rank else asked[name])
        for seed in (all_seeds if method.seeded else [None])
    ]
    runs: list[Run] = []
    with suppress(KeyboardInterrupt):
        for run in _run_all(tables, planned, float(max_time), n_jobs, callback):
            runs.append(run)  # one by one: Ctrl-C keeps them
    reached = {run.data for run in runs}
    return Comparison(
        tuple(dataset for dataset in datasets if dataset.name in reached),
        tuple(runs),
        how,
        interrupted=len(runs) < len(planned),
        not_reached=tuple(name for name in tables if name not in reached),
    )


def score_factors(data: BitMatrix, factors: Factors, algebra: str) -> tuple[int, int, Codelength]:
    """Return the number of atoms, the number of wrong cells of their product, and the codelength."""
    bits = codelength(data, factors.atoms, factors.codes, factors.bias, algebra)  # checks the shapes, too
    atoms, codes = BitMatrix.from_any(factors.atoms), BitMatrix.from_any(factors.codes)
    bias = np.zeros(data.n_cols, np.uint8) if factors.bias is None else np.asarray(factors.bias, np.uint8)
    product = reconstruct(codes, atoms, bias, algebra)
    return atoms.n_rows, (data ^ product).count(), bits


def _run_all(
    tables: Mapping[str, BitMatrix],
    planned: Sequence[Run],
    max_time: float,
    n_jobs: int | None,
    callback: ProgressCallback | None,
) -> Iterator[Run]:
    """Yield the planned runs with their results; ``callback(n_done, n_runs, next_run)`` is called before each."""
    warmed_up: set[str] = set()
    too_slow: dict[tuple[str, str], str] = {}  # by table and method: the reason
    with threadpool_limits(count_threads(n_jobs)):  # BLAS under other methods would use all processors
        for n_done, run in enumerate(planned):
            data, key = tables[run.data], run.method.key
            if callback is not None:
                callback(n_done, len(planned), run)
            if key not in warmed_up:
                warmed_up.add(key)
                ranks = [each.asked or 0 for each in planned if each.method.key == key]
                for rank in {min(ranks), max(ranks)}:
                    # on a few rows, so that compiling and loading are not timed; a failure is reported below
                    _timed_run(replace(run, asked=rank or None, seed=None), data[:_WARM_UP_ROWS], n_jobs)
            if reason := too_slow.get((run.data, key)):
                yield replace(run, why_not=reason)
                continue
            run = _timed_run(run, data, n_jobs)
            if run.wall is not None and run.wall > max_time:
                asked = "it" if run.asked is None else counted(run.asked, "atom")
                limit = f"more than the limit of {max_time:g} s"
                too_slow[run.data, key] = f"not run: {asked} took {run.wall:.3g} s, {limit}"
            yield run


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
    except Exception as error:  # methods of users raise anything; a failure is a result, too
        wall = time.perf_counter() - start
        return replace(run, cpu=None, wall=wall, why_not=f"failed: {_one_line(error)}")
    return replace(run, atoms=atoms, wrong=wrong, bits=bits)


def _cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its finished children."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def _one_line(error: Exception) -> str:
    """Return the message of an error as one line of limited length."""
    message = " ".join(str(error).split()) or type(error).__name__
    return message if len(message) <= _MAX_REASON_LENGTH else message[: _MAX_REASON_LENGTH - 1] + "…"


def _describe_environment(
    seeds: range, max_time: float, n_jobs: int | None, command: str | None
) -> tuple[tuple[str, str], ...]:
    """Return what is needed to repeat a comparison and to interpret its seconds."""
    shown = ", ".join(map(str, seeds[:5])) + (f" … {seeds[-1]}" if len(seeds) > 5 else "")
    processor = platform.processor() or platform.machine() or "unknown processor"
    threads = count_threads(n_jobs)
    versions = {"bitatoms": __version__, "Python": platform.python_version()}
    versions |= {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "numba")}
    items = [
        ("Machine", f"{processor}, {counted(os.cpu_count() or 1, 'core')}, {platform.system()}"),
        ("Threads", "one" if threads == 1 else f"{threads}"),
        ("Versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
        ("Seeds" if len(seeds) > 1 else "Seed", shown),
        ("Time limit", f"{max_time:g} s per run; a slower method is not run again on the same table"),
    ]
    return (*items, (COMMAND, command)) if command else tuple(items)
