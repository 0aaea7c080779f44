"""Parquet and Arrow files in pieces: rows that lie together, of which some columns are unpacked at a time."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

from ..stream import CHUNK_BITS, Source

_WIDTH = 1024  # columns that are open together: each keeps some of its file in memory


class Piece(NamedTuple):
    """Rows that lie together in a file; ``columns`` gives some of their columns, at most so many rows at a time."""

    n_rows: int
    width: int  # columns to ask for together, a multiple of 64
    columns: Callable[[Sequence[int], int], Iterator[list[Any]]]


class Columnar(NamedTuple):
    """An open file: what its columns are, and its rows."""

    names: list[str]
    types: list[Any]
    metadata: dict[bytes, bytes]
    pieces: Callable[[], Iterator[Piece]]

    @classmethod
    def of(cls, schema: Any, pieces: Callable[[], Iterator[Piece]]) -> Columnar:
        """A file of this schema."""
        return cls(schema.names, schema.types, schema.metadata or {}, pieces)


def open_arrow(source: Source) -> AbstractContextManager[Columnar]:
    """A Parquet, Feather or Arrow file."""
    return _parquet(source) if source.format == "parquet" else _arrow(source)


@contextmanager
def _parquet(source: Source) -> Iterator[Columnar]:
    """A Parquet file, a piece a row group."""
    from pyarrow import parquet

    with parquet.ParquetFile(source.path, memory_map=True) as file:
        schema, metadata = file.schema_arrow, file.metadata
    names = schema.names
    # Text comes as it is kept, each word once: a long one that is used often would fill the memory.
    text = [name for name, kind in zip(names, schema.types, strict=True) if is_text(kind)]
    with parquet.ParquetFile(
        source.path,
        metadata=metadata,
        memory_map=True,
        pre_buffer=False,
        read_dictionary=text or None,
        page_checksum_verification=True,
    ) as file:

        def pieces() -> Iterator[Piece]:
            for group in range(metadata.num_row_groups):
                yield _row_group(source, file, names, group)

        yield Columnar.of(schema, pieces)


def _row_group(source: Source, file: Any, names: list[str], group: int) -> Piece:
    """A row group of a Parquet file."""

    def columns(places: Sequence[int], at_a_time: int) -> Iterator[list[Any]]:
        asked = dict.fromkeys(names[place] for place in places)
        # pyarrow gives all columns of a name.
        alike: dict[str, list[int]] = {name: [] for name in asked}
        for place, name in enumerate(names):
            if name in alike:
                alike[name].append(place)
        found = {place: number for number, place in enumerate(itertools.chain(*alike.values()))}
        for batch in file.iter_batches(at_a_time, row_groups=[group], columns=list(asked)):
            if batch.num_columns != len(found):
                raise source.error("corrupt: its row groups have not the columns that it says")
            yield [batch.column(found[place]) for place in places]

    return Piece(file.metadata.row_group(group).num_rows, _WIDTH, columns)


@contextmanager
def _arrow(source: Source) -> Iterator[Columnar]:
    """An Arrow file, an Arrow stream, or the first kind of Feather; a piece a record batch."""
    import pyarrow as pa
    from pyarrow import feather, ipc

    with pa.memory_map(str(source.path)) as file:
        beginning = file.read(6)
        file.seek(0)
        if beginning == b"ARROW1":
            whole = ipc.open_file(file)
            yield Columnar.of(whole.schema, lambda: _batches(file, whole))
        elif beginning[:4] == b"FEA1":
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that it is going out of use is no concern of who reads it
                table = feather.read_table(file)
            yield Columnar.of(table.schema, lambda: map(_in_memory, table.to_batches()))
        else:

            def pieces() -> Iterator[Piece]:
                file.seek(0)
                yield from map(_in_memory, ipc.open_stream(file))

            yield Columnar.of(ipc.open_stream(file).schema, pieces)


def _batches(file: Any, whole: Any) -> Iterator[Piece]:
    """The record batches of an Arrow file. Only what is asked for is unpacked: of large ones some columns at a time."""
    from pyarrow import ipc

    readers: dict[tuple[int, ...], Any] = {}

    def reader(places: tuple[int, ...]) -> Any:
        if places not in readers:
            readers[places] = ipc.open_file(file, options=ipc.IpcReadOptions(included_fields=list(places)))
        return readers[places]

    def piece(number: int) -> Piece:
        def columns(places: Sequence[int], at_a_time: int) -> Iterator[list[Any]]:
            asked = sorted(places)
            order = [asked.index(place) for place in places] if asked != list(places) else range(len(asked))
            yield from _in_memory(reader(tuple(asked)).get_batch(number)).columns(order, at_a_time)

        narrow = reader((0,)) if len(whole.schema) else whole
        n_rows = narrow.get_batch(number).num_rows
        return Piece(n_rows, min(_WIDTH, max(1, 16 * CHUNK_BITS // max(1, n_rows) // 64) * 64), columns)

    return map(piece, range(whole.num_record_batches))


def _in_memory(batch: Any) -> Piece:
    """A record batch as a piece, made sure that it is sound: Arrow does not look by itself."""
    batch.validate(full=True)

    def columns(places: Sequence[int], at_a_time: int) -> Iterator[list[Any]]:
        for start in range(0, batch.num_rows, at_a_time):
            yield [batch.column(place).slice(start, at_a_time) for place in places]

    return Piece(batch.num_rows, _WIDTH, columns)


def is_text(kind: Any) -> bool:
    """Whether a column of this type holds text, directly or by a list of its words."""
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view"


def texts(column: Any) -> list[str]:
    """The values of a column as text; a word that is kept once stays one string however often it is used."""
    from pyarrow import types

    if types.is_dictionary(column.type):
        words = texts(column.dictionary)
        return ["" if place is None else words[place] for place in column.indices.to_pylist()]
    return ["" if value is None else str(value) for value in column.to_pylist()]
