"""Kernels compiled ahead of their first call, by other processes, while this one compiles those that it calls first.

numba compiles in one thread of a process at a time. What a process compiles, others load from numba's cache.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from heapq import heappop, heappush
from pathlib import Path
from typing import IO

import numba

from ..locks import FileLocked, lock
from .signatures import Variant, all_variants

_START_SECONDS = 1.0  # of CPU time until a process compiles
_MIN_SECONDS = 3.0  # of work for a process
_MAX_WAIT = 120.0  # seconds; a share of the kernels takes less than a minute, unless the process is suspended
_MAX_DELAY = 0.1  # seconds until Ctrl-C takes effect
_logger = logging.getLogger(__name__)


class CompiledElsewhere(Exception):
    """Another process is compiling the kernel: wait for it, then load the kernel."""

    def __init__(self, helper: Helper, key: str) -> None:
        super().__init__()
        self.helper, self.key = helper, key


class Helper:
    """A process that compiles kernels one after the other and stores them in the cache.

    It ends when all are compiled, or, after the kernel that it is at, when this process ends.
    """

    def __init__(
        self, variants: Sequence[Variant], done: Callable[[Variant], object], ended: Callable[[], object]
    ) -> None:
        if getattr(sys, "frozen", False) or not Path(sys.executable or "").stem.lower().startswith(("python", "pypy")):
            raise OSError(f"{sys.executable!r} is not Python")  # but an application that contains it
        numbers = [all_variants().index(variant) for variant in variants]
        start = f"import sys; sys.path[:] = {sys.path!r}; from {__package__} import jit"
        start += f"; jit.compile_for_another({numba.config.CACHE_DIR!r}, {numbers})"
        self._process = subprocess.Popen(
            [sys.executable, "-c", start],
            stdin=subprocess.PIPE,  # its end tells the process that this one has ended
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        self._left = {variant.key: variant for variant in variants}
        self._changed, self._done, self._ended = threading.Condition(), done, ended
        threading.Thread(target=self._listen, name="bitatoms-compiled", daemon=True).start()

    def _listen(self) -> None:
        """Take note of the kernels that are compiled, until the process ends."""
        try:
            with suppress(OSError), self._process as process:  # it may end at any time
                assert process.stdout is not None
                for line in process.stdout:
                    self._take(line.rstrip("\n"))
        finally:
            with self._changed:
                self._left.clear()
                self._changed.notify_all()
            self._ended()

    def _take(self, key: str) -> None:
        """Take note of a kernel that is compiled, unless this is something else that the start of Python prints."""
        with self._changed:
            variant = self._left.pop(key, None)
            self._changed.notify_all()
        if variant is not None:
            self._done(variant)

    @property
    def is_busy(self) -> bool:
        """Whether the process still compiles."""
        return self._process.poll() is None

    def has(self, key: str) -> bool:
        """Whether the process is about to compile a kernel."""
        return key in self._left

    def wait(self, key: str) -> None:
        """Wait until a kernel is compiled, or the process ends; end one that takes far too long."""
        deadline = time.monotonic() + _MAX_WAIT
        with self._changed:
            while key in self._left and time.monotonic() < deadline:
                self._changed.wait(_MAX_DELAY)
        if self.has(key):
            self.stop()

    def stop(self) -> None:
        """End the process."""
        with self._changed:
            self._left.clear()
        self._process.kill()
        self._process.wait()


class Ahead:
    """The kinds of fits that this process is about to make, and the processes that compile their kernels."""

    def __init__(self) -> None:
        self._jobs: dict[str, int] = {}  # whose kernels were not looked for yet; the number of processes for each
        self._known: set[str] = set()
        self._helpers: list[Helper] = []
        self._lock: IO[bytes] | None = None  # one process at a time has helpers for a folder

    def expect(self, jobs: Iterable[str], n_processes: int) -> None:
        """Let up to this many processes, with this one, compile the kernels of some jobs as soon as one is missing."""
        if n_processes > 1 and multiprocessing.parent_process() is None:  # not in each process of joblib or Dask
            self._jobs |= dict.fromkeys(set(jobs) - self._known, n_processes)

    def missing(self, key: str, folder: str, done: Callable[[Variant], object]) -> int | None:
        """Prepare for a kernel that is not in the cache.

        Returns the number of kernels that are to be compiled if it became known, otherwise None. The caller holds the
        lock of the compiler.

        Raises
        ------
        CompiledElsewhere
            Another process compiles it.
        """
        n_all = None
        if self._jobs and not any(helper.is_busy for helper in self._helpers):
            try:
                n_all = self._start(key, folder, done)
            except Exception as error:  # to compile ahead only saves time
                _logger.info("kernels are compiled by one process: %s", error)
        for helper in self._helpers:
            if helper.has(key):
                raise CompiledElsewhere(helper, key)
        return n_all

    def _start(self, key: str, folder: str, done: Callable[[Variant], object]) -> int | None:
        """Start processes for the kernels of all expected jobs that are not in the cache."""
        jobs, n_processes = set(self._jobs), max(self._jobs.values())
        variants = [variant for variant in all_variants() if jobs & set(variant.jobs)]
        if key not in {variant.key for variant in variants}:
            return None
        self._known |= jobs
        self._jobs.clear()
        if not self._holds(folder):
            return None
        try:
            variants = [variant for variant in variants if not is_stored(variant)]
            self._helpers = []
            for share in _after_first(variants, n_processes):
                self._helpers.append(Helper(share, done, self._release))
        finally:
            self._release()  # if there are none
        return len(variants)

    def forget(self) -> None:
        """Forget the processes of the parent, in a forked child: only threads of the parent hear of them."""
        self._jobs, self._helpers = {}, []
        if self._lock is not None:
            self._lock.close()  # the parent still holds it

    def _holds(self, folder: str) -> bool:
        """Return whether no other process compiles kernels ahead for this folder."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        file = open(Path(folder, "ahead.lock"), "wb")  # noqa: SIM115 (closed by _release)
        try:
            lock(file)
        except (FileLocked, OSError):
            file.close()
            return False
        self._lock = file
        return True

    def _release(self) -> None:
        """Let other processes compile ahead, if no process compiles for this one any more."""
        if self._lock is not None and not any(helper.is_busy for helper in self._helpers):
            self._lock.close()


