"""Transactions: round trips of item numbers and item names, malformed files."""

from __future__ import annotations

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.columns.table import Header, Table
from support.files import assert_read_error
from support.strategies import random_bits

# Item numbers


def test_columns_are_the_distinct_numbers_in_increasing_order(file, tmp_path):
    table = ba.read(file(b"7 1000000000000000000\r\n\r\n  3\t7 \r\n3 3 03", "lists.dat"))
    assert table.columns == ("3", "7", "1000000000000000000")
    np.testing.assert_array_equal(table.to_dense(), [[0, 1, 1], [0, 0, 0], [1, 1, 0], [1, 0, 0]])
    for text, n_rows in (("\n", 1), ("\n\n", 2), ("0\n\n", 2), ("\n0", 2), (" ", 1)):
        assert ba.read(file(text, "lists.dat")).shape == (n_rows, int("0" in text))
    table = Table(BitMatrix.from_dense([[1, 0], [1, 1]]), columns=["12", "345"])
    ba.write(table, tmp_path / "lists.fimi")
    assert (tmp_path / "lists.fimi").read_text() == "12\n12 345\n"
    assert ba.read(tmp_path / "lists.fimi") == table


NOT_STORED = {
    "lists.dat": ["milk", "-1", "007", "1.0", "٣", "", "9" * 30],
    "lists.basket": ["", " a", "a\t", "a\rb", "a\0b"],
}


@pytest.mark.parametrize(("path", "name"), [(path, name) for path, names in NOT_STORED.items() for name in names])
def test_writing_names_that_cannot_be_read_back_is_an_error(tmp_path, path, name):
    table = Table(BitMatrix.from_dense([[1, 0]]), columns=["1", name])
    needed = "non-negative integers" if path == "lists.dat" else "blanks"
    with pytest.raises(ba.FileError, match=rf"{path}: .*{needed}.*\.npz") as caught:
        ba.write(table, tmp_path / path)
    assert path != "lists.dat" or repr(name) in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["lists.dat", "lists.basket"])
def test_items_give_columns_their_names_and_absent_items_are_zeros(tmp_path, name):
    (tmp_path / name).write_text("0 2\n1\n" if name == "lists.dat" else "0,1\n2\n")
    table = ba.read(tmp_path / name)
    assert table.header == Header(3, ("0", "1", "2"), True)
    for kept in ("table.npz", "table.parquet", "table.feather", "table.h5ad", "table.zarr", name):
        ba.write(table, tmp_path / kept)
        assert ba.read(tmp_path / kept).header == table.header
    ba.write(table, tmp_path / "table.csv")
    assert ba.read(tmp_path / "table.csv").header == Header(3, ("0", "1", "2"))
    assert ba.read(tmp_path / name, without="1").header == Header(2, ("0", "2"), True)


# Item names


def test_columns_are_in_order_of_first_appearance(file):
    table = ba.read(file('milk, bread\n\n"a, b",milk,milk,,\n', "lists.basket"))
    assert table.columns == ("milk", "bread", "a, b")
    np.testing.assert_array_equal(table.to_dense(), [[1, 1, 0], [0, 0, 0], [1, 0, 1]])
    for name in ("sep=;", "\ufeffmilk"):  # like the beginning of a text file
        table = Table(BitMatrix.from_dense([[1, 0], [1, 1]]), columns=[name, "tea"])
        path = file("", "lists.basket")
        ba.write(table, path)
        assert ba.read(path) == table


def test_separator(file):
    assert ba.read(file("milk;a,b\n", "lists.basket"), separator=";").columns == ("milk", "a,b")
    assert ba.read(file("milk bread\n", "lists.basket"), separator=" ").columns == ("milk", "bread")
    for separator in ("--", '"', "\n"):
        assert_read_error(file("milk\n", "lists.basket"), "one character", separator=separator)


# Both formats


@pytest.mark.parametrize("ending", ["dat", "basket"])
def test_writing_warns_about_what_is_lost(tmp_path, ending):
    table = Table(BitMatrix.from_dense([[1, 0], [1, 0]]), row_names=["ann", "bob"], columns=["5", "6"])
    with pytest.warns(UserWarning) as caught:  # noqa: PT030 - both warnings are checked
        ba.write(table, tmp_path / f"lists.{ending}")
    rows, columns = (str(warning.message) for warning in caught)
    assert "cannot store names of rows" in rows
    assert "columns without ones, here 1 (6)" in columns
    assert {warning.filename for warning in caught} == {__file__}


BAD = {
    "a word": ("dat", b"1 2\n3 milk\n", "line 2: 'milk' is not a non-negative integer", 'format="baskets"'),
    "a negative number": ("dat", b"1 2\n-1\n", "line 2: '-1' is not a non-negative integer"),
    "a fraction": ("dat", b"1 2\n\n1.0\n", "line 3: '1.0' is not a non-negative integer"),
    "a number too large": ("dat", b"1\n2 99999999999999999999\n", "line 2", "too large"),
    "names in UTF-16": ("basket", "a,b\n".encode("utf-16"), "line 1"),
    "names in Latin-1": ("basket", "milk\nKäse\n".encode("latin-1"), "line 2 is not UTF-8"),
    "an unclosed quote": ("basket", b'milk\n"bread\n', "line 2", "quote"),
    "corrupt gzip": ("dat.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\0hello", "corrupt"),
    "truncated gzip": ("dat.gz", b"\x1f\x8b\x08\0", "truncated"),
}


@pytest.mark.parametrize("case", BAD)
def test_malformed_files_are_errors(file, case):
    ending, content, *parts = BAD[case]
    assert_read_error(file(content, f"bad.{ending}"), *parts)


@pytest.mark.parametrize("ending", ["dat", "basket"])
def test_tables_that_do_not_fit_into_memory_are_errors(tmp_path, ending, monkeypatch):
    path = tmp_path / f"lists.{ending}"
    ba.write(random_bits(3, 50, 300, 0.5), path)
    monkeypatch.setattr("bitatoms.io.stream.memory_limit", lambda: 1000)
    assert_read_error(path, "GiB")


@pytest.mark.parametrize("ending", ["dat", "basket"])
def test_lists_are_read_once(tmp_path, ending, monkeypatch):
    path = tmp_path / f"lists.{ending}"
    path.write_text("1\n")
    monkeypatch.setattr("bitatoms.io.stream.Source.check_size", lambda *_, **__: path.write_text("5\n"))
    assert ba.read(path).columns == ("1",)
