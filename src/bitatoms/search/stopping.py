"""The limits at which a search ends, and the reason that it ended.

A search that ends by itself has *converged*; what that means is decided in its loop: `MdlSearch.run_rounds` (rounds
without a gain), `ExchangeSearch.evolve` and `run_epochs` (states without a gain), `learn` (a step that changes
nothing), `forward_selection` (patience) and `bitatoms.rows.passes` (passes over all rows). Otherwise it ends at the
number of rounds allowed ("max_iter"), at its deadline ("max_time"), or because a callback returned True ("callback");
the monitor observes the last two. Functions that search return a `SearchResult`, which holds the reason.

Deadlines are observed between moves. A move may take long on a large table, so that work that continues after a short
grace period is cut off: `Workers` raise OutOfTime, and the result is the best state recorded by then, as after Ctrl-C.
The same happens if memory runs out ("max_memory").
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.block import Block
from .monitor import SearchMonitor

CONVERGED, MAX_ITER, MAX_TIME, MAX_MEMORY, CALLBACK = "converged", "max_iter", "max_time", "max_memory", "callback"
REASONS = CONVERGED, MAX_ITER, MAX_TIME, MAX_MEMORY, CALLBACK  # journals hold their indices: append others
_GRACE_SHARE, _GRACE_SECONDS = 0.05, 1.0  # of the time allowed; as much again is left to build the result


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

    def count_round(self) -> None:
        """Count a round that begins."""
        self.n_rounds += 1
        if self.rounds_left is not None:
            self.rounds_left -= 1

    def take_rounds(self, n_rounds: int) -> int:
        """Count several rounds, and return how many of them are allowed."""
        if self.rounds_left is not None:
            n_rounds = min(n_rounds, self.rounds_left)
            self.rounds_left -= n_rounds
        self.n_rounds += n_rounds
        return n_rounds

    @property
    def ended(self) -> str:
        """Why the search has ended."""
        return self._ended or self.monitor.stop_reason or CONVERGED
