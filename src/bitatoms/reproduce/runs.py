"""The paper's methods as its experiments run them: from given atoms to convergence, and by forward selection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..core.block import Block
from ..core.coding import coding_rule
from ..core.result import Round
from ..parallel import Workers
from ..search.forward_selection import SelectionLimits, forward_selection
from ..search.initial import bernoulli, samples
from ..search.learning import LearningMethod, learn
from ..search.monitor import SearchMonitor

UPDATES = {"mob": "MOB", "k-prox": "K-PROX"}
STARTS = {"bernoulli": "Bernoulli(½)", "samples": "random samples"}
FIRST = 16  # of forward selection, as in the paper
FAILURES = 10  # rounds in a row without a shorter codelength that the author's program bears
_MOST_STEPS = 1000


@dataclass(frozen=True, eq=False)
class Run:
    """What a method did: where it started, what it ended with, and its rounds."""

    update: str
    start: BitMatrix
    atoms: BitMatrix  # in the order of the start
    codes: BitMatrix
    errors: BitMatrix
    history: tuple[Round, ...]
    converged: bool

    @property
    def uses(self) -> NDArray[np.int64]:
        """How many samples use each atom."""
        return self.codes.column_weights()

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.history[-1].seconds


def starting_atoms(start: str, data: BitMatrix, n_atoms: int, seed: int) -> BitMatrix:
    """Atoms of one of the two kinds that the paper starts from (Section III-D)."""
    random = np.random.default_rng(seed)
    return samples(data, n_atoms, random) if start == "samples" else bernoulli(n_atoms, data.n_cols, 0.5, random)


def learned(data: BitMatrix, start: BitMatrix, update: str) -> Run:
    """Code by matching pursuit and update the atoms, in turn, until nothing changes."""
    monitor = SearchMonitor(by_codelength=False)
    block = Block(data, start, None, None, Workers())
    ended = learn(block, _method(update), monitor)
    return _run(update, start, block, monitor, ended)


def selected(
    data: BitMatrix, update: str, seed: int, until: int | None = None, patience: int | None = None, first: int = FIRST
) -> Run:
    """Forward selection from random samples (Algorithm 5).

    To so many atoms, and the end is the last state; or until patience is at its end, and it is the best one.
    """
    random = np.random.default_rng(seed)
    start = samples(data, first if until is None else min(until, first), random)
    monitor = SearchMonitor(by_codelength=True)
    block = Block(data, start, None, None, Workers())
    ended = forward_selection(block, _method(update), SelectionLimits(patience, until), monitor, random)
    if patience is not None and monitor.best is not None:
        block = Block(data, monitor.best.atoms, monitor.best.codes, None, Workers())
    return _run(update, start, block, monitor, ended)


def shortest(history: Sequence[Round]) -> Round:
    """The first round with the shortest codelength."""
    return min(history, key=lambda row: row.bits)


def stops_at(history: Sequence[Round], failures: int, cost: Callable[[Round], float] = attrgetter("bits")) -> Round:
    """The round that is kept when forward selection ends after so many rounds in a row that are no better."""
    best, failed = history[0], 0
    for row in history[1:]:
        best, failed = (row, 0) if cost(row) < cost(best) else (best, failed + 1)
        if failed == failures:
            break
    return best


def _method(update: str) -> LearningMethod:
    """As published: the paper's rule of coding, mistakes mended."""
    return LearningMethod("bmp", update, coding_rule("bmp", "xor"), _MOST_STEPS)


def _run(update: str, start: BitMatrix, block: Block, monitor: SearchMonitor, ended: str) -> Run:
    return Run(update, start, *block.factors(), block.errors(), tuple(monitor.history), ended == "converged")
