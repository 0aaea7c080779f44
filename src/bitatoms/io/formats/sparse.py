"""Sparse matrices in .npz files, as `scipy.sparse.save_npz` writes them.

CSR, CSC and COO matrices are read in chunks, because `scipy.sparse.load_npz` needs many times the memory of the packed
table, and trusts the indices. It reads BSR and DIA matrices, which are rare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import FileError
from ..limits import CHUNK_ENTRIES
from ..npz import NpyReader, NpzReader, open_npz
from ..options import ReadOptions
from ..out_of_core.entries import EntriesBuilder
from ..scratch import LEAST_LIMIT
from ..stream import RowChunk, Source, TableStream

_COPIES = 4  # of the entries in memory, while SciPy converts a matrix

Shape = tuple[int, int]
Entries = tuple[NDArray[np.integer], NDArray[np.integer], NDArray[Any]]  # rows, columns and values


def is_sparse(file: NpzReader) -> bool:
    """Return whether these arrays are those of a sparse matrix."""
    return all(name in file for name in ("format", "shape", "data"))


def read_sparse(source: Source, options: ReadOptions, file: NpzReader) -> TableStream:
    """Open a sparse matrix."""
    if (shape := read_shape(file)) is None:
        raise source.error("the shape of the sparse matrix is not two integers; save it with scipy.sparse.save_npz")
    source.check_size(*shape, streamable=True, n_ones=0)
    read_entries = _READERS[_read_format(file)]

    def chunks() -> Iterator[RowChunk]:
        builder = EntriesBuilder(source, options, shape)
        with open_npz(source) as reopened:
            for rows, columns, values in read_entries(reopened, shape):
                builder.add(rows, columns, values)
        yield from map(RowChunk, builder.chunks())

    return TableStream(shape[1], chunks())


def read_shape(file: NpzReader) -> Shape | None:
    """Return the two integers of the array "shape", or None if there is no such array."""
    if "shape" not in file:
        return None
    try:
        with file.open_array("shape") as values:
            if values.dtype.kind not in "iu" or values.shape != (2,):
                return None
            n_rows, n_cols = values.read(2).tolist()
            return n_rows, n_cols
    except FileError:  # the array may be unrelated to the table
        return None


def _read_format(file: NpzReader) -> str:
    """Return the storage format of the matrix."""
    with file.open_array("format") as values, file.source.catch_library_errors():
        found = values.read(1).tolist()[0] if values.shape == () and 0 < values.dtype.itemsize < 100 else "?"
        found = found.decode() if isinstance(found, bytes) else str(found)
    if found not in _READERS:
        raise file.source.error(
            f"the sparse matrix has the format {found[:20]!r}, not one of {', '.join(_READERS)}; "
            "convert it with .tocsr()"
        )
    return found


def _read_csr(file: NpzReader, shape: Shape) -> Iterator[Entries]:
    """Yield the entries of a CSR matrix."""
    with _open_array(file, "indices", "iu", 1) as columns, _open_array(file, "data", "biuf", 1) as values:
        for rows in _expand_indptr(file, shape[0]):
            yield rows, columns.read(len(rows)), values.read(len(rows))


def _read_csc(file: NpzReader, shape: Shape) -> Iterator[Entries]:
    """Yield the entries of a CSC matrix."""
    for columns, rows, values in _read_csr(file, (shape[1], shape[0])):
        yield rows, columns, values


def _read_coo(file: NpzReader, shape: Shape) -> Iterator[Entries]:
    """Yield the entries of a COO matrix."""
    joint = "coords" in file  # rows and columns in one array, as in SciPy's n-dimensional COO arrays
    with (
        _open_array(file, "coords" if joint else "row", "iu", 1 + joint) as rows,
        _open_array(file, "coords" if joint else "col", "iu", 1 + joint) as columns,
        _open_array(file, "data", "biuf", 1) as values,
    ):
        count = values.shape[0]
        for indices in (rows, columns):
            if indices.shape != ((2, count) if joint else (count,)):
                raise file.source.error(f"{indices.what} has the shape {indices.shape}, but there are {count} values")
        if joint:
            columns.skip(count)
        for _, step in _steps(count):
            yield rows.read(step), columns.read(step), values.read(step)


def _read_by_scipy(file: NpzReader, shape: Shape) -> Iterator[Entries]:
    """Yield the entries of a BSR or DIA matrix, all of which are in memory."""
    from scipy import sparse

    source, needed = file.source, _COPIES * file.n_bytes
    if source.scratch is not None and needed > max(source.scratch.limit, LEAST_LIMIT):
        raise source.error(f"takes {needed >> 20} MiB in this sparse format; convert it with .tocsr()")
    source.check_memory(needed, "its entries", "; convert it with .tocsr()")
    with source.catch_library_errors():
        matrix = sparse.load_npz(source.path)
        if matrix.format == "bsr":
            matrix.check_format(full_check=True)
        entries = matrix.tocoo()
    if entries.shape != shape or entries.dtype.kind not in "biuf":
        raise source.error(f"a matrix of {entries.dtype} and shape {entries.shape} is not a table of {shape}")
    for first, step in _steps(len(entries.data)):
        part = slice(first, first + step)
        yield entries.row[part], entries.col[part], entries.data[part]


_READERS: dict[str, Callable[[NpzReader, Shape], Iterator[Entries]]] = {
    "csr": _read_csr,
    "csc": _read_csc,
    "coo": _read_coo,
    "bsr": _read_by_scipy,
    "dia": _read_by_scipy,
}


@contextmanager
def _open_array(file: NpzReader, name: str, kinds: str, ndim: int) -> Iterator[NpyReader]:
    """Open one of the arrays of a sparse matrix; its dtype must be of these kinds."""
    if name not in file:
        raise file.source.error(f"the sparse matrix has no array {name!r}; save it with scipy.sparse.save_npz")
    with file.open_array(name) as values:
        if values.dtype.kind not in kinds or len(values.shape) != ndim:
            raise file.source.error(
                f"{values.what} is a {len(values.shape)}-D array of {values.dtype}, which is not valid in a sparse "
                "matrix of 0 and 1"
            )
        if ndim > 1 and values.fortran_order:
            raise file.source.error(f"{values.what} is in Fortran order; convert the matrix with .tocsr()")
        yield values


def _expand_indptr(file: NpzReader, n_lines: int) -> Iterator[NDArray[np.int64]]:
    """Yield the line (row of a CSR, column of a CSC matrix) of each entry, in chunks."""
    with _open_array(file, "indptr", "iu", 1) as indptr:
        if indptr.shape != (n_lines + 1,):
            raise file.source.error(f"{indptr.what} has {indptr.shape[0]} values; expected {n_lines + 1}")
        last = indptr.read(1)
        corrupt = file.source.error(f"corrupt: the values in {indptr.what} do not increase from 0")
        if last[0] != 0:
            raise corrupt
        for line, count in _steps(n_lines):
            starts = np.concatenate((last, indptr.read(count)))
            if (starts[1:] < starts[:-1]).any():
                raise corrupt
            begin, end = int(starts[0]), int(starts[-1])
            for first in range(begin, end, CHUNK_ENTRIES):
                stops = starts.clip(first, min(first + CHUNK_ENTRIES, end)).astype(np.int64)
                yield np.repeat(np.arange(line, line + count), np.diff(stops))
            last = starts[-1:]


def _steps(count: int) -> Iterator[tuple[int, int]]:
    """Yield the start and the length of each chunk of entries."""
    for first in range(0, count, CHUNK_ENTRIES):
        yield first, min(CHUNK_ENTRIES, count - first)
