"""The formats by name: their endings, which module serves them, what that needs, and what their files begin with."""

from __future__ import annotations

import difflib
import os
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from .atomic import is_store
from .errors import FileError, MissingLibrary


class Format(NamedTuple):
    """A format of tables. Its module has ``read(source, options)`` and ``write(table, path, format)``."""

    what: str
    endings: tuple[str, ...]
    module: str
    library: str | None = None  # that it needs beyond the core,
    extra: str | None = None  # and what brings it
    text: bool = False  # may be compressed, with .gz behind the ending


FORMATS = {
    "csv": Format("comma-separated text", (".csv", ".txt"), "csv", text=True),
    "tsv": Format("tab-separated text", (".tsv", ".tab"), "csv", text=True),
    "npy": Format("a NumPy array", (".npy",), "numpy"),
    "npz": Format("packed bits with names; or NumPy arrays, or a SciPy sparse matrix", (".npz",), "numpy"),
    "parquet": Format("Parquet", (".parquet", ".pq"), "arrow", "pyarrow", "arrow"),
    "feather": Format("Feather, Arrow IPC", (".feather", ".arrow", ".ipc"), "arrow", "pyarrow", "arrow"),
    "mtx": Format("Matrix Market", (".mtx",), "matrix_market", text=True),
    "fimi": Format("a list of item numbers a row", (".dat", ".fimi"), "transactions", text=True),
    "baskets": Format("a list of item names a row", (".basket", ".baskets"), "transactions", text=True),
    "pbm": Format("a black and white picture", (".pbm",), "pbm", text=True),
    "h5ad": Format("AnnData", (".h5ad",), "h5ad", "anndata", "anndata"),
    "bed": Format("PLINK genotypes", (".bed",), "plink", "bed_reader", "plink"),
    "zarr": Format("a Zarr store", (".zarr",), "zarr", "zarr", "zarr"),
}

# What people have that is no table of ours, and what to do.
_ELSEWHERE = dict.fromkeys((".bim", ".fam"), "this lies beside a .bed file, which is the one to name")
_ELSEWHERE |= dict.fromkeys((".xlsx", ".xls", ".ods", ".numbers"), "a spreadsheet; save it as .csv there")
_ELSEWHERE |= dict.fromkeys(
    (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".pgm", ".ppm"),
    "a picture of gray or colour; turn it into a black and white one, .pbm, first",
)
_ELSEWHERE |= dict.fromkeys((".pkl", ".pickle", ".joblib"), "a pickle, which is never loaded; save it as .npz or .csv")

_BEGINNINGS = (
    (b"\x93NUMPY", "npy"),
    (b"PK\x03\x04", "npz"),
    (b"PAR1", "parquet"),
    (b"ARROW1", "feather"),
    (b"FEA1", "feather"),
    (b"%%MatrixMarket", "mtx"),
    (b"\x89HDF\r\n\x1a\n", "h5ad"),
    (b"\x6c\x1b", "bed"),
    (b"P1\n", "pbm"),
    (b"P4\n", "pbm"),
)


def format_of(path: str | os.PathLike[str], given: str | None = None, writing: bool = False) -> str:
    """The format that is given by name, or that the ending of the path stands for."""
    if given is not None:
        if given not in FORMATS:
            raise FileError(f"there is no format {given!r}; choose from {', '.join(FORMATS)}")
        return given
    name = os.path.basename(os.fspath(path).rstrip("/\\")).lower()
    bare = name.removesuffix(".gz")
    for format, about in FORMATS.items():
        if bare.endswith(about.endings) and (bare == name or about.text):
            return format
    endings = [ending for about in FORMATS.values() for ending in about.endings]
    ending = os.path.splitext(bare)[1]
    if ending in _ELSEWHERE and not writing:
        trouble = _ELSEWHERE[ending]
    elif os.path.isdir(path):
        trouble = "this is a folder, not a file"
    elif writing:
        trouble = f"the ending tells no format; choose one of {' '.join(endings)}"
    else:
        near = difflib.get_close_matches(ending, endings, 1)
        trouble = f"the ending tells no format{f' (is it {near[0]}?)' if near else ''}; pass format=, one of "
        trouble += ", ".join(FORMATS)
    raise FileError(f"{os.fspath(path)}: {trouble}")


def module_of(format: str, name: str) -> Any:
    """The module that serves a format; without its library, an error that says how to get it."""
    about = FORMATS[format]
    if about.library is not None and find_spec(about.library) is None:
        raise MissingLibrary(
            f"{name}: {about.what} needs {about.library.replace('_', '-')}; "
            f'get it with pip install "bitatoms[{about.extra}]"'
        )
    module: ModuleType = import_module(f".readers.{about.module}", __package__)
    return module


def looks_like(path: Path) -> str | None:
    """The format that the first bytes of a file tell, where they do."""
    if path.is_dir():
        return "zarr" if is_store(path) else None
    try:
        with open(path, "rb") as file:
            beginning = file.read(16)
    except OSError:
        return None
    return next((format for start, format in _BEGINNINGS if beginning.startswith(start)), None)
