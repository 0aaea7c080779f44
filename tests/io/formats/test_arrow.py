"""Parquet, Feather and Arrow files: round trips, files of pandas and polars, malformed files."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather, ipc, parquet

import bitatoms as ba
from bitatoms.errors import InputWarning
from support.files import assert_read_error
from support.formats import use_small_chunks
from support.strategies import random_bits

FORMATS = ("parquet", "feather")
BITS = [[1, 0], [1, 1]]
ANN = ba.Table(ba.BitMatrix.from_dense(BITS), ["ann", "bob"], ["milk", "bread"])
FRAME = pd.DataFrame(BITS, ["ann", "bob"], ["milk", "bread"])


def write_file(path, frame):
    """Write a pandas or polars frame or a pyarrow table; return the path."""
    ending = path.suffix[1:]
    if isinstance(frame, pd.DataFrame):
        frame.to_parquet(path) if ending == "parquet" else frame.to_feather(path)
    elif isinstance(frame, pl.DataFrame):
        frame.write_parquet(path) if ending == "parquet" else frame.write_ipc(path)
    elif ending == "parquet":
        parquet.write_table(frame, path)
    else:
        with (ipc.new_stream if ending == "arrows" else ipc.new_file)(str(path), frame.schema) as writer:
            writer.write(frame)
    return path


def pandas_frames():
    """Return pandas frames that equal ANN, in different types and with different kinds of index."""
    named = FRAME.rename_axis("who")
    return {
        "integers": FRAME,
        "a named index": named,
        "names in a column": named.reset_index(),
        "booleans": FRAME.astype(bool),
        "floats": FRAME.astype(np.float64),
        "float16": FRAME.astype(np.float16),
        "nullable integers": FRAME.astype("Int8"),
        "nullable booleans": FRAME.astype("boolean"),
        "text": FRAME.map(["no", "yes"].__getitem__),
        "categories": FRAME.map(["no", "yes"].__getitem__).astype("category"),
        "categories of numbers": FRAME.astype("category"),
        "mixed types": FRAME.astype({"milk": "Float32", "bread": bool}),
    }


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("kind", pandas_frames())
def test_reads_pandas_files(tmp_path, kind, format):
    assert ba.read(write_file(tmp_path / f"table.{format}", pandas_frames()[kind])) == ANN


@pytest.mark.parametrize("format", FORMATS)
def test_numeric_index_is_used_as_names_only_if_requested(tmp_path, format):
    path = tmp_path / f"table.{format}"
    for index in (None, pd.RangeIndex(5, 7), pd.Index([7, 3], name="id")):
        write_file(path, FRAME.set_axis(index if index is not None else range(2)))
        assert ba.read(path) == ba.Table(ANN.bits, columns=ANN.columns)
    assert ba.read(path, row_names=True).row_names == ("7", "3")
    both = pd.MultiIndex.from_tuples([("ann", 1), ("bob", 2)])
    assert ba.read(write_file(path, FRAME.set_axis(both))).row_names == ("ann, 1", "bob, 2")
    assert ba.read(write_file(path, FRAME), row_names=False).row_names is None
    words = write_file(path, pl.DataFrame({"a": ["yes", "no"], "b": [1, 0]}))
    assert ba.read(words).columns == ("a", "b")
    assert ba.read(words, row_names=True) == ba.Table(ba.BitMatrix.from_dense([[1], [0]]), ["yes", "no"], ["b"])


@pytest.mark.parametrize("format", FORMATS)
def test_reads_polars_files(tmp_path, format):
    path = tmp_path / f"table.{format}"
    words = ["no", "yes", "maybe"]
    for milk, bread in (
        ([True, True], [False, True]),
        (pl.Series([1, 1], dtype=pl.UInt8), pl.Series([0.0, 1.0], dtype=pl.Float32)),
        (["yes", "yes"], pl.Series(["no", "yes"], dtype=pl.Categorical)),
        (["x", "x"], pl.Series(["no", "yes"], dtype=pl.Enum(words))),
    ):
        frame = pl.DataFrame({"who": ["ann", "bob"], "milk": milk, "bread": bread})
        assert ba.read(write_file(path, frame)) == ANN
        assert ba.read(write_file(path, frame.drop("who"))) == ba.Table(ANN.bits, columns=ANN.columns)


@pytest.mark.parametrize("format", FORMATS)
def test_pandas_and_polars_read_written_files(tmp_path, format):
    path = tmp_path / f"table.{format}"
    read = pd.read_parquet if format == "parquet" else pd.read_feather
    ba.write(ANN, path)
    pd.testing.assert_frame_equal(read(path), FRAME.astype(bool))
    other = pl.read_parquet(path) if format == "parquet" else pl.read_ipc(path)
    assert other.drop("__index_level_0__").cast(pl.UInt8).rows() == [(1, 0), (1, 1)]
    ba.write(ba.Table(ANN.bits), path)
    assert list(read(path).columns) == ["x0", "x1"]
    assert isinstance(read(path).index, pd.RangeIndex)
    table = ba.Table(ANN.bits, ANN.row_names, ["__index_level_0__", "bread"])  # the name of the index
    ba.write(table, path)
    assert ba.read(path) == table
    path.unlink()
    with pytest.raises(ba.FileError, match="without columns"):
        ba.write(ba.Table(ba.BitMatrix.zeros(3, 0)), path)
    assert not path.exists()


@pytest.mark.parametrize("format", FORMATS)
def test_words_and_numbers_as_text(tmp_path, format):
    path = tmp_path / f"table.{format}"
    for missing in (None, "NA", " "):
        frame = pl.DataFrame({"who": ["ann", "bob"], "milk": ["yes", "yes"], "bread": ["no", missing]})
        problem = "1 value is missing, at row 1 (counted from 0), column 'bread'"
        assert_read_error(write_file(path, frame), problem, 'missing="zero"', missing="refuse")
        assert ba.read(path, missing="zero").to_dense().tolist() == [[1, 0], [1, 0]]
    problem = "2 values are missing, the first at row 0 (counted from 0), column 'b'"
    assert_read_error(write_file(path, pl.DataFrame({"a": [1, 1], "b": [None, None]})), problem, missing="refuse")
    frame = pl.DataFrame({"a": [1, 2, -3], "b": [0.5, 1.5, 2.0], "c": ["1", "2.5", "0"], "d": [True, False, True]})
    write_file(path, frame)
    assert ba.read(path, binarize=1).to_dense().tolist() == [[0, 0, 0, 0], [1, 1, 1, 0], [0, 1, 0, 0]]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([1, 2]), "row 1 (counted from 0), column 'b': 2 is neither 0 nor 1"),
        (pa.array([0, np.inf]), "row 1 (counted from 0), column 'b': 'inf' is not a finite number"),
        (pa.array(["no", "maybe"]), "column 'b': 'maybe' is neither a one (1, yes, true, x) nor a zero"),
        (pa.array([[1], [0]]), "column 'b' contains list<"),
        (pa.array([{"a": 1}, {"a": 0}]), "column 'b' contains struct<"),
        (pa.array([1, 0], pa.timestamp("s")), "column 'b' contains timestamp["),
        (pa.array([1, 0], pa.decimal128(5)), "column 'b' contains decimal128(5"),
        (pa.array([b"1", b"0"]), "column 'b' contains binary"),
    ],
)
def test_unsupported_columns_are_errors_that_name_the_column(tmp_path, format, column, message):
    path = write_file(tmp_path / f"table.{format}", pa.table({"a": [1, 0], "b": column}))
    assert_read_error(path, message, binarize=1 if "finite" in message else None)


def test_small_files_of_many_rows_or_long_texts(tmp_path):
    path = tmp_path / "table.arrow"
    many = pa.record_batch([pa.Array.from_buffers(pa.null(), 1 << 50, [None])], ["a"])
    with ipc.new_file(str(path), many.schema, options=ipc.IpcWriteOptions(allow_64bit=True)) as writer:
        writer.write_batch(many)
    assert path.stat().st_size < 1000
    assert_read_error(path, "GiB packed")
    path = tmp_path / "table.parquet"  # a long text that is repeated takes its memory once
    words = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1 << 18, np.int32)), ["x" * (1 << 20)])
    parquet.write_table(pa.table({"a": words, "b": words}), path)
    assert path.stat().st_size < 1e6
    assert_read_error(path, "row 0 (counted from 0), column 'a': 'xxxx")


@pytest.mark.parametrize("format", FORMATS)
def test_duplicate_columns_are_errors_or_numbered(tmp_path, format, monkeypatch):
    use_small_chunks(monkeypatch)
    bits = random_bits(3, 5, 200, 0.5)
    names = [f"c{column}" for column in range(200)]
    names[3], names[150], names[5], names[199] = "twice", "twice", "a", "a.b"
    table = pa.table([pa.array(column) for column in bits.T], names)
    path = write_file(tmp_path / f"table.{format}", table)
    assert_read_error(path, "columns 4 and 151 have the same name 'twice'", 'duplicates="number"')
    numbered = ba.read(path, duplicates="number")
    assert np.array_equal(numbered.to_dense(), bits)
    assert numbered.columns[150] == "twice.2"


@pytest.mark.filterwarnings("ignore:Feather V1:DeprecationWarning")
def test_arrow_streams_and_feather_v1_are_refused(tmp_path):
    table = pa.table({"who": ["ann", "bob"], "milk": [1, 1], "bread": [0, 1]})
    feather.write_feather(table, tmp_path / "old.feather", version=1)
    for path in (write_file(tmp_path / "table.arrows", table), tmp_path / "old.feather"):
        with pytest.raises(
            ba.FileError, match="Arrow streams and Feather version 1 are not read: write the table with"
        ):
            ba.read(path, "feather")


def test_malformed_metadata_is_ignored(tmp_path):
    table = pa.table({"a": [1, 0], "b": [0, 1]})
    path = tmp_path / "table.parquet"
    for metadata in (
        {"pandas": "not JSON", "bitatoms": "not JSON"},
        {"pandas": "[]", "bitatoms": "[]"},
        {"pandas": json.dumps({"index_columns": ["gone", 3, None]}), "bitatoms": json.dumps({"picture": [1, 2]})},
        {"pandas": json.dumps({"index_columns": 5}), "bitatoms": json.dumps({"picture": [[2, 1], [9, 9]]})},
        {"bitatoms": json.dumps({"picture": [["a", 1], None], "columns": False})},
    ):
        parquet.write_table(table.replace_schema_metadata(metadata), path)
        assert ba.read(path) == ba.Table(ba.BitMatrix.from_dense([[1, 0], [0, 1]]), columns=["a", "b"])


def test_numbers_that_are_read_as_row_names_are_noted(tmp_path):
    path = write_file(tmp_path / "table.parquet", pd.DataFrame({"a": ["1e400", "1"], "b": [1, 0]}))
    with pytest.warns(InputWarning, match="column 'a' is read as row names, because .* is '1e400'; row_names=False"):
        assert ba.read(path, binarize=0).row_names == ("1e400", "1")
    assert ba.read(path, binarize=0, row_names=True).row_names == ("1e400", "1")
