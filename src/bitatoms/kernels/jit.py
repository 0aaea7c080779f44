"""How a kernel is compiled: serial, without the GIL, kept in numba's cache where there is a place to keep it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.core import types
from numba.extending import intrinsic

# Neither kernels nor pieces count references to arrays (``_nrt=False``): counting costs more than most of them do, and
# the caller holds the arrays. So they cannot allocate.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "_nrt": False}


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a loop over packed words; the caller allocates, and the kernel neither checks nor has options."""
    try:
        return numba.njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # numba found no folder it may write its cache to: compile anew in each process
        return numba.njit(**_OPTIONS)(function)


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
        from llvmlite import ir

        place = builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))
        return context.cast(builder, place, word, types.intp)

    return types.intp(word), codegen
