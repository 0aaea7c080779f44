"""Compilation of kernels: serial, without the GIL, cached by numba where a cache folder is writable.

The cache saves time only. Where its files cannot be read or written, kernels are compiled.
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.sigutils import normalize_signature
from numba.extending import intrinsic

from ..interrupts import deferred_interrupts
from .ahead import CompiledElsewhere, ahead
from .inlining import KernelCompiler, PartCompiler
from .signatures import all_variants, encoded

logger = logging.getLogger(__name__)

# Kernels do not count references to arrays (``_nrt=False``): counting costs more than most kernels, and the caller
# holds the arrays. They therefore cannot allocate.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "_nrt": False}


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that Python code calls. The caller allocates; the kernel checks nothing and has no options."""
    # Without forceinline=False, a kernel would be inlined if the first call of it were in an inlined function.
    compiled = _without_literals(numba.njit(forceinline=False, pipeline_class=KernelCompiler, **_OPTIONS)(function))
    try:
        compiled._cache = KernelCache(function)
    except (RuntimeError, OSError):  # no writable cache folder: compile in each process
        compiled._cache = NoKernelCache()
    compile_for_args = compiled._compile_for_args

    def compile_or_wait(*args: Any, **keywords: Any) -> Any:
        while True:
            try:
                with _uninterrupted():
                    return compile_for_args(*args, **keywords)
            except CompiledElsewhere as elsewhere:
                elsewhere.helper.wait(elsewhere.key)

    compiled._compile_for_args = compile_or_wait
    return compiled


def compile_for_another(cache_folder: str, numbers: Sequence[int]) -> None:
    """Be a process that compiles for another one: compile kernels, by their numbers in the list, and print their keys.

    If the input ends, stop after the current kernel.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the other process
    numba.config.CACHE_DIR = cache_folder
    waits_for_end = threading.Thread(target=sys.stdin.read, daemon=True)
    waits_for_end.start()
    for variant in (all_variants()[number] for number in numbers):
        with _uninterrupted():
            variant.dispatcher._compilation_chain_init_hook()
            variant.dispatcher.compile(variant.types)
        print(variant.key, flush=True)
        if not waits_for_end.is_alive():
            break
    os._exit(0)  # not waiting for the thread


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Compile in one thread at a time: an interrupt would leave llvmlite's lock locked, for which others wait."""
    with deferred_interrupts(), global_compiler_lock:
        yield


class KernelFiles(IndexDataCacheFile):
    """The files of a kernel: an index, and one file per variant, whose name is its own.

    numba numbers the files of variants, and names one in the index before it is written. A process that is killed
    between the two, or another one that reads the index then, would take the file of an earlier version of the kernel,
    or of another processor.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        # numba checks only the file of the kernel, but kernels inline functions of other files. The version is also
        # compared before numba unpickles the index, which may name modules that no longer exist.
        self._version = f"{numba.__version__} {_sources()}"

    def save(self, key: Any, data: Any) -> None:
        """Store a variant, then name it in the index, and remove files that the index does not name."""
        digest = hashlib.blake2b(self._dump((self._version, key)), digest_size=8)
        name = self._data_name(int(digest.hexdigest(), 16))
        self._save_data(name, data)
        overloads = {**self._load_index(), key: name}
        self._save_index(overloads)
        stem = self._index_name.removesuffix("nbi")
        for other in os.listdir(self._cache_path):
            if other.startswith(stem) and other.endswith(".nbc") and other not in overloads.values():
                with suppress(OSError):
                    os.unlink(self._data_path(other))


class KernelCache(FunctionCache):
    """The cache of a kernel: as numba's, but files that cannot be read or written do not raise an error."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        # Without the stamp of the file of the kernel, which has its time in some versions of numba.
        self._cache_file = KernelFiles(self._cache_path, self._impl.filename_base, source_stamp="")

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled kernel for a signature, or None if it must be compiled."""
        loaded = None
        try:
            # numba would first load all that it can compile, which takes longer than all kernels of a fit.
            with self._guard_against_spurious_io_errors():
                loaded = self._load_overload(sig, target_context)
        except Exception as error:  # unpickling a truncated file may raise anything
            self._discard()
            _warn_once(f"a file of the cache of compiled kernels in {self.cache_path} is corrupt", error)
        if loaded is None:
            name = f"{self._py_func.__module__.rpartition('.')[2]}.{self._py_func.__name__}"
            key = f"{name} {encoded(normalize_signature(sig)[0])}"
            n_all = ahead.missing(key, self.cache_path, _progress.compiled_elsewhere)
            _progress.log("first run only", n_all)
        return loaded

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store a compiled kernel, if possible."""
        try:
            super().save_overload(sig, data)
        except Exception as error:  # as above, because numba reads the index first; and a full disk
            self._discard()
            _warn_once(f"compiled kernels cannot be stored in {self.cache_path}", error)

    def _discard(self) -> None:
        """Remove the index, so that no later process reads files that are corrupt or incomplete."""
        with suppress(OSError):
            os.unlink(self._cache_file._index_path)


