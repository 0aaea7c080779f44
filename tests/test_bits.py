"""BitMatrix: conversions round-trip at awkward widths, and invalid input raises errors that name the cell."""

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

import naive
from bitatoms import BinaryDictionaryLearning, BitMatrix, Table
from bitatoms.sparse_bits import SparseBits
from support.strategies import matrices, random_bits

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


# --- dense arrays


@given(matrices())
def test_bits_are_packed_as_documented(dense):
    bits = BitMatrix.from_dense(dense)
    assert same(bits, dense)
    back = bits.to_dense()
    assert back.dtype == np.uint8
    assert back.flags.writeable
    np.testing.assert_array_equal(back, dense)


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


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.float32, np.float64])
def test_to_dense_dtype(dtype):
    dense = BitMatrix.from_dense(SOME).to_dense(dtype)
    assert dense.dtype == dtype
    np.testing.assert_array_equal(dense, SOME.astype(dtype))


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
    if dtype != "float16":  # SciPy has no sparse float16
        np.testing.assert_array_equal(BitMatrix.from_any(sp.csr_array(dense), threshold).to_dense(), expected)


def test_large_integers_are_compared_exactly():
    dense = np.array([[2**53, 2**53 + 1]])
    np.testing.assert_array_equal(BitMatrix.from_dense(dense, float(2**53)).to_dense(), [[0, 1]])


@pytest.mark.parametrize(("threshold", "expected"), [(-1, 1), (-0.5, 1), (0, SOME), (0.5, SOME), (1, 0), (7.5, 0)])
def test_binarize_of_packed_bits(threshold, expected):
    bits = BitMatrix.from_any(BitMatrix.from_dense(SOME), threshold)
    assert same(bits, np.broadcast_to(np.asarray(expected, np.uint8), SOME.shape))


@pytest.mark.parametrize("threshold", ["0.5", True, np.nan, np.inf, [0.5], 1j])
def test_invalid_threshold(threshold):
    for X in (SOME, sp.csr_array(SOME), BitMatrix.from_dense(SOME)):
        with pytest.raises(ValueError, match="binarize must be None or a finite number, got"):
            BitMatrix.from_any(X, threshold)


# --- sparse matrices


@pytest.mark.filterwarnings("ignore:Constructing a DIA matrix")
@given(matrices(), st.sampled_from(FORMATS), st.booleans(), st.sampled_from(["uint8", "bool", "int64", "float64"]))
def test_sparse_of_any_format(dense, form, as_matrix, dtype):
    make = sp.coo_matrix if as_matrix else sp.coo_array
    bits = BitMatrix.from_sparse(make(dense.astype(dtype)).asformat(form))
    assert same(bits, dense)


@given(matrices())
def test_sparse_round_trip(dense):
    bits = BitMatrix.from_dense(dense)
    sparse = bits.to_sparse()
    assert sparse.format == "csr"
    assert sparse.has_canonical_format
    assert sparse.indices.dtype == sparse.indptr.dtype == np.int32
    np.testing.assert_array_equal(sparse.toarray(), dense)
    assert BitMatrix.from_sparse(sparse) == bits


@given(matrices(), st.sampled_from([-1.0, -0.5]))
def test_implicit_zeros_exceed_a_negative_threshold(dense, threshold):
    spread = np.where(dense, -2.0, 0.0)
    assert same(BitMatrix.from_sparse(sp.csr_array(spread), binarize=threshold), 1 - dense)


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


