"""Chunks of rows and the thread pool: every row once, in order, for any number of threads and after a fork."""

import multiprocessing
import os
import threading
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitatoms import parallel
from bitatoms.parallel import Cancelled, OutOfTime, Workers, count_threads

HEAVY = 1e6  # nanoseconds per row: enough work for any number of threads
SIXTEEN = [(start, start + 64) for start in range(0, 1024, 64)]


@pytest.fixture
def available(monkeypatch):
    """Make the process believe that it may use this many processors, and is in no container."""
    monkeypatch.setattr("bitatoms.parallel._QUOTA_FILES", ())

    def pretend(processors):
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(processors)), raising=False)

    return pretend


@pytest.fixture(autouse=True)
def no_correction(monkeypatch):
    """Let the estimates of the tests be taken as they are."""
    monkeypatch.setattr(parallel, "_MIN_MEASURED_NS", float("inf"))


def span(start, stop):
    return start, stop


def item_of(workers, item):
    return item


# --- deadlines


@pytest.mark.parametrize("n_threads", [1, 2])
def test_no_chunk_starts_after_the_deadline(monkeypatch, n_threads):
    now, started = [0.0], []
    monkeypatch.setattr(parallel.time, "perf_counter", lambda: now[0])

    def task(start, stop):
        started.append(start)
        now[0] += 1

    with pytest.raises(OutOfTime):
        Workers(n_threads, chunk_rows=64, deadline=3.5).map_rows(task, 1024, HEAVY)
    assert 4 <= len(started) <= 4 + n_threads - 1
    with pytest.raises(OutOfTime):
        list(Workers(n_threads, deadline=3.5).map_stream(item_of, iter(SIXTEEN)))
    with pytest.raises(OutOfTime):
        list(Workers(n_threads, deadline=3.5).map_tasks(item_of, SIXTEEN))
    assert len(started) <= 4 + n_threads - 1
    Workers(n_threads, chunk_rows=64).map_rows(task, 1024, HEAVY)
    assert len(started) >= 16


# --- number of threads


def test_n_jobs_counts_threads_as_in_scikit_learn(available, monkeypatch):
    available(6)
    asked = (None, 1, 3, np.int64(2), -1, -2, -6, -7, -100)
    assert [count_threads(n_jobs) for n_jobs in asked] == [1, 1, 3, 2, 6, 5, 1, 1, 1]
    for n_jobs in (True, "2", 2.0, [1]):
        with pytest.raises(TypeError, match="n_jobs must be an integer or None, not"):
            count_threads(n_jobs)
    with pytest.raises(ValueError, match="n_jobs must not be 0; pass 1 for one thread, -1 for all processors"):
        count_threads(0)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    for n_processors, expected in ((5, 5), (None, 1)):
        monkeypatch.setattr(os, "cpu_count", lambda n=n_processors: n)
        assert count_threads(-1) == expected


@pytest.mark.parametrize(
    ("files", "expected"),  # of version 2, or the quota and the period of version 1
    [
        ({"cpu.max": "max 100000\n"}, 6),
        ({"cpu.max": "200000 100000\n"}, 2),
        ({"cpu.max": "250000 100000\n"}, 3),
        ({"cpu.max": "1000 100000\n"}, 1),
        ({"cpu.max": "900000 100000\n"}, 6),
        ({"quota": "-1\n", "period": "100000\n"}, 6),
        ({"quota": "400000\n", "period": "100000\n"}, 4),
        ({"quota": "400000\n", "period": "0\n"}, 6),
        ({"quota": "400000\n"}, 6),
        ({"cpu.max": "?"}, 6),
    ],
)
def test_the_quota_of_a_container_limits_the_threads(available, monkeypatch, tmp_path, files, expected):
    available(6)
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    paths = (tmp_path / "cpu.max",), (tmp_path / "quota", tmp_path / "period")
    monkeypatch.setattr("bitatoms.parallel._QUOTA_FILES", paths)
    assert count_threads(-1) == expected
    assert count_threads(5) == 5


# --- chunks of rows


@given(
    st.integers(0, 3000) | st.just(0),
    st.integers(1, 9),
    st.sampled_from((None, 1, 63, 64, 65, 500, 10_000)),
    st.sampled_from((0.0, 10.0, 1e3, 1e5)),
)
def test_chunks_cover_every_row_once_in_order_and_start_at_multiples_of_64(n_rows, n_threads, chunk_rows, row_cost):
    workers = Workers(n_threads, chunk_rows)
    chunks = workers.map_rows(span, n_rows, row_cost)
    assert [j for start, stop in chunks for j in range(start, stop)] == list(range(n_rows))
    assert all(start % 64 == 0 for start, _ in chunks)
    assert n_rows or chunks == [(0, 0)]


