"""Packed stores: unknown cells, sparse rows, missing and corrupt chunks, and replaced stores."""

import itertools
import json
import os
import pickle
import shutil

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.bits import stack_rows

zarr = pytest.importorskip("zarr")

from bitatoms.io.store import packed_store  # noqa: E402
from bitatoms.io.store.packed_store import METADATA_KEY, PackedStoreWriter  # noqa: E402
from bitatoms.io.stream import RowChunk  # noqa: E402
from support.sources import write_store  # noqa: E402

REPLACED = r"the store was replaced while it was read; open it again$"
N_ROWS, N_COLS, CHUNK = 400, 30, 50  # 50 rows per chunk
WIDE = 2100  # columns of a sparse table


def rows(seed):
    """Return random rows with unknown cells."""
    values = np.random.default_rng(seed).random((N_ROWS, N_COLS))
    return ba.BitMatrix.from_dense(values < 0.3).with_unknown(ba.BitMatrix.from_dense(values > 0.9))


def sparse_rows(seed, n_rows=N_ROWS, share=0.002):
    """Return random rows of a wide table with few ones."""
    return ba.BitMatrix.from_dense(np.random.default_rng(seed).random((n_rows, WIDE)) < share)


def names(seed):
    return [f"row {row} of {10**seed}" for row in range(N_ROWS)]


def write(path, seed, is_sparse=False):
    return write_store(path, sparse_rows(seed) if is_sparse else rows(seed), names(seed), chunk_bytes=4 * CHUNK)


def replace(path, seed):
    """Replace the store at a path by other rows, as atomic_write does."""
    other = path.with_name("other.zarr")
    write(other, seed)
    os.replace(path, path.with_name(f"before-{seed}.zarr"))
    os.replace(other, path)


def read_all(store):
    return stack_rows(store.chunks(64), store.n_features)


# --- chunks


@pytest.mark.parametrize("array", ["bits", "unknown", "indices", "row_ends", "name_ends", "name_bytes"])
def test_missing_and_corrupt_chunks_are_errors(tmp_path, array):
    is_sparse = array in ("indices", "row_ends")
    store = write(tmp_path / "table.zarr", 0, is_sparse)
    ending = "/0" if array in ("bits", "unknown") else ""
    chunk = store.path / array / f"c/1{ending}"
    content = chunk.read_bytes()
    chunk.write_bytes(bytes([content[0] ^ 4]) + content[1:])
    with pytest.raises(ba.FileError, match=rf"table\.zarr: its array '{array}' is corrupt or truncated in rows"):
        store.row_names() if array.startswith("name") else read_all(store)
    with pytest.raises(ba.FileError, match="is corrupt"):
        ba.read(store.path)
    chunk.unlink()
    with pytest.raises(ba.FileError, match=rf"table\.zarr: its chunk '{array}/c/1{ending}' is missing"):
        ba.read(store.path)


MALICIOUS = {  # what replaces the columns of the ones, or the ends of the rows, and the message
    "reversed columns": (lambda indices, ends: {"indices": indices[::-1].copy()}, "in increasing order"),
    "a column too large": (lambda indices, ends: {"indices": put(indices, WIDE)}, "not columns of"),
    "a negative column": (lambda indices, ends: {"indices": put(indices, -1)}, "not columns of"),
    "equal columns": (lambda indices, ends: {"indices": np.ones_like(indices)}, "in increasing order"),
    "columns of another type": (
        lambda indices, ends: {"indices": indices.astype(np.int64)},
        "no valid array 'indices'",
    ),
    "one column more": (lambda indices, ends: {"indices": np.append(indices, indices[-1:])}, "do not match 'indices'"),
    "reversed ends": (lambda indices, ends: {"row_ends": ends[::-1].copy()}, "do not match 'indices'"),
    "ends too large": (lambda indices, ends: {"row_ends": ends + 1}, "corrupt"),
    "negative ends": (lambda indices, ends: {"row_ends": ends - ends[0] - 1}, "do not match 'indices'"),
    "one long row": (lambda indices, ends: {"row_ends": np.full_like(ends, len(indices))}, "in increasing order"),
    "a row longer than the table": (
        lambda indices, ends: {"indices": np.tile(indices, 2), "row_ends": np.full_like(ends, 2 * len(indices))},
        "do not match 'indices'",
    ),
    "ends of another type": (lambda indices, ends: {"row_ends": ends.astype(float)}, "no valid array 'row_ends'"),
    "no ends": (lambda indices, ends: {"row_ends": ends[:0]}, "does not match its 2100 columns"),
}


