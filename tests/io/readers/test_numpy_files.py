"""NumPy's files and SciPy's: what is written comes back, what others write is read, and what is wrong is said."""

from __future__ import annotations

import io
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.io import coo
from bitatoms.io.npz import METADATA_KEY, encode_metadata, write_npz
from bitatoms.io.readers import numpy, sparse
from bitatoms.table import Picture, Table
from support.files import assert_refused, outcome, tables
from support.strategies import matrices, random_bits

SMALL = settings(max_examples=25, deadline=None)
FORMATS = ("csr", "csc", "coo", "bsr", "dia")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One folder for all that hypothesis tries."""
    return tmp_path_factory.mktemp("arrays")


def npy(array):
    """The bytes of an .npy file."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npy_that_says(header, values=b""):
    """The bytes of an .npy file with any text for a header."""
    text = header.encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + values


def npz(**arrays):
    """The bytes of an .npz file; what is given as bytes is written as it is."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            archive.writestr(f"{name}.npy", array if isinstance(array, bytes) else npy(array))
    return file.getvalue()


def csr(indptr=(0, 1, 2), indices=(0, 1), data=(1, 1), shape=(2, 2), **others):
    """The bytes of a sparse matrix in an .npz file, or of something like it."""
    parts = {"indptr": indptr, "indices": indices, "data": data, "shape": shape, "format": b"csr"} | others
    return npz(
        **{
            name: part if isinstance(part, bytes) and name != "format" else np.array(part)
            for name, part in parts.items()
        }
    )


def sparse_arrays(X, format):
    """A sparse matrix as save_npz would write it, as arrays to tamper with."""
    file = io.BytesIO()
    sp.save_npz(file, as_format(X, format))
    return dict(np.load(io.BytesIO(file.getvalue())))


def as_format(X, format):
    """A matrix in one of SciPy's formats."""
    if format == "bsr":
        tall = 3 if len(X) % 3 == 0 else 1
        return sp.bsr_array(X, blocksize=(tall, 2 if X.shape[1] % 2 == 0 else 1))
    if format == "dia":
        rows, columns = X.shape
        offsets = np.arange(-rows + 1, columns)
        data = np.zeros((len(offsets), columns), X.dtype)
        for row, column in zip(*np.nonzero(X), strict=True):
            data[column - row + rows - 1, column] = X[row, column]
        return sp.dia_array((data, offsets), shape=X.shape)
    return sp.coo_array(X).asformat(format)


# Our own


@SMALL
@given(tables())
def test_a_table_comes_back_from_npz_as_it_was(folder, table):
    ba.write(table, folder / "table.npz")
    assert ba.read(folder / "table.npz") == table


def test_a_picture_and_names_of_any_characters_come_back(tmp_path):
    bits = BitMatrix.from_dense(random_bits(0, 6, 12, 0.5))
    table = Table(
        bits, row_names=list("äöü\n\0x"), columns=[f"\ud800{k}" for k in range(12)], picture=Picture((3, 4), (5, 12))
    )
    ba.write(table, tmp_path / "table.npz")
    assert ba.read(tmp_path / "table.npz") == table


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0), (1, 1), (70, 130)])
@pytest.mark.parametrize("ending", ["npy", "npz"])
def test_tables_of_any_shape_come_back(tmp_path, shape, ending):
    table = Table(BitMatrix.from_dense(random_bits(1, *shape, 0.5)))
    ba.write(table, tmp_path / f"table.{ending}")
    assert ba.read(tmp_path / f"table.{ending}") == table


@pytest.mark.parametrize("ending", ["npy", "npz"])
def test_the_same_table_gives_the_same_bytes(tmp_path, ending):
    table = Table(BitMatrix.from_dense(random_bits(2, 100, 77, 0.3)))
    for name in "ab":
        ba.write(table, tmp_path / f"{name}.{ending}")
    assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()


def test_a_table_takes_less_room_than_its_bits(tmp_path):
    ba.write(np.zeros((1000, 1000), np.uint8), tmp_path / "zeros.npz")
    assert (tmp_path / "zeros.npz").stat().st_size < 5000


