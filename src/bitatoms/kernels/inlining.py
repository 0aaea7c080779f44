"""Compilation of kernels and of the functions that only kernels call: only as far as kernels need it.

numba optimizes every function that it compiles, with all functions that it calls, and translates it to machine code. A
function that only kernels call is optimized and translated as part of each of them. To do so before as well would take
half of the time that compilation takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import typed_passes, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.runtime.nrt import rtsys

_SMALL = 400  # instructions, including those of called functions, up to which a function is optimized by itself
# Passes for what kernels do not use: context managers, closures, exceptions, literals, array expressions.
_UNUSED_PASSES = {
    untyped_passes.WithLifting,
    untyped_passes.InlineClosureLikes,
    untyped_passes.RewriteDynamicRaises,
    untyped_passes.MakeFunctionToJitFunction,
    untyped_passes.InlineInlinables,
    untyped_passes.FindLiterallyCalls,
    untyped_passes.LiteralUnroll,
    typed_passes.NopythonRewrites,
}


class KernelCompiler(Compiler):
    """numba's compiler, without the passes that kernels do not need."""

    def define_pipelines(self) -> list[Any]:
        """Return numba's pipeline with fewer passes."""
        pipelines: list[Any] = super().define_pipelines()
        for pipeline in pipelines:
            pipeline.passes = [step for step in pipeline.passes if step[0] not in _UNUSED_PASSES]
        return pipelines

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Compile a kernel."""
        self.state.library = KernelLibrary(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(func)


class PartCompiler(KernelCompiler):
    """The compiler of a function that only kernels call."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Compile a function into a library that is linked into those of kernels."""
        self.state.library = PartLibrary(self.state.targetctx.codegen(), func.__qualname__)
        return Compiler.compile_extra(self, func)


class KernelLibrary(JITCodeLibrary):
    """The code of a kernel."""

    def add_ir_module(self, ir_module: Any) -> None:
        """Add code; that which converts Python's arguments is not optimized, because it takes hardly any time."""
        if ir_module.name == "wrapper":
            for function in ir_module.functions:
                if function.blocks:
                    function.attributes.add("noinline")
                    function.attributes.add("optnone")
        super().add_ir_module(ir_module)

    def finalize(self) -> None:
        """Link the libraries of all functions that the kernel calls, directly or not, and optimize."""
        self._linking_libraries: list[Any] = _with_needed(self._linking_libraries)
        super().finalize()


class PartLibrary(KernelLibrary):
    """Code that is linked into other libraries, and never called from Python."""

    is_open = True  # the libraries that it needs are not linked into it

    def add_linking_library(self, library: Any) -> None:
        """Link a library, but not numba's runtime: kernels do not allocate."""
        if library is not rtsys.library:
            super().add_linking_library(library)

    def finalize(self) -> None:
        """Optimize small functions: LLVM vectorizes loops better before they are part of a large function."""
        modules = [library._final_module for library in (self, *_with_needed(self._linking_libraries))]
        self.is_open = sum(map(_size, modules)) >= _SMALL
        if self.is_open:
            self._finalized = True
        else:
            super().finalize()

    def _finalize_final_module(self) -> None:
        """Complete the library without translating it to machine code."""
        self._verify_declare_only_symbols()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return the null pointer: there is no machine code."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> PartLibrary:
        """What numba asks to set the environment of the function."""
        return self

    def set_env(self, env_name: str, env: Any) -> None:
        """Ignore the environment, which machine code would need to raise exceptions."""


def _with_needed(libraries: list[Any]) -> list[Any]:
    """Return libraries and those that they need, each before those it needs: LLVM links only what is needed so far."""
    ordered: dict[Any, None] = {}

    def visit(library: Any) -> None:
        if library not in ordered:
            if getattr(library, "is_open", False):
                for needed in reversed(library._linking_libraries):
                    visit(needed)
            ordered[library] = None

    for library in reversed(libraries):
        visit(library)
    return list(reversed(ordered))


def _size(module: Any) -> int:
    """Return the number of instructions of a module."""
    return str(module).count("\n  ")
