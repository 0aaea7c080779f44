"""Long tables: one line per row and item, in any order."""

from __future__ import annotations

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.columns.table import Table
from support.files import assert_read_error
from support.formats import use_small_chunks


def ones_of(table):
    """Return the names of the row and the column of each one."""
    rows = table.row_names or tuple(map(str, range(len(table))))
    columns = table.names_of(range(table.shape[1]))
    return {(rows[row], columns[column]) for row, column in np.argwhere(table.to_dense()).tolist()}


def test_lines_may_be_in_any_order_and_occur_twice(orders, tmp_path):
    path = orders("order,item\n7,milk\n12,bread\n7,tea\n\n12,milk\n7,milk\n")
    expected = Table(BitMatrix.from_dense([[1, 0, 1], [1, 1, 0]]), ["7", "12"], ["milk", "bread", "tea"])
    assert ba.read(path) == expected
    like_the_header = Table(BitMatrix.from_dense([[1, 0], [1, 1]]), ["row", "row_"], ["item", "item_"])
    ba.write(like_the_header, path)
    assert ba.read(path) == like_the_header


@pytest.mark.parametrize(
    ("text", "has_header"),
    [
        ("order,item\n7,milk\n8,tea\n", True),
        ("7,milk\n8,tea\n", False),  # a number
        ("ann,milk\nbob,tea\nann,bread\n", False),  # ann occurs again
        ("ann,milk\nbob,milk\n", False),
        ("who;what\nann;milk\nbob;milk\n", True),
        ("order\titem\n7\ta, b\n8\ttea\n", True),
        ("7,milk\n", False),
    ],
)
def test_header_is_detected(orders, text, has_header):
    detected = ba.read(orders(text))
    assert detected == ba.read(orders(text), header=has_header)
    assert len(ones_of(detected)) == text.count("\n") - has_header
    assert {row for row, _ in ones_of(detected)} <= {"7", "8", "ann", "bob"}


def test_other_columns_are_dropped_by_name_or_number(orders):
    lines = "7,3,2020-01-01,milk\n7,1,2020-01-01,tea\n8,1,2020-01-02,tea\n"
    path = orders("who,count,date,what\n" + lines)
    assert_read_error(path, "the columns are 'who', 'count', 'date', 'what'; two are needed", "long", "without")
    assert_read_error(path, "there is no column 'dat' (did you mean 'date'?)", without=["count", "dat"])
    expected = {("7", "milk"), ("7", "tea"), ("8", "tea")}
    assert ones_of(ba.read(path, without=["count", "date"])) == expected
    assert ones_of(ba.read(orders(lines), without=["2", "3"])) == expected


def test_missing_items(orders):
    assert_read_error(orders("7,milk\n8,tea,2\n"), "line 2 has 3 cells; expected 2", header=False)
    assert_read_error(orders("\n \n"), "the file contains only blank lines")
    path = orders("order,item\n7,milk\n8,\n9, \n9,tea\n")
    assert_read_error(path, "2 values are missing, the first at line 3, column 'item'", 'missing="zero"')
    table = ba.read(path, missing="zero")
    assert table.row_names == ("7", "8", "9")
    assert table.to_dense().tolist() == [[1, 0], [0, 0], [0, 1]]


RETURNS = (
    "order,item,Qty\n7,milk,2\n7,tea,-1\n8,tea,1\n7,milk,-2\n9,jam,-3\n8,tea,\N{MINUS SIGN}2\n"
    '8,jam,0\n8,jam,"0,5"\n8,gin,2 l\n8,rum,- 1 l\n10,milk,\n'
    "7,oil,0.1\n7,oil,0.2\n7,oil,-0.3\n"
)


