"""SparseBits has the bits of the packed matrix."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array

from bitatoms import BitMatrix, Table
from bitatoms.core.complete import hash_rows
from bitatoms.sparse_bits import SparseBits, as_bits, packed, stack_bits
from support.strategies import random_bits

TABLES = st.builds(
    random_bits, st.integers(0, 99), st.sampled_from((0, 1, 63, 64, 65, 130)), st.sampled_from((1, 64, 65, 200)),
    st.sampled_from((0.0, 0.02, 0.3, 1.0)),
)  # fmt: skip


@given(TABLES, st.integers(0, 9))
def test_same_as_packed(X, seed):
    bits, sparse = BitMatrix.from_dense(X), SparseBits.from_bits(BitMatrix.from_dense(X))
    assert SparseBits.from_cells(*np.nonzero(X), X.shape) == sparse
    assert (sparse.shape, len(sparse), sparse.n_known, sparse.count()) == (bits.shape, len(X), len(X), bits.count())
    np.testing.assert_array_equal(sparse.row_weights(), bits.row_weights())
    np.testing.assert_array_equal(sparse.column_weights(), bits.column_weights())
    assert sparse.bits == bits
    assert sparse[3:50].bits == bits[3:50]
    rows = np.sort(np.random.default_rng(seed).permutation(len(X))[:20])
    assert sparse[rows].bits == bits[rows]
    assert sparse[rows.tolist()] == bits[rows]
    assert sparse[np.isin(np.arange(len(X)), rows)] == bits[rows]
    assert sparse[rows - len(X), ...] == bits[rows]
    assert sparse[50:3:-2] == bits[50:3:-2]
    assert (sparse.ndim, sparse.size) == (bits.ndim, bits.size) == (X.ndim, X.size)
    if len(X):
        np.testing.assert_array_equal(sparse[-1], X[-1])
        assert sparse != BitMatrix.from_dense(1 - X)
    assert sparse == bits
    assert bits == sparse
    assert hash(bits) == hash(sparse)
    assert sparse.T == bits.T
    np.testing.assert_array_equal(sparse.words, bits.words)
    np.testing.assert_array_equal(np.asarray(sparse), X)
    assert sparse.by_column.bits == bits.T
    np.testing.assert_array_equal(sparse.to_sparse().toarray(), X)
    assert hash_rows(sparse) == hash_rows(bits)


@given(TABLES, st.integers(0, 9), st.integers(1, 3))
def test_columns_and_the_rows_that_have_ones_there(X, seed, min_ones):
    columns = np.sort(np.random.default_rng(seed).permutation(X.shape[1])[:70])
    rows, part = SparseBits.from_bits(BitMatrix.from_dense(X)).window(columns, min_ones)
    np.testing.assert_array_equal(rows, np.flatnonzero(X[:, columns].sum(axis=1) >= min_ones))
    np.testing.assert_array_equal(part.to_dense(), X[np.ix_(rows, columns)])


@given(TABLES, st.integers(0, 9), st.booleans())
def test_columns_in_any_order(X, seed, absent):
    columns = np.random.default_rng(seed).permutation(X.shape[1])[:70]
    columns = np.concatenate((columns, [-1])) if absent else columns
    bits = BitMatrix.from_dense(X)
    sparse = SparseBits.from_bits(bits)
    assert sparse.take_columns(columns).bits == bits.take_columns(columns)
    unknown = packed(sparse.take_columns(columns, absent="unknown"))
    assert unknown == bits.take_columns(columns, absent="unknown")


@given(TABLES)
def test_rows_in_chunks_and_as_a_table(X):
    sparse = SparseBits.from_bits(BitMatrix.from_dense(X))
    assert stack_bits((sparse[start : start + 40] for start in range(0, len(X), 40)), X.shape[1]) == sparse
    np.testing.assert_array_equal(sparse.to_dense(), X)
    np.testing.assert_array_equal(sparse.transpose().to_dense(), X.T)
    table = Table(sparse)
    assert table == Table(BitMatrix.from_dense(X))
    assert hash(table) == hash(Table(BitMatrix.from_dense(X)))
    assert table.bits == BitMatrix.from_dense(X)


def wide(values, shape=(3, 4000)):
    return coo_array((values, ([0, 1, 2], [2, 0, 3999])), shape=shape)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "lil", "dok"])
def test_wide_sparse_tables_are_not_packed(kind):
    X = wide([1, 1, 1]).asformat(kind)
    assert as_bits(X) == SparseBits.from_bits(BitMatrix.from_sparse(X))
    assert isinstance(as_bits(X.tocsr()[:, :2000]), BitMatrix)
    many = csr_array(np.ones((3, 4000), np.uint8))
    assert isinstance(as_bits(many), BitMatrix)


def test_values_are_checked_as_in_packed_tables():
    assert as_bits(wide([1.0, 3.0, 0.0]), binarize=2).bits == BitMatrix.from_sparse(wide([1.0, 3.0, 0.0]), binarize=2)
    with pytest.raises(ValueError, match="row 1, column 0"):
        as_bits(wide([1.0, 3.0, 0.0]))
    everywhere = as_bits(wide([1.0, 3.0, 0.0]), binarize=-1)  # what is not stored is a one
    assert everywhere == BitMatrix.from_sparse(wide([1.0, 3.0, 0.0]), binarize=-1)
    holes = wide([1.0, np.nan, 0.0])
    assert as_bits(holes, missing="unknown") == BitMatrix.from_sparse(holes, missing="unknown")
    assert as_bits(holes, missing="zero").bits == BitMatrix.from_sparse(holes, missing="zero")
    with pytest.raises(ValueError, match="row 1, column 0"):
        as_bits(holes)


def test_a_table_too_large_to_pack_is_reported(monkeypatch):
    monkeypatch.setattr("bitatoms.sparse_bits.memory_limit", lambda: 1000)
    sparse = as_bits(wide([1, 1, 1]))
    with pytest.raises(ValueError, match="3 rows and 4000 columns takes"):
        sparse.to_dense()
