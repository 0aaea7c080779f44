"""Kernels: functions that numba compiles, serial and without the GIL, and loads from its cache later on.

A kernel is called with one type of each argument, so that it is compiled once. `compilation.py` compiles those of a fit
ahead of it. The cache saves time only: where its files cannot be read or written, kernels are compiled in the process.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import shutil
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from llvmlite import binding, ir
from numba import types
from numba.core import event
from numba.extending import intrinsic, register_jitable

from ..system.interrupts import deferred_interrupts

logger = logging.getLogger(__name__)
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


def _sources() -> str:
    """Return a hash of what compiled kernels depend on: their sources, the compiler and the processor.

    numba compares the file of a kernel only, but kernels inline functions of other files. With a folder for each hash,
    no process ever finds kernels of another version.
    """
    names = numba.__version__, sys.version, binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
    digest = hashlib.blake2b("\n".join(names).encode(), digest_size=8)
    folder = Path(__file__).parent
    for file in sorted([folder / "jit.py", folder / "structs.py", folder / "views.py", *folder.glob("cpu/*.py")]):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _cache_folder() -> Path | None:
    """Return the folder of compiled kernels: where numba is told to, beside the sources, or of the user; None if none.

    As numba does, it takes the first folder that is writable.
    """
    name = f"bitatoms-{_sources()}"
    if numba.config.CACHE_DIR:
        parents = [Path(numba.config.CACHE_DIR)]
    else:
        caches = {"win32": os.environ.get("LOCALAPPDATA", ""), "darwin": "~/Library/Caches"}
        of_user = caches.get(sys.platform) or os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        parents = [Path(__file__).with_name("__pycache__"), Path(of_user).expanduser()]
    for parent in parents:
        try:
            (parent / name).mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=parent / name).close()
            return parent / name
        except OSError:
            continue
    return None


CACHE_FOLDER = _cache_folder()


def compiled(function: Callable[..., Any], signature: Any = None, in_cache: bool = True) -> Any:
    """Return numba's function for a kernel, compiled at once if there is a signature, and otherwise when called."""
    arguments = [] if signature is None else [signature]
    given = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(CACHE_FOLDER or "")  # numba reads it here, and nowhere else
    try:
        return numba.njit(*arguments, cache=in_cache and CACHE_FOLDER is not None, **_OPTIONS)(function)
    finally:
        numba.config.CACHE_DIR = given


class _Compilation(event.Listener):
    """Logs that this process compiles a kernel: a fit seems to hang until it has."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function  # and not those that it calls

    def on_start(self, event: Any) -> None:
        """Log that compilation begins."""
        if event.data["dispatcher"].py_func is self._function:
            logger.info("compiling kernel %s", self._function.__name__)

    def on_end(self, event: Any) -> None:
        """Do nothing."""


_compiling = threading.RLock()  # one thread at a time compiles


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that Python code calls. The caller allocates; the kernel checks nothing and has no options.

    Its arguments are arrays, named tuples of them, and numbers; it turns arrays into views first (see `views.py`).
    """
    run = compiled(function)
    is_ready = False

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        return run(*arguments) if is_ready else first_call(*arguments)

    def first_call(*arguments: Any) -> Any:
        nonlocal run, is_ready
        # An interrupt within numba would leave a lock of it locked, for which other threads wait.
        with deferred_interrupts(), _compiling, event.install_listener("numba:compile", _Compilation(function)):
            try:
                result = run(*arguments)
            except numba.errors.NumbaError:
                raise
            except Exception as error:  # kernels raise none: a file of the cache is corrupt, or cannot be written
                _ignore_cache(error)
                run = compiled(function, in_cache=False)
                result = run(*arguments)
            is_ready = True
            return result

    return call


_warned: set[str] = set()


def _ignore_cache(error: Exception) -> None:
    """Warn, once, that the cache cannot be used; remove it if a file is corrupt."""
    if isinstance(error, OSError):
        problem = f"compiled kernels cannot be stored in {CACHE_FOLDER}"
    else:
        problem = f"a file of the cache of compiled kernels in {CACHE_FOLDER} is corrupt"
        shutil.rmtree(str(CACHE_FOLDER), ignore_errors=True)
    if problem not in _warned:
        _warned.add(problem)
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        warnings.warn(f"{problem} ({reason}); kernels are compiled again", RuntimeWarning, stacklevel=4)


if hasattr(os, "register_at_fork"):
    # A child forked while another thread compiles would wait forever for numba's lock.
    os.register_at_fork(
        before=_compiling.acquire, after_in_parent=_compiling.release, after_in_child=_compiling.release
    )


def inline(function: Any) -> Any:
    """Compile a function, or a kernel, that other kernels call; it is inlined into them."""
    return register_jitable(forceinline=True, **_OPTIONS)(getattr(function, "__wrapped__", function))


def subroutine(function: Any) -> Any:
    """Compile a function, or a kernel, that other kernels call, and that LLVM need not inline into them.

    To optimize a large kernel takes longer than to optimize its parts.
    """
    return register_jitable(**_OPTIONS)(getattr(function, "__wrapped__", function))


@intrinsic
def popcount(typingctx: Any, word: Any) -> Any:
    """Return the number of ones in an unsigned integer, as the same type."""
    if not isinstance(word, types.Integer):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return word(word), codegen


@intrinsic
def lowest_bit(typingctx: Any, word: Any) -> Any:
    """Return the index of the lowest one in a non-zero unsigned integer."""
    if not isinstance(word, types.Integer):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        index = builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))
        return context.cast(builder, index, word, types.intp)

    return types.intp(word), codegen


@intrinsic
def prefetch(typingctx: Any, words: Any, i: Any) -> Any:
    """Prefetch row i of a table into the cache."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data, n_words = builder.extract_value(arguments[0], 0), builder.extract_value(arguments[0], [1, 1])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        start = builder.bitcast(builder.gep(data, [builder.mul(n_words, arguments[1])]), byte)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
        builder.call(function, [start, number(0), number(3), number(1)])  # read access, high locality, data cache
        return context.get_dummy_value()

    return types.void(words, types.intp), codegen