def test_returned_items_are_not_bought(orders):
    path = orders(RETURNS)
    about = "7 lines have a quantity .column 'Qty'. of 0 or less.* 2 rows of the table would have no items left"
    with (
        pytest.warns(ba.errors.InputWarning, match=about),
        pytest.warns(ba.errors.InputWarning, match="rows are named by column 'order'"),
    ):
        table = ba.read(path)
    assert ones_of(table) == {("8", "jam"), ("8", "gin"), ("10", "milk")}
    assert (table.row_names, table.columns) == (("8", "10"), ("jam", "gin", "milk"))
    assert ba.read(path, long="order,item", without="Qty").bits.count() == 9  # quantities are ignored
    assert ba.read(path, without="Qty") == ba.read(path, long="order,item", without="Qty")
    path = orders("order,item,quantity\n7,milk,-1\n8,tea,0\n")
    advice = "no item has a quantity above 0 in column 'quantity'", 'without="quantity"'
    assert_read_error(path, *advice, long="order,item")


def test_quantities_that_cannot_be_read_are_noted(orders):
    """A minus after a number, and brackets around it, are not read."""
    path = orders("order,item,quantity\n7,milk,two\n7,tea,2-\n8,tea,(1)\n8,jam,n/a\n8,gin,3 l\n8,rum,-1\n")
    about = (
        "4 lines have a quantity .column 'quantity'. that is not a number, and are read as 1 .first: line 2, 'two'.; "
        "write those of returned items as -2"
    )
    with (
        pytest.warns(ba.errors.InputWarning, match=about),
        pytest.warns(ba.errors.InputWarning, match="1 line has a quantity .* of 0 or less"),
    ):
        table = ba.read(path, long="order,item")
    assert ones_of(table) == {("7", "milk"), ("7", "tea"), ("8", "tea"), ("8", "jam"), ("8", "gin")}


@pytest.mark.parametrize("n", [2, 3, 300])
def test_lines_in_a_temporary_file(orders, monkeypatch, n):
    """Rows and items are in order of first appearance among the lines that are left."""
    use_small_chunks(monkeypatch, 8)
    lines = [(row, item, 1) for row in range(n) for item in range(row % 5 + 1)]
    lines = [(n, 7, -1), *lines[::-1], (0, 0, -3), (1, 0, 1), (1, 0, -1)]
    text = "".join(f"r{row},i{item},{quantity}\n" for row, item, quantity in lines)
    with pytest.warns(ba.errors.InputWarning, match="of 0 or less"):
        table = ba.read(orders("row,item,quantity\n" + text), long="row,item")
    sums = {}
    for row, item, quantity in lines:
        sums[f"r{row}", f"i{item}"] = sums.get((f"r{row}", f"i{item}"), 0) + quantity
    kept = [(f"r{row}", f"i{item}") for row, item, _ in lines if sums[f"r{row}", f"i{item}"] > 0]
    assert ones_of(table) == set(kept)
    assert table.row_names == tuple(dict.fromkeys(row for row, _ in kept))
    assert table.columns == tuple(dict.fromkeys(item for _, item in kept))


def test_rows_and_columns_without_ones_are_lost_with_a_warning(tmp_path):
    table = Table(BitMatrix.from_dense([[1, 0], [0, 0]]), ["ann", "bob"], ["milk", "tea"])
    with (
        pytest.warns(UserWarning, match=r"cannot store rows without ones, here 1 \(bob\)"),
        pytest.warns(UserWarning, match=r"cannot store columns without ones, here 1 \(tea\)"),
    ):
        ba.write(table, tmp_path / "table.pairs")
    with pytest.raises(ba.FileError, match="cannot store a table without ones"):
        ba.write(Table(BitMatrix.zeros(2, 2)), tmp_path / "table.pairs")
    table = Table(BitMatrix.from_dense([[1], [1]]), ["ann", "ann"])
    with pytest.raises(ba.FileError, match="cannot store two rows with the name 'ann'"):
        ba.write(table, tmp_path / "table.pairs")


@pytest.fixture
def orders(file):
    return lambda text: file(text, "orders.pairs")