def put(indices, column):
    """Return other columns: one of them is this one."""
    return np.where(np.arange(len(indices)) == 70, np.int32(column), indices)


def test_the_id_depends_on_the_content_only(tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        write(tmp_path / f"{name}.zarr", seed)
    write_store(tmp_path / "d.zarr", rows(0))  # no names
    ids = [metadata_of(tmp_path / f"{name}.zarr")["id"] for name in "abcd"]
    assert ids[0] == ids[1]
    assert len(set(ids)) == 3


# --- unknown cells


def contents(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def change_metadata(path, **entries):
    """Change entries of the metadata of a store."""
    metadata = json.loads((path / "zarr.json").read_text())
    metadata["attributes"][METADATA_KEY] |= entries
    (path / "zarr.json").write_text(json.dumps(metadata))


@pytest.mark.parametrize("damage", ["removed", "another type", "id", "unknown", "indices", "row_ends"])
def test_arrays_that_are_lost_are_detected(tmp_path, damage):
    """All of them, or their last chunk, or what states that there are any."""
    path = write(tmp_path / "table.zarr", 0, is_sparse=damage in ("id", "indices", "row_ends")).path
    if damage == "id":
        change_metadata(path, id=None)
    elif damage in ("removed", "another type"):
        shutil.rmtree(path / "unknown")
        if damage == "another type":
            zarr.create_array(path / "unknown", data=np.zeros((N_ROWS, 4), np.int8), chunks=(CHUNK, 4))
    else:
        chunks = [chunk for chunk in (path / damage / "c").rglob("*") if chunk.is_file()]
        max(chunks, key=lambda chunk: [int(part) for part in chunk.relative_to(path / damage / "c").parts]).unlink()
    with pytest.raises(ba.FileError, match=r"copy (the store|it) again"):
        ba.Store(path)


@pytest.mark.parametrize("first", [0, 49, 50, 130, 399])
def test_the_first_unknown_cell_may_come_at_any_row(tmp_path, first):
    """Rows before it may be written already, and rows after it may have no mask."""
    mask = np.zeros((N_ROWS, N_COLS), bool)
    mask[first : first + 150, 3] = True
    bits = rows(0).filled().with_unknown(ba.BitMatrix.from_dense(mask))
    path = tmp_path / "parts.zarr"
    with PackedStoreWriter(path, N_COLS, chunk_bytes=4 * CHUNK) as writer:
        for start, stop in itertools.pairwise((0, 20, 60, 60, 130, 290, 390, N_ROWS)):
            part = bits[start:stop]
            writer.append(RowChunk(part if part.n_unknown else part.filled()))
    assert read_all(ba.Store(path)) == bits
    assert contents(path) == contents(write_store(tmp_path / "at once.zarr", bits, chunk_bytes=4 * CHUNK).path)


def test_bits_in_unknown_cells_are_cleared(tmp_path):
    """A store of another program may have ones there."""
    store = write_store(tmp_path / "table.zarr", rows(0), chunk_bytes=4 * CHUNK)
    zarr.open_group(store.path)["bits"][:] = np.tile(np.array([255, 255, 255, 63], np.uint8), (N_ROWS, 1))
    found = read_all(ba.Store(store.path))
    assert found.unknown == rows(0).unknown
    assert not (found.words & found.unknown.words).any()
    assert found.count() == N_ROWS * N_COLS - found.n_unknown


# --- sparse tables


@pytest.mark.parametrize(
    ("parts", "free_ones", "form"),
    [
        ([0.002, 0.002, 0.2, 0.002], 0, "packed"),
        ([0.002, 0.002, 0.2, 0.002], 10**9, "packed"),
        ([0.2, *[0.002] * 8], 0, "sparse"),
        ([0.2, *[0.002] * 8], 10**9, "sparse"),
        ([0.0, 0.2, *[0.0] * 6], 500, "sparse"),
        ([0.0, None, 0.002], 0, "packed, with unknown cells"),
        ([None, 0.2], 0, "packed, with unknown cells"),
        ([0.0], 0, "sparse"),
    ],
    ids=str,
)
def test_all_rows_decide_whether_a_table_is_sparse(tmp_path, monkeypatch, parts, free_ones, form):
    """Whatever comes first, the store is the one of the complete table. None: with unknown cells."""
    monkeypatch.setattr(packed_store, "_FREE_ONES", free_ones)
    tables = [sparse_rows(seed, 40, share or 0.001) for seed, share in enumerate(parts)]
    tables = [each if parts[k] is not None else each.with_unknown(sparse_rows(9, 40)) for k, each in enumerate(tables)]
    bits, path = stack_rows(tables, WIDE), tmp_path / "parts.zarr"
    with PackedStoreWriter(path, WIDE, chunk_bytes=5000) as writer:
        for table in tables:
            writer.append(RowChunk(table))
    assert metadata_of(path)["form"] == form
    assert read_all(ba.Store(path)) == bits
    assert contents(path) == contents(write_store(tmp_path / "at once.zarr", bits, chunk_bytes=5000).path)


def rewrite(path, **arrays):
    """Replace arrays of a store."""
    group = zarr.open_group(path)
    for name, values in arrays.items():
        del group[name]
        group.create_array(name, data=values, chunks=(500,))


@pytest.mark.parametrize("case", MALICIOUS)
def test_malicious_ones_are_errors(tmp_path, case):
    """A kernel writes at these columns, so none may be out of range."""
    change, message = MALICIOUS[case]
    path = write_store(tmp_path / "table.zarr", sparse_rows(0), chunk_bytes=2000).path
    group = zarr.open_group(path)
    before = np.asarray(group["indices"][:]), np.asarray(group["row_ends"][:])
    rewrite(path, **change(*before))
    for use in (ba.read, lambda path: ba.Store(path).take(np.arange(N_ROWS)), lambda path: read_all(ba.Store(path))):
        with pytest.raises(ba.FileError, match=message) as caught:
            use(path)
        assert "\n" not in str(caught.value)


# --- replacement


def test_a_store_that_is_replaced_while_it_is_read_is_an_error(tmp_path):
    store = write(tmp_path / "table.zarr", 0)
    sent = pickle.dumps(store)
    assert store.take([0, 399]) == pickle.loads(sent).take([0, 399]) == rows(0)[[0, 399]]
    uses = [
        lambda: read_all(store),
        lambda: store.take([399]),
        lambda: store.row_names(100, 120),
        lambda: pickle.loads(sent),
    ]
    for replacement in ("other rows", "fewer rows", "nothing"):
        if replacement == "other rows":
            replace(store.path, 1)
            assert read_all(ba.Store(store.path)) == rows(1)
        elif replacement == "fewer rows":
            ba.pack(np.eye(3, N_COLS), store.path)
        else:
            shutil.rmtree(store.path)
        for use in uses if replacement == "other rows" else uses[1:2]:
            with pytest.raises(ba.FileError, match=REPLACED):
                use()


def metadata_of(path):
    """Return the metadata that bitatoms stores in a store."""
    return dict(zarr.open_group(path, mode="r").attrs)[METADATA_KEY]
