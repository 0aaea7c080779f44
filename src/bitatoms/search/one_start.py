"""One start of a search, from its context to a factorization."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..bits import BitMatrix
from ..core.block import Block, Change
from ..core.coding import code_from_scratch, coding_rule
from ..core.result import Factorization
from ..kernels.gpu.device import is_out_of_memory
from ..kernels.structs import covering
from ..parallel import OutOfTime, Workers
from .best_result import best_result, stopped_result
from .context import SearchContext
from .exact_cover import remove_forbidden
from .finish import finish
from .fixed_rank import search_fixed_rank
from .forward_selection import SelectionLimits, forward_selection
from .initial import distinct_rows, start_factors
from .journal import Scope
from .learning import LearningMethod, learn
from .mdl_breeder import breed_mdl
from .mdl_search import search_mdl
from .monitor import SearchMonitor
from .params import SearchParams
from .plan import AnytimeTuning
from .stopping import CALLBACK, CONVERGED, MAX_MEMORY, MAX_TIME, REASONS, SearchResult

_MODERATE_COST = 3.0  # of an error


@dataclass(frozen=True, eq=False)
class OneStart:
    """One start of a search: run it, or ask for the best state that it has found so far."""

    context: SearchContext
    params: SearchParams

    def run(self, end: float) -> tuple[str, Factorization | None]:
        """Return the reason that the search ended, and the best state found by then.

        If it is cut off at the time ``end``, or memory runs out, this is the best state recorded so far.
        """
        context, params, monitor = self.context, self.params, self.context.monitor
        workers = replace(context.workers, deadline=end)
        holdout = context.holdout and replace(context.holdout, workers=workers)
        try:
            found = _search_or_resume(replace(context, workers=workers, holdout=holdout), params)
            if monitor.stop_reason is not None:
                context.journal.keep_best()
            remove_forbidden(context)
            result = best_result(context, found.block, params.coder_after, found.ended)
            if result is not None and monitor.stop_reason == CALLBACK:  # perhaps in its last round
                result = replace(result, ended=CALLBACK)
            return found.ended if result is None else result.ended, result
        except OutOfTime:
            ended = MAX_TIME
            if monitor.best is None:
                n_atoms = 0 if params.n_components == "mdl" else params.n_components
                monitor.record(_rows_as_atoms(context, n_atoms), Change(), 1, "start")
        except MemoryError as error:
            ended = MAX_MEMORY
            if monitor.best is None or is_out_of_memory(error):
                raise
        return ended, self.stopped(ended)

    def stopped(self, ended: str, workers: Workers | None = None) -> Factorization | None:
        """Return the best state so far of a search that was cut off, or None; other threads may be given for this."""
        self.context.journal.keep_best()
        context = replace(self.context, workers=workers or self.context.workers)
        remove_forbidden(context)
        return stopped_result(context, self.params.coder_after, ended)

    @property
    def monitor(self) -> SearchMonitor:
        """What observes this start."""
        return self.context.monitor

    @property
    def best_cost(self) -> int:
        """The cost of the best state, by which starts are compared."""
        return self.context.monitor.best_cost


def _rows_as_atoms(context: SearchContext, n_atoms: int) -> Block:
    """Return a state that is found at once: random rows as atoms, each used by its own row only."""
    rows = distinct_rows(context.data, n_atoms, context.random)
    words = np.zeros((context.data.n_rows, -(-len(rows) // 64)), np.uint64)
    number = np.arange(len(rows))
    words[rows, number // 64] = np.uint64(1) << (number % 64).astype(np.uint64)
    return context.block(context.data[rows].filled(), BitMatrix.from_words(words, len(rows), check=False))


def _search_or_resume(context: SearchContext, params: SearchParams) -> SearchResult:
    """Make one start, which is a step that contains all others."""

    def make() -> tuple[Block, int]:
        context.journal.restore_best()
        block, ended = _search_once(context, params)
        return block, REASONS.index(ended)

    block, reason = context.journal.block_step(make, context.block, Scope(context.data.shape, (context.random,)))
    return SearchResult(block, REASONS[reason])


def _search_once(context: SearchContext, params: SearchParams) -> SearchResult:
    """Make one start, and learn a fixed number of atoms or choose the number."""
    if params.search != "paper":
        return _search_widely(context, params)
    algebra, monitor = context.objective.algebra, context.monitor
    rule = coding_rule(params.coder, algebra, params.max_atoms_per_sample, params.residual_limit)
    method = LearningMethod(params.coder, params.update, rule, params.max_iter)
    with context.journal.loop(Scope(context.data.shape, (context.random,))) as loop:
        if loop.resumed is None:
            factors = start_factors(context.data, params, rule.covers, context.workers, context.random)
            block = context.block(*factors)
        else:
            _, *kept = loop.resumed.states[0]
            block = context.block(*kept)
        if params.n_components == "mdl":
            limits = SelectionLimits(params.patience, params.max_components)
            return SearchResult(block, forward_selection(block, method, limits, monitor, context.random, loop))
        return SearchResult(block, learn(block, method, monitor, loop=loop))


def _search_widely(context: SearchContext, params: SearchParams) -> SearchResult:
    """Run a search other than the paper's: for the codelength or, with a fixed number of atoms, for few errors."""
    given = None
    if not (isinstance(params.init, str) and params.init == "auto"):
        covers = covering(context.objective.algebra)
        given = start_factors(context.data, params, covers, context.workers, context.random)
    anytime = context.plan.anytime
    if anytime is not None and params.by_codelength:
        return _search_anytime(context, params, anytime, given)
    first = None
    if params.n_components != "mdl" and not (params.by_codelength and given is not None):
        first = search_fixed_rank(replace(context, objective=context.objective.errors_only()), given)
        if not params.by_codelength:
            return finish(context, first, params.coder_after)
    if context.objective.costs is not None and given is None:
        first = _search_at_lower_costs(context, first)
    return finish(context, search_mdl(context, given, first), params.coder_after)


def _search_at_lower_costs(context: SearchContext, first: SearchResult | None) -> SearchResult:
    """Search as if all errors cost the same, then at moderate costs: a start of the search at the full costs.

    What belongs together is seen best if a missing one is no worse than an added one. From there to costs at which few
    rows may use an atom, atoms need time to adapt.
    """
    objective, plan = context.objective, replace(context.plan, starts=(), only_starts=True)
    assert objective.costs is not None
    found = search_mdl(replace(context, objective=replace(objective, costs=None)), None, first)
    moderate = replace(objective, costs=objective.costs.limited(_MODERATE_COST))
    if found.ended == CONVERGED:
        found = search_mdl(replace(context, objective=moderate, plan=plan), None, found)
    change = code_from_scratch(found.block, objective.rule(found.block))
    context.monitor.record(found.block, change, 1, "recode")
    return found


def _search_anytime(
    context: SearchContext,
    params: SearchParams,
    tuning: AnytimeTuning,
    given: tuple[BitMatrix, BitMatrix | None] | None,
) -> SearchResult:
    """Run the anytime search for the codelength; with a fixed number of atoms, each start has few errors."""
    if params.n_components != "mdl" and given is None:
        objective = context.objective.errors_only()
        errors_only = replace(context, objective=objective, plan=replace(context.plan, anytime=None))

        def first() -> Block:
            return search_fixed_rank(errors_only).block

        return finish(context, breed_mdl(context, tuning, params.coder_after, first=first), params.coder_after)
    return finish(context, breed_mdl(context, tuning, params.coder_after, given), params.coder_after)
