"""Any table into a packed store, a block of rows at a time: from a file, from memory, or as its blocks come."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from .. import validation
from .._version import __version__
from ..io.api import StreamingSource, drop_columns, open_table
from ..io.atomic import atomic_write
from ..io.formats import infer_format, load_reader
from ..io.packed_store import PackedStoreWriter
from ..io.stream import CHUNK_BITS, ReadOptions, RowChunk, Source, TableStream
from ..table import Table
from .store import Store

_OF_FILES = ("header", "row_names", "separator", "blocks")  # options that only files have a use for


def pack(
    source: Any,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    binarize: float | None = None,
    missing: str = "refuse",
    duplicates: str = "refuse",
    header: bool | None = None,
    row_names: bool | None = None,
    separator: str | None = None,
    layer: str | None = None,
    blocks: tuple[int, int] | None = None,
    without: Sequence[str] = (),
    callback: Callable[[int], object] | None = None,
) -> Store:
    """Pack a table of 0 and 1 into a store on disk, a block of rows at a time, so that it may be larger than memory.

    Parameters
    ----------
    source : path, Table, BitMatrix, array-like, sparse matrix, data frame, AnnData, or iterator of such
        A file in any format that `bitatoms.read` reads; a table in memory, or in a file that NumPy, h5py, zarr or Dask
        has open as an array; or, from an iterator or in a list, the blocks of rows of a table one after the other.
    path : str or path-like
        The store to make, mostly with the ending .zarr; there whole, or not at all.
    format, binarize, missing, duplicates, header, row_names, separator, layer, blocks, without
        How to read the source, as in `bitatoms.read`.
    callback : callable, optional
        Called with the number of rows that are packed, again and again.

    Returns
    -------
    Store
        Open for reading; its ``about`` says where the rows came from.

    Raises
    ------
    FileError
        The source cannot be read, or the store not written; then nothing is left of it.

    Notes
    -----
    Text, Parquet, Feather and Zarr go through a block at a time, as do arrays row by row and blocks as they come. Other
    formats do not lie row by row: the packed table, an eighth of a byte a cell, is in memory once.

    Examples
    --------
    >>> import numpy as np
    >>> import bitatoms as ba
    >>> random = np.random.default_rng(0)
    >>> store = ba.pack((random.random((1000, 50)) < 0.1 for block in range(3)), "blocks.zarr")
    >>> store.shape
    (3000, 50)
    """
    without = (without,) if isinstance(without, str) else tuple(without)
    options = ReadOptions(binarize, missing, duplicates, header, row_names, separator, layer, blocks, without)
    load_reader("zarr", os.fspath(path))  # or the error that says how to get it
    if isinstance(source, Store):
        source = source.path
    if isinstance(source, (str, os.PathLike)):
        file = StreamingSource(Path(source), infer_format(source, format), os.fspath(source))
        stream, name, kind = open_table(file, options), file.path.name, file.format
    else:
        if format is not None:
            raise ValueError("format= is for files; leave it out")
        stream, name, kind = _in_memory(source, options), type(source).__name__, "memory"
    about = {"source": name, "format": kind, "options": _given(options), "bitatoms": __version__}
    with (
        atomic_write(Path(path)) as made,
        PackedStoreWriter(made, stream.n_cols, stream.columns, stream.picture, about) as store,
    ):
        for rows in stream.chunks:
            for some in _cut(rows):
                store.append(some)
                if callback is not None:
                    callback(store.n_rows)
    return Store(path)


def _given(options: ReadOptions) -> dict[str, Any]:
    """The options that are not as they are by default, as JSON can hold them."""
    given = {field.name: getattr(options, field.name) for field in fields(ReadOptions)}
    given = {name: value for name, value in given.items() if value != getattr(ReadOptions(), name)}
    if "binarize" in given:
        given["binarize"] = float(given["binarize"])
    return {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}


def _cut(rows: RowChunk) -> Iterator[RowChunk]:
    """Rows, not too many at a time: each is copied on its way."""
    size = max(1, CHUNK_BITS // max(1, rows.bits.n_cols))
    for start in range(0, len(rows.bits), size):
        names = None if rows.names is None else rows.names[start : start + size]
        yield RowChunk(rows.bits[start : start + size], names)


def _in_memory(source: Any, options: ReadOptions) -> TableStream:
    """The rows of whatever is no file."""
    for name in _OF_FILES:
        if getattr(options, name) is not None:
            raise ValueError(f"{name}= is for files; leave it out")
    parts = _parts(source)
    if parts is None:
        table = Table.from_any(source, binarize=options.binarize, missing=options.missing, layer=options.layer)
        chunk = RowChunk(table.bits, table.row_names)
        stream = TableStream(table.shape[1], iter([chunk]), table.columns, table.picture)
    else:
        stream = _stream(parts, options)
    return drop_columns(Source(Path(), "memory", "the table"), stream, options.without) if options.without else stream


def _parts(source: Any) -> Iterable[Any] | None:
    """The blocks of rows that something is made of, or can be cut into; None where it is better taken whole."""
    if isinstance(source, Iterator):
        return source
    if isinstance(source, (list, tuple)):
        tables = len(source) > 0 and all(len(getattr(part, "shape", ())) == 2 for part in source)
        return source if tables else None
    if validation.package_name(source) == "dask":
        parts = source.blocks if hasattr(source, "blocks") else source.partitions
        count = source.numblocks[0] if hasattr(source, "numblocks") else source.npartitions
        return (parts[place].compute() for place in range(count))
    if validation.package_name(source) in ("numpy", "h5py", "zarr") and len(getattr(source, "shape", ())) == 2:
        size = max(1, CHUNK_BITS // max(1, source.shape[1]))
        return (source[start : start + size] for start in range(0, max(1, source.shape[0]), size))
    return None


def _stream(parts: Iterable[Any], options: ReadOptions) -> TableStream:
    """Blocks of rows, all with the columns of the first."""
    tables = _tables(parts, options)
    first = next(tables, None)
    if first is None:
        raise ValueError("there are no blocks of rows to pack, so that not even the number of columns is known")
    rows = (RowChunk(table.bits, table.row_names) for table in itertools.chain([first], tables))
    picture = None if first.picture is None or first.picture.whole is not None else first.picture
    return TableStream(first.shape[1], rows, first.columns, picture)


def _tables(parts: Iterable[Any], options: ReadOptions) -> Iterator[Table]:
    """Blocks of rows as tables; what is wrong with one is said with where it is."""
    start, first = 0, None
    for part in parts:
        try:
            table = Table.from_any(part, binarize=options.binarize, missing=options.missing, layer=options.layer)
            first = table if first is None else first
            if table.shape[1] != first.shape[1] or table.columns != first.columns:
                how = f"has {table.shape[1]} columns where the first block has {first.shape[1]}"
                raise ValueError(
                    how if table.shape[1] != first.shape[1] else "has other names of columns than the first"
                )
        except ValueError as error:
            if not start:
                raise
            raise ValueError(f"the block that begins with row {start}: {error}") from error
        start += len(table)
        yield table
