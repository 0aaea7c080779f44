"""pack: tables in memory, files and iterators become the store that `read` would give."""

import errno
import io
import os
import shutil

import numpy as np
import pytest
import scipy.sparse as sp
import zarr

import bitatoms as ba
from bitatoms.columns.table import Header
from bitatoms.rows.store import pack
from support.strategies import random_bits

SMALL = ba.Table(ba.BitMatrix.from_dense(random_bits(1, 70, 9, 0.3)), [f"r{row}" for row in range(70)], [*"abcdefghi"])


def split(table, size=13):
    """Yield a table in chunks of rows."""
    for start in range(0, len(table), size):
        names = None if table.row_names is None else table.row_names[start : start + size]
        yield ba.Table(table.bits[start : start + size], names, table.columns)


BARE = ba.Table(SMALL.bits)
REVERSED = ba.Table(SMALL.bits.take_columns(range(9)[::-1]), SMALL.row_names, SMALL.columns[::-1])
HUGE = "%%MatrixMarket matrix coordinate pattern general\n1000000000 1000000000 1\n1 1\n"
DENSE = SMALL.to_dense()
SOURCES = {
    "a table": (SMALL, SMALL),
    "chunks of a table": (split(SMALL), SMALL),
    "chunks with columns in another order": ([SMALL[:5], REVERSED[5:]], SMALL),
    "bits": (SMALL.bits, BARE),
    "chunks of bits": ([SMALL.bits[:3], SMALL.bits[3:3], SMALL.bits[3:]], BARE),
    "an array": (DENSE, BARE),
    "a column-major array": (np.asfortranarray(DENSE), BARE),
    "chunks of arrays": ((DENSE[start : start + 9] for start in range(0, 70, 9)), BARE),
    "lists": (DENSE.tolist(), BARE),
    "a sparse matrix": (sp.coo_array(DENSE), BARE),
    "sparse chunks": ([sp.csr_array(DENSE[:40]), sp.csc_array(DENSE[40:])], BARE),
    "a data frame": (SMALL.to_pandas(), SMALL),
    "no rows": (DENSE[:0], ba.Table(SMALL.bits[:0])),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_pack_of_tables_in_memory(tmp_path, monkeypatch, kind):
    monkeypatch.setattr("bitatoms.rows.store.CHUNK_BITS", 9 * 7)
    source, expected = SOURCES[kind]
    store = pack(source, tmp_path / "x.zarr")
    assert ba.read(store.path) == expected
    assert store.about["source"] == type(source).__name__
    assert store.about["format"] == "memory"


@pytest.mark.parametrize("ending", ["csv", "npz", "mtx", "h5ad"])
def test_a_store_records_its_file_and_the_columns_left_out(tmp_path, ending):
    """That the store of a file is what `read` gives is tested for every format in test_format_contract."""
    path = tmp_path / f"table.{ending}"
    ba.write(BARE if ending == "mtx" else SMALL, path)
    dropped = ba.read(path).names_of([1, 4])
    for options in ({}, {"without": dropped}):
        store = pack(path, tmp_path / "packed.zarr", **options)
        assert ba.read(store.path) == ba.read(path, **options)
        about = {"source": path.name, "format": ending, "options": {name: list(dropped) for name in options}}
        assert {**store.about, "bitatoms": None} == {**about, "bitatoms": None}


def test_pack_uses_and_records_options(tmp_path):
    path = tmp_path / "counts.csv"
    path.write_text("a;a\n3;\n0;1\n")
    options = {"binarize": np.float64(1), "missing": "zero", "duplicates": "number", "separator": ";"}
    store = pack(path, tmp_path / "x.zarr", **options)
    assert ba.read(store.path) == ba.read(path, **options)
    assert store.columns == ("a", "a.2")
    assert store.about["options"] == options
    assert str(tmp_path) not in (store.path / "zarr.json").read_text()
    store = pack(DENSE * 3.0, tmp_path / "x.zarr", binarize=2)
    assert ba.read(store.path) == BARE
    assert ba.read(pack(store, tmp_path / "y.zarr").path) == BARE
    pictures = ba.Table(SMALL.bits, picture=((3, 3), None))
    assert ba.read(pack(pictures, tmp_path / "x.zarr").path) == pictures
    fewer = pack(SMALL, tmp_path / "x.zarr", without="c")
    assert fewer.columns == tuple("abdefghi")


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (DENSE, {"header": True}, "header applies only to files"),
        (DENSE, {"format": "csv"}, "format applies only to files"),
        (DENSE + 1, {}, "2 at row 0"),
        ([DENSE, DENSE + 1], {}, "2 at row 70, column 2"),
        ([DENSE, DENSE[:, :3]], {}, "starts at row 70 has 3 columns, but the first has 9"),
        ([SMALL, BARE], {}, "starts at row 70 has different column names"),
        ([ba.Table(SMALL.bits, SMALL.row_names), BARE], {}, "either all rows of a store must have names, or none"),
        (iter([]), {}, "there are no rows to pack"),
        (SMALL, {"without": ["z"]}, "there is no column 'z'"),
        (SMALL, {"max_memory": 1000}, r"max_memory=1000 is too small to pack a table; pass at least \d+ bytes"),
        (SMALL, {"max_memory": "lots"}, "max_memory must be an amount"),
        (HUGE, {}, "bytes can be expected to hold: corrupt or malicious"),
    ],
)
def test_errors_of_pack_leave_no_files(tmp_path, tmp_path_factory, source, options, message):
    if isinstance(source, str):
        path = tmp_path_factory.mktemp("files") / "table.mtx"
        path.write_text(source)
        source = path
    with pytest.raises(ValueError, match=message):
        pack(source, tmp_path / "x.zarr", **options)
    assert not os.listdir(tmp_path)


