"""bitatoms: binary matrix factorization by dictionary learning.

Public names are imported when they are first used, so that importing the package is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__ as __version__
from .libraries import explained

_MODULE_OF = {
    "BinaryDictionaryClassifier": "estimators",
    "BinaryDictionaryLearning": "estimators",
    "BinaryImputer": "estimators",
    "BitMatrix": "bits",
    "CategoryEncoder": "estimators",
    "CellValidation": "estimators",
    "Codelength": "engine.codelength",
    "Constraints": "search.options",
    "Cover": "covers.result",
    "CoverMiner": "estimators",
    "CoverRound": "covers.monitor",
    "Denoised": "images",
    "Encoding": "columns.encoding",
    "Factorization": "model.result",
    "FileError": "io.errors",
    "Inpainted": "images",
    "InputError": "errors",
    "Interrupted": "model.result",
    "Model": "model.model",
    "PaperSearch": "search.options",
    "Pattern": "model.patterns",
    "Picture": "columns.table",
    "Recommendations": "estimators",
    "Resources": "search.options",
    "RoleDiff": "roles.diff",
    "RoleReport": "roles.audit",
    "Round": "model.result",
    "RowFit": "model.row_fit",
    "Rule": "model.rules",
    "Stability": "estimators",
    "Store": "rows.store",
    "Table": "columns.table",
    "annotate": "estimators",
    "codelength": "api",
    "cover": "api",
    "cross_validate_cells": "estimators",
    "denoise": "images",
    "encode": "columns.encoding",
    "factorize": "api",
    "inpaint": "images",
    "load": "estimators",
    "pack": "rows.store",
    "proximus": "api",
    "read": "io.api",
    "role_diff": "roles.diff",
    "role_report": "roles.audit",
    "show_versions": "versions",
    "stability": "estimators",
    "warm_up": "warmup",
    "write": "io.api",
    "write_report": "report",
    "write_role_report": "roles.page",
}
_MODULES = ("baselines", "datasets", "plots")

__all__ = [
    "BinaryDictionaryClassifier",
    "BinaryDictionaryLearning",
    "BinaryImputer",
    "BitMatrix",
    "CategoryEncoder",
    "CellValidation",
    "Codelength",
    "Constraints",
    "Cover",
    "CoverMiner",
    "CoverRound",
    "Denoised",
    "Encoding",
    "Factorization",
    "FileError",
    "Inpainted",
    "InputError",
    "Interrupted",
    "Model",
    "PaperSearch",
    "Pattern",
    "Picture",
    "Recommendations",
    "Resources",
    "RoleDiff",
    "RoleReport",
    "Round",
    "RowFit",
    "Rule",
    "Stability",
    "Store",
    "Table",
    "annotate",
    "baselines",
    "codelength",
    "cover",
    "cross_validate_cells",
    "datasets",
    "denoise",
    "encode",
    "factorize",
    "inpaint",
    "load",
    "pack",
    "plots",
    "proximus",
    "read",
    "role_diff",
    "role_report",
    "show_versions",
    "stability",
    "warm_up",
    "write",
    "write_report",
    "write_role_report",
]

if TYPE_CHECKING:
    from . import baselines as baselines
    from . import datasets as datasets
    from . import plots as plots
    from .api import codelength, cover, factorize, proximus
    from .bits import BitMatrix
    from .columns.encoding import Encoding, encode
    from .columns.table import Picture, Table
    from .covers.monitor import CoverRound
    from .covers.result import Cover
    from .engine.codelength import Codelength
    from .errors import InputError
    from .estimators import (
        BinaryDictionaryClassifier,
        BinaryDictionaryLearning,
        BinaryImputer,
        CategoryEncoder,
        CellValidation,
        CoverMiner,
        Recommendations,
        Stability,
        annotate,
        cross_validate_cells,
        load,
        stability,
    )
    from .images import Denoised, Inpainted, denoise, inpaint
    from .io.api import read, write
    from .io.errors import FileError
    from .model.model import Model
    from .model.patterns import Pattern
    from .model.result import Factorization, Interrupted, Round
    from .model.row_fit import RowFit
    from .model.rules import Rule
    from .report import write_report
    from .roles.audit import RoleReport, role_report
    from .roles.diff import RoleDiff, role_diff
    from .roles.page import write_role_report
    from .rows.store import Store, pack
    from .search.options import Constraints, PaperSearch, Resources
    from .versions import show_versions
    from .warmup import warm_up


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF and name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = import_module(f".{_MODULE_OF.get(name, name)}", __name__)
    except ModuleNotFoundError as error:
        raise explained(error) or error from None
    if name in _MODULE_OF:
        value = getattr(value, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
