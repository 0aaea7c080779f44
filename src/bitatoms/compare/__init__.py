"""Compare bitatoms with other methods on the same data: wrong cells, codelength and time per number of atoms."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from typing import Any

from ..api import codelength
from ..baselines.baseline import Factors
from ..errors import InputError, Parameter
from ..validation import check_int
from .comparison import Comparison
from .datasets import BUNDLED
from .deprecated import warn_renamed
from .environment import describe_environment
from .inputs import check_ranks, load_tables
from .methods import Contender, Method, Task, all_methods, default_ranks, select_methods
from .results import Dataset, Result, Run
from .runner import ComparisonPlan, ProgressCallback, run_all

__all__ = [
    "BUNDLED",
    "Comparison",
    "Dataset",
    "Factors",
    "Method",
    "Result",
    "Run",
    "Task",
    "all_methods",
    "compare",
]
_RENAMED = {
    "Contender": ("Method", Contender),
    "contenders": ("all_methods", all_methods),
    "Tried": ("Dataset", Dataset),
}
del Contender  # only under its old name, with a warning


def __getattr__(name: str) -> Any:
    if name not in _RENAMED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    new, value = _RENAMED[name]
    warn_renamed(f"bitatoms.compare.{name}", f"bitatoms.compare.{new}")
    return value


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
    tables, abouts = load_tables(data)
    asked = {
        name: check_ranks(ranks) if ranks is not None else list(default_ranks(table.shape))
        for name, table in tables.items()
    }
    first_seed = check_int("random_state", random_state, 0)
    if isinstance(max_time, bool) or not isinstance(max_time, Real) or not max_time > 0:
        raise InputError(Parameter("max_time"), f" must be a number of seconds greater than 0, not {max_time!r}")
    plan = ComparisonPlan(
        select_methods(only, leave_out),
        asked,
        range(first_seed, first_seed + check_int("seeds", seeds, 1)),
        float(max_time),
        n_jobs,
    )
    datasets = tuple(
        Dataset(name, table.shape, table.density, codelength(table).total, asked[name], abouts[name])
        for name, table in tables.items()
    )
    how = describe_environment(plan, command)
    runs: list[Run] = []
    try:
        for run in run_all(tables, plan, callback):
            runs.append(run)  # one by one: Ctrl-C keeps them
    except KeyboardInterrupt:
        started = {run.data for run in runs}
        not_reached = tuple(dataset.name for dataset in datasets if dataset.name not in started)
        reached = tuple(dataset for dataset in datasets if dataset.name in started)
        return Comparison(reached, tuple(runs), how, interrupted=True, not_reached=not_reached)
    return Comparison(datasets, tuple(runs), how)
