"""Tables that offer Arrow's C stream, such as results of DuckDB: read once, with their names, as data frames are."""

from decimal import Decimal

import numpy as np
import pytest

import bitatoms as ba

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.usefixtures("few_trials")


class Stream:
    """A table of another library, whose stream can be read only once."""

    def __init__(self, columns, rows_per_batch=7, metadata=None):
        table = columns if isinstance(columns, pa.Table) else pa.table(columns)
        self._batches = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(rows_per_batch))

    def __arrow_c_stream__(self, requested_schema=None):
        batches, self._batches = self._batches, None
        assert batches is not None, "the stream is read twice"
        return batches.__arrow_c_stream__(requested_schema)


def reader(columns):
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(7))


BITS = np.random.default_rng(0).integers(0, 2, (60, 6))
FRAME = pd.DataFrame(BITS, columns=[f"f{number}" for number in range(6)])
STREAMS = (Stream, reader)


@pytest.fixture(scope="module")
def model():
    return ba.BinaryDictionaryLearning(2, algebra="xor", random_state=0).fit(FRAME)


@pytest.mark.parametrize("stream", STREAMS)
def test_values_of_all_types_are_those_of_a_pyarrow_table(stream):
    table = pa.table(
        {
            "number": pa.array([1, 0, None, 1] * 5, pa.int8()),
            "boolean": pa.array([True, None, False, False] * 5),
            "float": [0.0, 1.0, float("nan"), 1.0] * 5,
            "decimal": [Decimal(1), Decimal("0.0"), None, Decimal(1)] * 5,
            "dictionary": pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 1] * 5), pa.array([0, 1])),
        }
    )
    read = ba.Table.from_any(stream(table))
    assert read == ba.Table.from_any(table)
    assert read.columns == tuple(table.column_names)
    np.testing.assert_array_equal(read.to_dense(float)[:3, :3], [[1, 1, 0], [0, np.nan, 1], [np.nan, 0, np.nan]])
    indexed = pa.Table.from_pandas(FRAME.set_axis([f"r{row}" for row in range(60)]))
    assert ba.Table.from_any(stream(indexed)).row_names == tuple(f"r{row}" for row in range(60))
    assert ba.Table.from_any(stream(pa.table({"a": pa.array([], pa.int8())}))).shape == (0, 1)


@pytest.mark.parametrize("stream", STREAMS)
def test_models_are_fitted_and_applied(stream, model):
    own = ba.BinaryDictionaryLearning(2, algebra="xor", random_state=0).fit(stream(pa.table(FRAME)))
    assert list(own.feature_names_in_) == list(FRAME)
    codes = model.transform(FRAME)
    np.testing.assert_array_equal(own.transform(stream(pa.table(FRAME[FRAME.columns[::-1]]))), codes)
    np.testing.assert_array_equal(model.score_samples(stream(pa.table(FRAME))), model.score_samples(FRAME))
    imputer = ba.BinaryImputer(algebra="xor", method="neighbours", random_state=0).fit(stream(pa.table(FRAME)))
    assert list(imputer.feature_names_in_) == list(FRAME)


@pytest.mark.parametrize("stream", STREAMS)
def test_functions_read_a_stream_once(stream, model, tmp_path):
    given = pa.table(FRAME)
    expected = ba.factorize(FRAME, 2, algebra="xor", random_state=0)
    assert ba.factorize(stream(given), 2, algebra="xor", random_state=0).atoms == expected.atoms
    costs = {"false_positive_cost": {"f1": 2}, "algebra": "or"}
    named = [ba.factorize(X, 2, random_state=0, **costs) for X in (FRAME, stream(given))]
    assert named[0].atoms == named[1].atoms
    assert ba.codelength(stream(given)).total == ba.codelength(FRAME).total
    assert ba.cover(stream(given), max_iter=1).codes == ba.cover(FRAME, max_iter=1).codes
    assert ba.proximus(stream(given), random_state=0).atoms == ba.proximus(FRAME, random_state=0).atoms
    assert ba.cross_validate_cells(stream(given), [1], n_folds=1).best
    ba.write(stream(given), tmp_path / "table.csv")
    assert ba.read(tmp_path / "table.csv") == ba.Table.from_any(FRAME)
    ba.write_report(model, stream(given), tmp_path / "report.html")
    pytest.importorskip("zarr")
    ba.pack(stream(given), tmp_path / "rows.zarr")
    assert ba.read(tmp_path / "rows.zarr") == ba.Table.from_any(FRAME)


@pytest.mark.parametrize("stream", STREAMS)
def test_categories_are_encoded(stream):
    frame = {"colour": ["red", "blue", None, "red"] * 5, "age": [20.5, 30, 41, None] * 5, "pets": [0, 1, 1, 0] * 5}
    table = ba.encode(stream(frame), bins=2)
    assert table == ba.encode(frame, bins=2)
    encoding = ba.Encoding.of(table)
    assert encoding.apply(stream(frame)) == table
    filled = table.with_bits(table.bits.filled())
    assert encoding.decode(filled, stream(frame)) == encoding.decode(filled, frame)
    encoder = ba.CategoryEncoder(bins=2).fit(stream(frame))
    assert list(encoder.feature_names_in_) == list(frame)
    assert encoder.transform(stream(frame)) == table
    learned = ba.BinaryDictionaryLearning(2, algebra="xor", random_state=0).fit(table)
    np.testing.assert_array_equal(learned.transform(stream(frame)), learned.transform(table))


def test_results_of_duckdb(model):
    duckdb = pytest.importorskip("duckdb")
    own = ba.BinaryDictionaryLearning(2, random_state=0).fit(duckdb.from_df(FRAME))
    codes = own.transform(duckdb.from_df(FRAME).filter("f0 = 1"))
    assert isinstance(codes, pa.Table)
    np.testing.assert_array_equal(codes.to_pandas(), model.transform(FRAME[FRAME["f0"] == 1]))


def test_what_cannot_be_read():
    with pytest.raises(ba.InputError, match=r"first: 2 at row 1, column 0 \('a'\)\); for counts, pass binarize=0"):
        ba.BinaryDictionaryLearning(algebra="xor").fit(Stream({"a": [1, 2]}))
    with pytest.raises(TypeError, match="not a table"):
        ba.Table.from_any({"a": [1, 0]})
