"""Kinds of files, of bitatoms and of other programs: how each is written, and what it stores."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.columns.table import Table
from bitatoms.io.formats.registry import FORMATS, infer_format
from support.genotypes import copies_table, random_alleles


class Kind(NamedTuple):
    """A kind of file: its name, how it is written, and what it stores."""

    file: str
    write: Callable = ba.write
    row_names: bool = True
    columns: bool = True
    unknown: bool = True  # cells may be unknown
    empty: bool = True  # a row or a column may have no ones
    counts: bool = False  # cells may be any numbers

    @property
    def format(self):
        return infer_format(self.file)


def write_text(word):
    def write(path, table):
        cells = [[word if np.isnan(cell) else f"{cell:g}" for cell in row] for row in values(table)]
        path.write_text("\n".join(",".join(row) for row in [list(table.columns), *cells]) + "\n")

    return write


def write_npy(order, dtype=float):
    return lambda path, table: np.save(path, np.array(values(table).astype(dtype), order=order))


def sparse(table, format):
    """Return a sparse matrix of a table in one of SciPy's formats; unknown cells are NaN."""
    X = values(table)
    if format == "dia":
        offsets = np.arange(-len(X) + 1, X.shape[1])
        data = np.zeros((len(offsets), X.shape[1]))
        for row, column in zip(*np.nonzero(X), strict=True):
            data[column - row + len(X) - 1, column] = X[row, column]
        return sp.dia_array((data, offsets), shape=X.shape)
    if format == "bsr":
        return sp.bsr_array(X, blocksize=(1, 2 if X.shape[1] % 2 == 0 else 1))
    return sp.coo_array(X).asformat(format)


def write_sparse(format):
    return lambda path, table: sp.save_npz(path, sparse(table, format))


def write_mtx(dense):
    return lambda path, table: scipy.io.mmwrite(path, values(table) if dense else sparse(table, "coo"))


def frame(table, dtype=float):
    import pandas as pd

    return pd.DataFrame(values(table), list(table.row_names), list(table.columns)).astype(dtype)


def write_polars(path, table):
    import polars as pl

    cells = {
        name: [None if np.isnan(cell) else bool(cell) for cell in column]
        for name, column in zip(table.columns, values(table).T, strict=True)
    }
    pl.DataFrame(cells).write_ipc(path, compression="zstd")


def anndata_of(table, to_format):
    """Return an AnnData with the cells and names of a table."""
    import anndata as ad
    import pandas as pd

    obs, var = (pd.DataFrame(index=pd.Index(names, dtype=object)) for names in (table.row_names, table.columns))
    return ad.AnnData(to_format(values(table).astype(np.float32)), obs=obs, var=var)


def write_h5ad(to_format, **options):
    return lambda path, table: anndata_of(table, to_format).write_h5ad(path, **options)


def write_anndata_zarr(path, table):
    with warnings.catch_warnings(action="ignore"):
        anndata_of(table, sp.csc_matrix).write_zarr(path)


def write_zarr(**options):
    def write(path, table):
        import zarr

        chunks = tuple(min(most, length) for most, length in zip(options["chunks"], table.shape, strict=True))
        zarr.create_array(path, data=values(table), overwrite=True, **options | {"chunks": chunks})

    return write


def write_h5mu(path, table):
    """Write a MuData with one modality: a block of 512 bytes, and an AnnData in a group."""
    h5py = pytest.importorskip("h5py")
    ba.write(table, path.with_suffix(".h5ad"))
    with h5py.File(path.with_suffix(".h5ad")) as adata, h5py.File(path, "w", userblock_size=512) as file:
        adata.copy(adata["/"], file.create_group("mod"), "rna")
        file.attrs["encoding-type"] = "MuData"
    path.with_suffix(".h5ad").unlink()
    with open(path, "r+b") as file:
        file.write(b"MuData (format-version=0.1.0;)")


def write_ten_x(path, table):
    """Write a file as Cell Ranger does: the columns of a CSC matrix of features x cells are the rows of the table."""
    h5py = pytest.importorskip("h5py")
    by_cell = sparse(table, "csr")
    with h5py.File(path, "w") as file:
        matrix = file.create_group("matrix")
        for name in ("data", "indices", "indptr"):
            values = getattr(by_cell, name)
            matrix[name] = values if name == "data" and (values % 1).any() else values.astype(np.int32)
        matrix["shape"] = np.int32(table.shape[::-1])
        matrix["barcodes"] = np.array(table.row_names, "S")
        for name in ("id", "name"):
            matrix[f"features/{name}"] = np.array(table.columns, "S")


