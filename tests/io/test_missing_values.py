"""Missing values in files: what they become, in every format, and how unknown cells are written."""

import anndata
import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as parquet
import pytest
import scipy.io

import bitatoms as ba
from bitatoms.errors import InputWarning
from support.files import assert_read_error
from support.formats import use_small_chunks


@pytest.fixture(params=[False, True], ids=["one chunk", "several chunks"])
def chunks(request, monkeypatch):
    """Read in one chunk, or in several."""
    if request.param:
        use_small_chunks(monkeypatch, 256)


@pytest.mark.filterwarnings("ignore:The default value for `spmatrix` is changing")  # SciPy 1.18 knows the argument
def test_formats_that_others_read(tmp_path):
    table = ba.Table(ba.Table.from_any([[1, np.nan], [0, 1]]).bits, None, ["a", "b"])
    for name in ("t.csv", "t.parquet", "t.mtx", "t.h5ad"):
        ba.write(table, tmp_path / name)
    ba.write(table.bits, tmp_path / "t.npy")
    expected = [[1, np.nan], [0, 1]]
    assert (tmp_path / "t.csv").read_text() == "a,b\n1,NA\n0,1\n"
    np.testing.assert_array_equal(pd.read_csv(tmp_path / "t.csv"), expected)
    np.testing.assert_array_equal(np.load(tmp_path / "t.npy"), expected)
    assert parquet.read_table(tmp_path / "t.parquet").to_pydict() == {"a": [True, False], "b": [None, True]}
    np.testing.assert_array_equal(scipy.io.mmread(tmp_path / "t.mtx").toarray(), expected)
    np.testing.assert_array_equal(anndata.read_h5ad(tmp_path / "t.h5ad").X.toarray(), expected)


@pytest.mark.parametrize("format", ["fimi", "baskets", "pairs", "pbm"])
def test_formats_that_cannot_store_unknown_cells(tmp_path, format):
    table = ba.Table(ba.Table.from_any([[1, np.nan], [np.nan, 1]]).bits, ["r", "s"], ["0", "1"])
    with pytest.raises(ba.FileError, match=r'2 cells are unknown, .*missing="zero", or write \.npz or \.csv$'):
        ba.write(table, tmp_path / f"table.{format}", format)
    assert not any(tmp_path.iterdir())


# A blank cell is a zero in a table without other zeros.


@pytest.mark.usefixtures("chunks")
def test_blank_cells_are_zeros_in_a_table_of_ones_and_blanks(file):
    for one in ("x", "1"):
        path = file(f"a,b\n{one},\n,{one}\n" + f"{one},{one}\n" * 300)
        with pytest.warns(InputWarning, match="2 blank cells are read as 0, because the table contains no other zeros"):
            table = ba.read(path)
        assert table.bits.unknown is None
        assert table.to_dense()[:3].tolist() == [[1, 0], [0, 1], [1, 1]]
        assert ba.read(path, missing="zero") == table


@pytest.mark.usefixtures("chunks")
def test_blank_cells_are_missing_if_a_later_chunk_has_a_zero(file):
    path = file("a,b\n1,\n,1\n" + "1,1\n" * 300 + "0,1\n" + ",\n" + "1,1\n" * 300)
    with pytest.warns(InputWarning, match="4 missing values are read as unknown cells"):
        cells = ba.read(path).to_dense(float)
    np.testing.assert_array_equal(cells[[0, 1, 302, 303]], [[1, np.nan], [np.nan, 1], [0, 1], [np.nan] * 2])
    assert np.isnan(cells).sum() == 4
    assert ba.read(file("a,b\n1,\n0,1\n"), without="b").bits.unknown is None


@pytest.mark.usefixtures("chunks")
def test_missing_words_and_errors_beside_blanks_that_are_zeros(file):
    path = file("a,b\n1,\nNA,1\n" + "1,1\n" * 300)
    with pytest.warns(InputWarning) as caught:
        table = ba.read(path)
    notes = [str(note.message).removeprefix(f"{path}: ") for note in caught]
    assert [note[:28] for note in notes] == ["1 blank cell is read as 0, b", "1 missing value is read as a"]
    np.testing.assert_array_equal(table.to_dense(float)[:2], [[1, 0], [np.nan, 1]])
    assert_read_error(file("a,b\n1,\n,1\n" + "1,1\n" * 300 + "7,1\n"), "line 304, column 'a': 7 is neither 0 nor 1")


@pytest.mark.usefixtures("chunks")
@pytest.mark.parametrize("later", ["x", "no", None])
def test_blank_cells_of_parquet_files(tmp_path, later):
    path = tmp_path / "table.parquet"
    pl.DataFrame({"a": ["", "x", *["x"] * 200, later], "b": ["x"] * 203}).write_parquet(path, row_group_size=50)
    with pytest.warns(InputWarning) as caught:
        table = ba.read(path)
    assert table.bits.n_unknown == {"x": 0, "no": 1, None: 1}[later]
    assert bool(table.bits.unknown is not None and table.bits.unknown[0][0]) == (later == "no")
    assert len(caught) == (2 if later is None else 1)
    pl.DataFrame({"a": ["", "x"], "b": [1.0, 0.0], "c": [None, True]}).write_parquet(path)  # a zero in another column
    with pytest.warns(InputWarning, match="2 missing values"):
        np.testing.assert_array_equal(ba.read(path).to_dense(float), [[np.nan, 1, np.nan], [1, 0, 1]])


def test_duplicate_entries_of_which_one_is_missing(file):
    entries = "1 1 1\n1 1 nan\n1 2 nan\n1 2 nan\n2 2 1\n"
    path = file(f"%%MatrixMarket matrix coordinate real general\n2 2 5\n{entries}", "a.mtx")
    with pytest.warns(InputWarning, match="missing values"):
        np.testing.assert_array_equal(ba.read(path).to_dense(float), [[np.nan, np.nan], [0, 1]])


# Genotypes: both cells of a missing one are unknown.


def test_half_known_genotypes_are_written_as_missing(tmp_path):
    half, none = ([[1, np.nan], [np.nan, 1], [0, 0]], [[np.nan] * 2, [np.nan] * 2, [0, 0]])
    written, expected = (
        ba.Table(ba.Table.from_any(values).bits, ["ann", "bob", "cyd"], ["rs1:A", "rs1:AA"]) for values in (half, none)
    )
    with pytest.warns(InputWarning, match="a.bed: 2 genotypes are written as missing"):
        ba.write(written, tmp_path / "a.bed")
    with pytest.warns(InputWarning, match="2 missing values"):
        assert ba.read(tmp_path / "a.bed") == expected
