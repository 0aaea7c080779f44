"""NumPy files: round trips, arrays of other programs, malformed files."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.columns.table import Table
from bitatoms.io.formats.numpy import VERSION
from bitatoms.io.npz import METADATA_KEY, TABLE_FORMAT, encode_metadata
from support.files import assert_read_error
from support.npz import npy, npy_with_header, npz
from support.strategies import random_bits

# Packed tables


def test_numpy_loads_written_npy_files(tmp_path):
    X = random_bits(3, 9, 70, 0.5)
    with pytest.warns(UserWarning, match=r"array\.npy: .*names.*\.npz") as caught:
        ba.write(Table(BitMatrix.from_dense(X), columns=list(map(str, range(70)))), tmp_path / "array.npy")
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(np.load(tmp_path / "array.npy"), X)
    assert np.load(tmp_path / "array.npy").dtype == np.uint8
    ba.write(np.zeros((1000, 1000), np.uint8), tmp_path / "zeros.npz")
    assert (tmp_path / "zeros.npz").stat().st_size < 5000  # compressed


# Arrays


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    "dtype", ["?", "i1", "u1", "<i2", ">i2", "<u4", ">u4", "<i8", ">i8", "<f2", ">f4", "<f8", ">f8", "g"]
)
def test_reads_arrays_of_any_numeric_type(tmp_path, dtype, order):
    X = random_bits(5, 13, 70, 0.4)
    array = np.array(X.astype(dtype), order=order)
    np.save(tmp_path / "array.npy", array)
    np.savez(tmp_path / "plain.npz", anything=array)
    np.savez_compressed(tmp_path / "small.npz", anything=array, y=np.arange(13))
    for name in ("array.npy", "plain.npz", "small.npz"):
        np.testing.assert_array_equal(ba.read(tmp_path / name).to_dense(), X)


def test_layer_selects_an_array(tmp_path):
    X, Y = random_bits(6, 5, 9, 0.5), random_bits(7, 4, 3, 0.5)
    np.savez(tmp_path / "two.npz", first=X, second=Y, labels=np.arange(5), objects=np.array([None]))
    assert_read_error(tmp_path / "two.npz", "'first', 'second'", "pass layer")
    assert_read_error(tmp_path / "two.npz", "no array 'third'", "'second'", layer="third")
    assert_read_error(tmp_path / "two.npz", "unpickled", layer="objects")
    np.testing.assert_array_equal(ba.read(tmp_path / "two.npz", layer="second").to_dense(), Y)
    np.savez(tmp_path / "X.npz", X=X, Y=Y)
    np.testing.assert_array_equal(ba.read(tmp_path / "X.npz").to_dense(), X)


@pytest.mark.parametrize("n_cols", [2, 8, 9, 64, 100])
def test_reads_rows_packed_by_packbits(tmp_path, n_cols):
    X, clean = random_bits(8, 11, n_cols, 0.5), random_bits(9, 11, n_cols, 0.5)
    packed = {"X": np.packbits(X, axis=1), "clean": np.packbits(clean, axis=1)}
    path = tmp_path / "packed.npz"
    np.savez(path, **packed, shape=X.shape, y=np.arange(11))
    np.testing.assert_array_equal(ba.read(path).to_dense(), X)
    np.testing.assert_array_equal(ba.read(path, layer="clean").to_dense(), clean)
    np.testing.assert_array_equal(ba.read(path, binarize=0).to_dense(), X)


# Malformed files


def claiming(shape, descr="|u1", values=b""):
    """Return the bytes of an .npy file whose header claims a shape and a type."""
    return npy_with_header(str({"descr": descr, "fortran_order": False, "shape": shape}), values)


ARRAY = npy(np.eye(40, dtype=np.uint8))
ARCHIVE = npz(X=np.eye(3))
MALFORMED_NPY = {
    "truncated values": (ARRAY[:-1], "truncated", "1599"),
    "longer than its header claims": (ARRAY + b"\0", "corrupt", "1601"),
    "a truncated header": (ARRAY[:20], "truncated"),
    "text": (b"a,b\n1,0\n", "not a NumPy array"),
    "a malformed header": (npy_with_header("rubbish"), "corrupt"),
    "a header with code": (npy_with_header("__import__('os').system('true')"), "corrupt"),
    "a deeply nested header": (npy_with_header("(" * 3000), "corrupt"),
    "a malformed type": (claiming((2, 2), ()), "corrupt"),
    "a huge claimed shape": (claiming((10**6, 10**6)), "truncated"),
    "a shape beyond 64 bits": (claiming((10**30, 0)), "GiB"),
    "many columns without rows": (claiming((0, 10**15)), "GiB"),
    "a negative shape": (claiming((-2, -2), values=b"1234"), "corrupt"),
    "objects": (npy(np.array([[None]])), "never unpickled"),
    "text in it": (npy(np.array([["a"]])), "text", "0 and 1"),
    "records": (npy(np.zeros((2, 2), "i4,f8")), "several fields"),
    "complex": (npy(np.ones((2, 2), complex)), "complex"),
    "zero dimensions": (npy(np.array(1)), "0 dimensions", "reshape"),
    "one dimension": (npy(np.ones(3)), "1 dimension ", "(3,)", "reshape"),
    "infinite": (npy(np.array([[0, np.inf]])), "inf is neither"),
    "the wrong byte order": (claiming((1, 1), ">i4", b"\1\0\0\0"), "16777216"),
}


@pytest.mark.parametrize("case", MALFORMED_NPY)
def test_malformed_npy_files_are_errors(file, case):
    content, *parts = MALFORMED_NPY[case]
    assert_read_error(file(content, "bad.npy"), *parts)


def archive(*members, method=zipfile.ZIP_STORED):
    """Return an archive of these pairs of names and arrays, compressed by any method."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as made:
        for name, array in members:
            made.writestr(name, npy(array))
    return file.getvalue()


