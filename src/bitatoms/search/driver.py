"""A search from its parameters to a factorization: all restarts in all algebras, and the best of them."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..bits import BitMatrix
from ..core.block import Block, Change, uncode_within_limit
from ..core.coding import PRICED_CODERS, coding_rule
from ..core.complete import complete_atoms, hash_rows
from ..core.objective import Objective
from ..core.remembered import hard_codes
from ..core.result import Factorization, Interrupted, ResultBase
from ..errors import warn
from ..kernels.structs import covering
from ..mdl import string_bits
from ..parallel import OutOfTime, Workers
from .context import SearchContext
from .finish import finish, record_state
from .fixed_rank import search_fixed_rank
from .forward_selection import SelectionLimits, forward_selection
from .holdout import HoldOut
from .initial import distinct_rows, start_factors
from .learning import LearningMethod, learn
from .mdl_breeder import breed_mdl
from .mdl_search import search_mdl
from .monitor import SearchMonitor
from .moves.drop import drop_useless, savings
from .params import SearchParams
from .plan import AnytimeTuning
from .stopping import CONVERGED, MAX_ITER, MAX_MEMORY, MAX_TIME, SearchResult, cut_off

logger = logging.getLogger(__name__)


class _Candidate(NamedTuple):
    """The result of a start, and the cost by which it is compared."""

    cost: int
    result: Factorization


def search(
    data: BitMatrix,
    params: SearchParams,
    workers: Workers,
    random: np.random.Generator,
    deadline: float = float("inf"),
    holdout: HoldOut | None = None,
    share: float = 1.0,
) -> Factorization:
    """Return the best factorization over the algebras and the restarts; each algebra gets its share of the time.

    Where the data is only a share of the rows, atoms cost less by this share, and states are compared by held-out rows.
    """
    winners: dict[str, _Candidate] = {}  # by algebra
    without = int(string_bits(data.n_known, data.column_weights()).sum())
    ended: str | None = None  # what ended the search before all starts were made
    for n_tried, algebra in enumerate(params.algebras):
        now = time.perf_counter()
        if winners and now >= deadline:
            ended = MAX_TIME
            break
        own_deadline = now + (deadline - now) / (len(params.algebras) - n_tried)  # an equal share of the time left
        for start in range(params.n_init):
            monitor = SearchMonitor(
                by_codelength=params.by_codelength,
                deadline=own_deadline,
                callbacks=params.callbacks,
                start=start + 1,
                algebra=algebra,
                min_atoms=params.plan.fewest,
                max_atoms=params.plan.most,
                by_holdout=holdout is not None and params.by_codelength,
                settles_bias=params.settles_bias,
            )
            own_random = np.random.default_rng(random.integers(2**63, size=4))  # starts do not depend on each other
            objective = params.objective(algebra, share)
            context = SearchContext(data, objective, params.plan, monitor, workers, own_random, holdout)
            try:
                found_ended, result = _search_in_time(context, params, cut_off(now, own_deadline))
            except KeyboardInterrupt:
                _keep_better(winners, _stopped_result(context, params.coder_after, "interrupted"), monitor)
                best = _best_algebra(winners, params, holdout, share) if winners else None
                raise Interrupted(best and replace(best, ended="interrupted", bits_without=without)) from None
            _keep_better(winners, result, monitor)
            if _ends_all_starts(found_ended, params):
                ended = found_ended
                break
        if ended not in (None, MAX_TIME):  # the next algebra has its own share of the time
            break
    best = _best_algebra(winners, params, holdout, share)
    return replace(best, ended=ended or best.ended, bits_without=without)


def _search_in_time(context: SearchContext, params: SearchParams, end: float) -> tuple[str, Factorization | None]:
    """Make one start; return the reason that it ended, and the best state found by then.

    If it is cut off at the time ``end``, or memory runs out, this is the best state recorded so far.
    """
    workers, monitor = replace(context.workers, deadline=end), context.monitor
    holdout = context.holdout and replace(context.holdout, workers=workers)
    try:
        found = _search_once(replace(context, workers=workers, holdout=holdout), params)
        return found.ended, _best_result(context, found.block, params.coder_after, found.ended)
    except OutOfTime:
        ended = MAX_TIME
        if monitor.best is None:
            n_atoms = 0 if params.n_components == "mdl" else params.n_components
            monitor.record(_rows_as_atoms(context, n_atoms), Change(), 1, "start")
    except MemoryError:
        ended = MAX_MEMORY
        if monitor.best is None:
            raise
    return ended, _stopped_result(context, params.coder_after, ended)


def _rows_as_atoms(context: SearchContext, n_atoms: int) -> Block:
    """Return a state that is found at once: random rows as atoms, each used by its own row only."""
    rows = distinct_rows(context.data, n_atoms, context.random)
    words = np.zeros((context.data.n_rows, -(-len(rows) // 64)), np.uint64)
    number = np.arange(len(rows))
    words[rows, number // 64] = np.uint64(1) << (number % 64).astype(np.uint64)
    return context.block(context.data[rows].filled(), BitMatrix.from_words(words, len(rows), check=False))


def _ends_all_starts(ended: str, params: SearchParams) -> bool:
    """Return whether to skip further starts. In the paper's search, ``max_iter`` only limits the steps of a round."""
    return ended != CONVERGED and not (params.search == "paper" and ended == MAX_ITER)


