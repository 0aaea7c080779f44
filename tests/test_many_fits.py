"""Many fits at once, or after Ctrl-C, give the bits of one fit alone."""

import signal
import threading
from functools import cache

import numpy as np
import pytest

from bitatoms import Interrupted, factorize, parallel
from bitatoms.datasets import planted
from bitatoms.parallel import Workers
from bitatoms.search import monitor

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
    monkeypatch.setattr(monitor, "_MIN_CELLS", 0)  # several parts of a search at once, however small the table is
    return parallel._pool


def pool_threads():
    return {thread for thread in threading.enumerate() if thread.name == "bitatoms"}


def test_calls_at_once_give_the_bits_of_one_call_with_the_threads_they_ask_for(pool):
    names = ["starts", "or", "or", "unknown cells", "or"]
    n_calls, n_jobs = len(names), 2
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
