"""A search from its params to a factorisation: starts, restarts, both algebras, the best of all."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..bits import BitMatrix
from ..core.block import Block
from ..core.coding import coding_rule
from ..core.objective import Objective
from ..core.result import Factorization, Interrupted, ResultBase
from ..kernels.structs import covering
from ..mdl import string_bits
from ..parallel import Workers
from .fixed_rank import search_fixed_rank
from .forward_selection import Growth, forward_selection
from .holdout import HoldOut
from .initial import start_factors, warn
from .learning import Method, SearchMonitor, learn
from .mdl_search import search_mdl
from .moves.drop import savings
from .params import SearchParams

logger = logging.getLogger(__name__)

_THOROUGH_EFFORT = 2  # times as many trials for a fixed number of atoms


class _Candidate(NamedTuple):
    """What a start came to, and what it is compared by."""

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
    """The best factorisation over the algebras asked for and the restarts.

    Where the data is but a share of the rows, atoms cost so much less, and rows held out say when to stop.
    """
    best: _Candidate | None = None
    codelengths: dict[str, int] = {}
    without = int(string_bits(data.n_rows, data.column_weights()).sum())
    for algebra in params.algebras:
        winner: _Candidate | None = None
        objective = params.objective(algebra, share)
        for start in range(params.n_init):
            monitor = SearchMonitor(
                params.by_codelength, deadline, params.callbacks, start + 1, algebra, params.plan.fewest,
                params.plan.most, holdout is not None and params.by_codelength,
            )  # fmt: skip
            own_random = np.random.default_rng(random.integers(2**63, size=4))  # starts do not depend on each other
            try:
                block, converged = _one_start(data, params, objective, monitor, workers, own_random, holdout)
                ended = monitor.cut_by or ("converged" if converged else "max_iter")
                result = _finish(monitor, block, params.coder_after, ended)
            except KeyboardInterrupt:
                winner = _better(winner, _candidate(_salvage(data, monitor, params.coder_after, workers), monitor))
                if winner is not None:
                    codelengths[algebra] = winner.result.codelength.total
                best = _better(best, winner if params.by_codelength else _by_codelength(winner))
                raise Interrupted(
                    best and replace(best.result, codelengths=codelengths, bits_without=without)
                ) from None
            winner = _better(winner, _candidate(result, monitor))
            if monitor.cut_by:
                break
        if winner is not None:
            codelengths[algebra] = winner.result.codelength.total
        best = _better(best, winner if params.by_codelength else _by_codelength(winner))
        if monitor.cut_by:
            break
    assert best is not None  # every start records a round
    return replace(
        best.result, ended=monitor.cut_by or best.result.ended, codelengths=codelengths, bits_without=without
    )


def tell(result: ResultBase, params: SearchParams) -> None:
    """Say what was found, and warn where fewer atoms are of use than were asked for."""
    logger.info("%s", result.summary())
    wanted, n_atoms = params.n_components, result.atoms.n_rows
    if params.search != "paper" and wanted != "mdl" and result.ended == "converged" and n_atoms < wanted:
        why = f"only {n_atoms} are of use" if result.wrong_bits else f"with {n_atoms} nothing is wrong any more"
        warn(f"{wanted} atoms were asked for, but {why}: no more are learned")


def _candidate(result: Factorization | None, monitor: SearchMonitor) -> _Candidate | None:
    """A result, compared with others of its algebra."""
    return None if result is None else _Candidate(monitor.best_cost, result)


def _by_codelength(candidate: _Candidate | None) -> _Candidate | None:
    """The same, compared with those of another algebra."""
    return candidate and candidate._replace(cost=candidate.result.codelength.total)


def _better(first: _Candidate | None, second: _Candidate | None) -> _Candidate | None:
    """The one that costs less; the first on a tie."""
    if first is None or second is None:
        return first if second is None else second
    return second if second.cost < first.cost else first


def _one_start(
    data: BitMatrix,
    params: SearchParams,
    objective: Objective,
    monitor: SearchMonitor,
    workers: Workers,
    random: np.random.Generator,
    holdout: HoldOut | None,
) -> tuple[Block, bool]:
    """Start, and learn with a fixed number of atoms or select that number; returns the end and if it converged."""
    if params.search != "paper":
        return _search_widely(data, params, objective, monitor, workers, random, holdout), True
    rule = coding_rule(params.coder, monitor.algebra, params.max_atoms_per_sample, params.residual_limit)
    method = Method(params.coder, params.update, rule, params.max_iter)
    atoms, codes = start_factors(data, params, rule.covers, workers, random)
    block = Block(data, atoms, codes, rule.covers, workers)
    if params.n_components == "mdl":
        growth = Growth(params.patience, params.max_components)
        return block, forward_selection(block, method, growth, monitor, random)
    return block, learn(block, method, monitor)


def _search_widely(
    data: BitMatrix,
    params: SearchParams,
    objective: Objective,
    monitor: SearchMonitor,
    workers: Workers,
    random: np.random.Generator,
    holdout: HoldOut | None,
) -> Block:
    """The fast and the thorough search, for the shortest codelength or, with a fixed number of atoms, few errors."""
    given = None
    if not (isinstance(params.init, str) and params.init == "auto"):
        given = start_factors(data, params, covering(monitor.algebra), workers, random)
    if params.n_components == "mdl" or (params.by_codelength and given is not None):
        return search_mdl(data, given, None, objective, params.plan, monitor, workers, random, holdout)
    effort = _THOROUGH_EFFORT if params.search == "thorough" else 1
    few = search_fixed_rank(
        data,
        given,
        params.n_components,
        replace(objective, by_codelength=False),
        effort,
        params.max_iter,
        monitor,
        workers,
        random,
    )
    if not params.by_codelength:
        return few
    return search_mdl(data, given, few, objective, params.plan, monitor, workers, random, holdout)


def _finish(monitor: SearchMonitor, block: Block | None, coder: str, ended: str) -> Factorization | None:
    """The best state of a search, its atoms in order of the bits they save.

    ``block`` is the last state, which often is the best one too; without it the atoms stay in the order they have.
    """
    best = monitor.best
    if best is None:
        return None
    atoms, codes, length = best.atoms, best.codes, best.codelength
    saved = ones = missed = None
    if block is not None:
        if block.factors() != (atoms, codes) or block.bias != best.bias:
            block = Block(block.data(), atoms, codes, block.covers, block.workers, best.bias)
        if monitor.fewest and not block.serving().all():  # fewer are of use than were asked for
            block.discard(~block.serving())
            (atoms, codes), length = block.factors(), block.codelength(best.wrong)
        saved = savings(block, Objective(True, monitor.algebra))
        order = np.argsort(-saved, kind="stable")
        atoms, codes, saved = atoms[order], codes.T[order].T, saved[order]
        data = block.data()
        ones = data.column_weights()
        missed = BitMatrix.from_words(data.words & block.rows.errors, data.n_cols, check=False).column_weights()
    return Factorization(
        atoms=atoms,
        codes=codes,
        bias=best.bias.to_dense()[0],
        algebra=monitor.algebra,
        codelength=length,
        history=tuple(monitor.history),
        wrong=best.wrong,
        ended=ended,
        coder=coder,
        objective="codelength" if monitor.by_codelength else "errors",
        saved=saved,
        ones=ones,
        missed=missed,
    )


def _salvage(data: BitMatrix, monitor: SearchMonitor, coder: str, workers: Workers) -> Factorization | None:
    """What an interrupted search has found; at a second Ctrl-C, without putting its atoms in order."""
    best = monitor.best
    try:
        covers = covering(monitor.algebra)
        block = None if best is None else Block(data, best.atoms, best.codes, covers, workers, best.bias)
        return _finish(monitor, block, coder, "interrupted")
    except KeyboardInterrupt:
        return _finish(monitor, None, coder, "interrupted")