EYE = np.eye(3)
LITTLE = {"X": np.packbits(np.ones((3, 10), np.uint8), axis=1, bitorder="little"), "shape": np.array([3, 10])}
MODEL = encode_metadata({"format": "bitatoms model", "version": 1})


def packed_table(changes=(), **arrays):
    """Return the bytes of a packed table with changed metadata or bits."""
    metadata = {"format": TABLE_FORMAT, "version": VERSION, "n_rows": 2, "n_cols": 3, "rows": None, "columns": None}
    absent = dict.fromkeys(("picture", "row_data", "column_data"))
    metadata = encode_metadata(metadata | absent | dict(changes))
    return npz(**{METADATA_KEY: metadata, "bits": np.array([[1], [6]], np.uint8)} | arrays)


def with_directory_field(content, field, value, size):
    """Return an archive with another value in the directory entry of its first member."""
    place = content.index(b"PK\x01\x02") + field
    return content[:place] + value.to_bytes(size, "little") + content[place + size :]


CLAIM = with_directory_field(ARCHIVE, 24, 2**31, 4)
MALFORMED_NPZ = {
    "truncated at its end": (ARCHIVE[:-30], "not a zip file"),
    "text": (b"a,b\n1,0\n", "corrupt"),
    "without arrays": (npz(), "no arrays"),
    "not an array": (npz(X=b"hello"), "'X'", "not a NumPy array"),
    "a path out of the folder": (npz(**{"../../X": b"hello"}), "not a NumPy array"),
    "duplicate names": (archive(("X", EYE), ("X.npy", EYE)), "two arrays named 'X'"),
    "a truncated array": (npz(X=npy(EYE)[:-8]), "'X'", "truncated"),
    "another compression": (archive(("X.npy", EYE), method=zipfile.ZIP_LZMA), "np.savez"),
    "a huge claimed size": (CLAIM, "claims an impossible size"),
    "huge claimed sizes": (with_directory_field(CLAIM, 20, 2**31, 4), "claims an impossible size"),
    "encrypted": (with_directory_field(ARCHIVE, 8, 1, 2), "corrupt"),
    "a wrong checksum": (with_directory_field(ARCHIVE, 16, 12345, 4), "CRC"),
    "only a 1-D array": (npz(y=np.arange(3)), "1 dimension"),
    "only 1-D arrays": (npz(y=np.arange(3), z=np.arange(3)), "several arrays", "'y', 'z'"),
    "long names": (npz(**{letter * 99: EYE for letter in "abc"}), f", '{'b' * 88}); pass layer"),
    "objects": (npz(X=np.array([[None]])), "never unpickled"),
    "packed in another bit order": (npz(**LITTLE), "packed in another bit order"),
    "a model": (npz(**{METADATA_KEY: MODEL, "atoms": EYE}), "not a table, but a model", "bitatoms show"),
    "a newer table": (packed_table({"version": 99, "bitatoms": "9.9"}), "bitatoms 9.9", "update"),
    "an older table": (packed_table({"version": 2, "bitatoms": "0.2.0"}), "0.2.0, an older", "write the table again"),
    "an unknown format": (packed_table({"format": "bitatoms\nthing"}), "not a table"),
    "deeply nested metadata": (npz(**{METADATA_KEY: np.frombuffer(b"[" * 100000, np.uint8)}), "corrupt"),
    "metadata that is not text": (npz(**{METADATA_KEY: np.arange(300)}), "corrupt"),
    "very long metadata": (npz(**{METADATA_KEY: np.full(1 << 25, ord("["), np.uint8)}), "metadata is corrupt"),
    "no columns": (packed_table({"n_cols": None}), "corrupt"),
    "bits of another shape": (packed_table(bits=np.array([[1]], np.uint8)), "corrupt", "(1, 1)"),
    "bits of another type": (packed_table(bits=np.array([[1], [6]], np.int64)), "corrupt", "int64"),
    "nonzero padding bits": (packed_table(bits=np.array([[1], [15]], np.uint8)), "corrupt", "column 3"),
    "a mask of another shape": (packed_table(unknown=np.zeros((1, 1), np.uint8)), "corrupt", "'unknown'"),
    "a mask of another type": (packed_table(unknown=np.zeros((2, 1))), "corrupt", "'unknown'"),
    "nonzero padding bits of a mask": (packed_table(unknown=np.full((2, 1), 255, np.uint8)), "corrupt", "'unknown'"),
    "a fractional number of rows": (packed_table({"n_rows": 1.5}), "corrupt"),
    "a negative number of rows": (packed_table({"n_rows": -1}), "-1 rows"),
    "a huge table": (packed_table({"n_rows": 10**12, "n_cols": 10**12}), "GiB"),
    "too few names": (packed_table({"columns": ["a"]}), "names", "3 columns"),
    "names that are numbers": (packed_table({"columns": [1, 2, 3]}), "names"),
    "a duplicate name": (packed_table({"columns": ["a", "b", "a"]}), "columns 1 and 3", "'a'", "duplicates="),
    "a picture that does not fit": (packed_table({"picture": [[2, 2], None]}), "an image of 2 x 2"),
}


@pytest.mark.parametrize("case", MALFORMED_NPZ)
def test_malformed_npz_files_are_errors(file, case):
    content, *parts = MALFORMED_NPZ[case]
    assert_read_error(file(content, "bad.npz"), *parts)
