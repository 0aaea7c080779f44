"""One step, the loop and its stopping rule: code the rows, update the atoms, until nothing changes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..core.atoms import UPDATES
from ..core.block import Block, Change
from ..core.coding import CODERS
from ..core.result import Round
from ..kernels.structs import Rule
from ..mdl import Codelength

logger = logging.getLogger(__name__)

_WORTH_TELLING = 0.995  # a move that lowers the cost to this share of what was last told


@dataclass(frozen=True)
class Method:
    """How to learn: a coder, an update of the atoms, and when to give up."""

    coder: str
    update: str
    rule: Rule
    max_iter: int


@dataclass(frozen=True)
class Snapshot:
    """A state worth keeping."""

    atoms: BitMatrix
    codes: BitMatrix
    bias: BitMatrix
    codelength: Codelength
    wrong: NDArray[np.int64]

    @property
    def wrong_bits(self) -> int:
        return int(self.wrong.sum())


@dataclass
class SearchMonitor:
    """What is seen of a search while it runs: its history, its best state, and what cut it short, if anything."""

    by_codelength: bool
    deadline: float = float("inf")
    callbacks: Sequence[Callable[[Round], object]] = ()
    start: int = 1
    algebra: str = "xor"
    fewest: int = 0  # atoms, all used, that a state must have to be the best,
    most: int | None = None  # and may have
    judged: bool = False  # the best state is the best of those that are judged
    history: list[Round] = field(default_factory=list)
    best: Snapshot | None = None
    cut_by: str | None = None
    started: float = field(default_factory=time.perf_counter)
    _best_rank: tuple[int, int, int] = (0, 0, 0)
    _told: int | None = None
    _has_judged: bool = False

    def record(self, block: Block, change: Change, iterations: int, move: str = "learn") -> None:
        """Add a round to the history, and keep its state if it is the best so far."""
        wrong = block.wrong()
        length = block.codelength(wrong)
        if self.best is None or not self.judged:
            cost = length.total if self.by_codelength else int(wrong.sum())
            self._keep_if_best(block, wrong, length, cost)
        self.note(block.n_rows, block.n_atoms, wrong, length, change, iterations, move)

    def judge(self, block: Block, cost: int) -> None:
        """Keep a state if it is the best so far by what rows held out say that it costs."""
        if not self._has_judged:
            self.best, self._has_judged = None, True
        wrong = block.wrong()
        self._keep_if_best(block, wrong, block.codelength(wrong), cost)

    def _keep_if_best(self, block: Block, wrong: NDArray[np.int64], length: Codelength, cost: int) -> None:
        """Keep a state if it is the best so far: it fits, is cheap, and has few atoms."""
        rank = self._misfit(block), cost, block.n_atoms if self.by_codelength else 0
        if self.best is None or rank < self._best_rank or (rank == self._best_rank and not self.by_codelength):
            self.best, self._best_rank = Snapshot(*block.factors(), block.bias, length, wrong), rank

    def note(
        self,
        n_rows: int,
        n_atoms: int,
        wrong: NDArray[np.int64],
        length: Codelength,
        change: Change,
        iterations: int,
        move: str,
    ) -> None:
        """Add a round to the history, log it, and tell the callbacks."""
        wrong_bits = int(wrong.sum())
        row = Round(
            round=len(self.history) + 1,
            move=move,
            atoms=n_atoms,
            bits=length.total,
            bits_errors=length.errors,
            bits_codes=length.codes,
            bits_atoms=length.atoms,
            wrong_bits=wrong_bits,
            codes_changed=change.codes,
            atoms_changed=change.atoms,
            errors_changed=change.errors,
            iterations=iterations,
            start=self.start,
            algebra=self.algebra,
            rows=n_rows,
            seconds=time.perf_counter() - self.started,
        )
        self.history.append(row)
        cost = length.total if self.by_codelength else wrong_bits
        told = move == "learn" or self._told is None or cost < _WORTH_TELLING * self._told
        self._told = cost if told else self._told
        logger.log(
            logging.INFO if told else logging.DEBUG,
            "%s, start %d, round %d, %s: %d atoms, %d bits, %d bits wrong",
            self.algebra,
            self.start,
            *row[:4],
            wrong_bits,
        )
        for callback in self.callbacks if self.cut_by is None else ():
            answer = callback(row)
            if isinstance(answer, (bool, np.bool_)) and answer:
                self.cut_by = "callback"

    def _misfit(self, block: Block) -> int:
        """How many atoms there are too many or, of those that serve a row, too few."""
        excess = 0 if self.most is None else max(0, block.n_atoms - self.most)
        return excess + (max(0, self.fewest - int(block.serving().sum())) if self.fewest else 0)

    @property
    def best_cost(self) -> int:
        """What the best state costs."""
        return self._best_rank[1]

    def is_cut(self) -> bool:
        """Whether the search should stop before it is done."""
        if self.cut_by is None and time.perf_counter() > self.deadline:
            self.cut_by = "max_time"
        return self.cut_by is not None


def step(block: Block, method: Method) -> Change:
    """Code the rows, then update the atoms; the errors cannot rise in either."""
    return CODERS[method.coder](block, method.rule) + UPDATES[method.update](block, method.rule)


def learn(block: Block, method: Method, monitor: SearchMonitor, each_step: bool = True) -> bool:
    """Take steps until one changes nothing; returns whether it came to that.

    Convergence is exact. Each change lowers the number of wrong bits, or leaves it and takes ones from atoms and
    codes (a tie gives 0), so that no state comes back. A round is recorded after each step, or once at the end.
    """
    total = Change()
    iterations = 0
    converged = False
    while not converged and iterations < method.max_iter and not (iterations and monitor.is_cut()):
        change = step(block, method)
        iterations += 1
        converged = not change
        if each_step:
            monitor.record(block, change, 1)
        total += change
    if not each_step:
        monitor.record(block, total, iterations)
    return converged
