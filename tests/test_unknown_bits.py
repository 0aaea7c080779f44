"""Tables with unknown cells as packed bits."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import naive
from bitatoms.bits import BitMatrix, stack_rows
from bitatoms.errors import MissingCell
from support.blocks import bits_of, table_of
from support.strategies import SEEDS, SHARES, matrices, random_bits

TABLE = np.array([[1, 0, np.nan], [np.nan, 1, 1]])
MASK = BitMatrix.from_dense(np.isnan(TABLE))


@st.composite
def tables(draw):
    """Draw tables with 2 in unknown cells."""
    X = draw(matrices())
    X[random_bits(draw(SEEDS), *X.shape, draw(SHARES)) == 1] = 2
    return X


def with_nan(X):
    return np.where(X > 1, np.nan, X)


@given(tables(), st.sampled_from(("C", "F")), st.sampled_from((np.float32, np.float64, object)))
def test_nan_becomes_an_unknown_cell(X, order, dtype):
    bits = BitMatrix.from_any(np.asarray(with_nan(X), dtype, order), missing="unknown")
    assert bits == bits_of(X)
    assert (bits.unknown is None) == (not (X > 1).any())
    np.testing.assert_array_equal(bits.to_dense(float), with_nan(X))


@pytest.mark.parametrize(
    "table",
    [
        TABLE.tolist(),
        [[1, 0, None], [None, 1, 1]],
        np.ma.masked_invalid(TABLE),
        np.ma.array([[1, 0, 1], [0, 1, 1]], mask=np.isnan(TABLE)),
        pl.DataFrame({"a": [1, None], "b": [0, 1], "c": [None, 1]}),
        pd.DataFrame(TABLE),
        pd.DataFrame(TABLE).astype("Int8"),
        pd.DataFrame(TABLE).astype("boolean"),
        pd.DataFrame(TABLE).astype(object).where(~np.isnan(TABLE), pd.NA),
        sp.csr_array(TABLE),
        sp.coo_array(TABLE),
        sp.csc_matrix(TABLE),
    ],
    ids=lambda table: type(table).__name__,
)
def test_missing_values_of_any_type(table):
    bits = BitMatrix.from_any(table, missing="unknown")
    assert bits.unknown == MASK
    assert bits.filled().to_dense().tolist() == [[1, 0, 0], [0, 1, 1]]
    assert BitMatrix.from_any(table, missing="zero") == bits.filled()
    with pytest.raises(MissingCell, match=r"row 0, column 2.*2"):
        BitMatrix.from_any(table)


@pytest.mark.parametrize("threshold", [-1.0, 0.0, 0.5, 3.0])
def test_missing_values_are_unknown_at_any_threshold(threshold):
    values = np.array([[5, 0, np.nan], [np.nan, 1, 2]])
    bits = BitMatrix.from_any(values, threshold, missing="unknown")
    assert bits.unknown == MASK
    np.testing.assert_array_equal(bits.to_dense(float), np.where(np.isnan(values), np.nan, values > threshold))
    assert (
        BitMatrix.from_any(BitMatrix.from_any(TABLE, missing="unknown"), threshold, missing="unknown").unknown == MASK
    )


BITS = BitMatrix.from_any(TABLE, missing="unknown")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: BitMatrix.from_any([[np.nan, 1], [2, 0]], missing="unknown"), ValueError, "2 at row 1, column 0"),
        (lambda: BitMatrix.from_any([[np.nan, 1], [2, 0]], missing="zero"), ValueError, "2 at row 1, column 0"),
        (lambda: BitMatrix.from_any([[np.nan], [np.inf]], missing="unknown"), MissingCell, "an infinite value.*row 1"),
        (lambda: BitMatrix.from_any([[np.nan], [np.inf]], missing="zero"), MissingCell, "an infinite value.*row 1"),
        (lambda: BitMatrix.from_any(BITS, name="init"), MissingCell, "init contains an unknown value at row 0"),
        (lambda: BitMatrix(MASK.words, 3, MASK), ValueError, "ones in unknown cells"),
        (lambda: BitMatrix.zeros(2, 3).with_unknown(BitMatrix.zeros(2, 4)), ValueError, "2 x 3"),
    ],
)
def test_invalid_calls_are_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_unknown_cells_have_no_value_and_are_filled_on_request():
    one, other = BitMatrix.from_dense(TABLE == 1), BitMatrix.from_dense(TABLE != 0)
    assert one != other
    assert one.with_unknown(MASK) == other.with_unknown(MASK) == BITS != one
    assert hash(one.with_unknown(MASK)) == hash(other.with_unknown(MASK))
    assert BitMatrix.from_any(BITS, missing="zero") == BITS.filled()
    assert BitMatrix.from_any(BITS, missing="unknown") is BITS
    both = np.ma.array([[1, 0, np.nan], [9, 1, 1]], mask=[[0, 0, 0], [1, 0, 0]])
    assert BitMatrix.from_any(both, missing="unknown") == BITS
    assert repr(BITS) == "BitMatrix(2 x 3, density 0.75, 2 cells unknown)"


@given(tables(), st.data())
def test_operations_keep_unknown_cells(X, data):
    bits = bits_of(X)
    np.testing.assert_array_equal(table_of(bits.T), X.T)
    cut = data.draw(st.integers(0, len(X)))
    np.testing.assert_array_equal(table_of(bits[cut:]), X[cut:])
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_array_equal(table_of(bits[order]), X[order])
    columns = data.draw(st.lists(st.integers(0, X.shape[1] - 1), max_size=70))
    np.testing.assert_array_equal(table_of(bits.take_columns(columns)), X[:, columns])
    np.testing.assert_array_equal(table_of(stack_rows([bits[:cut], bits[cut:]], X.shape[1])), X)
    assert pickle.loads(pickle.dumps(bits)) == bits
    np.testing.assert_array_equal(bits.column_weights(), (X == 1).sum(axis=0))
    np.testing.assert_array_equal(bits.row_weights(), (X == 1).sum(axis=1))
    np.testing.assert_array_equal(np.broadcast_to(bits.n_known, X.shape[1]), naive.known(X).sum(axis=0))
    assert bits.n_unknown == (X > 1).sum()
    assert bits.density == (X == 1).sum() / max(1, (X <= 1).sum())


@given(tables(), SEEDS)
def test_xor_of_unknown_cells_is_unknown(X, seed):
    Y = random_bits(seed, *X.shape, 0.5) + 2 * random_bits(seed + 1, *X.shape, 0.2)
    either = (X > 1) | (Y > 1)
    np.testing.assert_array_equal(table_of(bits_of(X) ^ bits_of(Y)), np.where(either, 2, (X ^ Y) & 1))
    row = random_bits(seed, 1, X.shape[1], 0.5)
    np.testing.assert_array_equal(table_of(bits_of(X) ^ BitMatrix.from_dense(row)), np.where(X > 1, 2, (X ^ row) & 1))


def test_absent_columns_are_zero_or_unknown():
    bits = bits_of(np.array([[1, 2], [0, 1]], np.uint8))
    assert table_of(bits.take_columns([1, -1, 0])).tolist() == [[2, 0, 1], [1, 0, 0]]
    assert table_of(bits.take_columns([1, -1, 0], absent="unknown")).tolist() == [[2, 2, 1], [1, 2, 0]]
    assert table_of(bits.filled().take_columns([-1], absent="unknown")).tolist() == [[2], [2]]


def test_formats_without_unknown_cells_raise():
    bits = BitMatrix.from_any(TABLE, missing="unknown")
    for convert in (bits.to_dense, lambda: np.asarray(bits, int), lambda: np.array(bits, bool), bits.to_bytes):
        with pytest.raises(ValueError, match=r"2 cells are unknown.*filled\(\)"):
            convert()
    for array, dtype in ((np.asarray(bits), np.float64), (np.asarray(bits, np.float32), np.float32)):
        np.testing.assert_array_equal(array, TABLE)
        assert array.dtype == dtype
    np.testing.assert_array_equal(np.asarray(bits, object).astype(float), TABLE)
    assert np.asarray(bits.filled()).dtype == np.asarray(bits[:0]).dtype == np.uint8
    np.testing.assert_array_equal(bits[0], TABLE[0])
    assert bits[1:].filled().to_bytes() == bytes([6])


@given(tables())
def test_sparse_arrays_hold_nan(X):
    sparse = bits_of(X).to_sparse()
    np.testing.assert_array_equal(sparse.toarray(), with_nan(X))
    assert sparse.dtype == (np.float64 if (X > 1).any() else np.uint8)
