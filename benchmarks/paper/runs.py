"""The paper's methods as its experiments run them: from initial atoms to convergence, and by forward selection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from bitatoms.bits import BitMatrix
from bitatoms.engine.block import Block
from bitatoms.engine.coding import coding_rule
from bitatoms.engine.objective import Objective
from bitatoms.model.result import Round
from bitatoms.parallel import Workers
from bitatoms.search.monitor import SearchMonitor
from bitatoms.search.paper import LearningMethod, forward_selection, learn
from bitatoms.search.starts.initial import bernoulli, samples

UPDATES = {"mob": "MOB", "k-prox": "K-PROX"}
STARTS = {"bernoulli": "Bernoulli(½)", "samples": "random samples"}
START_ATOMS = 16  # of forward selection, as in the paper
PATIENCE = 10  # rounds in a row without a shorter codelength after which the author's program ends
_MAX_STEPS = 1000


@dataclass(frozen=True, eq=False)
class MethodRun:
    """One run of a method: its initial atoms, its result and its history."""

    update: str
    start: BitMatrix
    atoms: BitMatrix  # in the order of the start
    codes: BitMatrix
    errors: BitMatrix
    history: tuple[Round, ...]
    converged: bool

    @property
    def uses(self) -> NDArray[np.int64]:
        """The number of samples that use each atom."""
        return self.codes.column_weights()

    @property
    def seconds(self) -> float:
        """The duration of the run."""
        return self.history[-1].seconds


def starting_atoms(start: str, data: BitMatrix, n_atoms: int, seed: int) -> BitMatrix:
    """Return initial atoms of one of the two kinds in Section III-D of the paper."""
    random = np.random.default_rng(seed)
    return samples(data, n_atoms, random) if start == "samples" else bernoulli(n_atoms, data.n_cols, 0.5, random)


def run_learning(data: BitMatrix, start: BitMatrix, update: str) -> MethodRun:
    """Alternate matching pursuit and updates of the atoms until nothing changes."""
    monitor = SearchMonitor(Objective(False, "xor"))
    block = Block(data, start, None, False, Workers())
    ended = learn(block, _method(update), monitor)
    return _to_run(update, start, block, monitor, ended)


def run_selection(
    data: BitMatrix,
    update: str,
    seed: int,
    until: int | None = None,
    patience: int | None = None,
    n_start: int = START_ATOMS,
) -> MethodRun:
    """Run forward selection from random samples (Algorithm 5).

    With ``until``, it continues to this number of atoms and the result is the last state. With ``patience``, it ends
    after this many rounds in a row without improvement and the result is the best state.
    """
    random = np.random.default_rng(seed)
    start = samples(data, n_start if until is None else min(until, n_start), random)
    monitor = SearchMonitor(Objective(True, "xor"))
    block = Block(data, start, None, False, Workers())
    ended = forward_selection(block, _method(update), patience, until, monitor, random)
    if patience is not None and monitor.best is not None:
        block = Block(data, monitor.best.atoms, monitor.best.codes, False, Workers())
    return _to_run(update, start, block, monitor, ended)


def best_round(history: Sequence[Round]) -> Round:
    """Return the first round with the shortest codelength."""
    return min(history, key=lambda row: row.bits)


def stopping_round(
    history: Sequence[Round], patience: int, cost: Callable[[Round], float] = attrgetter("bits")
) -> Round:
    """Return the best round before forward selection ends after ``patience`` rounds in a row without improvement."""
    best, n_failed = history[0], 0
    for row in history[1:]:
        best, n_failed = (row, 0) if cost(row) < cost(best) else (best, n_failed + 1)
        if n_failed == patience:
            break
    return best


def _method(update: str) -> LearningMethod:
    """Return the method as published, with its errors corrected."""
    return LearningMethod("bmp", update, coding_rule("bmp", "xor"), _MAX_STEPS)


def _to_run(update: str, start: BitMatrix, block: Block, monitor: SearchMonitor, ended: str) -> MethodRun:
    return MethodRun(update, start, *block.factors(), block.errors(), tuple(monitor.history), ended == "converged")
