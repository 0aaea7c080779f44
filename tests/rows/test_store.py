"""Stores on disk: the same bits as in memory, however they are cut; what is damaged, full, stopped or too small."""

import errno
import os
import pickle
import subprocess
import sys
import textwrap
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import zarr

import bitatoms as ba
from bitatoms.core.model import Model
from bitatoms.io.packed_store import PackedStoreWriter
from bitatoms.io.stream import RowChunk
from bitatoms.parallel import Workers
from bitatoms.rows.code_cache import CodesInFile, CodesInMemory
from bitatoms.rows.memory import MemoryRows, joined
from bitatoms.rows.packing import pack
from bitatoms.rows.passes import PassResult
from bitatoms.rows.store import Store, StoreRows, check_memory
from bitatoms.rows.store_transform import code_store, codes_in_memory, dense_bytes, row_bits
from bitatoms.rows.subsample import learn
from bitatoms.validation import as_generator
from support.sources import assert_same, learned, settings_for
from support.strategies import random_bits

N_ROWS, N_COLS = 3001, 70
PLANTED = ba.datasets.planted(N_ROWS, N_COLS, 7, code_density=0.3, noise=0.02, random_state=3)
BITS = ba.BitMatrix.from_any(PLANTED.X)
TABLE = ba.Table(BITS, [f"row {row}" for row in range(N_ROWS)], [f"c{column}" for column in range(N_COLS)])
SMALL = ba.Table(ba.BitMatrix.from_dense(random_bits(1, 70, 9, 0.3)), [f"r{row}" for row in range(70)], [*"abcdefghi"])


def stored(path, bits=BITS, names=None, columns=None, chunk_bytes=None):
    """A store of these rows."""
    with PackedStoreWriter(path, bits.n_cols, columns, chunk_bytes=chunk_bytes) as store:
        store.append(RowChunk(bits, names))
    return Store(path)


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """The same rows in chunks of two sizes, which are no multiples of 64."""
    folder = tmp_path_factory.mktemp("stores")
    return [stored(folder / f"{size}.zarr", chunk_bytes=size) for size in (9 * 100, 9 * 1333)]


@pytest.fixture(scope="module")
def model():
    """A model of the planted rows."""
    found = learned(MemoryRows(BITS, Workers()), search_rows=300, n_components=7)
    return Model.from_factorization(found)


# What a store is.


def test_a_store_says_what_it_is_without_reading_its_rows(tmp_path):
    store = pack(TABLE, tmp_path / "table.zarr")
    for chunk in (tmp_path / "table.zarr/bits/c").rglob("*"):
        if chunk.is_file():
            chunk.write_bytes(b"spoilt")
    store = Store(store.path)
    assert (store.shape, store.n_rows, store.n_features, len(store)) == ((N_ROWS, N_COLS), N_ROWS, N_COLS, N_ROWS)
    assert store.columns == TABLE.columns
    assert store.has_row_names
    assert store.picture is None
    assert repr(store) == f"Store({str(store.path)!r}, 3001 x 70)"
    assert pickle.loads(pickle.dumps(store)).shape == store.shape