def test_npy_holds_the_zeros_and_ones_for_others_to_load(tmp_path):
    X = random_bits(3, 9, 70, 0.5)
    ba.write(X, tmp_path / "array.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "array.npy"), X)
    assert np.load(tmp_path / "array.npy").dtype == np.uint8


def test_npy_says_that_it_does_not_keep_names(tmp_path):
    table = Table(BitMatrix.from_dense([[1, 0]]), columns=["a", "b"])
    with pytest.warns(UserWarning, match=r"array\.npy: .*names.*\.npz") as caught:
        ba.write(table, tmp_path / "array.npy")
    assert caught[0].filename == __file__
    assert ba.read(tmp_path / "array.npy").columns is None


def test_rows_come_in_blocks(tmp_path, monkeypatch):
    table = Table(BitMatrix.from_dense(random_bits(4, 50, 20, 0.5)), row_names=[f"r{k}" for k in range(50)])
    monkeypatch.setattr(numpy, "CHUNK_BITS", 8 * 3 * 7)  # seven rows of three bytes
    ba.write(table, tmp_path / "table.npz")
    assert ba.read(tmp_path / "table.npz") == table


# Arrays of others


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    "dtype", ["?", "i1", "u1", "<i2", ">i2", "<u4", ">u4", "<i8", ">i8", "<f2", ">f4", "<f8", ">f8", "g"]
)
def test_arrays_of_any_numbers_are_read(tmp_path, dtype, order):
    X = random_bits(5, 13, 70, 0.4)
    array = np.array(X.astype(dtype), order=order)
    np.save(tmp_path / "array.npy", array)
    np.savez(tmp_path / "plain.npz", anything=array)
    np.savez_compressed(tmp_path / "small.npz", anything=array, y=np.arange(13))
    for name in ("array.npy", "plain.npz", "small.npz"):
        np.testing.assert_array_equal(ba.read(tmp_path / name).to_dense(), X)


@SMALL
@given(matrices(), st.sampled_from("CF"), st.sampled_from((1, 8, 520, 4000)))
def test_arrays_are_read_in_pieces_of_any_size(folder, X, order, at_a_time):
    np.save(folder / "array.npy", np.array(X.astype(np.float64), order=order))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numpy, "CHUNK_BITS", at_a_time)
        np.testing.assert_array_equal(ba.read(folder / "array.npy").to_dense(), X)


def test_binarize_takes_what_is_above_it(tmp_path):
    X = np.array([[0.2, 3.0], [-1.0, 0.5]])
    np.save(tmp_path / "array.npy", X)
    np.testing.assert_array_equal(ba.read(tmp_path / "array.npy", binarize=0.3).to_dense(), X > 0.3)


def test_missing_values_are_counted_and_can_be_zeros(tmp_path):
    X = np.array([[0, 1, np.nan], [np.nan, 1, 0], [1, 1, 1]])
    for order in "CF":
        np.save(tmp_path / "array.npy", np.array(X, order=order))
        assert_refused(tmp_path / "array.npy", "2 values are missing", "row", 'missing="zero"')
        np.testing.assert_array_equal(ba.read(tmp_path / "array.npy", missing="zero").to_dense(), np.nan_to_num(X))


def test_the_array_is_chosen_by_name(tmp_path):
    X, Y = random_bits(6, 5, 9, 0.5), random_bits(7, 4, 3, 0.5)
    np.savez(tmp_path / "two.npz", first=X, second=Y, labels=np.arange(5), objects=np.array([None]))
    assert_refused(tmp_path / "two.npz", "'first', 'second'", "pass layer")
    assert_refused(tmp_path / "two.npz", "no array 'third'", "'second'", layer="third")
    assert_refused(tmp_path / "two.npz", "unpickled", layer="objects")
    np.testing.assert_array_equal(ba.read(tmp_path / "two.npz", layer="second").to_dense(), Y)
    np.savez(tmp_path / "X.npz", X=X, Y=Y)
    np.testing.assert_array_equal(ba.read(tmp_path / "X.npz").to_dense(), X)


@pytest.mark.parametrize("n_cols", [2, 8, 9, 64, 100])
def test_rows_that_packbits_packed_are_unpacked(tmp_path, n_cols):
    X, clean = random_bits(8, 11, n_cols, 0.5), random_bits(9, 11, n_cols, 0.5)
    packed = {"X": np.packbits(X, axis=1), "clean": np.packbits(clean, axis=1)}
    np.savez(tmp_path / "packed.npz", **packed, shape=X.shape, y=np.arange(11))
    np.testing.assert_array_equal(ba.read(tmp_path / "packed.npz").to_dense(), X)
    np.testing.assert_array_equal(ba.read(tmp_path / "packed.npz", layer="clean").to_dense(), clean)
    np.testing.assert_array_equal(ba.read(tmp_path / "packed.npz", binarize=0).to_dense(), X)


