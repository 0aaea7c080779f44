"""Sheets of Excel workbooks: all shapes of tables, types of cells, names, and files that are written."""

import datetime
import re
import warnings
import zipfile

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.io import sheets
from support.files import assert_read_error

openpyxl = pytest.importorskip("openpyxl")


def write_book(path, **pages):
    """Write a workbook with these sheets."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in pages.items():
        page = book.create_sheet(title)
        for row in rows:
            page.append(row)
    book.save(path)
    return path


SHAPES = {  # rows of a sheet, options, a note, names of rows and of columns
    "a table": (
        [["", "milk ", " tea"], [" ann", 1, 0], ["bob ", True, False]],
        {},
        None,
        ("ann", "bob"),
        ("milk", "tea"),
    ),
    "blanks": ([["milk", "tea"], ["x", None], [None, "x"]], {}, "blank cells are", None, ("milk", "tea")),
    "not at the corner": ([[], [None, "milk", "tea"], [None, 1, 0], [None, 0, 1]], {}, None, None, ("milk", "tea")),
    "a long table": (
        [["Order", "Item", "Date"], [7, "milk", datetime.datetime(2020, 1, 1)], [7, "tea", None], [8.0, "tea", 3]],
        {"long": "Order,Item"},
        None,
        ("7", "8"),
        ("milk", "tea"),
    ),
    "chosen columns": ([["a", "b", "c"], [1, 2, 3], [1, 4, 5]], {"long": "a,c"}, None, ("1",), ("3", "5")),
    "lists": ([["rum", "tea"], ["gin"], ["tea", "gin", "jam"]], {}, "each row is", None, ("rum", "tea", "gin", "jam")),
    "categories": (
        [["when", "size"], [datetime.date(2020, 1, 1), "L"], [datetime.datetime(2020, 1, 1), 3.5]],
        {"categories": True},
        None,
        None,
        ("when=2020-01-01", "size=3.5", "size=L"),
    ),
}


@pytest.mark.parametrize("case", SHAPES)
def test_tables_of_any_shape(tmp_path, case):
    rows, options, note, row_names, columns = SHAPES[case]
    path = write_book(tmp_path / "table.xlsx", Sheet1=rows)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        table = ba.read(path, **options)
    assert (table.row_names, table.columns) == (row_names, columns)
    assert [note in str(each.message) for each in notes] == ([] if note is None else [True])
    assert not any("baskets" in str(each.message) for each in notes)  # a format of text


def test_sheets_are_chosen_by_name_or_number(tmp_path):
    path = write_book(tmp_path / "table.xlsx", first=[["a"], [1]], second=[["b"], [0]], **{"1": [["c"], [1]]})
    names = {None: "a", "second": "b", 2: "b", "2": "b", "1": "c", 1: "a"}
    assert {sheet: ba.read(path, sheet=sheet).columns[0] for sheet in names} == names
    assert_read_error(path, "there is no sheet 'third'; the sheets are 'first', 'second', '1'", sheet="third")
    assert_read_error(tmp_path / "table.csv", "sheet applies to xlsx, not to 'csv'", sheet="first")


def test_errors_name_the_row(tmp_path, monkeypatch):
    beside = [[None, "a", "b"], *[[None, 0, 1]] * 100, ["total", 1, 1]]
    for rows, part in (
        ([["a", "b"], [1, 0], [1, 2]], "row 3, column 'b': 2 is neither 0 nor 1"),
        ([["a", "b"], [1, 0], [1, 0, 1]], "row 3 has 3 cells; expected 2"),
        (beside, "row 102 has a cell to the left of column 2, where the table begins"),
        ([], "only blank rows"),
    ):
        assert_read_error(write_book(tmp_path / "table.xlsx", page=rows), part)
    monkeypatch.setattr(sheets, "MAX_SHEET_ROWS", 3)
    assert_read_error(write_book(tmp_path / "table.xlsx", page=[["a"], [1], [0], [1]]), "larger than Excel allows")
    assert ba.read(write_book(tmp_path / "table.xlsx", page=[["a"], [1], [0]])).shape == (2, 1)


@pytest.mark.parametrize(
    ("cells", "rows", "columns", "problem"),
    [
        ([[1], [0]], [" ", ""], ["a"], "this format cannot store row names that are all blank"),
        ([[1, 0]], None, ["a", " "], "this format cannot store a last column without a name"),
        ([[np.nan], [0]], ["ann", "bob"], ["1"], "column names that look like cells above a row without known cells"),
        ([[1, 0]], None, ["NA", "nan"], "this format cannot store column names that are all words for missing values"),
        ([[0] * 16385], None, None, "at most 1048576 rows and 16384 columns"),
        ([[0]], None, ["a\x07"], r"cannot store the name 'a\x07'"),
        ([[0]], None, ["a" * 40000], "names of at most 32767 characters; shorten 'aaa"),
    ],
)
def test_tables_that_a_sheet_cannot_hold(tmp_path, cells, rows, columns, problem):
    table = ba.Table(ba.BitMatrix.from_dense(cells, missing="unknown"), rows, columns)
    with pytest.raises(ba.FileError, match=re.escape(problem)):
        ba.write(table, tmp_path / "table.xlsx")
    assert not list(tmp_path.iterdir())


BLANK_ROWS = {  # rows of a sheet, options, the shape of the table: a blank row is a row, unless rows have names
    "no names": ([["a", "b"], ["x", None], [None, None], [None, "x"]], {}, (3, 2)),
    "zeros": ([["a", "b"], [1, 0], [], [0, 1]], {}, (3, 2)),
    "names": ([["who", "a", "b"], ["ann", 1, 0], [], [], ["bob", 0, 1]], {}, (2, 2)),
    "names below a blank": ([[None, "a", "b"], ["ann", "x", None], [], ["bob", None, "x"]], {}, (2, 2)),
    "below the header": ([["a", "b"], [], [1, 0], [0, 1]], {}, (3, 2)),
    "no header": ([[1, 0], [], [0, 1]], {}, (3, 2)),
    "numbers": ([["a", "b"], [7, 0], [], [0, 2]], {"binarize": 0}, (3, 2)),
    "transposed": ([["a", "b"], ["x", None], [], [None, "x"]], {"transpose": True}, (2, 3)),
    "without a column": ([["a", "b", "c"], ["x", None, 7], [], [None, "x", 8]], {"without": "c"}, (3, 2)),
    "categories": ([["a", "b"], ["s", "t"], [], ["s", "u"]], {"categories": True}, (3, 3)),
    "named categories": ([["who", "b"], ["ann", "t"], [], [], ["bob", "u"]], {"categories": True}, (2, 2)),
    "a short first row of numbers": ([[2.5, None, None], [7, 1, 0], [0, 0, 3]], {"binarize": 0}, (3, 3)),
    "a short first row, not a header": ([["ann", None], ["bob", 1], ["cyd", 1]], {"header": False}, (3, 1)),
    "a long table": ([["order", "item"], [7, "tea"], [], [7, "jam"], [8, "tea"]], {"long": "order,item"}, (2, 2)),
    "lists of items": ([["rum", "tea"], ["gin"], [], ["tea", "gin", "jam"]], {}, (4, 4)),
}


@pytest.mark.filterwarnings("ignore::bitatoms.errors.InputWarning")
@pytest.mark.parametrize("case", BLANK_ROWS)
def test_blank_rows_are_read_as_in_the_same_text_file(tmp_path, case):
    rows, options, shape = BLANK_ROWS[case]
    width = max(map(len, rows))
    filled = [[*row, *[None] * (width - len(row))] for row in rows]
    lines = [",".join("" if cell is None else str(cell) for cell in row) for row in filled]
    (tmp_path / "table.csv").write_text("".join(f"{line}\n" for line in lines))
    write_book(tmp_path / "table.xlsx", page=[[], [None, "  "], *filled, [None], ["  "]])  # blank rows around the table
    table = ba.read(tmp_path / "table.xlsx", **options)
    assert table.shape == shape
    assert table == ba.read(tmp_path / "table.csv", **options)


def test_a_formula_without_a_stored_value_is_an_error(tmp_path):
    path = write_book(tmp_path / "table.xlsx", page=[["a", "b"], [1, 0], [0, "=A2"]], other=[["a", "b"], [1, 0]])
    for options in ({}, {"binarize": 0}, {"categories": True}, {"long": "a,b"}):
        assert_read_error(path, "cell B3 contains a formula without a stored value", "save it", **options)
    assert ba.read(path, sheet="other").shape == (1, 2)


@pytest.mark.parametrize(
    ("stored", "cells"),
    [
        ("<c r='B3'><f>A2</f><v>1</v></c>", [[1, 0], [0, 1]]),
        ("<c r='B3' t='b'><f>TRUE()</f><v>1</v></c>", [[1, 0], [0, 1]]),
        ("<c r='B3' t='str'><f>IF(A2=1,&quot;x&quot;,0)</f><v>x</v></c>", [[1, 0], [0, 1]]),
        ("<c r='B3' t='str'><f>IF(A2=1,&quot;&quot;,0)</f><v></v></c>", [[1, 0], [0, None]]),  # empty text
    ],
)
@pytest.mark.filterwarnings("ignore:.*missing value:bitatoms.errors.InputWarning")
def test_stored_values_of_formulas_are_read(tmp_path, stored, cells):
    write_book(tmp_path / "written.xlsx", page=[["a", "b"], [1, 0], [0, "=A2"]])
    with zipfile.ZipFile(tmp_path / "written.xlsx") as old, zipfile.ZipFile(tmp_path / "table.xlsx", "w") as new:
        for name in old.namelist():
            content = re.sub(rb"<c r=.B3.*?</c>", stored.encode(), old.read(name))
            new.writestr(name, content)
    expected = ba.BitMatrix.from_dense(
        [[np.nan if cell is None else cell for cell in row] for row in cells], missing="unknown"
    )
    assert ba.read(tmp_path / "table.xlsx").bits == expected


@pytest.mark.filterwarnings("ignore:.*missing values:bitatoms.errors.InputWarning")
def test_a_cell_far_below_the_table_is_an_error(tmp_path):
    rows = [["a", "b"], [1, 0], *[[]] * 1000]
    assert ba.read(write_book(tmp_path / "table.xlsx", page=[*rows, [0, 1]])).shape == (1002, 2)
    path = write_book(tmp_path / "table.xlsx", page=[*rows, [], ["x"]])
    assert_read_error(path, "more than 1000 rows after row 2 are blank, and others follow; delete what follows")
    assert ba.read(write_book(tmp_path / "table.xlsx", page=[*rows, *rows[2:]])).shape == (1, 2)
