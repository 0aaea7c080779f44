"""Kill a fit of a store again and again at chosen events, and resume it: a program that the tests run.

Each fit is a process forked from this one, which has the library and its kernels loaded. It counts its events: rounds,
saved states, and every write, sync and rename of a file. At a given event it kills itself; a write is torn then.
"""

import hashlib
import json
import os
import signal
import sys
import traceback
from dataclasses import fields
from random import Random

import numpy as np
import pytest
import zarr  # noqa: F401, loaded here once and not in every fit

from bitatoms.core.counts import Counts
from bitatoms.parallel import Workers
from bitatoms.rows.checkpoint import Checkpoint
from bitatoms.rows.store import Store, StoreRows
from support.plans import use_small_budget, use_windows
from support.sources import learned

WORKERS = Workers(1, chunk_rows=320)  # several chunks per pass
MAX_KILLS = 4  # of one fit, before it may finish


def main(folder, cases):
    """Kill the fits of each case: store, parameters, and number of kills. Print what happened as JSON."""
    use_small_budget(pytest.MonkeyPatch())
    use_windows(pytest.MonkeyPatch(), min_features=100, width=44)  # of a table searched for the shortest codelength
    print(json.dumps([kill_again(f"{folder}/case {i}", *case) for i, case in enumerate(cases)]))


def kill_again(folder, store, params, n_kills):
    """Fit without a kill, then with at least ``n_kills``, and return what happened."""
    os.mkdir(folder)
    warm_up(store, params)
    random = Random(n_kills)
    uninterrupted, events = attempt(store, f"{folder}/uninterrupted", params)
    kills: list[list[str]] = []  # for each fit, the event of each kill
    results = []
    while sum(map(len, kills)) < n_kills:
        checkpoint, result = f"{folder}/{len(kills)}", None
        kills.append([])
        while result is None:
            kill_at = random.randint(1, len(events)) if len(kills[-1]) < MAX_KILLS else None
            result, seen = attempt(store, checkpoint, params, kill_at)
            if result is None:
                kills[-1].append(seen[-1])
        results.append(result)
    return {"uninterrupted": uninterrupted, "events": events, "kills": kills, "results": results}


def warm_up(store, params):
    """Load the kernels that the fits need."""
    learned(StoreRows(Store(store), WORKERS), 5, workers=WORKERS, **params)


def attempt(store, folder, params, kill_at=None):
    """Fit in a forked process; return a digest of the result, or None if it was killed, and its events."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            os.close(reading)
            fit(store, folder, params, Events(writing, kill_at))
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writing)
    with open(reading) as lines:
        events = [line.strip() for line in lines]
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        assert len(events) == kill_at
        return None, events
    if status:
        raise SystemExit(f"a fit ended with {status} after {events[-3:]}")
    return events.pop(), events


class Events:
    """Reports events to the parent process, and kills this process at one of them."""

    def __init__(self, pipe, kill_at):
        self.pipe, self.kill_at, self.write = pipe, kill_at, os.write
        self.count = 0

    def report(self, event):
        """Report an event; return whether the process is to be killed at it."""
        self.count += 1
        self.write(self.pipe, f"{event}\n".encode())
        return self.count == self.kill_at

    def __call__(self, event):
        """Report an event, and kill this process if it is the chosen one."""
        if self.report(event):
            os.kill(os.getpid(), signal.SIGKILL)

    def watch_files(self):
        """Report every write, sync and rename of a file before it happens."""
        fsync, replace = os.fsync, os.replace

        def write(file, content):
            if self.report("write"):
                self.write(file, content[: len(content) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            return self.write(file, content)

        os.write = write
        os.fsync = lambda file: (self("sync"), fsync(file))[1]
        os.replace = lambda old, new: (self("rename"), replace(old, new))[1]


def fit(path, folder, params, events):
    """Fit, resuming from the checkpoint if there is one, and report a digest of the result as the last event."""
    store = Store(path)
    call = {"params": repr(params), "n_samples": store.n_rows, "n_features": store.n_features}
    events.watch_files()
    with ReportingCheckpoint(folder, call, resume=True) as checkpoint:
        checkpoint.events = events
        events("opened")
        rows = StoreRows(store, WORKERS, code_folder=folder)
        rows.save_interval = 0.0  # after every chunk
        checkpoint.steps.is_due = lambda: True  # after every step of the search
        random = checkpoint.random(np.random.default_rng(5))
        found = learned(rows, random, checkpoint, WORKERS, callbacks=lambda row: events("round"), **params)
        events.report(digest(found, checkpoint.load()))


class ReportingCheckpoint(Checkpoint):
    """A checkpoint that reports when it is written."""

    events = staticmethod(lambda event: None)

    def save(self, state):
        what = "all passes" if state.finished else "part of a pass" if state.partial else "a pass"
        self.events(f"saving {what}")
        super().save(state)
        self.events(f"saved {what}")


def digest(found, state):
    """Return a digest of the result, and of the saved counts of the best pass, if there are passes."""
    digest = hashlib.sha256(repr((found.atoms.shape, found.codelength, found.algebra)).encode())
    counts = [found.codes.words] if state is None else [getattr(state.counts, field.name) for field in fields(Counts)]
    for array in (found.atoms.words, found.bias, found.wrong, found.uses, found.saved, *counts):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
