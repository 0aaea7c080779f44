"""Matrix Market files: round trips, exchange with SciPy, malformed files."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.columns.table import Table
from support.files import assert_read_error
from support.strategies import matrices, random_bits

SMALL = settings(max_examples=25, deadline=None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return one folder for all examples of hypothesis."""
    return tmp_path_factory.mktemp("matrix_market")


def mtx_text(size, *entries, kind="coordinate pattern general"):
    """Return the text of a Matrix Market file."""
    return "\n".join((f"%%MatrixMarket matrix {kind}", size, *entries, ""))


def test_written_files_have_the_form_that_scipy_expects(tmp_path):
    X = random_bits(0, 30, 300, 0.2)
    table = Table(
        BitMatrix.from_dense(X), [f"Zeile {k} ä" for k in range(30)], [f"column number {k}" for k in range(300)]
    )
    ba.write(table, tmp_path / "table.mtx")
    assert scipy.io.mminfo(tmp_path / "table.mtx") == (30, 300, X.sum(), "coordinate", "pattern", "general")
    text = (tmp_path / "table.mtx").read_bytes()
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 1024  # the limit of the format


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
@pytest.mark.parametrize("field", ["pattern", "integer", "real"])
@SMALL
@given(X=matrices(n_rows=st.sampled_from((1, 2, 9, 65)), n_cols=st.sampled_from((1, 9, 64, 130))), dense=st.booleans())
def test_reads_scipy_files(folder, field, symmetry, X, dense):
    if symmetry == "symmetric":
        X = X[: min(X.shape), : min(X.shape)]
        X = X | X.T
    X = X.astype(float if field == "real" else int)
    matrix = X if dense and field != "pattern" else sp.coo_array(X)
    scipy.io.mmwrite(folder / "scipy.mtx", matrix, field=field, symmetry=symmetry)
    np.testing.assert_array_equal(ba.read(folder / "scipy.mtx").to_dense(), X)


def test_comments_blank_lines_and_crlf_are_accepted(file):
    header = "\ufeff%%matrixmarket MATRIX Coordinate Pattern General\r\n%\r\n% bitatoms rows\r\n".encode()
    comment = "% Käse\r\n\r\n 2\t2 2 \r\n".encode("latin-1")  # comments may be in any encoding
    path = file(header + comment + b"\r\n1 1\r\n\r\n  2   2", "table.mtx")
    np.testing.assert_array_equal(ba.read(path).to_dense(), np.eye(2))


@pytest.mark.parametrize("kind", ["coordinate real skew-symmetric", "array real skew-symmetric"])
def test_skew_symmetric_matrix_needs_binarize(file, kind):
    entries = ("2 1 1", "3 1 0", "3 2 1") if "coordinate" in kind else ("1", "0", "1")
    path = file(mtx_text("3 3 3" if "coordinate" in kind else "3 3", *entries, kind=kind), "skew.mtx")
    assert_read_error(path, "row 1, column 2: -1", "binarize=0")
    np.testing.assert_array_equal(ba.read(path, binarize=0).to_dense(), [[0, 0, 0], [1, 0, 0], [0, 1, 0]])


