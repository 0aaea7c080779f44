"""How a kernel is compiled: serial, without the GIL, kept in numba's cache where there is a place to keep it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.core import types
from numba.extending import intrinsic


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a loop over packed words; the caller allocates, and the kernel neither checks nor has options."""
    try:
        return numba.njit(nogil=True, cache=True, error_model="numpy")(function)
    except RuntimeError:  # numba found no folder it may write its cache to: compile anew in each process
        return numba.njit(nogil=True, error_model="numpy")(function)


def piece(function: Callable[..., Any]) -> Any:
    """A part of kernels, put into them where it is called.

    A piece counts no references to the arrays it is given (``_nrt=False``; their owner is its caller), for that
    costs more than most pieces do; so it cannot allocate.
    """
    return numba.njit(nogil=True, error_model="numpy", forceinline=True, _nrt=False)(function)


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
