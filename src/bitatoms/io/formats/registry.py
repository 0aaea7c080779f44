"""The file formats: their extensions, reader modules, libraries and first bytes.

A new format needs an entry in `FORMATS` and a module in `bitatoms.io.formats` with ``read(source, options)``, which
returns a `TableStream`, and ``write(table, path, format)``. If its files begin with fixed bytes, add these to
`_MAGIC_BYTES`. Options of `bitatoms.read` that apply to it name it in `bitatoms.io.options`. If it can be read in
chunks, add it to `_STREAMED` in `bitatoms.io.stream`.
"""

from __future__ import annotations

import difflib
import os
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from ...errors import Parameter
from ...system.libraries import LIBRARIES, missing_library
from ..atomic import check_file, is_zarr_store
from ..errors import FileError


class Format(NamedTuple):
    """A file format; its module in `bitatoms.io.formats` has ``read`` and ``write``."""

    description: str
    extensions: tuple[str, ...]
    module: str
    library: str | None = None  # optional dependency
    gzip: bool = False  # .gz may follow the extension
    is_one_file: bool = True  # otherwise several files, or a folder, which a stream cannot hold
    stores_unknown: bool = True  # otherwise a cell is a one or a zero
    stores_annotations: bool = False  # otherwise what is known about rows and columns, besides names, is lost
    is_writable: bool = True

    @property
    def extra(self) -> str | None:
        """The extra that installs the library."""
        return None if self.library is None else LIBRARIES[self.library].extra


FORMATS = {
    "csv": Format("comma-separated text", (".csv", ".txt"), "csv", gzip=True),
    "tsv": Format("tab-separated text", (".tsv", ".tab"), "csv", gzip=True),
    "xlsx": Format("an Excel workbook", (".xlsx",), "xlsx", "openpyxl"),
    "npy": Format("a NumPy array", (".npy",), "numpy"),
    "npz": Format(
        "packed bits with names; or NumPy arrays, or a SciPy sparse matrix", (".npz",), "numpy", stores_annotations=True
    ),
    "parquet": Format("Parquet", (".parquet", ".pq"), "arrow", "pyarrow"),
    "feather": Format("Feather, or an Arrow file", (".feather", ".arrow", ".ipc"), "arrow", "pyarrow"),
    "mtx": Format("Matrix Market", (".mtx",), "matrix_market", gzip=True),
    "fimi": Format(
        "one list of item numbers per row", (".dat", ".fimi"), "transactions", gzip=True, stores_unknown=False
    ),
    "baskets": Format(
        "one list of item names per row", (".basket", ".baskets"), "transactions", gzip=True, stores_unknown=False
    ),
    "pairs": Format(
        "long table: the names of one row and one of its items per line",
        (".pairs",),
        "long",
        gzip=True,
        stores_unknown=False,
    ),
    "pbm": Format("a black-and-white image", (".pbm",), "pbm", gzip=True, stores_unknown=False),
    "png": Format("a PNG image", (".png",), "pillow", "PIL", stores_unknown=False),
    "tiff": Format("a TIFF image", (".tif", ".tiff"), "pillow", "PIL", stores_unknown=False),
    "h5ad": Format("AnnData", (".h5ad",), "single_cell.h5ad", "anndata", stores_annotations=True),
    "h5mu": Format("MuData", (".h5mu",), "single_cell.mudata", "anndata", is_writable=False),
    "10x": Format(
        "10x Genomics: an .h5 file, or a folder with matrix.mtx", (".h5",), "single_cell.ten_x", is_writable=False
    ),
    "bed": Format(
        "PLINK genotypes", (".bed",), "genotypes.plink", "bed_reader", is_one_file=False, stores_annotations=True
    ),
    "pgen": Format(
        "PLINK 2 genotypes", (".pgen",), "genotypes.pgen", "pgenlib", is_one_file=False, stores_annotations=True
    ),
    "vcf": Format("VCF genotypes", (".vcf",), "genotypes.vcf", "cyvcf2", gzip=True, stores_annotations=True),
    "bcf": Format("BCF genotypes", (".bcf",), "genotypes.vcf", "cyvcf2", stores_annotations=True),
    "zarr": Format("a Zarr store", (".zarr",), "zarr", "zarr", is_one_file=False, stores_annotations=True),
}

GENOTYPE_FORMATS = ("bed", "pgen", "vcf", "bcf")
HDF5_FORMATS = ("h5ad", "h5mu", "10x")
FEATURE_MATRIX = re.compile(r"(?P<prefix>.*)matrix\.mtx(\.gz)?", re.IGNORECASE)  # of 10x Genomics

