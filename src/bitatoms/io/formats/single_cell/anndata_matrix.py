"""The matrix of an AnnData, an array, sparse or a data frame, in an HDF5 file or a Zarr store, as bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .... import frames
from ....bits import BitMatrix
from ....cell_values import sparse_table
from ....errors import Parameter, warn
from ....formatting import quoted
from ....sparse_bits import Bits, SparseBits, is_smaller_sparse
from ...cells import Cells, Indices, Locate, position_in
from ...limits import CHUNK_BITS, CHUNK_ENTRIES
from ...options import ReadOptions
from ...out_of_core.chunked import read_row_chunks
from ...out_of_core.transposing import rows_of_columns
from ...stream import Source
from .anndata_elements import HierarchicalFile, encoding, find_element, is_array, open_array, text_attribute
from .anndata_frame import field_names, read_names, read_numbers

_CHUNK_ENTRIES = CHUNK_BITS // 4  # most stored values read together
_PACKED_BITS = 1 << 27  # of a chunk of sparse lines, if it were packed
_SPARSE_ENCODINGS = {"csr_matrix": "csr", "csc_matrix": "csc", "csr": "csr", "csc": "csc"}


class MatrixElement(NamedTuple):
    """The array of a dense matrix, or the group of a sparse one or of a data frame."""

    kind: str  # "dense", "csr", "csc" or "frame"
    path: str
    shape: tuple[int, int]
    element: Any
    variables: str | None  # the data frame whose index names the columns; None in obsm


def find_matrix(file: HierarchicalFile, layer: str | None) -> MatrixElement:
    """Return X, a layer, or, if no layer has this name, ``raw`` or an array of ``obsm``."""
    path: str = "X" if layer is None else f"layers/{layer}"
    variables: str | None = "var"
    element = find_element(file, "X") if layer is None else find_element(file, "layers", layer)
    obsm = frames.obsm_key(layer)
    if element is None and layer == frames.RAW:
        path, variables, element = "raw/X", "raw/var", find_element(file, "raw", "X")
    elif element is None and layer is not None and obsm is not None:
        path, variables, element = layer, None, find_element(file, "obsm", obsm)
    if element is None or encoding(element) == "null":
        raise _no_matrix(file, layer, obsm)
    kind = _kind(element)
    if kind == "dense":
        check_numeric_table(file.source, path, element)
        shape = element.shape
    elif kind == "frame" and variables is None:
        shape = len(read_names(file, path)), len(field_names(file, path))
    elif kind is None or kind == "frame":
        raise file.source.error(
            f"{path} is {quoted(encoding(element) or 'a group')}, neither an array nor a sparse matrix; write it as "
            "one of them"
        )
    else:
        shape = element.attrs.get("shape", element.attrs.get("h5sparse_shape"))
    n_rows, n_cols = (int(length) for length in shape)
    is_sparse = kind in ("csr", "csc")
    file.source.check_size(
        n_rows, n_cols, streamable=True, n_ones=0 if is_sparse and file.source.scratch is None else None
    )
    return MatrixElement(kind, path, (n_rows, n_cols), element, variables)


def _no_matrix(file: HierarchicalFile, layer: str | None, obsm: str | None) -> Exception:
    """Return the error that there is no such matrix."""
    missing = "X" if layer is None else layer if obsm is not None else f"layer {layer!r}"
    kind, listed = ("layers", layer_names(file)) if obsm is None else ("obsm", _children(file, "obsm"))
    names = ", ".join(map(repr, listed)) or "none"
    return file.source.error(f"there is no {missing} ({kind}: {names}); pass ", Parameter("layer"))


def check_numeric_table(source: Source, path: str, array: Any) -> None:
    """Raise FileError unless an array is a table of numbers."""
    if len(array.shape or ()) != 2 or array.dtype.kind not in "biuf":
        raise source.error(f"{path} has shape {array.shape} and type {array.dtype}: it is not a table of numbers")


def _kind(element: Any) -> str | None:
    """Return how a matrix is stored, or None if the element is not a matrix."""
    if is_array(element):
        return "dense"
    kind = encoding(element) or text_attribute(element, "h5sparse_format")
    return "frame" if kind == "dataframe" else _SPARSE_ENCODINGS.get(kind)


def _children(file: HierarchicalFile, name: str) -> list[str]:
    """Return the names of the first elements of a group."""
    group = find_element(file, name)
    return [] if group is None or is_array(group) else sorted(group)[:20]


def layer_names(file: HierarchicalFile, layer: str | None = None) -> list[str]:
    """Return the names of the first layers and of ``raw``; if the current layer is of ``obsm``, of its arrays."""
    if frames.obsm_key(layer) is not None:
        return [f"{frames.OBSM}{name}" for name in _children(file, "obsm")]
    names = _children(file, "layers")
    return names if find_element(file, "raw", "X") is None else [*names, frames.RAW]


class AnnDataCells(Cells):
    """Convert the values of an AnnData to 0 and 1. Negative values are an error; with a threshold, a warning."""

    def __init__(self, source: Source, options: ReadOptions, columns: Sequence[str], layers: Sequence[str]) -> None:
        super().__init__(source, options, position_in(columns))
        layer = frames.layer_of_counts(layers, options.layer)
        counts = () if layer is None else ("pass ", Parameter("layer", layer), " and ", Parameter("binarize", 0))
        self._advice = frames.scaled_advice(options.binarize, *counts)
        self._is_scaled = False

    def numbers_to_states(self, values: NDArray[Any], locate: Locate) -> NDArray[Any]:
        """Convert numbers to states."""
        if values.dtype.kind in "if" and (values < 0).any():
            self._is_scaled = True
            if self.threshold is None:
                raise self.source.error(*self._advice)
        return super().numbers_to_states(values, locate)

    def check_missing(self) -> None:
        """Check missing cells as `Cells.check_missing` does; warn if values were negative."""
        super().check_missing()
        if self._is_scaled:
            warn(f"{self.source.name}: ", *self._advice)


def read_matrix(file: HierarchicalFile, matrix: MatrixElement, cells: Cells) -> Iterator[Bits]:
    """Yield the rows of a matrix as bits."""
    if matrix.kind == "dense":
        chunk = matrix.element.chunks or (1, matrix.shape[1])
        yield from read_row_chunks(lambda *slices: file.read(matrix.element, *slices), matrix.shape, chunk, cells)
    elif matrix.kind == "frame":
        values = read_numbers(file, matrix.path, matrix.shape)
        yield from read_row_chunks(lambda *slices: values[slices], matrix.shape, matrix.shape, cells)
    elif matrix.kind == "csr":
        yield from _read_lines(file, matrix, matrix.shape, cells)
    elif min(matrix.shape):
        columns = _read_lines(file, matrix, matrix.shape[::-1], cells)
        yield from rows_of_columns(file.source, columns, matrix.shape)
    else:
        yield BitMatrix.zeros(*matrix.shape)


def _read_lines(file: HierarchicalFile, matrix: MatrixElement, shape: tuple[int, int], cells: Cells) -> Iterator[Bits]:
    """Yield the lines of a sparse matrix (rows of CSR, columns of CSC) as bits, which are sparse if few are ones."""
    from scipy.sparse import csr_array

    n_lines, length = shape
    data, indices, indptr = _open_compressed(file, matrix, shape)
    is_sparse = is_smaller_sparse(matrix.shape, int(indptr[-1]))
    if not is_sparse:
        file.source.check_size(*matrix.shape, streamable=True)
    # Lines with unknown cells are packed: within a memory limit, only so many at a time.
    chunk_bits = CHUNK_BITS if not is_sparse else _PACKED_BITS if file.source.scratch is not None else n_lines * length
    max_lines = max(1, chunk_bits // max(1, length))
    # Not less than a stored chunk, because zarr decompresses it for every read.
    stored = max(array.chunks[0] if array.chunks else 0 for array in (data, indices))
    most = min(_CHUNK_ENTRIES, max(CHUNK_ENTRIES, stored))
    start = 0
    while start < n_lines:
        full = int(np.searchsorted(indptr, indptr[start] + most, "right")) - 1
        stop = min(max(start + 1, full), start + max_lines, n_lines)
        entries = slice(int(indptr[start]), int(indptr[stop]))
        lines = csr_array(
            (file.read(data, entries), file.read(indices, entries), indptr[start : stop + 1] - indptr[start]),
            shape=(stop - start, length),
        )
        yield _as_bits(lines, start, matrix.kind == "csc", cells, is_sparse)
        start = stop


def _open_compressed(
    file: HierarchicalFile, matrix: MatrixElement, shape: tuple[int, int]
) -> tuple[Any, Any, NDArray[np.int64]]:
    """Return the arrays of a CSR or CSC matrix (data, indices, indptr), checked for consistency."""
    kinds = ("data", "biuf"), ("indices", "iu"), ("indptr", "iu")
    data, indices, stored_indptr = (open_array(file, matrix.element, *each, None) for each in kinds)
    indptr = file.read(stored_indptr, slice(None)).astype(np.int64)
    counts = np.diff(indptr)
    is_valid = len(counts) == shape[0] and data.shape == indices.shape and indptr[0] == 0
    if not is_valid or indptr[-1] > data.shape[0] or counts.min(initial=0) < 0 or counts.max(initial=0) > shape[1]:
        raise file.source.error(
            f"corrupt: the arrays of the sparse matrix {matrix.path} do not fit its shape {matrix.shape}, or each other"
        )
    return data, indices, indptr


def _as_bits(lines: Any, start: int, by_columns: bool, cells: Cells, is_sparse: bool) -> Bits:
    """Return lines of a sparse matrix as bits, sparse or packed; ``start`` is the index of the first."""
    from scipy.sparse import csr_array

    data, indices, indptr = sparse_table(lines, "it")

    def locate(entries: NDArray[np.intp]) -> Indices:
        line = start + np.searchsorted(indptr, entries, "right") - 1
        return (indices[entries], line) if by_columns else (line, indices[entries])

    def where(cells: NDArray[np.bool_]) -> BitMatrix:
        return BitMatrix.from_sparse(csr_array((cells, indices, indptr), shape=lines.shape))

    packed = cells.pack_numbers(data[np.newaxis], locate)
    ones = packed.filled().to_dense(np.bool_)[0]
    unknown = None if packed.unknown is None else where(packed.unknown.to_dense(np.bool_)[0])
    threshold = cells.threshold
    if threshold is None or threshold >= 0:
        if is_sparse and unknown is None:
            return SparseBits(np.concatenate(([0], np.cumsum(ones)))[indptr], indices[ones], lines.shape[1])
        return where(ones).with_unknown(unknown)
    # Zeros, which are not stored, are above the threshold.
    zeros = where(~ones)
    return (zeros ^ BitMatrix.from_any(zeros, binarize=-1)).with_unknown(unknown)
