"""How a kernel is compiled: serial, without the GIL, kept in numba's cache where there is a place to keep it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

# Neither kernels nor pieces count references to arrays (``_nrt=False``): counting costs more than most of them do, and
# the caller holds the arrays. So they cannot allocate.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "_nrt": False}


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a loop over packed words; the caller allocates, and the kernel neither checks nor has options."""
    try:
        compiled = numba.njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # numba found no folder it may write its cache to: compile anew in each process
        return numba.njit(**_OPTIONS)(function)
    # Numba's cache checks only the kernel's own file, but kernels inline functions of other files. The version is also
    # compared before numba unpickles an index, which may name modules that no longer exist.
    index = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if index is not None:
        index._version = f"{index._version} {_sources()}"
    return compiled


@cache
def _sources() -> tuple[tuple[str, int, int], ...]:
    """Names, times and sizes of the files that kernels are made of."""
    files = sorted(Path(__file__).parent.rglob("*.py"))
    return tuple((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files)


def piece(function: Callable[..., Any]) -> Any:
    """A part of kernels, put into them where it is called."""
    return numba.njit(forceinline=True, no_cpython_wrapper=True, **_OPTIONS)(function)


@intrinsic
def popcount(typingctx: Any, word: Any) -> Any:
    """Number of ones in an unsigned integer, in the same type (one instruction where the machine has it)."""
    if not isinstance(word, types.Integer):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return word(word), codegen


@intrinsic
def lowest_bit(typingctx: Any, word: Any) -> Any:
    """Position of the lowest one in an unsigned integer that is not zero."""
    if not isinstance(word, types.Integer):
        return None

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))
        return context.cast(builder, place, word, types.intp)

    return types.intp(word), codegen


@intrinsic
def fetch_ahead(typingctx: Any, words: Any, i: Any) -> Any:
    """Have row i of a table brought into the cache, for it is wanted soon."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table = context.make_array(signature.args[0])(context, builder, arguments[0])
        stride = builder.extract_value(table.strides, 0)
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        start = builder.gep(builder.bitcast(table.data, byte), [builder.mul(stride, arguments[1])])
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", (byte,), kind)
        builder.call(prefetch, [start, number(0), number(3), number(1)])  # to read, to keep, data
        return context.get_dummy_value()

    return types.void(words, types.intp), codegen
