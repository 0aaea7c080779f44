"""SparseBits has the bits of the packed matrix."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array

from bitatoms import BitMatrix
from bitatoms.core.complete import hash_rows
from bitatoms.sparse_bits import SparseBits
from support.strategies import random_bits

TABLES = st.builds(
    random_bits, st.integers(0, 99), st.sampled_from((0, 1, 63, 64, 65, 130)), st.sampled_from((1, 64, 65, 200)),
    st.sampled_from((0.0, 0.02, 0.3, 1.0)),
)  # fmt: skip


@given(TABLES, st.integers(0, 9))
def test_same_as_packed(X, seed):
    bits, sparse = BitMatrix.from_dense(X), SparseBits.from_bits(BitMatrix.from_dense(X))
    again = SparseBits.from_sparse(csr_array(X))
    np.testing.assert_array_equal(again.indices, sparse.indices)
    np.testing.assert_array_equal(again.indptr, sparse.indptr)
    assert (sparse.shape, len(sparse), sparse.n_known, sparse.count()) == (bits.shape, len(X), len(X), bits.count())
    np.testing.assert_array_equal(sparse.row_weights(), bits.row_weights())
    np.testing.assert_array_equal(sparse.column_weights(), bits.column_weights())
    assert sparse.packed() == bits
    assert sparse[3:50] == bits[3:50]
    rows = np.sort(np.random.default_rng(seed).permutation(len(X))[:20])
    assert sparse[rows] == bits[rows]
    assert sparse.by_column.packed() == bits.T
    np.testing.assert_array_equal(sparse.to_sparse().toarray(), X)
    assert hash_rows(sparse) == hash_rows(bits)


@given(TABLES, st.integers(0, 9), st.integers(1, 3))
def test_columns_and_the_rows_that_have_ones_there(X, seed, min_ones):
    columns = np.sort(np.random.default_rng(seed).permutation(X.shape[1])[:70])
    rows, part = SparseBits.from_bits(BitMatrix.from_dense(X)).take_columns(columns, min_ones)
    np.testing.assert_array_equal(rows, np.flatnonzero(X[:, columns].sum(axis=1) >= min_ones))
    np.testing.assert_array_equal(part.to_dense(), X[np.ix_(rows, columns)])


def test_values_are_checked_as_in_packed_tables():
    table = coo_array(([1.0, 3.0, 0.0], ([0, 1, 2], [2, 0, 1])), shape=(3, 4))
    assert SparseBits.from_sparse(table, binarize=2).packed() == BitMatrix.from_sparse(table, binarize=2)
    with pytest.raises(ValueError, match="row 1, column 0"):
        SparseBits.from_sparse(table)
    assert SparseBits.from_sparse(table, binarize=-1) is None  # what is not stored is a one
    table.data[0] = np.nan
    assert SparseBits.from_sparse(table, binarize=2) is None  # unknown cells are packed
