"""A search from its parameters to a factorization: all restarts in all algebras, and the best of them.

One start of a search, from its context to a factorization.

Which kernels a search is about to call: on a machine that has not compiled them, several processes do so.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..bits import BitMatrix
from ..engine.block import Block, Change
from ..engine.codelength import string_bits
from ..engine.coding import code_from_scratch, coding_rule
from ..engine.margins import Margins
from ..errors import warn
from ..kernels.ahead import ahead
from ..kernels.gpu.device import is_out_of_memory
from ..kernels.structs import covering
from ..memory import memory_limit
from ..model.result import Factorization, Interrupted, ResultBase
from ..parallel import OutOfTime, Workers, count_processors
from ..sparse_bits import Bits, SparseBits, packed, sparse
from .anytime import breed_mdl
from .branches import at_once
from .context import HoldOut, SearchContext
from .exact_cover import remove_forbidden
from .finish import best_result, beyond_chance, finish, stopped_result
from .fixed_rank import search_fixed_rank
from .journal import Scope, StartJournal, StepStore
from .mdl_search import search_mdl
from .monitor import CALLBACK, CONVERGED, MAX_ITER, MAX_MEMORY, MAX_TIME, REASONS, SearchMonitor, SearchResult, cut_off
from .paper import LearningMethod, SelectionLimits, forward_selection, learn
from .params import SearchParams
from .plan import AnytimeTuning
from .starts.initial import distinct_rows, start_factors
from .windows.driver import WindowSearch, is_wide, is_wide_and_sparse
from .windows.journal import WindowJournal

logger = logging.getLogger(__name__)


_Made = tuple[str, Factorization | None]  # the reason that a start ended, and its result


class Candidate(NamedTuple):
    """The result of a start, and the cost by which it is compared."""

    cost: int
    result: Factorization


def search_freely(
    data: Bits,
    params: SearchParams,
    workers: Workers,
    random: np.random.Generator,
    deadline: float = float("inf"),
    holdout: HoldOut | None = None,
    share: float = 1.0,
    steps: StepStore | None = None,
) -> Factorization:
    """Return the best factorization over the algebras and the restarts; each algebra gets its share of the time.

    Where the data is only a share of the rows, atoms cost less by this share, and states are compared by held-out rows.
    Steps that were finished before are taken from ``steps``, and others go there.
    """
    table = _as_searched(data, params, holdout)
    expect_kernels(table, params)
    starts = _Starts(table, params, random, deadline, holdout, share, steps)
    without = int(string_bits(data.n_known, data.column_weights()).sum())
    always: dict[str, Any] = {"bits_without": without, "costs": params.costs, "has_bias": params.bias}
    try:
        ended = starts.run(workers)
    except KeyboardInterrupt:
        winners = starts.interrupted(workers)
        best = best_of_algebras(winners, params, holdout, share) if winners else None
        raise Interrupted(best and replace(best, ended="interrupted", **always)) from None
    best = replace(best_of_algebras(starts.winners, params, holdout, share), **always)
    best = replace(best, ended=ended or best.ended)
    return best if holdout is not None else with_evidence(best, table, params)


def with_evidence(best: Factorization, table: Bits, params: SearchParams) -> Factorization:
    """Return the result of a search of all rows and, if it saves little, whether that is more than chance."""
    if params.n_components != "mdl" or not params.is_mdl_search or not best.saves_little:
        return best
    try:
        return replace(best, beyond_chance=beyond_chance(best, table, params.plan.mdl.sparse_share))
    except KeyboardInterrupt:
        raise Interrupted(best) from None


class _Starts:
    """All starts in all algebras, several at once if threads are idle and the time is not limited.

    The result is that of making one after the other. The first one that is not finished calls the callbacks at once;
    the rounds of others are passed to them when it is their turn, and if a callback then ends the search, the start is
    made again up to there.
    """

    def __init__(
        self,
        table: Bits,
        params: SearchParams,
        random: np.random.Generator,
        deadline: float,
        holdout: HoldOut | None,
        share: float,
        steps: StepStore | None,
    ) -> None:
        self.table, self.params, self.deadline, self.holdout = table, params, deadline, holdout
        self.share, self.steps, self.margins = share, steps, _margins(table, params, holdout)
        self.winners: dict[str, Candidate] = {}  # by algebra
        self._places = [(algebra, start + 1) for algebra in params.algebras for start in range(params.n_init)]
        self._seeds = random.integers(2**63, size=(len(self._places), 4))  # starts do not depend on each other
        self._times: dict[str, tuple[float, float]] = {}  # begin and deadline of each algebra
        self._runs: dict[int, OneStart | WindowSearch] = {}  # not taken yet
        self._skipped: set[str] = set()  # algebras without any time left
        self._n_taken, self._thread = 0, threading.get_ident()

    def run(self, workers: Workers) -> str | None:
        """Make the starts; return what ended the search before all were made, or None."""
        ended: str | None = None
        now = time.perf_counter()
        most = at_once(self.table.n_rows * self.table.n_cols, self.steps is not None)
        if self.deadline != float("inf"):  # one after the other, each with its share of the time
            most = 1
        if self.deadline == float("inf"):
            self._times = dict.fromkeys(self.params.algebras, (now, self.deadline))
        results = workers.map_tasks(self._make, range(len(self._places)), most)
        with closing(results):
            for number, made in enumerate(results):
                found_ended = self._taken(number, made, workers)
                if _ends_all_starts(found_ended, self.params):
                    ended = found_ended
                    if ended != MAX_TIME:  # the next algebra has its own share of the time
                        break
                    self._skipped.add(self._places[number][0])
                self._n_taken += 1  # now the next start may call the callbacks
        return ended

    def interrupted(self, workers: Workers) -> dict[str, Candidate]:
        """Return the winners so far of starts that were interrupted; their own threads are cancelled."""
        for number, run in sorted(self._runs.items()):
            self._keep_better(number, run.stopped("interrupted", workers), run)
        return self.winners

    def _make(self, workers: Workers, number: int) -> _Made:
        """Make a start; return the reason that it ended, and its result."""
        algebra, now = self._places[number][0], time.perf_counter()
        if algebra not in self._times:
            if self.winners and now >= self.deadline:
                self._skipped.add(algebra)
                return MAX_TIME, None
            n_left = len(self.params.algebras) - len(self._times)
            self._times[algebra] = now, now + (self.deadline - now) / n_left  # an equal share of the time left
        if algebra in self._skipped:
            return MAX_TIME, None
        monitor = self._monitor(number)
        is_live = number == self._n_taken and threading.get_ident() == self._thread
        return self._run(number, workers, monitor if is_live else monitor.branch())

    def _monitor(self, number: int) -> SearchMonitor:
        """Return the monitor of a start."""
        params, (algebra, start) = self.params, self._places[number]
        return SearchMonitor(
            by_codelength=params.by_codelength,
            deadline=self._times[algebra][1],
            callbacks=params.callbacks,
            start=start,
            algebra=algebra,
            min_atoms=params.plan.fewest,
            max_atoms=params.plan.most,
            by_holdout=self.holdout is not None and params.by_codelength,
            settles_bias=params.settles_bias,
            objective=params.objective(algebra),
            ranks=params.ranks,
        )

    def _run(self, number: int, workers: Workers, monitor: SearchMonitor) -> _Made:
        """Make a start with this monitor."""
        table, params, (algebra, start) = self.table, self.params, self._places[number]
        random, objective = np.random.default_rng(self._seeds[number]), params.objective(algebra, self.share)
        name, holdout = f"{algebra} {start}", self.holdout and replace(self.holdout, workers=workers)
        run: OneStart | WindowSearch
        if is_wide(table.n_cols, params):
            journal = WindowJournal(self.steps, name)
            run = WindowSearch(table, params, objective, monitor, workers, random, holdout, self.margins, journal)
        else:
            assert isinstance(table, BitMatrix)
            context = SearchContext(table, objective, params.plan, monitor, workers, random, holdout)
            context = replace(context, margins=self.margins)
            context = replace(context, journal=StartJournal(self.steps, name, context))
            run = OneStart(context, params)
        self._runs[number] = run
        return run.run(cut_off(*self._times[algebra]))

    def _taken(self, number: int, made: _Made, workers: Workers) -> str:
        """Keep the result of a start if it is better; return the reason that the start ended."""
        if number not in self._runs:
            return MAX_TIME
        branch = self._runs[number].monitor
        if branch.is_branch:
            monitor = self._monitor(number)
            n_taken = monitor.take_rounds(branch.history)
            if monitor.stop_reason is not None:
                made = self._run(number, workers, monitor.branch(stop_after=n_taken))
        ended, result = made
        self._keep_better(number, result, self._runs.pop(number))
        return ended

    def _keep_better(self, number: int, result: Factorization | None, run: OneStart | WindowSearch) -> None:
        """Keep the result of a start if it costs less than those of earlier starts in the same algebra."""
        algebra = self._places[number][0]
        before = self.winners.get(algebra)
        if result is not None and (before is None or run.best_cost < before.cost):
            self.winners[algebra] = Candidate(run.best_cost, result)


def _as_searched(data: Bits, params: SearchParams, holdout: HoldOut | None) -> Bits:
    """Return a table in the form in which it is searched, which does not depend on the form it has."""
    if holdout is None and is_wide_and_sparse(data, params):
        return sparse(data)
    return packed(data)


def _margins(table: BitMatrix | SparseBits, params: SearchParams, holdout: HoldOut | None) -> Margins | None:
    """Return the margins of a sparse table, in which atoms can be found by chance; None for others.

    Not for tables with unknown cells, and for samples of rows, whose atoms are compared by other rows.
    """
    has_unknown = isinstance(table, BitMatrix) and table.n_unknown > 0
    if holdout is not None or has_unknown or params.n_components != "mdl" or not params.is_mdl_search:
        return None
    weights = table.column_weights()
    if weights.sum() >= params.plan.mdl.sparse_share * table.n_rows * table.n_cols:
        return None
    return Margins.from_weights(table.row_weights(), weights)


def _ends_all_starts(ended: str, params: SearchParams) -> bool:
    """Return whether to skip further starts. In the paper's search, ``max_iter`` only limits the steps of a round."""
    return ended != CONVERGED and not (params.search == "paper" and ended == MAX_ITER)


