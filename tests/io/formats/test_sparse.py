"""Sparse matrices in .npz files: every format of SciPy, malformed files."""

from __future__ import annotations

import io

import numpy as np
import pytest
import scipy.sparse as sp

import bitatoms as ba
from support.files import assert_read_error
from support.formats import sparse as sparse_matrix
from support.npz import npy, npz
from support.strategies import random_bits

FORMATS = ("csr", "csc", "coo", "bsr", "dia")


def csr(indptr=(0, 1, 2), indices=(0, 1), data=(1, 1), shape=(2, 2), **others):
    """Return the bytes of a CSR matrix in an .npz file, well-formed or not."""
    parts = {"indptr": indptr, "indices": indices, "data": data, "shape": shape, "format": b"csr"} | others
    return npz(
        **{name: part if name == "data" and isinstance(part, bytes) else np.array(part) for name, part in parts.items()}
    )


def sparse_arrays(X, format):
    """Return the arrays that save_npz writes."""
    file = io.BytesIO()
    sp.save_npz(file, sparse_matrix(ba.Table.from_any(X), format))
    return dict(np.load(io.BytesIO(file.getvalue())))


@pytest.mark.parametrize(
    ("index", "value"), [("<i4", "?"), (">i4", "u1"), ("<i8", ">i4"), (">i8", "<f8"), ("<u4", ">f4"), ("<u8", "<f4")]
)
def test_reads_indices_and_values_of_any_type(tmp_path, index, value):
    X = random_bits(10, 20, 70, 0.3)
    for format in FORMATS if value[0] != ">" else ("csr", "csc", "coo"):  # SciPy, which reads others, refuses ">"
        parts = sparse_arrays(X, format)
        for name in ("indices", "indptr", "row", "col", "offsets"):
            if name in parts and not (name == "offsets" and "u" in index):
                parts[name] = parts[name].astype(index)
        parts["data"] = parts["data"].astype(value)
        (tmp_path / "sparse.npz").write_bytes(npz(**parts))
        np.testing.assert_array_equal(ba.read(tmp_path / "sparse.npz").to_dense(), X)


def test_reads_coordinates_in_one_array(file):
    X = random_bits(12, 9, 12, 0.5)
    parts = {"coords": np.array(np.nonzero(X)), "shape": np.array(X.shape), "format": np.array(b"coo")}
    np.testing.assert_array_equal(ba.read(file(npz(data=X[X > 0], **parts), "sparse.npz")).to_dense(), X)


def test_reads_diagonals_in_fortran_order(file):
    data = np.asfortranarray(np.arange(8).reshape(2, 4) % 2)
    parts = {"offsets": np.array([-1, 0]), "shape": np.array([4, 4]), "format": np.array("dia")}
    expected = sp.dia_array((data, [-1, 0]), shape=(4, 4)).toarray()
    np.testing.assert_array_equal(ba.read(file(npz(data=data, **parts), "sparse.npz")).to_dense(), expected)


def matrix(format, **parts):
    """Return the bytes of a 2 x 2 matrix in an .npz file."""
    arrays = {name: np.asarray(part) for name, part in parts.items()}
    return npz(format=np.array(format.encode()), shape=np.array([2, 2]), **arrays)


MALFORMED = {
    "an unknown format": (csr(format=b"lil"), "'lil'", "tocsr"),
    "a shape of three numbers": (csr(shape=(2, 2, 2)), "shape"),
    "a shape of floats": (csr(shape=(2.0, 2.0)), "shape"),
    "a negative shape": (csr(shape=(-2, 2)), "-2 rows"),
    "a huge shape": (csr(shape=(2**31, 2**31)), "corrupt or malicious"),
    "no indices": (matrix("csr", data=[1, 1]), "'indices'"),
    "too few pointers": (csr(indptr=(0, 2)), "'indptr' has 2 values; expected 3"),
    "decreasing pointers": (csr(indptr=(0, 2, 1)), "increase"),
    "pointers beyond the data": (csr(indptr=(0, 1, 100)), "too early"),
    "pointers from 1": (csr(indptr=(1, 1, 2)), "increase"),
    "a column index too large": (csr(indices=(0, 2)), "an entry in column 2, but only 2 columns"),
    "a negative column index": (csr(indices=(0, -1)), "an entry in column -1"),
    "a huge column index": (csr(indices=np.array([0, 2**63 + 5], np.uint64)), "an entry in column"),
    "floats as column indices": (csr(indices=(0.0, 1.0)), "'indices'", "float64"),
    "too few values": (csr(data=(1,)), "too early"),
    "complex values": (csr(data=(1j, 1)), "complex"),
    "objects": (csr(data=npy(np.array([None, 1]))), "never unpickled"),
    "coo: a row index too large": (matrix("coo", row=[2], col=[0], data=[1]), "row 2"),
    "coo: too few row indices": (matrix("coo", row=[1], col=[0, 1], data=[1, 1]), "'row'"),
    "bsr: blocks that do not fit": (csr(format=b"bsr", data=np.ones((2, 3, 1))), "corrupt"),
    "bsr: empty blocks": (csr(format=b"bsr", data=np.ones((2, 0, 1))), "corrupt"),
    "bsr: an index too large": (
        csr(format=b"bsr", indices=(0, 2), data=np.ones((2, 1, 1))),
        "index values must",
    ),
    "dia: too many offsets": (matrix("dia", offsets=[0, 1, 2], data=np.ones((2, 2))), "number of diagonals (2)"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_files_are_errors(file, case):
    content, *parts = MALFORMED[case]
    assert_read_error(file(content, "bad.npz"), *parts)
