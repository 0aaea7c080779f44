"""The search of a sample of rows that goes on from atoms and codes: what `Online` does every now and then."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..core.block import Block
from ..core.coding import MOST_EXACT_ATOMS
from ..core.objective import Objective
from ..kernels.structs import covering
from ..parallel import Workers
from ..search.fixed_rank import search_fixed_rank
from ..search.holdout import HoldOut
from ..search.learning import SearchMonitor, Snapshot
from ..search.mdl_search import search_mdl
from ..search.params import SearchParams

_TRIALS = 16  # with other atoms in the place of some, of a search for the fewest errors
_HELD_OUT = 9  # one row of so many says when a search for more atoms must stop


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows that stand for more, with the atoms and codes there are."""

    rows: BitMatrix
    n_all: float  # rows that these stand for
    algebra: str
    atoms: BitMatrix
    codes: BitMatrix
    bias: BitMatrix

    @property
    def is_whole(self) -> bool:
        """Whether these are all."""
        return len(self.rows) >= int(self.n_all)


def split_holdout(
    rows: BitMatrix, n_all: float, params: SearchParams, random: np.random.Generator, workers: Workers
) -> tuple[NDArray[np.intp], HoldOut | None]:
    """The rows of a sample to search; and those that are held out, where the number of atoms is open and atoms could
    fit a sample row by row."""
    if len(rows) >= int(n_all) or params.n_components != "mdl":
        return np.arange(len(rows)), None
    drawn, apart = random.permutation(len(rows)), max(1, len(rows) // _HELD_OUT)
    return np.sort(drawn[apart:]), HoldOut(rows[np.sort(drawn[:apart])], int(n_all), workers)


def refine(
    sample: Sample, params: SearchParams, from_scratch: bool, workers: Workers, random: np.random.Generator
) -> Snapshot | None:
    """The best that a search of a sample finds, from the atoms and codes there are; from scratch as well, if so asked.

    That for the codelength has other starts of its own, whatever was asked.
    """
    seen, holdout = split_holdout(sample.rows, sample.n_all, params, random, workers)
    rows, algebra = sample.rows[seen], sample.algebra
    part = len(seen) / sample.n_all if params.by_codelength else 1.0
    objective = params.objective(algebra, part)
    errors = replace(objective, by_codelength=False, share=1.0)
    plan = params.plan
    monitor = SearchMonitor(
        params.by_codelength,
        params.deadline(),
        algebra=algebra,
        fewest=plan.fewest,
        most=plan.most,
        judged=holdout is not None,
    )
    block = Block(rows, sample.atoms, sample.codes[seen], covering(algebra), workers, sample.bias)
    if not params.by_codelength:
        _mend(rows, block, params, errors, monitor, workers, random)
        if from_scratch:
            search_fixed_rank(rows, None, plan.fewest, errors, 1, params.max_iter, monitor, workers, random)
        return monitor.best
    if params.n_components != "mdl" and sample.is_whole and not sample.bias.count():
        block = min(block, _mend(rows, block, params, errors, monitor, workers, random), key=objective.cost)
    search_mdl(rows, None, block, objective, plan, monitor, workers, random, holdout)
    return monitor.best


def _mend(
    rows: BitMatrix,
    block: Block,
    params: SearchParams,
    objective: Objective,
    monitor: SearchMonitor,
    workers: Workers,
    random: np.random.Generator,
) -> Block:
    """Fewer errors by a few trials, then by the coders that take longer."""
    wanted, most = params.plan.fewest, min(_TRIALS, params.max_iter)
    few = search_fixed_rank(rows, block.factors(), wanted, objective, 1, most, monitor, workers, random)
    if wanted > MOST_EXACT_ATOMS and monitor.cut_by == "max_iter":  # which has ended more than the trials
        monitor.cut_by = None
        few = search_fixed_rank(rows, few.factors(), wanted, objective, 0, 1, monitor, workers, random)
    monitor.cut_by = None  # if the time is up, that is seen again
    return few
