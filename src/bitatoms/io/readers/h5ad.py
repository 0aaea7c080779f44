"""AnnData in .h5ad files: cells by genes, with names; and what was learned put into an AnnData, for scanpy."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import validation
from ..._version import __version__
from ...bits import BitMatrix
from ...core.model import Model
from ...table import Names, Picture, Table, check_columns, check_picture
from ..chunked import ChunkCells
from ..errors import FileError
from ..safe_hdf5 import check_heaps, open_hdf5
from ..stream import CHUNK_BITS, ReadOptions, RowChunk, Source, TableStream, unique_columns
from .anndata_matrix import HierarchicalFile, Opened, bits_of, is_array, matrix_of

if TYPE_CHECKING:
    from anndata import AnnData

KEY = "bitatoms"  # of what is ours in ``uns``


def read(source: Source, options: ReadOptions) -> TableStream:
    """The rows of an .h5ad file: its X, or one of its layers."""
    check_heaps(source)
    return read_annotated(source, options, open_hdf5)


def read_annotated(source: Source, options: ReadOptions, opened: Opened) -> TableStream:
    """The rows of an AnnData, wherever it lies."""
    with source.catch_library_errors(), opened(source) as vault:
        matrix = matrix_of(source, vault, options.layer)
        n_cols = matrix.shape[1]
        about = _about(vault)
        columns = _names(source, vault, "var", n_cols)
        picture = _picture(about, matrix.shape)
    named = about.get("columns") is not False or columns != _numbered(n_cols)
    blocks = _blocks(source, options, opened, columns, about.get("rows") is not False)
    return TableStream(n_cols, blocks, columns if named else None, picture)


def _names(source: Source, vault: HierarchicalFile, frame: str, expected: int) -> Names:
    """The names of the rows ("obs") or columns ("var"): the index of that frame, and nothing else of it."""
    group = vault.child(vault.root, frame)
    if group is None or is_array(group) or "_index" not in group.attrs:
        raise source.error(
            f"its {frame!r} is not as AnnData writes it since 0.7; if it is an old file, write it anew: "
            "anndata.read_h5ad(path).write_h5ad(path)"
        )
    name = group.attrs["_index"]
    element = vault.child(group, name.decode() if isinstance(name, bytes) else str(name))
    if element is None:
        raise source.error(f"corrupt: its {frame!r} has not the index {str(name)[:40]!r} that it says")
    if is_array(element):
        found = element.shape
    else:  # categories, or with a mask for missing ones
        vault.check_all(element)
        parts = [part for name in ("codes", "values") if (part := vault.child(element, name)) is not None]
        found = parts[0].shape if len(parts) == 1 and is_array(parts[0]) else None
    if found != (expected,):
        raise source.error(f"corrupt: the names in its {frame!r} are of shape {found}, and X asks for {expected}")
    return tuple(name if type(name) is str else _text(name) for name in _element(element))


def _element(element: Any) -> Any:
    """A small element as anndata reads it."""
    from anndata.io import read_elem

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a file is of an older kind is no concern of who reads it
        return read_elem(element)


def _text(value: Any) -> str:
    """A name as text; one that is missing is blank."""
    if isinstance(value, bytes):
        return value.decode()
    return "" if validation.is_missing(value) else str(value)


def _numbered(count: int) -> Names:
    """The names that AnnData gives where there are none."""
    return tuple(map(str, range(count)))


def _about(vault: HierarchicalFile) -> dict[str, Any]:
    """What we wrote beside a table; nothing where others wrote the file."""
    element: Any = vault.root
    for name in ("uns", KEY, "table"):
        element = None if element is None or is_array(element) else vault.child(element, name)
    if element is None or not is_array(element) or element.shape != ():
        return {}
    try:
        about = json.loads(str(_element(element)))
    except (ValueError, RecursionError):
        return {}
    return about if isinstance(about, dict) else {}


def _picture(about: dict[str, Any], shape: tuple[int, int]) -> Picture | None:
    """The picture that each row is, where the file says so and it still fits."""
    try:
        return check_picture(about["picture"], shape)
    except (KeyError, TypeError, ValueError, OverflowError, IndexError):  # others may have changed the table since
        return None


def _blocks(source: Source, options: ReadOptions, opened: Opened, columns: Names, named: bool) -> Iterator[RowChunk]:
    """The rows as packed bits, some at a time."""
    numbers = ChunkCells(source, options, columns)
    with source.catch_library_errors(), opened(source) as vault:
        matrix = matrix_of(source, vault, options.layer)
        rows = _names(source, vault, "obs", matrix.shape[0])
        named = named or rows != _numbered(len(rows))
        start = 0
        for bits in bits_of(source, vault, matrix, numbers):
            yield RowChunk(bits, rows[start : start + len(bits)] if named else None)
            start += len(bits)
    numbers.check_missing()


def write(table: Table, path: Path, format: str) -> None:
    """Write an AnnData whose X is sparse, in CSR format, of float32: all of scanpy takes it, and no sum overflows."""
    import h5py
    import pandas as pd
    from anndata import AnnData
    from anndata.io import sparse_dataset, write_elem

    n_rows, n_cols = table.shape
    if any("\0" in name for name in (*(table.row_names or ()), *(table.columns or ()))):
        raise FileError(f"{path.name}: an .h5ad file keeps no zero byte in a name; rename it, or write .npz")
    about = {
        "format": "bitatoms table",
        "version": 1,
        "rows": table.row_names is not None,
        "columns": table.columns is not None,
        "picture": table.picture,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names of rows may come twice
        AnnData(
            obs=pd.DataFrame(index=pd.Index(table.row_names or _numbered(n_rows), dtype=object)),
            var=pd.DataFrame(index=pd.Index(table.columns or _numbered(n_cols), dtype=object)),
            uns={KEY: {"table": json.dumps(about)}},
        ).write_h5ad(path)
    large = table.bits.count() >= np.iinfo(np.int32).max
    at_a_time = max(1, CHUNK_BITS // max(1, n_cols))
    with h5py.File(path, "a") as file:
        for start in range(0, max(1, n_rows), at_a_time):
            some = table.bits[start : start + at_a_time].to_sparse().astype(np.float32)
            if large:
                some.indptr = some.indptr.astype(np.int64)
            if start:
                sparse_dataset(file["X"]).append(some)
            else:
                write_elem(file, "X", some, dataset_kwargs={"compression": "gzip", "compression_opts": 1})


def annotate(adata: AnnData, codes: BitMatrix, model: Model) -> None:
    """Put what was learned into an AnnData.

    Parameters
    ----------
    adata : AnnData of shape (n_obs, n_vars)
        It is changed: ``obsm["X_bitatoms"]`` gets the codes (n_obs, n_atoms) and ``varm["bitatoms_atoms"]`` the atoms
        (n_vars, n_atoms), both as 0 and 1 in float32; ``uns["bitatoms"]`` the rest of the model: algebra, bias, uses of
        the atoms, codelength.
    codes : BitMatrix of shape (n_obs, n_atoms)
        Which atoms each observation uses.
    model : Model
        The atoms, learned from as many variables.

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> import bitatoms as ba
    >>> from bitatoms.io.readers.h5ad import annotate
    >>> from bitatoms.core.model import Model
    >>> adata = anndata.AnnData(np.tile(np.float32([[1, 1, 0, 0]]), (9, 1)))
    >>> result = ba.factorize(adata, 1)
    >>> annotate(adata, result.codes, Model.from_factorization(result))
    >>> adata.obsm["X_bitatoms"].shape, adata.varm["bitatoms_atoms"].shape
    ((9, 1), (4, 1))
    """
    if codes.shape != (adata.n_obs, model.atoms.n_rows):
        raise ValueError(
            f"the codes are of shape {codes.shape}; {adata.n_obs} observations and {model.atoms.n_rows} atoms are here"
        )
    if adata.n_vars != model.atoms.n_cols:
        raise ValueError(f"the AnnData has {adata.n_vars} variables, and the model has {model.atoms.n_cols} features")
    if model.columns is not None:
        check_columns(model.columns, _distinct(adata.var_names, model.columns))
    adata.obsm[f"X_{KEY}"] = codes.to_dense(np.float32)
    adata.varm[f"{KEY}_atoms"] = model.atoms.T.to_dense(np.float32)
    old = adata.uns.get(KEY)
    adata.uns[KEY] = {
        **({"table": old["table"]} if isinstance(old, dict) and "table" in old else {}),
        "version": __version__,
        "algebra": model.algebra,
        "coder": model.coder,
        "n_samples": model.n_samples,
        "bias": np.asarray(model.bias),
        "uses": np.asarray(model.uses),
        "wrong": np.asarray(model.wrong),
        "codelength": int(model.codelength.total),
        **({} if model.bits_without is None else {"bits_without": model.bits_without}),
        **({} if model.saved is None else {"bits_saved": np.asarray(model.saved)}),
    }


def _distinct(names: Sequence[str], learned: Names) -> Names:
    """The names of variables; where some come twice and the learned ones were numbered, numbered as well."""
    kept = tuple(map(str, names))
    return kept if kept == learned else unique_columns(Source(Path(), "h5ad", ""), kept, "number")


def write_annotated(source_path: Path, path: Path, codes: BitMatrix, model: Model) -> None:
    """Write the .h5ad file at ``source_path`` to ``path``, with what was learned in it; see `annotate`."""
    from anndata import read_h5ad

    source = Source(source_path, "h5ad", str(source_path))
    check_heaps(source)
    with source.catch_library_errors(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with open_hdf5(source) as file:
            file.check_all(file.root)
        adata = read_h5ad(source_path)
    annotate(adata, codes, model)
    adata.write_h5ad(path)
