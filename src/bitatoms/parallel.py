"""Row blocks, and the one thread pool that runs kernels over them."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_MIN_PARALLEL_NS = 0.4e6  # nanoseconds of work below which handing it out costs more than it saves
_CHUNKS_PER_THREAD = 2  # more than one, so that a thread that wakes up late or has slow rows keeps no other waiting
_MIN_BALANCED_NS = 20e6  # nanoseconds of work above which twice as many
MAX_CHUNK_NS = 100e6  # nanoseconds of work after which Ctrl-C should be able to stop it

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_pool_size = 0


def _forget_pool() -> None:
    """A forked child has none of its parent's threads: it makes its own pool when it needs one."""
    global _lock, _pool, _pool_size
    _lock, _pool, _pool_size = threading.Lock(), None, 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)


def _submit(work: Callable[[], None], times: int) -> list[Future[None]]:
    """Have so many threads of the pool work; it is made or enlarged when first needed."""
    global _pool, _pool_size
    with _lock:  # held while submitting too, for another thread may be about to put a larger pool in its place
        if _pool is None or _pool_size < times:
            if _pool is not None:
                _pool.shutdown(wait=False)
            _pool, _pool_size = ThreadPoolExecutor(times, thread_name_prefix="bitatoms"), times
        return [_pool.submit(work) for _ in range(times)]


def count_threads(n_jobs: int | None) -> int:
    """Threads that ``n_jobs`` asks for: None is 1, -1 all processors, -2 all but one, as in scikit-learn.

    Examples
    --------
    >>> count_threads(None), count_threads(3)
    (1, 3)
    """
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not hasattr(n_jobs, "__index__"):
        raise TypeError(f"n_jobs must be a whole number or None, not {n_jobs!r}")
    jobs = n_jobs.__index__()
    if jobs == 0:
        raise ValueError("n_jobs must not be 0; 1 is one thread, -1 is all processors")
    if jobs > 0:
        return jobs
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, available + 1 + jobs)


@dataclass(frozen=True)
class Workers:
    """How many threads work, and, to test that it makes no difference, on how many rows at a time."""

    n_threads: int = 1
    chunk_rows: int | None = None

    def map_rows(self, task: Callable[[int, int], Result], n_rows: int, row_cost: float) -> list[Result]:
        """Run ``task(start, stop)`` over blocks of rows and return the results in the order of the rows.

        Every start is a multiple of 64, so that no two blocks share a word of transposed bits. A job of less than
        about a millisecond, by ``row_cost`` in nanoseconds, is one block.
        """
        edges = self._edges(n_rows, n_rows * row_cost)
        if len(edges) == 1 or self.n_threads == 1:
            return [task(start, stop) for start, stop in edges]
        return self._share_out(task, edges)

    def is_one_chunk(self, n_rows: int, row_cost: float) -> bool:
        """Whether a job of this size is not shared out."""
        return len(self._edges(n_rows, n_rows * row_cost)) == 1

    def map_stream(self, task: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Run ``task(item)`` on items as they come, and give the results in their order.

        The caller fetches the next items meanwhile, no more than a few ahead of what is done, so that no more of them
        are in memory. When it is left early, what runs is waited for and what does not is dropped.
        """
        pending: deque[Future[Result]] = deque()
        pool = ThreadPoolExecutor(self.n_threads, thread_name_prefix="bitatoms")
        try:
            for item in items:
                pending.append(pool.submit(task, item))
                if len(pending) > self.n_threads + 1:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _edges(self, n_rows: int, cost: float) -> list[tuple[int, int]]:
        """Where the blocks begin and end; at least one block, maybe empty."""
        if self.chunk_rows is not None:
            size = self.chunk_rows
        elif cost < (2 * MAX_CHUNK_NS if self.n_threads == 1 else _MIN_PARALLEL_NS):
            return [(0, n_rows)]
        else:
            n_blocks = self.n_threads * _CHUNKS_PER_THREAD * (2 if cost > _MIN_BALANCED_NS else 1)
            size = -(-n_rows // max(n_blocks, int(cost / MAX_CHUNK_NS)))
        size = max(64, -(-size // 64) * 64)
        return [(start, min(start + size, n_rows)) for start in range(0, n_rows, size)] or [(0, 0)]

    def _share_out(self, task: Callable[[int, int], Result], edges: list[tuple[int, int]]) -> list[Result]:
        """The caller and the pool's threads each take the next block until none is left.

        It is over when every block is done, not when every thread was there: one that wakes up late finds no block.
        """
        results: dict[int, Result] = {}
        blocks = iter(range(len(edges)))  # next() on it is atomic
        told: SimpleQueue[BaseException | None] = SimpleQueue()  # an entry for each block: None, or what went wrong
        stopped = threading.Event()

        def work() -> None:
            for block in blocks:
                if stopped.is_set():
                    return
                try:
                    results[block] = task(*edges[block])
                except BaseException as error:
                    told.put(error)
                    return
                told.put(None)

        pending = _submit(work, min(self.n_threads, len(edges)) - 1)
        try:
            work()
            for _ in edges:
                if (error := told.get()) is not None:
                    raise error
        except BaseException:
            stopped.set()
            wait(pending)  # no thread may go on writing to the caller's arrays
            raise
        return [results[block] for block in range(len(edges))]