class NoKernelCache(NullCache):
    """No cache: a kernel is compiled in each process."""

    def load_overload(self, sig: Any, target_context: Any) -> None:
        """Return None: the kernel must be compiled."""
        _progress.log("in every process, because no folder for compiled kernels is writable")


class _Progress:
    """The number of kernels that were compiled since this process began: a fit seems to hang until they are.

    How many a fit needs depends on its data; those of its kind are known if they are compiled ahead.
    """

    def __init__(self) -> None:
        self.n_kernels = self._n_all = 0
        self._logged = -math.inf  # when

    def log(self, how_often: str, n_more: int | None = None) -> None:
        """Count a kernel, the first one of ``n_more`` if that is known, and log the number now and then."""
        if n_more is not None:
            self._n_all = self.n_kernels + n_more
        self.n_kernels += 1
        if time.monotonic() - self._logged >= _LOG_INTERVAL:
            self._logged = time.monotonic()
            how_many = f"of {self._n_all}" if self.n_kernels <= self._n_all else "so far"
            start = "; a first fit takes 5 to 30 seconds longer" if self.n_kernels == 1 else ""
            logger.info("compiling kernels (%s): %d %s%s", how_often, self.n_kernels, how_many, start)

    def compiled_elsewhere(self, _: Any) -> None:
        """Count a kernel that another process compiled."""
        self.log("first run only")


_LOG_INTERVAL = 2.0  # seconds
_progress = _Progress()


_warned: set[str] = set()


def _warn_once(problem: str, error: Exception) -> None:
    """Warn about the cache, once for each problem: many kernels have the same one."""
    if problem not in _warned:
        _warned.add(problem)
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        warnings.warn(f"{problem} ({reason}); kernels are compiled again", RuntimeWarning, stacklevel=2)


if hasattr(os, "register_at_fork"):
    # A child forked while another thread compiles would wait forever for the lock of that thread.
    os.register_at_fork(
        before=global_compiler_lock.acquire,
        after_in_parent=global_compiler_lock.release,
        after_in_child=global_compiler_lock.release,
    )


_NO_CODE = "ahead.py", "signatures.py"  # when kernels are compiled, not how


@cache
def _sources() -> str:
    """Return a hash of all kernel files. Their times would differ in each installation, and in a container image."""
    digest = hashlib.blake2b(digest_size=16)
    folder = Path(__file__).parent
    for file in sorted({*folder.glob("*.py"), *folder.glob("cpu/*.py")} - {folder / name for name in _NO_CODE}):
        content = file.read_bytes()
        digest.update(f"{file.name} {len(content)} ".encode() + content)
    return digest.hexdigest()


def inline(function: Any) -> Any:
    """Compile a function, or a kernel, that other kernels call; it is inlined into them."""
    return _part(function, forceinline=True)


def subroutine(function: Any) -> Any:
    """Compile a function, or a kernel, that other kernels call and that LLVM need not inline into them.

    To optimize a large kernel takes longer than to optimize its parts. To call a kernel itself would optimize it twice,
    and translate it to machine code that is perhaps never called.
    """
    return _part(function, forceinline=False)


def _part(function: Any, forceinline: bool) -> Any:
    """Compile a function that only kernels call."""
    function = getattr(function, "py_func", function)
    options = {"forceinline": forceinline, "no_cpython_wrapper": True, "pipeline_class": PartCompiler}
    return _without_literals(numba.njit(**options, **_OPTIONS)(function))


def _without_literals(compiled: Any) -> Any:
    """Let kernels call a function with constants of type int64 or bool.

    numba would compile it again for each constant. LLVM propagates constants into a function that is inlined.
    """
    get_call_template = compiled.get_call_template

    def get_general_template(args: Any, keywords: Any) -> Any:
        return get_call_template([numba.types.unliteral(arg) for arg in args], keywords)

    compiled.get_call_template = get_general_template
    return compiled


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
        table = context.make_array(signature.args[0])(context, builder, arguments[0])
        stride = builder.extract_value(table.strides, 0)
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        start = builder.gep(builder.bitcast(table.data, byte), [builder.mul(stride, arguments[1])])
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
        builder.call(function, [start, number(0), number(3), number(1)])  # read access, high locality, data cache
        return context.get_dummy_value()

    return types.void(words, types.intp), codegen


@intrinsic
def copy_array(typingctx: Any, source: Any, target: Any) -> Any:
    """Copy a contiguous array to another of the same shape and type."""
    if source.layout != "C" or target.layout != "C" or source.dtype != target.dtype:
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        origin, copy = (
            context.make_array(kind)(context, builder, array)
            for kind, array in zip(signature.args, arguments, strict=True)
        )
        cgutils.raw_memcpy(builder, copy.data, origin.data, origin.nitems, origin.itemsize)
        return context.get_dummy_value()

    return types.void(source, target), codegen