@pytest.mark.parametrize("n_rows", [None, 1, 64, 100, 640, 5000])
@pytest.mark.parametrize("start", [0, 64, 1000, 3000, 3001])
def test_pieces_do_not_depend_on_chunks(stores, n_rows, start):
    size = 5056 if n_rows is None else -(-n_rows // 64) * 64
    for store in stores:
        pieces = list(store.pieces(n_rows, start))
        assert all(len(piece) == size for piece in pieces[:-1])
        assert joined(pieces, N_COLS) == BITS[start:]


@pytest.mark.parametrize("n_cols", [0, 1, 7, 8, 63, 64, 65, 128, 130])
def test_pieces_of_any_width_are_the_rows(tmp_path, n_cols):
    for n_rows in (0, 1, 200):
        bits = ba.BitMatrix.from_dense(random_bits(n_rows, n_rows, n_cols, 0.5))
        store = stored(tmp_path / f"{n_rows}.zarr", bits, chunk_bytes=70)
        assert joined(list(store.pieces(64)), n_cols) == bits
        assert store.take(np.arange(0, n_rows, 3)) == bits[::3] if n_rows else True


def test_rows_are_taken_by_number_and_each_chunk_is_read_once(stores, monkeypatch):
    chosen = np.sort(np.random.default_rng(0).choice(N_ROWS, 150, replace=False))
    for store in stores:
        read, shelf = [], store._packed._shelf

        def noted(array, *slices, take=shelf.read_complete, read=read):
            read.append(slices[0])
            return take(array, *slices)

        with monkeypatch.context() as patched:
            patched.setattr(shelf, "read_complete", noted)
            assert store.take(chosen) == BITS[chosen]
        numbers = [row for rows in read for row in range(rows.start, rows.stop)]
        assert numbers == sorted(set(numbers))
        assert store.take([]) == BITS[:0]
        for wrong in ([5, 3], [[1]]):
            with pytest.raises(ValueError, match="in rising order"):
                store.take(wrong)
        for wrong in (-1, N_ROWS):
            with pytest.raises(IndexError, match=f"row {wrong} is out of range"):
                store.take([wrong])


def test_names_of_rows_are_read_from_where_they_are_asked_for(tmp_path):
    store = stored(tmp_path / "table.zarr", BITS, TABLE.row_names, chunk_bytes=200)
    for start, stop in ((0, None), (0, 0), (5, 5), (7, 2000), (3000, 4000)):
        assert store.row_names(start, stop) == list(TABLE.row_names[start:stop])
    assert stored(tmp_path / "plain.zarr", BITS[:3]).row_names() is None


def test_what_is_no_packed_store_is_refused_with_the_way_out(tmp_path):
    zarr.create_array(tmp_path / "array.zarr", data=BITS.to_dense())
    (tmp_path / "table.csv").write_text("a,b\n0,1\n")
    (tmp_path / "empty").mkdir()
    for name, said in (
        ("array.zarr", "bitatoms.pack("),
        ("table.csv", "bitatoms.pack("),
        ("gone.zarr", "there is no such store"),
        ("empty", "this folder is no Zarr store"),
    ):
        with pytest.raises(ba.FileError, match=name) as caught:
            Store(tmp_path / name)
        assert said in str(caught.value)
    writer = PackedStoreWriter(tmp_path / "half.zarr", N_COLS)
    writer.append(RowChunk(BITS))
    with pytest.raises(ba.FileError, match="incomplete"):
        Store(tmp_path / "half.zarr")


def test_stores_are_told_from_each_other(tmp_path):
    prints = []
    for name, bits in (("a", BITS), ("b", BITS), ("c", BITS ^ ba.BitMatrix.from_dense(np.eye(N_ROWS, N_COLS, 5)))):
        prints.append(stored(tmp_path / f"{name}.zarr", bits, chunk_bytes=500).fingerprint())
    assert prints[0] == prints[1] != prints[2]


# Damage.


@pytest.mark.parametrize("damage", ["gone", "cut short", "empty", "changed", "zeros", "of another", "link", "much"])
def test_a_damaged_chunk_is_named_by_whichever_pass_meets_it(tmp_path, model, damage):
    store = stored(tmp_path / "table.zarr", chunk_bytes=9 * 100)
    chunk, other = tmp_path / "table.zarr/bits/c/20/0", tmp_path / "table.zarr/bits/c/30/0"
    whole = chunk.read_bytes()
    chunk.unlink()
    if damage == "link":
        chunk.symlink_to(other)
    elif damage == "of another":  # whole, but too short: the last chunk of another store
        stored(tmp_path / "less.zarr", BITS[:64], chunk_bytes=9 * 64)
        chunk.write_bytes((tmp_path / "less.zarr/bits/c/0/0").read_bytes())
    elif damage == "much":
        import numcodecs

        chunk.write_bytes(bytes(numcodecs.Zstd().encode(bytes(1 << 28))))
    elif damage != "gone":
        changed = whole[:40] + bytes([whole[40] ^ 4]) + whole[41:]
        chunk.write_bytes(
            {"cut short": whole[:-9], "empty": b"", "changed": changed, "zeros": bytes(len(whole))}[damage]
        )
    rows = StoreRows(store, Workers(2))
    for use in (
        lambda: list(store.pieces()),
        lambda: store.take(np.arange(N_ROWS)),
        lambda: learned(rows, n_components=7, search_rows=300),
        lambda: rows.run_pass(model.pass_spec, None, 1, None, print),
        lambda: codes_in_memory(store, model, Workers(2)),
        lambda: ba.read(store.path),
    ):
        with pytest.raises(ba.FileError, match=r"table\.zarr: .*c/20/0") as caught:
            use()
        assert "\n" not in str(caught.value)
    assert store.take(np.arange(640)) == BITS[:640]  # the others can be had


def test_a_store_whose_end_was_lost_is_refused_when_it_is_opened(tmp_path):
    store = stored(tmp_path / "table.zarr", chunk_bytes=9 * 100)
    (tmp_path / "table.zarr/bits/c/30/0").unlink()
    with pytest.raises(ba.FileError, match="its chunk 'bits/c/30/0' is missing"):
        Store(store.path)


# Learning.


CASES = [
    {"n_components": 6},
    {"n_components": 12, "algebra": "or"},
    {"n_components": 20},
    {},
    {"algebra": "or"},
    {"n_components": 4, "search": "thorough", "search_rows": 100},
    {"search_rows": None, "n_components": 2, "max_iter": 1},
]


@pytest.mark.parametrize("given", CASES, ids=str)
def test_a_store_and_memory_learn_the_same_bits(stores, tmp_path, given):
    given = {"search_rows": 200, **given}
    expected = learned(MemoryRows(BITS, Workers()), **given)
    assert expected.atoms.n_rows
    assert_same(learned(StoreRows(stores[0], Workers(2, 192)), **given), expected)
    assert_same(learned(StoreRows(stores[1], Workers(), scratch=tmp_path), **given), expected)


def least(store, workers=Workers(1), n_searched=200, n_atoms=20):  # noqa: B008
    """The least memory that would do, as the errors tell it."""
    limit = 1
    while True:
        try:
            check_memory(store, workers, limit, n_searched, n_atoms)
            return limit
        except ValueError as error:
            limit = int(str(error).split("at least ")[1].split()[0])


def test_memory_changes_nothing_but_where_codes_are(stores):
    given = {"n_components": 12, "search_rows": 200}
    expected = learn(MemoryRows(BITS, Workers()), settings_for(**given), Workers(), as_generator(0))
    assert isinstance(expected, PassResult)
    for limit, kind in ((None, CodesInMemory), (4 * least(stores[0]), CodesInMemory), (least(stores[0]), CodesInFile)):
        rows = StoreRows(stores[0], Workers(), max_memory=limit)
        taken = learn(rows, settings_for(**given), Workers(), as_generator(0))
        assert_same(taken.result, expected.result)
        assert isinstance(taken.codes, kind)
        if kind is CodesInMemory:  # files are removed when the passes are over
            assert taken.codes.take(0, N_ROWS) == joined(expected.codes, expected.order.atoms.n_rows)
        rows.close()


def test_too_little_memory_is_refused_with_what_would_do(stores):
    with pytest.raises(ValueError, match="max_memory=1000 is too small for 1 atoms in 1 threads"):
        StoreRows(stores[0], Workers(), max_memory=1000)
    enough = least(stores[0])
    with pytest.raises(ValueError, match=f"at least {enough} bytes"):
        check_memory(stores[0], Workers(), enough - 1, 200, 20)
    rows = StoreRows(stores[0], Workers(), max_memory=enough)
    with pytest.raises(ValueError, match=r"a search of 3001 rows .* pass a smaller search_rows"):
        learned(rows, search_rows=None)
    for wrong, kind in ((0, ValueError), (1.5, TypeError), ("much", ValueError), (True, TypeError)):
        with pytest.raises(kind, match="max_memory must be"):
            StoreRows(stores[0], Workers(), max_memory=wrong)


def test_the_paper_search_needs_rows_in_memory(stores):
    with pytest.raises(ValueError, match='search="paper" needs all rows in memory'):
        learned(StoreRows(stores[0], Workers()), search="paper")


# Stopping and going on.


class Stopped(Exception):
    pass


@pytest.fixture(scope="module")
def orders():
    """The first two passes of a search, with their codes and counts."""
    rows = MemoryRows(BITS, Workers())
    seen, sweep = [], rows.sweep
    rows.sweep = lambda order, *more: seen.append((order, *sweep(order, *more))) or seen[-1][1:]
    learned(rows, n_components=12, search_rows=200)
    assert len(seen) >= 2
    return seen[:2]


def assert_counts(one, other):
    for name in one.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


@pytest.mark.parametrize("after", [1, 3])
def test_a_pass_that_was_stopped_goes_on_to_the_same_counts_and_codes(stores, tmp_path, orders, after):
    kept = []

    def keep(partial):
        kept.append(partial)
        if len(kept) == after:
            raise Stopped

    first = StoreRows(stores[0], Workers(2, 448), scratch=tmp_path)
    first.keep_every = 0
    codes, counts = first.run_pass(orders[0][0], None, 1, None, lambda partial: None)
    assert_counts(counts, orders[0][2])
    with pytest.raises(Stopped):
        first.run_pass(orders[1][0], codes, 2, None, keep)
    assert kept[-1].next_row == after * 448
    before = [array.copy() for array in (kept[-1].counts.free, kept[-1].counts.wrong)]
    again = StoreRows(stores[1], Workers(1, 320), scratch=tmp_path)  # another process, cut in another way
    assert again.codes_of(2) is None
    codes, counts = again.run_pass(orders[1][0], again.codes_of(1), 2, kept[-1], keep)
    assert_counts(counts, orders[1][2])
    assert codes.take(0, N_ROWS) == joined(orders[1][1], orders[1][0].atoms.n_rows)
    for array, was in zip((kept[after - 1].counts.free, kept[after - 1].counts.wrong), before, strict=True):
        np.testing.assert_array_equal(array, was)  # what was kept is not added to
    found = StoreRows(stores[0], Workers(), scratch=tmp_path).codes_of(2)
    assert found.take(5, 1000) == codes.take(5, 1000)


def test_a_part_of_a_pass_whose_codes_were_lost_is_begun_anew(stores, tmp_path, orders):
    kept = []
    rows = StoreRows(stores[0], Workers(1, 448), scratch=tmp_path)
    rows.keep_every = 0
    rows.run_pass(orders[0][0], None, 1, None, kept.append)
    file = tmp_path / "codes-1.bin"
    whole = file.read_bytes()
    for content in (whole[:-8], whole[:700], b"", b"other" + whole[5:]):
        file.write_bytes(content)
        assert rows.codes_of(1) is None
        _, counts = rows.run_pass(orders[0][0], None, 1, kept[-1], lambda partial: None)
        assert_counts(counts, orders[0][2])
        assert file.read_bytes() == whole
    file.unlink()
    assert rows.codes_of(1) is None
    rows.run_pass(orders[0][0], None, 1, kept[-1], lambda partial: None)
    assert file.read_bytes() == whole
    assert StoreRows(stores[0], Workers()).codes_of(1) is None


def test_codes_that_nobody_holds_are_removed(stores, tmp_path, orders):
    rows = StoreRows(stores[0], Workers(), scratch=tmp_path)
    (tmp_path / "codes-9.bin").write_bytes(b"of an earlier fit")
    (tmp_path / "state.npz").write_bytes(b"no codes")
    codes = {}
    for number in range(1, 5):
        codes[number], _ = rows.run_pass(orders[0][0], None, number, None, print)
        if number == 3:
            del codes[1], codes[3]  # 2 is the best, as it were
    assert sorted(os.listdir(tmp_path)) == ["codes-2.bin", "codes-3.bin", "codes-4.bin", "state.npz"]
    assert codes[2].take(0, 10) == codes[4].take(0, 10)
    rows.forget({4})
    assert sorted(os.listdir(tmp_path)) == ["codes-4.bin", "state.npz"]


@pytest.mark.parametrize("error", ["KeyboardInterrupt", "OSError"])
def test_nothing_is_left_in_the_temporary_folder(tmp_path, error):
    script = """
        import os, sys, tempfile
        import numpy as np
        import bitatoms as ba
        from bitatoms.core.model import Model
        from bitatoms.parallel import Workers
        from bitatoms.rows.budget import Memory
        from bitatoms.rows.packing import pack
        from bitatoms.rows.store import StoreRows

        tempfile.tempdir = sys.argv[1] + "/scratch"
        Memory.holds_codes = lambda *of: False
        X = np.eye(500, 5)
        store = pack(X, sys.argv[1] + "/x.zarr")
        rows = StoreRows(store, Workers(2, 64))
        order = Model.from_factorization(ba.factorize(X[:50], 2, random_state=0)).order
        codes, _ = rows.run_pass(order, None, 1, None, print)
        print(len(os.listdir(tempfile.tempdir)))
        def failing(file, content):
            raise KeyboardInterrupt if sys.argv[2] == "KeyboardInterrupt" else OSError(28, "No space left on device")
        os.write = failing
        rows.run_pass(order, codes, 2, None, print)
    """
    (tmp_path / "scratch").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path), error],
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == "1", done.stderr
    said = done.stderr.strip().splitlines()[-1]
    assert (
        "KeyboardInterrupt" if error == "KeyboardInterrupt" else "No space left on device; those of two passes take"
    ) in said
    assert not os.listdir(tmp_path / "scratch")


