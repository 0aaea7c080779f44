"""Compilation of kernels and of the functions that only kernels call: only as far as kernels need it.

numba optimizes every function that it compiles, with all functions that it calls, and translates it to machine code. A
function that only kernels call is optimized and translated as part of each of them. To do so before as well would take
half of the time that compilation takes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import ir, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.ir_utils import build_definitions
from numba.core.runtime.nrt import rtsys
from numba.core.types.containers import BaseNamedTuple
from numba.core.types.misc import NoneType

_SMALL = 400  # instructions, including those of called functions, up to which a function is optimized by itself


@register_pass(mutates_CFG=False, analysis_only=False)
class ConstantNone(FunctionPass):
    """Make arguments, and fields of arguments, that are None constants.

    numba then removes the branches for OR if ``covers`` is None, and those for prices if ``rule.prices`` is. By itself,
    it would compile them and all functions that they call, and LLVM would remove them.
    """

    _name = "constant_none"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Replace them in the code of a function; return whether it changed."""
        blocks, kinds = state.func_ir.blocks.values(), {}  # the types of variables that are arguments
        statements = [statement for block in blocks for statement in block.find_insts(ir.Assign)]
        for statement in statements:
            if isinstance(statement.value, ir.Arg):
                kinds[statement.target.name] = state.args[statement.value.index]
        changed = False
        for statement in statements:
            if isinstance(_type_of(statement.value, state.args, kinds), NoneType):
                statement.value = ir.Const(None, statement.loc)
                changed = True
        if changed:
            state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return changed


def _type_of(value: Any, args: tuple[Any, ...], kinds: dict[str, Any]) -> Any:
    """Return the type of an argument, or of a field of one; None for any other value."""
    if isinstance(value, ir.Arg):
        return args[value.index]
    if isinstance(value, ir.Expr) and value.op == "getattr":
        kind = kinds.get(value.value.name)
        if isinstance(kind, BaseNamedTuple) and value.attr in kind.fields:
            return kind.types[kind.fields.index(value.attr)]
    return None


class KernelCompiler(Compiler):
    """numba's compiler, with `ConstantNone`."""

    def define_pipelines(self) -> list[Any]:
        """Return numba's pipeline with one more pass."""
        pipelines: list[Any] = super().define_pipelines()
        for pipeline in pipelines:
            pipeline.add_pass_after(ConstantNone, untyped_passes.IRProcessing)
            pipeline.finalize()
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
