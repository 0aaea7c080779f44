"""Parquet, Feather and Arrow files: columns of booleans, numbers or text; names of rows as in pandas' index."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix
from ...columns.table import Table, feature_names
from ...errors import Parameter, warn
from ..cells import MISSING_CELL, Cells, Indices, position_in
from ..errors import FileError
from ..layout import Advice, doubt_row_names
from ..limits import CHUNK_BITS, TABLE_ROWS
from ..npz import METADATA_KEY, packed_bytes, parse_table_metadata, stored_picture, table_metadata
from ..options import ReadOptions
from ..out_of_core.chunked import BitsBuilder
from ..stream import RowChunk, Source, TableStream, find_columns
from .arrow_chunks import ArrowChunk, ArrowFile, is_text, open_arrow, to_strings

_INDEX = "__index_level_0__"  # pandas' name for an index without a name


class ArrowLayout(NamedTuple):
    """The indices of the columns that contain row names, and of those of the table."""

    names: list[int]
    data: list[int]
    doubt: Advice = ()  # a note on a first column that may not be row names


def read(source: Source, options: ReadOptions) -> TableStream:
    """Open a Parquet, Feather or Arrow file."""
    with source.path.open("rb"):  # the system's errors are clearer than pyarrow's
        pass
    with source.catch_library_errors(), open_arrow(source) as file:
        layout = _detect_layout(source, options, file)
        columns = [file.names[index] for index in layout.data]
        metadata = parse_table_metadata(file.metadata.get(METADATA_KEY.encode(), b""))
        has_picture = metadata.get("picture") is not None
        n_rows = sum(chunk.n_rows for chunk in file.chunks()) if has_picture else 0
        picture = stored_picture(metadata, (n_rows, len(columns)))
    has_columns = metadata.get("columns") is not False or tuple(columns) != feature_names(None, range(len(columns)))
    chunks = _chunks(source, options, layout, columns)
    names = columns if has_columns else None
    return TableStream(len(columns), chunks, names, picture, metadata.get("absent_is_zero") is True)


def _detect_layout(source: Source, options: ReadOptions, file: ArrowFile) -> ArrowLayout:
    """Detect which columns contain row names: pandas' index, or a first column of text."""
    index = [file.names.index(name) for name in _pandas_index(file)]
    without = find_columns(source, options.without, file.names)
    excluded = {*index, *(number for number, name in enumerate(file.names) if name in without)}
    data = [number for number in range(len(file.names)) if number not in excluded]
    if options.row_names is False:
        return ArrowLayout([], data)
    if index:
        # As in Table.from_any, an index of numbers is not used as names.
        is_named = options.row_names or any(is_text(file.types[number]) for number in index)
        return ArrowLayout(index if is_named else [], data)
    if options.row_names and not data:
        raise source.error("there is no column that can contain the row names; pass ", Parameter("row_names", False))
    if options.row_names:
        return ArrowLayout(data[:1], data[1:])
    cells, names = Cells(source, options), _first_texts(file, data)
    if len(set(names)) < len(names) or all(map(cells.is_valid, names)):
        return ArrowLayout([], data)
    doubt = doubt_row_names(source, file.names[data[0]], names, cells.is_valid)
    return ArrowLayout(data[:1], data[1:], doubt)


def _pandas_index(file: ArrowFile) -> list[str]:
    """Return the names of the columns that contain pandas' index; a RangeIndex has none."""
    try:
        found = json.loads(file.metadata[b"pandas"])["index_columns"]
        names = [name for name in found if isinstance(name, str)]
    except (KeyError, TypeError, ValueError, RecursionError):
        return []
    return [name for name in dict.fromkeys(names) if name in set(file.names)]


def _first_texts(file: ArrowFile, data: list[int]) -> list[str]:
    """Return the first texts of the first of several columns; none if it does not contain text."""
    if len(data) > 1 and is_text(file.types[data[0]]):
        for chunk in file.chunks():
            for columns in chunk.read_columns(data[:1], TABLE_ROWS):
                return to_strings(columns[0])
    return []


