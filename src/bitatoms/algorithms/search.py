"""A search from its settings to a factorisation: starts, restarts, both algebras, the best of all."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..bits import BitMatrix
from ..kernels.tables import covering
from ..mdl import string_bits
from ..parallel import Workers
from .block import Block
from .coding import coding_rule
from .descent import explore
from .fixed import fewest_errors
from .held_out import HeldOut
from .initial import start_factors, warn
from .learning import Method, Watch, learn, logger
from .moves.drop import savings
from .pricing import Aim
from .result import Factorization, Interrupted, Learned
from .selection import Growth, forward_selection
from .settings import Settings

_THOROUGH_EFFORT = 2  # times as many trials for a fixed number of atoms


class _Candidate(NamedTuple):
    """What a start came to, and what it is compared by."""

    cost: int
    result: Factorization


def search(
    data: BitMatrix,
    settings: Settings,
    workers: Workers,
    random: np.random.Generator,
    deadline: float = float("inf"),
    held_out: HeldOut | None = None,
    share: float = 1.0,
) -> Factorization:
    """The best factorisation over the algebras asked for and the restarts.

    Where the data is but a share of the rows, atoms cost so much less, and rows held out say when to stop.
    """
    best: _Candidate | None = None
    codelengths: dict[str, int] = {}
    without = int(string_bits(data.n_rows, data.column_weights()).sum())
    for algebra in settings.algebras:
        winner: _Candidate | None = None
        aim = Aim.of(settings, algebra, share)
        for start in range(settings.n_init):
            watch = Watch(
                settings.by_codelength, deadline, settings.callbacks, start + 1, algebra, settings.plan.fewest,
                settings.plan.most, held_out is not None and settings.by_codelength,
            )  # fmt: skip
            own_random = np.random.default_rng(random.integers(2**63, size=4))  # starts do not depend on each other
            try:
                block, converged = _one_start(data, settings, aim, watch, workers, own_random, held_out)
                ended = watch.cut_by or ("converged" if converged else "max_iter")
                result = _finish(watch, block, settings.coder_after, ended)
            except KeyboardInterrupt:
                winner = _better(winner, _candidate(_salvage(data, watch, settings.coder_after, workers), watch))
                if winner is not None:
                    codelengths[algebra] = winner.result.codelength.total
                best = _better(best, winner if settings.by_codelength else _by_codelength(winner))
                raise Interrupted(
                    best and replace(best.result, codelengths=codelengths, bits_without=without)
                ) from None
            winner = _better(winner, _candidate(result, watch))
            if watch.cut_by:
                break
        if winner is not None:
            codelengths[algebra] = winner.result.codelength.total
        best = _better(best, winner if settings.by_codelength else _by_codelength(winner))
        if watch.cut_by:
            break
    assert best is not None  # every start records a round
    return replace(best.result, ended=watch.cut_by or best.result.ended, codelengths=codelengths, bits_without=without)


def tell(result: Learned, settings: Settings) -> None:
    """Say what was found, and warn where fewer atoms are of use than were asked for."""
    logger.info("%s", result.summary())
    wanted, n_atoms = settings.n_components, result.atoms.n_rows
    if settings.search != "paper" and wanted != "mdl" and result.ended == "converged" and n_atoms < wanted:
        why = f"only {n_atoms} are of use" if result.wrong_bits else f"with {n_atoms} nothing is wrong any more"
        warn(f"{wanted} atoms were asked for, but {why}: no more are learned")


def _candidate(result: Factorization | None, watch: Watch) -> _Candidate | None:
    """A result, compared with others of its algebra."""
    return None if result is None else _Candidate(watch.best_cost, result)


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
    settings: Settings,
    aim: Aim,
    watch: Watch,
    workers: Workers,
    random: np.random.Generator,
    held_out: HeldOut | None,
) -> tuple[Block, bool]:
    """Start, and learn with a fixed number of atoms or select that number; returns the end and if it converged."""
    if settings.search != "paper":
        return _search_widely(data, settings, aim, watch, workers, random, held_out), True
    rule = coding_rule(settings.coder, watch.algebra, settings.max_atoms_per_sample, settings.residual_limit)
    method = Method(settings.coder, settings.update, rule, settings.max_iter)
    atoms, codes = start_factors(data, settings, rule.covers, workers, random)
    block = Block(data, atoms, codes, rule.covers, workers)
    if settings.n_components == "mdl":
        growth = Growth(settings.patience, settings.max_components)
        return block, forward_selection(block, method, growth, watch, random)
    return block, learn(block, method, watch)


def _search_widely(
    data: BitMatrix,
    settings: Settings,
    aim: Aim,
    watch: Watch,
    workers: Workers,
    random: np.random.Generator,
    held_out: HeldOut | None,
) -> Block:
    """The fast and the thorough search, for the shortest codelength or, with a fixed number of atoms, few errors."""
    given = None
    if not (isinstance(settings.init, str) and settings.init == "auto"):
        given = start_factors(data, settings, covering(watch.algebra), workers, random)
    if settings.n_components == "mdl" or (settings.by_codelength and given is not None):
        return explore(data, given, None, aim, settings.plan, watch, workers, random, held_out)
    effort = _THOROUGH_EFFORT if settings.search == "thorough" else 1
    few = fewest_errors(
        data,
        given,
        settings.n_components,
        replace(aim, by_codelength=False),
        effort,
        settings.max_iter,
        watch,
        workers,
        random,
    )
    if not settings.by_codelength:
        return few
    return explore(data, given, few, aim, settings.plan, watch, workers, random, held_out)


def _finish(watch: Watch, block: Block | None, coder: str, ended: str) -> Factorization | None:
    """The best state of a search, its atoms in order of the bits they save.

    ``block`` is the last state, which often is the best one too; without it the atoms stay in the order they have.
    """
    best = watch.best
    if best is None:
        return None
    atoms, codes, length = best.atoms, best.codes, best.codelength
    saved = ones = missed = None
    if block is not None:
        if block.factors() != (atoms, codes) or block.bias != best.bias:
            block = Block(block.data(), atoms, codes, block.covers, block.workers, best.bias)
        if watch.fewest and not block.serving().all():  # fewer are of use than were asked for
            block.discard(~block.serving())
            (atoms, codes), length = block.factors(), block.codelength(best.wrong)
        saved = savings(block, Aim(True, watch.algebra))
        order = np.argsort(-saved, kind="stable")
        atoms, codes, saved = atoms[order], codes.T[order].T, saved[order]
        data = block.data()
        ones = data.column_weights()
        missed = BitMatrix.trusted(data.words & block.rows.errors, data.n_cols).column_weights()
    return Factorization(
        atoms=atoms,
        codes=codes,
        bias=best.bias.to_dense()[0],
        algebra=watch.algebra,
        codelength=length,
        history=tuple(watch.history),
        wrong=best.wrong,
        ended=ended,
        coder=coder,
        objective="codelength" if watch.by_codelength else "errors",
        saved=saved,
        ones=ones,
        missed=missed,
    )


def _salvage(data: BitMatrix, watch: Watch, coder: str, workers: Workers) -> Factorization | None:
    """What an interrupted search has found; at a second Ctrl-C, without putting its atoms in order."""
    best = watch.best
    try:
        covers = covering(watch.algebra)
        block = None if best is None else Block(data, best.atoms, best.codes, covers, workers, best.bias)
        return _finish(watch, block, coder, "interrupted")
    except KeyboardInterrupt:
        return _finish(watch, None, coder, "interrupted")
