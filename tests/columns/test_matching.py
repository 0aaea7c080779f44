"""The columns of a model in a table of new rows: by name, by position, absent, or unknown to the model."""

import numpy as np
import pandas as pd
import pytest

import bitatoms as ba
from bitatoms.columns.matching import match_columns, matched_table
from bitatoms.columns.table import Header
from bitatoms.errors import InputWarning

BITS = np.array([[1, 0, 1], [0, 1, 1]], np.uint8)
ROWS, COLUMNS = ("ann", "bob"), ("milk", "bread", "tea")


def header(*names, items=False):
    return Header(len(names), names, items)


@pytest.mark.parametrize(
    ("given", "absent", "indices", "unknown", "lacking"),
    [
        (header("tea", "milk", "bread"), "refuse", [1, 2, 0], (), ()),
        (header("gin", "tea", "milk", "rum", "bread"), None, [2, 4, 1], ("gin", "rum"), ()),
        (header("tea", "gin"), "zero", [-1, -1, 0], ("gin",), ("milk", "bread")),
        (header("bread", items=True), "refuse", [-1, 0, -1], (), ("milk", "tea")),
        (header(items=True), None, [-1, -1, -1], (), ("milk", "bread", "tea")),  # baskets that are all empty
        (header("gin", "gin", "milk", "bread", "tea"), None, [2, 3, 4], ("gin", "gin"), ()),
    ],
)
def test_columns_are_matched_by_name(given, absent, indices, unknown, lacking):
    match = match_columns(header(*COLUMNS), given, absent)
    assert (match.indices.tolist(), match.unknown, match.absent) == (indices, unknown, lacking)
    inverse = match.inverse(given.n_cols)
    assert [COLUMNS[i] for i in inverse if i >= 0] == [name for name in given.names if name in COLUMNS]
    assert [name for name, i in zip(given.names, inverse, strict=True) if i < 0] == list(unknown)
    items = match_columns(Header(3), header("2", "5", items=True))  # numbers of columns that have no names
    assert (items.indices.tolist(), items.unknown, items.absent) == ([-1, -1, 0], ("5",), ("0", "1"))


@pytest.mark.parametrize(
    ("learned", "given"),
    [
        (header(*COLUMNS), header(*COLUMNS)),
        (header("a", "a", "b"), header("a", "a", "b")),  # scikit-learn allows duplicate names
        (header(*COLUMNS), Header(3)),
        (Header(3), header(*COLUMNS)),
        (Header(3), header("0", "1", "2", items=True)),
    ],
)
def test_same_columns_or_columns_without_names_stay_in_place(learned, given):
    match, table = match_columns(learned, given), ba.Table(ba.BitMatrix.from_dense(BITS))
    assert match.gather(table.bits) is table.bits
    assert match.gather_table(table) is table
    assert match.inverse(3).tolist() == [0, 1, 2]


OTHER = "no column that the model was fitted on"
MISMATCHES = [
    (header(*COLUMNS), header("milk", "bread"), None, "the table lacks columns .* was fitted on: 'tea'; add them$"),
    (
        header(*COLUMNS),
        header("milk", "bread", "gin"),
        "refuse",
        r"'tea' \(it has other columns: 'gin'\); add them, or",
    ),
    (header(*COLUMNS), header("milk"), "refuse", 'add them, or pass absent="zero" to read them as 0'),
    (header(*COLUMNS), header("gin"), "zero", f"{OTHER}: it has 'gin', and the model 'milk', 'bread', 'tea'; pass"),
    (Header(5), header("5", "6", "7", "8", "9", items=True), "refuse", OTHER),
    (Header(2), header("gin", "rum", items=True), "refuse", OTHER),
    (header(*COLUMNS), header(), "zero", f"{OTHER}: it has none"),
    (header(*COLUMNS), header("milk", "tea", "tea", "bread"), "zero", "two columns have the name 'tea'"),
    (header("a", "b", "a"), header("a", "b"), "zero", "two columns have the name 'a'"),
    (header(*COLUMNS), Header(4), "zero", "the table has 4 columns, but the model was learned from 3"),
    (header(*"abcdefgh"), header("a"), "refuse", "'b', 'c', 'd', 'e', 'f' and 2 more; add"),
    (header(*COLUMNS), header(*COLUMNS), "gin", "absent='gin' is not available; choose from 'auto', 'refuse', 'zero'"),
]


@pytest.mark.parametrize(("learned", "given", "absent", "message"), MISMATCHES)
def test_columns_that_do_not_match(learned, given, absent, message):
    with pytest.raises(ValueError, match=message):
        match_columns(learned, given, absent)


MANY = "'a', 'b', 'c', 'd', 'e' and 2 more"
NOTES = [  # learned names, given names, absent, and the note
    (COLUMNS, ("gin", *COLUMNS), None, "ignored 1 column that the model was not fitted on: 'gin'"),
    (("tea",), (*"abcdefg", "tea"), None, f"ignored 7 columns that the model was not fitted on: {MANY}"),
    (COLUMNS, ("gin", "tea"), "zero", "ignored 1 column .*: 'gin'; 2 absent columns are read as 0: 'milk', 'bread'"),
    (("tea", *"abcdefg"), ("tea",), "zero", f"7 absent columns are read as 0: {MANY}"),
    (COLUMNS, ("tea", "bread"), "zero", "1 absent column is read as 0: 'milk'"),
    (("tea", *"abcde"), ("tea",), "zero", "5 absent columns are read as 0: 'a', 'b', 'c', 'd', 'e'"),
]


@pytest.mark.parametrize(("learned", "given", "absent", "note"), NOTES)
def test_a_note_names_the_columns_that_are_ignored_or_filled(learned, given, absent, note):
    with pytest.warns(InputWarning, match=f"^new.csv: {note}$") as seen:
        match_columns(header(*learned), header(*given), absent).warn_differences("new.csv")
    assert len(seen) == 1
    assert seen[0].filename == __file__


def test_whether_absent_columns_are_zeros_is_kept():
    table = ba.Table(ba.BitMatrix.from_dense(BITS), ROWS, COLUMNS, absent_is_zero=True)
    assert ba.Table.from_any(table).header == Header(3, COLUMNS, True)
    assert table == ba.Table(table.bits, ROWS, COLUMNS)
    gathered = match_columns(header("tea", "ale"), table.header).gather_table(table)
    assert gathered.header == Header(2, ("tea", "ale"), True)


def test_absent_columns_are_unknown():
    frame = pd.DataFrame({"tea": [1, 0], "milk": [0, 1]})
    with pytest.warns(InputWarning, match="^X: 1 absent column is unknown: 'bread'$"):
        table = matched_table(frame, Header(3, ("milk", "bread", "tea")), "unknown")
    np.testing.assert_array_equal(table.to_dense(float), [[0, np.nan, 1], [1, np.nan, 0]])
    items = ba.Table(ba.BitMatrix.from_dense([[1, 1]]), None, ["tea", "milk"], absent_is_zero=True)  # without a note
    assert matched_table(items, Header(3, ("milk", "bread", "tea")), "unknown").to_dense().tolist() == [[1, 0, 1]]
