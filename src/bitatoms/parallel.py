"""Run kernels over chunks of rows in one shared thread pool."""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from .errors import InputError, Parameter
from .interrupts import deferred_interrupts

Item = TypeVar("Item")
Result = TypeVar("Result")

_MIN_PARALLEL_NS = 0.4e6  # work that takes less runs in the calling thread: starting threads costs more than it saves
_CHUNKS_PER_THREAD = 2  # more than one, so that the other threads need not wait for one that starts late or is slow
_MIN_BALANCED_NS = 20e6  # work that takes more is divided into twice as many chunks
MAX_CHUNK_NS = 100e6  # upper bound for the work of a chunk, so that Ctrl-C takes effect soon

# Quota and period, in control groups of version 2 and 1, as a container sees its own.
_QUOTA_FILES = (
    ("/sys/fs/cgroup/cpu.max",),
    ("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu/cpu.cfs_period_us"),
)

_logger = logging.getLogger(__name__)


class OutOfTime(Exception):
    """The deadline of some work passed before the work was done."""


class Cancelled(Exception):
    """The result of some work is no longer wanted."""


_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_pool_size = 0


def _reset_pool() -> None:
    """Forget the pool of the parent process, whose threads do not exist in a forked child."""
    global _lock, _pool, _pool_size
    _lock, _pool, _pool_size = threading.Lock(), None, 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_pool)


def _submit_to(pool: ThreadPoolExecutor, task: Callable[..., Result], *args: Any) -> Future[Result] | None:
    """Submit a task to a pool; return None if no thread can be started for it. It then never runs."""
    future: Future[Result] = Future()

    def run() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            result = task(*args)
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    try:
        pool.submit(run)
    except (RuntimeError, MemoryError) as error:  # the task is in the queue nevertheless: a running thread may take it
        if future.cancel():
            _log_once(str(error) or type(error).__name__)
            return None
    return future


@cache
def _log_once(problem: str) -> None:
    """Log that threads cannot be started, the first time only."""
    _logger.warning("%s: fewer threads are used than requested; the result does not depend on it", problem)


def _submit(work: Callable[[], None], times: int) -> list[Future[None]]:
    """Submit the function ``times`` times to the pool, which is created or enlarged on demand.

    Where threads cannot be started, it is submitted fewer times.
    """
    global _pool, _pool_size
    with _lock:  # also while submitting: another thread may be replacing the pool by a larger one
        if _pool is None or _pool_size < times:
            if _pool is not None:
                _pool.shutdown(wait=False)
            _pool, _pool_size = ThreadPoolExecutor(times, thread_name_prefix="bitatoms"), times
        submitted: list[Future[None]] = []
        while len(submitted) < times and (future := _submit_to(_pool, work)) is not None:
            submitted.append(future)
        return submitted


def count_threads(n_jobs: int | None) -> int:
    """Return the number of threads for ``n_jobs``: None is 1, -1 all processors, -2 all but one, as in scikit-learn.

    Examples
    --------
    >>> count_threads(None), count_threads(3)
    (1, 3)
    """
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__"):
        raise TypeError(f"n_jobs must be an integer or None, not {n_jobs!r}")
    jobs = n_jobs.__index__()
    if jobs == 0:
        raise InputError(Parameter("n_jobs"), " must not be 0; pass 1 for one thread, -1 for all processors")
    if jobs > 0:
        return jobs
    return max(1, count_processors() + 1 + jobs)