def test_rows_packed_in_the_other_order_are_noticed(tmp_path):
    X = np.ones((3, 10), np.uint8)
    np.savez(tmp_path / "packed.npz", X=np.packbits(X, axis=1, bitorder="little"), shape=X.shape)
    assert_refused(tmp_path / "packed.npz", "packed in another bit order")


def test_a_model_is_not_data(tmp_path):
    about = {"format": "bitatoms model", "version": 1}
    write_npz(tmp_path / "model.npz", {METADATA_KEY: encode_metadata(about), "atoms": np.zeros((2, 2), np.uint8)})
    assert_refused(tmp_path / "model.npz", "not a table, but a model", "bitatoms show")


# Sparse matrices


@pytest.mark.parametrize("format", FORMATS)
@SMALL
@given(
    X=matrices(n_rows=st.sampled_from((1, 3, 6, 65)), n_cols=st.sampled_from((1, 2, 63, 64, 130))),
    at_a_time=st.sampled_from((1, 5, 1000)),
)
def test_sparse_matrices_are_read_in_any_format(folder, format, X, at_a_time):
    sp.save_npz(folder / "sparse.npz", as_format(X, format))
    with pytest.MonkeyPatch.context() as patch:
        for module in (sparse, coo):
            patch.setattr(module, "CHUNK_ENTRIES", at_a_time if X.size < 500 else 1000)
        np.testing.assert_array_equal(ba.read(folder / "sparse.npz").to_dense(), X)


@pytest.mark.parametrize("index", ["<i4", ">i4", "<i8", ">i8", "<u4", "<u8"])
@pytest.mark.parametrize("value", ["?", "u1", ">i4", "<f8", ">f4"])
def test_indices_and_values_may_be_of_any_kind(tmp_path, index, value):
    X = random_bits(10, 20, 70, 0.3)
    for format in FORMATS:
        parts = sparse_arrays(X, format)
        for name in ("indices", "indptr", "row", "col", "offsets"):
            if name in parts and not (name == "offsets" and "u" in index):
                parts[name] = parts[name].astype(index)
        parts["data"] = parts["data"].astype(value)
        (tmp_path / "sparse.npz").write_bytes(npz(**parts))
        np.testing.assert_array_equal(ba.read(tmp_path / "sparse.npz").to_dense(), X)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("binarize", [-1.5, -0.5, 0, 0.5, 2])
def test_binarize_means_the_same_for_sparse_and_dense(tmp_path, format, binarize):
    rng = np.random.default_rng(11)
    X = rng.integers(-3, 4, (12, 70)) * (rng.random((12, 70)) < 0.5)
    sp.save_npz(tmp_path / "sparse.npz", as_format(X, format))
    np.testing.assert_array_equal(ba.read(tmp_path / "sparse.npz", binarize=binarize).to_dense(), X > binarize)


def test_zeros_that_are_stored_are_zeros(tmp_path):
    (tmp_path / "sparse.npz").write_bytes(csr(data=(0, 1), indices=(1, 0)))
    np.testing.assert_array_equal(ba.read(tmp_path / "sparse.npz").to_dense(), [[0, 0], [1, 0]])


def test_coordinates_in_one_array_are_read(tmp_path):
    X = random_bits(12, 9, 12, 0.5)
    (tmp_path / "sparse.npz").write_bytes(
        npz(coords=np.array(np.nonzero(X)), data=X[X > 0], shape=np.array(X.shape), format=np.array(b"coo"))
    )
    np.testing.assert_array_equal(ba.read(tmp_path / "sparse.npz").to_dense(), X)


def test_diagonals_stored_by_columns_and_beyond_the_corners_are_read(tmp_path):
    data = np.asfortranarray(np.arange(12).reshape(3, 4) % 2)
    diagonals = {
        "data": data,
        "offsets": np.array([-1, 0, 2**62]),
        "shape": np.array([4, 4]),
        "format": np.array("dia"),
    }
    (tmp_path / "sparse.npz").write_bytes(npz(**diagonals))
    expected = sp.dia_array((data[:2], [-1, 0]), shape=(4, 4)).toarray()
    np.testing.assert_array_equal(ba.read(tmp_path / "sparse.npz").to_dense(), expected)


