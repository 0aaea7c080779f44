"""Parts of a search that do not depend on each other, several at once if threads are idle.

The result is the same as if they were made one after the other. A part that begins when all before it are finished is
*live*: it works with the monitor of the search, in its thread, which calls the callbacks. Another one has a monitor
and a limit of rounds of its own, and when those before it are finished, its moves are added to the history as if they
were made then. If a callback ends the search at one of these moves, or if fewer rounds were left than the part made, it
is made again up to there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import closing
from typing import TypeVar

from ..parallel import Workers

Result = TypeVar("Result")

_MIN_CELLS = 1 << 16  # of a table; parts of a search of smaller ones are too short for several threads


def at_once(n_cells: int, in_series: bool = False) -> int | None:
    """Return how many parts of a search of this many cells are made at once at most, one ``in_series``, or None."""
    return 1 if in_series or n_cells < _MIN_CELLS else None


def in_order(
    workers: Workers, task: Callable[[Workers, int, bool], Result], n_tasks: int, most: int | None
) -> Generator[Result]:
    """Yield the results of a task for 0, 1, 2, ... in order; its last argument is whether it is live.

    A live task that takes long returns something to call, so that the caller works on it while others go on.
    """
    n_taken, thread = 0, threading.get_ident()

    def run(own: Workers, number: int) -> Result:
        return task(own, number, number == n_taken and threading.get_ident() == thread)

    with closing(workers.map_tasks(run, range(n_tasks), most)) as results:
        for result in results:
            yield result
            n_taken += 1  # now the next one may be live
