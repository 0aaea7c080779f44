"""bitatoms: the few binary patterns that explain a large yes/no table.

The public names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__ as __version__

_HOMES = {
    "BinaryDictionaryLearning": "estimators",
    "BitMatrix": "bits",
    "Codelength": "mdl",
    "Factorization": "core.result",
    "FileError": "io.errors",
    "Interrupted": "core.result",
    "Store": "rows.store",
    "Table": "table",
    "annotate": "estimators",
    "codelength": "api",
    "factorize": "api",
    "load": "estimators",
    "pack": "rows.packing",
    "proximus": "api",
    "read": "io.api",
    "write": "io.api",
    "write_report": "report",
}
_MODULES = ("baselines", "datasets", "plots")

__all__ = [
    "BinaryDictionaryLearning",
    "BitMatrix",
    "Codelength",
    "Factorization",
    "FileError",
    "Interrupted",
    "Store",
    "Table",
    "annotate",
    "baselines",
    "codelength",
    "datasets",
    "factorize",
    "load",
    "pack",
    "plots",
    "proximus",
    "read",
    "write",
    "write_report",
]

if TYPE_CHECKING:
    from . import baselines as baselines
    from . import datasets as datasets
    from . import plots as plots
    from .api import codelength, factorize, proximus
    from .bits import BitMatrix
    from .core.result import Factorization, Interrupted
    from .estimators import BinaryDictionaryLearning, annotate, load
    from .io.api import read, write
    from .io.errors import FileError
    from .mdl import Codelength
    from .report import write_report
    from .rows.packing import pack
    from .rows.store import Store
    from .table import Table


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    elif name in _MODULES:
        value = import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
