"""Table: conversion from all supported types, and checks of names and image sizes."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

import bitatoms as ba
from bitatoms.table import Picture, check_columns

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
    "pyarrow": (lambda: pa.table({name: BITS[:, j] for j, name in enumerate(COLUMNS)}), None, COLUMNS),
    "pyarrow, booleans": (
        lambda: pa.table({name: BITS[:, j].astype(bool) for j, name in enumerate(COLUMNS)}),
        None,
        COLUMNS,
    ),
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


@pytest.mark.parametrize("kind", FRAMES)
def test_the_estimator_and_the_functions_accept_all_types(kind):
    make, _, columns = FRAMES[kind]
    X = make()
    model = ba.BinaryDictionaryLearning(1, search="paper", random_state=0).fit(X)
    assert getattr(model, "feature_names_in_", np.array(())).tolist() == list(columns or ())
    assert model.transform(X).shape == (2, 1)
    assert ba.factorize(X, 1, search="paper", random_state=0).atoms.n_cols == 3
    assert ba.codelength(X).total == ba.codelength(BITS).total
    assert model.patterns()[0].features[0] in (columns or ("x0", "x1", "x2"))


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
def test_missing_values_raise_or_become_zeros(kind):
    with pytest.raises(ValueError, match=r"missing value.* at row 0, column 1 \(1 in all\)"):
        ba.Table.from_any(MISSING[kind]())
    np.testing.assert_array_equal(ba.Table.from_any(MISSING[kind](), missing="zero").to_dense(), BITS)


def test_layer_of_an_anndata():
    adata = anndata_of(BITS * 3.0, {"counts": BITS * 2})
    np.testing.assert_array_equal(ba.Table.from_any(adata, layer="counts", binarize=1).to_dense(), BITS)
    with pytest.raises(ValueError, match="has no layer 'reads'; it has 'counts'"):
        ba.Table.from_any(adata, layer="reads")
    with pytest.raises(ValueError, match="other than 0 and 1"):
        ba.Table.from_any(adata)
    with pytest.raises(ValueError, match="requires an AnnData, got ndarray"):
        ba.Table.from_any(BITS, layer="counts")


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


def test_row_names_may_repeat():
    assert ba.Table(ba.BitMatrix.from_dense(BITS), ["ann", "ann"]).row_names == ("ann", "ann")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("milk", "bread", "gin"), "columns that the model was not fitted on: 'gin'"),
        (("milk", "bread"), "lacks columns that the model was fitted on: 'tea'"),
        (("bread", "milk", "tea"), "a different order"),
    ],
)
def test_check_columns(given, message):
    with pytest.raises(ValueError, match=message):
        check_columns(COLUMNS, given)


def test_a_fitted_model_checks_column_names():
    model = ba.BinaryDictionaryLearning(1, search="paper", random_state=0)
    model.fit(ba.Table.from_any(pd.DataFrame(BITS, ROWS, COLUMNS)))
    with pytest.raises(ValueError, match="columns that the model was not fitted on: 'gin'"):
        model.transform(ba.Table(ba.BitMatrix.from_dense(BITS), None, ("milk", "bread", "gin")))
    unnamed = ba.BinaryDictionaryLearning(1, search="paper", random_state=0).fit(BITS)
    with pytest.warns(UserWarning, match="have names, but BinaryDictionaryLearning was fitted without names"):
        unnamed.transform(ba.Table(ba.BitMatrix.from_dense(BITS), None, COLUMNS))


def test_equality_and_conversion_to_pandas_and_numpy():
    table = ba.Table(ba.BitMatrix.from_dense(BITS), ROWS, COLUMNS, Picture((1, 3)))
    assert table == ba.Table.from_any(table)
    assert table != ba.Table(table.bits, ROWS, COLUMNS)
    assert hash(table) == hash(ba.Table.from_any(table))
    pd.testing.assert_frame_equal(table.to_pandas(), pd.DataFrame(BITS, ROWS, COLUMNS))
    np.testing.assert_array_equal(np.asarray(table), BITS)
    assert table != "a table"
    assert len(table) == 2


def test_pyarrow_record_batches():
    (batch,) = pa.table({"milk": [True, False, True], "bread": [1, 0, 0]}).to_batches()
    bits = ba.BitMatrix.from_dense([[1, 1], [0, 0], [1, 0]])
    assert ba.Table.from_any(batch) == ba.Table(bits, columns=("milk", "bread"))


def test_rows_is_a_deprecated_name_of_row_names():
    bits = ba.BitMatrix.from_dense(BITS)
    with pytest.warns(FutureWarning, match="use row_names"):
        table = ba.Table(bits, rows=ROWS)
    assert table == ba.Table(bits, row_names=ROWS)
    with pytest.warns(FutureWarning, match="use row_names"):
        assert table.rows == ROWS
