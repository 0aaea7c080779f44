"""Packed stores: chunks that were moved or are of another store, and stores that are replaced while they are read."""

import json
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

import bitatoms as ba

zarr = pytest.importorskip("zarr")

from bitatoms.io.packed_store import METADATA_KEY, PackedStoreReader  # noqa: E402
from bitatoms.io.safe_zarr import ZarrReader  # noqa: E402
from bitatoms.io.stream import Source  # noqa: E402
from support.sources import write_store  # noqa: E402

OLD_STORE = Path(__file__).parents[1] / "data" / "0.1.0" / "store.zarr"
REPLACED = r"the store was replaced while it was read; open it again$"
N_ROWS, N_COLS, CHUNK = 400, 30, 50  # 50 rows per chunk


def rows(seed):
    return ba.BitMatrix.from_dense(np.random.default_rng(seed).random((N_ROWS, N_COLS)) < 0.3)


def names(seed):
    return [f"row {row} of {10**seed}" for row in range(N_ROWS)]


def write(path, seed):
    return write_store(path, rows(seed), names(seed), chunk_bytes=4 * CHUNK)


def replace(path, seed):
    """Replace the store at a path by other rows, as atomic_write does."""
    other = path.with_name("other.zarr")
    write(other, seed)
    os.replace(path, path.with_name(f"before-{seed}.zarr"))
    os.replace(other, path)


def read_all(store):
    return ba.BitMatrix.from_words(np.concatenate([chunk.words for chunk in store.chunks(64)]), N_COLS)


# --- chunks


@pytest.mark.parametrize("array", ["bits", "name_ends", "name_bytes"])
@pytest.mark.parametrize("of_another", [False, True])
def test_chunks_are_bound_to_their_store_and_position(tmp_path, array, of_another):
    store = write(tmp_path / "table.zarr", 0)
    ending = "/0" if array == "bits" else ""
    first, second = (store.path / array / f"c/{chunk}{ending}" for chunk in (1, 2))
    if of_another:
        other = write(tmp_path / "another.zarr", 1)
        shutil.copy(other.path / array / f"c/1{ending}", first)
    else:
        content = first.read_bytes()
        first.write_bytes(second.read_bytes())
        second.write_bytes(content)
    with pytest.raises(
        ba.FileError, match=rf"table\.zarr: its chunk '{array}/c/1{ending}' is corrupt: it is not the one"
    ):
        read_all(store) if array == "bits" else store.row_names()
    with pytest.raises(ba.FileError, match="is corrupt: it is not the one"):
        ba.read(store.path)


@pytest.mark.parametrize("part", ["zarr.json", "checksums", "bits", "name_ends"])
def test_parts_of_another_store_are_detected(tmp_path, part):
    store, other = write(tmp_path / "table.zarr", 0), write(tmp_path / "another.zarr", 1)
    if part == "zarr.json":
        shutil.copy(other.path / part, store.path / part)
    else:
        shutil.rmtree(store.path / part)
        shutil.copytree(other.path / part, store.path / part)
    with pytest.raises(ba.FileError, match="copy the store again"):
        ba.read(store.path)


def test_a_shape_that_was_changed_is_detected(tmp_path):
    store = write_store(tmp_path / "table.zarr", rows(0), chunk_bytes=4 * CHUNK)
    metadata = json.loads((store.path / "bits/zarr.json").read_text())
    metadata["shape"][0] -= 1
    (store.path / "bits/zarr.json").write_text(json.dumps(metadata))
    with pytest.raises(ba.FileError, match="its parts do not belong together"):
        ba.read(store.path)


def test_missing_and_truncated_checksums_are_errors(tmp_path):
    store = write(tmp_path / "table.zarr", 0)
    chunk = store.path / "checksums/c/0/0"
    content = chunk.read_bytes()
    chunk.write_bytes(content[:-1])
    with pytest.raises(ba.FileError, match="its checksums are truncated"):
        ba.read(store.path)
    chunk.write_bytes(content[:-1] + b"\0" if content[-1] else content[:-1] + b"\1")
    with pytest.raises(ba.FileError, match="its parts do not belong together"):
        ba.read(store.path)
    shutil.rmtree(store.path / "checksums")
    with pytest.raises(ba.FileError, match=r"it does not have the checksums of \d+ chunks"):
        ba.read(store.path)


def test_the_id_depends_on_the_content_only(tmp_path):
    ids = [write(tmp_path / f"{name}.zarr", seed)._packed.id for name, seed in (("a", 0), ("b", 0), ("c", 1))]
    assert ids[0] == ids[1] != ids[2]
    assert write_store(tmp_path / "d.zarr", rows(0))._packed.id != ids[0]  # no names
    assert (tmp_path / "a.zarr/checksums/c/0/0").read_bytes() == (tmp_path / "b.zarr/checksums/c/0/0").read_bytes()


# --- replacement


def test_a_store_that_is_replaced_while_it_is_read_is_an_error(tmp_path):
    store = write(tmp_path / "table.zarr", 0)
    assert store.take([0, 399]) == rows(0)[[0, 399]]
    replace(store.path, 1)
    with pytest.raises(ba.FileError, match=REPLACED):
        read_all(store)
    with pytest.raises(ba.FileError, match=REPLACED):
        store.take([399])
    with pytest.raises(ba.FileError, match=REPLACED):
        store.row_names(100, 120)
    assert read_all(ba.Store(store.path)) == rows(1)


def test_a_smaller_store_in_its_place_is_noticed(tmp_path):
    store = write(tmp_path / "table.zarr", 0)
    ba.pack(np.eye(3, N_COLS), store.path)
    with pytest.raises(ba.FileError, match=REPLACED):
        store.take([399])
    shutil.rmtree(store.path)
    with pytest.raises(ba.FileError, match=REPLACED):
        store.take([399])


def test_a_store_with_the_same_rows_in_its_place_can_be_read_on(tmp_path):
    store = write(tmp_path / "table.zarr", 0)
    replace(store.path, 0)
    assert read_all(store) == rows(0)
    assert store.row_names() == names(0)


def test_a_store_that_is_replaced_while_it_is_opened_is_an_error(tmp_path):
    path = write(tmp_path / "table.zarr", 0).path
    reader = ZarrReader(Source(path, "zarr", str(path)))
    metadata = dict(reader.root.attrs)[METADATA_KEY]
    replace(path, 1)
    with pytest.raises(ba.FileError, match=REPLACED):
        PackedStoreReader(reader, metadata)


def test_a_store_of_version_0_1_that_is_replaced_is_noticed(tmp_path):
    path = tmp_path / "table.zarr"
    shutil.copytree(OLD_STORE, path)
    store = ba.Store(path)
    assert store._packed.id is None
    expected = store.take(np.arange(120))
    assert expected == ba.read(OLD_STORE).bits
    os.rename(path, tmp_path / "before.zarr")
    shutil.copytree(OLD_STORE, path)
    with pytest.raises(ba.FileError, match=REPLACED):
        store.take([0])
    with pytest.raises(ba.FileError, match=REPLACED):
        store.row_names(0, 1)
    assert ba.Store(path).take(np.arange(120)) == expected


def test_a_store_that_is_replaced_before_a_worker_opens_it_is_an_error(tmp_path):
    store = write(tmp_path / "table.zarr", 0)
    sent = pickle.dumps(store)
    assert pickle.loads(sent).take([3]) == rows(0)[[3]]
    replace(store.path, 1)
    with pytest.raises(ba.FileError, match=REPLACED):
        pickle.loads(sent)