def _check_types(source: Source, file: ArrowFile, data: list[int]) -> None:
    """Raise FileError for a column that contains neither numbers nor booleans nor text."""
    from pyarrow import types

    for index in data:
        kind = file.types[index]
        plain = kind.value_type if types.is_dictionary(kind) else kind
        checks = (types.is_boolean, types.is_integer, types.is_floating, types.is_null, is_text)
        if not any(check(plain) for check in checks):
            raise source.error(
                f"column {file.names[index]!r} contains {str(kind)[:60]}, not numbers, booleans or text; exclude it "
                "with ",
                Parameter("without", file.names[index]),
                ", or convert it to 0 and 1",
            )


def _chunks(source: Source, options: ReadOptions, layout: ArrowLayout, columns: list[str]) -> Iterator[RowChunk]:
    """Yield the rows as packed bits."""
    cells = Cells(source, options, position_in(columns), lambda ahead: _count_states(source, ahead, layout))
    n_rows = 0
    with source.catch_library_errors(), open_arrow(source) as file:
        _check_types(source, file, layout.data)  # not before: names of columns to leave out come from the open file
        for chunk in file.chunks():
            source.check_size(n_rows + chunk.n_rows, len(columns))
            bits = _pack_chunk(source, cells, chunk, layout.data, n_rows)
            yield RowChunk(bits, _row_names(source, chunk, layout.names))
            n_rows += chunk.n_rows
    cells.check_missing()
    if layout.doubt:
        warn(*layout.doubt)


def _count_states(source: Source, cells: Cells, layout: ArrowLayout) -> Iterator[None]:
    """Convert all cells, some at a time."""
    with open_arrow(source) as file:
        for chunk in file.chunks():
            for top, left, values in _rectangles(source, chunk, layout.data):
                _to_states(cells, values, top, left)
                yield


