"""Many fits at once, or after Ctrl-C, give the bits of one fit alone."""

import os
import signal
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed

from bitatoms import FileError, Interrupted, factorize, parallel
from bitatoms.datasets import planted
from bitatoms.parallel import Workers
from bitatoms.search import branches

N_CALLS = 5
X = planted(80, 24, 3, atom_density=0.25, code_density=0.3, noise=0.02, random_state=0).X
X_UNKNOWN = np.where(np.random.default_rng(0).random(X.shape) < 0.05, np.nan, X)
FITS = {"or": (X, {"algebra": "or"}), "starts": (X, {"algebra": "auto"}), "unknown cells": (X_UNKNOWN, {})}


def fit(name, n_jobs=1, **how):
    table, parameters = FITS[name]
    return factorize(table, **parameters, **how, n_jobs=n_jobs, random_state=0)


@cache
def alone(name):
    """Return the result of one call with one thread."""
    return fit(name)


def assert_same_bits(names, results):
    for name, result in zip(names, results, strict=True):
        expected = alone(name)
        assert (result.atoms, result.codes, result.algebra) == (expected.atoms, expected.codes, expected.algebra), name
        assert result.codelength == expected.codelength


@pytest.fixture
def pool(monkeypatch):
    """A pool without threads, as in a new process."""
    monkeypatch.setattr(parallel, "_pool", parallel._Pool())
    monkeypatch.setattr(branches, "_MIN_CELLS", 0)  # several parts of a search at once, however small the table is
    return parallel._pool


def pool_threads():
    return {thread for thread in threading.enumerate() if thread.name == "bitatoms"}


@pytest.mark.parametrize(("n_calls", "n_jobs"), [(1, 2), (N_CALLS, 2)])
def test_calls_at_once_give_the_bits_of_one_call_with_the_threads_they_ask_for(pool, n_calls, n_jobs):
    names = ["starts", "or", "or", "unknown cells", "or"][:n_calls]
    for name in names:
        alone(name)
    before, results = pool_threads(), {}
    at_once = threading.Barrier(n_calls)

    def call(number):
        at_once.wait(60)
        results[number] = fit(names[number], n_jobs)

    calls = [threading.Thread(target=call, args=(number,), daemon=True) for number in range(n_calls)]
    for thread in calls:
        thread.start()
    for thread in calls:
        thread.join(60)
    assert not any(thread.is_alive() for thread in calls)
    assert len(pool_threads() - before) <= n_calls * (n_jobs - 1)  # threads of a pool never end
    assert_same_bits(names, [results[number] for number in range(n_calls)])


def test_joblib_gives_the_bits_of_one_call():
    calls = [
        delayed(factorize)(table, **how, n_jobs=n_jobs, random_state=0)
        for n_jobs, (table, how) in zip([1, 2, 2], FITS.values(), strict=True)
    ]
    assert_same_bits(FITS, Parallel(2, backend="threading", timeout=100)(calls))


def raise_interrupt():
    raise KeyboardInterrupt


def send_interrupt():
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("press", [raise_interrupt, send_interrupt])
def test_after_ctrl_c_no_thread_is_busy_and_the_next_fit_gives_the_same_bits(pool, monkeypatch, press):
    """A task that runs when the key is pressed ends only after the main thread waits for it."""
    map_rows, running, is_pressed, closing = Workers.map_rows, set(), threading.Event(), threading.Event()
    close = parallel._Batch.close

    def slow_once_pressed(*arguments):
        running.add(threading.get_ident())
        try:
            if is_pressed.is_set() and threading.current_thread().name == "bitatoms":
                assert closing.wait(60)
            return map_rows(*arguments)
        finally:
            running.discard(threading.get_ident())

    def callback(row):
        if row.round == 20:
            is_pressed.set()
            press()

    with monkeypatch.context() as patch:
        patch.setattr(Workers, "map_rows", slow_once_pressed)
        patch.setattr(parallel._Batch, "close", lambda batch: closing.set() or close(batch))
        with pytest.raises(Interrupted) as caught:
            fit("starts", n_jobs=2, callbacks=callback)
        assert not running
    assert caught.value.result.ended == "interrupted"
    assert_same_bits(["starts"], [fit("starts", n_jobs=2)])
    assert pool._n_threads == 1  # the thread was idle again


HOLD = """
import sys
from pathlib import Path
from bitatoms.rows.checkpoint_steps import StepFiles
from test_many_fits import fit
StepFiles.is_due = lambda steps: True

def hold(row):
    if list(Path(sys.argv[1]).glob("search-*.npz")):
        print("held", flush=True)
        sys.stdin.read()

fit("or", checkpoint=sys.argv[1], callbacks=hold)
"""


def test_a_second_process_with_the_checkpoint_of_a_fit_raises_until_the_first_is_killed(tmp_path):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout.readline() == "held\n"
        written = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        for resume in (False, True):
            with pytest.raises(FileError, match="another fit is using this folder; wait until it ends, or choose"):
                fit("or", checkpoint=tmp_path, resume=resume)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == written
        process.kill()
    assert_same_bits(["or"], [fit("or", checkpoint=tmp_path, resume=True)])
