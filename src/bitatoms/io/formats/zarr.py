"""Zarr stores: packed tables of bitatoms, arrays of numbers, AnnData, MuData, and genotypes as VCF Zarr."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...columns.table import Table
from ...errors import Parameter
from ...system.libraries import missing_library
from ..cells import Cells, position_in
from ..options import ReadOptions
from ..out_of_core.chunked import read_row_chunks
from ..store.packed_store import METADATA_KEY, TABLE_FORMAT, PackedStoreReader, PackedStoreWriter, split_rows
from ..stream import RowChunk, Source, TableStream
from ..zarr_reader import ZarrReader
from .genotypes.vcf_zarr import is_vcf_zarr, read_vcf_zarr
from .single_cell.anndata_elements import is_array
from .single_cell.anndata_matrix import check_numeric_table
from .single_cell.h5ad import read_anndata
from .single_cell.mudata import read_modality


def read(source: Source, options: ReadOptions) -> TableStream:
    """Open a Zarr store: a packed table, an AnnData, genotypes, or an array."""
    with source.catch_library_errors():
        store = ZarrReader(source)
        attributes = dict(store.root.attrs)
        metadata = attributes.get(METADATA_KEY)
        if is_vcf_zarr(store) and options.layer is None:
            return read_vcf_zarr(source, options, store)
        for name in options.given("vcf"):
            raise source.error(
                Parameter(name), " applies to stores with genotypes (VCF Zarr), not to this one; omit it"
            )
        if isinstance(metadata, dict) and metadata.get("format") == TABLE_FORMAT and options.modality is None:
            return _read_packed(source, options, PackedStoreReader(store, metadata))
        kind = str(attributes.get("encoding-type")).lower()
        if options.modality is not None and kind != "mudata":
            raise source.error("this is not a MuData; omit ", Parameter("modality"))
        if kind in ("anndata", "mudata"):
            if find_spec("anndata") is None:
                raise missing_library(f"{source.name}: AnnData needs", "anndata")
            return (read_anndata if kind == "anndata" else read_modality)(source, options, _open)
        return _read_array(source, options, store, _select_array(source, options, store))


def _open(source: Source) -> AbstractContextManager[ZarrReader]:
    """Open a store as `open_hdf5` opens a file."""
    return nullcontext(ZarrReader(source))


def _select_array(source: Source, options: ReadOptions, store: ZarrReader) -> Any:
    """Return the array ``layer``, or the only table of the store."""
    element = store.root
    if is_array(element):
        if options.layer is not None:
            raise source.error(
                f"the store is a single array, so it has no {options.layer!r}; omit ", Parameter("layer")
            )
        return element
    names = "contents: " + (", ".join(map(repr, store.children(element)[:20])) or "none")
    if options.layer is not None:
        for name in options.layer.strip("/").split("/"):
            element = None if element is None or is_array(element) else store.child(element, name)
        if element is None or not is_array(element):
            raise source.error(f"there is no array {options.layer!r} ({names})")
        return element
    children = [store.child(element, name) for name in store.children(element)]
    tables = [child for child in children if len(getattr(child, "shape", ())) == 2]
    if len(tables) != 1:
        raise source.error(f"the store contains {len(tables)} tables ({names}); pass ", Parameter("layer"))
    return tables[0]


def _read_array(source: Source, options: ReadOptions, store: ZarrReader, array: Any) -> TableStream:
    """Open an array of numbers."""
    check_numeric_table(source, "the array", array)
    source.check_size(*array.shape)
    cells = Cells(source, options)

    def chunks() -> Iterator[RowChunk]:
        with source.catch_library_errors():
            chunk_shape = array.shards or array.chunks
            rows = read_row_chunks(lambda *slices: store.read(array, *slices), array.shape, chunk_shape, cells)
            yield from map(RowChunk, rows)
        cells.check_missing()

    return TableStream(array.shape[1], chunks())


def _read_packed(source: Source, options: ReadOptions, packed: PackedStoreReader) -> TableStream:
    """Open a packed table."""
    if options.layer is not None:
        raise source.error(f"a packed table has no array {options.layer!r}; omit ", Parameter("layer"))
    source.check_size(packed.n_rows, packed.n_cols, n_ones=packed.n_ones)
    cells = Cells(source, options, position_in(packed.columns))

    def chunks() -> Iterator[RowChunk]:
        start = 0
        for bits in packed.iter_stored():
            names = packed.names(start, start + len(bits))
            yield RowChunk(cells.known(bits, start), names)
            start += len(bits)
        cells.check_missing()

    known = packed.picture, packed.absent_is_zero, packed.row_data, packed.column_data
    return TableStream(packed.n_cols, chunks(), packed.columns, *known)


def write(table: Table, path: Path, format: str) -> None:
    """Write a packed table."""
    with PackedStoreWriter(
        path,
        table.shape[1],
        table.columns,
        table.picture,
        absent_is_zero=table.absent_is_zero,
        row_data=table.row_data,
        column_data=table.column_data,
    ) as store:
        for rows in split_rows(RowChunk(table.data, table.row_names)):
            store.append(rows)
