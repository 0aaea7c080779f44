"""Matrix Market: what is written comes back, what SciPy writes is read and it reads ours, what is wrong is said."""

from __future__ import annotations

import gzip
import warnings

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.io import text_numbers
from bitatoms.table import Table
from support.files import assert_refused, outcome, tables
from support.strategies import matrices, random_bits

SMALL = settings(max_examples=25, deadline=None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One folder for all that hypothesis tries."""
    return tmp_path_factory.mktemp("market")


def market(size, *entries, kind="coordinate pattern general"):
    """The text of a file."""
    return "\n".join((f"%%MatrixMarket matrix {kind}", size, *entries, ""))


@SMALL
@given(tables(), st.sampled_from(("table.mtx", "table.mtx.gz")))
def test_a_table_comes_back_with_its_names(folder, table, name):
    ba.write(table, folder / name)
    assert ba.read(folder / name) == table


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0), (1, 1), (70, 130)])
def test_tables_of_any_shape_come_back(tmp_path, shape):
    table = Table(BitMatrix.from_dense(random_bits(1, *shape, 0.5)))
    ba.write(table, tmp_path / "table.mtx")
    assert ba.read(tmp_path / "table.mtx") == table


def test_scipy_reads_what_is_written_and_passes_over_the_names(tmp_path):
    X = random_bits(0, 30, 300, 0.2)
    table = Table(
        BitMatrix.from_dense(X), [f"Zeile {k} ä" for k in range(30)], [f"column number {k}" for k in range(300)]
    )
    ba.write(table, tmp_path / "table.mtx")
    assert scipy.io.mminfo(tmp_path / "table.mtx") == (30, 300, X.sum(), "coordinate", "pattern", "general")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the kind of matrix that it will give in time to come
        theirs = scipy.io.mmread(tmp_path / "table.mtx")
    np.testing.assert_array_equal(theirs.toarray(), X)
    text = (tmp_path / "table.mtx").read_bytes()
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= 1024  # as the format asks


def test_names_of_any_characters_come_back(tmp_path):
    names = ["", "a\nb", "%", "\ud800", "\0", " c "]
    table = Table(BitMatrix.from_dense(np.eye(6, dtype=np.uint8)), row_names=names, columns=names)
    ba.write(table, tmp_path / "table.mtx")
    assert ba.read(tmp_path / "table.mtx") == table


def test_the_same_table_gives_the_same_bytes(tmp_path):
    for name in ("a.mtx.gz", "b.mtx.gz"):
        ba.write(random_bits(2, 20, 20, 0.5), tmp_path / name)
    assert (tmp_path / "a.mtx.gz").read_bytes() == (tmp_path / "b.mtx.gz").read_bytes()


@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
@pytest.mark.parametrize("field", ["pattern", "integer", "real"])
@SMALL
@given(X=matrices(n_rows=st.sampled_from((1, 2, 9, 65)), n_cols=st.sampled_from((1, 9, 64, 130))), dense=st.booleans())
def test_what_scipy_writes_is_read(folder, field, symmetry, X, dense):
    if symmetry == "symmetric":
        X = X[: min(X.shape), : min(X.shape)]
        X = X | X.T
    X = X.astype(float if field == "real" else int)
    written = X if dense and field != "pattern" else sp.coo_array(X)
    scipy.io.mmwrite(folder / "scipy.mtx", written, field=field, symmetry=symmetry)
    np.testing.assert_array_equal(ba.read(folder / "scipy.mtx").to_dense(), X)


@pytest.mark.parametrize("one", ["1", "1.0", "1.", "1.0000000000000000e+00", "1.0E-00", "+1", "10e-1", "0.1e1"])
def test_ones_may_be_written_in_many_ways(tmp_path, one):
    ones = [f"{k} {k} {one}" for k in range(1, 4)]
    (tmp_path / "ones.mtx").write_text(market("3 3 4", *ones, "1 3 .0", kind="coordinate real general"))
    np.testing.assert_array_equal(ba.read(tmp_path / "ones.mtx").to_dense(), np.eye(3))


def test_comments_blank_lines_and_other_ends_of_lines_are_passed_over(tmp_path):
    header = "\ufeff%%matrixmarket MATRIX Coordinate Pattern General\r\n%\r\n% bitatoms rows\r\n\r\n 2\t2 2 \r\n"
    (tmp_path / "table.mtx").write_bytes(header.encode() + b"\r\n1 1\r\n\r\n  2   2")
    np.testing.assert_array_equal(ba.read(tmp_path / "table.mtx").to_dense(), np.eye(2))


def test_comments_may_be_in_any_encoding(tmp_path):
    text = market("1 1 1", "1 1").replace("general\n", "general\n% Käse\n")
    (tmp_path / "table.mtx").write_bytes(text.encode("latin-1"))
    assert ba.read(tmp_path / "table.mtx").shape == (1, 1)


@pytest.mark.parametrize("kind", ["coordinate real skew-symmetric", "array real skew-symmetric"])
def test_a_skew_matrix_has_negative_numbers_which_binarize_makes_zeros(tmp_path, kind):
    entries = ("2 1 1", "3 1 0", "3 2 1") if "coordinate" in kind else ("1", "0", "1")
    (tmp_path / "skew.mtx").write_text(market("3 3 3" if "coordinate" in kind else "3 3", *entries, kind=kind))
    assert_refused(tmp_path / "skew.mtx", "row 1, column 2: -1", "binarize=0")
    np.testing.assert_array_equal(
        ba.read(tmp_path / "skew.mtx", binarize=0).to_dense(), [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    )


def test_a_symmetric_array_has_only_its_lower_half(tmp_path):
    (tmp_path / "half.mtx").write_text(market("3 3", "1", "0", "1", "0", "1", "0", kind="array integer symmetric"))
    np.testing.assert_array_equal(ba.read(tmp_path / "half.mtx").to_dense(), [[1, 0, 1], [0, 0, 1], [1, 1, 0]])


@pytest.mark.parametrize("binarize", [-0.5, 0, 0.5, 2])
def test_binarize_takes_what_is_above_it(tmp_path, binarize):
    X = np.array([[0, 0.25, 3], [-1, 0, 0.5]])
    for matrix in (sp.coo_array(X), X):
        scipy.io.mmwrite(tmp_path / "real.mtx", matrix)
        np.testing.assert_array_equal(ba.read(tmp_path / "real.mtx", binarize=binarize).to_dense(), X > binarize)


def test_missing_values_are_counted_and_can_be_zeros(tmp_path):
    entries = ("1 1 1", "1 2 nan", "2 1 NaN")
    (tmp_path / "lost.mtx").write_text(market("2 2 3", *entries, kind="coordinate real general"))
    assert_refused(tmp_path / "lost.mtx", "2 values are missing, the first at row 1, column 2", 'missing="zero"')
    np.testing.assert_array_equal(ba.read(tmp_path / "lost.mtx", missing="zero").to_dense(), [[1, 0], [0, 0]])


@SMALL
@given(matrices(), st.integers(1, 40))
def test_text_is_read_in_blocks_of_any_size(folder, X, at_a_time):
    ba.write(X, folder / "table.mtx")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_numbers, "_CHUNK_BYTES", at_a_time if X.sum() < 500 else 1000)
        np.testing.assert_array_equal(ba.read(folder / "table.mtx").to_dense(), X)


REAL = "coordinate real general"
BAD = {
    "empty": ("", "empty"),
    "blank": ("\n\n", "first line"),
    "text": ("a,b\n1,0\n", "first line", "%%MatrixMarket"),
    "a vector": ("%%MatrixMarket vector coordinate real general\n3 1\n1 1\n", "first line"),
    "complex": (market("1 1 1", "1 1 1 0", kind="coordinate complex general"), "complex"),
    "hermitian": (market("1 1 1", "1 1 1", kind="coordinate real hermitian"), "hermitian"),
    "a pattern of values": (market("1 1", "1", kind="array pattern general"), "no values"),
    "a skew pattern": (market("1 1 1", "1 1", kind="coordinate pattern skew-symmetric"), "skew-symmetric"),
    "only a first line": ("%%MatrixMarket matrix coordinate pattern general\n", "truncated"),
    "two sizes": (market("2 2", "1 1"), "line 2", "rows, columns and entries", "'2 2'"),
    "words for sizes": (market("two 2 1", "1 1"), "line 2"),
    "sizes below zero": (market("-2 2 1", "1 1"), "line 2"),
    "sizes without end": (market("9" * 5000 + " 2 1", "1 1"), "line 2"),
    "a huge table": (market("1000000000 1000000000 1", "1 1"), "GiB"),
    "many columns of nothing": (market("0 1000000000000000 0"), "GiB"),
    "more entries claimed than there are": (
        market("2 2 1000000000000", "1 1"),
        "truncated: it ends after 1 of 1000000000000 entries",
    ),
    "fewer entries claimed than there are": (
        market("2 2 1", "1 1", "2 2"),
        "line 4",
        "more entries than the header states (1)",
    ),
    "a symmetric table that is not square": (
        market("2 3 1", "1 1", kind="coordinate pattern symmetric"),
        "2 rows and 3",
    ),
    "row 0": (market("2 2 1", "0 1"), "row 0, but only 2 rows"),
    "a row beyond": (market("2 2 1", "3 1"), "row 3, but only 2 rows"),
    "a column beyond": (market("2 2 1", "1 3"), "column 3, but only 2 columns"),
    "a wild row": (market("2 2 1", "1000000000000000000000000 1"), "line 3", "too large"),
    "a row below zero": (market("2 2 1", "-1 1"), "row -1"),
    "half a row": (market("2 2 2", "1 1 0.5", "1.5 1 1", kind=REAL), "line 4", "1.5 is not a row index"),
    "no row": (market("2 2 2", "1 1 0.5", "nan 1 1", kind=REAL), "line 4", "nan is not a row index"),
    "a wild real row": (market("2 2 2", "1 1 0.5", "1e300 1 1", kind=REAL), "but only 2 rows"),
    "too few numbers": (market("2 2 2", "1 1", "2"), "line 4 has 1 numbers; expected 2 (row and column)"),
    "too many numbers": (market("2 2 2", "1 1", "2 2 1"), "line 4 has 3 numbers; expected 2"),
    "too few and too many numbers": (market("2 2 2", "1", "1 2 2"), "line 3 has 1 numbers; expected 2"),
    "two values a line": (market("1 2", "1 1", kind="array integer general"), "line 3 has 2 numbers; expected 1"),
    "a word": (market("2 2 2", "1 1", "2 two"), "line 4: 'two' is not a number"),
    "numbers grown together": (market("2 2 1", "1-1 2"), "line 3: '1-1' is not a number"),
    "two points": (market("2 2 2", "1 1 1.0", "1 2 1.0.0", kind=REAL), "line 4: '1.0.0' is not a number"),
    "a comment in the middle": (market("2 2 1", "% now", "1 1"), "line 3: '%' is not a number"),
    "a zero byte": (market("2 2 1", "1 1\0"), "line 3", "is not a number"),
    "a two": (market("2 2 1", "1 2 2", kind="coordinate integer general"), "row 1, column 2: 2", "binarize=0"),
    "an entry twice": (market("2 2 2", "1 2", "1 2"), "row 1, column 2", "has two entries"),
    "an entry in both halves": (market("2 2 2", "1 2", "2 1", kind="coordinate pattern symmetric"), "has two entries"),
    "too few values": (
        market("2 2", "1", "0", kind="array integer general"),
        "truncated: it ends after 2 of 4 entries",
    ),
    "too many values": (market("1 1", "1", "0", kind="array integer general"), "line 4", "more entries"),
    "names that are no JSON": (market("%bitatoms rows [oh", "1 1 1", "1 1"), "line 2", "JSON"),
    "names that are numbers": (market("%bitatoms columns [1]", "1 1 1", "1 1"), "line 2", "JSON"),
    "names that are deep": (market("%bitatoms columns " + "[" * 100000, "1 1 1", "1 1"), "line 2", "JSON"),
    "a long story": ("%%MatrixMarket matrix coordinate pattern general\n%" + "a" * (1 << 20), "1 MiB"),
    "too many names": (market('%bitatoms rows ["a", "b"]', "1 1 1", "1 1"), "line 2", "more names than the 1 rows"),
    "too few names": (market('%bitatoms rows ["a"]', "2 1 1", "1 1"), "names of 1 rows, expected 2"),
    "a name twice": (market('%bitatoms columns ["a", "a"]', "1 2 1", "1 1"), "'a'", "duplicates="),
}


@pytest.mark.parametrize("trouble", BAD)
def test_bad_files_are_refused_in_one_line(tmp_path, trouble):
    text, *parts = BAD[trouble]
    (tmp_path / "bad.mtx").write_text(text)
    assert_refused(tmp_path / "bad.mtx", *parts)


def test_other_formats_are_told(tmp_path):
    ba.write(np.eye(2), tmp_path / "array.npy")
    (tmp_path / "array.npy").rename(tmp_path / "array.mtx")
    assert_refused(tmp_path / "array.mtx", "looks like 'npy'")


def test_a_compressed_file_cut_anywhere_is_refused(tmp_path):
    ba.write(random_bits(3, 20, 30, 0.5), tmp_path / "table.mtx.gz")
    content = (tmp_path / "table.mtx.gz").read_bytes()
    for length in range(0, len(content) - 1, 13):
        (tmp_path / "table.mtx.gz").write_bytes(content[:length])
        assert_refused(tmp_path / "table.mtx.gz")


def test_a_file_cut_at_the_end_of_any_line_is_refused(tmp_path):
    lines = market("3 3 3", "1 1", "2 2", "3 3").splitlines(keepends=True)
    for count in range(len(lines)):
        (tmp_path / "table.mtx").write_text("".join(lines[:count]))
        assert_refused(tmp_path / "table.mtx")


def test_a_line_without_end_is_refused_before_it_is_all_read(tmp_path, monkeypatch):
    monkeypatch.setattr(text_numbers, "_LONGEST_LINE", 1 << 20)
    with gzip.open(tmp_path / "bomb.mtx.gz", "wb", 1) as file:
        file.write(market("3 3 3").encode())
        for _ in range(20):
            file.write(b"1 " * (1 << 19))
    assert_refused(tmp_path / "bomb.mtx.gz", "longer than 1 MiB")


@SMALL
@given(st.data())
def test_bytes_that_changed_give_a_table_or_one_line(folder, data):
    text = data.draw(
        st.sampled_from(
            (
                market('%bitatoms rows ["a", "b"]', "2 2 2", "1 1", "2 2"),
                market("3 3 3", "1 1 1.0", "2 2 0.5", "3 3 nan", kind="coordinate real symmetric"),
                market("2 2", "1", "0", "1", "0", kind="array integer general"),
            )
        )
    )
    changed = bytearray(text.encode())
    for place in data.draw(st.lists(st.integers(0, len(changed) - 1), min_size=1, max_size=4)):
        changed[place] = data.draw(st.one_of(st.sampled_from(b" \n.-e019%"), st.integers(0, 255)))
    (folder / "changed.mtx").write_bytes(changed)
    outcome(ba.read, folder / "changed.mtx")
    outcome(lambda path: ba.read(path, binarize=0, missing="zero"), folder / "changed.mtx")