def test_cells_given_twice_are_summed_as_in_scipy(tmp_path):
    path = tmp_path / "sparse.npz"
    twice = {"indptr": (0, 3, 3), "indices": (1, 0, 1)}
    path.write_bytes(csr(**twice, data=(1, 1, 1)))
    assert_refused(path, "row 0, column 1", "has two entries", "2 is neither 0 nor 1", "binarize=0")
    np.testing.assert_array_equal(ba.read(path, binarize=0).to_dense(), [[1, 1], [0, 0]])
    assert_refused(path, "row 0, column 1", "sum", binarize=1.5)
    path.write_bytes(csr(**twice, data=(1, 1, -1)))
    assert_refused(path, "row 0, column 1", "sum", binarize=0)
    path.write_bytes(csr(**twice, data=(0, 1, 1)))
    np.testing.assert_array_equal(ba.read(path).to_dense(), [[1, 1], [0, 0]])
    path.write_bytes(csr(**twice, data=(True, True, True)))
    np.testing.assert_array_equal(ba.read(path).to_dense(), [[1, 1], [0, 0]])


def test_a_cell_given_again_much_later_is_noticed(tmp_path, monkeypatch):
    for module in (sparse, coo):
        monkeypatch.setattr(module, "CHUNK_ENTRIES", 2)
    (tmp_path / "sparse.npz").write_bytes(csr(indptr=(0, 3, 3), indices=(1, 0, 1), data=(1, 1, 1)))
    assert_refused(tmp_path / "sparse.npz", "row 0, column 1", "has two entries")


def test_missing_values_of_sparse_matrices_are_counted(tmp_path):
    (tmp_path / "sparse.npz").write_bytes(csr(data=(1.0, np.nan)))
    assert_refused(tmp_path / "sparse.npz", "1 value is missing, at row 1, column 1 (counted from 0)")
    np.testing.assert_array_equal(ba.read(tmp_path / "sparse.npz", missing="zero").to_dense(), [[1, 0], [0, 0]])


@pytest.mark.parametrize("name", ["C.npy", "F.npy", "csr.npz", "csc.npz", "coo.npz"])
def test_memory_stays_near_that_of_the_packed_table(tmp_path, monkeypatch, name):
    X = random_bits(15, 1000, 3000, 0.5)
    kind, _, ending = name.partition(".")
    if ending == "npy":
        np.save(tmp_path / name, np.array(X.astype(np.float64), order=kind))  # 24 MB
    else:
        sp.save_npz(tmp_path / name, as_format(X, kind), compressed=False)
    monkeypatch.setattr(numpy, "CHUNK_BITS", 1 << 16)
    for module in (sparse, coo):
        monkeypatch.setattr(module, "CHUNK_ENTRIES", 1 << 13)
    ba.read(tmp_path / name)  # once for the kernels
    tracemalloc.start()
    try:
        table = ba.read(tmp_path / name)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert table.bits.words.nbytes < peak < 2.2 * table.bits.words.nbytes + (3 << 20)  # some megabytes are for reading
    np.testing.assert_array_equal(table.to_dense(), X)


# What is wrong

