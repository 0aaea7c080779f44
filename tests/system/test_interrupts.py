"""Interrupts where they would leave a lock held: while a kernel is compiled, and while threads are started."""

import signal
import threading
from types import SimpleNamespace

import pytest

from bitatoms import parallel
from bitatoms.kernels import jit
from bitatoms.parallel import Workers
from bitatoms.system.interrupts import deferred_interrupts

SIGNALS = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture(autouse=True)
def handlers():
    """Let both signals raise KeyboardInterrupt, as the command line does."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        signal.signal(number, signal.default_int_handler)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_interrupt_comes_after_the_block(number):
    done = []

    def work():
        with deferred_interrupts(), deferred_interrupts():
            signal.raise_signal(number)
            done.append("work")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["work"]
    assert signal.getsignal(number) == signal.default_int_handler


def test_an_error_in_the_block_does_not_hide_the_interrupt():
    def fail():
        with deferred_interrupts():
            signal.raise_signal(signal.SIGINT)
            raise ValueError("in the block")

    with pytest.raises(KeyboardInterrupt) as caught:
        fail()
    assert isinstance(caught.value.__context__, ValueError)


def test_ignored_signals_stay_ignored():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with deferred_interrupts():
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
        signal.raise_signal(signal.SIGTERM)


def test_other_threads_install_no_handlers():
    seen = []

    def work():
        with deferred_interrupts():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def double(x):
    return 2 * x


def test_compilation_is_not_interrupted(tmp_path, monkeypatch):
    monkeypatch.setattr(jit, "CACHE_FOLDER", tmp_path)
    begun = []

    def interrupt(self, event):
        begun.append(event)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(jit._Compilation, "on_start", interrupt)
    compiled = jit.kernel(double)
    with pytest.raises(KeyboardInterrupt):
        compiled(21)
    assert compiled(21) == 42  # it was compiled, and needs no compilation any more
    assert len(begun) == 1


def test_threads_that_were_started_are_awaited(monkeypatch):
    """The chunk that has begun ends only after the main thread has told the others to stop."""
    start, begun, stopping, chunks = parallel._Crew.start, threading.Event(), threading.Event(), []

    class Event(threading.Event):
        def set(self):
            super().set()
            stopping.set()

    def interrupted_start(*arguments, **options):
        n_started = start(*arguments, **options)
        assert begun.wait(30)
        signal.raise_signal(signal.SIGINT)
        return n_started

    def task(start, stop):
        begun.set()
        assert stopping.wait(30)
        chunks.append(start)

    monkeypatch.setattr(parallel, "threading", SimpleNamespace(**vars(threading) | {"Event": Event}))
    monkeypatch.setattr(parallel._Crew, "start", interrupted_start)
    with pytest.raises(KeyboardInterrupt):
        Workers(2, chunk_rows=64).map_rows(task, 640, 1.0)
    assert chunks == [0]  # the chunk that had begun, and no other
