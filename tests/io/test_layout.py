"""The layout of text files: lists of items are detected, and tables never taken for them."""

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.errors import InputWarning
from bitatoms.io.layout import Layout
from bitatoms.io.options import ReadOptions
from bitatoms.io.stream import Source
from bitatoms.io.text import TextRows
from support.files import assert_read_error

ONLINE_RETAIL = (
    "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country\n"
    '536365,85123A,"HOLDER, WHITE",6,12/1/2010 8:26,2.55,17850,United Kingdom\n'
    "536365,71053,LANTERN,6,12/1/2010 8:26,3.39,17850,United Kingdom\n"
    "536367,71053,LANTERN,1,12/1/2010 8:28,3.39,13047,United Kingdom\n"
)
LONG = {  # files, and the columns that they are read by
    "numbered items": ("order,product\n7,30\n7,31\n9,31\n", ("order", "product")),
    "names rather than numbers": (ONLINE_RETAIL, ("InvoiceNo", "Description")),
    "no header": ("1000,soap\n1001,milk\n1001,tea\n", ("1", "2")),
    "one order, numbered 1": ("order,article,price\n1,milk,2\n1,tea,1\n", ("order", "article")),
}
LISTS = {  # files, and the items of each row
    "two": ("milk,bread\nbeer\n", ["milk bread", "beer"]),
    "of any length": ("soap\nmilk,bread\nsoap\nmilk,tea,jam\n", ["soap", "milk bread", "soap", "milk tea jam"]),
    "padded": ("milk,bread,,\nbeer,,,\ntea,jam,milk,bread\n", ["milk bread", "beer", "tea jam milk bread"]),
    "quoted": ('"milk, fat",tea\ntea\n', ["milk,_fat tea", "tea"]),
    "numbers": ("12,45,7\n45\n7,12\n", ["12 45 7", "45", "7 12"]),
    "a numbered header": ("Item 1,Item 2,Item 3\nmilk,tea,\ntea,,\n", ["milk tea", "tea"]),
    "a header of pandas": ("0,1,2\nmilk,tea,jam\ntea,,\n", ["milk tea jam", "tea"]),
    "blank lines around a header": ("\n\nItem 1,Item 2\nmilk,tea\n\ntea,\n\n,\n", ["milk tea", "", "tea"]),
    "their number first": ("Item(s),Item 1,Item 2\n2,milk,tea\n1,tea,\n", ["milk tea", "tea"]),
}


@pytest.mark.parametrize("case", LONG)
def test_errors_about_long_tables_have_the_option_that_reads_them(file, case):
    text, columns = LONG[case]
    path = file(text)
    advice = f"if each line names a row and one of its items, read it with long={columns}"
    assert_read_error(path, f"instead of ones and zeros; {advice}")
    table = ba.read(path, long=columns)
    assert len(table.row_names) == len(set(table.row_names))
    assert (table.shape[0] > 1) == (case != "one order, numbered 1")


def test_the_columns_of_a_long_table_can_be_chosen(file):
    path = file(ONLINE_RETAIL)
    table = ba.read(path, long="CustomerID,StockCode")
    assert (table.row_names, table.columns) == (("17850", "13047"), ("85123A", "71053"))
    assert_read_error(path, "no column 'Invoice' (did you mean 'InvoiceNo'?)", long=("Invoice", "StockCode"))
    assert_read_error(path, "long applies to csv, tsv, xlsx, pairs, not to 'fimi'", format="fimi", long="a,b")
    with pytest.raises(ba.InputError, match="long must be two columns"):
        ba.read(path, long="InvoiceNo")
    with pytest.warns(InputWarning, match="rows are named by column 'InvoiceNo' and items by column 'Description'"):
        assert ba.read(path, format="pairs").row_names == ("536365", "536367")


def test_a_model_of_a_long_table_says_how_another_is_read(file):
    path = file("order_id,product,qty\n7,milk,2\n7,tea,1\n8,milk,1\n9,tea,3\n")
    model = ba.BinaryDictionaryLearning(1, algebra="or", random_state=0).fit(ba.read(path, long="order_id,product"))
    path = file("order_id,product,qty\n10,tea,2\n11,milk,1\n")
    with pytest.raises(ba.FileError, match=r"read it with long=\('order_id', 'product'\)"):
        model.transform(path)
    model.transform(ba.read(path, long="order_id,product"))
    # The cells of a table without columns of the model say nothing about how it is read.
    with pytest.raises(ba.InputError, match="has no column that the model was fitted on: it has 'age', 'size'"):
        model.transform(file("age,size,weight,height\n56,1.5,70.5,7\n31,2,60.5,8\n31,2,60.5,8\n"))


