"""NumPy's files. An .npy holds an array; an .npz a packed table of ours, an array, packed rows, or a sparse matrix."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ..._version import __version__
from ...bits import BitMatrix
from ...table import Names, Table, check_picture
from ..cells import Cells, PositionOf, array_position
from ..errors import FileError
from ..npz import METADATA_KEY, ArrayReader, NpzReader, encode_metadata, open_npy, open_npz, write_npz
from ..stream import CHUNK_BITS, ReadOptions, RowChunk, Source, TableStream
from .sparse import Shape, is_sparse, read_sparse, shape_in

TABLE_FORMAT = "bitatoms table"
VERSION = 1
_TABLES = "biuf"  # kinds of values that a table may have; of others:
_OTHERS = {
    "c": "complex numbers; take their real part or magnitude",
    "S": "text; turn it into 0 and 1 first",
    "U": "text; turn it into 0 and 1 first",
    "V": "records of several fields; make one column of each, and save them as one 2-D array",
}
_REVERSED = np.packbits(np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1)[:, ::-1], axis=1)[:, 0]


def read(source: Source, options: ReadOptions) -> TableStream:
    """The rows of an .npy or .npz file."""
    if not source.path.stat().st_size:
        raise source.error("the file is empty")
    if source.format == "npy":
        with open_npy(source) as values:
            return TableStream(_table_shape(values)[1], _rows(source, options, None))
    with open_npz(source) as file:
        if METADATA_KEY in file:
            return _ours(source, options, file)
        if options.layer is None and is_sparse(file):
            return read_sparse(source, options, file)
        name = _chosen(file, options.layer)
        with file.open_array(name) as values:
            packed = _packed_shape(file, values)
            if packed is not None:
                return TableStream(packed[1], _packed_rows(source, options, name, packed, backwards=True))
            return TableStream(_table_shape(values)[1], _rows(source, options, name))


def _chosen(file: NpzReader, layer: str | None) -> str:
    """The array that is the table: the one that is asked for, that is called X, or that alone could be one."""
    names = ", ".join(map(repr, file.names[:10])) + (", ..." if len(file.names) > 10 else "")
    if not file.names:
        raise file.source.error("it holds no arrays")
    if layer is not None and layer not in file:
        raise file.source.error(f"it has no array {layer!r}; it has {names[:200]}")
    if layer is not None:
        return layer
    tables = [name for name in file.names if _may_be_table(file, name)] or file.names
    if len(tables) > 1 and "X" not in tables:
        raise file.source.error(
            f"several arrays could be the table; pass layer= with the name of the one to take, of {names[:200]}"
        )
    return tables[0] if len(tables) == 1 else "X"


def _may_be_table(file: NpzReader, name: str) -> bool:
    """Whether this array has two dimensions and holds numbers; of those that cannot be read, nothing is asked."""
    try:
        with file.open_array(name) as values:
            return len(values.shape) == 2 and values.dtype.kind in _TABLES
    except FileError:
        return False


def _table_shape(values: ArrayReader) -> Shape:
    """The shape of an array that is a table of numbers, and fits into memory when packed, if it must."""
    kind, shape = values.dtype.kind, values.shape
    if kind not in _TABLES:
        trouble = _OTHERS.get(kind, f"values of the type {values.dtype}; turn them into 0 and 1 first")
        raise values.source.error(f"{values.what} holds {trouble}")
    if len(shape) != 2:
        raise values.source.error(
            f"{values.what} has {len(shape)} dimension{'' if len(shape) == 1 else 's'} (its shape is "
            f"{str(shape)[:60]}), and a table has two; reshape it to (rows, columns) first"
        )
    values.source.check_size(*shape, streamable=not values.fortran_order)
    return shape[0], shape[1]


@contextmanager
def _opened(source: Source, name: str | None) -> Iterator[ArrayReader]:
    """The array of an .npy file, or the one of that name in an .npz file."""
    if name is None:
        with open_npy(source) as values:
            yield values
    else:
        with open_npz(source) as file, file.open_array(name) as values:
            yield values


def _rows(source: Source, options: ReadOptions, name: str | None) -> Iterator[RowChunk]:
    """The rows of an array of numbers."""
    cells = Cells(source, options)
    with _opened(source, name) as values:
        n_rows, n_cols = _table_shape(values)
        if not values.fortran_order:
            for words in _lines(values, n_rows, n_cols, cells, array_position):
                yield RowChunk(BitMatrix.from_words(words, n_cols, check=False))
        else:
            columns = np.empty((n_cols, -(-n_rows // 64)), np.uint64)
            start = 0
            for words in _lines(values, n_cols, n_rows, cells, lambda column, row: array_position(row, column)):
                columns[start : start + len(words)] = words
                start += len(words)
            yield RowChunk(BitMatrix.from_words(columns, n_rows, check=False).transpose())
    cells.check_missing()


def _lines(
    values: ArrayReader, n_lines: int, length: int, cells: Cells, position_of: PositionOf
) -> Iterator[NDArray[np.uint64]]:
    """The lines of an array as they lie in the file, packed: some at a time, or where they are long, piece by piece."""
    n_values = max(64, CHUNK_BITS // values.dtype.itemsize // 64 * 64)  # on their way in
    at_a_time = n_values // max(1, length)
    if at_a_time:
        for start in range(0, n_lines, at_a_time):
            count = min(at_a_time, n_lines - start)
            some = values.read(count * length).reshape(count, length)
            yield cells.pack_numbers(some, _moved(position_of, start, 0)).words
        return
    for line in range(n_lines):
        words = np.empty((1, -(-length // 64)), np.uint64)
        for start in range(0, length, n_values):
            some = values.read(min(n_values, length - start))[np.newaxis]
            piece = cells.pack_numbers(some, _moved(position_of, line, start)).words
            words[:, start // 64 : start // 64 + piece.shape[1]] = piece
        yield words


def _moved(position_of: PositionOf, line: int, start: int) -> PositionOf:
    """Where the cells of a block are that begins in this line, so far behind its start."""
    return lambda down, along: position_of(line + down, start + along)


def _packed_shape(file: NpzReader, values: ArrayReader) -> Shape | None:
    """The shape of the table whose rows np.packbits has packed into this array, if "shape" beside it says so."""
    shape = shape_in(file)
    if shape is None or values.dtype != np.uint8 or values.fortran_order or values.shape == shape:
        return None
    if values.shape != (shape[0], -(-shape[1] // 8)):
        return None
    file.source.check_size(*shape)
    return shape


def _ours(source: Source, options: ReadOptions, file: NpzReader) -> TableStream:
    """The rows of a packed table as `write` makes it."""
    about = file.read_metadata(TABLE_FORMAT, VERSION, "; 'bitatoms show' shows a model, and data belong here")
    try:
        shape = index(about["n_rows"]), index(about["n_cols"])
        source.check_size(*shape)
        rows, columns = _names(about, "rows", shape[0]), _names(about, "columns", shape[1])
        picture = None if about["picture"] is None else check_picture(about["picture"], shape)
        with file.open_array("bits") as values:
            if values.dtype != np.uint8 or values.fortran_order or values.shape != (shape[0], -(-shape[1] // 8)):
                raise ValueError(f"its bits are an array of {values.dtype} of the shape {values.shape}")
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, FileError):
            raise
        raise source.error(f"a corrupt table: {' '.join(str(error).split())[:200]}") from error
    return TableStream(shape[1], _packed_rows(source, options, "bits", shape, rows), columns, picture)


def _names(about: dict[str, Any], what: str, length: int) -> Names | None:
    """Names as one of our files gives them, if they fit."""
    names = about[what]
    if names is None:
        return None
    if not isinstance(names, list) or len(names) != length or not all(isinstance(name, str) for name in names):
        raise ValueError(f"its names do not fit its {length} {what}")
    return tuple(names)


def _packed_rows(
    source: Source, options: ReadOptions, name: str, shape: Shape, rows: Names | None = None, *, backwards: bool = False
) -> Iterator[RowChunk]:
    """Rows that are packed into bytes, the first column in the lowest bit, or backwards, in the highest."""
    n_rows, n_cols = shape
    width = -(-n_cols // 8)
    at_a_time = max(1, CHUNK_BITS // 8 // max(1, width))
    with _opened(source, name) as values:
        for start in range(0, n_rows, at_a_time):
            count = min(at_a_time, n_rows - start)
            packed = values.read(count * width)
            try:
                bits = BitMatrix.from_bytes(_REVERSED[packed] if backwards else packed, count, n_cols)  # type: ignore[arg-type]
            except ValueError as error:
                raise source.error(f"{values.what} is corrupt, or packed in another way: {error}") from error
            names = None if rows is None else rows[start : start + count]
            yield RowChunk(BitMatrix.from_any(bits, options.binarize), names)


def write(table: Table, path: Path, format: str) -> None:
    """Write a table: as an array of 0 and 1 without names, or packed and compressed with all that belongs to it."""
    if format == "npy":
        _write_array(table, path)
        return
    n_rows, n_cols = table.shape
    about = {
        "format": TABLE_FORMAT,
        "version": VERSION,
        "bitatoms": __version__,
        "n_rows": n_rows,
        "n_cols": n_cols,
        "rows": table.row_names,
        "columns": table.columns,
        "picture": table.picture,
    }
    as_they_lie = table.bits.words.astype("<u8", copy=False).view(np.uint8)[:, : -(-n_cols // 8)]
    write_npz(path, {METADATA_KEY: encode_metadata(about), "bits": as_they_lie})


def _write_array(table: Table, path: Path) -> None:
    """Write the zeros and ones alone, some rows at a time."""
    if table.row_names is not None or table.columns is not None:
        warnings.warn(
            f"{path.name}: an .npy file keeps no names of rows and columns; .npz, .csv and .parquet do", stacklevel=4
        )
    with open(path, "wb") as file:
        npy.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": table.shape})
        at_a_time = max(1, CHUNK_BITS // max(1, table.shape[1]))
        for start in range(0, len(table), at_a_time):
            file.write(table.bits[start : start + at_a_time].to_dense().tobytes())
