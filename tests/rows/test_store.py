"""Store: its description, its rows in chunks and by index, names, fingerprints, and corrupt stores."""

import pickle

import numpy as np
import pytest
import zarr

import bitatoms as ba
from bitatoms.bits import stack_rows
from bitatoms.io.store.packed_store import PackedStoreWriter
from bitatoms.io.stream import RowChunk
from bitatoms.rows.store import Store
from bitatoms.sparse_bits import packed
from support.sources import write_store
from support.strategies import random_bits


def test_opening_a_store_does_not_read_its_rows(tmp_path, bits, row_names):
    columns = tuple(f"c{column}" for column in range(70))
    path = write_store(tmp_path / "table.zarr", bits, row_names, columns).path
    for chunk in (path / "bits/c").rglob("*"):
        if chunk.is_file():
            chunk.write_bytes(b"corrupt")
    store = Store(path)
    assert (store.shape, store.n_rows, store.n_features, len(store)) == ((3001, 70), 3001, 70, 3001)
    assert store.columns == columns
    assert store.has_row_names
    assert store.picture is None
    assert repr(store) == f"Store({str(store.path)!r}, 3001 x 70)"
    assert pickle.loads(pickle.dumps(store)).shape == store.shape


@pytest.mark.parametrize(
    ("n_rows", "start"), [(None, 64), (1, 3000), (64, 1000), (100, 0), (640, 3001), (640, 1), (5000, 1000)]
)
def test_chunks_do_not_depend_on_the_chunks_of_the_zarr_store(any_bits, any_stores, n_rows, start):
    size = 5056 if n_rows is None else -(-n_rows // 64) * 64
    for store in any_stores:
        assert store.has_unknown == bool(any_bits.n_unknown)
        chunks = list(store.chunks(n_rows, start))
        assert all(len(chunk) == size for chunk in chunks[:-1])
        assert stack_rows(chunks, 70) == any_bits[start:]


WIDTHS = (0, 1, 7, 8, 63, 64, 65, 128, 130)
FORMS = ("all known", "some unknown", "by ones")


@pytest.mark.parametrize(
    ("n_rows", "n_cols", "form"),
    [(200, n_cols, FORMS[number % 3]) for number, n_cols in enumerate(WIDTHS)]
    + [(n_rows, n_cols, form) for n_rows, n_cols in ((0, 65), (1, 64)) for form in FORMS]
    + [(200, 65, "some unknown"), (200, 65, "all known")],
)
def test_chunks_of_any_width_are_the_rows(tmp_path, n_rows, n_cols, form):
    bits, by_ones = ba.BitMatrix.from_dense(random_bits(n_rows, n_rows, n_cols, 0.5)), form == "by ones"
    if form == "some unknown":
        bits = bits.with_unknown(ba.BitMatrix.from_dense(random_bits(n_cols, n_rows, n_cols, 0.5)))
    store = write_store(tmp_path / "table.zarr", bits, chunk_bytes=2000 if by_ones else 70, by_ones=by_ones)
    assert store.n_ones == (bits.count() if by_ones else None)
    assert stack_rows(list(store.chunks(64)), n_cols) == bits
    stored = [packed(rows) for rows in store.stored_chunks(64, start=n_rows // 3)]
    assert stack_rows(stored, n_cols) == bits[n_rows // 3 :]
    for chosen in (np.arange(0, n_rows, 3), np.repeat(np.arange(n_rows), 2)):
        assert store.take(chosen) == bits[chosen]


def test_take_checks_indices(bits, stores):
    store = stores[0]
    assert store.take([]) == bits[:0]
    for wrong in ([5, 3], [[1]]):
        with pytest.raises(ValueError, match="in increasing order"):
            store.take(wrong)
    for wrong in (-1, 3001):
        with pytest.raises(IndexError, match=f"row {wrong} is out of range"):
            store.take([wrong])
    for wrong in ([1.5], [True, False]):
        with pytest.raises(TypeError, match="row indices must be integers"):
            store.take(wrong)


def test_row_names_of_any_range(tmp_path, bits, row_names):
    store = write_store(tmp_path / "table.zarr", bits, row_names, chunk_bytes=200)
    for start, stop in ((0, None), (0, 0), (5, 5), (7, 2000), (3000, 4000)):
        assert store.row_names(start, stop) == list(row_names[start:stop])
    assert write_store(tmp_path / "unnamed.zarr", bits[:3]).row_names() is None


def test_other_files_and_incomplete_stores_are_not_opened(tmp_path, bits):
    zarr.create_array(tmp_path / "array.zarr", data=bits.to_dense())
    (tmp_path / "table.csv").write_text("a,b\n0,1\n")
    (tmp_path / "empty").mkdir()
    writer = PackedStoreWriter(tmp_path / "incomplete.zarr", 70)
    writer.append(RowChunk(bits))
    with pytest.raises(ValueError, match="3 columns"):
        writer.append(RowChunk(ba.BitMatrix.zeros(2, 3)))
    write_store(tmp_path / "cut.zarr", bits, chunk_bytes=9 * 100)
    (tmp_path / "cut.zarr/bits/c/30/0").unlink()  # the last chunk
    for name, part in (
        ("array.zarr", "bitatoms.pack("),
        ("table.csv", "bitatoms.pack("),
        ("gone.zarr", "there is no such store"),
        ("empty", "this folder is not a Zarr store"),
        ("incomplete.zarr", "incomplete: writing it was interrupted"),
        ("cut.zarr", "its chunk 'bits/c/30/0' is missing"),
    ):
        with pytest.raises(ba.FileError, match=name) as caught:
            Store(tmp_path / name)
        assert part in str(caught.value)
