"""`CoverMonitor`: observes a search for a cover. It keeps the history and the best cover, and ends the search."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from .cells import NO_ONES, Ones
from .costs import RoleCost
from .problem import Problem, Role

logger = logging.getLogger(__name__)


class CoverRound(NamedTuple):
    """One entry of the history of a search for a cover: the best cover so far.

    Attributes
    ----------
    round : int
        Number of the entry, from 1.
    move : str
        What found the cover.
    roles : int
        Its number of roles.
    assignments : int
        Assignments of users and of permissions, and direct grants.
    seconds : float
        Seconds since the start of the search.
    """

    round: int
    move: str
    roles: int
    assignments: int
    seconds: float


class CoverMonitor:
    """The best cover of a search, the most independent ones, its history, and whether it should stop."""

    def __init__(
        self,
        problem: Problem,
        cost: RoleCost,
        deadline: float = float("inf"),
        callbacks: Sequence[Callable[[CoverRound], object]] = (),
        fixed_counts: tuple[int, int] = (0, 0),
    ) -> None:
        self.problem, self.cost = problem, cost
        self.roles = problem.row_roles  # a cover from the start, whenever the search ends
        self.independent = NO_ONES  # every cover has at least as many roles
        self.best_cost: float = float("inf")
        self.history: list[CoverRound] = []
        self.stop_reason: str | None = None
        self._deadline, self._callbacks = deadline, callbacks
        self._fixed_counts = fixed_counts  # fixed roles, and their assignments
        self._started = time.perf_counter()

    def keep(self, roles: Iterable[Role], cost: int) -> None:
        """Keep a cover if it is better than all before."""
        if cost < self.best_cost:
            self.roles, self.best_cost = tuple(roles), cost

    def keep_independent(self, cells: Ones) -> None:
        """Keep ones no two of which fit into one role if there are more of them than before."""
        if len(cells.rows) > len(self.independent.rows):
            self.independent = cells

    def should_stop(self) -> bool:
        """Whether a callback or the deadline ends the search."""
        if self.stop_reason is None and time.perf_counter() > self._deadline:
            self.stop_reason = "max_time"
        return self.stop_reason is not None

    def record(self, move: str) -> None:
        """Add the best cover to the history, log it, and call the callbacks."""
        n_roles, n_assignments = self._fixed_counts
        for role in self.roles:
            n_users, n_permissions = self.problem.size(role)
            if self.cost.is_direct(n_users, n_permissions):
                n_assignments += n_users * n_permissions
            else:
                n_roles += 1
                n_assignments += n_users + n_permissions
        seconds = time.perf_counter() - self._started
        row = CoverRound(len(self.history) + 1, move, n_roles, n_assignments, seconds)
        is_better = not self.history or row[2:4] != self.history[-1][2:4]
        self.history.append(row)
        level = logging.INFO if is_better else logging.DEBUG
        logger.log(level, "round %d, %s: %d roles, %d assignments", *row[:4])
        for callback in self._callbacks if self.stop_reason is None else ():
            answer = callback(row)
            if isinstance(answer, (bool, np.bool_)) and answer:
                self.stop_reason = "callback"
