"""BitMatrix and SparseBits: conversions round-trip at awkward widths, unknown cells, and errors that name the cell."""

import copy
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_array

import naive
from bitatoms import BitMatrix, Table
from bitatoms.bits import stack_rows
from bitatoms.columns.table import as_bits
from bitatoms.engine.distinct_rows import hash_rows
from bitatoms.errors import MissingCell
from bitatoms.sparse_bits import SparseBits, packed, stack_bits
from support.blocks import bits_of, table_of
from support.strategies import COLUMNS, SEEDS, SHARES, matrices, random_bits

WIDTHS = (0, 1, 7, 8, 9, 63, 64, 65, 130, 257)
DTYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64",
)  # fmt: skip
OTHER_DTYPES = ("longdouble", "object", ">i4", ">u8", ">f8", "<i2")
FORMATS = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
SOME = np.array([[0, 1, 0], [1, 1, 0]], np.uint8)


def same(bits, dense):
    """Check the invariant of a BitMatrix and that it holds the dense bits."""
    dense = np.asarray(dense)
    assert isinstance(bits, BitMatrix)
    assert bits.shape == dense.shape
    assert bits.words.dtype == np.uint64
    assert bits.words.shape == (dense.shape[0], -(-dense.shape[1] // 64))
    assert bits.words.flags.c_contiguous
    assert not bits.words.flags.writeable
    for i, row in enumerate(dense):
        for w, word in enumerate(bits.words[i]):
            assert int(word) == sum(int(bit) << j for j, bit in enumerate(row[64 * w : 64 * w + 64]))
    return True


# --- every operation on drawn tables


@given(matrices(n_cols=COLUMNS | st.just(0)), st.data())
def test_bits_are_packed_as_documented_and_converted_back(dense, data):
    bits = BitMatrix.from_dense(dense)
    assert same(bits, dense)
    for dtype in (np.uint8, bool, np.int64, np.float32):
        back = bits.to_dense(dtype)
        assert (back.dtype, back.flags.writeable) == (dtype, True)
        np.testing.assert_array_equal(back, dense)
    sparse = bits.to_sparse()
    assert (sparse.format, sparse.has_canonical_format) == ("csr", True)
    assert sparse.indices.dtype == sparse.indptr.dtype == np.int32
    np.testing.assert_array_equal(sparse.toarray(), dense)
    packed = bits.to_bytes()
    assert packed == np.packbits(dense, axis=1, bitorder="little").tobytes()
    for source in (packed, bytearray(packed), memoryview(packed)):
        assert same(BitMatrix.from_bytes(source, *dense.shape), dense)
    pickled = [pickle.loads(pickle.dumps(bits, protocol)) for protocol in (0, 5)]
    for copied in (*pickled, copy.copy(bits), copy.deepcopy(bits)):
        assert same(copied, dense)


@given(matrices(n_cols=COLUMNS | st.just(0)), st.data(), SEEDS)
def test_operations_are_those_of_numpy(dense, data, seed):
    bits, other = BitMatrix.from_dense(dense), random_bits(seed, *dense.shape, 0.5)
    rows, copies = data.draw(st.slices(len(dense))), data.draw(st.sampled_from((1, 8, 9)))
    n_taken = data.draw(st.sampled_from((0, 1, 63, 64, 65, 130)))
    columns = np.random.default_rng(seed).integers(-1, dense.shape[1], n_taken)
    assert same(bits[rows], dense[rows])
    assert same(bits.take_columns(columns), naive.take_columns(dense, columns))
    assert same(bits ^ BitMatrix.from_dense(other), dense ^ other)
    repeated = np.tile(dense, (copies, 1))
    assert same(BitMatrix.from_dense(repeated).T, repeated.T)
    assert bits.row_weights().dtype == bits.column_weights().dtype == np.int64
    np.testing.assert_array_equal(bits.row_weights(), dense.sum(1, dtype=int))
    np.testing.assert_array_equal(bits.column_weights(), dense.sum(0, dtype=int))
    assert bits.count() == dense.sum(dtype=int)
    assert bits.density == pytest.approx(dense.mean() if dense.size else 0)


@pytest.mark.filterwarnings("ignore:Constructing a DIA matrix")
@given(matrices(), st.sampled_from(FORMATS), st.booleans(), st.sampled_from(["uint8", "bool", "int64", "float64"]))
def test_sparse_tables_of_any_format_are_equal_and_those_with_another_bit_are_not(dense, form, as_matrix, dtype):
    make = sp.coo_matrix if as_matrix else sp.coo_array
    one, two = BitMatrix.from_dense(dense), BitMatrix.from_sparse(make(dense.astype(dtype)).asformat(form))
    assert same(two, dense)
    assert (one, hash(one)) == (two, hash(two))
    if dense.size:
        dense[-1, -1] ^= 1
        other = BitMatrix.from_dense(dense)
        assert one != other
        assert hash(one) != hash(other)


def test_equality_depends_on_shape_and_type():
    for shape in ((2, 3), (0, 3)):
        assert BitMatrix.zeros(*shape) != BitMatrix.zeros(shape[0], 4)
    assert hash(BitMatrix.zeros(2, 3)) != hash(BitMatrix.zeros(2, 4))
    assert BitMatrix.zeros(2, 3) != "zeros"


@pytest.mark.parametrize("n_rows", [15, 16, 17, 255, 256, 4095, 4097])
def test_column_weights_where_counters_are_full(n_rows):
    assert BitMatrix.from_dense(np.ones((n_rows, 65), bool)).column_weights().tolist() == [n_rows] * 65


# --- dense arrays


@pytest.mark.parametrize("dtype", DTYPES + OTHER_DTYPES)
def test_every_dtype_of_zeros_and_ones_packs_to_the_same_bits(dtype):
    for n_cols in WIDTHS:
        dense = random_bits(n_cols, 70, n_cols, 0.4)
        typed = dense.astype(dtype)
        expected = BitMatrix.from_dense(dense)
        assert BitMatrix.from_dense(typed) == expected
        assert BitMatrix.from_dense(np.asfortranarray(typed)) == expected
        assert BitMatrix.from_dense(np.repeat(typed, 2, axis=1)[:, ::2]) == expected
        assert BitMatrix.from_dense(typed[::-1])[::-1] == expected
        assert BitMatrix.from_dense(typed, binarize=0.5) == expected
        assert BitMatrix.from_dense(typed.tolist()) == expected or n_cols == 0


def test_tables_of_several_chunks():
    dense = random_bits(1, 9000, 131, 0.3)
    expected = BitMatrix.from_dense(dense)
    assert BitMatrix.from_dense(dense.astype(np.float32)) == expected
    assert BitMatrix.from_dense(dense.astype(np.int64)) == expected
    assert BitMatrix.from_dense(np.asfortranarray(dense.astype(np.float64)), binarize=0) == expected
    np.testing.assert_array_equal(expected.to_dense(), dense)


def test_array_protocol():
    bits = BitMatrix.from_dense(SOME)
    np.testing.assert_array_equal(np.asarray(bits), SOME)
    assert np.asarray(bits).dtype == np.uint8
    assert np.array(bits, dtype=float).dtype == float
    assert np.array_equal(bits, SOME)
    with pytest.raises(ValueError, match="cannot be returned as an array without a copy"):
        np.array(bits, copy=False)


@pytest.mark.parametrize("n_cols", [64, 100])
def test_bits_are_copied_from_their_source(n_cols):
    dense, buffer = np.zeros((2, n_cols), np.uint8), bytearray(2 * -(-n_cols // 8))
    for bits in (BitMatrix.from_dense(dense), BitMatrix.from_bytes(buffer, 2, n_cols)):
        dense[:], buffer[:] = 1, b"\xff" * len(buffer)
        bits.to_dense()[:] = 1
        assert bits.count() == 0
        dense[:], buffer[:] = 0, bytes(len(buffer))


# --- thresholds


@given(
    st.sampled_from(["int8", "uint8", "int64", "float32", "float64", "bool", "float16"]),
    st.sampled_from([-1000.0, -1, -0.5, 0, 0.3, 0.5, 1, 2.5, 3, 1000.0, 1e300, -1e300, np.float32(0.1)]),
    st.integers(0, 2**32 - 1),
)
def test_binarize_is_a_comparison(dtype, threshold, seed):
    dense = np.random.default_rng(seed).integers(-3, 5, (5, 70)).clip(0 if dtype == "uint8" else -3).astype(dtype)
    with np.errstate(over="ignore"):
        expected = dense > threshold
    np.testing.assert_array_equal(BitMatrix.from_dense(dense, threshold).to_dense(), expected)
    np.testing.assert_array_equal(BitMatrix.from_any(dense, threshold).to_dense(), expected)
    assert BitMatrix.from_dense([[2**53, 2**53 + 1]], float(2**53)).to_dense().tolist() == [[0, 1]]  # exactly
    if dtype != "float16":  # SciPy has no sparse float16
        np.testing.assert_array_equal(BitMatrix.from_any(sp.csr_array(dense), threshold).to_dense(), expected)


@pytest.mark.parametrize(("threshold", "expected"), [(-1, 1), (-0.5, 1), (0, SOME), (0.5, SOME), (1, 0), (7.5, 0)])
def test_binarize_of_packed_bits(threshold, expected):
    bits = BitMatrix.from_any(BitMatrix.from_dense(SOME), threshold)
    assert same(bits, np.broadcast_to(np.asarray(expected, np.uint8), SOME.shape))


# --- sparse matrices


def test_wide_sparse_matrices_are_not_converted_to_dense():
    rows, columns = np.array([0, 5, 10**6 - 1]), np.array([3 * 10**5, 0, 10**6 - 1])
    bits = BitMatrix.from_sparse(sp.coo_array((np.ones(3), (rows, columns)), shape=(10**6, 10**6)).tocsr()[rows])
    assert bits.shape == (3, 10**6)
    np.testing.assert_array_equal(bits.to_sparse().indices, columns)


def test_explicit_zeros_and_duplicate_entries_as_in_scipy():
    parts = ([1, -1, 1, 0, 2, -1], ([0, 0, 0, 1, 2, 2], [1, 1, 2, 0, 3, 3]))
    for S in (sp.coo_array(parts, shape=(3, 4)), sp.coo_matrix(parts, shape=(3, 4))):
        assert same(BitMatrix.from_sparse(S), S.toarray())
    duplicates = sp.csr_array(
        (np.array([0.5, 0.5, 0.0, 1.0]), np.array([2, 2, 1, 0]), np.array([0, 3, 4])), shape=(2, 3)
    )
    assert same(BitMatrix.from_sparse(duplicates), [[0, 0, 1], [1, 0, 0]])
    assert duplicates.nnz == 4  # not modified
    assert BitMatrix.from_sparse(duplicates, binarize=0.7).count() == 2


def test_unsorted_indices_unused_capacity_and_read_only_arrays():
    S = sp.csr_array((np.ones(3), np.array([2, 0, 1]), np.array([0, 2, 3])), shape=(2, 3))
    S.data, S.indices = np.append(S.data, 9), np.append(S.indices, 99)
    for index_type in (np.int32, np.int64):
        S.indices, S.indptr = S.indices.astype(index_type), S.indptr.astype(index_type)
        for array in (S.indices, S.indptr, S.data):
            array.flags.writeable = False
        assert same(BitMatrix.from_sparse(S), [[1, 0, 1], [0, 1, 0]])
    far = sp.dia_array((np.ones((3, 3)), np.array([0, 2**31 - 1, -(2**31)])), shape=(2, 3))
    assert same(BitMatrix.from_sparse(far), [[1, 0, 0], [0, 1, 0]])  # diagonals outside the matrix, as in SciPy


COMPRESSED = [("indices", 0, 99_999_999), ("indices", 0, -1), ("indptr", 1, 9), ("indptr", 0, 1), ("indptr", 1, -5)]
MALFORMED = dict.fromkeys(("csr", "csc", "bsr"), COMPRESSED) | {
    "coo": [("row", 0, 99_999_999), ("row", 0, -1), ("col", 0, 99_999_999), ("col", 0, -1)],
}


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
@pytest.mark.parametrize("make", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("form", MALFORMED)
def test_indices_out_of_bounds_raise(form, make, index_type):
    """SciPy's conversions would read and write out of bounds."""
    for attribute, i, value in MALFORMED[form]:
        S = make(SOME.astype(float)).asformat(form)
        for name in {attribute for attribute, _, _ in MALFORMED[form]}:
            setattr(S, name, getattr(S, name).astype(index_type))
        getattr(S, attribute)[i] = value
        for read in (BitMatrix.from_any, lambda S: Table.from_any(S, missing="zero")):
            with pytest.raises(ValueError, match=r"not a valid sparse matrix: .* (index outside 0|pointers do not)"):
                read(S)


@pytest.mark.parametrize(
    ("form", "changes", "message"),
    [
        ("csr", {"indptr": [0, 3]}, "row pointers do not match"),
        ("csr", {"data": np.ones(1)}, "row pointers do not match"),
        ("csr", {"data": np.ones((3, 1))}, "values do not match its shape"),
        ("csr", {"indices": [0.0, 1.0, 2.0]}, "column indices are not integers"),
        ("csc", {"indptr": [0, 3]}, "column pointers do not match"),
        ("bsr", {"data": np.ones((3, 2, 2))}, "values do not match its shape"),
        ("bsr", {"data": np.ones((3, 0, 1))}, "values do not match its shape"),
        ("coo", {"data": np.ones(2)}, "row indices do not match its values"),
        ("coo", {"coords": (np.zeros(3, int), np.zeros(2, int))}, "column indices do not match its values"),
        ("dia", {"offsets": np.zeros(9, int)}, "offsets do not match its diagonals"),
        ("lil", {"data": np.array([[1.0], [1.0] * 9999], object)}, "lists differ in length"),
        ("lil", {"rows": np.array([[0, 2], [1], [1]], object)}, "lists differ in length"),
        ("lil", {"rows": np.array([[99_999_999], [0, 1]], object)}, r"column index outside 0\.\.2"),
        ("lil", {"rows": np.array([[2**70], [0, 1]], object)}, ""),
        ("dok", {"_dict": {(99_999_999, 0): 1.0}}, ""),
        ("dok", {"_dict": {(0, -1): 1.0}}, ""),
    ],
)
def test_sparse_matrices_whose_arrays_do_not_match_raise(form, changes, message):
    S = sp.csr_array(SOME.astype(float)).asformat(form)
    for attribute, values in changes.items():
        setattr(S, attribute, np.array(values) if isinstance(values, list) else values)
    with pytest.raises(ValueError, match=f"X is not a valid sparse matrix: .*{message}"):
        BitMatrix.from_sparse(S)


# --- data frames and other tables


def test_frames_of_pandas_and_polars():
    frames = [
        pd.DataFrame(SOME),
        pd.DataFrame(SOME.astype(bool)),
        pd.DataFrame({"a": [False, True], "b": [1, 1], "c": [0.0, 0.0]}),
        pd.DataFrame({"a": pd.array([0, 1], "Int64"), "b": pd.array([True, True], "boolean"), "c": [False, False]}),
        pd.DataFrame(SOME).astype("Sparse[int]"),
        pd.DataFrame(SOME).astype("category"),
        pd.DataFrame(SOME, index=["x", "y"]),
        pl.DataFrame(SOME),
        pl.DataFrame({"a": [False, True], "b": [1, 1], "c": [0.0, 0.0]}),
    ]
    mixed = [[0, True, Fraction(0)], [Decimal(1), np.bool_(True), np.float32(0)]]
    for frame in (*frames, np.array(mixed, object)):
        assert same(BitMatrix.from_any(frame), SOME)
    bits = BitMatrix.from_dense(SOME)
    assert BitMatrix.from_any(bits) is bits


# --- invalid tables


@pytest.mark.parametrize(
    ("value", "shown"), [(2, "2"), (-1, "-1"), (0.5, "0.5"), (1.0000001, "1.0000001"), (255, "255"), (-3.25, "-3.25")]
)
def test_invalid_values_are_reported_with_row_and_column(value, shown):
    table = np.zeros((20, 70), np.asarray(value).dtype)
    table[14, 3] = table[15, 0] = value
    start, end = ("for counts, pass", "") if value in (2, 255) else ("pass", ", or another threshold")
    advice = f"{start} binarize=0 to read values above 0 as 1{end}"
    if value == 2:
        advice += "; for numbers of copies of an allele (0, 1 and 2), pass Table.from_any(X, dosage=True)"
    message = f"X contains values other than 0 and 1 (first: {shown} at row 14, column 3); {advice}"
    for X in (table, np.asfortranarray(table), table.tolist(), table.astype(object), sp.csr_array(table)):
        with pytest.raises(ValueError) as caught:
            BitMatrix.from_any(X)
        assert str(caught.value) == message


@pytest.mark.parametrize(
    ("value", "what", "binarize"),
    [
        (np.nan, r"a missing value \(NaN\)", None),
        (np.inf, r"an infinite value \(inf\)", 0.5),
        (-np.inf, r"an infinite value \(-inf\)", -2),
    ],
)
def test_missing_and_infinite_values_raise_even_with_a_threshold(value, what, binarize):
    table = np.zeros((5000, 70))
    table[0, 0] = 7  # the missing value is reported first: a threshold does not help
    table[4000, 69] = table[4001, 2] = value
    for X in (table, table.astype(np.float32), sp.csr_array(table), table[3999:].astype(object)):
        row = 4000 if X.shape[0] == 5000 else 1
        with pytest.raises(
            ValueError, match=rf"X contains {what} at row {row}, column \d+ \(2 in all\); fill or drop such"
        ):
            BitMatrix.from_any(X, binarize)


# --- indexing


@given(matrices(n_rows=st.integers(1, 9)), st.data())
def test_rows_by_indices_and_by_mask(dense, data):
    bits = BitMatrix.from_dense(dense)
    chosen = data.draw(st.lists(st.integers(-len(dense), len(dense) - 1)))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(dense), max_size=len(dense))))
    expected = dense[np.array(chosen, int)]
    assert same(bits[chosen], expected)
    assert same(bits[np.array(chosen, np.int32)], expected)
    assert same(bits[mask], dense[mask])
    assert same(bits[mask.tolist(), ...], dense[mask])
    assert same(bits[chosen, :], expected)


def test_one_row_is_a_dense_array_as_in_numpy():
    bits = BitMatrix.from_dense(SOME)
    for index in (1, -1, np.int64(1)):
        row = bits[index]
        assert row.dtype == np.uint8
        np.testing.assert_array_equal(row, SOME[1])
    np.testing.assert_array_equal(list(bits), SOME)


# --- printing


def test_repr_shows_shape_and_density():
    assert repr(BitMatrix.from_dense(SOME)) == "BitMatrix(2 x 3, density 0.5)"
    assert repr(BitMatrix.zeros(4088, 256)) == "BitMatrix(4088 x 256, density 0)"
    thirds = np.zeros((3, 100), bool)
    thirds[0] = True
    assert str(BitMatrix.from_dense(thirds)) == "BitMatrix(3 x 100, density 0.333)"


def test_bitmatrix_is_immutable():
    bits = BitMatrix.from_dense(SOME)
    with pytest.raises(AttributeError):
        bits.n_cols = 4
    with pytest.raises(ValueError, match="read-only"):
        bits.words[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        bits[:1].words[0, 0] = 1


# --- the constructor


def test_words_are_not_copied():
    words = np.array([[5], [2]], np.uint64)
    assert BitMatrix(words, 3).words is words
    words = np.array([[5], [2]], np.uint64)
    assert BitMatrix.from_words(words, 3, check=False).words is words
    assert not words.flags.writeable


# --- unknown cells

TABLE = np.array([[1, 0, np.nan], [np.nan, 1, 1]])
MASK = BitMatrix.from_dense(np.isnan(TABLE))
INCOMPLETE = BitMatrix.from_any(TABLE, missing="unknown")


@st.composite
def incomplete_tables(draw):
    """Draw tables with 2 in unknown cells."""
    X = draw(matrices())
    X[random_bits(draw(SEEDS), *X.shape, draw(SHARES)) == 1] = 2
    return X


def with_nan(X):
    return np.where(X > 1, np.nan, X)


@given(incomplete_tables(), st.sampled_from(("C", "F")), st.sampled_from((np.float32, np.float64, object)))
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
    assert BitMatrix.from_any(INCOMPLETE, threshold, missing="unknown").unknown == MASK


def test_unknown_cells_have_no_value_and_are_filled_on_request():
    one, other = BitMatrix.from_dense(TABLE == 1), BitMatrix.from_dense(TABLE != 0)
    assert one != other
    assert one.with_unknown(MASK) == other.with_unknown(MASK) == INCOMPLETE != one
    assert hash(one.with_unknown(MASK)) == hash(other.with_unknown(MASK))
    assert BitMatrix.from_any(INCOMPLETE, missing="zero") == INCOMPLETE.filled()
    assert BitMatrix.from_any(INCOMPLETE, missing="unknown") is INCOMPLETE
    both = np.ma.array([[1, 0, np.nan], [9, 1, 1]], mask=[[0, 0, 0], [1, 0, 0]])
    assert BitMatrix.from_any(both, missing="unknown") == INCOMPLETE
    assert repr(INCOMPLETE) == "BitMatrix(2 x 3, density 0.75, 2 cells unknown)"


@given(incomplete_tables(), st.data())
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
    np.testing.assert_array_equal(bits.n_known, naive.known(X).sum(axis=0))
    assert bits.n_unknown == (X > 1).sum()
    assert bits.density == (X == 1).sum() / max(1, (X <= 1).sum())


@given(incomplete_tables(), SEEDS)
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
    bits = INCOMPLETE
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


@given(incomplete_tables())
def test_sparse_arrays_hold_nan(X):
    sparse = bits_of(X).to_sparse()
    np.testing.assert_array_equal(sparse.toarray(), with_nan(X))
    assert sparse.dtype == (np.float64 if (X > 1).any() else np.uint8)


# --- invalid calls

BITS, WORDS = BitMatrix.from_dense(SOME), np.zeros((2, 2), np.uint64)
LATE = np.zeros((9000, 131))
LATE[8000, 130], LATE[8500, 2] = 3, 4
FRAMES = [
    (pd.DataFrame({"a": [0, 1], "b": [1.0, np.nan]}), r"\(NaN\) at row 1, column 1"),
    (pd.DataFrame({"a": [True, None], "b": [1, 0]}), r"\(None\) at row 1, column 0"),
    (pd.DataFrame({"a": pd.array([None, True], "boolean")}), r"\(NA\) at row 0, column 0"),
    (pl.DataFrame({"a": [0, 1], "b": [None, True]}), r"\(None\) at row 0, column 1"),
    (pl.DataFrame({"a": [0, 1], "b": [None, 1]}), r"\(NaN\) at row 0, column 1"),
]


def matrix(words, n_cols):
    return lambda: BitMatrix(words, n_cols)


def read(X, **how):
    return lambda: BitMatrix.from_any(X, **how)


def rows(index, table=BITS):
    return lambda: table[index]


def columns(index):
    return lambda: BITS.take_columns(index)


COMPLEX = "Complex data not supported: X contains complex numbers"
NO_NUMBERS = "X must contain numbers, but its dtype is"
NOT_A_NUMBER = r"X contains something that is not a number \(.*argument must be .* string.*\) at row 0, column 1"
NOT_WORDS = r"words must be a 2-D array of uint64; BitMatrix\.from_any packs"
POSITIONS = "a BitMatrix is indexed by the positions of rows"
ROWS_ONLY = "a BitMatrix is indexed by rows only; select columns with take_columns"
INTEGERS = "1-D sequence of integers"
INVALID = [
    (read([0, 1, 1]), ValueError, r"Expected 2D array, got 1D array instead: X has shape \(3,\)\. Reshape"),
    (read(1), ValueError, "Expected 2D array, got scalar array instead: X is of type int"),
    (read(None), ValueError, "Expected 2D array, got scalar array instead: X is of type NoneType"),
    (read(np.zeros((1, 2, 3))), ValueError, r"Expected 2D array, got 3D array instead: X has shape \(1, 2, 3\)"),
    (read(sp.coo_array([0, 1])), ValueError, "Expected 2D array, got 1D array instead"),
    (read([[0, 1], [0]]), ValueError, "X is not a table: "),
    (read([[2]], name="atoms"), ValueError, "^atoms contains values other than 0 and 1"),
    (read(sp.csr_array([[2]]), name="atoms"), ValueError, "^atoms contains values other than 0 and 1"),
    (read(LATE), ValueError, "first: 3 at row 8000, column 130"),
    (read(np.ma.array(SOME, mask=SOME == 1)), ValueError, r"value \(masked\) at row 0, column 1 \(3 in all\)"),
    *((read(X, binarize=at), ValueError, COMPLEX) for X in ([[1j, 0]], sp.csr_array([[1j]])) for at in (None, 0.5)),
    (read(np.array([[0, 1j]], object)), ValueError, COMPLEX),
    (read(np.array([[np.complex64(1), 0]], object), binarize=0.5), ValueError, COMPLEX),
    *((read(X), ValueError, NO_NUMBERS) for X in ([["0", "1"]], [[b"0", b"1"]])),
    (read(np.array([["2020-01-01"]], "datetime64[D]"), binarize=0.5), ValueError, NO_NUMBERS),
    (read(np.array([[0, 1], ["1", 0]], object)), ValueError, r"X contains text \('1'\) at row 1, column 0; con"),
    (read(np.array([[0, {}], [1, 0]], object), binarize=0.5), TypeError, NOT_A_NUMBER),
    *(
        (read(X, binarize=threshold), ValueError, "binarize must be None or a finite number, not")
        for X in (SOME, sp.csr_array(SOME), BITS)
        for threshold in ("0.5", True, np.nan, np.inf, [0.5], 1j)
    ),
    (lambda: BitMatrix.from_dense(sp.csr_array(SOME)), TypeError, r"X is sparse; use BitMatrix\.from_sparse or BitMat"),
    (lambda: BitMatrix.from_sparse(SOME), TypeError, "X must be a SciPy sparse matrix or array, got ndarray"),
    (lambda: BitMatrix.from_bytes(b"\0\0\0", 2, 9), ValueError, "2 rows of 9 bits take 2 x 2 = 4 bytes, got 3"),
    (lambda: BitMatrix.from_bytes(b"\0\1\0\2", 2, 9), ValueError, r"past column 9 must be zero; row 1 has .* \(1 rows"),
    (lambda: BitMatrix.from_bytes(b"", -1, 9), ValueError, "n_rows must not be negative, got -1"),
    (lambda: BitMatrix.zeros(-2, 3), ValueError, "n_rows must not be negative, got -2"),
    *((matrix(words, 1), TypeError, NOT_WORDS) for words in ([[0]], WORDS.astype(np.int64), WORDS[0])),
    (matrix(WORDS, 64), ValueError, "64 columns take 1 words per row, not 2"),
    (matrix(np.asfortranarray(WORDS), 70), ValueError, "words must be C-contiguous"),
    (matrix(np.array([[0, 1 << 6]], np.uint64), 70), ValueError, "words hold ones past column 70"),
    (matrix(WORDS, -1), ValueError, "n_cols must not be negative, got -1"),
    *((rows(index), IndexError, f"row {index} is out of range for a BitMatrix of 2 rows") for index in (2, -3)),
    *(
        (rows(index, table), IndexError, None)
        for index in ([0, 2], [-3], [True], [True] * 3, [0.5], True)
        for table in (BITS, SparseBits.from_bits(BITS))
    ),
    *((rows(i), IndexError, ROWS_ONLY) for i in ((0, 1), (0, 1, 2), (slice(None), slice(0, 1)), (slice(None), [0]))),
    *((rows(index), IndexError, POSITIONS) for index in ("milk", ["milk"], np.array(["milk", 1], object))),
    (rows([0.5]), IndexError, "by integers, booleans or a slice, not by values of type float64"),
    (rows([[0, 1]]), IndexError, "not a 2-D one"),
    (columns([0, 3]), IndexError, "column 3 is out of range for a BitMatrix of 3 col"),
    (columns([-2, 0]), IndexError, "column -2 is out of range for a BitMatrix of 3 col"),
    *((columns(index), TypeError, INTEGERS) for index in ([[0, 1]], [0.5], [True], 3)),
    (lambda: BITS ^ BITS.T, ValueError, r"shapes \(2, 3\) and \(3, 2\) differ"),
    (lambda: BITS ^ 1, TypeError, None),
    # Cells that are missing, or unknown.
    *(
        (
            read(frame, binarize=threshold),
            MissingCell,
            rf"a missing value {what} \(1 in all\); fill or drop such values",
        )
        for frame, what in FRAMES
        for threshold in (None, 0.5)
    ),
    *((read([[np.nan, 1], [2, 0]], missing=how), ValueError, "2 at row 1, column 0") for how in ("unknown", "zero")),
    *((read([[np.nan], [np.inf]], missing=how), MissingCell, "infinite .* row 1") for how in ("unknown", "zero")),
    (read(INCOMPLETE, name="init"), MissingCell, "init contains an unknown value at row 0"),
    (lambda: BitMatrix(MASK.words, 3, MASK), ValueError, "ones in unknown cells"),
    (lambda: BitMatrix.zeros(2, 3).with_unknown(BitMatrix.zeros(2, 4)), ValueError, "2 x 3"),
]


@pytest.mark.parametrize(("call", "error", "message"), INVALID)
def test_invalid_calls_are_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


# --- sparse tables by their ones


TABLES = st.builds(
    random_bits, st.integers(0, 99), st.sampled_from((0, 1, 63, 64, 65, 130)), st.sampled_from((1, 64, 65, 200)),
    st.sampled_from((0.0, 0.02, 0.3, 1.0)),
)  # fmt: skip


@given(TABLES, st.integers(0, 9))
def test_same_as_packed(X, seed):
    bits, sparse = BitMatrix.from_dense(X), SparseBits.from_bits(BitMatrix.from_dense(X))
    assert SparseBits.from_cells(*np.nonzero(X), X.shape) == sparse
    assert (sparse.shape, len(sparse), sparse.count()) == (bits.shape, len(X), bits.count())
    np.testing.assert_array_equal(sparse.n_known, np.full(X.shape[1], len(X)))
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
    assert sparse.T.bits == bits.T
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
    np.testing.assert_array_equal(sparse.T.to_dense(), X.T)
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
