"""Parquet and Arrow files as chunks of rows (row groups, record batches), read a few columns at a time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

from ..limits import CHUNK_BITS, MAX_ARROW_COLUMNS
from ..stream import Source

_MAGIC = b"ARROW1"


class ArrowChunk(NamedTuple):
    """Consecutive rows of a file."""

    n_rows: int
    max_columns: int  # to read together, a multiple of 64
    read_columns: Callable[[Sequence[int], int], Iterator[list[Any]]]  # indices of columns, rows at a time


class ArrowFile:
    """An open file: its schema, and its rows in chunks."""

    def __init__(self, schema: Any, chunks: Callable[[], Iterator[ArrowChunk]]) -> None:
        self.names: list[str] = schema.names
        self.types: list[Any] = schema.types
        self.metadata: dict[bytes, bytes] = schema.metadata or {}
        self.chunks = chunks


def open_arrow(source: Source) -> AbstractContextManager[ArrowFile]:
    """Open a Parquet, Feather or Arrow file."""
    return _open_parquet(source) if source.format == "parquet" else _open_feather(source)


@contextmanager
def _open_parquet(source: Source) -> Iterator[ArrowFile]:
    """Open a Parquet file; each row group is a chunk."""
    from pyarrow import parquet

    with parquet.ParquetFile(source.path, memory_map=True) as file:
        schema, metadata = file.schema_arrow, file.metadata
    names = schema.names
    # Text is read dictionary-encoded: a long string that repeats often would fill the memory.
    text = [name for name, kind in zip(names, schema.types, strict=True) if is_text(kind)]
    with parquet.ParquetFile(
        source.path,
        metadata=metadata,
        memory_map=True,
        pre_buffer=False,
        read_dictionary=text or None,
        page_checksum_verification=True,
    ) as file:

        def chunks() -> Iterator[ArrowChunk]:
            for group in range(metadata.num_row_groups):
                yield _row_group(source, file, names, group)

        yield ArrowFile(schema, chunks)


def _row_group(source: Source, file: Any, names: list[str], group: int) -> ArrowChunk:
    """Return a row group of a Parquet file."""

    def read_columns(indices: Sequence[int], chunk_rows: int) -> Iterator[list[Any]]:
        # Columns are requested by name, and pyarrow returns all columns with that name.
        same_name: dict[str, list[int]] = {names[index]: [] for index in indices}
        for index, name in enumerate(names):
            if name in same_name:
                same_name[name].append(index)
        positions = {index: position for position, index in enumerate(itertools.chain(*same_name.values()))}
        for batch in file.iter_batches(chunk_rows, row_groups=[group], columns=list(same_name)):
            if batch.num_columns != len(positions):
                raise source.error("corrupt: a row group does not have the columns of the schema")
            yield [batch.column(positions[index]) for index in indices]

    return ArrowChunk(file.metadata.row_group(group).num_rows, MAX_ARROW_COLUMNS, read_columns)


@contextmanager
def _open_feather(source: Source) -> Iterator[ArrowFile]:
    """Open an Arrow file, which Feather files of version 2 are; each record batch is a chunk."""
    import pyarrow as pa
    from pyarrow import ipc

    with pa.memory_map(str(source.path)) as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise source.error(
                "not an Arrow file, nor Feather version 2; Arrow streams and Feather version 1 are not read: write the "
                "table with pyarrow.feather.write_feather"
            )
        reader = ipc.open_file(file)
        yield ArrowFile(reader.schema, lambda: _record_batches(file, reader))


def _record_batches(file: Any, full_reader: Any) -> Iterator[ArrowChunk]:
    """Yield the record batches of an Arrow file; only the requested columns are decompressed."""
    from pyarrow import ipc

    readers: dict[tuple[int, ...], Any] = {}

    def read_batch(number: int, indices: tuple[int, ...]) -> Any:
        if indices not in readers:
            readers[indices] = ipc.open_file(file, options=ipc.IpcReadOptions(included_fields=list(indices)))
        batch = readers[indices].get_batch(number)
        batch.validate(full=True)  # Arrow itself does not check untrusted data
        return batch

    def chunk(number: int) -> ArrowChunk:
        def read_columns(indices: Sequence[int], chunk_rows: int) -> Iterator[list[Any]]:
            ordered = sorted(indices)
            batch = read_batch(number, tuple(ordered))
            for start in range(0, batch.num_rows, chunk_rows):
                yield [batch.column(ordered.index(index)).slice(start, chunk_rows) for index in indices]

        n_rows = (read_batch(number, (0,)) if len(full_reader.schema) else full_reader.get_batch(number)).num_rows
        max_columns = min(MAX_ARROW_COLUMNS, max(1, 16 * CHUNK_BITS // max(1, n_rows) // 64) * 64)
        return ArrowChunk(n_rows, max_columns, read_columns)

    return map(chunk, range(full_reader.num_record_batches))


def is_text(kind: Any) -> bool:
    """Return whether a column of this type contains text, plain or dictionary-encoded."""
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    return types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view"


def to_strings(column: Any) -> list[str]:
    """Return the values of a column as text; equal values of a dictionary-encoded column share one string."""
    from pyarrow import types

    if types.is_dictionary(column.type):
        strings = to_strings(column.dictionary)
        return ["" if index is None else strings[index] for index in column.indices.to_pylist()]
    return ["" if value is None else str(value) for value in column.to_pylist()]
