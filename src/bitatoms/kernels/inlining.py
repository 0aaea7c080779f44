"""Compilation of functions that are inlined into kernels: only as far as kernels need them.

numba optimizes every function that it compiles, with all functions that it calls, and translates it to machine code. A
function that is always inlined is optimized and translated as part of each kernel that it is inlined into. To do so
before as well would take half of the time that compilation takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

_SMALL = 400  # instructions, including those of called functions, up to which a function is optimized by itself


class InlineCompiler(Compiler):
    """numba's compiler, for a function that is only inlined."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Compile a function into a library that is linked into those of kernels."""
        self.state.library = InlineLibrary(self.state.targetctx.codegen(), func.__qualname__)
        return super().compile_extra(func)


class InlineLibrary(JITCodeLibrary):
    """Code that is linked into other libraries, and never called from Python."""

    def _optimize_final_module(self) -> None:
        """Optimize small functions: LLVM vectorizes loops better before they are part of a large function."""
        functions = (function for function in self._final_module.functions if not function.is_declaration)
        blocks = (block for function in functions for block in function.blocks)
        if sum(1 for block in blocks for _ in block.instructions) < _SMALL:
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        """Complete the library without translating it to machine code."""
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return the null pointer: there is no machine code."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> InlineLibrary:
        """What numba asks to set the environment of the function."""
        return self

    def set_env(self, env_name: str, env: Any) -> None:
        """Ignore the environment, which machine code would need to raise exceptions."""