@pytest.mark.parametrize("case", LISTS)
def test_lists_of_items_are_detected(file, case):
    text, expected = LISTS[case]
    with pytest.warns(InputWarning, match='each line is read as a list of items.*; format="baskets" confirms that'):
        table = ba.read(file(text))
    rows = [set(table.names_of(np.flatnonzero(row))) for row in table.to_dense()]
    assert rows == [{item.replace("_", " ") for item in items.split()} for items in expected]


@pytest.mark.parametrize("blank_line", ["", "\n"])
def test_lists_with_headers_and_row_names(file, blank_line):
    path = file(blank_line + "order,items\n7,milk,tea\n8\n9,tea\n", "orders.basket")
    table = ba.read(path, header=True, row_names=True)
    assert (table.row_names, table.columns) == (("7", "8", "9"), ("milk", "tea"))
    assert table.to_dense().tolist() == [[1, 1], [0, 0], [0, 1]]


NEITHER = {  # files that are of another shape, or of none that is clear
    "ones and zeros": "order,item\n1,0\n0,1\n",
    "counts": "order,item\n3,0\n0,1\n",
    "a malformed row": "1,0,1\n0,1\n",
    "a row of text": "a,b\n1,0\nx,perhaps\n",
    "a title": "Sales\nid,a,b\nr1,0,1\n",
    "items and flags": "item,basket\nmilk,1\nbread,0\n",
    "one order, no header": "1,milk\n1,tea\n",
    "an order per line": "order_id,product,colour\n7,shirt,red\n8,shirt,blue\n",
    "lists in one cell": "order,items\n7,milk|tea\n8,milk;tea\n9,jam\n",
    "several items of no order": "order,item,price\n,milk,1\n,tea,2\n8,jam,1\n",
    "two candidates": "order,invoice,item\n7,1,milk\n7,1,tea\n",
    "two kinds of items": "order,product,item\n7,a,milk\n7,b,tea\n",
    "categories": "colour,size\nred,L\nred,M\nblue,L\n",
    "categories, some missing at the end": "colour,size\nred,L\nblue,\ngreen,M\nred,\n",
    "answers, some missing at the end": "q1,q2,q3\nagree,disagree,\ndisagree,agree,neutral\nagree,,\n",
    "categories with a comma": "who,colour,comment\n"
    + "ann,red,nice\nbob,blue,good\ncyd,red,fine, but small\ndan,red,ok\n",
    "categories without ends": "colour,size\nred,L\nblue\ngreen,M\nred\ngreen\n",
    "orders that come back, no header": "7,milk\n8,tea\n7,tea\n",
    "named rows, no header": "ann,milk\nann,tea\nbob,tea\n",
    "lists of two": "milk,bread\nmilk,tea\nbread,tea\n",
    "one item each": "milk\nbread\nmilk\n",
    "repeated items": "milk,milk\nbread\n",
}


@pytest.mark.parametrize("case", NEITHER)
def test_other_files_are_not_detected(file, case):
    source = Source(file(NEITHER[case]), "csv", "table.csv")
    try:
        layout = Layout.detect(TextRows(source, ReadOptions()), ReadOptions(), may_be_lists=True)
    except ba.FileError:
        return
    assert layout.shape == "table"


@pytest.mark.parametrize("options", [{"binarize": 0}, {"header": False}, {"row_names": True}, {"without": "item"}])
def test_options_of_a_table_rule_out_other_shapes(file, options):
    assert_read_error(file("order,item\n7,milk\n7,tea\n"), **options)


def test_an_order_or_an_item_without_a_name_is_an_error_that_names_the_line(file):
    path = file("order,item\n7,milk\n7,tea\n8,\n")
    assert_read_error(path, "line 4, column 'item'", long="order,item")
    assert ba.read(path, missing="zero", long="order,item").to_dense().tolist() == [[1, 1], [0, 0]]
    path = file("date,order,city,item\nmon,7,x,milk\nmon,7,x,tea\ntue,,x,tea\ntue,8,x,tea\nwed, ,x,gin\n")
    problem = "line 4: column 'order', which names the row, is blank (as in 1 more line); fill it in, or pass missing"
    assert_read_error(path, problem, long="order,item")
    with pytest.warns(InputWarning, match=r"2 lines are left out, because column 'order', .* is blank .first: 4."):
        table = ba.read(path, missing="zero", long="order,item")
    assert (table.row_names, table.columns) == (("7", "8"), ("milk", "tea"))
