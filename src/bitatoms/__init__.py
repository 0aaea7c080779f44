"""bitatoms: binary matrix factorization by dictionary learning.

Public names are imported when they are first used, so that importing the package is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._version import __version__ as __version__
from .system.libraries import explained

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

__all__ = sorted((*_MODULE_OF, *_MODULES))  # type checkers take the names imported below

if TYPE_CHECKING:
    from . import baselines as baselines, datasets as datasets, plots as plots
    from .api import codelength as codelength, cover as cover, factorize as factorize, proximus as proximus
    from .bits import BitMatrix as BitMatrix
    from .columns.encoding import Encoding as Encoding, encode as encode
    from .columns.table import Picture as Picture, Table as Table
    from .covers.monitor import CoverRound as CoverRound
    from .covers.result import Cover as Cover
    from .engine.codelength import Codelength as Codelength
    from .errors import InputError as InputError
    from .estimators import (
        BinaryDictionaryClassifier as BinaryDictionaryClassifier,
        BinaryDictionaryLearning as BinaryDictionaryLearning,
        BinaryImputer as BinaryImputer,
        CategoryEncoder as CategoryEncoder,
        CellValidation as CellValidation,
        CoverMiner as CoverMiner,
        Recommendations as Recommendations,
        Stability as Stability,
        annotate as annotate,
        cross_validate_cells as cross_validate_cells,
        load as load,
        stability as stability,
    )
    from .images import Denoised as Denoised, Inpainted as Inpainted, denoise as denoise, inpaint as inpaint
    from .io.api import read as read, write as write
    from .io.errors import FileError as FileError
    from .model.model import Model as Model
    from .model.patterns import Pattern as Pattern
    from .model.result import Factorization as Factorization, Interrupted as Interrupted, Round as Round
    from .model.row_fit import RowFit as RowFit
    from .model.rules import Rule as Rule
    from .report import write_report as write_report
    from .roles.audit import RoleReport as RoleReport, role_report as role_report
    from .roles.diff import RoleDiff as RoleDiff, role_diff as role_diff
    from .roles.page import write_role_report as write_role_report
    from .rows.store import Store as Store, pack as pack
    from .search.options import Constraints as Constraints, PaperSearch as PaperSearch, Resources as Resources
    from .versions import show_versions as show_versions
    from .warmup import warm_up as warm_up


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
