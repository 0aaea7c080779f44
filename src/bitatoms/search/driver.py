"""A search from its parameters to a factorization: all restarts in all algebras, and the best of them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np

from ..bits import BitMatrix, bits_at
from ..engine.block import Block, Change
from ..engine.codelength import string_bits
from ..engine.coding import code_from_scratch, coding_rule
from ..engine.prices import EQUAL_COSTS
from ..errors import warn
from ..kernels.compilation import prepare
from ..kernels.gpu.device import is_out_of_memory
from ..model.complete_rows import describe_rows, with_members
from ..model.result import Factorization, Interrupted, ResultBase
from ..parallel import OutOfTime, Workers, count_processors
from ..sparse_bits import Bits, SparseBits
from ..system.memory import memory_limit
from .context import HoldOut, SearchContext
from .finish import best_result, beyond_chance, remove_forbidden, stopped_result
from .fixed_rank import search_fixed_rank
from .margins import Margins
from .mdl_search import search_mdl
from .monitor import (
    CALLBACK,
    CONVERGED,
    INTERRUPTED,
    MAX_ITER,
    MAX_MEMORY,
    MAX_TIME,
    SearchMonitor,
    SearchResult,
    StoppingRule,
    at_once,
    cut_off,
    in_order,
)
from .paper import LearningMethod, forward_selection, learn
from .params import SearchParams
from .starts.initial import distinct_rows, start_factors
from .states import Saver, StateStore
from .windows.driver import WindowSearch

logger = logging.getLogger(__name__)


_MODERATE_COST = 3.0  # of an error
_MAX_PROCESSES = 4  # that compile kernels: the kernels of a module share functions, so one process compiles them
_MEMORY = 1 << 30  # bytes for each of them; it takes a quarter of that

Made = tuple[str, Factorization | None]  # the reason that a start ended, and its result
Winners = dict[str, tuple[int, Factorization]]  # by algebra: the cost by which results are compared, and the best one
Found = tuple[Winners, str | None]  # also the reason that all searches ended, unless each has its own


@dataclass(frozen=True, eq=False)
class SearchRequest:
    """What to search, and with what.

    Where the table is a share of the rows, atoms cost less by this share, and states are compared by held-out rows.
    Searches start from the states in the ``store``, if there are any, and save theirs there.
    """

    table: Bits
    params: SearchParams
    workers: Workers
    random: np.random.Generator
    deadline: float = float("inf")
    holdout: HoldOut | None = None
    share: float = 1.0
    store: StateStore | None = None


def search_freely(request: SearchRequest) -> Found:
    """Return the best of the starts in each algebra; each algebra gets its share of the time.

    Starts are made several at once if threads are idle and the time is not limited (see `monitor.py`).
    """
    table, params, workers = request.table, request.params, request.workers
    params = replace(params, plan=params.plan.of_share(request.share))
    prepare_kernels(table, params)
    n_init = 1 if params.options.n_init == "auto" else params.options.n_init
    algebras = [algebra for algebra in params.algebras for _ in range(n_init)]  # of the starts
    seeds = request.random.integers(2**63, size=(len(algebras), 4))  # starts do not depend on each other
    margins, is_limited = _margins(request), request.deadline != float("inf")
    # In the paper's search, ``max_iter`` only limits the steps of a round.
    goes_on = (CONVERGED, MAX_ITER) if params.search == "paper" else (CONVERGED,)
    runs: dict[int, TableSearch | WindowSearch] = {}  # not taken yet
    winners: Winners = {}
    ended: str | None = None

    @cache
    def stopping_of(number: int) -> StoppingRule:
        """Return the monitor of a start; rounds are limited in its search."""
        algebra, start = algebras[number], number % n_init + 1
        monitor = SearchMonitor(
            params.objective(algebra),
            deadline,
            params.callbacks,
            start,
            min_atoms=params.plan.fewest,
            max_atoms=params.plan.most,
            min_users=params.plan.min_users,
            by_holdout=request.holdout is not None and params.by_codelength,
            settles_bias=params.settles_bias,
            saver=None if request.store is None else Saver(request.store, f"{algebra} {start}"),
        )
        return StoppingRule(monitor, None)

    def make(number: int, own: Workers, stopping: StoppingRule) -> Made:
        """Make a start, with its monitor or a branch of it."""
        objective, random = params.objective(algebras[number], request.share), np.random.default_rng(seeds[number])
        about = stopping.monitor, own, random, request.holdout
        if params.is_wide(table.n_cols):
            runs[number] = WindowSearch(table, params, objective, *about, margins)
        else:
            assert isinstance(table, BitMatrix)
            runs[number] = TableSearch(SearchContext(table, objective, params.plan, *about, None, margins), params)
        return _made(runs[number], cut_off(begin, deadline))

    def take(number: int, result: Factorization | None) -> None:
        """Keep the result of a start if it costs less than those of earlier starts in the same algebra."""
        run, algebra = runs.pop(number), algebras[number]
        if result is not None and (algebra not in winners or run.best_cost < winners[algebra][0]):
            winners[algebra] = run.best_cost, result

    groups = [range(len(seeds))]
    if is_limited:  # one after the other, each algebra with its share of the time
        groups = [range(first, first + n_init) for first in range(0, len(seeds), n_init)]
    for n_before, group in enumerate(groups):
        begin = time.perf_counter()
        deadline = begin + (request.deadline - begin) / (len(groups) - n_before)
        if winners and begin >= request.deadline:
            return winners, MAX_TIME
        try:
            most = at_once(table.n_rows * table.n_cols, is_limited)
            with closing(in_order(workers, make, stopping_of, group, most)) as results:
                for number, (start_ended, result) in zip(group, results, strict=False):
                    take(number, result)
                    if start_ended not in goes_on:
                        ended = start_ended
                        break
        except KeyboardInterrupt:  # keep what starts have found so far; their own threads are cancelled
            for number in sorted(runs):
                take(number, runs[number].stopped(INTERRUPTED, workers))
            return winners, INTERRUPTED
        if ended not in (None, MAX_TIME):
            break
    return winners, ended


def _made(run: TableSearch | WindowSearch, end: float) -> Made:
    """Return the reason that a search ended, and the best state found by then.

    If it is cut off at the time ``end``, or memory runs out, this is the best state found so far.
    """
    try:
        return run.run(end)
    except OutOfTime:
        ended = run.monitor.stop_reason or MAX_TIME
    except MemoryError as error:
        ended = MAX_MEMORY
        if not run.has_state or is_out_of_memory(error):  # of a device: the search starts again without it
            raise
    return ended, run.stopped(ended)


def on_cpu(request: SearchRequest, random: np.random.Generator, error: MemoryError) -> SearchRequest:
    """Return the request to search again on the CPU, if the memory of a device was too small, with the same result."""
    device = request.workers.device
    if device is None or not is_out_of_memory(error):
        raise error
    logger.warning("searching on the CPU, because the memory of %s is too small", device.name)
    device.release()
    return replace(request, workers=request.workers.without_device, random=random)


def best_of_algebras(winners: Winners, request: SearchRequest, ended: str | None) -> Factorization:
    """Return the result of the algebra to keep, with what the results of all algebras cost.

    ``ended`` is the reason that all searches ended, unless each has its own; an interrupted one raises Interrupted. If
    a result of all rows saves little, it tells whether that is more than chance. The rows that have all features of the
    atoms are counted, unless memory runs out.
    """
    if not winners:
        raise Interrupted(None)
    table, params, holdout = request.table, request.params, request.holdout
    codelengths = {algebra: result.codelength.total for algebra, (_, result) in winners.items()}
    costs = codelengths
    if params.by_codelength or params.compares_errors:
        costs = {algebra: cost for algebra, (cost, _) in winners.items()}
    algebra = list(winners)[params.best_algebra(list(costs.values()))]
    compared = {}
    if len(costs) > 1 and params.compares_errors:
        compared = {algebra: round(cost / request.share) for algebra, cost in costs.items()}
    elif len(costs) > 1 and params.by_codelength and holdout is not None:  # costs of all rows already
        compared = costs
    _, best = winners[algebra]
    best = replace(
        best,
        ended=ended or best.ended,
        codelengths=codelengths,
        compared=compared,
        bits_without=int(string_bits(table.n_known, table.column_weights()).sum()),
        costs=params.costs or None,
        has_bias=params.in_algebra(algebra).bias,
    )
    may_be_chance = holdout is None and params.n_components == "mdl" and params.is_mdl_search and best.saves_little
    try:
        if best.ones is not None:  # unless interrupted twice
            bias = BitMatrix.from_dense(best.bias[np.newaxis])
            best = with_members(best, describe_rows(table, best.atoms, request.workers, bias))
        if may_be_chance and ended != INTERRUPTED:
            best = replace(best, beyond_chance=beyond_chance(best, table, params.plan.mdl.sparse_share))
    except KeyboardInterrupt:
        ended = INTERRUPTED
    except MemoryError:  # without these statistics
        pass
    if ended == INTERRUPTED:
        raise Interrupted(best)
    return best


def _margins(request: SearchRequest) -> Margins | None:
    """Return the margins of a sparse table, in which atoms can be found by chance; None for others.

    Not for tables with unknown cells, and for samples of rows, whose atoms are compared by other rows.
    """
    table, params = request.table, request.params
    if request.holdout is not None or table.n_unknown or params.n_components != "mdl" or not params.is_mdl_search:
        return None
    weights = table.column_weights()
    if weights.sum() >= params.plan.mdl.sparse_share * table.n_rows * table.n_cols:
        return None
    return Margins.from_weights(table.row_weights(), weights)


def report_result(result: ResultBase, params: SearchParams) -> None:
    """Log the summary, and warn if fewer atoms are useful than were requested."""
    logger.info("%s", result.summary())
    wanted, n_atoms = params.n_components, result.atoms.n_rows
    if params.search != "paper" and wanted != "mdl" and result.ended == CONVERGED and n_atoms < wanted:
        useful = "found within the limits" if params.limits else "useful"
        why = f"only {n_atoms} are {useful}" if result.wrong_bits else f"{n_atoms} leave no errors"
        warn(f"{wanted} atoms were requested, but {why}; {n_atoms} are returned")


@dataclass(frozen=True, eq=False)
class TableSearch:
    """A search of a table as a whole, as `WindowSearch` is one of a wide table."""

    context: SearchContext
    params: SearchParams

    def run(self, end: float) -> Made:
        """Return the reason that the search ended, and its result; raise OutOfTime at the time ``end``."""
        params, monitor = self.params, self.monitor
        context = replace(self.context, workers=replace(self.context.workers, deadline=end))
        saved = None if monitor.saver is None else monitor.saver.states_of(context.data.shape)
        if saved is not None:
            context = replace(context, resumed=saved.states)
            for state in saved.states:
                context.record(context.block_of(state), Change(), 0, "resume")
        if saved is not None and saved.ended is not None:
            found = SearchResult(context.block_of(saved.states[0]), saved.ended)
        elif params.search == "paper":
            found = _search_paper(context, params)
        else:
            found = _search_freely(context, params)
        remove_forbidden(self.context)
        result = best_result(self.context, found.block, params.coder_after, found.ended)
        if result is not None and monitor.stop_reason == CALLBACK:  # perhaps in its last round
            result = replace(result, ended=CALLBACK)
        ended = found.ended if result is None else result.ended
        self._save(ended)
        return ended, result

    def stopped(self, ended: str, workers: Workers | None = None) -> Factorization | None:
        """Return the best state so far of a search that was cut off, or None; other threads may be given for this."""
        context, params = replace(self.context, workers=workers or self.context.workers), self.params
        if ended == MAX_TIME and not self.has_state:
            n_atoms = 0 if params.n_components == "mdl" else params.n_components
            self.monitor.record(_rows_as_atoms(context, n_atoms), Change(), 1, "start")
        self._save(ended)
        remove_forbidden(context)
        return stopped_result(context, params.coder_after, ended)

    def _save(self, ended: str) -> None:
        """Save the best state; a start that has ended by itself is not made again."""
        if self.monitor.saver is not None:
            self.monitor.saver.end(ended if ended in (CONVERGED, MAX_ITER) else None)

    @property
    def monitor(self) -> SearchMonitor:
        """What observes the search."""
        return self.context.monitor

    @property
    def has_state(self) -> bool:
        """Whether there is a best state."""
        return self.monitor.best is not None

    @property
    def best_cost(self) -> int:
        """The cost of the best state, by which starts are compared."""
        return self.monitor.best_cost


def _rows_as_atoms(context: SearchContext, n_atoms: int) -> Block:
    """Return a state that is found at once: random rows as atoms, each used by its own row only."""
    rows = distinct_rows(context.data, n_atoms, context.random)
    codes = bits_at(rows, np.arange(len(rows)), (context.data.n_rows, len(rows)))
    return context.block(context.data[rows].filled(), codes)


def _search_freely(context: SearchContext, params: SearchParams) -> SearchResult:
    """Search for the fewest errors, or the shortest codelength: with a number of atoms, from few errors."""
    coder, given = params.coder_after, None  # factors that the user passed or named
    if not context.resumed and not params.looks_for_starts:
        covers = context.objective.algebra == "or"
        given = start_factors(context.data, params, covers, context.workers, context.random)
    if not params.by_codelength:
        return search_fixed_rank(context, given, coder)
    if given is not None or context.resumed:
        return search_mdl(context, given, coder=coder)
    few_errors = None
    if params.n_components != "mdl":
        once = replace(context, objective=context.objective.errors_only(), plan=context.plan.in_one_epoch())
        few_errors = partial(search_fixed_rank, once)
    first = partial(_search_at_lower_costs, context, few_errors) if context.objective.costs else few_errors
    return search_mdl(context, None, first, coder)


def _search_paper(context: SearchContext, params: SearchParams) -> SearchResult:
    """Search as published: learn a given number of atoms, or choose the number by forward selection."""
    own, algebra = params.paper, context.objective.algebra
    rule = coding_rule(params.coder, algebra, params.max_atoms_per_sample, own.residual_limit)
    update = "exact" if params.coder == "exact" and own.update == "mob" else own.update
    method = LearningMethod(params.coder, update, rule, params.plan.max_rounds)
    if context.resumed:
        block = context.block_of(context.resumed[0])
    else:
        block = context.block(*start_factors(context.data, params, rule.covers, context.workers, context.random))
    if params.n_components == "mdl":
        limits = own.patience, params.max_components
        return SearchResult(block, forward_selection(block, method, *limits, context.monitor, context.random))
    return SearchResult(block, learn(block, method, context.monitor))


def _search_at_lower_costs(context: SearchContext, first: Callable[[], SearchResult] | None) -> SearchResult:
    """Search as if all errors cost the same, then at moderate costs: a start of the search at the full costs.

    What belongs together is seen best if a missing one is no worse than an added one. From there to costs at which few
    rows may use an atom, atoms need time to adapt.
    """
    objective, plan = context.objective, context.plan.in_one_epoch()
    found = search_mdl(replace(context, objective=replace(objective, costs=EQUAL_COSTS), plan=plan), None, first)
    moderate = replace(objective, costs=objective.costs.limited(_MODERATE_COST))
    if found.ended == CONVERGED:
        equal = found
        found = search_mdl(replace(context, objective=moderate, plan=plan.with_starts()), None, lambda: equal)
    change = code_from_scratch(found.block, objective.rule(found.block))
    context.monitor.record(found.block, change, 1, "fresh sweep")
    return found


def prepare_kernels(data: Bits, params: SearchParams) -> None:
    """Compile the kernels of a search, in each of its algebras, that are not in the cache."""
    kind = "search"
    if params.search == "paper":
        kind = "k-prox" if params.paper.update == "k-prox" else f"paper, {params.coder}"
    elif isinstance(data, SparseBits):
        kind = "sparse table"
    elif data.n_unknown:
        kind = "unknown cells"
    elif params.is_wide(data.n_cols):
        kind = "wide table"
    elif params.n_components != "mdl":
        kind = "a given number of atoms"
    elif params.search == "thorough":
        kind = "thorough search"
    kinds = [f"{kind}, {algebra}" for algebra in params.algebras]
    prepare(kinds, max(1, min(_MAX_PROCESSES, count_processors(), memory_limit() // _MEMORY)))
