"""Annotations of every type, and a strategy for them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from bitatoms.columns.annotations import Annotations, Labels
from support.files import NAMES

# The types that an AnnData stores in obs and var.
FRAME = pd.DataFrame(
    {
        "bool": [True, False, True],
        "int8": np.int8([1, -2, 3]),
        "uint64": np.uint64([2**64 - 1, 0, 1]),
        "float32": np.float32([0.1, np.nan, np.inf]),
        "text": ["a", "", "a"],
        "categories": pd.Categorical(["x", None, "x"], ["unused", "x"]),
        "ordered": pd.Categorical(["low", "high", "low"], ["low", "high"], ordered=True),
        "numbers as categories": pd.Categorical([30, 10, None], [30, 10, 20]),
        "floats as categories": pd.Categorical(np.float32([0.1, 2, 0.1])),
        "booleans as categories": pd.Categorical([True, False, True]),
        "nullable integers": pd.array([1, None, -3], "Int16"),
        "nullable booleans": pd.array([None, True, False], "boolean"),
        "nullable text": pd.array(["p", None, "q"], pd.StringDtype("python")),
    },
    index=pd.Index(["r0", "r1", "r2"], dtype=object),
)


def assert_same_frame(found, expected):
    """Assert that two data frames are equal; the type of text depends on the versions of pandas and anndata."""
    pd.testing.assert_frame_equal(_with_objects(found), _with_objects(expected))


def _with_objects(frame):
    """Return a data frame whose text, that of its names and categories included, is of the type object."""
    made = frame.set_axis(frame.index.astype(object)).set_axis(frame.columns.astype(object), axis=1)
    for name, column in made.items():
        if isinstance(column.dtype, pd.StringDtype):
            made[name] = column.astype(object).where(column.notna(), None)
        elif isinstance(column.dtype, pd.CategoricalDtype) and isinstance(column.cat.categories.dtype, pd.StringDtype):
            made[name] = column.cat.rename_categories(column.cat.categories.astype(object))
    return made


_FIELD_NAMES = NAMES.filter(lambda name: "/" not in name and name not in ("_index", "."))


@st.composite
def annotations(draw, n):
    """Draw annotations of ``n`` rows or columns."""
    names = draw(st.lists(_FIELD_NAMES, max_size=4, unique=True))
    return Annotations({name: draw(_values(n)) for name in names}, n)


def _values(n):
    """Return a strategy for the values of a field."""
    numbers = hnp.arrays(st.sampled_from(["?", "<i1", "<i8", "<u4", "<f4", "<f8"]), n)
    masks = hnp.arrays("?", n)
    integers = hnp.arrays(st.sampled_from(["?", "<i2", "<u8"]), n)
    return st.one_of(
        numbers,
        st.builds(np.ma.MaskedArray, integers, masks),
        st.lists(st.none() | NAMES, min_size=n, max_size=n).map(Labels.of),
        st.lists(NAMES, min_size=1, max_size=4, unique=True).flatmap(lambda names: _categories(n, names)),
        st.lists(st.integers(-9, 9), min_size=1, max_size=4, unique=True).flatmap(lambda each: _categories(n, each)),
    )


def _categories(n, values):
    """Return a strategy for categories."""
    codes = hnp.arrays("<i4", n, elements=st.integers(-1, len(values) - 1))
    return st.builds(lambda codes, ordered: Labels.of_categories(codes, values, ordered), codes, st.booleans())
