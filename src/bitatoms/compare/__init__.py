"""bitatoms and others on the same data, by the same clock: wrong cells and codelength against rank and seconds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

from ..algorithms.settings import whole
from ..bits import BitMatrix
from ..factorization import codelength
from .comparison import Comparison, Result, Tried
from .contenders import Contender, Factors, Task, chosen, contenders, default_ranks
from .machine import how_it_was_run
from .running import Plan, Progress, Run, run_all
from .sets import BUNDLED

__all__ = [
    "BUNDLED",
    "Comparison",
    "Contender",
    "Factors",
    "Result",
    "Run",
    "Task",
    "Tried",
    "compare",
    "contenders",
]


def compare(
    data: Mapping[str, Any] | Iterable[str],
    ranks: Sequence[int] | None = None,
    *,
    only: Iterable[str | Contender] | None = None,
    leave_out: Iterable[str] = (),
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
    data : mapping of names to tables, or iterable of names
        The tables, each whatever `bitatoms.factorize` takes; or names of those that come with bitatoms: digits,
        halftone, baskets, genotypes, planted-or, planted-xor, planted-dense.
    ranks : sequence of int, optional
        The numbers of atoms to ask for; by default 2, 4, 8 and 16, as far as the table has twice as many columns and
        rows.
    only : iterable of str or Contender, optional
        Who is run, by the names that ``[each.key for each in contenders()]`` gives; by default all.
    leave_out : iterable of str, default=()
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
        Ctrl-C ends it with the runs that were done until then.

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
    tables, abouts = _tables(data)
    asked = {
        name: _checked_ranks(ranks) if ranks is not None else list(default_ranks(table.shape))
        for name, table in tables.items()
    }
    first = whole("random_state", random_state, 0)
    if isinstance(max_time, bool) or not isinstance(max_time, Real) or not max_time > 0 or math.isnan(max_time):
        raise ValueError(f"max_time is {max_time!r}; give seconds, more than 0")
    plan = Plan(chosen(only, leave_out), asked, range(first, first + whole("seeds", seeds, 1)), float(max_time), n_jobs)
    tried = tuple(
        Tried(name, table.shape, table.density, codelength(table).total, asked[name], abouts[name])
        for name, table in tables.items()
    )
    how = how_it_was_run(plan, command)
    runs: list[Run] = []
    try:
        for run in run_all(tables, plan, callback):
            runs.append(run)  # one by one: Ctrl-C keeps them
    except KeyboardInterrupt:
        return Comparison(tried, tuple(runs), how, interrupted=True)
    return Comparison(tried, tuple(runs), how)


def _tables(data: Mapping[str, Any] | Iterable[str]) -> tuple[dict[str, BitMatrix], dict[str, str]]:
    """The tables by name, packed, and what they are."""
    if isinstance(data, str):
        data = [data]
    if not isinstance(data, Mapping):
        names = list(data)
        for name in names:
            if name not in BUNDLED:
                raise ValueError(f"there is no data set {name!r}; there are {', '.join(BUNDLED)}")
        tables = {name: BUNDLED[name].make() for name in names}
    else:
        tables = {str(name): BitMatrix.from_any(table) for name, table in data.items()}
    if not tables:
        raise ValueError("there is no table to compare on; name one")
    for name, table in tables.items():
        if 0 in table.shape:
            what = "rows" if table.n_rows == 0 else "columns"
            raise ValueError(f"{name}: the table has no {what}: there is nothing to compare on")
    return tables, {name: BUNDLED[name].about if name in BUNDLED else "" for name in tables}


def _checked_ranks(ranks: Sequence[int]) -> list[int]:
    """The numbers of atoms, from few to many."""
    if not len(ranks):
        raise ValueError("ranks is empty; give the numbers of atoms to ask for, such as 2, 4, 8")
    return sorted({whole("ranks", rank, 1) for rank in ranks})