def _rectangles(source: Source, chunk: ArrowChunk, indices: list[int]) -> Iterator[tuple[int, int, list[Any]]]:
    """Yield some rows of some columns at a time, with the indices of the first row and column."""
    n_rows, n_cols = chunk.n_rows, len(indices)
    rows_at_once = max(1, CHUNK_BITS // max(1, min(chunk.max_columns, n_cols)))
    for left in range(0, n_cols, chunk.max_columns):
        top = 0
        for columns in chunk.read_columns(indices[left : left + chunk.max_columns], rows_at_once):
            bottom = top + len(columns[0])
            if bottom <= n_rows:
                yield top, left, columns
            top = bottom
        _check_length(source, top, n_rows)


def _pack_chunk(source: Source, cells: Cells, chunk: ArrowChunk, indices: list[int], start: int) -> BitMatrix:
    """Return the rows of a chunk; ``start`` is the index of the first."""
    width = 2 if cells.are_copies else 1
    builder = BitsBuilder(chunk.n_rows, width * len(indices))
    for top, left, columns in _rectangles(source, chunk, indices):
        # The states have no name, so that they are not in memory with the next ones.
        builder.put(cells.pack(_to_states(cells, columns, start + top, left).T), top, width * left)
    return builder.build()


def _check_length(source: Source, found: int, expected: int) -> None:
    """Raise FileError if a column does not have the expected length."""
    if found != expected:
        raise source.error(f"corrupt: a column has {found} values; expected {expected}")


def _row_names(source: Source, chunk: ArrowChunk, indices: list[int]) -> list[str] | None:
    """Return the names of the rows of a chunk; the levels of a MultiIndex are joined by commas."""
    if not indices:
        return None
    names: list[str] = []
    for columns in chunk.read_columns(indices, CHUNK_BITS // 64):
        levels = [to_strings(column) for column in columns]
        names.extend(levels[0] if len(levels) == 1 else map(", ".join, zip(*levels, strict=True)))
    _check_length(source, len(names), chunk.n_rows)
    return names


def _to_states(cells: Cells, columns: Sequence[Any], top: int, left: int) -> NDArray[np.uint8]:
    """Return the states of some rows of some columns, which begin at ``top`` and ``left``; one row per column."""
    states = np.empty((len(columns), len(columns[0])), np.uint8)
    for number, column in enumerate(columns):
        states[number] = _column_states(cells, column, top, left + number)

    def locate(indices: NDArray[np.intp]) -> Indices:
        column, row = np.divmod(indices, states.shape[1])
        return top + row, left + column

    cells.count(states, locate)
    return states


def _column_states(cells: Cells, column: Any, top: int, index: int) -> NDArray[Any]:
    """Return the state of each cell of a column: 0, 1, missing or blank."""
    from pyarrow import types

    kind = column.type
    if types.is_null(kind):
        return np.full(len(column), MISSING_CELL, np.uint8)
    if is_text(kind):
        return _text_states(cells, column if types.is_dictionary(kind) else column.dictionary_encode(), top, index)
    if types.is_dictionary(kind):
        column = column.dictionary_decode()
    is_null = None
    if column.null_count and not types.is_floating(column.type):  # nulls of floats become NaN
        is_null = column.is_null().to_numpy(zero_copy_only=False)
        column = column.fill_null(0 if types.is_integer(column.type) else False)
    values = column.to_numpy(zero_copy_only=False)
    states = cells.numbers_to_states(values, lambda rows: (top + rows, np.full(len(rows), index)))
    return states if is_null is None else np.where(is_null, np.uint8(MISSING_CELL), states)


def _text_states(cells: Cells, column: Any, top: int, index: int) -> NDArray[np.uint8]:
    """Return the state of each cell of a dictionary-encoded column; each distinct text is converted once."""
    codes = column.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
    is_null = column.is_null().to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(~is_null)
    used, first, inverse = np.unique(codes[rows], return_index=True, return_inverse=True)
    texts = [column.dictionary[code].as_py() for code in used.tolist()]
    used_states = [
        MISSING_CELL if text is None else cells.parse(text, top + row, index)
        for text, row in zip(texts, rows[first].tolist(), strict=True)
    ]
    states = np.full(len(codes), MISSING_CELL, np.uint8)
    states[rows] = np.array(used_states, np.uint8)[inverse]
    return states


def write(table: Table, path: Path, format: str) -> None:
    """Write columns of booleans, with nulls for unknown cells; names of rows are stored as pandas' index."""
    import pyarrow as pa
    from pyarrow import ipc, parquet

    schema = _schema(table)
    n_cols = table.shape[1]
    if not n_cols:
        raise FileError(f"{path.name}: this format cannot store a table without columns; choose another format")
    chunk_rows = min(1 << 20, max(1, 32 * CHUNK_BITS // n_cols))  # large: each column of each chunk has an overhead
    if format == "parquet":
        writer = parquet.ParquetWriter(
            path, schema, use_dictionary=False, write_statistics=False, write_page_checksum=True
        )
    else:
        compression = "lz4" if pa.Codec.is_available("lz4") else None
        writer = ipc.new_file(str(path), schema, options=ipc.IpcWriteOptions(compression=compression))
    with writer:
        for start in range(0, len(table), chunk_rows):
            chunk = table.bits[start : start + chunk_rows]
            # Arrow packs booleans in the same way as BitMatrix.
            columns = packed_bytes(chunk.filled().T)
            valid: Iterable[Any] = itertools.repeat(None)
            if chunk.n_unknown and chunk.unknown is not None:
                valid = map(pa.py_buffer, ~packed_bytes(chunk.unknown.T))
            arrays = [
                pa.Array.from_buffers(pa.bool_(), len(chunk), [validity, pa.py_buffer(column)])
                for validity, column in zip(valid, columns, strict=False)
            ]
            if table.row_names is not None:
                arrays.insert(0, pa.array(table.row_names[start : start + chunk_rows], pa.string()))
            writer.write_batch(pa.record_batch(arrays, schema=schema))


def _schema(table: Table) -> Any:
    """Return the columns of a file and its metadata."""
    import pyarrow as pa

    from ..._version import __version__

    columns = table.names_of(range(table.shape[1]))
    fields = [pa.field(name, pa.bool_()) for name in columns]
    metadata = {METADATA_KEY: table_metadata(table)}
    if table.row_names is not None:
        index, taken = _INDEX, set(columns)
        while index in taken:
            index = index.replace("level_", "level_0")
        fields.insert(0, pa.field(index, pa.string()))
        text = {"pandas_type": "unicode", "numpy_type": "object", "metadata": None}
        pandas = {
            "index_columns": [index],
            "column_indexes": [{"name": None, "field_name": None} | text | {"metadata": {"encoding": "UTF-8"}}],
            "columns": [{"name": None, "field_name": index} | text],
            "creator": {"library": "bitatoms", "version": __version__},
        }
        metadata["pandas"] = json.dumps(pandas)
    return pa.schema(fields, metadata)
