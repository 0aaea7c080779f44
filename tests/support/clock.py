"""A clock that advances with the work done, so that tests of time limits do not depend on the machine."""

import time

from bitatoms.parallel import Workers

CHUNK_SECONDS = 0.05


class WorkClock:
    """Replaces the clock until the monkeypatch is undone; every chunk of rows that a kernel processes takes 0.05 s."""

    def __init__(self, monkeypatch):
        self.now, self.n_chunks = 1000.0, 0
        map_rows = Workers.map_rows

        def timed(workers, task, n_rows, row_cost, *multiple):
            def run(start, stop):
                self.advance()
                return task(start, stop)

            return map_rows(workers, run, n_rows, row_cost, *multiple)

        monkeypatch.setattr(Workers, "map_rows", timed)
        monkeypatch.setattr(time, "perf_counter", lambda: self.now)

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
