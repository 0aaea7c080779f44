"""Refine the atoms of a stream: search its sample again, starting from the current atoms and codes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..engine.block import Block
from ..engine.remembered import code_from_nearest, frequent_codes
from ..parallel import Workers
from ..search.context import HoldOut, SearchContext, split_rows
from ..search.fixed_rank import search_fixed_rank
from ..search.mdl_search import search_mdl
from ..search.monitor import CONVERGED, SearchMonitor, SearchResult, Snapshot
from ..search.params import SearchParams

_MAX_TRIALS = 16  # of a search for the fewest errors


@dataclass(frozen=True, eq=False)
class Sample:
    """A sample of the rows of a stream, with the current atoms and codes."""

    rows: BitMatrix
    n_all: float  # rows that it stands for
    algebra: str
    atoms: BitMatrix
    codes: BitMatrix
    bias: BitMatrix

    @property
    def is_complete(self) -> bool:
        """Whether the sample holds all rows."""
        return len(self.rows) >= int(self.n_all)


def split_holdout(
    rows: BitMatrix, n_all: float, params: SearchParams, random: np.random.Generator, workers: Workers
) -> tuple[NDArray[np.intp], HoldOut | None]:
    """Return the indices of the rows to search, and the rows to hold out.

    Rows are held out if the number of atoms is not fixed and the sample is incomplete, because atoms could overfit.
    """
    if len(rows) >= int(n_all) or params.n_components != "mdl":
        return np.arange(len(rows)), None
    searched, held_out = split_rows(random.permutation(len(rows)))
    return searched, HoldOut(rows[held_out], int(n_all), workers)


def refine(
    sample: Sample, params: SearchParams, from_scratch: bool, workers: Workers, random: np.random.Generator
) -> Snapshot | None:
    """Return the best state that a search finds from the current atoms and codes, and from scratch if requested.

    The search for the shortest codelength makes other starts in any case.
    """
    searched, holdout = split_holdout(sample.rows, sample.n_all, params, random, workers)
    share = len(searched) / sample.n_all if params.by_codelength else 1.0
    plan, objective = replace(params.plan, anytime=None), params.objective(sample.algebra, share)
    monitor = SearchMonitor(
        by_codelength=params.by_codelength,
        deadline=params.deadline(),
        algebra=sample.algebra,
        min_atoms=plan.fewest,
        max_atoms=plan.most,
        by_holdout=holdout is not None,
        settles_bias=params.settles_bias,
        objective=objective,
        ranks=params.ranks,
    )
    context = SearchContext(sample.rows[searched], objective, plan, monitor, workers, random, holdout)
    errors_only = replace(
        context,
        objective=replace(objective.errors_only(), share=1.0),
        plan=replace(plan, fixed_rank=replace(plan.fixed_rank, effort=1)),
    )
    block = context.block(sample.atoms, sample.codes[searched], sample.bias)
    code_from_nearest(block, objective.rule(block), frequent_codes(sample.codes, sample.rows.n_cols))
    if not params.by_codelength:
        _lower_errors(errors_only, block)
        if from_scratch:
            search_fixed_rank(errors_only)
        return monitor.best
    if params.n_components != "mdl" and sample.is_complete and not sample.bias.count():
        block = min(block, _lower_errors(errors_only, block), key=objective.cost)
    search_mdl(context, first=SearchResult(block, CONVERGED))
    return monitor.best


def _lower_errors(context: SearchContext, block: Block) -> Block:
    """Lower the number of errors by a few trials, then by the slower coders."""
    plan = context.plan
    budget = replace(plan.fixed_rank, max_trials=_MAX_TRIALS, start_share=1.0, population=1)
    few_trials = replace(plan, fixed_rank=budget)
    return search_fixed_rank(replace(context, plan=few_trials), block.factors()).block