def report_result(result: ResultBase, params: SearchParams) -> None:
    """Log the summary, and warn if fewer atoms are useful than were requested."""
    logger.info("%s", result.summary())
    wanted, n_atoms = params.n_components, result.atoms.n_rows
    if params.search != "paper" and wanted != "mdl" and result.ended == CONVERGED and n_atoms < wanted:
        useful = "found within the limits" if params.limits else "useful"
        why = f"only {n_atoms} are {useful}" if result.wrong_bits else f"{n_atoms} leave no errors"
        warn(f"{wanted} atoms were requested, but {why}; {n_atoms} are returned")


def best_of_algebras(
    winners: dict[str, Candidate], params: SearchParams, holdout: HoldOut | None, share: float
) -> Factorization:
    """Return the result of the algebra to keep, with what the results of all algebras cost."""
    codelengths = {algebra: winner.result.codelength.total for algebra, winner in winners.items()}
    costs = codelengths
    if params.by_codelength or params.compares_errors:
        costs = {algebra: winner.cost for algebra, winner in winners.items()}
    best = list(winners)[params.best_algebra(list(costs.values()))]
    compared = {}
    if len(costs) > 1 and params.compares_errors:
        compared = {algebra: round(cost / share) for algebra, cost in costs.items()}
    elif len(costs) > 1 and params.by_codelength and holdout is not None:  # costs of all rows already
        compared = costs
    return replace(winners[best].result, codelengths=codelengths, compared=compared)


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


_MAX_PROCESSES = 4  # the largest kernel takes a quarter of the time that all take
_MEMORY = 1 << 30  # bytes for each of them; it takes a quarter of that


def expect_kernels(data: Bits, params: SearchParams) -> None:
    """Expect the kernels of a search, in each of its algebras."""
    kind = "search"
    if params.search == "paper":
        kind = "k-prox" if params.update == "k-prox" else f"paper, {params.coder}"
    elif isinstance(data, SparseBits):
        kind = "sparse table"
    elif data.n_unknown:
        kind = "unknown cells"
    elif is_wide(data.n_cols, params):
        kind = "wide table"
    elif params.n_components != "mdl":
        kind = "a given number of atoms"
    elif params.search == "thorough":
        kind = "thorough search"
    n_processes = min(_MAX_PROCESSES, count_processors(), memory_limit() // _MEMORY)
    ahead.expect([f"{kind}, {algebra}" for algebra in params.algebras], n_processes)