REAL = "coordinate real general"
BAD = {
    "blank": ("\n\n", "first line"),
    "text": ("a,b\n1,0\n", "first line", "%%MatrixMarket"),
    "a vector": ("%%MatrixMarket vector coordinate real general\n3 1\n1 1\n", "first line"),
    "complex": (mtx_text("1 1 1", "1 1 1 0", kind="coordinate complex general"), "complex"),
    "hermitian": (mtx_text("1 1 1", "1 1 1", kind="coordinate real hermitian"), "hermitian"),
    "an array pattern": (mtx_text("1 1", "1", kind="array pattern general"), "no values"),
    "a skew-symmetric pattern": (mtx_text("1 1 1", "1 1", kind="coordinate pattern skew-symmetric"), "skew-symmetric"),
    "only a first line": ("%%MatrixMarket matrix coordinate pattern general\n", "truncated"),
    "two sizes": (mtx_text("2 2", "1 1"), "line 2", "rows, columns and entries", "'2 2'"),
    "a size with too many digits": (mtx_text("9" * 5000 + " 2 1", "1 1"), "line 2"),
    "a huge table": (mtx_text("1000000000 1000000000 1", "1 1"), "corrupt or malicious"),
    "many columns without rows": (mtx_text("0 1000000000000000 0"), "GiB"),
    "too few entries": (mtx_text("2 2 10000000000", "1 1"), "truncated: it ends after 1 of 10000000000 entries"),
    "one entry too few": (mtx_text("2 2 2", "1 1"), "truncated: it ends after 1 of 2 entries"),
    "too many entries": (mtx_text("2 2 1", "1 1", "2 2"), "line 4", "more entries than the header states (1)"),
    "symmetric, not square": (mtx_text("2 3 1", "1 1", kind="coordinate pattern symmetric"), "2 rows and 3"),
    "row 0": (mtx_text("2 2 1", "0 1"), "row 0, but only 2 rows"),
    "a row index too large": (mtx_text("2 2 1", "3 1"), "row 3, but only 2 rows"),
    "a column index too large": (mtx_text("2 2 1", "1 3"), "column 3, but only 2 columns"),
    "a huge row index": (mtx_text("2 2 1", "1000000000000000000000000 1"), "line 3", "too large"),
    "a negative row index": (mtx_text("2 2 1", "-1 1"), "row -1"),
    "a fractional row index": (mtx_text("2 2 2", "1 1 0.5", "1.5 1 1", kind=REAL), "line 4", "1.5 is not a row index"),
    "a huge real row index": (mtx_text("2 2 2", "1 1 0.5", "1e300 1 1", kind=REAL), "but only 2 rows"),
    "a negative real row index": (mtx_text("2 2 2", "1 1 0.5", "-3 1 1", kind=REAL), "an entry in row -1, but only"),
    "NaN as a row index": (mtx_text("2 2 2", "1 1 0.5", "nan 1 1", kind=REAL), "line 4", "nan is not a row index"),
    "too few numbers": (mtx_text("2 2 2", "1 1", "2"), "line 4 has 1 numbers; expected 2 (row and column)"),
    "a comment in the middle": (mtx_text("2 2 1", "% now", "1 1"), "line 3: '%' is not a number"),
    "a duplicate entry": (mtx_text("2 2 2", "1 2", "1 2"), "row 1, column 2", "has two entries"),
    "in both triangles": (mtx_text("2 2 2", "1 2", "2 1", kind="coordinate pattern symmetric"), "has two entries"),
    "too few values": (mtx_text("2 2", "1", "0", "1", kind="array integer general"), "it ends after 3 of 4"),
    "too many values": (mtx_text("1 1", "1", "0", kind="array integer general"), "line 4", "more entries"),
    "names that are not JSON": (mtx_text("%bitatoms rows [oh", "1 1 1", "1 1"), "line 2", "JSON"),
    "deeply nested names": (mtx_text("%bitatoms columns " + "[" * 100000, "1 1 1", "1 1"), "line 2", "JSON"),
    "a long comment": ("%%MatrixMarket matrix coordinate pattern general\n%" + "a" * (1 << 20), "1 MiB"),
    "too many names": (mtx_text('%bitatoms rows ["a", "b"]', "1 1 1", "1 1"), "line 2", "more names than the 1 rows"),
    "too few names": (mtx_text('%bitatoms rows ["a"]', "2 1 1", "1 1"), "names of 1 rows, expected 2"),
    "a duplicate name": (mtx_text('%bitatoms columns ["a", "a"]', "1 2 1", "1 1"), "'a'", "duplicates="),
}


@pytest.mark.parametrize("case", BAD)
def test_malformed_files_are_errors(file, case):
    text, *parts = BAD[case]
    assert_read_error(file(text, "bad.mtx"), *parts)