def test_a_store_of_transactions_knows_that_absent_items_are_zeros(tmp_path):
    (tmp_path / "lists.dat").write_text("0 2\n1\n")
    stores = [pack(tmp_path / "lists.dat", tmp_path / "file.zarr")]
    table = ba.read(tmp_path / "lists.dat")
    stores += [pack(table, tmp_path / "table.zarr"), pack([table, table], tmp_path / "tables.zarr")]
    for store in stores:
        assert store.header == ba.read(store.path).header == Header(3, ("0", "1", "2"), True)
    assert not pack(SMALL, tmp_path / "small.zarr").absent_is_zero


def test_pack_of_tables_larger_than_memory(tmp_path, monkeypatch):
    for ending in ("zarr", "parquet", "mtx"):
        ba.write(SMALL, tmp_path / f"table.{ending}")
    zarr.create_array(tmp_path / "array.zarr", data=DENSE, chunks=(20, 9))
    np.save(tmp_path / "rows.npy", DENSE)
    np.savez_compressed(tmp_path / "rows.npz", X=DENSE)
    np.save(tmp_path / "columns.npy", np.asfortranarray(DENSE))
    monkeypatch.setattr("bitatoms.io.stream.memory_limit", lambda: 500)
    for name in ("table.zarr", "table.parquet", "array.zarr", "rows.npy", "rows.npz", "table.mtx", "columns.npy"):
        with pytest.raises(ba.FileError, match="of memory are available"):
            ba.read(tmp_path / name)
        store = pack(tmp_path / name, tmp_path / "packed.zarr")
        assert store.take(np.arange(70)) == SMALL.bits


def write_entries(folder):
    """Write a Matrix Market file, column by column, and return its path."""
    rows, columns = np.nonzero(np.arange(5000)[:, np.newaxis] % 2000 == np.arange(9000) % 2000)
    order = np.lexsort((rows, columns))
    header = f"%%MatrixMarket matrix coordinate pattern general\n5000 9000 {len(order)}"
    np.savetxt(folder / "x.mtx", np.column_stack((rows, columns))[order] + 1, "%d", header=header, comments="")
    return folder / "x.mtx"


