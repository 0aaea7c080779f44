"""Threads: independent tasks, and kernels over chunks of rows, share those that the user allows.

A `Workers` object allows a number of threads. Tasks and, within them, chunks of rows are given to threads that are idle
when they begin (`_Crew`): a task alone uses all threads for its rows, and many tasks use one each. So there are never
more busy threads than allowed, and results do not depend on them: tasks and chunks are independent, and their results
are taken in order.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from queue import Empty, SimpleQueue
from types import CodeType
from typing import TYPE_CHECKING, Any, TypeVar

from .errors import InputError, Parameter
from .system.interrupts import deferred_interrupts

if TYPE_CHECKING:
    from .kernels.gpu.device import Device

Item = TypeVar("Item")
Result = TypeVar("Result")

_WAKE_NS = 150e3  # to give one chunk to one thread, with the wait for the interpreter; threads get theirs in turn
# Work of a thread above which it is 2, or 4, chunks: others need not wait for one that starts late or is slow.
_BALANCED_NS = 1e6, 5e6
MAX_CHUNK_NS = 100e6  # upper bound for the work of a chunk, so that Ctrl-C takes effect soon
_MAX_WAIT = 0.1  # seconds, for the same reason
_DEVICE_THREADS = 4  # that process chunks of rows on a device: they wait for it most of the time
_MIN_MEASURED_NS = 20e3  # of shorter work, the time says little
_MAX_CORRECTION = 8.0  # of an estimate; more was spent on something else, such as compiling the kernel

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


class _Pool:
    """Threads of this process that wait for jobs. One is started where a job finds all of them busy."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: SimpleQueue[tuple[Callable[[], None], Callable[[], None]]] = SimpleQueue()
        self._n_threads = self._n_busy = 0

    def start(self, job: Callable[[], None], release: Callable[[], None]) -> bool:
        """Run a job in a thread; return False if no thread can be started for it. The job must not raise.

        ``release`` is called when the thread is idle again: who then starts a job finds it, and no thread is added.
        """
        with self._lock:
            if self._n_busy == self._n_threads:
                try:
                    threading.Thread(target=self._run_jobs, name="bitatoms", daemon=True).start()
                except (RuntimeError, MemoryError) as error:
                    _log_once(str(error) or type(error).__name__)
                    return False
                self._n_threads += 1
            self._n_busy += 1
        self._jobs.put((job, release))
        return True

    def _run_jobs(self) -> None:
        while True:
            job, release = self._jobs.get()
            job()
            with self._lock:
                self._n_busy -= 1
            release()
            del job, release  # keep no arrays alive while waiting


_pool = _Pool()


def _reset_pool() -> None:
    """Forget the pool of the parent process, whose threads do not exist in a forked child."""
    global _pool
    _pool = _Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_pool)


@cache
def _log_once(problem: str) -> None:
    """Log that threads cannot be started, the first time only."""
    _logger.warning("%s: fewer threads are used than requested; the result does not depend on it", problem)


_Job = Callable[[Callable[[], bool]], None]


def _stays() -> bool:
    """Whether a thread of the pool must leave a job: never."""
    return False