def count_processors() -> int:
    """Return the number of processors that this process may use, by its affinity and the limit of its container."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _container_quota()
    return available if quota is None else max(1, min(available, math.ceil(quota)))


def _container_quota() -> float | None:
    """Return the processor time per second that the control group of a container allows; None if there is no limit."""
    for files in _QUOTA_FILES:
        try:
            quota, period, *_ = " ".join(Path(file).read_text() for file in files).split()
            return int(quota) / int(period) if int(quota) > 0 else None
        except (OSError, ValueError, ZeroDivisionError):  # not this version, or "max"
            continue
    return None


def _completed(task: Callable[[Item], Result], item: Item) -> Future[Result]:
    """Run a task in the calling thread."""
    future: Future[Result] = Future()
    try:
        future.set_result(task(item))
    except Exception as error:
        future.set_exception(error)
    return future


@dataclass(frozen=True)
class Workers:
    """Number of threads, and optionally a fixed number of rows per chunk (results do not depend on either).

    After the ``deadline``, a time of `time.perf_counter`, no chunk is started: OutOfTime is raised instead. Nor is one
    started once ``cancelled`` is set, which raises Cancelled.
    """

    n_threads: int = 1
    chunk_rows: int | None = None
    deadline: float = float("inf")
    cancelled: threading.Event | None = None

    def check_deadline(self) -> None:
        """Raise OutOfTime if the deadline has passed, Cancelled if the work is cancelled."""
        if self.cancelled is not None and self.cancelled.is_set():
            raise Cancelled
        if self.deadline != float("inf") and time.perf_counter() > self.deadline:
            raise OutOfTime

    def map_rows(self, task: Callable[[int, int], Result], n_rows: int, row_cost: float) -> list[Result]:
        """Run ``task(start, stop)`` on chunks of rows and return the results in row order.

        Every start is a multiple of 64, so that no two chunks share a word of transposed bits. ``row_cost`` is the
        estimated time per row in nanoseconds; a small job is a single chunk.
        """
        edges = self._edges(n_rows, n_rows * row_cost)

        def run(start: int, stop: int) -> Result:
            self.check_deadline()
            return task(start, stop)

        if len(edges) == 1 or self.n_threads == 1:
            return [run(start, stop) for start, stop in edges]
        return self._run_in_threads(run, edges)

    def is_one_chunk(self, n_rows: int, row_cost: float) -> bool:
        """Return whether `map_rows` runs a job of this size as a single chunk."""
        return len(self._edges(n_rows, n_rows * row_cost)) == 1

    def map_stream(self, task: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Run ``task(item)`` on the items of an iterator and yield the results in order.

        Items are fetched in the calling thread while tasks run, only a few ahead, so that few are in memory. If the
        generator is closed early, or a task fails, running tasks are awaited and pending ones cancelled; ``cancelled``
        is set, if there is one. Long tasks check the deadline themselves.
        """
        pending: deque[Future[Result]] = deque()
        pool = ThreadPoolExecutor(self.n_threads, thread_name_prefix="bitatoms")
        try:
            for item in items:
                self.check_deadline()
                pending.append(_submit_to(pool, task, item) or _completed(task, item))
                if len(pending) > self.n_threads + 1:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        except BaseException:  # also GeneratorExit and KeyboardInterrupt
            if self.cancelled is not None:
                self.cancelled.set()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _edges(self, n_rows: int, cost: float) -> list[tuple[int, int]]:
        """Return start and stop of each chunk; at least one chunk, which may be empty."""
        if self.chunk_rows is not None:
            size = self.chunk_rows
        elif cost < (2 * MAX_CHUNK_NS if self.n_threads == 1 else _MIN_PARALLEL_NS):
            return [(0, n_rows)]
        else:
            n_chunks = self.n_threads * _CHUNKS_PER_THREAD * (2 if cost > _MIN_BALANCED_NS else 1)
            size = -(-n_rows // max(n_chunks, int(cost / MAX_CHUNK_NS)))
        size = max(64, -(-size // 64) * 64)
        return [(start, min(start + size, n_rows)) for start in range(0, n_rows, size)] or [(0, 0)]

    def _run_in_threads(self, task: Callable[[int, int], Result], edges: list[tuple[int, int]]) -> list[Result]:
        """Let the calling thread and those of the pool take chunks until none is left.

        Return when all chunks are done, without waiting for threads that have not started yet.
        """
        results: dict[int, Result] = {}
        chunks = iter(range(len(edges)))  # next() on it is atomic
        finished: SimpleQueue[BaseException | None] = SimpleQueue()  # one entry per chunk: None or its exception
        stopped = threading.Event()

        def work() -> None:
            for chunk in chunks:
                if stopped.is_set():
                    return
                try:
                    results[chunk] = task(*edges[chunk])
                except BaseException as error:
                    finished.put(error)
                    return
                finished.put(None)

        pending: list[Future[None]] = []
        try:
            with deferred_interrupts():  # or a thread may have started that is not in the list
                pending = _submit(work, min(self.n_threads, len(edges)) - 1)
            work()
            for _ in edges:
                if (error := finished.get()) is not None:
                    raise error
        except BaseException:
            stopped.set()
            wait(pending)  # no thread may still write to the arrays of the caller
            raise
        return [results[chunk] for chunk in range(len(edges))]
