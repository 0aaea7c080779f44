"""The matrix of an AnnData, an array or sparse, wherever it lies: found, made sure of, and read as bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ... import validation
from ...bits import BitMatrix
from ..chunked import ChunkCells, Indices, read_row_chunks
from ..stream import CHUNK_BITS, Source

_ENTRIES = CHUNK_BITS // 4  # stored values on their way in
_SPARSE = {"csr_matrix": "csr", "csc_matrix": "csc", "csr": "csr", "csc": "csc"}


class HierarchicalFile(Protocol):
    """Where the elements of an AnnData lie: an HDF5 file or a Zarr store. It hands out only what lies in it."""

    root: Any

    def child(self, group: Any, name: str) -> Any | None:
        """The group or array of this name; None where there is none."""

    def check_all(self, group: Any) -> None:
        """Look at all there is in a group, as `child` does."""

    def read(self, array: Any, *slices: slice) -> NDArray[Any]:
        """Some values of an array."""


Opened = Callable[[Source], AbstractContextManager[HierarchicalFile]]


class Matrix(NamedTuple):
    """What holds the numbers: an array, or the group of a sparse matrix."""

    kind: str  # "dense", "csr" or "csc"
    what: str  # it is called
    shape: tuple[int, int]
    element: Any


def matrix_of(source: Source, vault: HierarchicalFile, layer: str | None) -> Matrix:
    """The numbers: X, or a layer."""
    if layer is None:
        what, element = "X", vault.child(vault.root, "X")
    else:
        what, layers = f"layers/{layer}", vault.child(vault.root, "layers")
        element = None if layers is None or is_array(layers) else vault.child(layers, layer)
    if element is None or element.attrs.get("encoding-type") == "null":
        there = ", ".join(map(repr, _layers(vault))) or "none"
        missing = "it has no X; pass layer=" if layer is None else f"it has no layer {layer!r}; pass layer="
        raise source.error(f"{missing} with the name of one of its layers, which are: {there}")
    kind = _kind(element)
    if kind == "dense":
        if len(element.shape or ()) != 2 or element.dtype.kind not in "biuf":
            raise source.error(f"its {what} is of shape {element.shape} and type {element.dtype}, no table of numbers")
        shape = element.shape
    elif kind is None:
        found = str(element.attrs.get("encoding-type", "a group"))[:40]
        raise source.error(f"its {what} is {found!r}, neither an array nor a sparse matrix; write it as one of them")
    else:
        shape = element.attrs.get("shape", element.attrs.get("h5sparse_shape"))
    n_rows, n_cols = (int(length) for length in shape)
    source.check_size(n_rows, n_cols)
    return Matrix(kind, what, (n_rows, n_cols), element)


def _kind(element: Any) -> str | None:
    """How the numbers are kept; None where these are none."""
    if is_array(element):
        return "dense"
    found = element.attrs.get("encoding-type", element.attrs.get("h5sparse_format"))
    return _SPARSE.get(found.decode() if isinstance(found, bytes) else str(found))


def is_array(element: Any) -> bool:
    """Whether this is an array, not a group."""
    return hasattr(element, "shape")


def _layers(vault: HierarchicalFile) -> list[str]:
    """The names of the layers."""
    layers = vault.child(vault.root, "layers")
    return [] if layers is None or is_array(layers) else sorted(layers)[:20]


def bits_of(source: Source, vault: HierarchicalFile, matrix: Matrix, numbers: ChunkCells) -> Iterator[BitMatrix]:
    """The rows of a matrix as bits."""
    if matrix.kind == "dense":
        chunk = matrix.element.chunks or (1, matrix.shape[1])
        yield from read_row_chunks(lambda *tile: vault.read(matrix.element, *tile), matrix.shape, chunk, numbers)
    elif matrix.kind == "csr":
        yield from _lines(source, vault, matrix, matrix.shape, numbers)
    elif min(matrix.shape):
        n_rows, n_cols = matrix.shape
        words = np.empty((n_cols, -(-n_rows // 64)), np.uint64)
        done = 0
        for some in _lines(source, vault, matrix, (n_cols, n_rows), numbers):
            words[done : done + len(some)] = some.words
            done += len(some)
        yield BitMatrix.from_words(words, n_rows, check=False).transpose()
    else:
        yield BitMatrix.zeros(*matrix.shape)


def _lines(
    source: Source, vault: HierarchicalFile, matrix: Matrix, shape: tuple[int, int], numbers: ChunkCells
) -> Iterator[BitMatrix]:
    """The lines of a sparse matrix, rows of one in CSR and columns of one in CSC, some at a time."""
    from scipy.sparse import csr_array

    n_lines, length = shape
    data, indices, starts = _compressed(source, vault, matrix, shape)
    most = max(1, 8 * CHUNK_BITS // max(1, length))
    start = 0
    while start < n_lines:
        full = int(np.searchsorted(starts, starts[start] + _ENTRIES, "right")) - 1
        stop = min(max(start + 1, full), start + most, n_lines)
        some = slice(int(starts[start]), int(starts[stop]))
        values = csr_array(
            (vault.read(data, some), vault.read(indices, some), starts[start : stop + 1] - starts[start]),
            shape=(stop - start, length),
        )
        yield _packed(values, start, matrix.kind == "csc", numbers)
        start = stop


def _compressed(
    source: Source, vault: HierarchicalFile, matrix: Matrix, shape: tuple[int, int]
) -> tuple[Any, Any, NDArray[np.int64]]:
    """The arrays that a sparse matrix is made of: values, indices, and where each line starts, made sure they fit."""
    parts = []
    for name, kinds in (("data", "biuf"), ("indices", "iu"), ("indptr", "iu")):
        part = vault.child(matrix.element, name)
        if part is None or not is_array(part) or len(part.shape or ()) != 1 or part.dtype.kind not in kinds:
            raise source.error(f"corrupt: the sparse matrix {matrix.what} has no proper {name!r}")
        parts.append(part)
    data, indices, pointers = parts
    if pointers.shape[0] != shape[0] + 1 or data.shape != indices.shape:
        raise source.error(f"corrupt: the parts of the sparse matrix {matrix.what} do not fit its shape {matrix.shape}")
    starts = vault.read(pointers, slice(None)).astype(np.int64)
    counts = np.diff(starts)
    if starts[0] != 0 or starts[-1] > data.shape[0] or (counts < 0).any() or counts.max(initial=0) > shape[1]:
        raise source.error(
            f"corrupt: the sparse matrix {matrix.what} has lines that do not fit its shape or its values"
        )
    return data, indices, starts


def _packed(values: Any, start: int, by_columns: bool, numbers: ChunkCells) -> BitMatrix:
    """Lines of a sparse matrix as bits; ``start`` is the number of the first."""
    from scipy.sparse import csr_array

    stored, across, starts = validation.sparse_table(values, "it")

    def locate(places: NDArray[np.intp]) -> Indices:
        lines = start + np.searchsorted(starts, places, "right") - 1
        return (across[places], lines) if by_columns else (lines, across[places])

    ones = np.asarray(numbers.numbers_to_bits(stored, locate), np.bool_)
    threshold = numbers.cells.threshold
    if threshold is None or threshold >= 0:
        return BitMatrix.from_sparse(csr_array((ones, across, starts), shape=values.shape))
    # What is not stored is zero, which is above the threshold: the ones are all but these.
    zeros = BitMatrix.from_sparse(csr_array((~ones, across, starts), shape=values.shape))
    return zeros ^ BitMatrix.from_any(zeros, binarize=-1)
