"""Counts of 10x Genomics, cells x features: .h5 files of Cell Ranger 2 and later, and folders with matrix.mtx."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from ....columns.annotations import Annotations, Labels, Values
from ....errors import Parameter, warn
from ....formatting import listed_names, quoted
from ....system.libraries import missing_library
from ...hdf5_reader import Hdf5Reader, open_hdf5
from ...options import ReadOptions
from ...stream import RowChunk, Source, TableStream, named_chunks
from ..cell_ranger import feature_data, feature_names
from ..matrix_market import read_cells
from ..registry import feature_matrices
from .anndata_elements import check_kind, is_array, read_array, read_texts
from .anndata_matrix import AnnDataCells, MatrixElement, read_matrix

_MATRIX = "matrix"  # the group of version 3; in version 2 there is one group per genome
_FEATURES = {"id": "gene_ids", "name": "gene_symbols", "feature_type": "feature_types", "genome": "genome"}
_LISTED = 20  # names in a message


def read(source: Source, options: ReadOptions) -> TableStream:
    """Open an .h5 file or a folder; the rows of the table are cells, whatever the order in the file."""
    stream = _read_folder(source, options) if source.path.is_dir() else _read_hdf5(source, options)
    return _of_one_type(source, options, stream)


def _read_folder(source: Source, options: ReadOptions) -> TableStream:
    """Open the matrix of a folder, with the names beside it."""
    if options.layer is not None:
        raise source.error("a folder has no layers; omit ", Parameter("layer"))
    names = feature_matrices(source.path)
    if len(names) != 1:
        found = (
            f"several matrices ({', '.join(map(repr, names[:_LISTED]))}); pass one of them"
            if names
            else "no matrix.mtx"
        )
        raise source.error(f"this folder has {found}")
    return read_cells(source._replace(path=source.path / names[0], name=f"{source.name}/{names[0]}"), options)


def _read_hdf5(source: Source, options: ReadOptions) -> TableStream:
    """Open the matrix of an HDF5 file."""
    if find_spec("h5py") is None:
        raise missing_library(f"{source.name}: HDF5 needs", "h5py")
    with source.catch_library_errors(), open_hdf5(source) as file:
        matrix = _find_matrix(file, options.layer)
        n_cells, n_features = matrix.shape
        cells = read_texts(file, matrix.element, "barcodes", n_cells)
        features = _read_features(file, matrix, n_features)
    columns = feature_names(features)

    def chunks() -> Iterator[RowChunk]:
        with source.catch_library_errors(), open_hdf5(source) as file:
            values = AnnDataCells(source, options, columns, ())
            found = _find_matrix(file, options.layer)
            yield from named_chunks(read_matrix(file, found, values), cells)
        values.check_missing()

    return TableStream(
        n_features, chunks(), columns, row_data=Annotations({}, n_cells), column_data=features
    )  # fmt: skip


def _find_matrix(file: Hdf5Reader, layer: str | None) -> MatrixElement:
    """Return the matrix of a file, by cell: what is stored as CSC of features x cells is CSR of cells x features."""
    check_kind(file)
    names = [_MATRIX] if _MATRIX in file.root else sorted(file.root)
    groups = {name: group for name in names if _is_matrix(file, group := file.child(file.root, name))}
    listed = listed_names(groups, _LISTED)
    if layer is None and len(groups) != 1:
        problem = (
            f"it has the matrices of {len(groups)} genomes ({listed}); pass "
            if groups
            else "it has no matrix of 10x Genomics"
        )
        raise file.source.error(problem, *((Parameter("layer"),) if groups else ()))
    if layer is not None and layer not in groups:
        raise file.source.error(f"there is no matrix {quoted(layer)} (matrices: {listed})")
    name = next(iter(groups)) if layer is None else layer
    n_features, n_cells = read_array(file, groups[name], "shape", "iu", 2).tolist()
    file.source.check_size(n_cells, n_features, streamable=True, n_ones=0 if file.source.scratch is None else None)
    return MatrixElement("csr", name, (n_cells, n_features), groups[name], None)


def _is_matrix(file: Hdf5Reader, group: Any) -> bool:
    """Return whether a group contains a matrix with its cells."""
    return group is not None and not is_array(group) and {"barcodes", "indptr", "shape"} <= set(group)


def _read_features(file: Hdf5Reader, matrix: MatrixElement, n: int) -> Annotations:
    """Return what is known about the features."""
    group = file.child(matrix.element, "features")
    if group is None:  # version 2
        texts = [read_texts(file, matrix.element, name, n) for name in ("genes", "gene_names")]
        return feature_data(*texts, genome=[matrix.path] * n)
    if is_array(group):
        raise file.source.error(f"corrupt: {matrix.path}/features is not a group")
    ids, names = (read_texts(file, group, name, n) for name in ("id", "name"))
    others: dict[str, Values | list[str]] = {}
    for name in sorted(group, key=lambda name: (name not in _FEATURES, name)):
        array = file.child(group, name)
        if name in ("id", "name") or name.startswith("_") or array is None or getattr(array, "shape", None) != (n,):
            continue
        if array.dtype.kind in "SO":
            others[_FEATURES.get(name, name)] = read_texts(file, group, name, n)
        elif array.dtype.kind in "biuf":
            others[_FEATURES.get(name, name)] = file.read(array, slice(None))
    return feature_data(ids, names, **others)


def _of_one_type(source: Source, options: ReadOptions, stream: TableStream) -> TableStream:
    """Return the features of the type that the user passed; a warning lists the types, if there are several."""
    types = None if stream.column_data is None or "feature_types" not in stream.column_data else stream.column_data
    labels = None if types is None else types.values_of("feature_types")
    names = labels.categories if isinstance(labels, Labels) else ()
    listed = listed_names(names, _LISTED)
    if options.modality is None:
        if len(names) > 1:
            warn(
                f"{source.name}: its features are of several types ({listed}); for one of them, pass ",
                Parameter("modality", names[0]),
            )
        return stream
    if not isinstance(labels, Labels) or types is None or options.modality not in names:
        raise source.error(f"there are no features of the type {quoted(options.modality)} (types: {listed})")
    kept = np.flatnonzero(labels.codes == names.index(options.modality))
    chunks = (RowChunk(chunk.bits.take_columns(kept), chunk.names) for chunk in stream.chunks)
    features = types.take(kept)  # of which fewer may have the same name
    return replace(stream, n_cols=len(kept), chunks=chunks, columns=feature_names(features), column_data=features)
