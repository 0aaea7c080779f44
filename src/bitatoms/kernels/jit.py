"""Compilation of kernels: serial, without the GIL, cached by numba where a cache folder is writable."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

# Kernels do not count references to arrays (``_nrt=False``): counting costs more than most kernels, and the caller
# holds the arrays. They therefore cannot allocate.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "_nrt": False}


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function that Python code calls. The caller allocates; the kernel checks nothing and has no options."""
    try:
        compiled = numba.njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # no writable cache folder: compile in each process
        return numba.njit(**_OPTIONS)(function)
    # numba checks only the file of the kernel, but kernels inline functions of other files. The version is also
    # compared before numba unpickles the index, which may name modules that no longer exist.
    index = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if index is not None:
        index._version = f"{index._version} {_sources()}"
    return compiled


@cache
def _sources() -> tuple[tuple[str, int, int], ...]:
    """Return names, times and sizes of all kernel files."""
    files = sorted(Path(__file__).parent.rglob("*.py"))
    return tuple((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files)


def inline(function: Callable[..., Any]) -> Any:
    """Compile a function that kernels call; it is inlined into them."""
    return numba.njit(forceinline=True, no_cpython_wrapper=True, **_OPTIONS)(function)


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
