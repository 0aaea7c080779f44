"""A search from its parameters to a factorization: all restarts in all algebras, and the best of them."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..bits import BitMatrix
from ..core.margins import Margins
from ..core.result import Factorization, Interrupted, ResultBase
from ..errors import warn
from ..mdl import string_bits
from ..parallel import Workers
from ..sparse_bits import Bits, SparseBits, packed
from .context import SearchContext
from .evidence import beyond_chance
from .holdout import HoldOut
from .journal import StartJournal, StepStore
from .monitor import SearchMonitor
from .one_start import OneStart
from .params import SearchParams
from .stopping import CONVERGED, MAX_ITER, MAX_TIME, cut_off
from .window_journal import WindowJournal
from .windows import WindowSearch, is_wide, is_wide_and_sparse

logger = logging.getLogger(__name__)


class _Candidate(NamedTuple):
    """The result of a start, and the cost by which it is compared."""

    cost: int
    result: Factorization


def search(
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
    margins = _margins(table, params, holdout)
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
            name = f"{algebra} {start + 1}"
            run: OneStart | WindowSearch
            if is_wide(table.n_cols, params):
                journal = WindowJournal(steps, name)
                run = WindowSearch(table, params, objective, monitor, workers, own_random, holdout, margins, journal)
            else:
                assert isinstance(table, BitMatrix)
                context = SearchContext(table, objective, params.plan, monitor, workers, own_random, holdout)
                context = replace(context, margins=margins)
                context = replace(context, journal=StartJournal(steps, name, context))
                run = OneStart(context, params)
            try:
                found_ended, result = run.run(cut_off(now, own_deadline))
            except KeyboardInterrupt:
                _keep_better(winners, algebra, run.stopped("interrupted"), run)
                best = _best_algebra(winners, params, holdout, share) if winners else None
                raise Interrupted(best and replace(best, ended="interrupted", bits_without=without)) from None
            _keep_better(winners, algebra, result, run)
            if _ends_all_starts(found_ended, params):
                ended = found_ended
                break
        if ended not in (None, MAX_TIME):  # the next algebra has its own share of the time
            break
    best = replace(_best_algebra(winners, params, holdout, share), bits_without=without)
    best = replace(best, ended=ended or best.ended)
    if holdout is not None or params.n_components != "mdl" or not params.settles_bias or not best.saves_little:
        return best
    try:
        return replace(best, beyond_chance=beyond_chance(best, table, params.plan.mdl.sparse_share))
    except KeyboardInterrupt:
        raise Interrupted(best) from None


def _as_searched(data: Bits, params: SearchParams, holdout: HoldOut | None) -> Bits:
    """Return a table in the form in which it is searched, which does not depend on the form it has."""
    if holdout is None and is_wide_and_sparse(data, params):
        return SparseBits.from_bits(data) if isinstance(data, BitMatrix) else data
    return packed(data)


def _margins(table: BitMatrix | SparseBits, params: SearchParams, holdout: HoldOut | None) -> Margins | None:
    """Return the margins of a sparse table, in which atoms can be found by chance; None for others.

    Not for tables with unknown cells, and for samples of rows, whose atoms are compared by other rows.
    """
    has_unknown = isinstance(table, BitMatrix) and table.n_unknown > 0
    if holdout is not None or has_unknown or params.n_components != "mdl" or not params.settles_bias:
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
        why = f"only {n_atoms} are useful" if result.wrong_bits else f"{n_atoms} leave no errors"
        warn(f"{wanted} atoms were requested, but {why}; {n_atoms} are returned")


def _keep_better(
    winners: dict[str, _Candidate], algebra: str, result: Factorization | None, run: OneStart | WindowSearch
) -> None:
    """Keep the result of a start if it costs less than those of earlier starts in the same algebra."""
    before = winners.get(algebra)
    if result is not None and (before is None or run.best_cost < before.cost):
        winners[algebra] = _Candidate(run.best_cost, result)


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