def is_stored(variant: Variant) -> bool:
    """Return whether a kernel is in the cache."""
    try:
        dispatcher = variant.dispatcher
        cache, codegen = dispatcher._cache, dispatcher.targetctx.codegen()
        return cache._index_key(variant.types, codegen) in cache._cache_file._load_index()
    except Exception:  # a corrupt index, which will be replaced
        return False


def divided(variants: Sequence[Variant], n_processes: int) -> list[list[Variant]]:
    """Divide kernels evenly among up to this many processes; each share has the order of the list."""
    shares = [(0.0, number, list[list[Variant]]()) for number in range(n_processes)]
    for group in sorted(_by_kernel(variants), key=_seconds, reverse=True):
        seconds, number, groups = heappop(shares)
        heappush(shares, (seconds + _seconds(group), number, [*groups, group]))
    chosen = [{variant for group in groups for variant in group} for _, _, groups in shares if groups]
    return [[variant for variant in variants if variant in share] for share in chosen]


def _after_first(variants: Sequence[Variant], n_processes: int) -> list[list[Variant]]:
    """Divide kernels among the processes to start; the one that needs them in this order compiles the first ones."""
    n_helpers = min(n_processes - 1, int(_seconds(variants) / _MIN_SECONDS))
    own = (_seconds(variants) + _START_SECONDS * n_helpers) / (1 + n_helpers)
    groups = _by_kernel(variants)
    while groups and own >= _seconds(groups[0]) / 2:
        own -= _seconds(groups.pop(0))
    left = [variant for group in groups for variant in group]
    return divided(left, n_helpers) if n_helpers else []


def _by_kernel(variants: Sequence[Variant]) -> list[list[Variant]]:
    """Return the variants of each kernel: one process compiles them, because they share a file."""
    groups: dict[str, list[Variant]] = {}
    for variant in variants:
        groups.setdefault(variant.kernel, []).append(variant)
    return list(groups.values())


def _seconds(variants: Iterable[Variant]) -> float:
    return sum(variant.seconds for variant in variants)


ahead = Ahead()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=ahead.forget)