def test_the_memory_limit_does_not_change_the_store(tmp_path):
    """Above the limit, cells are put into the order of rows in a temporary file next to the store."""
    path, seen = write_entries(tmp_path), set()

    def look(n_rows):
        seen.update(file.suffix for file in tmp_path.glob(".limited.zarr.*.part/*"))

    stores = [
        pack(path, tmp_path / "limited.zarr", max_memory="48 MiB", callback=look),
        pack(path, tmp_path / "memory.zarr", max_memory="2GiB"),
    ]
    assert seen == {".cells", ".zarr"}
    files = [
        {file.relative_to(store.path): file.read_bytes() for file in store.path.rglob("*") if file.is_file()}
        for store in stores
    ]
    assert files[0] == files[1]
    assert stores[0].shape == ba.read(path).shape
    assert {entry.name for entry in tmp_path.iterdir()} == {"limited.zarr", "memory.zarr", "x.mtx"}


def test_ctrl_c_and_a_full_disk_leave_the_earlier_store_and_no_temporary_files(tmp_path, monkeypatch):
    path = write_entries(tmp_path)
    pack(SMALL, tmp_path / "earlier.zarr")

    def interrupt(n_rows):
        raise KeyboardInterrupt

    for name in ("new.zarr", "earlier.zarr"):
        with pytest.raises(KeyboardInterrupt):
            pack(path, tmp_path / name, max_memory="48 MiB", callback=interrupt)
    assert ba.read(tmp_path / "earlier.zarr") == SMALL
    shutil.rmtree(tmp_path / "earlier.zarr")
    assert list(tmp_path.iterdir()) == [path]

    class FullDisk(io.BytesIO):
        def write(self, data):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("bitatoms.io.scratch.open", lambda *_: FullDisk(), raising=False)
    with pytest.raises(ba.FileError) as error:
        pack(path, tmp_path / "new.zarr", max_memory="48 MiB")
    assert (
        str(error.value) == f"{tmp_path / 'new.zarr'}: cannot be written: No space left on device; nothing was changed"
    )
    assert list(tmp_path.iterdir()) == [path]


def test_a_sparse_table_is_never_packed(tmp_path, monkeypatch):
    """Neither by the memory limit, nor from a table in memory, nor from another store, nor if it is transposed."""
    path = write_entries(tmp_path)
    expected = ba.read(path)
    ba.write(expected, tmp_path / "rows.h5ad")
    pytest.importorskip("anndata").AnnData(expected.data.to_sparse().tocsc()).write_h5ad(tmp_path / "columns.h5ad")

    def never(*_):
        raise AssertionError("rows were packed")

    monkeypatch.setattr("bitatoms.io.store.packed_rows.PackedRowsWriter.append", never)
    monkeypatch.setattr("bitatoms.io.out_of_core.entries.EntryBits.add", never)
    monkeypatch.setattr("bitatoms.io.out_of_core.transposing.Transposer.add", never)
    monkeypatch.setattr("bitatoms.sparse_bits.SparseBits.bits", property(never))
    stores = [pack(path, tmp_path / "file.zarr", max_memory="48 MiB"), pack(expected, tmp_path / "table.zarr")]
    stores.append(pack(stores[0], tmp_path / "store.zarr"))
    for number, kind in enumerate(("rows", "columns")):
        stores.append(pack(tmp_path / f"{kind}.h5ad", tmp_path / f"{number}.zarr", max_memory="48 MiB"))
    for store in stores:
        assert store.n_ones == expected.data.count()
        assert ba.read(store.path).data == expected.data
    for source in (path, stores[0].path):
        store = pack(source, tmp_path / "turned.zarr", max_memory="48 MiB", transpose=True)
        assert ba.read(store.path).data == expected.data.T
