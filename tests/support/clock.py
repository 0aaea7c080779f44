"""A clock that advances with the work done, so that tests of time limits do not depend on the machine."""

import time
from functools import partial

from bitatoms.parallel import Workers

CHUNK_SECONDS = 0.05


class WorkClock:
    """Replaces the clock until the monkeypatch is undone; every chunk of rows that a kernel processes takes 0.05 s.

    Estimates of the cost of rows are not corrected by measured times, so that the number of chunks is always the same.
    """

    def __init__(self, monkeypatch):
        self.now, self.n_chunks = 1000.0, 0
        map_rows = Workers.map_rows

        def timed(workers, task, n_rows, row_cost, *multiple):
            # A partial has no code, by which `Workers.map_rows` would correct its estimates.
            return map_rows(workers, partial(self._run, task), n_rows, row_cost, *multiple)

        monkeypatch.setattr(Workers, "map_rows", timed)
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)

    def _run(self, task, start, stop):
        """Run a chunk of a task, which takes its time."""
        self.advance()
        return task(start, stop)

    def advance(self):
        """Let the time of a chunk pass."""
        self.n_chunks += 1
        self.now += CHUNK_SECONDS

    @property
    def elapsed(self):
        """Seconds since the clock was made."""
        return self.now - 1000.0


def allowed(max_time):
    """Return how long a fit may take with this limit."""
    return 1.1 * max_time + 2
