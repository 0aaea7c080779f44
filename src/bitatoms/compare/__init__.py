"""bitatoms and others on the same data, by the same clock: wrong cells and codelength against rank and seconds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import Any

from ..api import codelength
from ..validation import check_int
from .comparison import Comparison, Dataset, Result
from .datasets import BUNDLED
from .environment import how_it_was_run
from .inputs import ranks_of, tables_of
from .methods import Factors, Method, Task, all_methods, chosen, default_ranks
from .runner import Plan, Progress, Run, run_all

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
    callback: Progress | None = None,
    command: str | None = None,
) -> Comparison:
    """Run bitatoms and other methods on the same tables, and count what each of them gets wrong and what it takes.

    Wrong cells and codelength are counted by one function for all, from the atoms and codes that a method gives. Each
    is run on a few rows first, so that compiling and loading are not timed.

    Parameters
    ----------
    data : table, mapping of names to tables, str, or iterable of str
        The tables, each whatever `bitatoms.factorize` takes (one that stands alone is called "table"); or names of
        those that come with bitatoms: digits, halftone, baskets, genotypes, planted-or, planted-xor, planted-dense.
    ranks : int or iterable of int, optional
        The numbers of atoms to ask for; by default 2, 4, 8 and 16, as far as the table has twice as many columns and
        rows.
    only : str or Method, or several, optional
        Who is run, by the names that ``[each.key for each in all_methods()]`` gives; by default all.
    leave_out : str or Method, or several, default=()
        Who is not.
    seeds : int, default=1
        How many seeds; methods that leave something to chance are run with each.
    random_state : int, default=0
        The first seed; the others follow it.
    max_time : float, default=60
        Seconds. A method that took longer than these is not run again on the same table, with more atoms or with
        another seed.
    n_jobs : int, optional
        Threads: None is 1, -1 all processors.
    callback : callable, optional
        Called before each run with the number of runs done so far, that of all, and the run to come.
    command : str, optional
        The command that repeats this, to be said beside the figures.

    Returns
    -------
    Comparison
        Ctrl-C ends it with the runs that were done until then; its ``not_reached`` names tables without any.

    Examples
    --------
    >>> import bitatoms as ba
    >>> from bitatoms.compare import compare
    >>> X = ba.datasets.planted(200, 40, 3, algebra="or", noise=0.02, random_state=0).X
    >>> found = compare({"planted": X}, [1, 3], only=["bitatoms-or", "grecond"])
    >>> [(run.contender.key, run.asked, run.atoms) for run in found.runs]
    [('bitatoms-or', 1, 1), ('bitatoms-or', 3, 3), ('grecond', 1, 1), ('grecond', 3, 3)]
    >>> found.runs[1].wrong < found.runs[3].wrong
    True
    """
    tables, abouts = tables_of(data)
    asked = {
        name: ranks_of(ranks) if ranks is not None else list(default_ranks(table.shape))
        for name, table in tables.items()
    }
    first = check_int("random_state", random_state, 0)
    if isinstance(max_time, bool) or not isinstance(max_time, Real) or not max_time > 0 or math.isnan(max_time):
        raise ValueError(f"max_time is {max_time!r}; give seconds, more than 0")
    plan = Plan(
        chosen(only, leave_out), asked, range(first, first + check_int("seeds", seeds, 1)), float(max_time), n_jobs
    )
    tried = tuple(
        Dataset(name, table.shape, table.density, codelength(table).total, asked[name], abouts[name])
        for name, table in tables.items()
    )
    how = how_it_was_run(plan, command)
    runs: list[Run] = []
    try:
        for run in run_all(tables, plan, callback):
            runs.append(run)  # one by one: Ctrl-C keeps them
    except KeyboardInterrupt:
        begun = {run.data for run in runs}
        rest = tuple(table.name for table in tried if table.name not in begun)
        reached = tuple(table for table in tried if table.name in begun)
        return Comparison(reached, tuple(runs), how, interrupted=True, not_reached=rest)
    return Comparison(tried, tuple(runs), how)
