"""bitatoms: the few binary patterns that explain a large yes/no table.

The public names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "BinaryDictionaryLearning": "estimators",
    "BitMatrix": "bits",
    "Codelength": "mdl",
    "Factorization": "algorithms.result",
    "FileError": "io.errors",
    "Interrupted": "algorithms.result",
    "Store": "scale.store",
    "Table": "table",
    "annotate": "estimators",
    "codelength": "factorization",
    "factorize": "factorization",
    "load": "estimators",
    "pack": "scale.packing",
    "proximus": "factorization",
    "read": "io.tables",
    "write": "io.tables",
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
    from .algorithms.result import Factorization, Interrupted
    from .bits import BitMatrix
    from .estimators import BinaryDictionaryLearning, annotate, load
    from .factorization import codelength, factorize, proximus
    from .io.errors import FileError
    from .io.tables import read, write
    from .mdl import Codelength
    from .report import write_report
    from .scale.packing import pack
    from .scale.store import Store
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
