"""Annotations: their types, missing values, selections and comparisons, and data frames of pandas."""

import numpy as np
import pandas as pd
import pytest

import bitatoms as ba
from bitatoms.columns.annotations import Annotations, Labels
from support.annotations import FRAME

FIELDS = {  # values, the kind of their dtype, and the values that are kept
    "small": (np.int8([1, 2]), "i", [1, 2]),
    "real": ([0.5, 1.5], "f", [0.5, 1.5]),
    "flag": ([True, False], "b", [True, False]),
    "name": (["a", None], "O", ["a", None]),
    "mixed": ([1, "x"], "O", ["1", "x"]),
    "bytes": (np.array([b"x", b"y"]), "O", ["x", "y"]),
    "date": (np.array(["2020-01-02", "NaT"], "datetime64[D]"), "O", ["2020-01-02", None]),
    "masked": (np.ma.array([1, 2], mask=[False, True]), "i", [1, None]),
    "masked text": (np.ma.array(["p", "q"], mask=[True, False]), "O", [None, "q"]),
}


def test_numbers_keep_their_type_and_other_values_are_text():
    about = Annotations({name: values for name, (values, _, _) in FIELDS.items()}, 2)
    for name, (_, kind, kept) in FIELDS.items():
        assert (about[name].dtype.kind, about[name].tolist()) == (kind, kept)
    assert about["small"].dtype == np.int8
    assert repr(about).startswith("Annotations of 2: small, real")
    assert repr(Annotations({}, 3)) == "Annotations of 3: no fields"


@pytest.mark.parametrize(
    ("values", "message"),
    [([1, 2, 3], "'x' has 3 values; expected 2"), ([[1], [2]], r"'x' has shape \(2, 1\)"), (5, r"'x' has shape \(\)")],
)
def test_one_value_each(values, message):
    with pytest.raises(ValueError, match=message):
        Annotations({"x": values}, 2)


def test_take():
    about = Annotations({"n": [10, 20, 30], "t": ["a", None, "b"], "m": np.ma.array([1, 2, 3], mask=[0, 1, 0])}, 3)
    for indices in ([2, 0], np.array([2, 0]), np.array([2, 0], np.uint8)):
        assert about.take(indices) == Annotations(
            {"n": [30, 10], "t": ["b", "a"], "m": np.ma.array([3, 1], mask=[0, 0])}, 2
        )
    chosen = about.take(np.array([False, True, False]))
    assert (chosen.n, chosen["t"].tolist(), chosen["m"].tolist()) == (1, [None], [None])
    assert about.take([]) == Annotations({"n": [], "t": Labels.of([]), "m": np.ma.array([], mask=[])}, 0)
    assert Annotations({}, 3).take([1, 1]).n == 2


def test_equality():
    about = Annotations({"a": [1, 2], "b": ["x", None], "c": [np.nan, 1.0]}, 2)
    assert about == Annotations({"a": [1, 2], "b": ["x", None], "c": [np.nan, 1.0]}, 2)
    assert about != Annotations({"b": ["x", None], "a": [1, 2], "c": [np.nan, 1.0]}, 2)  # in another order
    assert about != about.updated(a=[1, 3])
    assert about != about.updated(b=["x", "y"])
    assert about != about.updated(b=[1, 2])
    assert about != about.updated(a=np.ma.array([1, 2], mask=[False, True]))
    assert Annotations({}, 2) != Annotations({}, 3)
    assert about != {"a": 1}
    hidden = [Annotations({"a": np.ma.array([1, value], mask=[False, True])}, 2) for value in (5, 6)]
    assert hidden[0] == hidden[1]


def test_pandas_round_trip():
    about = Annotations.from_pandas(FRAME)
    pd.testing.assert_frame_equal(about.to_pandas(FRAME.index), FRAME)
    pd.testing.assert_frame_equal(Annotations(FRAME, len(FRAME)).to_pandas(FRAME.index), FRAME)
    again = about.take(np.arange(len(FRAME)))
    pd.testing.assert_frame_equal(again.to_pandas(FRAME.index), FRAME)


def test_types_of_pandas_that_become_text_or_numbers():
    dates, numbers = pd.to_datetime(["2020-01-02", None]), pd.arrays.SparseArray([0, 1])
    about = Annotations.from_pandas(pd.DataFrame({"date": dates, "sparse": numbers, "objects": [None, ("a", 1)]}))
    assert about["date"].tolist() == ["2020-01-02 00:00:00", None]
    assert about["sparse"].tolist() == [0, 1]
    assert about["objects"].tolist() == [None, "('a', 1)"]


def test_tables_keep_annotations():
    table = ba.Table(ba.BitMatrix.zeros(2, 3), row_data={"age": [30, 40]}, column_data=pd.DataFrame({"x": [1, 2, 3]}))
    assert table.row_data["age"].tolist() == [30, 40]
    assert table.column_data["x"].tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="annotations of 2 columns for 3 columns"):
        ba.Table(table.bits, column_data=Annotations({}, 2))
    with pytest.raises(ValueError, match="'age' has 1 values; expected 2"):
        ba.Table(table.bits, row_data={"age": [1]})