def test_as_many_threads_as_do_a_job_first():
    """With n threads, a job takes cost / n, and then 150 microseconds for each."""
    for cost, n_threads in ((0.1e6, 1), (0.6e6, 2), (1.4e6, 3), (4e6, 5), (100e6, 16)):
        assert Workers(16)._most_threads(cost) == n_threads
        assert Workers(2)._most_threads(cost) == min(2, n_threads)
    # More chunks than threads, so that slow rows keep no thread waiting; each is short enough for Ctrl-C.
    assert [len(Workers(2).map_rows(span, 6400, cost)) for cost in (1e2, 1e3, 1e4)] == [2, 4, 8]
    for n_threads in (1, 2):
        chunks = Workers(n_threads).map_rows(span, 6400, HEAVY)
        assert all((stop - start) * HEAVY <= 2 * parallel.MAX_CHUNK_NS for start, stop in chunks)


def test_results_are_in_row_order_and_the_calling_thread_takes_part():
    """Three chunks are processed at once, in three threads, and the last one ends first; one thread needs no pool."""
    meeting, last_is_done = threading.Barrier(3), threading.Event()

    def task(start, stop):
        meeting.wait(60)
        if stop == 192:
            last_is_done.set()
        assert last_is_done.wait(60)
        return start, threading.get_ident()

    starts, threads = zip(*Workers(3, 64).map_rows(task, 192, HEAVY), strict=True)
    assert starts == (0, 64, 128)
    assert len(set(threads)) == 3
    assert threading.get_ident() in threads
    alone = Workers(1, 64).map_rows(lambda start, stop: threading.get_ident(), 192, HEAVY)
    assert set(alone) == {threading.get_ident()}


# --- exceptions, threads, forks


@pytest.mark.parametrize("failing", [0, 5, 15])
@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_an_exception_propagates_and_the_pool_stays_usable(failing, error):
    def task(start, stop):
        if start == 64 * failing:
            raise error("of this chunk")
        return start, stop

    for n_threads in (1, 2, 4):
        with pytest.raises(error, match="of this chunk"):
            Workers(n_threads, 64).map_rows(task, 1024, HEAVY)
        assert Workers(n_threads, 64).map_rows(span, 1024, HEAVY) == SIXTEEN


def test_no_chunk_runs_after_an_exception_propagated(monkeypatch):
    """The other threads end their chunks only after the main thread, which failed, waits for them."""
    running, started, awaited = [], threading.Event(), threading.Event()

    class Event(threading.Event):
        def set(self):
            super().set()
            awaited.set()  # the event that tells the others to stop

    monkeypatch.setattr(parallel, "threading", SimpleNamespace(**vars(threading) | {"Event": Event}))

    def task(start, stop):
        if threading.current_thread() is threading.main_thread():
            assert started.wait(60)
            raise ZeroDivisionError
        running.append(start)
        started.set()
        assert awaited.wait(60)
        running.remove(start)

    with pytest.raises(ZeroDivisionError):
        Workers(4, 64).map_rows(task, 6400, HEAVY)
    left = list(running)
    awaited.set()
    assert left == []


def exit_with_status_of_work():
    os._exit(0 if Workers(3, 64).map_rows(span, 1024, HEAVY) == SIXTEEN else 1)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="fork is not available")
def test_a_forked_child_creates_its_own_pool():
    """Also if it is forked while the pool is created."""
    assert Workers(3, 64).map_rows(span, 1024, HEAVY) == SIXTEEN  # the parent's threads exist now
    for lock in (nullcontext(), parallel._pool._lock):
        child = multiprocessing.get_context("fork").Process(target=exit_with_status_of_work)
        with lock:
            child.start()
            child.join(60)
        code = child.exitcode  # None if it hangs
        child.kill()
        child.join()
        assert code == 0
    assert Workers(3, 64).map_rows(span, 1024, HEAVY) == SIXTEEN


# --- tasks


class Busy:
    """Counts the threads that call it at the same time, and waits a moment for one more than are allowed."""

    def __init__(self, n_allowed):
        self.changed, self.threads, self.most, self.n_allowed = threading.Condition(), [], 0, n_allowed

    def __call__(self, *arguments):
        with self.changed:
            self.threads.append(threading.get_ident())
            self.most = max(self.most, len(set(self.threads)))
            self.changed.notify_all()
            self.changed.wait_for(lambda: self.most > self.n_allowed, 0.001)
            self.threads.remove(threading.get_ident())


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_tasks_and_their_tasks_and_chunks_use_no_more_threads_than_allowed(n_threads):
    busy = Busy(n_threads)

    def inner(workers, item):
        workers.map_rows(busy, 640, HEAVY)
        return item

    def outer(workers, item):
        busy()
        return item, list(workers.map_tasks(inner, range(item)))

    found = list(Workers(n_threads).map_tasks(outer, range(5)))
    assert found == [(item, list(range(item))) for item in range(5)]
    assert busy.most <= n_threads


