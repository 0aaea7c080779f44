"""Zarr stores: packed bits with names, written and read block by block; arrays of others; AnnData."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...bits import BitMatrix
from ...table import Table
from ..chunked import ChunkCells, read_row_chunks
from ..errors import MissingLibrary
from ..packed_store import METADATA_KEY, TABLE_FORMAT, PackedStoreReader, PackedStoreWriter
from ..safe_zarr import ZarrReader, check_store_folder, open_zarr
from ..stream import CHUNK_BITS, ReadOptions, RowChunk, Source, TableStream
from .h5ad import read_annotated


def write(table: Table, path: Path, format: str) -> None:
    """Write a packed store."""
    at_a_time = max(1, CHUNK_BITS // max(1, table.shape[1]))
    with PackedStoreWriter(path, table.shape[1], table.columns, table.picture) as store:
        for start in range(0, len(table), at_a_time):
            names = None if table.row_names is None else table.row_names[start : start + at_a_time]
            store.append(RowChunk(table.bits[start : start + at_a_time], names))


def read(source: Source, options: ReadOptions) -> TableStream:
    """The rows of a Zarr store: a packed one, an AnnData, or an array."""
    check_store_folder(source)
    with source.catch_library_errors():
        reader = ZarrReader(source)
        attributes = dict(reader.root.attrs)
        about = attributes.get(METADATA_KEY)
        if isinstance(about, dict) and about.get("format") == TABLE_FORMAT:
            return _read_packed(source, options, PackedStoreReader(reader, about))
        if attributes.get("encoding-type") == "anndata":
            if find_spec("anndata") is None:
                raise MissingLibrary(
                    f'{source.name}: AnnData needs anndata; get it with pip install "bitatoms[anndata]"'
                )
            return read_annotated(Source(*source), options, open_zarr)  # parts of which may be gathered in memory
        return _read_array(source, options, reader, _array(source, options, reader))


def _array(source: Source, options: ReadOptions, reader: ZarrReader) -> Any:
    """The array of a store that has one, or of the name that is asked for."""
    element = reader.root
    if hasattr(element, "shape"):
        if options.layer is not None:
            raise source.error(f"it is one array, and has no {options.layer!r}; leave layer= out")
        return element
    if options.layer is not None:
        for name in options.layer.strip("/").split("/"):
            element = None if element is None or hasattr(element, "shape") else reader.child(element, name)
        if element is None or not hasattr(element, "shape"):
            raise source.error(f"it has no array {options.layer!r}; its arrays are {_listed(reader)}")
        return element
    children = [reader.child(element, name) for name in reader.children(element)]
    tables = [child for child in children if len(getattr(child, "shape", ())) == 2]
    if len(tables) != 1:
        raise source.error(f"it has {len(tables)} tables; pass layer= with the name of one of {_listed(reader)}")
    return tables[0]


def _listed(reader: ZarrReader) -> str:
    """What is in a store, by name."""
    return ", ".join(map(repr, reader.children(reader.root)[:20])) or "none"


def _read_array(source: Source, options: ReadOptions, reader: ZarrReader, array: Any) -> TableStream:
    """The rows of an array of numbers."""
    if len(array.shape) != 2 or array.dtype.kind not in "biuf":
        raise source.error(f"its array is of shape {array.shape} and type {array.dtype}, no table of numbers")
    source.check_size(*array.shape)
    numbers = ChunkCells(source, options, None)

    def blocks() -> Iterator[RowChunk]:
        with source.catch_library_errors():
            chunk = array.shards or array.chunks
            for bits in read_row_chunks(lambda *tile: reader.read(array, *tile), array.shape, chunk, numbers):
                yield RowChunk(bits)
        numbers.check_missing()

    return TableStream(array.shape[1], blocks())


def _read_packed(source: Source, options: ReadOptions, packed: PackedStoreReader) -> TableStream:
    """The rows of a packed store."""
    if options.layer is not None:
        raise source.error(f"a table that bitatoms wrote has no {options.layer!r}; leave layer= out")
    source.check_size(packed.n_rows, packed.n_cols)

    def blocks() -> Iterator[RowChunk]:
        start = 0
        for bits in packed.iter_chunks(packed.chunk_rows):
            names = packed.names(start, start + len(bits))
            yield RowChunk(BitMatrix.from_any(bits, options.binarize), names)
            start += len(bits)

    return TableStream(packed.n_cols, blocks(), packed.columns, packed.picture)
