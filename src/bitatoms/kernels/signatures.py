"""Which kernels each kind of fit calls, and with which types of arguments: a list that is recorded by ``make kernels``.

It only saves time: kernels of the list can be compiled before they are called. Others are compiled when they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from numba.core import types
from numba.core.types.containers import BaseNamedTuple, BaseTuple

FILE = Path(__file__).with_name("signatures.json")


class Variant(NamedTuple):
    """A kernel for some types of arguments."""

    kernel: str  # module and function, such as "coding.code_rows"
    signature: str  # the types of the arguments, as JSON
    seconds: float  # of CPU time to compile it, measured on one machine
    jobs: tuple[str, ...]  # the kinds of fits that call it, such as "search, xor"

    @property
    def key(self) -> str:
        """The kernel and the types of its arguments, in a line of text."""
        return f"{self.kernel} {self.signature}"

    @property
    def dispatcher(self) -> Any:
        """The kernel."""
        module, function = self.kernel.split(".")
        return getattr(_module(f"cpu.{module}"), function)

    @property
    def types(self) -> tuple[Any, ...]:
        """The types of the arguments."""
        return tuple(map(_decoded, json.loads(self.signature)))


@cache
def all_variants() -> tuple[Variant, ...]:
    """Return the list, in the order in which fits call the kernels first."""
    return tuple(
        Variant(entry["kernel"], json.dumps(entry["types"]), entry["seconds"], tuple(entry["jobs"]))
        for entry in json.loads(FILE.read_text("utf-8"))
    )


def encoded(arguments: Iterable[Any]) -> str:
    """Return the types of arguments as JSON."""
    return json.dumps([_encoded(kind) for kind in arguments])


def _encoded(kind: Any) -> Any:
    """Return a type as JSON: an array as its data type, dimensions and layout; a named tuple as its name and fields."""
    if isinstance(kind, types.Array):
        return f"{kind.dtype} {kind.ndim} {kind.layout}" + ("" if kind.mutable else " const")
    if isinstance(kind, BaseNamedTuple):
        module = kind.instance_class.__module__.removeprefix(f"{__package__}.")
        return {f"{module}.{kind.instance_class.__name__}": [_encoded(field) for field in kind.types]}
    if isinstance(kind, BaseTuple):
        return [_encoded(field) for field in kind.types]
    return str(kind)


def _decoded(kind: Any) -> Any:
    """Return the type that `_encoded` encoded."""
    if isinstance(kind, dict):
        ((name, fields),) = kind.items()
        module, _, struct = name.rpartition(".")
        return BaseTuple.from_types(tuple(map(_decoded, fields)), getattr(_module(module), struct))
    if isinstance(kind, list):
        return BaseTuple.from_types(tuple(map(_decoded, kind)))
    name, *array = kind.split()
    scalar = getattr(types, "boolean" if name == "bool" else name)
    if not array:
        return scalar
    n_dimensions, layout, *const = array
    return types.Array(scalar, int(n_dimensions), layout, readonly=bool(const))


def _module(name: str) -> ModuleType:
    """Return a module of this package."""
    return import_module(f"{__package__}.{name}")