ARRAY = npy(np.eye(40, dtype=np.uint8))
BAD_ARRAYS = {
    "empty": (b"", "empty"),
    "cut in its values": (ARRAY[:-1], "truncated", "1599"),
    "longer than it says": (ARRAY + b"\0", "corrupt", "1601"),
    "cut in its header": (ARRAY[:20], "truncated"),
    "cut in its first bytes": (ARRAY[:3], "truncated"),
    "text": (b"a,b\n1,0\n", "not a NumPy array"),
    "another format": (npz(X=np.eye(2)), "looks like 'npz'", 'format="npz"'),
    "no header": (npy_that_says("rubbish"), "corrupt"),
    "a header with code": (npy_that_says("__import__('os').system('true')"), "corrupt"),
    "a deep header": (npy_that_says("(" * 3000), "corrupt"),
    "a strange type": (npy_that_says("{'descr': (), 'fortran_order': False, 'shape': (2, 2)}"), "corrupt"),
    "a bomb": (npy_that_says("{'descr': '|u1', 'fortran_order': False, 'shape': (1000000, 1000000)}"), "truncated"),
    "more than there are numbers for": (
        npy_that_says(f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({10**30}, 0)}}"),
        "GiB",
    ),
    "no columns, many rows": (
        npy_that_says(f"{{'descr': '|u1', 'fortran_order': False, 'shape': (0, {10**15})}}"),
        "GiB",
    ),
    "less than nothing": (
        npy_that_says("{'descr': '|u1', 'fortran_order': False, 'shape': (-2, -2)}", b"1234"),
        "corrupt",
    ),
    "objects": (npy(np.array([[None]])), "never unpickled"),
    "text in it": (npy(np.array([["a"]])), "text", "0 and 1"),
    "bytes in it": (npy(np.array([[b"a"]])), "text"),
    "records": (npy(np.zeros((2, 2), "i4,f8")), "several fields"),
    "dates": (npy(np.zeros((2, 2), "M8[s]")), "datetime64"),
    "complex": (npy(np.ones((2, 2), complex)), "complex"),
    "one value": (npy(np.array(1)), "0 dimensions", "reshape"),
    "a list": (npy(np.ones(3)), "1 dimension ", "(3,)", "reshape"),
    "a cube": (npy(np.ones((2, 3, 4))), "3 dimensions"),
    "a two": (
        npy(np.array([[0, 1], [1, 2]])),
        "row 1, column 1 (counted from 0)",
        "2 is neither 0 nor 1",
        "binarize=0",
    ),
    "a two by columns": (npy(np.array([[0, 1, 1], [1, 1, 2]], order="F")), "row 1, column 2 (counted from 0)"),
    "less than zero": (npy(np.array([[0, -1]])), "-1 is neither"),
    "infinite": (npy(np.array([[0, np.inf]])), "inf is neither"),
    "of the wrong byte order": (
        npy_that_says("{'descr': '>i4', 'fortran_order': False, 'shape': (1, 1)}", b"\1\0\0\0"),
        "16777216",
    ),
}


@pytest.mark.parametrize("trouble", BAD_ARRAYS)
def test_bad_npy_files_are_refused_in_one_line(tmp_path, trouble):
    content, *parts = BAD_ARRAYS[trouble]
    (tmp_path / "bad.npy").write_bytes(content)
    assert_refused(tmp_path / "bad.npy", *parts)


def ours(about=(), bits=None):
    """The bytes of a packed table, or of something like it."""
    said = {
        "format": numpy.TABLE_FORMAT,
        "version": 1,
        "n_rows": 2,
        "n_cols": 3,
        "rows": None,
        "columns": None,
        "picture": None,
    }
    return npz(
        **{
            METADATA_KEY: encode_metadata(said | dict(about)),
            "bits": np.array([[1], [6]], np.uint8) if bits is None else bits,
        }
    )


def forged(content, field, value, size):
    """An archive whose directory says something else of its first member."""
    place = content.index(b"PK\x01\x02") + field
    return content[:place] + value.to_bytes(size, "little") + content[place + size :]


def compressed(method):
    """An archive that is compressed in another way than NumPy does it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("X.npy", npy(np.zeros((10, 10))))
    return file.getvalue()


def with_two_of_a_name():
    """An archive with an array of the name X, and another."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("X", npy(np.eye(2)))
        archive.writestr("X.npy", npy(np.eye(3)))
    return file.getvalue()