class _Crew:
    """The threads that some work may use: how many are idle, and those that wait for a result.

    A thread that waits for the result of a task is idle, too, and helps with the rows of other tasks.
    """

    def __init__(self, n_threads: int) -> None:
        self._lock = threading.Lock()
        self._n_idle = n_threads - 1  # threads of the pool: the calling thread is busy
        self._waiting: list[SimpleQueue[_Job | None]] = []  # where threads that wait get jobs

    @property
    def n_idle(self) -> int:
        """The number of threads that can help with rows."""
        # After a stream, more threads than allowed are busy until one that has no more tasks is counted as idle.
        return max(0, self._n_idle + len(self._waiting))

    def start(self, job: _Job, most: int, is_short: bool) -> int:
        """Run a job in up to this many idle threads, those that wait for a result only if it is short.

        Return how many these are. The job must not raise, and return soon once the function that it gets returns True.
        """
        with self._lock:
            n_asked = min(most, len(self._waiting)) if is_short else 0
            asked = [self._waiting.pop() for _ in range(n_asked)]
            n_wanted = max(0, min(most - n_asked, self._n_idle))
            self._n_idle -= n_wanted
        for jobs in asked:
            jobs.put(job)
        n_started = 0
        while n_started < n_wanted and _pool.start(partial(job, _stays), partial(self.add_idle, 1)):
            n_started += 1
        self.add_idle(n_wanted - n_started)
        return n_asked + n_started

    def add_idle(self, n_threads: int) -> None:
        """Count threads that become idle or, if negative, busy."""
        with self._lock:
            self._n_idle += n_threads

    def wait(self, future: Future[Result]) -> Result:
        """Return the result of a task that another thread runs, and help with rows until it is there."""
        jobs: SimpleQueue[_Job | None] = SimpleQueue()
        future.add_done_callback(lambda _: jobs.put(None))
        while not future.done():
            with deferred_interrupts() as interrupts:  # or a job that this thread was asked to do would not be done
                with self._lock:
                    self._waiting.append(jobs)
                try:
                    job = jobs.get(timeout=_MAX_WAIT)
                except Empty:
                    job = None
                with self._lock:
                    was_asked = jobs not in self._waiting
                    if not was_asked:
                        self._waiting.remove(jobs)
                while was_asked and job is None:  # asked after the task was done, or at the last moment
                    job = jobs.get()
                if job is not None:
                    job(lambda: bool(interrupts))
        return future.result()


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


# The time that tasks on rows take, as a multiple of the estimate, by the code of the task.
_corrections: dict[CodeType, float] = {}


class _Batch:
    """Tasks that threads of a crew take in order, each with a future for its result."""

    def __init__(self, crew: _Crew, max_helpers: int) -> None:
        self._crew, self._max_helpers = crew, max_helpers
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._n_running = self._n_helpers = 0
        self._changed = threading.Condition()

    def add(self, task: Callable[[], Result]) -> Future[Result]:
        """Add a task at the end."""
        future: Future[Result] = Future()
        with self._changed:
            self._waiting.append((future, task))
        return future

    def recruit(self) -> None:
        """Let idle threads help, as many as there are tasks that wait."""
        with self._changed:
            n_wanted = min(self._max_helpers - self._n_helpers, len(self._waiting))
            self._n_helpers += n_wanted
        with deferred_interrupts():  # or a thread may have started that is not counted
            n_started = self._crew.start(self._help, n_wanted, is_short=False)
        with self._changed:
            self._n_helpers -= n_wanted - n_started

    def result_of(self, future: Future[Result], helps: bool) -> Result:
        """Return the result of a task; run tasks until it is there if this thread helps, or no other one does."""
        while not future.done():
            if not helps:
                self.recruit()
            if (helps or self._n_helpers == 0) and self._run_next():
                continue
            return self._crew.wait(future) if helps else future.result()
        return future.result()

    def close(self) -> None:
        """Forget tasks that have not begun, and wait for the others."""
        with self._changed:
            self._waiting.clear()
            self._changed.wait_for(lambda: self._n_running <= 0)

    def _help(self, leaves: Callable[[], bool]) -> None:
        while self._run_next(is_helper=True):
            pass

    def _run_next(self, is_helper: bool = False) -> bool:
        """Run the next task in this thread; return whether there was one."""
        with deferred_interrupts(), self._changed:
            if not self._waiting:
                self._n_helpers -= is_helper
                return False
            future, task = self._waiting.popleft()
            self._n_running += 1
        try:
            if not is_helper:
                self.recruit()
            future.set_result(task())
        except BaseException as error:
            future.set_exception(error)
            if not is_helper:
                raise
        finally:
            with self._changed:
                self._n_running -= 1
                self._changed.notify_all()
        return True


