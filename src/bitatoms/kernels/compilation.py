"""Compilation of kernels ahead of a fit, in a few processes, because numba compiles in one thread of a process.

``kernels.json`` lists the kernels that each kind of fit calls, with their arguments; ``make kernels`` records it. It
only saves time: a kernel that is not listed is compiled when it is called.
"""

from __future__ import annotations

import gc
import json
import logging
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple

import numba
import numpy as np

from ..system.locks import FileLocked, lock
from .jit import CACHE_FOLDER, compiled

FILE = Path(__file__).with_name("kernels.json")
_INTERVAL = 0.05  # seconds until Ctrl-C takes effect
_LOG_INTERVAL = 2.0  # seconds
_OPTIMIZATION = "1"  # of LLVM: kernels are as fast as with 3, the default of numba, and take two thirds of the time
_CODERS = "coding", "removal"  # modules of kernels that inline the coder of rows: one process compiles its functions
logger = logging.getLogger(__name__)


class ListedKernel(NamedTuple):
    """A kernel of the list."""

    name: str  # module and function, such as "coding.code_rows"
    jobs: tuple[str, ...]  # the kinds of fits that call it, such as "thorough search, or"
    seconds: float  # of CPU time to compile it after those before it, measured on one machine
    arguments: tuple[Any, ...]  # what they are: see `example`

    @property
    def is_compiled(self) -> bool:
        """Whether a process has compiled and stored it."""
        return CACHE_FOLDER is not None and (CACHE_FOLDER / f"{self.name}.compiled").exists()

    def compile(self) -> None:
        """Compile it and store it."""
        assert CACHE_FOLDER is not None
        module, function = self.name.split(".")
        kernel = getattr(import_module(f"{__package__}.cpu.{module}"), function)
        compiled(kernel.__wrapped__, tuple(numba.typeof(example(argument)) for argument in self.arguments))
        (CACHE_FOLDER / f"{self.name}.compiled").touch()


def example(argument: Any) -> Any:
    """Return a value of the type of an argument.

    An array is its data type and number of dimensions, such as "uint64 2", with "const" if it is read-only; a named
    tuple its class and fields.
    """
    if isinstance(argument, dict):
        ((name, fields),) = argument.items()
        module, _, struct = name.rpartition(".")
        return getattr(import_module(f"{__package__}.{module}"), struct)(*map(example, fields))
    if isinstance(argument, list):
        return tuple(map(example, argument))
    dtype, *array = argument.split()
    if dtype == "none":
        return None
    if not array:
        return np.dtype(dtype).type(0) if dtype == "float32" else np.zeros((), dtype).item()
    value = np.empty((0,) * int(array[0]), dtype)
    value.flags.writeable = "const" not in array
    return value


@cache
def listed_kernels() -> tuple[ListedKernel, ...]:
    """Return the list, in the order in which fits call the kernels first."""
    entries = json.loads(FILE.read_text("utf-8"))
    return tuple(ListedKernel(e["kernel"], tuple(e["jobs"]), e["seconds"], tuple(e["arguments"])) for e in entries)


def kernels_of(jobs: Iterable[str]) -> list[ListedKernel]:
    """Return the kernels of some kinds of fits."""
    wanted = set(jobs)
    return [kernel for kernel in listed_kernels() if wanted & set(kernel.jobs)]


def compile_numbers(numbers: Sequence[int]) -> None:
    """Compile kernels, by their numbers in the list: what a process does that compiles for another one."""
    gc.disable()  # nothing that numba makes is garbage before the process ends; to look for some takes a tenth longer
    for number in numbers:
        listed_kernels()[number].compile()


def prepare(jobs: Iterable[str], n_processes: int) -> None:
    """Compile the kernels of some kinds of fits that are not in the cache, and log how far that is.

    If no process can be started, or one ends early, they are compiled when they are called.
    """
    missing = [kernel for kernel in kernels_of(jobs) if not kernel.is_compiled]
    if not missing or not can_start_processes():
        return
    logged = -math.inf

    def log(name: str, n_done: int, n_all: int) -> None:
        nonlocal logged
        if time.perf_counter() - logged >= _LOG_INTERVAL:
            logged = time.perf_counter()
            start = "; a first fit takes 10 to 40 seconds longer" if n_done == 0 else ""
            logger.info("compiling kernels (first run only): %d of %d%s", n_done, n_all, start)

    try:
        compile_in_processes(missing, n_processes, log)
    except OSError as error:  # it only saves time
        logger.info("kernels are compiled when they are called: %s", error)


def can_start_processes() -> bool:
    """Return whether kernels can be compiled in other processes: there is a cache, and Python itself can be started."""
    is_python = Path(sys.executable or "").stem.lower().startswith(("python", "pypy"))
    return CACHE_FOLDER is not None and is_python and not getattr(sys, "frozen", False)


def compile_in_processes(
    kernels: Sequence[ListedKernel], n_processes: int, report: Callable[[str, int, int], object]
) -> None:
    """Compile kernels in other processes and store them; wait for a process that compiles for the same folder.

    ``report`` is called with the name of a kernel that was compiled, the number of these and of all.
    """
    assert CACHE_FOLDER is not None
    report("", 0, len(kernels))
    processes: list[subprocess.Popen[bytes]] = []
    with open(CACHE_FOLDER / "lock", "wb") as file:
        _await_lock(file)
        left = [kernel for kernel in kernels if not kernel.is_compiled]
        try:
            for share in divided(left, n_processes):
                processes.append(_start(share))
            while left:
                has_ended = all(process.poll() is not None for process in processes)
                for kernel in [kernel for kernel in left if kernel.is_compiled]:
                    left.remove(kernel)
                    report(kernel.name, len(kernels) - len(left), len(kernels))
                if has_ended:
                    break
                time.sleep(_INTERVAL)
        finally:
            for process in processes:
                process.kill()
                process.wait()


def _await_lock(file: IO[bytes]) -> None:
    """Wait until no other process compiles kernels for the folder of this file."""
    while True:
        try:
            lock(file)
            return
        except FileLocked:
            time.sleep(_INTERVAL)


def _start(kernels: Sequence[ListedKernel]) -> subprocess.Popen[bytes]:
    """Start a process that compiles kernels."""
    numbers = [listed_kernels().index(kernel) for kernel in kernels]
    start = (
        f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import compile_numbers; compile_numbers({numbers})"
    )
    settings = {"NUMBA_OPT": _OPTIMIZATION, "NUMBA_CACHE_DIR": numba.config.CACHE_DIR}
    return subprocess.Popen(
        [sys.executable, "-c", start],
        env={**os.environ, **settings},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
    )


def divided(kernels: Sequence[ListedKernel], n_processes: int) -> list[list[ListedKernel]]:
    """Divide kernels evenly among up to this many processes: those that share most of their functions together."""
    groups: dict[str, list[ListedKernel]] = {}
    for kernel in kernels:
        module = kernel.name.partition(".")[0]
        groups.setdefault(_CODERS[0] if module in _CODERS else module, []).append(kernel)
    shares: list[list[ListedKernel]] = [[] for _ in range(n_processes)]
    for group in sorted(groups.values(), key=_seconds, reverse=True):
        min(shares, key=_seconds).extend(group)
    return [share for share in shares if share]


def _seconds(kernels: Iterable[ListedKernel]) -> float:
    return sum(kernel.seconds for kernel in kernels)