def test_unsorted_indices_and_unused_capacity():
    S = sp.csr_array((np.ones(3), np.array([2, 0, 1]), np.array([0, 2, 3])), shape=(2, 3))
    S.data, S.indices = np.append(S.data, 9), np.append(S.indices, 99)
    assert same(BitMatrix.from_sparse(S), [[1, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_index_types_and_read_only_arrays(index_type):
    S = sp.csr_array(SOME)
    S.indices, S.indptr = S.indices.astype(index_type), S.indptr.astype(index_type)
    for array in (S.indices, S.indptr, S.data):
        array.flags.writeable = False
    assert same(BitMatrix.from_sparse(S), SOME)


MALFORMED = {
    "csr": [("indices", 0, 99_999_999), ("indices", 0, -1), ("indptr", 1, 9), ("indptr", 0, 1), ("indptr", 1, -5)],
    "csc": [("indices", 0, 99_999_999), ("indices", 0, -1), ("indptr", 1, 9), ("indptr", 0, 1), ("indptr", 1, -5)],
    "bsr": [("indices", 0, 99_999_999), ("indices", 0, -1), ("indptr", 1, 9), ("indptr", 0, 1), ("indptr", 1, -5)],
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
        with pytest.raises(ValueError, match=r"X is not a valid sparse matrix: .* (index outside 0|pointers do not)"):
            BitMatrix.from_any(S)
        with pytest.raises(ValueError, match="X is not a valid sparse matrix"):
            Table.from_any(S, missing="zero")
        with pytest.raises(ValueError, match="X is not a valid sparse matrix"):
            BinaryDictionaryLearning().fit(S)


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


def test_diagonals_outside_the_matrix_are_ignored_as_in_scipy():
    S = sp.dia_array((np.ones((3, 3)), np.array([0, 2**31 - 1, -(2**31)])), shape=(2, 3))
    assert same(BitMatrix.from_sparse(S), [[1, 0, 0], [0, 1, 0]])


# --- bytes


@given(matrices())
def test_bytes_round_trip(dense):
    bits = BitMatrix.from_dense(dense)
    data = bits.to_bytes()
    assert data == np.packbits(dense, axis=1, bitorder="little").tobytes()
    for source in (data, bytearray(data), memoryview(data)):
        assert same(BitMatrix.from_bytes(source, *dense.shape), dense)


def test_bytes_of_wrong_length_or_with_ones_in_the_padding():
    with pytest.raises(ValueError, match=r"2 rows of 9 bits take 2 x 2 = 4 bytes, got 3"):
        BitMatrix.from_bytes(b"\0\0\0", 2, 9)
    with pytest.raises(ValueError, match=r"past column 9 must be zero; row 1 has ones there \(1 rows in total\)"):
        BitMatrix.from_bytes(b"\0\1\0\2", 2, 9)
    with pytest.raises(ValueError, match="n_rows must not be negative, got -1"):
        BitMatrix.from_bytes(b"", -1, 9)


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
    for frame in frames:
        assert same(BitMatrix.from_any(frame), SOME)


@pytest.mark.parametrize(
    ("frame", "what", "row", "column"),
    [
        (pd.DataFrame({"a": [0, 1], "b": [1.0, np.nan]}), "NaN", 1, 1),
        (pd.DataFrame({"a": [True, None], "b": [1, 0]}), "None", 1, 0),
        (pd.DataFrame({"a": pd.array([1, None], "Int64"), "b": [True, False]}), "NA", 1, 0),
        (pd.DataFrame({"a": pd.array([None, True], "boolean")}), "NA", 0, 0),
        (pl.DataFrame({"a": [0, 1], "b": [None, True]}), "None", 0, 1),
        (pl.DataFrame({"a": [0, 1], "b": [None, 1]}), "NaN", 0, 1),
    ],
)
@pytest.mark.parametrize("binarize", [None, 0.5])
def test_missing_values_in_frames_raise(frame, what, row, column, binarize):
    message = (
        rf"X contains a missing value \({what}\) at row {row}, column {column} \(1 in all\); fill or drop such values"
    )
    with pytest.raises(ValueError, match=message):
        BitMatrix.from_any(frame, binarize)


def test_objects_that_are_numbers():
    mixed = [[0, True, 1.0], [Fraction(0), Decimal(1), np.float32(0)], [np.bool_(True), np.int8(1), np.uint64(0)]]
    assert same(BitMatrix.from_any(np.array(mixed, object)), [[0, 1, 1], [0, 1, 0], [1, 1, 0]])


def test_from_any_returns_a_bitmatrix_unchanged():
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
    for X in (
        table,
        np.asfortranarray(table),
        table.tolist(),
        table.astype(object),
        sp.csr_array(table),
        sp.csc_array(table),
    ):
        with pytest.raises(ValueError) as caught:
            BitMatrix.from_any(X)
        assert str(caught.value) == message


def test_messages_use_the_name_of_the_table():
    for X in ([[2]], sp.csr_array([[2]])):
        with pytest.raises(ValueError, match=r"^atoms contains values other than 0 and 1"):
            BitMatrix.from_any(X, name="atoms")


def test_invalid_value_after_the_first_chunk():
    table = np.zeros((9000, 131))
    table[8000, 130], table[8500, 2] = 3, 4
    with pytest.raises(ValueError, match=r"first: 3 at row 8000, column 130"):
        BitMatrix.from_dense(table)


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


def test_masked_values_raise():
    masked = np.ma.masked_array(SOME, mask=SOME == 1)
    with pytest.raises(ValueError, match=r"X contains a missing value \(masked\) at row 0, column 1 \(3 in all\)"):
        BitMatrix.from_any(masked)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([0, 1, 1], r"Expected 2D array, got 1D array instead: X has shape \(3,\)\. Reshape your data"),
        (1, "Expected 2D array, got scalar array instead: X is of type int"),
        (None, "Expected 2D array, got scalar array instead: X is of type NoneType"),
        (np.zeros((1, 2, 3)), r"Expected 2D array, got 3D array instead: X has shape \(1, 2, 3\)"),
        (sp.coo_array([0, 1]), "Expected 2D array, got 1D array instead"),
        ([[0, 1], [0]], "X is not a table: "),
    ],
)
def test_invalid_shapes(X, message):
    with pytest.raises(ValueError, match=message):
        BitMatrix.from_any(X)


@pytest.mark.parametrize("binarize", [None, 0.5])
def test_values_that_are_not_numbers(binarize):
    for X in ([[1j, 0]], np.array([[0, 1j]], object), np.array([[np.complex64(1), 0]], object), sp.csr_array([[1j]])):
        with pytest.raises(ValueError, match="Complex data not supported: X contains complex numbers"):
            BitMatrix.from_any(X, binarize)
    for X in ([["0", "1"]], [[b"0", b"1"]], np.array([["2020-01-01"]], "datetime64[D]")):
        with pytest.raises(ValueError, match="X must contain numbers, but its dtype is"):
            BitMatrix.from_any(X, binarize)
    with pytest.raises(ValueError, match=r"X contains text \('1'\) at row 1, column 0; convert it to numbers first"):
        BitMatrix.from_any(np.array([[0, 1], ["1", 0]], object), binarize)
    with pytest.raises(
        TypeError,
        match=r"X contains something that is not a number \(.*argument must be .* string.*\) at row 0, column 1",
    ):
        BitMatrix.from_any(np.array([[0, {}], [1, 0]], object), binarize)


def test_from_dense_and_from_sparse_check_the_type():
    with pytest.raises(TypeError, match=r"X is sparse; use BitMatrix\.from_sparse or BitMatrix\.from_any"):
        BitMatrix.from_dense(sp.csr_array(SOME))
    with pytest.raises(TypeError, match="X must be a SciPy sparse matrix or array, got ndarray"):
        BitMatrix.from_sparse(SOME)


# --- empty tables


@pytest.mark.parametrize("shape", [(0, 0), (0, 5), (5, 0), (0, 64), (64, 0)])
def test_tables_without_rows_or_columns(shape):
    for bits in (BitMatrix.from_any(np.zeros(shape)), BitMatrix.from_any(sp.csr_array(shape)), BitMatrix.zeros(*shape)):
        assert same(bits, np.zeros(shape))
        assert bits.to_dense().shape == bits.to_sparse().shape == shape
        assert bits.T.shape == shape[::-1]
        assert bits.row_weights().tolist() == [0] * shape[0]
        assert bits.column_weights().tolist() == [0] * shape[1]
        assert (bits.count(), bits.density) == (0, 0.0)
        assert bits == BitMatrix.zeros(*shape)
        assert pickle.loads(pickle.dumps(bits)) == bits
    assert len(bits) == shape[0]


# --- indexing


@given(matrices(), st.data())
def test_rows_by_slice(dense, data):
    rows = data.draw(st.slices(len(dense)))
    assert same(BitMatrix.from_dense(dense)[rows], dense[rows])


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


def test_invalid_indices():
    bits = BitMatrix.from_dense(SOME)
    for index in (2, -3):
        with pytest.raises(IndexError, match=f"row {index} is out of range for a BitMatrix of 2 rows"):
            bits[index]
    for rows in ([0, 2], [-3], [True], [True] * 3, [0.5], True):
        for selected in (bits, SparseBits.from_bits(bits)):
            with pytest.raises(IndexError):
                selected[rows]
    for rows in ((0, 1), (0, 1, 2), (slice(None), slice(0, 1)), (slice(None), [0])):
        with pytest.raises(IndexError, match="a BitMatrix is indexed by rows only; select columns with take_columns"):
            bits[rows]
    for rows in ("milk", ["milk"], np.array(["milk", 1], object)):
        with pytest.raises(IndexError, match="a BitMatrix is indexed by the positions of rows"):
            bits[rows]
    with pytest.raises(IndexError, match="by integers, booleans or a slice, not by values of type float64"):
        bits[[0.5]]
    with pytest.raises(IndexError, match="not a 2-D one"):
        bits[[[0, 1]]]


# --- weights, transpose, XOR


@given(matrices())
def test_weights_count_the_ones(dense):
    bits = BitMatrix.from_dense(dense)
    assert bits.row_weights().dtype == bits.column_weights().dtype == np.int64
    np.testing.assert_array_equal(bits.row_weights(), dense.sum(1, dtype=int))
    np.testing.assert_array_equal(bits.column_weights(), dense.sum(0, dtype=int))
    assert bits.count() == dense.sum(dtype=int)
    assert bits.density == pytest.approx(dense.mean() if dense.size else 0)


@pytest.mark.parametrize("n_rows", [15, 16, 17, 255, 256, 4095, 4097])
def test_column_weights_where_counters_are_full(n_rows):
    assert BitMatrix.from_dense(np.ones((n_rows, 65), bool)).column_weights().tolist() == [n_rows] * 65


@given(matrices(), st.sampled_from([1, 8, 9]))
def test_transpose_exchanges_rows_and_columns(dense, copies):
    dense = np.tile(dense, (copies, 1))
    bits = BitMatrix.from_dense(dense)
    assert same(bits.T, dense.T)
    assert bits.transpose().transpose() == bits


@given(matrices(), st.sampled_from([0, 1, 63, 64, 65, 130]), st.integers(0, 2**32 - 1))
def test_take_columns(dense, n_taken, seed):
    columns = np.random.default_rng(seed).integers(-1, dense.shape[1], n_taken)
    assert same(BitMatrix.from_dense(dense).take_columns(columns), naive.take_columns(dense, columns))


def test_take_columns_checks_indices():
    bits = BitMatrix.from_dense(np.eye(3, 65, dtype=np.uint8))
    for wrong in ([0, 65], [-2, 0]):
        with pytest.raises(IndexError, match=f"column {max(wrong, key=abs)} is out of range for a BitMatrix of 65 col"):
            bits.take_columns(wrong)
    for wrong in ([[0, 1]], [0.5], [True], 3):
        with pytest.raises(TypeError, match="1-D sequence of integers"):
            bits.take_columns(wrong)


@given(matrices(), st.integers(0, 2**32 - 1))
def test_xor(dense, seed):
    other = random_bits(seed, *dense.shape, 0.5)
    assert same(BitMatrix.from_dense(dense) ^ BitMatrix.from_dense(other), dense ^ other)


def test_xor_requires_equal_shapes():
    with pytest.raises(ValueError, match=r"shapes \(2, 3\) and \(3, 2\) differ"):
        BitMatrix.from_dense(SOME) ^ BitMatrix.from_dense(SOME.T)
    with pytest.raises(TypeError):
        BitMatrix.from_dense(SOME) ^ 1


# --- equality, hashing, pickling, printing


@given(matrices())
def test_equality_and_hash(dense):
    one, two = BitMatrix.from_dense(dense), BitMatrix.from_sparse(sp.csr_array(dense))
    assert one == two
    assert hash(one) == hash(two)
    if dense.size:
        changed = dense.copy()
        changed[-1, -1] ^= 1
        assert one != BitMatrix.from_dense(changed)
        assert hash(one) != hash(BitMatrix.from_dense(changed))


def test_equality_depends_on_shape_and_type():
    assert BitMatrix.zeros(2, 3) != BitMatrix.zeros(2, 4)
    assert BitMatrix.zeros(0, 3) != BitMatrix.zeros(0, 4)
    assert hash(BitMatrix.zeros(2, 3)) != hash(BitMatrix.zeros(2, 4))
    assert BitMatrix.zeros(2, 3) != "zeros"


@given(matrices(), st.sampled_from(range(pickle.HIGHEST_PROTOCOL + 1)))
def test_pickles_and_copies_are_read_only(dense, protocol):
    bits = BitMatrix.from_dense(dense)
    assert same(pickle.loads(pickle.dumps(bits, protocol)), dense)
    assert same(copy.copy(bits), dense)
    assert same(copy.deepcopy(bits), dense)


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


def test_invalid_words():
    words = np.zeros((2, 2), np.uint64)
    for wrong in ([[0]], words.astype(np.int64), words[0]):
        with pytest.raises(TypeError, match=r"words must be a 2-D array of uint64; BitMatrix\.from_any packs"):
            BitMatrix(wrong, 1)
    with pytest.raises(ValueError, match="64 columns take 1 words per row, not 2"):
        BitMatrix(words, 64)
    with pytest.raises(ValueError, match="words must be C-contiguous"):
        BitMatrix(np.asfortranarray(words), 70)
    with pytest.raises(ValueError, match="words hold ones past column 70"):
        BitMatrix(np.array([[0, 1 << 6]], np.uint64), 70)
    with pytest.raises(ValueError, match="n_cols must not be negative, got -1"):
        BitMatrix(words, -1)
    with pytest.raises(ValueError, match="n_rows must not be negative, got -2"):
        BitMatrix.zeros(-2, 3)
