"""Strategies for tables with names, and assertions that every reader must satisfy: a table, or a one-line error."""

from __future__ import annotations

import warnings

import pytest
from hypothesis import strategies as st

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.columns.table import Table
from bitatoms.errors import InputWarning
from support.strategies import matrices

# Names that are awkward in text: separators, quotes, spaces, other alphabets, numbers, markup.
AWKWARD = (
    "milk",
    "Käse",
    "a,b",
    'say "hi"',
    "two words",
    "牛乳",
    "<b>&amp;</b>",
    "1.5",
    "x;y",
    "semi|pipe",
    "tab\there",
    "NAN",
)
NAMES = st.one_of(
    st.sampled_from(AWKWARD),
    st.text(st.characters(exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), min_size=1, max_size=8),
)
ROWS = st.sampled_from((1, 2, 3, 17, 65))
COLUMNS = st.sampled_from((1, 2, 7, 8, 9, 63, 64, 65, 130))

EITHER = st.booleans()


@st.composite
def tables(draw, rows=EITHER, columns=EITHER, **sizes):
    """Draw tables with or without names of rows and of columns."""
    bits = draw(matrices(**{"n_rows": ROWS, "n_cols": COLUMNS} | sizes))
    names = {
        what: draw(st.lists(NAMES, min_size=length, max_size=length, unique=True)) if draw(wanted) else None
        for what, length, wanted in (("row_names", len(bits), rows), ("columns", bits.shape[1], columns))
    }
    return Table(BitMatrix.from_dense(bits), **names)


def assert_read_error(path, *parts, read=ba.read, **options):
    """Assert that reading raises a one-line FileError that begins with the path and has these parts; return it."""
    with pytest.raises(ba.FileError) as caught:
        read(path, **options)
    message = str(caught.value)
    assert message.startswith(str(path)), message
    assert "\n" not in message
    assert len(message) < 500
    for part in parts:
        assert part in message, message
    return message


def outcome(read, path):
    """Return the result of reading, or None after a one-line FileError that begins with the path.

    A warning about missing values is no error.
    """
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "(?s).*missing value", InputWarning)
            return read(path)
    except ba.FileError as error:
        message = str(error)
    assert message.startswith(str(path)), message
    assert "\n" not in message
    return None