def report_result(result: ResultBase, params: SearchParams) -> None:
    """Log the summary, and warn if fewer atoms are useful than were requested."""
    logger.info("%s", result.summary())
    wanted, n_atoms = params.n_components, result.atoms.n_rows
    if params.search != "paper" and wanted != "mdl" and result.ended == CONVERGED and n_atoms < wanted:
        why = f"only {n_atoms} are useful" if result.wrong_bits else f"{n_atoms} leave no errors"
        warn(f"{wanted} atoms were requested, but {why}; {n_atoms} are returned")


def _keep_better(winners: dict[str, _Candidate], result: Factorization | None, monitor: SearchMonitor) -> None:
    """Keep the result of a start if it costs less than those of earlier starts in the same algebra."""
    before = winners.get(monitor.algebra)
    if result is not None and (before is None or monitor.best_cost < before.cost):
        winners[monitor.algebra] = _Candidate(monitor.best_cost, result)


def _best_algebra(
    winners: dict[str, _Candidate], params: SearchParams, holdout: HoldOut | None, share: float
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


def _search_once(context: SearchContext, params: SearchParams) -> SearchResult:
    """Make one start, and learn a fixed number of atoms or choose the number."""
    if params.search != "paper":
        return _search_widely(context, params)
    algebra, monitor = context.objective.algebra, context.monitor
    rule = coding_rule(params.coder, algebra, params.max_atoms_per_sample, params.residual_limit)
    method = LearningMethod(params.coder, params.update, rule, params.max_iter)
    block = context.block(*start_factors(context.data, params, rule.covers, context.workers, context.random))
    if params.n_components == "mdl":
        limits = SelectionLimits(params.patience, params.max_components)
        return SearchResult(block, forward_selection(block, method, limits, monitor, context.random))
    return SearchResult(block, learn(block, method, monitor))


def _search_widely(context: SearchContext, params: SearchParams) -> SearchResult:
    """Run a search other than the paper's: for the codelength or, with a fixed number of atoms, for few errors."""
    given = None
    if not (isinstance(params.init, str) and params.init == "auto"):
        covers = covering(context.objective.algebra)
        given = start_factors(context.data, params, covers, context.workers, context.random)
    anytime = context.plan.anytime
    if anytime is not None and params.by_codelength:
        return _search_anytime(context, params, anytime, given)
    if params.n_components == "mdl" or (params.by_codelength and given is not None):
        return finish(context, search_mdl(context, given), params.coder_after)
    errors_only = replace(context, objective=replace(context.objective, by_codelength=False))
    few_errors = search_fixed_rank(errors_only, given)
    if params.by_codelength:
        return finish(context, search_mdl(context, given, few_errors), params.coder_after)
    return finish(context, few_errors, params.coder_after)


def _search_anytime(
    context: SearchContext,
    params: SearchParams,
    tuning: AnytimeTuning,
    given: tuple[BitMatrix, BitMatrix | None] | None,
) -> SearchResult:
    """Run the anytime search for the codelength; with a fixed number of atoms, each start has few errors."""
    if params.n_components != "mdl" and given is None:
        objective = replace(context.objective, by_codelength=False)
        errors_only = replace(context, objective=objective, plan=replace(context.plan, anytime=None))

        def first() -> Block:
            return search_fixed_rank(errors_only).block

        return finish(context, breed_mdl(context, tuning, params.coder_after, first=first), params.coder_after)
    return finish(context, breed_mdl(context, tuning, params.coder_after, given), params.coder_after)


def _best_result(context: SearchContext, block: Block | None, coder: str, ended: str) -> Factorization | None:
    """Return the best state of a search, its atoms in order of the bits they save.

    ``block`` is the last state, which often is the best one too. Without it the atoms keep their order.
    """
    monitor, best = context.monitor, context.monitor.best
    if best is None:
        return None
    atoms, codes, bias, length, wrong = best.atoms, best.codes, best.bias, best.codelength, best.wrong
    saved = ones = missed = known = complete = rows_hash = remembered = None
    if block is not None:
        if block.factors() != (atoms, codes) or block.bias != best.bias:
            block = Block(block.data(), atoms, codes, block.covers, block.workers, best.bias)
        if monitor.settles_bias and ended == CONVERGED:
            better = drop_useless(block, context.objective, monitor.min_atoms)
            if better is not None:
                record_state(context, better, Change(), 0, "drop")
            if monitor.best is not best:
                return _best_result(context, better, coder, ended)
        if monitor.min_atoms and not block.in_use().all():  # fewer are of use than were asked for
            block.discard(~block.in_use())
            (atoms, codes), length = block.factors(), block.codelength(wrong)
        if monitor.settles_bias and context.objective.residual_limit:
            block = uncode_within_limit(block, context.objective.residual_limit)
            codes, bias, wrong = block.codes(), block.bias, block.wrong()
            length = block.codelength(wrong)
        saved = savings(block, Objective(True, monitor.algebra), monitor.settles_bias)
        order = np.argsort(-saved, kind="stable")
        atoms, codes, saved = atoms[order], codes.T[order].T, saved[order]
        if coder in PRICED_CODERS:
            remembered = hard_codes(block, context.objective.rule(block))
            remembered = remembered and remembered.T[order].T
        data = block.data()
        ones, missed = data.column_weights(), block.missed(data)
        known = data.n_known if isinstance(data.n_known, np.ndarray) else None
        complete = complete_atoms(data, atoms, block.workers, bias).column_weights()
        rows_hash = hash_rows(data)
    return Factorization(
        atoms=atoms,
        codes=codes,
        bias=bias.to_dense()[0],
        algebra=monitor.algebra,
        codelength=length,
        history=tuple(monitor.history),
        wrong=wrong,
        ended=ended,
        coder=coder,
        objective="codelength" if monitor.by_codelength else "errors",
        saved=saved,
        ones=ones,
        missed=missed,
        known=known,
        complete=complete,
        rows_hash=rows_hash,
        remembered=remembered,
    )


def _stopped_result(context: SearchContext, coder: str, ended: str) -> Factorization | None:
    """Return the best state of a search that was cut off; after (another) Ctrl-C, without sorting its atoms."""
    best = context.monitor.best
    try:
        block = None if best is None else context.block(best.atoms, best.codes, best.bias)
        return _best_result(context, block, coder, ended)
    except (KeyboardInterrupt, MemoryError):
        return _best_result(context, None, coder, ended)