def test_all_threads_are_idle_again_after_tasks_and_streams(monkeypatch):
    workers, changed, add_idle = Workers(4), threading.Condition(), parallel._Crew.add_idle

    def noted(crew, n_threads):
        add_idle(crew, n_threads)
        with changed:
            changed.notify_all()

    monkeypatch.setattr(parallel._Crew, "add_idle", noted)
    for items in (range(20), [1]):
        list(workers.map_tasks(item_of, items))
        list(workers.map_stream(item_of, items))
        with pytest.raises(ZeroDivisionError):
            list(workers.map_tasks(lambda workers, item: 1 // 0, items))
    with changed:  # a thread has returned its result, and is about to be idle
        assert changed.wait_for(lambda: workers._crew.n_idle == 3, 60)


@pytest.mark.parametrize("most", [1, 4])
def test_no_more_tasks_at_once_than_allowed(most):
    busy, workers = Busy(most), Workers(8, max_tasks=most)
    list(workers.map_tasks(busy, range(20)))
    list(workers.map_tasks(lambda own, _: list(own.map_tasks(busy, range(9))), range(2)))
    assert busy.most <= most


@pytest.mark.parametrize("map_items", [Workers.map_tasks, Workers.map_stream])
def test_running_tasks_and_their_chunks_are_cancelled_if_results_are_not_wanted(map_items):
    """The first task fails while the second one works for ever, in a task of its own."""
    started, outcome = threading.Event(), []

    def for_ever(workers, item):
        started.set()
        while True:
            workers.map_rows(span, 10, 1)

    def task(workers, item):
        if item == 0:
            assert started.wait(60)
            raise ZeroDivisionError
        try:
            list(workers.map_tasks(for_ever, [item]))
        except Cancelled as error:
            outcome.append(error)
            raise

    with pytest.raises(ZeroDivisionError):
        list(map_items(Workers(2), task, range(2)))
    assert len(outcome) == 1


def test_tasks_that_have_not_begun_are_left_out_if_results_are_not_wanted():
    begun = []
    results = Workers(1).map_tasks(lambda workers, item: begun.append(item), range(9))
    next(results)
    results.close()
    assert begun == [0]


# --- estimates


def test_estimates_are_corrected_by_the_time_that_was_spent(monkeypatch):
    spent = threading.local()
    monkeypatch.setattr(parallel, "_MIN_MEASURED_NS", 1)
    monkeypatch.setattr(parallel.time, "thread_time_ns", lambda: getattr(spent, "ns", 0))

    def slow(start, stop):
        spent.ns = getattr(spent, "ns", 0) + 1_000_000

    workers = Workers(2)
    assert len(workers.map_rows(slow, 6400, 20.0)) == 1  # a thread is not worth waking up for this
    assert len(workers.map_rows(slow, 6400, 20.0)) == 2  # it is, since it took longer than expected
    for _ in range(20):
        workers.map_rows(slow, 6400, 1e6)
    assert len(workers.map_rows(slow, 6400, 20.0)) == 1


# --- threads that cannot be started


@pytest.fixture(params=[0, 2])
def few_threads(request, monkeypatch):
    """Let no more than this many threads be started, as a limit on memory or processes does."""
    parallel._reset_pool()
    parallel._log_once.cache_clear()
    remaining, start = request.param, threading.Thread.start

    def limited(thread):
        nonlocal remaining
        if not remaining:
            raise RuntimeError("can't start new thread")
        remaining -= 1
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    yield request.param
    parallel._reset_pool()


NO_MORE_THREADS = "can't start new thread: fewer threads are used than requested; the result does not depend on it"


def test_fewer_threads_are_used_where_no_more_can_be_started(few_threads, caplog):
    seen, meeting = set(), threading.Barrier(few_threads + 1)

    def task(start, stop):
        if (thread := threading.get_ident()) not in seen:
            seen.add(thread)
            meeting.wait(60)  # for the calling thread, which starts with tasks when it has asked for all threads
        return start, stop

    for _ in range(3):
        assert Workers(6, 64).map_rows(task, 1024, HEAVY) == SIXTEEN
    assert len(seen) == few_threads + 1
    assert caplog.messages == [NO_MORE_THREADS]


@pytest.mark.parametrize("map_items", [Workers.map_tasks, Workers.map_stream])
def test_tasks_need_no_threads(few_threads, caplog, monkeypatch, map_items):
    caller, is_logged, emit = threading.get_ident(), threading.Event(), caplog.handler.emit
    monkeypatch.setattr(caplog.handler, "emit", lambda record: emit(record) or is_logged.set())

    def square(workers, item):
        if threading.get_ident() != caller:
            assert is_logged.wait(60)  # or idle threads may do everything, and no more are asked for
        return item * item

    assert list(map_items(Workers(6), square, range(40))) == [item * item for item in range(40)]
    assert caplog.messages == [NO_MORE_THREADS]