SPARSE = csr()
HUGE = (2**31, 2**31)
BAD_ARCHIVES = {
    "empty": (b"", "empty"),
    "cut at its end": (SPARSE[:-30], "not a zip file"),
    "half of it": (SPARSE[: len(SPARSE) // 2], "corrupt"),
    "text": (b"a,b\n1,0\n", "corrupt"),
    "another format": (ARRAY, "looks like 'npy'"),
    "without arrays": (npz(), "no arrays"),
    "not an array": (npz(X=b"hello"), "'X'", "not a NumPy array"),
    "a way out of the folder": (npz(**{"../../X": b"hello"}), "not a NumPy array"),
    "two arrays of a name": (with_two_of_a_name(), "two arrays named 'X'"),
    "an array truncated": (npz(X=npy(np.eye(3))[:-8]), "'X'", "truncated"),
    "compressed in another way": (compressed(zipfile.ZIP_LZMA), "np.savez"),
    "says it is huge": (forged(npz(X=np.eye(3)), 24, 2**31, 4), "larger than it can be"),
    "says it is huge, also compressed": (
        forged(forged(npz(X=np.eye(3)), 24, 2**31, 4), 20, 2**31, 4),
        "larger than it can be",
    ),
    "encrypted": (forged(npz(X=np.eye(3)), 8, 1, 2), "corrupt"),
    "another sum": (forged(npz(X=np.eye(3)), 16, 12345, 4), "CRC"),
    "only a list": (npz(y=np.arange(3)), "1 dimension"),
    "only lists": (npz(y=np.arange(3), z=np.arange(3)), "several arrays", "'y', 'z'"),
    "objects": (npz(X=np.array([[None]])), "never unpickled"),
    "a newer table": (ours({"version": 99, "bitatoms": "9.9"}), "bitatoms 9.9", "update"),
    "a kind of tomorrow": (ours({"format": "bitatoms\nthing"}), "not a table"),
    "a table without a version": (ours({"version": None}), "corrupt"),
    "a table that says nothing": (npz(**{METADATA_KEY: np.frombuffer(b"[" * 100000, np.uint8)}), "corrupt"),
    "a table that says a list": (npz(**{METADATA_KEY: np.frombuffer(b"[1]", np.uint8)}), "corrupt"),
    "a table that says numbers": (npz(**{METADATA_KEY: np.arange(300)}), "corrupt"),
    "a long story": (npz(**{METADATA_KEY: np.full(1 << 25, ord("["), np.uint8)}), "larger than it can be"),
    "a table without bits": (
        npz(**{METADATA_KEY: encode_metadata({"format": numpy.TABLE_FORMAT, "version": 1, "n_rows": 1})}),
        "corrupt",
    ),
    "a table with other bits": (ours(bits=np.array([[1]], np.uint8)), "corrupt", "(1, 1)"),
    "a table with wide bits": (ours(bits=np.array([[1], [6]], np.int64)), "corrupt", "int64"),
    "a table with stray bits": (ours(bits=np.array([[1], [15]], np.uint8)), "corrupt", "column 3"),
    "a table of a part of a row": (ours({"n_rows": 1.5}), "corrupt"),
    "a table of less than no rows": (ours({"n_rows": -1}), "-1 rows"),
    "a huge table": (ours({"n_rows": 10**12, "n_cols": 10**12}), "GiB"),
    "a table with too few names": (ours({"columns": ["a"]}), "names", "3 columns"),
    "a table with names that are none": (ours({"columns": [1, 2, 3]}), "names"),
    "a table with a name twice": (ours({"columns": ["a", "b", "a"]}), "columns 1 and 3", "'a'", "duplicates="),
    "a table with another picture": (ours({"picture": [[2, 2], None]}), "an image of 2 x 2"),
    "a table with no picture": (ours({"picture": "yes"}), "corrupt"),
    "sparse of a strange format": (csr(format=b"lil"), "'lil'", "tocsr"),
    "sparse of a huge format": (csr(format=b"lil" * 99), "tocsr"),
    "sparse of no format": (csr(format=3), "tocsr"),
    "sparse without a shape": (csr(shape=(2, 2, 2)), "shape"),
    "sparse with a broken shape": (csr(shape=(2.0, 2.0)), "shape"),
    "sparse with less than nothing": (csr(shape=(-2, 2)), "-2 rows"),
    "sparse and huge": (csr(shape=HUGE), "GiB"),
    "sparse without columns": (npz(format=np.array(b"csr"), shape=np.array([2, 2]), data=np.ones(2)), "'indices'"),
    "sparse with too few pointers": (csr(indptr=(0, 2)), "'indptr' has 2 values; expected 3"),
    "sparse with falling pointers": (csr(indptr=(0, 2, 1)), "increase"),
    "sparse with pointers into the air": (csr(indptr=(0, 1, 100)), "too early"),
    "sparse with wild pointers": (csr(indptr=(0, 2**62, 2**62)), "too early"),
    "sparse with pointers from 1": (csr(indptr=(1, 1, 2)), "increase"),
    "sparse with pointers below 0": (csr(indptr=(0, -1, 2)), "increase"),
    "sparse with a column beyond": (csr(indices=(0, 2)), "an entry in column 2, but only 2 columns"),
    "sparse with a column before": (csr(indices=(0, -1)), "an entry in column -1"),
    "sparse with a wild column": (csr(indices=np.array([0, 2**63 + 5], np.uint64)), "an entry in column"),
    "sparse with broken columns": (csr(indices=(0.0, 1.0)), "'indices'", "float64"),
    "sparse with too few values": (csr(data=(1,)), "too early"),
    "sparse with complex values": (csr(data=(1j, 1)), "complex"),
    "sparse with objects": (csr(data=npy(np.array([None, 1]))), "never unpickled"),
    "sparse with a two": (csr(data=(1, 2)), "row 1, column 1", "binarize=0"),
    "coo with a row beyond": (
        npz(format=np.array(b"coo"), shape=np.array([2, 2]), row=np.array([2]), col=np.array([0]), data=np.ones(1)),
        "row 2",
    ),
    "coo with too few rows": (
        npz(format=np.array(b"coo"), shape=np.array([2, 2]), row=np.array([1]), col=np.array([0, 1]), data=np.ones(2)),
        "'row'",
    ),
    "bsr with odd blocks": (csr(format=b"bsr", data=np.ones((2, 3, 1))), "blocks of shape (3, 1)"),
    "bsr with empty blocks": (csr(format=b"bsr", data=np.ones((2, 0, 1))), "blocks of shape (0, 1)"),
    "bsr with blocks beyond": (csr(format=b"bsr", indices=(0, 2), data=np.ones((2, 1, 1))), "values outside 0 to 1"),
    "dia with other places": (
        npz(format=np.array(b"dia"), shape=np.array([2, 2]), offsets=np.arange(3), data=np.ones((2, 2))),
        "2 diagonals",
    ),
}


@pytest.mark.parametrize("trouble", BAD_ARCHIVES)
def test_bad_npz_files_are_refused_in_one_line(tmp_path, trouble):
    content, *parts = BAD_ARCHIVES[trouble]
    (tmp_path / "bad.npz").write_bytes(content)
    assert_refused(tmp_path / "bad.npz", *parts)


@pytest.mark.parametrize("name", ["table.npy", "table.npz", "sparse.npz"])
def test_a_file_cut_anywhere_is_refused(tmp_path, name):
    if name == "sparse.npz":
        sp.save_npz(tmp_path / name, sp.csr_array(np.eye(9)))
    else:
        ba.write(np.eye(9), tmp_path / name)
    content = (tmp_path / name).read_bytes()
    for length in range(0, len(content), max(1, len(content) // 60)):
        (tmp_path / name).write_bytes(content[:length])
        assert_refused(tmp_path / name)


@SMALL
@given(st.sampled_from(("array.npy", "ours.npz", *FORMATS)), st.data())
def test_bytes_that_changed_give_a_table_or_one_line(folder, kind, data):
    X = random_bits(13, 6, 10, 0.5)
    name = kind if "." in kind else "sparse.npz"
    if name == "sparse.npz":
        content = npz(**sparse_arrays(X, kind))
    else:
        ba.write(X, folder / name)
        content = (folder / name).read_bytes()
    changed = bytearray(content)
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4)):
        changed[place] = data.draw(st.integers(0, 255))
    (folder / name).write_bytes(changed)
    outcome(ba.read, folder / name)


@SMALL
@given(st.sampled_from(FORMATS), st.data())
def test_arrays_that_changed_give_a_table_or_one_line(folder, format, data):
    parts = sparse_arrays(random_bits(14, 6, 10, 0.5), format)
    name = data.draw(st.sampled_from(sorted(parts)))
    array = parts[name]
    strange = st.one_of(st.integers(-3, 30), st.sampled_from((2**31, 2**62, -(2**62))))
    if name == "shape":
        strange = st.integers(-3, 200)
    match data.draw(st.sampled_from(("values", "type", "shorter", "shape", "gone"))):
        case "values" if array.dtype.kind in "iu":
            array = array.astype(np.int64)
            for place in data.draw(st.lists(st.integers(0, array.size - 1), max_size=5)):
                array.flat[place] = data.draw(strange)
        case "type":
            array = (
                array.astype(data.draw(st.sampled_from(("?", "u1", ">i8", "f8", "S3", "U3"))))
                if name != "format"
                else np.array(3)
            )
        case "shorter" if array.ndim:
            array = array[: data.draw(st.integers(0, len(array)))]
        case "shape":
            array = array[np.newaxis]
        case "gone":
            array = None
    parts[name] = array
    (folder / "sparse.npz").write_bytes(npz(**{name: array for name, array in parts.items() if array is not None}))
    outcome(ba.read, folder / "sparse.npz")
    outcome(lambda path: ba.read(path, binarize=0), folder / "sparse.npz")
