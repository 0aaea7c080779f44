"""NumPy files: .npy files with an array; .npz files with a packed table, an array, packed rows, or a sparse matrix."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from operator import index
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from ..._version import __version__
from ...bits import BitMatrix
from ...columns.table import Names, Table, check_picture
from ...errors import Parameter
from ...formatting import counted
from ..annotations import decode_annotations, encode_annotations
from ..cells import Cells, array_position, rectangle
from ..errors import FileError
from ..limits import CHUNK_BITS
from ..npz import (
    METADATA_KEY,
    TABLE_FORMAT,
    NpyReader,
    NpzReader,
    check_metadata_names,
    encode_metadata,
    open_npy,
    open_npz,
    packed_bytes,
    write_npz,
)
from ..options import ReadOptions
from ..out_of_core.chunked import BitsBuilder
from ..out_of_core.transposing import rows_of_columns
from ..stream import RowChunk, Source, TableStream
from .sparse import Shape, is_sparse, read_shape, read_sparse

VERSION = 3  # the only one that is read
_NUMERIC_KINDS = "biuf"
_OTHER_KINDS = {
    "c": "complex numbers; take their real part or magnitude",
    "S": "text; convert it to 0 and 1",
    "U": "text; convert it to 0 and 1",
    "V": "records with several fields; save each field as a column of one 2-D array",
}


def read(source: Source, options: ReadOptions) -> TableStream:
    """Open an .npy or .npz file."""
    if not source.path.stat().st_size:
        raise source.error("the file is empty")
    if source.format == "npy":
        with open_npy(source) as values:
            return TableStream(_table_shape(values)[1], _chunks(source, options, None))
    with open_npz(source) as file:
        if METADATA_KEY in file:
            return _read_packed_table(source, options, file)
        if options.layer is None and is_sparse(file):
            return read_sparse(source, options, file)
        name = _select_array(file, options.layer)
        with file.open_array(name) as values:
            shape = _packbits_shape(file, values)
            if shape is not None:
                return TableStream(shape[1], _packed_chunks(source, options, name, shape, bit_order="big"))
            return TableStream(_table_shape(values)[1], _chunks(source, options, name))


def _select_array(file: NpzReader, layer: str | None) -> str:
    """Return the name of the table: ``layer``, the only array that can be one, or X."""
    names = ("arrays: " + ", ".join(map(repr, file.names[:10])) + (", ..." if len(file.names) > 10 else ""))[:200]
    if not file.names:
        raise file.source.error("the file contains no arrays")
    if layer is not None and layer not in file:
        raise file.source.error(f"there is no array {layer!r} ({names})")
    if layer is not None:
        return layer
    tables = [name for name in file.names if _is_numeric_table(file, name)] or file.names
    if len(tables) > 1 and "X" not in tables:
        raise file.source.error(f"several arrays could be the table ({names}); pass ", Parameter("layer"))
    return tables[0] if len(tables) == 1 else "X"


def _is_numeric_table(file: NpzReader, name: str) -> bool:
    """Return whether this array has two dimensions and contains numbers."""
    try:
        with file.open_array(name) as values:
            return len(values.shape) == 2 and values.dtype.kind in _NUMERIC_KINDS
    except FileError:
        return False


def _table_shape(values: NpyReader) -> Shape:
    """Return the shape of an array; raise FileError unless it is a table of numbers that fits into memory."""
    kind, shape = values.dtype.kind, values.shape
    if kind not in _NUMERIC_KINDS:
        problem = _OTHER_KINDS.get(kind, f"values of type {values.dtype}; convert them to 0 and 1")
        raise values.source.error(f"{values.what} contains {problem}")
    if len(shape) != 2:
        raise values.source.error(
            f"{values.what} has {counted(len(shape), 'dimension')} (shape {str(shape)[:60]}); "
            "a table has two; reshape it to (rows, columns)"
        )
    values.source.check_size(*shape, streamable=True)
    return shape[0], shape[1]


@contextmanager
def _open_array(source: Source, name: str | None) -> Iterator[NpyReader]:
    """Open the array of an .npy file, or the one of this name in an .npz file."""
    if name is None:
        with open_npy(source) as values:
            yield values
    else:
        with open_npz(source) as file, file.open_array(name) as values:
            yield values


def _chunks(source: Source, options: ReadOptions, name: str | None) -> Iterator[RowChunk]:
    """Yield the rows of an array of numbers as packed bits."""
    with _open_array(source, name) as values:
        n_rows, n_cols = _table_shape(values)
        if values.fortran_order:
            cells = Cells(source, options, lambda column, row: array_position(row, column))
            columns = _pack_lines(values, n_cols, n_rows, cells)
            yield from map(RowChunk, rows_of_columns(source, columns, (n_rows, n_cols), cells.check_missing))
        else:
            cells = Cells(source, options)
            yield from map(RowChunk, _pack_lines(values, n_rows, n_cols, cells))
            cells.check_missing()


def _pack_lines(values: NpyReader, n_lines: int, length: int, cells: Cells) -> Iterator[BitMatrix]:
    """Yield the lines of an array (rows, in Fortran order columns) as packed bits; long lines are read in parts."""
    n_values = max(64, CHUNK_BITS // values.dtype.itemsize // 64 * 64)
    chunk_lines = n_values // max(1, length)
    if chunk_lines:
        for start in range(0, n_lines, chunk_lines):
            count = min(chunk_lines, n_lines - start)
            yield cells.pack_numbers(values.read(count * length).reshape(count, length), rectangle(start, 0, length))
        return
    for line in range(n_lines):
        builder = BitsBuilder(1, length)
        for start in range(0, length, n_values):
            part = values.read(min(n_values, length - start))[np.newaxis]
            builder.put(cells.pack_numbers(part, rectangle(line, start, part.shape[1])), column=start)
        yield builder.build()


def _packbits_shape(file: NpzReader, values: NpyReader) -> Shape | None:
    """Return the shape of a table that was packed by np.packbits, if the array "shape" states one that fits."""
    shape = read_shape(file)
    if shape is None or values.dtype != np.uint8 or values.fortran_order or values.shape == shape:
        return None
    if values.shape != (shape[0], -(-shape[1] // 8)):
        return None
    file.source.check_size(*shape)
    return shape


def _read_packed_table(source: Source, options: ReadOptions, file: NpzReader) -> TableStream:
    """Open a packed table written by `write`."""
    metadata = file.read_metadata(TABLE_FORMAT, VERSION, "; write the table again", "; 'bitatoms show' prints models")
    try:
        shape = index(metadata["n_rows"]), index(metadata["n_cols"])
        source.check_size(*shape)
        rows = check_metadata_names(metadata, "rows", shape[0])
        columns = check_metadata_names(metadata, "columns", shape[1])
        picture = None if metadata["picture"] is None else check_picture(metadata["picture"], shape)
        row_data = decode_annotations(metadata["row_data"], shape[0], "row")
        column_data = decode_annotations(metadata["column_data"], shape[1], "column")
        for name in ("bits", "unknown") if "unknown" in file else ("bits",):
            with file.open_array(name) as values:
                if values.dtype != np.uint8 or values.fortran_order or values.shape != (shape[0], -(-shape[1] // 8)):
                    raise ValueError(f"the array {name!r} is of type {values.dtype} and shape {values.shape}")
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        if isinstance(error, FileError):
            raise
        raise source.error(f"corrupt table: {' '.join(str(error).split())[:200]}") from error
    unknown = "unknown" if "unknown" in file else None
    chunks = _packed_chunks(source, options, "bits", shape, rows, unknown=unknown)
    is_zero = metadata.get("absent_is_zero") is True
    return TableStream(shape[1], chunks, columns, picture, is_zero, row_data, column_data)


def _packed_chunks(
    source: Source,
    options: ReadOptions,
    name: str,
    shape: Shape,
    rows: Names | None = None,
    *,
    bit_order: str = "little",
    unknown: str | None = None,
) -> Iterator[RowChunk]:
    """Yield rows that are packed into bytes; ``bit_order`` is as in np.packbits, ``unknown`` the array of the mask."""
    cells = Cells(source, options)
    masks = itertools.repeat(None) if unknown is None else _unpacked(source, unknown, shape[1], bit_order)
    start = 0
    for bits, mask in zip(_unpacked(source, name, shape[1], bit_order), masks, strict=False):
        names = None if rows is None else rows[start : start + len(bits)]
        yield RowChunk(cells.known(bits.with_unknown(mask), start), names)
        start += len(bits)
    cells.check_missing()


def _unpacked(source: Source, name: str, n_cols: int, bit_order: str) -> Iterator[BitMatrix]:
    """Yield the rows of an array of packed bytes."""
    with open_npz(source) as file, file.open_array(name) as values:
        try:
            yield from values.packed_rows(n_cols, bit_order)
        except ValueError as error:
            if isinstance(error, FileError):
                raise
            raise source.error(f"{values.what} is corrupt, or packed in another bit order: {error}") from error


def write(table: Table, path: Path, format: str) -> None:
    """Write an .npy file with an array of 0 and 1 (and NaN), or an .npz file with the packed table and its names."""
    if format == "npy":
        _write_npy(table, path)
        return
    n_rows, n_cols = table.shape
    metadata = {
        "format": TABLE_FORMAT,
        "version": VERSION,
        "bitatoms": __version__,
        "n_rows": n_rows,
        "n_cols": n_cols,
        "rows": table.row_names,
        "columns": table.columns,
        "picture": table.picture,
        "absent_is_zero": table.absent_is_zero,
        "row_data": encode_annotations(table.row_data),
        "column_data": encode_annotations(table.column_data),
    }
    arrays = {METADATA_KEY: encode_metadata(metadata), "bits": packed_bytes(table.bits)}
    if table.bits.unknown is not None and table.bits.n_unknown:
        arrays["unknown"] = packed_bytes(table.bits.unknown)
    write_npz(path, arrays)


def _write_npy(table: Table, path: Path) -> None:
    """Write an array of 0 and 1 without names: of bytes, or of float32 with NaN if cells are unknown."""
    if table.row_names is not None or table.columns is not None:
        warnings.warn(
            f"{path.name}: an .npy file cannot store names of rows and columns; .npz, .csv and .parquet files can",
            stacklevel=4,
        )
    dtype = np.dtype("<f4" if table.bits.n_unknown else "u1")
    with open(path, "wb") as file:
        npy.write_array_header_1_0(file, {"descr": dtype.str, "fortran_order": False, "shape": table.shape})
        chunk_rows = max(1, CHUNK_BITS // max(1, table.shape[1]))
        for start in range(0, len(table), chunk_rows):
            file.write(table.bits[start : start + chunk_rows].to_dense(dtype).tobytes())
