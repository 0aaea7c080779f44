"""What observes a running search: its history, its best state, callbacks, and the limits at which it ends.

A search that ends by itself has *converged*; what that means is decided in its loop: `MdlSearch.run_rounds` (rounds
without a gain), `evolve` and `run_epochs` (states without a gain), `learn` (a step that changes nothing),
`forward_selection` (patience) and `bitatoms.rows.passes` (passes over all rows). Otherwise it ends at the number of
rounds allowed ("max_iter"), at its deadline ("max_time"), or because a callback returned True ("callback"); the monitor
observes the last two. Functions that search return a `SearchResult`, which holds the reason.

Deadlines are observed between moves. A move may take long on a large table, so that work that continues after a short
grace period is cut off: `Workers` raise OutOfTime, and the result is the best state recorded by then, as after Ctrl-C.
The same happens if memory runs out ("max_memory").

Parts of a search that do not depend on each other are made several at once if threads are idle, with the same result as
if they were made one after the other. A part that begins when all before it are finished is *live*: it works with the
monitor of the search, in its thread, which calls the callbacks. Another one is a *branch*, with a monitor and a limit
of rounds of its own. When those before it are finished, its moves are added to the history as if they were made then.
If a callback ends the search at one of these moves, or if fewer rounds were left than the part made, it is made again
up to there.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..engine.block import Block, Change
from ..engine.codelength import Codelength
from ..engine.objective import Objective, settle_bias
from ..model.result import Round
from ..parallel import Workers
from .states import Saver, State

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
Rank = tuple[bool, int, int, int]  # no cost of held-out rows, atoms too many or too few, cost, atoms

CONVERGED, MAX_ITER, MAX_TIME, MAX_MEMORY, CALLBACK = "converged", "max_iter", "max_time", "max_memory", "callback"
INTERRUPTED = "interrupted"
_GRACE_SHARE, _GRACE_SECONDS = 0.05, 1.0  # of the time allowed; as much again is left to build the result
_MIN_CELLS = 1 << 16  # of a table; parts of a search of smaller ones are too short for several threads

_LATE_SECONDS = 0.25  # on small tables, what remains to be done takes less
_FORBIDDEN = 1 << 30  # more than the atoms that a state may have too many
_LOGGED_GAIN = 0.995  # a move is logged at INFO if it lowers the cost to this share of the one logged last


@dataclass
class SearchMonitor:
    """The history of a search, its best state, and whether a callback or the deadline asks it to stop.

    Only its own methods write its fields.
    """

    objective: Objective  # by which states are compared
    deadline: float = float("inf")
    callbacks: Sequence[Callable[[Round], object]] = ()
    start: int = 1
    min_atoms: int = 0  # that the best state has, all of them used
    max_atoms: int | None = None  # that the best state has
    min_users: int = 0  # that every atom of the best state has
    by_holdout: bool = False  # the best state is the best of those passed to `record_holdout_cost`
    settles_bias: bool = False  # in every state that is kept, the bias takes the columns that are mostly wrong
    stop_after: int | None = None  # rounds, after which a callback of another monitor has ended the search
    saver: Saver | None = None  # saves the best states, to resume the search
    history: list[Round] = field(default_factory=list)
    best: State | None = field(default=None, init=False)
    best_rank: Rank = field(default=(False, 0, 0, 0), init=False)  # by which it is the best
    stop_reason: str | None = field(default=None, init=False)  # "callback" or "max_time"
    started: float = field(default_factory=lambda: time.perf_counter(), init=False)  # which tests replace
    is_branch: bool = field(default=False, init=False)
    _logged_cost: int | None = field(default=None, init=False)

    def should_stop(self) -> bool:
        """Whether a callback or the deadline ends the search."""
        if self.stop_reason is None and time.perf_counter() > self.deadline:
            self.stop_reason = MAX_TIME
        return self.stop_reason is not None

    def is_late(self) -> bool:
        """Whether the deadline has passed for so long that steps which improve a start must be left out."""
        return time.perf_counter() > self.deadline + _LATE_SECONDS and self.should_stop()

    def record(self, block: Block, change: Change, iterations: int, move: str = "learn") -> None:
        """Add a round to the history, and keep its state if it is the best so far."""
        bias, wrong = self._settled(block)
        length = self.codelength(block, wrong, bias)
        if self.best is None or not self.by_holdout:
            self._keep_if_best(block, bias, wrong, length)
        self.record_counts(block.n_rows, block.n_atoms, int(wrong.sum()), length, change, iterations, move)

    def record_holdout_cost(self, block: Block, cost: int) -> None:
        """Keep a state if held-out rows cost less with it than with any before."""
        bias, wrong = self._settled(block)
        self._keep_if_best(block, bias, wrong, self.codelength(block, wrong, bias), cost)

    def cost(self, block: Block, length: Codelength) -> int:
        """Return what a state with this codelength costs."""
        return length.total + self.objective.cost_beyond_codelength(block)

    def codelength(self, block: Block, wrong: NDArray[np.int64], bias: BitMatrix) -> Codelength:
        """Return the codelength of a state with these errors and this bias."""
        return block.codelength(wrong, bias, self.objective.code)

    def _settled(self, block: Block) -> tuple[BitMatrix, NDArray[np.int64]]:
        """Return the bias of the state that a block gives, and in how many rows each of its columns is wrong."""
        if not self.settles_bias:
            return block.bias, block.wrong()
        return settle_bias(block.n_known, block.wrong(), block.bias)

    def _keep_if_best(
        self,
        block: Block,
        bias: BitMatrix,
        wrong: NDArray[np.int64],
        length: Codelength,
        holdout_cost: int | None = None,
    ) -> None:
        """Keep a state if it is the best so far, by its number of atoms where that is limited, then by its cost.

        Any state with a cost of held-out rows is better than one without. A state with atoms that too few rows use is
        kept without them, if it is the best then.
        """
        cost = holdout_cost
        if cost is None:
            cost = self.cost(block, length) if self.objective.by_codelength else int(wrong.sum())
        n_atoms = block.n_atoms if self.objective.by_codelength else 0
        rank = holdout_cost is None, self._n_atoms_off(block), cost, n_atoms
        if not self._is_best(rank):
            return
        kept = block.with_users(self.min_users)
        if kept is not block:
            bias, wrong = self._settled(kept)
            self._keep_if_best(kept, bias, wrong, self.codelength(kept, wrong, bias), holdout_cost)
            return
        self.best, self.best_rank = State(cost, *block.factors(), bias, wrong, length), rank
        if self.saver is not None:
            self.saver.offer(self.best, rank)

    def _is_best(self, rank: Rank) -> bool:
        """Whether a state of this rank takes the place of the best one."""
        is_tie = rank == self.best_rank and not self.objective.by_codelength
        return self.best is None or rank < self.best_rank or is_tie

    # Branches: parts of a search that are made at the same time, and then taken as if they had been made in order.

    def branch(self, stop_after: int | None = None) -> SearchMonitor:
        """Return a monitor for a part of the search: it calls no callbacks and logs nothing."""
        branch = replace(self, callbacks=(), stop_after=stop_after, history=[])
        branch.is_branch, branch.started = True, self.started
        return branch

    def take_rounds(self, rounds: Sequence[Round]) -> int:
        """Add rounds of a branch to the history, log them and call the callbacks, until one ends the search.

        Return how many are taken.
        """
        was_stopped = self.stop_reason is not None
        for n_taken, row in enumerate(rounds, start=1):
            self._add_round(row._replace(round=len(self.history) + 1))
            if self.stop_reason is not None and not was_stopped:
                return n_taken
        return len(rounds)

    def take_best(self, branch: SearchMonitor) -> None:
        """Keep the best state of a branch, if it is better than that of this search."""
        if branch.best is not None and self._is_best(branch.best_rank):
            self.best, self.best_rank = branch.best, branch.best_rank

    def record_counts(
        self,
        n_rows: int,
        n_atoms: int,
        wrong_bits: int,
        length: Codelength,
        change: Change,
        iterations: int,
        move: str,
    ) -> None:
        """Add a round to the history, log it, and call the callbacks."""
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
            algebra=self.objective.algebra,
            rows=n_rows,
            seconds=time.perf_counter() - self.started,
        )
        self._add_round(row)

    def _add_round(self, row: Round) -> None:
        """Add a round to the history, log it, and call the callbacks."""
        self.history.append(row)
        if len(self.history) == self.stop_after:
            self.stop_reason = CALLBACK
        if not self.is_branch:
            self._log(row, row.bits if self.objective.by_codelength else row.wrong_bits)
        for callback in self.callbacks if self.stop_reason is None else ():
            answer = callback(row)
            if isinstance(answer, (bool, np.bool_)) and answer:
                self.stop_reason = CALLBACK

    def _log(self, row: Round, cost: int) -> None:
        """Log a round, at INFO if it gains enough."""
        worth_it = row.move == "learn" or self._logged_cost is None or cost < _LOGGED_GAIN * self._logged_cost
        if worth_it:
            self._logged_cost = cost
        logger.log(
            logging.INFO if worth_it else logging.DEBUG,
            "%s, start %d, round %d, %s: %d atoms, %d bits, %d bits wrong",
            row.algebra,
            row.start,
            *row[:4],
            row.wrong_bits,
        )

    def _n_atoms_off(self, block: Block) -> int:
        """Return how many atoms a state has too many or, counting only those in use, too few.

        A state that adds forbidden ones is further off than any other.
        """
        excess = 0 if self.max_atoms is None else max(0, block.n_atoms - self.max_atoms)
        if self.objective.costs.adds_forbidden(block):
            excess += _FORBIDDEN
        return excess + (max(0, self.min_atoms - int(block.in_use().sum())) if self.min_atoms else 0)

    @property
    def best_cost(self) -> int:
        """The cost of the best state."""
        return self.best_rank[2]


def cut_off(start: float, deadline: float) -> float:
    """Return the time at which work with this deadline is cut off."""
    return deadline + _GRACE_SHARE * (deadline - start) + _GRACE_SECONDS


class SearchResult(NamedTuple):
    """The last state of a search, and the reason that it ended: "converged", "max_iter", "max_time" or "callback"."""

    block: Block
    ended: str


class StoppingRule:
    """Ends a search that has not converged: after its last round, or when its monitor asks it to stop.

    Parameters
    ----------
    monitor : SearchMonitor
    max_rounds : int or None
        Rounds (or trials) allowed; None for any number.
    """

    def __init__(self, monitor: SearchMonitor, max_rounds: int | None) -> None:
        self.monitor, self.rounds_left = monitor, max_rounds
        self.n_rounds = 0
        self._ended: str | None = None

    def should_stop(self) -> bool:
        """Whether the search must end now, although it may not have converged."""
        if self._ended is None:
            if self.rounds_left is not None and self.rounds_left <= 0 and self.monitor.stop_reason is None:
                self._ended = MAX_ITER
            elif self.monitor.should_stop():
                self._ended = self.monitor.stop_reason
        return self._ended is not None

    def stop(self, reason: str) -> None:
        """End the search for this reason."""
        self._ended = reason

    def take_rounds(self, n_rounds: int = 1) -> int:
        """Count rounds that begin, and return how many of them are allowed."""
        if self.rounds_left is not None:
            n_rounds = min(n_rounds, self.rounds_left)
            self.rounds_left -= n_rounds
        self.n_rounds += n_rounds
        return n_rounds

    @property
    def ended(self) -> str:
        """Why the search has ended."""
        return self._ended or self.monitor.stop_reason or CONVERGED


def at_once(n_cells: int, in_series: bool = False) -> int | None:
    """Return how many parts of a search of this many cells are made at once at most, one ``in_series``, or None."""
    return 1 if in_series or n_cells < _MIN_CELLS else None


def in_order(
    workers: Workers,
    make: Callable[[int, Workers, StoppingRule], Result],
    stopping_of: Callable[[int], StoppingRule],
    numbers: range,
    most: int | None,
) -> Generator[Result]:
    """Make parts of a search that do not depend on each other, and yield their results in order, at most this many.

    Several are made at once if threads are idle. Those that are not live are made as branches. ``stopping_of`` returns
    the rule of the search that a part belongs to.
    """
    n_next, thread = numbers.start, threading.get_ident()
    branches: dict[int, StoppingRule] = {}  # whose moves are not taken yet

    def branch(number: int, own: Workers, stop_after: int | None = None) -> Result:
        stopping = stopping_of(number)
        branches[number] = StoppingRule(stopping.monitor.branch(stop_after), stopping.rounds_left)
        return make(number, own, branches[number])

    def run(own: Workers, number: int) -> Callable[[], Result]:
        if number == n_next and threading.get_ident() == thread:
            return partial(make, number, own, stopping_of(number))  # others go on while the caller makes it
        made = branch(number, own)
        return lambda: made

    try:
        with closing(workers.map_tasks(run, numbers, most)) as parts:
            for number, part in zip(numbers, parts, strict=True):
                result = part()
                if number in branches:
                    stopping, monitor = stopping_of(number), stopping_of(number).monitor
                    allowed = stopping.rounds_left
                    if allowed is not None and branches[number].n_rounds >= allowed:
                        result = branch(number, workers)
                    n_taken = monitor.take_rounds(branches[number].monitor.history)
                    if monitor.stop_reason == CALLBACK:
                        result = branch(number, workers, n_taken)
                        monitor.take_rounds(branches[number].monitor.history[n_taken:])
                    taken = branches.pop(number)
                    stopping.take_rounds(taken.n_rounds)
                    monitor.take_best(taken.monitor)
                yield result
                n_next += 1  # now the next one may be live
    except (Exception, KeyboardInterrupt):  # the best state of a search that is cut off may be in any branch
        for number, cut_off_branch in sorted(branches.items()):
            stopping_of(number).monitor.take_best(cut_off_branch.monitor)
        raise
