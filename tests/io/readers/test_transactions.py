"""Transactions: round trips of item numbers and item names, malformed files."""

from __future__ import annotations

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.io import text_numbers
from bitatoms.io.readers import transactions
from bitatoms.table import Header, Table
from support.files import assert_read_error
from support.strategies import random_bits

# Item numbers


def test_columns_are_the_distinct_numbers_in_increasing_order(tmp_path):
    (tmp_path / "lists.dat").write_bytes(b"7 1000000000000000000\r\n\r\n  3\t7 \r\n3 3 03")
    table = ba.read(tmp_path / "lists.dat")
    assert table.columns == ("3", "7", "1000000000000000000")
    np.testing.assert_array_equal(table.to_dense(), [[0, 1, 1], [0, 0, 0], [1, 1, 0], [1, 0, 0]])


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


def test_empty_line_is_a_row_without_items(tmp_path):
    for text, n_rows in (("\n", 1), ("\n\n", 2), ("0\n\n", 2), ("\n0", 2), (" ", 1)):
        (tmp_path / "lists.dat").write_text(text)
        assert ba.read(tmp_path / "lists.dat").shape == (n_rows, int("0" in text))


def test_round_trip_of_numeric_names(tmp_path):
    table = Table(BitMatrix.from_dense([[1, 0], [1, 1]]), columns=["12", "345"])
    ba.write(table, tmp_path / "lists.fimi")
    assert (tmp_path / "lists.fimi").read_text() == "12\n12 345\n"
    assert ba.read(tmp_path / "lists.fimi") == table


@pytest.mark.parametrize("name", ["milk", "-1", "007", "1.0", "٣", "", "9" * 30])
def test_writing_other_names_as_numbers_is_an_error(tmp_path, name):
    table = Table(BitMatrix.from_dense([[1, 0]]), columns=["1", name])
    with pytest.raises(ba.FileError, match=r"lists\.dat: .*non-negative integers.*\.npz") as caught:
        ba.write(table, tmp_path / "lists.dat")
    assert repr(name) in str(caught.value)
    assert not (tmp_path / "lists.dat").exists()


def test_many_distinct_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr(transactions, "CHUNK_ENTRIES", 10)
    monkeypatch.setattr(text_numbers, "_CHUNK_BYTES", 100)
    numbers = np.random.default_rng(0).choice(10**9, 500, replace=False)
    (tmp_path / "lists.dat").write_text("".join(f"{number}\n" for number in numbers))
    table = ba.read(tmp_path / "lists.dat")
    assert list(map(int, table.columns)) == sorted(numbers)
    np.testing.assert_array_equal(table.to_dense().argmax(1), np.argsort(np.argsort(numbers)))


# Item names


def test_columns_are_in_order_of_first_appearance(tmp_path):
    (tmp_path / "lists.basket").write_text('milk, bread\n\n"a, b",milk,milk,,\n')
    table = ba.read(tmp_path / "lists.basket")
    assert table.columns == ("milk", "bread", "a, b")
    np.testing.assert_array_equal(table.to_dense(), [[1, 1, 0], [0, 0, 0], [1, 0, 1]])


def test_separator(tmp_path):
    (tmp_path / "lists.basket").write_text("milk;a,b\n")
    assert ba.read(tmp_path / "lists.basket", separator=";").columns == ("milk", "a,b")
    (tmp_path / "lists.basket").write_text("milk bread\n")
    assert ba.read(tmp_path / "lists.basket", separator=" ").columns == ("milk", "bread")
    for separator in ("--", '"', "\n"):
        assert_read_error(tmp_path / "lists.basket", "one character", separator=separator)


@pytest.mark.parametrize("name", ["", " milk", "milk\t", "a\rb", "a\0b"])
def test_writing_names_that_cannot_be_read_back_is_an_error(tmp_path, name):
    table = Table(BitMatrix.from_dense([[1, 0]]), columns=["a", name])
    with pytest.raises(ba.FileError, match=r"lists\.basket: .*blanks.*\.npz"):
        ba.write(table, tmp_path / "lists.basket")


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
    "empty numbers": ("dat", b"", "empty"),
    "empty names": ("basket", b"", "empty"),
    "a word": ("dat", b"1 2\n3 milk\n", "line 2: 'milk' is not a non-negative integer", 'format="baskets"'),
    "a negative number": ("dat", b"1 2\n-1\n", "line 2: '-1' is not a non-negative integer"),
    "a fraction": ("dat", b"1 2\n\n1.0\n", "line 3: '1.0' is not a non-negative integer"),
    "commas": ("dat", b"1,2\n", "line 1: '1,2' is not"),
    "a zero byte": ("dat", b"1 2\0\n", "line 1"),
    "other bytes": ("dat", b"1 2\n\xff\xfe3\n", "line 2"),
    "a number too large": ("dat", b"1\n2 99999999999999999999\n", "line 2", "too large"),
    "numbers in UTF-16": ("dat", "1 2\n".encode("utf-16"), "line 1"),
    "names in UTF-16": ("basket", "a,b\n".encode("utf-16"), "line 1"),
    "names in Latin-1": ("basket", "milk\nKäse\n".encode("latin-1"), "line 2 is not UTF-8"),
    "an unclosed quote": ("basket", b'milk\n"bread\n', "line 2", "quote"),
    "another format": ("dat", b"%%MatrixMarket matrix\n", "looks like 'mtx'"),
    "corrupt gzip": ("dat.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\0hello", "corrupt"),
    "truncated gzip": ("dat.gz", b"\x1f\x8b\x08\0", "truncated"),
}


@pytest.mark.parametrize("case", BAD)
def test_malformed_files_are_errors(tmp_path, case):
    ending, content, *parts = BAD[case]
    (tmp_path / f"bad.{ending}").write_bytes(content)
    assert_read_error(tmp_path / f"bad.{ending}", *parts)


@pytest.mark.parametrize("ending", ["dat", "basket"])
def test_table_that_does_not_fit_into_memory_is_an_error(tmp_path, ending, monkeypatch):
    monkeypatch.setattr("bitatoms.io.stream.memory_limit", lambda: 1000)
    ba.write(random_bits(3, 50, 300, 0.5), tmp_path / f"lists.{ending}")
    assert_read_error(tmp_path / f"lists.{ending}", "GiB")


@pytest.mark.parametrize("ending", ["dat", "basket"])
def test_file_that_changes_while_it_is_read_is_an_error(tmp_path, ending, monkeypatch):
    path = tmp_path / f"lists.{ending}"
    path.write_text("1\n")
    monkeypatch.setattr("bitatoms.io.stream.Source.check_size", lambda *_, **__: path.write_text("5\n"))
    assert_read_error(path, "changed while it was read")


@pytest.mark.parametrize("name", ["sep=;", "\ufeffmilk"])
def test_an_item_that_looks_like_the_beginning_of_a_text_file_survives(tmp_path, name):
    table = ba.Table(ba.BitMatrix.from_dense([[1, 0], [1, 1]]), columns=[name, "tea"])
    ba.write(table, tmp_path / "table.basket")
    assert ba.read(tmp_path / "table.basket") == table
