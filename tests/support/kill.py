"""Kill a fit of a store again and again, at random moments, and have it go on: a program, as the tests run it.

Each fit is a process of its own, forked from this one, which has loaded the library and its kernels: so a kill and a
new start cost next to nothing. It tells of its rounds and of what it saves; after some of these, and some milliseconds
more, it is killed.
"""

import hashlib
import json
import os
import signal
import sys
import time
import traceback
from dataclasses import fields
from random import Random

import numpy as np
import zarr  # noqa: F401, loaded here once and not in every fit

from bitatoms.bits import BitMatrix
from bitatoms.parallel import Workers
from bitatoms.rows.checkpoint import Checkpoint
from bitatoms.rows.memory import MemoryRows
from bitatoms.rows.store import Store, StoreRows
from support.sources import learned

WORKERS = Workers(1, chunk_rows=640)  # so that a pass has several pieces
MOST_KILLS = 4  # of one fit, before it may come to its end


def main(store, folder, how, seed, n_kills):
    """Fit without a kill, then with so many, and print what came of it."""
    warm_up()
    moments = Random(seed)
    undisturbed, events = attempt(store, f"{folder}/undisturbed", how, resume=False)
    kills: list[list[str]] = []  # of each history: what was told last before each kill
    results = []
    while sum(map(len, kills)) < n_kills:
        history, result = f"{folder}/{len(kills)}", None
        kills.append([])
        while result is None:
            kill_at = moments.randint(1, len(events)) if len(kills[-1]) < MOST_KILLS else None
            result, told = attempt(store, history, how, True, kill_at, moments.uniform(0, 0.008))
            if result is None:
                kills[-1].append(told[-1])
        results.append(result)
    print(json.dumps({"undisturbed": undisturbed, "events": events[:-1], "kills": kills, "results": results}))


def warm_up():
    """Load the kernels."""
    data = BitMatrix.from_dense(np.random.default_rng(0).integers(0, 2, (300, 70)))
    for algebra in ("xor", "or"):
        learned(MemoryRows(data, Workers(1)), search_rows=100, algebra=algebra, max_iter=3)


def attempt(store, folder, how, resume, kill_at=None, delay=0.0):
    """A fit in a process of its own: its result, None where it was killed, and what it told."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        status = 1
        try:
            os.close(reading)
            fit(store, folder, how, resume, lambda event: os.write(writing, f"{event}\n".encode()))
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(writing)
    told = []
    with open(reading) as lines:
        for line in lines:
            told.append(line.strip())
            if len(told) == kill_at:
                time.sleep(delay)
                os.kill(child, signal.SIGKILL)
                break
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return None, told
    if status:
        raise SystemExit(f"a fit ended with {status} after {told[-3:]}")
    ended = len(told) != kill_at  # or it did before it could be killed
    return told[-1] if ended else attempt(store, folder, how, True)[0], told


def fit(path, folder, how, resume, tell):
    """The fit, which tells what it comes to and, in the end, a digest of what it learned."""
    store = Store(path)
    call = {**how, "n_samples": store.n_rows, "n_features": store.n_features}
    with Telling(folder, call, resume) as checkpoint:
        checkpoint.tell = tell
        tell("begun")
        rows = StoreRows(store, WORKERS, scratch=folder)
        rows.keep_every = 0.0  # after every piece
        random = checkpoint.random(np.random.default_rng(5))
        found = learned(rows, random, checkpoint, WORKERS, callbacks=lambda row: tell("a round"), **how)
        tell(digest(found, checkpoint.load()))


class Telling(Checkpoint):
    """A checkpoint that tells when it is written."""

    def save(self, state):
        what = "all" if state.finished else "half a pass" if state.partial else f"pass {len(state.orders) - 1}"
        self.tell(f"saving {what}")
        super().save(state)
        self.tell(f"saved {what}")


def digest(found, state):
    """A digest of all that was learned, and of what was counted in the best pass, as it was kept."""
    whole = hashlib.sha256(repr((found.atoms.shape, found.codelength, found.algebra)).encode())
    counts = [getattr(state.counts, field.name) for field in fields(state.counts)]
    for part in (found.atoms.words, found.bias, found.wrong, found.uses, found.saved, *counts):
        whole.update(np.ascontiguousarray(part).tobytes())
    return whole.hexdigest()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
