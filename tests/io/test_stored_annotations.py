"""Annotations in the files that bitatoms writes: round trips, and malformed values."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bitatoms as ba
from bitatoms.columns.annotations import Annotations, Labels
from bitatoms.io.annotations import decode_annotations, encode_annotations
from support.annotations import FRAME, annotations

FULL = Annotations.from_pandas(FRAME)


def through_json(about):
    return decode_annotations(json.loads(json.dumps(encode_annotations(about))), about.n, "row")


def assert_same(given, expected):
    """Assert that two annotations are the same, types included."""
    assert given == expected
    pd.testing.assert_frame_equal(given.to_pandas(), expected.to_pandas())


@settings(max_examples=50)
@given(data=st.data(), n=st.sampled_from((0, 1, 7, 8, 9, 65)))
def test_round_trip_as_json(data, n):
    about = data.draw(annotations(n))
    assert_same(through_json(about), about)


def test_every_type_and_none():
    assert_same(through_json(FULL), FULL)
    assert encode_annotations(None) is None
    assert decode_annotations(None, 3, "row") is None
    assert through_json(Annotations({}, 5)) == Annotations({}, 5)
    half = Annotations({"h": np.float16([0.5, 1]), "big": np.array([1, 2], ">i4")}, 2)
    assert through_json(half) == half
    many = Annotations({f"field {number}": [number] for number in range(12_000)}, 1)
    assert through_json(many) == many


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_round_trip_of_files(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("files")
    bits = ba.BitMatrix.from_dense(np.eye(3, 5))
    rows, columns = (data.draw(st.none() | annotations(n)) for n in (3, 5))
    table = ba.Table(bits, row_data=rows, column_data=columns)
    for name in ("a.npz", "b.zarr", "c.h5ad", "d.npz"):
        pytest.importorskip({"zarr": "zarr", "h5ad": "anndata"}.get(name[2:], "numpy"))
        ba.write(table, folder / name)
        again = ba.read(folder / name)
        for axis in ("row_data", "column_data"):
            found, expected = getattr(again, axis), getattr(table, axis)
            assert found == expected
            if expected is not None and name != "c.h5ad":  # where text with missing values is of the nullable type
                pd.testing.assert_frame_equal(found.to_pandas(), expected.to_pandas())
        table = again


def encoded(**changes):
    """Return a field of two texts, or of two numbers, as JSON, with some parts changed."""
    about = {"a": Labels.of(["x", "y"])} if changes.pop("text", True) else {"a": np.ma.array([1, 2], mask=[0, 1])}
    field = encode_annotations(Annotations(about, 2))["a"] | changes
    return {"a": {name: value for name, value in field.items() if value is not ...}}


def packed(values):
    return encode_annotations(Annotations({"a": np.asarray(values)}, len(values)))["a"]["values"]


MALFORMED = {
    "a list": [1],
    "a field that is a number": {"a": 5},
    "an unknown type": encoded(type="strings"),
    "objects": encoded(type="O", text=False),
    "a huge type": encoded(type="<U1000000000", text=False),
    "complex numbers": encoded(type="<c8", text=False),
    "no values": encoded(values=..., text=False),
    "too few values": encoded(values=packed([1]), text=False),
    "too many values": encoded(values=packed([1, 2, 3]), text=False),
    "a bomb": encoded(values=packed(np.zeros(10**7)), text=False),
    "a mask that is too long": encoded(missing=packed([1, 2, 3]), text=False),
    "a code without a category": encoded(categories=["x"]),
    "a negative code": encoded(codes=packed(np.int32([0, -2]))),
    "codes of another type": encoded(codes=packed([0, 1])),
    "categories that are text": encoded(categories="xy"),
    "the same category twice": encoded(categories=["x", "x"]),
    "categories of numbers that are text": encoded(type="categories", category_type="<i8"),
    "categories of equal numbers": encoded(type="categories", categories=["1", "01"], category_type="<i8"),
    "categories of an unknown type": encoded(type="categories", categories=["1", "2"], category_type="O"),
    "numbers too large": encoded(type="categories", categories=["1", str(2**70)], category_type="<i8"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed_annotations(case):
    with pytest.raises(ValueError, match="its row annotations are malformed") as caught:
        decode_annotations(MALFORMED[case], 2, "row")
    assert len(str(caught.value)) < 150


def test_sizes_beyond_memory_are_refused(monkeypatch):
    monkeypatch.setattr("bitatoms.io.annotations.memory_limit", lambda: 1000)
    with pytest.raises(ValueError, match="they claim to take"):
        decode_annotations({f"{number}": encoded(text=False)["a"] for number in range(100)}, 2, "row")
