"""Sparse matrices in .npz files as scipy.sparse.save_npz writes them: their entries, some at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..coo import CHUNK_ENTRIES, CooBuilder
from ..errors import FileError
from ..npz import ArrayReader, NpzReader, open_npz
from ..stream import ReadOptions, RowChunk, Source, TableStream

Shape = tuple[int, int]
Some = tuple[NDArray[np.integer], NDArray[np.integer], NDArray[Any]]  # rows, columns and values of some entries


def is_sparse(file: NpzReader) -> bool:
    """Whether these arrays are a sparse matrix as SciPy writes it."""
    return all(name in file for name in ("format", "shape", "data"))


def read_sparse(source: Source, options: ReadOptions, file: NpzReader) -> TableStream:
    """The rows of a sparse matrix."""
    if (shape := shape_in(file)) is None:
        raise source.error("a sparse matrix whose shape is not two whole numbers; save it with scipy.sparse.save_npz")
    source.check_size(*shape)
    entries_of = _FORMATS[_format(file)]

    def blocks() -> Iterator[RowChunk]:
        entries = CooBuilder(source, options, shape)
        with open_npz(source) as again:
            for rows, columns, values in entries_of(again, shape):
                entries.add(rows, columns, values)
        yield RowChunk(entries.build())

    return TableStream(shape[1], blocks())


def shape_in(file: NpzReader) -> Shape | None:
    """The two numbers under the name "shape"; None where there is something else."""
    if "shape" not in file:
        return None
    try:
        with file.open_array("shape") as values:
            if values.dtype.kind not in "iu" or values.shape != (2,):
                return None
            n_rows, n_cols = values.read(2).tolist()
            return n_rows, n_cols
    except FileError:  # it may have nothing to do with a table
        return None


def _format(file: NpzReader) -> str:
    """The format that the matrix is in."""
    with file.open_array("format") as values, file.source.catch_library_errors():
        found = values.read(1).tolist()[0] if values.shape == () and 0 < values.dtype.itemsize < 100 else "?"
        found = found.decode() if isinstance(found, bytes) else str(found)
    if found not in _FORMATS:
        raise file.source.error(
            f"a sparse matrix of the format {found[:20]!r}, not one of {', '.join(_FORMATS)}; convert it with .tocsr()"
        )
    return found


def _by_rows(file: NpzReader, shape: Shape) -> Iterator[Some]:
    """The entries of a matrix in CSR format."""
    with _array(file, "indices", "iu", 1) as columns, _array(file, "data", "biuf", 1) as values:
        for rows in _pointed(file, shape[0], CHUNK_ENTRIES):
            yield rows, columns.read(len(rows)), values.read(len(rows))


def _by_columns(file: NpzReader, shape: Shape) -> Iterator[Some]:
    """The entries of a matrix in CSC format, which is that of its transpose in CSR."""
    for columns, rows, values in _by_rows(file, (shape[1], shape[0])):
        yield rows, columns, values


def _one_by_one(file: NpzReader, shape: Shape) -> Iterator[Some]:
    """The entries of a matrix in COO format."""
    both = "coords" in file  # rows and columns in one array, as SciPy means to write them some day
    with (
        _array(file, "coords" if both else "row", "iu", 1 + both) as rows,
        _array(file, "coords" if both else "col", "iu", 1 + both) as columns,
        _array(file, "data", "biuf", 1) as values,
    ):
        count = values.shape[0]
        for indices in (rows, columns):
            if indices.shape != ((2, count) if both else (count,)):
                raise file.source.error(f"{indices.what} has the shape {indices.shape}, and there are {count} values")
        if both:
            columns.skip(count)
        for _, some in _steps(count):
            yield rows.read(some), columns.read(some), values.read(some)


def _by_blocks(file: NpzReader, shape: Shape) -> Iterator[Some]:
    """The entries of a matrix in BSR format: dense blocks, all of the same size."""
    with _array(file, "indices", "iu", 1) as indices, _array(file, "data", "biuf", 3) as values:
        _, tall, wide = values.shape
        if not tall or not wide or shape[0] % tall or shape[1] % wide:
            raise file.source.error(f"a matrix of {shape[0]} x {shape[1]} is not made of blocks of {tall} x {wide}")
        for down in _pointed(file, shape[0] // tall, max(1, CHUNK_ENTRIES // (tall * wide))):
            across = indices.read(len(down))
            if across.min() < 0 or across.max() >= shape[1] // wide:
                raise file.source.error(f"corrupt: {indices.what} has numbers beyond its {shape[1] // wide} blocks")
            for first, some in _steps(len(down) * tall * wide):
                block, cell = np.divmod(np.arange(first, first + some), tall * wide)
                row, column = np.divmod(cell, wide)
                yield down[block] * tall + row, across[block].astype(np.int64) * wide + column, values.read(some)


def _by_diagonals(file: NpzReader, shape: Shape) -> Iterator[Some]:
    """The entries of a matrix in DIA format: diagonals, each value in its column; what lies outside is nothing."""
    with _array(file, "data", "biuf", 2, fortran_order=True) as values, _array(file, "offsets", "iu", 1) as offsets:
        n_diagonals, length = values.shape
        if offsets.shape != (n_diagonals,):
            raise file.source.error(f"it has {n_diagonals} diagonals, and {offsets.shape[0]} places for them")
        # Diagonals beyond the corners are all the same; as floats, for these hold unsigned and signed numbers.
        above = offsets.read(n_diagonals).astype(np.float64).clip(-shape[0], shape[1]).astype(np.int64)
        for first, some in _steps(n_diagonals * length):
            places = np.arange(first, first + some)
            if values.fortran_order:
                columns, diagonals = np.divmod(places, n_diagonals)
            else:
                diagonals, columns = np.divmod(places, length)
            rows = columns - above[diagonals]
            inside = (rows >= 0) & (rows < shape[0]) & (columns < shape[1])
            yield rows[inside], columns[inside], values.read(some)[inside]


_FORMATS: dict[str, Callable[[NpzReader, Shape], Iterator[Some]]] = {
    "csr": _by_rows,
    "csc": _by_columns,
    "coo": _one_by_one,
    "bsr": _by_blocks,
    "dia": _by_diagonals,
}


@contextmanager
def _array(file: NpzReader, name: str, kinds: str, ndim: int, fortran_order: bool = False) -> Iterator[ArrayReader]:
    """One of the arrays that a sparse matrix is made of, to be read as it lies, if it is of such a kind."""
    if name not in file:
        raise file.source.error(f"a sparse matrix without its array {name!r}; save it with scipy.sparse.save_npz")
    with file.open_array(name) as values:
        if values.dtype.kind not in kinds or len(values.shape) != ndim:
            raise file.source.error(
                f"{values.what} is a {len(values.shape)}-D array of {values.dtype}, "
                f"which a sparse matrix of 0 and 1 does not have there"
            )
        if ndim > 1 and values.fortran_order and not fortran_order:
            raise file.source.error(f"{values.what} is stored by columns; convert the matrix with .tocsr()")
        yield values


def _pointed(file: NpzReader, n_lines: int, at_a_time: int) -> Iterator[NDArray[np.int64]]:
    """The line (row or column) of every entry, some entries at a time, by the array that tells where lines begin."""
    with _array(file, "indptr", "iu", 1) as pointers:
        if pointers.shape != (n_lines + 1,):
            raise file.source.error(f"{pointers.what} has {pointers.shape[0]} numbers where {n_lines + 1} are needed")
        last = pointers.read(1)
        corrupt = file.source.error(f"corrupt: the numbers in {pointers.what} do not rise from 0 on")
        if last[0] != 0:
            raise corrupt
        for line, count in _steps(n_lines):
            starts = np.concatenate((last, pointers.read(count)))
            if (starts[1:] < starts[:-1]).any():
                raise corrupt
            begun, end = int(starts[0]), int(starts[-1])
            for first in range(begun, end, at_a_time):
                ends = starts.clip(first, min(first + at_a_time, end)).astype(np.int64)
                yield np.repeat(np.arange(line, line + count), np.diff(ends))
            last = starts[-1:]


def _steps(count: int) -> Iterator[tuple[int, int]]:
    """Where to begin, and how many to take, to go through so many in steps that memory does not feel."""
    for first in range(0, count, CHUNK_ENTRIES):
        yield first, min(CHUNK_ENTRIES, count - first)
