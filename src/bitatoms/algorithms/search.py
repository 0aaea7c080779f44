"""A search from its settings to a factorisation: starts, restarts, both algebras, the best of all."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from ..bits import BitMatrix
from ..kernels.tables import covering
from ..mdl import string_bits
from ..parallel import Workers
from .block import Block
from .coding import coding_rule
from .initial import start_factors
from .learning import Method, Watch, learn
from .model import Factorization, Interrupted
from .selection import Growth, forward_selection
from .settings import Settings

_ATOMS_AT_A_TIME = 64


def search(data: BitMatrix, settings: Settings, workers: Workers, random: np.random.Generator) -> Factorization:
    """The best factorisation over the algebras asked for and the restarts."""
    deadline = float("inf") if settings.max_time is None else time.perf_counter() + settings.max_time
    best: Factorization | None = None
    for algebra in settings.algebras:
        winner: Factorization | None = None
        for start in range(settings.n_init):
            watch = Watch(settings.by_codelength, deadline, settings.callbacks, start + 1, algebra)
            own_random = np.random.default_rng(random.integers(2**63, size=4))  # starts do not depend on each other
            try:
                block, converged = _one_start(data, settings, watch, workers, own_random)
                result = _finish(watch, block, watch.cut_by or ("converged" if converged else "max_iter"))
            except KeyboardInterrupt:
                result = _salvage(data, watch, workers)
                raise Interrupted(_better(best, _better(winner, result, settings.by_codelength), True)) from None
            winner = _better(winner, result, settings.by_codelength)
            if watch.cut_by:
                break
        best = _better(best, winner, True)
        if watch.cut_by:
            break
    assert best is not None  # every start records a round
    return replace(best, ended=watch.cut_by) if watch.cut_by else best


def _better(first: Factorization | None, second: Factorization | None, by_codelength: bool) -> Factorization | None:
    """The one with the shorter codelength or the fewer wrong bits; the first on a tie."""
    if first is None or second is None:
        return first if second is None else second
    if by_codelength:
        return second if second.codelength.total < first.codelength.total else first
    return second if second.wrong_bits < first.wrong_bits else first


def _one_start(
    data: BitMatrix, settings: Settings, watch: Watch, workers: Workers, random: np.random.Generator
) -> tuple[Block, bool]:
    """Start, and learn with a fixed number of atoms or select that number; returns the end and if it converged."""
    rule = coding_rule(settings.coder, watch.algebra, settings.max_atoms_per_sample, settings.residual_limit)
    method = Method(settings.coder, settings.update, rule, settings.max_iter)
    atoms, codes = start_factors(data, settings, rule.covers, workers, random)
    block = Block(data, atoms, codes, rule.covers, workers)
    if settings.n_components == "mdl":
        growth = Growth(settings.patience, settings.max_components)
        return block, forward_selection(block, method, growth, watch, random)
    return block, learn(block, method, watch)


def _finish(watch: Watch, block: Block | None, ended: str) -> Factorization | None:
    """The best state of a search, its atoms in order of the bits they save.

    ``block`` is the last state, which often is the best one too; without it the atoms stay in the order they have.
    """
    best = watch.best
    if best is None:
        return None
    atoms, codes = best.atoms, best.codes
    if block is not None:
        if block.factors() != (atoms, codes):
            block = block.with_factors(atoms, codes)
        order = np.argsort(-saved_bits(block), kind="stable")
        atoms, codes = atoms[order], codes.T[order].T
    return Factorization(
        atoms=atoms,
        codes=codes,
        bias=np.zeros(atoms.n_cols, np.uint8),
        algebra=watch.algebra,
        codelength=best.codelength,
        history=tuple(watch.history),
        wrong=best.wrong,
        ended=ended,
    )


def _salvage(data: BitMatrix, watch: Watch, workers: Workers) -> Factorization | None:
    """What an interrupted search has found; at a second Ctrl-C, without putting its atoms in order."""
    best = watch.best
    try:
        block = None if best is None else Block(data, best.atoms, best.codes, covering(watch.algebra), workers)
        return _finish(watch, block, "interrupted")
    except KeyboardInterrupt:
        return _finish(watch, None, "interrupted")


def saved_bits(block: Block) -> np.ndarray:
    """How much longer the description would be without each atom, its rows left as they are."""
    wrong, uses = block.wrong(), block.uses()
    n, m = block.n_rows, block.n_features
    now = string_bits(n, wrong)
    saved = np.empty(block.n_atoms, np.int64)
    for first in range(0, block.n_atoms, _ATOMS_AT_A_TIME):
        some = slice(first, min(first + _ATOMS_AT_A_TIME, block.n_atoms))
        free, bad = block.votes(some.start, some.stop)
        ones = BitMatrix.trusted(block.atoms.words[some].copy(), m).to_dense(bool)
        without = wrong + np.where(ones, free - 2 * bad, 0)
        saved[some] = (string_bits(n, without) - now).sum(axis=1) - string_bits(m, ones.sum(axis=1))
    return saved - string_bits(n, uses)