WRITTEN = {  # by bitatoms
    "csv": Kind("table.csv"),
    "tsv.gz": Kind("table.tsv.gz"),
    "xlsx": Kind("table.xlsx"),
    "npy": Kind("table.npy", row_names=False, columns=False),
    "npz": Kind("table.npz"),
    "parquet": Kind("table.parquet"),
    "feather": Kind("table.feather"),
    "mtx": Kind("table.mtx"),
    "mtx.gz": Kind("table.mtx.gz"),
    "fimi": Kind("table.dat", row_names=False, unknown=False, empty=False),
    "fimi.gz": Kind("table.fimi.gz", row_names=False, unknown=False, empty=False),
    "baskets": Kind("table.basket", row_names=False, unknown=False, empty=False),
    "pairs": Kind("table.pairs", unknown=False, empty=False),
    "pbm": Kind("table.pbm", row_names=False, columns=False, unknown=False),
    "pbm.gz": Kind("table.pbm.gz", row_names=False, columns=False, unknown=False),
    "png": Kind("table.png", row_names=False, columns=False, unknown=False),
    "tiff": Kind("table.tif", row_names=False, columns=False, unknown=False),
    "h5ad": Kind("table.h5ad"),
    "zarr": Kind("table.zarr"),
    "bed": Kind("table.bed"),
    "pgen": Kind("table.pgen"),
    "vcf": Kind("table.vcf"),
    "bcf": Kind("table.bcf"),
}
GENOTYPES = ("bed", "pgen", "vcf", "bcf")
ARRAY = {"row_names": False, "columns": False, "counts": True}  # an array of numbers has no names
FOREIGN = {  # by other programs, as they write arrays, data frames and matrices
    "csv, NA": Kind("table.csv", write_text("NA"), row_names=False, counts=True),
    "csv, ?": Kind("table.csv", write_text("?"), row_names=False, counts=True),
    "npy, Fortran order": Kind("table.npy", write_npy("F"), **ARRAY),
    "npy, float32": Kind("table.npy", write_npy("C", ">f4"), **ARRAY),
    "npz": Kind("table.npz", lambda path, table: np.savez(path, values(table)), **ARRAY),
    **{format: Kind("table.npz", write_sparse(format), **ARRAY) for format in ("csr", "csc", "coo", "bsr", "dia")},
    "mtx, coordinates": Kind("table.mtx", write_mtx(False), **ARRAY),
    "mtx, array": Kind("table.mtx", write_mtx(True), unknown=False, **ARRAY),
    "parquet, floats": Kind("table.parquet", lambda path, table: frame(table).to_parquet(path), counts=True),
    "feather, integers": Kind("table.feather", lambda path, table: frame(table, "Int8").to_feather(path)),
    "feather, booleans": Kind("table.feather", write_polars, row_names=False),
    "h5ad, array": Kind("table.h5ad", write_h5ad(np.asarray), counts=True),
    "h5ad, csr": Kind("table.h5ad", write_h5ad(sp.csr_matrix, compression="gzip"), counts=True),
    "h5ad, csc": Kind("table.h5ad", write_h5ad(sp.csc_matrix, compression="lzf"), counts=True),
    "zarr, AnnData": Kind("table.zarr", write_anndata_zarr, counts=True),
    "zarr, columns": Kind("table.zarr", write_zarr(chunks=(200, 7)), **ARRAY),
    "zarr 2": Kind("table.zarr", write_zarr(chunks=(3, 50), zarr_format=2), **ARRAY),
    "h5mu": Kind("table.h5mu", write_h5mu),
    "10x": Kind("table.h5", write_ten_x, counts=True),
}
KINDS = {f"bitatoms {name}": kind for name, kind in WRITTEN.items()} | FOREIGN


def skip_unless_installed(format):
    """Skip a test whose format needs a library that is not installed."""
    library = FORMATS[format].library
    if library is not None and find_spec(library) is None:
        pytest.skip(f"{library} is not installed")


def values(table):
    """Return the cells of a table as numbers, NaN where they are unknown; those of a table of counts as they are."""
    return table.cells if isinstance(table, Cells) else table.to_dense(float)


class Cells(NamedTuple):
    """Numbers with names, to be written by other programs."""

    cells: np.ndarray
    row_names: tuple[str, ...]
    columns: tuple[str, ...]

    @property
    def shape(self):
        return self.cells.shape


def names(prefix, n):
    """Return this many names."""
    return tuple(f"{prefix}{number}" for number in range(n))


def random_table(kind, shape, seed=0):
    """Return a table of random cells that a kind of file can hold, and the table that is read from it."""
    if kind.format in GENOTYPES:
        table = copies_table(random_alleles(*shape, seed, missing=0.1 if kind.unknown else 0))
        return table, table
    random = np.random.default_rng([seed, *shape])
    cells = random.choice([0.0, 1.0, np.nan] if kind.unknown else [0.0, 1.0], shape)
    if not kind.empty:  # lists of items keep the order in which the items come
        cells[0], cells[:, 0] = 1, 1
    cells[-1, -1] = 1  # the last cell is not like those that were not read
    columns = map(str, range(shape[1])) if kind.format == "fimi" else names("c", shape[1])
    bits = BitMatrix.from_dense(cells, missing="unknown")
    given = Table(bits, names("r", shape[0]), tuple(columns))
    read = Table(bits, given.row_names if kind.row_names else None, given.columns if kind.columns else None)
    return (read if kind.write is ba.write else given), read


def write(kind, path, table):
    """Write a table by the writer of a kind."""
    if kind.write is ba.write:
        ba.write(table, path)
    else:
        kind.write(path, table)


def use_small_chunks(patch, size=64):
    """Let everything in bitatoms.io that is loaded read and write chunks of about this many cells, bytes or columns."""
    for name, module in list(sys.modules.items()):
        if name.startswith("bitatoms.io."):
            for constant in [each for each in vars(module) if _SIZES.fullmatch(each)]:
                patch.setattr(module, constant, 64 if "COLUMNS" in constant else min(getattr(module, constant), size))


# Names of the sizes of chunks in the modules of bitatoms.io; those of limits are others.
_SIZES = re.compile("_?CHUNK_(BITS|ENTRIES|CELLS|GENOTYPES|BYTES)|MAX_ARROW_COLUMNS|MAX_CHUNK_ROWS|SPOOL_BYTES")
