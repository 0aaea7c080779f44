"""Parquet, Feather and Arrow: columns of booleans, numbers or text; names of rows as pandas keeps its index."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix
from ...table import Picture, Table, check_picture, feature_names
from ..cells import Cells, TextCells
from ..chunked import ChunkCells, Indices, MissingCells
from ..errors import FileError
from ..stream import CHUNK_BITS, ReadOptions, RowChunk, Source, TableStream, check_columns_exist
from .arrow_chunks import Columnar, Piece, is_text, open_arrow, texts

KEY = b"bitatoms"  # of our JSON in the metadata of a file
_LOOKED_AT = 100  # rows from which it is told whether the first column holds names
_MISSING, _BLANK = 2, 4  # beside 0 and 1, what a cell says; both are even
_INDEX = "__index_level_0__"  # what pandas calls an index without a name


class Layout(NamedTuple):
    """Which columns of a file hold names of rows, and which the table."""

    names: list[int]
    data: list[int]


def read(source: Source, options: ReadOptions) -> TableStream:
    """The rows of a Parquet, Feather or Arrow file."""
    with source.path.open("rb"):  # what the system has to say against it, before pyarrow says it less clearly
        pass
    with source.catch_library_errors(), open_arrow(source) as file:
        layout = _layout(source, options, file)
        _check_types(source, file, layout.data)
        columns = [file.names[place] for place in layout.data]
        about = _about(file)
        picture = _picture(about, len(columns), file)
    named = about.get("columns") is not False or tuple(columns) != feature_names(None, range(len(columns)))
    return TableStream(len(columns), _blocks(source, options, layout, columns), columns if named else None, picture)


def _layout(source: Source, options: ReadOptions, file: Columnar) -> Layout:
    """Tell which columns hold names of rows: those that pandas calls the index, or a first one of text."""
    index = [file.names.index(name) for name in _index_columns(file)]
    check_columns_exist(source, options.without, file.names)
    data = [place for place, name in enumerate(file.names) if place not in set(index) and name not in options.without]
    if options.row_names is False:
        return Layout([], data)
    if index:
        # ChunkCells that pandas counts rows by are no names, as in Table.from_any.
        named = options.row_names or any(is_text(file.types[place]) for place in index)
        return Layout(index if named else [], data)
    if options.row_names and not data:
        raise source.error("there is no column that could hold the names of rows; pass row_names=False")
    if options.row_names or _begins_with_names(source, options, file, data):
        return Layout(data[:1], data[1:])
    return Layout([], data)


def _index_columns(file: Columnar) -> list[str]:
    """The columns that pandas wrote its index to; a range is none."""
    try:
        found = json.loads(file.metadata[b"pandas"])["index_columns"]
        names = [name for name in found if isinstance(name, str)]
    except (KeyError, TypeError, ValueError, RecursionError):
        return []
    return [name for name in dict.fromkeys(names) if name in set(file.names)]


def _begins_with_names(source: Source, options: ReadOptions, file: Columnar, data: list[int]) -> bool:
    """Whether the first column is of text, all different, and not of ones and zeros; the same judgement as in CSV."""
    if len(data) < 2 or not is_text(file.types[data[0]]):
        return False
    words = TextCells(Cells(source, options))
    for piece in file.pieces():
        for columns in piece.columns(data[:1], _LOOKED_AT):
            names = texts(columns[0])
            return any(not words.is_valid(name) for name in names) and len(set(names)) == len(names)
    return False


def _check_types(source: Source, file: Columnar, data: list[int]) -> None:
    """Refuse columns that are neither numbers nor booleans nor text."""
    from pyarrow import types

    for place in data:
        kind = file.types[place]
        plain = kind.value_type if types.is_dictionary(kind) else kind
        if not (
            types.is_boolean(plain)
            or types.is_integer(plain)
            or types.is_floating(plain)
            or types.is_null(plain)
            or is_text(plain)
        ):
            raise source.error(
                f"column {file.names[place]!r} holds {str(kind)[:60]}, neither numbers nor yes and no; "
                "drop it, or turn it into 0 and 1"
            )


def _about(file: Columnar) -> dict[str, Any]:
    """What we wrote beside the columns; nothing where others wrote the file."""
    try:
        about = json.loads(file.metadata[KEY])
    except (KeyError, ValueError, RecursionError):
        return {}
    return about if isinstance(about, dict) else {}


def _picture(about: dict[str, Any], n_cols: int, file: Columnar) -> Picture | None:
    """The picture that each row is, where the file says so and it still fits."""
    try:
        tile, whole = about["picture"]
        n_rows = 0 if whole is None else sum(piece.n_rows for piece in file.pieces())
        return check_picture((tile, whole), (n_rows, n_cols))
    except (KeyError, TypeError, ValueError, OverflowError, IndexError):  # others may have changed the table since
        return None


def _blocks(source: Source, options: ReadOptions, layout: Layout, columns: list[str]) -> Iterator[RowChunk]:
    """The rows as packed bits, a piece at a time."""
    cells = _Columns(source, options, columns)
    n_rows = 0
    with source.catch_library_errors(), open_arrow(source) as file:
        for piece in file.pieces():
            source.check_size(n_rows + piece.n_rows, len(columns))
            bits = _packed(source, cells, piece, layout.data, n_rows)
            yield RowChunk(bits, _names(source, piece, layout.names))
            n_rows += piece.n_rows
    cells.check_missing()


def _packed(source: Source, cells: _Columns, piece: Piece, places: list[int], start: int) -> BitMatrix:
    """The rows of a piece, some columns and some rows at a time; ``start`` is the number of the first."""
    n_rows, n_cols = piece.n_rows, len(places)
    words = np.empty((n_rows, -(-n_cols // 64)), np.uint64)
    at_a_time = max(1, CHUNK_BITS // max(1, min(piece.width, n_cols)))
    for left in range(0, n_cols, piece.width):
        top = 0
        for columns in piece.columns(places[left : left + piece.width], at_a_time):
            bits = cells.bits(columns, start + top, left)
            if top + len(bits) <= n_rows:
                words[top : top + len(bits), left // 64 :][:, : bits.words.shape[1]] = bits.words
            top += len(bits)
        _check_rows(source, top, n_rows)
    return BitMatrix.from_words(words, n_cols, check=False)


def _check_rows(source: Source, found: int, expected: int) -> None:
    """Refuse columns of another length than the file says."""
    if found != expected:
        raise source.error(f"corrupt: a column has {found} values where the file says {expected}")


def _names(source: Source, piece: Piece, places: list[int]) -> list[str] | None:
    """The names of the rows of a piece; where several columns make a name, joined by commas."""
    if not places:
        return None
    names: list[str] = []
    for columns in piece.columns(places, CHUNK_BITS // 64):
        parts = [texts(column) for column in columns]
        names.extend(parts[0] if len(parts) == 1 else map(", ".join, zip(*parts, strict=True)))
    _check_rows(source, len(names), piece.n_rows)
    return names


class _Columns:
    """The columns of one file as bits, with a count of the missing values among them."""

    def __init__(self, source: Source, options: ReadOptions, columns: Sequence[str]) -> None:
        from pyarrow import types

        self._types = types
        self._source, self._options = source, options
        self._numbers = ChunkCells(source, options, columns)
        self._blank = MissingCells()
        self._wrote_zeros = False
        self._meanings: dict[str, int] = {}

    def bits(self, columns: Sequence[Any], top: int, left: int) -> BitMatrix:
        """Some rows of some columns; ``top`` and ``left`` is where the table has the first of them."""
        n_rows = len(columns[0])
        table = np.empty((len(columns), n_rows), np.uint8)
        for place, column in enumerate(columns):
            table[place] = self._says(column, top, left + place)
        if table.size and table.max() > 1:
            for missing, kind in ((self._numbers.missing, _MISSING), (self._blank, _BLANK)):
                across, down = np.nonzero(table == kind)
                missing.add(top + down, left + across)
            table &= 1
        return BitMatrix.from_dense(table.T)

    def _says(self, column: Any, top: int, place: int) -> NDArray[Any]:
        """What the cells of a column say: one, zero, or one of the two kinds of nothing."""
        types, kind = self._types, column.type
        if not types.is_primitive(kind):
            if types.is_null(kind):
                return np.full(len(column), _MISSING, np.uint8)
            if is_text(kind):
                return self._words(column if types.is_dictionary(kind) else column.dictionary_encode(), top, place)
            return self._says(column.dictionary_decode(), top, place)
        lost = None
        if column.null_count and not types.is_floating(kind):  # in floats they become NaN
            lost = column.is_null().to_numpy(zero_copy_only=False)
            column = column.fill_null(0 if types.is_integer(kind) else False)
        values = column.to_numpy(zero_copy_only=False)

        def locate(places: NDArray[np.intp]) -> Indices:
            return top + places, np.full(len(places), place)

        ones = self._numbers.numbers_to_bits(values, locate)
        if not self._wrote_zeros:
            self._wrote_zeros = not ones.all()
        return ones if lost is None else np.where(lost, np.uint8(_MISSING), ones)

    def _words(self, column: Any, top: int, place: int) -> NDArray[np.uint8]:
        """What the cells of a column of text say; each word is looked at once."""
        indices = column.indices.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        lost = column.is_null().to_numpy(zero_copy_only=False)
        used, first, which = np.unique(indices[~lost], return_index=True, return_inverse=True)
        rows = np.flatnonzero(~lost)
        meanings = np.empty(len(used), np.uint8)
        for number, word in enumerate(used.tolist()):
            text = column.dictionary[word].as_py()
            meanings[number] = _MISSING if text is None else self._word(text, top + int(rows[first[number]]), place)
        said = np.full(len(indices), _MISSING, np.uint8)
        said[rows] = meanings[which]
        return said

    def _word(self, text: str, row: int, place: int) -> int:
        """What a word says."""
        if text not in self._meanings:
            probe = TextCells(Cells(self._source, self._options))
            one = probe.row_to_bits([text], lambda _: self._numbers.position(row, place))[0]
            self._wrote_zeros = self._wrote_zeros or probe.has_zeros
            if len(self._meanings) > CHUNK_BITS // 64:  # numbers as text: they seldom come again
                self._meanings.clear()
            self._meanings[text] = _BLANK if probe.n_blank else _MISSING if probe.cells.n_missing else int(one)
        return self._meanings[text]

    def check_missing(self) -> None:
        """All cells were seen: say what a blank was, and refuse missing values, unless they are to be zeros."""
        if self._wrote_zeros:
            self._numbers.missing.merge(self._blank)
        self._numbers.check_missing()


def write(table: Table, path: Path, format: str) -> None:
    """Write columns of booleans; names of rows are a column that pandas takes for its index."""
    import pyarrow as pa
    from pyarrow import ipc, parquet

    schema = _schema(table)
    n_cols = table.shape[1]
    if not n_cols:
        raise FileError(f"{path.name}: a file of columns cannot hold a table without any; choose another format")
    at_a_time = min(1 << 20, max(1, 32 * CHUNK_BITS // n_cols))  # each column of each piece has a price
    if format == "parquet":
        writer = parquet.ParquetWriter(
            path, schema, use_dictionary=False, write_statistics=False, write_page_checksum=True
        )
    else:
        packed = "lz4" if pa.Codec.is_available("lz4") else None
        writer = ipc.new_file(str(path), schema, options=ipc.IpcWriteOptions(compression=packed))
    with writer:
        for start in range(0, len(table), at_a_time):
            some = table.bits[start : start + at_a_time]
            # Arrow keeps booleans as we keep bits.
            columns = np.frombuffer(some.T.to_bytes(), np.uint8).reshape(n_cols, -(-len(some) // 8))
            arrays = [pa.Array.from_buffers(pa.bool_(), len(some), [None, pa.py_buffer(column)]) for column in columns]
            if table.row_names is not None:
                arrays.insert(0, pa.array(table.row_names[start : start + at_a_time], pa.string()))
            writer.write_batch(pa.record_batch(arrays, schema=schema))


def _schema(table: Table) -> Any:
    """The columns of a file and what is written beside them."""
    import pyarrow as pa

    from ..._version import __version__

    columns = table.names_of(range(table.shape[1]))
    fields = [pa.field(name, pa.bool_()) for name in columns]
    about = {"format": "bitatoms table", "version": 1, "columns": table.columns is not None, "picture": table.picture}
    metadata = {KEY: json.dumps(about)}
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
        metadata[b"pandas"] = json.dumps(pandas)
    return pa.schema(fields, metadata)