@dataclass(frozen=True)
class Workers:
    """Number of threads, and optionally a fixed number of rows per chunk (results do not depend on either).

    After the ``deadline``, a time of `time.perf_counter`, no chunk is started: OutOfTime is raised instead. Nor is one
    started once the tasks that it belongs to are cancelled, which raises Cancelled. At most ``max_tasks`` tasks run at
    the same time, because each takes memory. Large blocks of rows are processed on the ``device``, if there is one.
    Copies with another deadline share the threads.
    """

    n_threads: int = 1
    chunk_rows: int | None = None
    deadline: float = float("inf")
    max_tasks: int | None = None
    device: Device | None = field(default=None, repr=False, compare=False)
    _cancelled: tuple[threading.Event, ...] = field(default=(), repr=False, compare=False)  # of all tasks it is within
    _crew: _Crew = field(default=None, repr=False, compare=False)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self._crew is None:
            object.__setattr__(self, "_crew", _Crew(self.n_threads))

    @property
    def n_at_once(self) -> int:
        """How many items `map_stream` processes at the same time."""
        return self.n_threads if self.device is None else min(self.n_threads, _DEVICE_THREADS)

    @property
    def without_device(self) -> Workers:
        """The same threads, for rows that are processed on the host: those that it reads anyway."""
        return replace(self, device=None)

    def on_device(self) -> AbstractContextManager[None]:
        """Return a context in which this thread uses the device, if there is one."""
        return nullcontext() if self.device is None else self.device.session()

    def check_deadline(self) -> None:
        """Raise OutOfTime if the deadline has passed, Cancelled if the work is cancelled."""
        for event in self._cancelled:  # a generator would take longer
            if event.is_set():
                raise Cancelled
        if self.deadline != float("inf") and time.perf_counter() > self.deadline:
            raise OutOfTime

    def map_rows(
        self, task: Callable[[int, int], Result], n_rows: int, row_cost: float, multiple: int = 64
    ) -> list[Result]:
        """Run ``task(start, stop)`` on chunks of rows, or of something else, and return the results in order.

        Every start is a multiple of 64, so that no two chunks share a word of transposed bits, or of another number.
        ``row_cost`` is the estimated time per row in nanoseconds, which is corrected by the time that earlier calls
        took. A small job is a single chunk.
        """
        estimate = n_rows * row_cost
        code: CodeType | None = getattr(task, "__code__", None)
        cost = estimate * (_corrections.get(code, 1.0) if code else 1.0)
        n_threads = min(self._most_threads(cost), 1 + self._crew.n_idle)
        edges = self._edges(n_rows, cost, n_threads, multiple)
        spent = [0] * len(edges)

        def run(chunk: int) -> Result:
            self.check_deadline()
            begin = time.thread_time_ns()
            result = task(*edges[chunk])
            spent[chunk] = time.thread_time_ns() - begin
            return result

        if n_threads == 1 or len(edges) == 1:
            results = [run(chunk) for chunk in range(len(edges))]
        else:
            results = self._run_in_threads(run, len(edges), min(n_threads, len(edges)))
        if code is not None and estimate > 0 and sum(spent) > _MIN_MEASURED_NS:
            _correct(code, sum(spent) / estimate)
        return results

    def map_tasks(
        self, task: Callable[[Workers, Item], Result], items: Sequence[Item], at_once: int | None = None
    ) -> Generator[Result]:
        """Run ``task(workers, item)`` on each item, several at once if threads are idle; yield the results in order.

        A task uses the ``workers`` that it gets for its own chunks and tasks. The first one runs in the calling thread.
        If the generator is closed early, or a task fails, tasks that have not begun are left out, and those that run
        are cancelled and awaited.
        """
        cancelled = threading.Event()
        at_once = min(self.n_threads, len(items), *(most for most in (self.max_tasks, at_once) if most is not None))
        max_tasks = self.max_tasks and self.max_tasks // max(1, at_once)
        own = replace(self, max_tasks=max_tasks, _cancelled=(*self._cancelled, cancelled))
        if at_once <= 1:
            for item in items:
                self.check_deadline()
                yield task(own, item)
            return
        batch = _Batch(self._crew, at_once - 1)
        futures = [batch.add(partial(task, own, item)) for item in items]
        try:
            for future in futures:
                self.check_deadline()
                yield batch.result_of(future, helps=True)
        finally:  # also after GeneratorExit and KeyboardInterrupt
            cancelled.set()
            batch.close()

    def map_stream(self, task: Callable[[Workers, Item], Result], items: Iterable[Item]) -> Generator[Result]:
        """Do the same with items that are fetched while tasks run, only a few ahead, because they take memory.

        The calling thread fetches items, and runs a task only where no other thread can.
        """
        cancelled = threading.Event()
        own = replace(self, _cancelled=(*self._cancelled, cancelled))
        batch, pending = _Batch(self._crew, self.n_at_once), deque[Future[Result]]()
        self._crew.add_idle(1)  # the calling thread waits most of the time
        try:
            for item in items:
                self.check_deadline()
                pending.append(batch.add(partial(task, own, item)))
                batch.recruit()
                if len(pending) > self.n_at_once + 1:
                    yield batch.result_of(pending.popleft(), helps=False)
            while pending:
                yield batch.result_of(pending.popleft(), helps=False)
        finally:
            cancelled.set()
            batch.close()
            self._crew.add_idle(-1)

    def _edges(self, n_rows: int, cost: float, n_threads: int, multiple: int = 64) -> list[tuple[int, int]]:
        """Return start and stop of each chunk; at least one chunk, which may be empty."""
        if self.chunk_rows is not None:
            size = self.chunk_rows
        elif cost < 2 * MAX_CHUNK_NS and n_threads == 1:
            return [(0, n_rows)]
        else:
            n_chunks = 1 if n_threads == 1 else n_threads << sum(cost / n_threads > each for each in _BALANCED_NS)
            size = -(-n_rows // max(n_chunks, int(cost / MAX_CHUNK_NS)))
        size = max(1, -(-size // multiple)) * multiple
        return [(start, min(start + size, n_rows)) for start in range(0, n_rows, size)] or [(0, 0)]

    def _most_threads(self, cost: float) -> int:
        """Return with how many threads this work is done first, if they are idle."""
        if self.chunk_rows is not None:
            return self.n_threads
        return max(1, min(self.n_threads, int(math.sqrt(cost / _WAKE_NS))))

    def _run_in_threads(self, run: Callable[[int], Result], n_chunks: int, n_threads: int) -> list[Result]:
        """Let the calling thread and idle ones take chunks until none is left.

        Return when all chunks are done, without waiting for threads that have not started yet.
        """
        results: dict[int, Result] = {}
        chunks = iter(range(n_chunks))  # next() on it is atomic
        finished: SimpleQueue[BaseException | None] = SimpleQueue()  # one entry per chunk: None or its exception
        ended: SimpleQueue[None] = SimpleQueue()  # one entry per helper
        stopped = threading.Event()

        def work(leaves: Callable[[], bool]) -> None:
            while not (stopped.is_set() or leaves()) and (chunk := next(chunks, None)) is not None:
                try:
                    results[chunk] = run(chunk)
                except BaseException as error:
                    finished.put(error)
                    return
                finished.put(None)

        def help_out(leaves: Callable[[], bool]) -> None:
            work(leaves)
            ended.put(None)

        n_helpers = 0
        try:
            with deferred_interrupts():  # or a thread may have started that is not counted
                n_helpers = self._crew.start(help_out, n_threads - 1, is_short=True)
            work(_stays)
            for _ in range(n_chunks):
                if (error := finished.get()) is not None:
                    raise error
        except BaseException:
            stopped.set()
            for _ in range(n_helpers):  # no thread may still write to the arrays of the caller
                ended.get()
            raise
        return [results[chunk] for chunk in range(n_chunks)]


def _correct(code: CodeType, factor: float) -> None:
    """Correct the estimates of a task on rows, half by this factor and half by what was measured before."""
    factor = min(_MAX_CORRECTION, max(1 / _MAX_CORRECTION, factor))
    _corrections[code] = (_corrections.get(code, factor) + factor) / 2
