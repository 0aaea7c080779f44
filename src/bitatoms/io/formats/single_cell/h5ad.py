"""AnnData in .h5ad files: read and write tables with names, and store learned codes and atoms in an AnnData."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .... import frames
from ...._version import __version__
from ....bits import BitMatrix
from ....columns.annotations import Annotations, Labels
from ....columns.matching import match_columns
from ....columns.table import Header, Names, Table
from ....errors import warn
from ....formatting import numbered
from ....model.model import Model
from ....sparse_bits import Bits
from ...errors import FileError
from ...hdf5_reader import open_hdf5
from ...limits import CHUNK_BITS
from ...npz import METADATA_KEY, parse_table_metadata, stored_picture, table_metadata
from ...options import ReadOptions
from ...stream import Source, TableStream, named_chunks, unique_columns
from .anndata_elements import HierarchicalFile, OpenFile, check_kind, find_element, is_array, read_element
from .anndata_frame import field_names, read_annotations, read_names
from .anndata_matrix import AnnDataCells, MatrixElement, find_matrix, layer_names, read_matrix

if TYPE_CHECKING:
    from anndata import AnnData


def read(source: Source, options: ReadOptions) -> TableStream:
    """Open X, a layer or ``raw`` of an .h5ad file."""
    with source.catch_library_errors(), open_hdf5(source) as file:
        check_kind(file)
    return read_anndata(source, options, open_hdf5)


def read_anndata(source: Source, options: ReadOptions, open_file: OpenFile) -> TableStream:
    """Open X, a layer, ``raw`` or an array of ``obsm`` of an AnnData in an HDF5 file or a Zarr store."""
    with source.catch_library_errors(), open_file(source) as file:
        matrix = find_matrix(file, options.layer)
        n_rows, n_cols = matrix.shape
        metadata = _read_metadata(file)
        columns, column_data = _read_columns(file, matrix)
        rows = read_names(file, "obs", n_rows)
        row_data = read_annotations(file, "obs", n_rows)
        picture = stored_picture(metadata, matrix.shape)
    is_ours = matrix.variables == "var"  # what the metadata describe
    has_columns = not is_ours or metadata.get("columns") is not False or columns != _default_names(n_cols)
    has_rows = metadata.get("rows") is not False or rows != _default_names(n_rows)
    chunks = _chunks(source, options, open_file, columns)
    return TableStream(
        n_cols,
        named_chunks(chunks, rows if has_rows else None),
        columns if has_columns else None,
        picture if is_ours else None,
        is_ours and metadata.get("absent_is_zero") is True,
        _unless_none_written(metadata, "row_data", row_data),
        _unless_none_written(metadata, "column_data", column_data) if is_ours else column_data,
    )


def _read_columns(file: HierarchicalFile, matrix: MatrixElement) -> tuple[Names, Annotations]:
    """Return the names and the annotations of the columns of a matrix.

    Those of an array in ``obsm`` are numbered from 1, as in the method ``to_df`` of ``obsm``.
    """
    n_cols = matrix.shape[1]
    if matrix.variables is not None:
        names = read_names(file, matrix.variables, n_cols)
        return names, read_annotations(file, matrix.variables, n_cols)
    if matrix.kind == "frame":
        return tuple(field_names(file, matrix.path)), Annotations({}, n_cols)
    return numbered(matrix.path.removeprefix(frames.OBSM), n_cols), Annotations({}, n_cols)


def _unless_none_written(metadata: dict[str, Any], key: str, annotations: Annotations) -> Annotations | None:
    """Return annotations; None if `write` wrote a table without any, and no other program added some."""
    return None if metadata and not annotations and metadata.get(key) is not True else annotations


def _default_names(count: int) -> Names:
    """Return the names that AnnData uses where none are given."""
    return tuple(map(str, range(count)))


def _read_metadata(file: HierarchicalFile) -> dict[str, Any]:
    """Return what `write` stored in ``uns``, or an empty dict."""
    element = find_element(file, "uns", METADATA_KEY, "table")
    if element is None or not is_array(element) or element.shape != ():
        return {}
    return parse_table_metadata(str(read_element(file, element)))


def _chunks(source: Source, options: ReadOptions, open_file: OpenFile, columns: Names) -> Iterator[Bits]:
    """Yield the rows as bits."""
    with source.catch_library_errors(), open_file(source) as file:
        cells = AnnDataCells(source, options, columns, layer_names(file, options.layer))
        yield from read_matrix(file, find_matrix(file, options.layer), cells)
    cells.check_missing()


def write(table: Table, path: Path, format: str) -> None:
    """Write an AnnData whose X is a CSR matrix of float32, which all of scanpy accepts; unknown cells are NaN."""
    import anndata
    import h5py
    import pandas as pd
    from anndata import AnnData
    from anndata.io import sparse_dataset, write_elem

    n_rows, n_cols = table.shape
    if any("\0" in name for name in (*(table.row_names or ()), *(table.columns or ()))):
        raise FileError(f"{path.name}: an .h5ad file cannot store a name with a zero byte; rename it, or write .npz")
    known = {"rows": table.row_names, "row_data": table.row_data, "column_data": table.column_data}
    metadata = table_metadata(table, **{name: value is not None for name, value in known.items()})
    adata = AnnData(
        obs=_frame(path, "row_data", table.row_data, n_rows),
        var=_frame(path, "column_data", table.column_data, n_cols),
        uns={METADATA_KEY: {"table": metadata}},
    )
    for frame, names in ((adata.obs, table.row_names), (adata.var, table.columns)):
        if names is not None:  # set here, because AnnData warns about duplicates, which are allowed in a table
            frame.index = pd.Index(names, dtype=object)
    with anndata.settings.override(allow_write_nullable_strings=True):
        adata.write_h5ad(path, convert_strings_to_categoricals=False)
    needs_int64 = table.data.count() + table.data.n_unknown >= np.iinfo(np.int32).max
    chunk_rows = max(1, CHUNK_BITS // max(1, n_cols))
    with h5py.File(path, "a") as file:
        for start in range(0, max(1, n_rows), chunk_rows):
            chunk = table.data[start : start + chunk_rows].to_sparse().astype(np.float32)
            if needs_int64:
                chunk.indptr = chunk.indptr.astype(np.int64)
            if start:
                sparse_dataset(file["X"]).append(chunk)
            else:
                write_elem(file, "X", chunk, dataset_kwargs={"compression": "gzip", "compression_opts": 1})


def _frame(path: Path, axis: str, annotations: Annotations | None, n: int) -> Any:
    """Return annotations as ``obs`` or ``var``, in types that AnnData writes, with the index that it has by default."""
    fields: dict[str, Any] = {}
    unsuitable: list[str] = []
    annotations = Annotations({}, n) if annotations is None else annotations
    for name in annotations:
        values = annotations.values_of(name)
        if isinstance(values, Labels):
            if any("\0" in text for text in values.categories):
                raise FileError(f"{path.name}: {axis}[{name!r}] has a zero byte, which an .h5ad file cannot store")
            values = replace(values, is_nullable=values.is_nullable or bool((values.codes < 0).any()))
        elif isinstance(values, np.ma.MaskedArray) and values.dtype.kind == "f":
            values = values.filled(np.nan)
        if name in ("_index", "", ".") or "\0" in name or "/" in name:
            unsuitable.append(name)
        else:
            fields[name] = values
    if unsuitable:
        warn(f"{path.name}: an .h5ad file cannot store {axis} of the name {', '.join(map(repr, unsuitable))}")
    return Annotations(fields, n).to_pandas(_default_names(n))


def annotate(adata: AnnData, codes: BitMatrix, model: Model, soft_codes: NDArray[np.floating] | None = None) -> None:
    """Store codes and a model in an AnnData.

    Parameters
    ----------
    adata : AnnData of shape (n_obs, n_vars)
        Modified in place. ``obsm["X_bitatoms"]`` is set to the codes (n_obs, n_atoms), 0 and 1 in float32, and
        ``obsm["X_bitatoms_soft"]`` to the soft codes, if they are given, in float32. ``varm["bitatoms_atoms"]`` is set
        to the atoms (n_vars, n_atoms) in float32: 1 where the atom makes the variable present, -1 where it makes it
        absent (the bias sets it), 0 where it leaves it as it is. ``uns["bitatoms"]`` is set to the rest of the model:
        algebra, bias, names and uses of the atoms, bits that they save, codelength. The variables may be in any order;
        atoms and bias are 0 for those that the model was not fitted on.
    codes : BitMatrix of shape (n_obs, n_atoms)
        Which atoms each observation uses.
    model : Model
        The model.
    soft_codes : ndarray of shape (n_obs, n_atoms), optional
        The bits that each atom saves in each observation; `Model.soft_codes` returns them.

    Raises
    ------
    ValueError
        If the shapes differ, or if no variable is a feature of the model.

    Examples
    --------
    >>> import anndata
    >>> import numpy as np
    >>> import bitatoms as ba
    >>> from bitatoms.io.formats.single_cell.h5ad import annotate
    >>> from bitatoms.model.model import Model
    >>> adata = anndata.AnnData(np.tile(np.float32([[1, 1, 0, 0]]), (9, 1)))
    >>> result = ba.factorize(adata, 1)
    >>> annotate(adata, result.codes, Model.from_factorization(result))
    >>> adata.obsm["X_bitatoms"].shape, adata.varm["bitatoms_atoms"].shape
    ((9, 1), (4, 1))
    """
    for name, given in (("codes", codes), ("soft_codes", soft_codes)):
        if given is not None and given.shape != (adata.n_obs, model.atoms.n_rows):
            raise ValueError(
                f"{name} has shape {given.shape}; expected {adata.n_obs} observations and {model.atoms.n_rows} atoms"
            )
    names = None if model.columns is None else _numbered_like(adata.var_names, model.columns)
    header = Header(adata.n_vars, names, data=Annotations.from_pandas(adata.var))
    match = match_columns(model.header, header, "zero", "the AnnData")
    features = match.inverse(adata.n_vars)
    # A column that counts the other allele is present where that of the model is absent.
    signs = np.ones(adata.n_vars) if match.swapped is None else np.where(match.swapped[features], -1, 1)
    adata.obsm[f"X_{METADATA_KEY}"] = codes.to_dense(np.float32)
    if soft_codes is not None:
        adata.obsm[f"X_{METADATA_KEY}_soft"] = soft_codes.astype(np.float32)
    elif f"X_{METADATA_KEY}_soft" in adata.obsm:
        del adata.obsm[f"X_{METADATA_KEY}_soft"]  # of another model
    adata.varm[f"{METADATA_KEY}_atoms"] = np.where(features < 0, 0, signs * model.signed_atoms()[:, features]).T.astype(
        np.float32
    )
    old = adata.uns.get(METADATA_KEY)
    adata.uns[METADATA_KEY] = {
        **({"table": old["table"]} if isinstance(old, dict) and "table" in old else {}),
        "version": __version__,
        "algebra": model.algebra,
        "coder": model.coder,
        "n_samples": model.n_samples,
        "names": np.array(model.atom_names, object),
        "bias": np.where(features < 0, 0, np.asarray(model.bias)[features]).astype(np.uint8),
        "uses": np.asarray(model.uses),
        "wrong": np.where(features < 0, 0, np.asarray(model.wrong)[features]),
        "codelength": int(model.codelength.total),
        **({} if model.bits_without is None else {"bits_without": model.bits_without}),
        **({} if model.saved is None else {"bits_saved": np.asarray(model.saved)}),
        **({} if model.complete is None else {"complete": np.asarray(model.complete)}),
        **({} if model.recurrence is None else {"recurs": model.recurrence.shares}),
    }


def _numbered_like(names: Sequence[str], learned: Names) -> Names:
    """Return the names of variables; unless they are the learned ones, number duplicates as `read` does."""
    names = tuple(map(str, names))
    return names if names == learned else unique_columns(Source(Path(), "h5ad", ""), names, "number")


def write_annotated(
    source_path: Path, path: Path, codes: BitMatrix, model: Model, soft_codes: NDArray[np.floating] | None = None
) -> None:
    """Copy the .h5ad file at ``source_path`` to ``path`` and store codes and a model in it; see `annotate`."""
    from anndata import read_h5ad

    source = Source(source_path, "h5ad", str(source_path))
    with source.catch_library_errors():
        with open_hdf5(source) as file:
            file.check_all(file.root)
        adata = read_h5ad(source_path)
    annotate(adata, codes, model, soft_codes)
    adata.write_h5ad(path)
