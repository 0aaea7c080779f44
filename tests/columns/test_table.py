"""Table: conversion from all supported types, and checks of names and image sizes."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

import bitatoms as ba
from bitatoms.columns.table import Picture
from bitatoms.errors import InputError
from bitatoms.sparse_bits import SparseBits

BITS = np.array([[1, 0, 1], [0, 1, 1]], np.uint8)
ROWS, COLUMNS = ("ann", "bob"), ("milk", "bread", "tea")


def anndata_of(values, layers=None):
    anndata = pytest.importorskip("anndata")
    return anndata.AnnData(
        values, obs=pd.DataFrame(index=list(ROWS)), var=pd.DataFrame(index=list(COLUMNS)), layers=layers
    )


FRAMES = {
    "array": (lambda: BITS, None, None),
    "lists": (lambda: BITS.tolist(), None, None),
    "sparse": (lambda: csr_array(BITS), None, None),
    "BitMatrix": (lambda: ba.BitMatrix.from_dense(BITS), None, None),
    "Table": (lambda: ba.Table(ba.BitMatrix.from_dense(BITS), ROWS, COLUMNS), ROWS, COLUMNS),
    "pandas": (lambda: pd.DataFrame(BITS, ROWS, COLUMNS), ROWS, COLUMNS),
    "pandas, numbered rows": (lambda: pd.DataFrame(BITS, columns=COLUMNS), None, COLUMNS),
    "pandas, numbered columns": (lambda: pd.DataFrame(BITS, ROWS), ROWS, None),
    "pandas, booleans": (lambda: pd.DataFrame(BITS.astype(bool), ROWS, COLUMNS), ROWS, COLUMNS),
    "polars": (lambda: pl.DataFrame(BITS, schema=list(COLUMNS)), None, COLUMNS),
    "polars, booleans": (lambda: pl.DataFrame(BITS.astype(bool), schema=list(COLUMNS)), None, COLUMNS),
    "pyarrow": (lambda: pa.table(dict(zip(COLUMNS, BITS.T, strict=True))), None, COLUMNS),
    "pyarrow, booleans": (lambda: pa.table(dict(zip(COLUMNS, BITS.T == 1, strict=True))), None, COLUMNS),
    "pyarrow, a batch": (lambda: pa.table(dict(zip(COLUMNS, BITS.T, strict=True))).to_batches()[0], None, COLUMNS),
    "pyarrow, of pandas": (lambda: pa.Table.from_pandas(pd.DataFrame(BITS, ROWS, COLUMNS)), ROWS, COLUMNS),
    "AnnData": (lambda: anndata_of(BITS.astype(np.float32)), ROWS, COLUMNS),
    "AnnData, sparse": (lambda: anndata_of(csr_array(BITS.astype(np.float32))), ROWS, COLUMNS),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_from_any_keeps_bits_and_names(kind):
    make, row_names, columns = FRAMES[kind]
    table = ba.Table.from_any(make())
    np.testing.assert_array_equal(table.to_dense(), BITS)
    assert (table.row_names, table.columns) == (row_names, columns)


MISSING = {
    "array": lambda: np.array([[1, np.nan, 1], [0, 1, 1]]),
    "masked": lambda: np.ma.masked_array(BITS, [[0, 1, 0], [0, 0, 0]]),
    "pandas": lambda: pd.DataFrame([[1, None, 1], [0, 1, 1]]),
    "pandas, nullable": lambda: pd.DataFrame([[1, None, 1], [0, 1, 1]]).astype("Int8"),
    "polars": lambda: pl.DataFrame({"milk": [1, 0], "bread": [None, 1], "tea": [1, 1]}),
    "pyarrow": lambda: pa.table({"milk": [1, 0], "bread": [None, 1], "tea": [1, 1]}),
    "pyarrow, booleans": lambda: pa.table({"milk": [True, False], "bread": [None, True], "tea": [True, True]}),
    "sparse": lambda: csr_array(np.array([[1, np.nan, 1], [0, 1, 1]])),
}


@pytest.mark.parametrize("kind", MISSING)
def test_missing_values_are_unknown_or_zeros_or_errors(kind):
    table = ba.Table.from_any(MISSING[kind]())
    np.testing.assert_array_equal(table.to_dense(float), [[1, np.nan, 1], [0, 1, 1]])
    named = r" \('bread'\)" if kind.startswith("p") and "pandas" not in kind else ""
    with pytest.raises(ValueError, match=rf"missing value.* at row 0, column 1{named} \(1 in all\)"):
        ba.Table.from_any(MISSING[kind](), missing="refuse")
    with pytest.raises(ValueError, match=r"an unknown value at row 0, column 1 \(1 in all\)"):
        ba.Table.from_any(table, missing="refuse")
    np.testing.assert_array_equal(ba.Table.from_any(table, missing="zero").to_dense(), BITS)
    np.testing.assert_array_equal(ba.Table.from_any(MISSING[kind](), missing="zero").to_dense(), BITS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"row_names": ["ann"]}, "there are 1 names for 2 rows"),
        ({"columns": ["a", "b"]}, "there are 2 names for 3 columns"),
        ({"columns": ["a", "b", "a"]}, "two columns have the name 'a'"),
        ({"picture": Picture((2, 2))}, "an image of 2 x 2 has 4 pixels, but the rows have 3 columns"),
        ({"picture": Picture((1, 3), (1, 3))}, "an image of 1 x 3 has 1 blocks of 1 x 3, but the table has 2 rows"),
    ],
)
def test_invalid_names_and_image_sizes(arguments, message):
    with pytest.raises(ValueError, match=message):
        ba.Table(ba.BitMatrix.from_dense(BITS), **arguments)


def test_a_path_is_not_a_table_but_the_estimator_reads_it(tmp_path):
    path = str(tmp_path / "table.csv")
    for take in (ba.Table.from_any, ba.factorize):
        with pytest.raises(TypeError, match=r"X is '.*table.csv', not a table; read the file with bitatoms.read"):
            take(path)
    model = ba.BinaryDictionaryLearning(1, search="paper", random_state=0)
    with pytest.raises(ba.FileError, match=r"table\.csv"):
        model.fit(path)
    ba.write(ba.Table(ba.BitMatrix.from_dense(BITS), ROWS, COLUMNS), path)
    assert model.fit(path).feature_names_in_.tolist() == list(COLUMNS)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_rows_are_selected_with_all_that_is_known_about_them(is_sparse):
    X = np.random.default_rng(0).integers(0, 2, (6, 70)).astype(float)
    X[[1, 4], [3, 69]] = 0 if is_sparse else np.nan
    bits = ba.Table.from_any(X).bits
    table = ba.Table(
        SparseBits.from_bits(bits) if is_sparse else bits,
        list("abcdef"),
        [f"c{column}" for column in range(70)],
        Picture((7, 10), (14, 30)),
        absent_is_zero=True,
        row_data={"group": list("uvwxyz"), "number": np.arange(6)},
        column_data={"position": np.arange(70)},
    )
    assert (table.ndim, table.size, table.shape) == (2, 420, (6, 70))
    mask = np.array([0, 1, 0, 1, 1, 0], bool)
    selections = [4, 0, 4, -1], np.uint8([1]), mask, mask.tolist(), pd.Series(mask), slice(1, 5, 2), slice(9, 0, -1), []
    for rows in selections:
        chosen = np.arange(6)[rows if len(np.shape(rows)) == 0 or len(rows) else slice(0)]
        for part in (table[rows], table[rows, ...], table[rows, :]):
            assert isinstance(part.data, type(table.data))
            np.testing.assert_array_equal(np.asarray(part), X[chosen])
            assert part.row_names == tuple("abcdef"[row] for row in chosen)
            assert part.header == table.header
            assert part.picture == Picture((7, 10))
            assert part.row_data["number"].tolist() == chosen.tolist()
            assert part.row_data["group"].tolist() == ["uvwxyz"[row] for row in chosen]
    for row in (1, -2, np.int64(1)):
        np.testing.assert_array_equal(table[row], X[row])
    np.testing.assert_array_equal(list(table), X)
    np.testing.assert_array_equal(ba.Table(bits)[::2].to_dense(float), X[::2])
    for rows in ("a", ["c0", "c1"], (slice(None), "c0"), (0, 1)):
        with pytest.raises(
            IndexError, match=r"a Table is indexed by .*; select columns with to_pandas\(\).*set_output"
        ):
            table[rows]
    assert table.filled() == table.with_bits(bits.filled())


def test_bits_may_be_numbers_of_copies():
    expected = ba.Table.from_any(BITS, dosage=True)
    for bits in (ba.BitMatrix.from_dense(BITS), SparseBits.from_bits(ba.BitMatrix.from_dense(BITS))):
        assert ba.Table.from_any(bits, dosage=True) == expected
    np.testing.assert_array_equal(expected.to_dosages(), BITS)


def test_scaled_values_of_an_anndata_are_reported_everywhere():
    scaled = anndata_of(BITS - 0.5)
    for take in (ba.Table.from_any, ba.factorize, ba.cover, ba.BinaryDictionaryLearning(algebra="xor").fit):
        with pytest.raises(InputError, match="the AnnData: its values are scaled"):
            take(scaled)


def test_a_dict_is_not_a_table():
    columns = {"milk": [1, 0], "bread": [1, 1]}
    model = ba.BinaryDictionaryLearning(1, search="paper", random_state=0)
    fitted = ba.BinaryDictionaryLearning(1, search="paper", random_state=0).fit(BITS[:, :2])
    for take in (ba.Table.from_any, ba.factorize, model.fit, ba.BinaryImputer(algebra="xor").fit, fitted.transform):
        with pytest.raises(TypeError, match=r"X is a dict, not a table; pass pandas.DataFrame\(X\)"):
            take(columns)


def test_equality_and_conversion_to_pandas_and_numpy():
    table = ba.Table(ba.BitMatrix.from_dense(BITS), ROWS, COLUMNS, Picture((1, 3)))
    assert table == ba.Table.from_any(table)
    assert table != ba.Table(table.bits, ROWS, COLUMNS)
    assert hash(table) == hash(ba.Table.from_any(table))
    pd.testing.assert_frame_equal(table.to_pandas(), pd.DataFrame(BITS, ROWS, COLUMNS))
    np.testing.assert_array_equal(np.asarray(table), BITS)
    assert table != "a table"
    assert len(table) == 2


def test_unknown_cells_in_pandas_and_in_the_representation():
    table = ba.Table(ba.Table.from_any([[1, np.nan, 1], [0, 1, 1]]).bits, ROWS, COLUMNS)
    frame = table.to_pandas()
    assert frame.dtypes.astype(str).tolist() == ["uint8", "UInt8", "uint8"]
    assert frame.iloc[0, 1] is pd.NA
    assert frame.iloc[1].tolist() == [0, 1, 1]
    assert ba.Table.from_any(frame) == table
    assert repr(ba.Table.from_any([[1, None], [0, None]])) == "Table(2 x 2, density 0.5, 2 cells unknown)"