_UNSUPPORTED = {  # files that users may have, and what to do with them
    (".bim", ".fam"): "this file accompanies a .bed file; pass the .bed file",
    (".pvar", ".psam"): "this file accompanies a .pgen file; pass the .pgen file",
    (".haps", ".sample"): "haplotypes of SHAPEIT; use .vcf, with 'bcftools convert --hapsample2vcf' or '--hapsample'",
    (".xls", ".xlsm", ".xlsb", ".ods", ".numbers"): "a spreadsheet; save it as .xlsx or .csv",
    (
        ".jpg", ".jpeg", ".gif", ".bmp", ".pgm", ".ppm",
    ): "a gray or color image; convert it to .png, or to black and white (.pbm), first",
    (".pkl", ".pickle", ".joblib"): "a pickle, which is never loaded; save it as .npz or .csv",
}  # fmt: skip

_MAGIC_BYTES = (
    (b"\x93NUMPY", "npy"),
    (b"PK\x03\x04", "npz"),
    (b"PAR1", "parquet"),
    (b"ARROW1", "feather"),
    (b"%%MatrixMarket", "mtx"),
    (b"\x89HDF\r\n\x1a\n", "h5ad"),
    (b"MuData", "h5mu"),
    (b"\x6c\x1b\x10", "pgen"),
    (b"\x6c\x1b", "bed"),
    (b"##fileformat=VCF", "vcf"),
    (b"BCF\x02", "bcf"),
    (b"P1\n", "pbm"),
    (b"P4\n", "pbm"),
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"II*\x00", "tiff"),
    (b"MM\x00*", "tiff"),
)
_WORKBOOK_PARTS = (b"[Content_Types].xml", b"docProps/", b"xl/", b"_rels/")  # one of them comes first in an .xlsx file


def infer_format(path: str | os.PathLike[str], given: str | None = None, writing: bool = False) -> str:
    """Return the given format, or the one that the extension selects; raise FileError if there is none."""
    check_file(path)
    format = _find_format(path, given, writing)
    if writing and not FORMATS[format].is_writable:
        name = FORMATS[format].description.partition(":")[0]
        raise FileError(f"{os.fspath(path)}: the format {format!r} ({name}) can only be read; write .h5ad or .npz")
    return format


def check_one_file(format: str, name: str) -> None:
    """Raise if a format consists of several files, or of a folder, which a stream cannot hold."""
    if not FORMATS[format].is_one_file:
        raise FileError(f"{name}: {FORMATS[format].description} cannot be written to a stream; pass a file name")


def _find_format(path: str | os.PathLike[str], given: str | None, writing: bool) -> str:
    """Return the format of a file; see `infer_format`."""
    if given is not None:
        if given not in FORMATS:
            hint = _hint(f".{given}") or f"choose from {', '.join(FORMATS)}"
            raise FileError(f"there is no format {given!r}; {hint}")
        return given
    name = os.path.basename(os.fspath(path).rstrip("/\\")).lower()
    base = name.removesuffix(".gz")
    for format, entry in FORMATS.items():
        if base.endswith(entry.extensions) and (base == name or entry.gzip):
            return format
    if not writing and os.path.isdir(path) and feature_matrices(Path(path)):
        return "10x"
    entries = [entry for entry in FORMATS.values() if entry.is_writable or not writing]
    known = [extension for entry in entries for extension in entry.extensions]
    extension = os.path.splitext(base)[1]
    message: tuple[str | Parameter, ...]
    if (unsupported := _hint(extension)) and not writing:
        message = (unsupported,)
    elif os.path.isdir(path):
        message = ("this is a folder, not a file",)
    elif writing:
        message = (f"unknown extension; use one of {' '.join(known)}",)
    else:
        similar = difflib.get_close_matches(extension, known, 1)
        hint = f" (did you mean {similar[0]}?)" if similar else ""
        message = (f"unknown extension{hint}; pass ", Parameter("format"), f", one of {', '.join(FORMATS)}")
    raise FileError(f"{os.fspath(path)}: ", *message)


def _hint(extension: str) -> str | None:
    """Return what to do with files that are not supported; None for an unknown extension."""
    return next((hint for extensions, hint in _UNSUPPORTED.items() if extension in extensions), None)


def feature_matrices(folder: Path) -> list[str]:
    """Return the names of the files in a folder that are matrices of 10x Genomics."""
    return sorted(entry.name for entry in folder.iterdir() if FEATURE_MATRIX.fullmatch(entry.name) and entry.is_file())


def load_reader(format: str, name: str) -> Any:
    """Import the module that reads and writes a format; raise MissingLibrary if its library is not installed."""
    entry = FORMATS[format]
    if entry.library is not None and find_spec(entry.library) is None:
        raise missing_library(f"{name}: the format {format!r} needs", entry.library)
    module: ModuleType = import_module(f".{entry.module}", __package__)
    return module


def sniff_format(path: Path) -> str | None:
    """Return the format that the first bytes of a file identify, or None."""
    if path.is_dir():
        return "zarr" if is_zarr_store(path) else None
    try:
        with open(path, "rb") as file:
            beginning = file.read(64)
    except OSError:
        return None
    if beginning.startswith(b"PK\x03\x04") and any(part in beginning for part in _WORKBOOK_PARTS):
        return "xlsx"
    return next((format for magic, format in _MAGIC_BYTES if beginning.startswith(magic)), None)