def test_a_full_disk_is_said_and_what_was_kept_can_be_gone_on_from(stores, tmp_path, orders, monkeypatch):
    rows = StoreRows(stores[0], Workers(1, 448), scratch=tmp_path)
    rows.keep_every = 0
    kept, write = [], os.write

    def full(file, content):
        if len(kept) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, content[:100])  # and a system may write less than it was given

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(
        ba.FileError, match=r"No space left on device; those of two passes take .* MiB: make room"
    ) as caught:
        rows.run_pass(orders[0][0], None, 1, None, kept.append)
    assert str(caught.value).startswith(str(tmp_path))
    monkeypatch.undo()
    _, counts = StoreRows(stores[0], Workers(), scratch=tmp_path).run_pass(orders[0][0], None, 1, kept[-1], print)
    assert_counts(counts, orders[0][2])


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits")
def test_files_that_may_not_grow_are_said_and_nothing_is_left(tmp_path):
    script = """
        import os, resource, sys
        import numpy as np
        import bitatoms as ba
        from bitatoms.rows.packing import pack
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            pack(np.random.default_rng(0).random((20_000, 100)) < 0.5, sys.argv[1] + "/x.zarr")
        except ba.FileError as error:
            print(error)
        print(os.listdir(sys.argv[1]))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path)], capture_output=True, text=True, check=True
    )
    said, left = done.stdout.strip().splitlines()
    assert said.startswith(f"{tmp_path}/x.zarr: cannot be written: File too large")
    assert left == "[]"


@pytest.mark.parametrize("algebra", ["xor", "or"])
def test_a_pass_keeps_to_its_memory(tmp_path, monkeypatch, algebra):
    monkeypatch.setattr("bitatoms.io.packed_store._READ_BYTES", 1 << 17)
    bits = ba.BitMatrix.from_words(
        np.random.default_rng(0).integers(0, 1 << 62, (60_000, 16), np.uint64), 1024, check=False
    )
    store = stored(tmp_path / "large.zarr", bits, chunk_bytes=1 << 17)
    given = {"n_components": 5, "objective": "codelength", "max_iter": 1, "algebra": algebra}
    found = learned(MemoryRows(bits[:300], Workers()), **given)
    order = replace(Model.from_factorization(found).order, coder="mend")
    expected = MemoryRows(bits, Workers()).run_pass(order, None, 1, None, print)[1]
    limit = 4 * least(store, Workers(2), 0, 5)
    assert limit < bits.words.nbytes
    del bits
    rows = StoreRows(store, Workers(2), limit, scratch=tmp_path)
    rows.run_pass(order, None, 1, None, print)  # what is imported and compiled is not counted
    tracemalloc.start()
    _, counts = rows.run_pass(order, None, 1, None, print)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert_counts(counts, expected)
    assert peak < limit, (peak, limit)


# What a store is made of, and what is made of it.


def blocks_of(table, size=13):
    """A table in blocks."""
    for start in range(0, len(table), size):
        names = None if table.row_names is None else table.row_names[start : start + size]
        yield ba.Table(table.bits[start : start + size], names, table.columns)


BARE = ba.Table(SMALL.bits)
DENSE = SMALL.to_dense()
SOURCES = {
    "a table": (SMALL, SMALL),
    "its blocks": (blocks_of(SMALL), SMALL),
    "bits": (SMALL.bits, BARE),
    "blocks of bits": ([SMALL.bits[:3], SMALL.bits[3:3], SMALL.bits[3:]], BARE),
    "an array": (DENSE, BARE),
    "an array by columns": (np.asfortranarray(DENSE), BARE),
    "blocks of arrays": ((DENSE[start : start + 9] for start in range(0, 70, 9)), BARE),
    "lists": (DENSE.tolist(), BARE),
    "a sparse matrix": (sp.coo_array(DENSE), BARE),
    "sparse blocks": ([sp.csr_array(DENSE[:40]), sp.csc_array(DENSE[40:])], BARE),
    "a frame": (SMALL.to_pandas(), SMALL),
    "no rows": (DENSE[:0], ba.Table(SMALL.bits[:0])),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_whatever_is_in_memory_is_packed(tmp_path, monkeypatch, kind):
    monkeypatch.setattr("bitatoms.rows.packing.CHUNK_BITS", 9 * 7)
    source, expected = SOURCES[kind]
    store = pack(source, tmp_path / "x.zarr")
    assert ba.read(store.path) == expected
    assert store.about["source"] == type(source).__name__
    assert store.about["format"] == "memory"


@pytest.mark.parametrize(
    "ending", ["csv", "tsv", "npy", "npz", "parquet", "feather", "mtx", "dat", "basket", "h5ad", "zarr"]
)
def test_every_format_is_packed_as_it_is_read(tmp_path, ending):
    path = tmp_path / f"table.{ending}"
    columns = None if ending in ("npy", "mtx", "dat") else SMALL.columns
    ba.write(ba.Table(SMALL.bits, SMALL.row_names if columns and ending != "basket" else None, columns), path)
    read = ba.read(path)
    store = pack(path, tmp_path / "packed.zarr")
    assert ba.read(store.path) == read
    assert {**store.about, "bitatoms": None} == {
        "source": path.name,
        "format": {"dat": "fimi", "basket": "baskets"}.get(ending, ending),
        "options": {},
        "bitatoms": None,
    }
    gone = read.names_of([1, 4])
    if ending not in ("dat", "basket"):
        fewer = pack(path, tmp_path / "packed.zarr", without=gone)
        assert ba.read(fewer.path) == ba.read(path, without=gone)
        assert fewer.n_features == 7
        assert fewer.about["options"] == {"without": list(gone)}


def test_options_are_kept_and_used(tmp_path):
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
    ("source", "options", "said"),
    [
        (DENSE, {"header": True}, "header= is for files"),
        (DENSE, {"format": "csv"}, "format= is for files"),
        (DENSE + 1, {}, "2 at row 0"),
        ([DENSE, DENSE + 1], {}, "the block that begins with row 70: .*2 at row 0"),
        ([DENSE, DENSE[:, :3]], {}, "row 70: .*3 columns where the first block has 9"),
        ([SMALL, BARE], {}, "row 70: .*other names of columns"),
        ([ba.Table(SMALL.bits, SMALL.row_names), BARE], {}, "either all rows of a store have names or none"),
        (iter([]), {}, "there are no blocks"),
        (SMALL, {"without": ["z"]}, "there is no column 'z'"),
    ],
)
def test_what_cannot_be_packed_is_refused_and_leaves_nothing(tmp_path, source, options, said):
    with pytest.raises(ValueError, match=said):
        pack(source, tmp_path / "x.zarr", **options)
    assert not os.listdir(tmp_path)


def test_a_file_that_is_wrong_or_a_stop_in_the_middle_leaves_what_was_there(tmp_path):
    pack(SMALL, tmp_path / "x.zarr")
    (tmp_path / "wrong.csv").write_text("a,b\n0,1\n1,maybe\n")
    with pytest.raises(ba.FileError, match=r"wrong\.csv: .*maybe"):
        pack(tmp_path / "wrong.csv", tmp_path / "x.zarr")
    (tmp_path / "x.npy").write_text("a,b\n0,1\n")
    ba.write(SMALL, tmp_path / "other.parquet")
    with pytest.raises(ba.FileError, match="it looks like 'parquet'"):
        pack(tmp_path / "other.parquet", tmp_path / "x.zarr", format="csv")

    def stopped():
        yield DENSE
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pack(stopped(), tmp_path / "x.zarr")
    assert ba.read(tmp_path / "x.zarr") == SMALL
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".part")]


def test_more_than_fits_into_memory_is_packed_though_it_cannot_be_read(tmp_path, monkeypatch):
    for ending in ("zarr", "parquet", "mtx"):
        ba.write(SMALL, tmp_path / f"table.{ending}")
    zarr.create_array(tmp_path / "array.zarr", data=DENSE, chunks=(20, 9))
    np.save(tmp_path / "rows.npy", DENSE)
    np.savez_compressed(tmp_path / "rows.npz", X=DENSE)
    np.save(tmp_path / "columns.npy", np.asfortranarray(DENSE))
    monkeypatch.setattr("bitatoms.io.stream._physical_memory", lambda: 500)
    for name in ("table.zarr", "table.parquet", "array.zarr", "rows.npy", "rows.npz", "table.mtx", "columns.npy"):
        with pytest.raises(ba.FileError, match="and this machine has"):
            ba.read(tmp_path / name)
        if name not in ("table.mtx", "columns.npy"):
            store = pack(tmp_path / name, tmp_path / "packed.zarr")
            assert store.take(np.arange(70)) == SMALL.bits
        else:  # its cells come in any order, or column by column
            with pytest.raises(ba.FileError, match="and this machine has"):
                pack(tmp_path / name, tmp_path / "packed.zarr")


@pytest.mark.parametrize("chunk_rows", [None, 192])
def test_codes_and_scores_are_those_of_rows_in_memory(tmp_path, stores, model, chunk_rows):
    block = model.code(BITS, Workers())
    codes = block.factors()[1]
    named = stored(tmp_path / "named.zarr", BITS, TABLE.row_names, chunk_bytes=500)
    for store in (*stores, named):
        workers = Workers(2, chunk_rows)
        assert codes_in_memory(store, model, workers) == codes
        expected = -model.row_bits(block.errors(), codes)
        np.testing.assert_array_equal(row_bits(store, model, workers), expected)
        written = code_store(store, model, tmp_path / "codes.zarr", workers)
        assert ba.read(written.path) == ba.Table(codes, TABLE.row_names if store is named else None, model.atom_names)
        assert dense_bytes(store, model) == codes.to_dense().nbytes


def test_codes_are_not_written_over_their_rows_nor_made_of_other_columns(tmp_path, model):
    store = stored(tmp_path / "x.zarr", BITS)
    with pytest.raises(ba.FileError, match="choose another name for their codes"):
        code_store(store, model, tmp_path / "x.zarr", Workers())
    with pytest.raises(ValueError, match="9 columns, but the model was learned from 70"):
        codes_in_memory(pack(SMALL, tmp_path / "small.zarr"), model, Workers())
    assert ba.read(store.path) == ba.Table(BITS)
