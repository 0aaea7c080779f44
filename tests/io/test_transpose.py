"""Rows and columns exchanged while a file is read: bits, names, and the memory that this takes."""

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.bits import BitMatrix
from bitatoms.table import Table
from support.files import assert_read_error
from support.strategies import random_bits

pytestmark = pytest.mark.usefixtures("few_trials")


def test_duplicates_are_those_of_the_new_columns(tmp_path):
    path = tmp_path / "genes.csv"
    path.write_text(",cell,cell\nCD3E,1,0\nLYZ,0,1\nCD3E,1,1\n")
    assert_read_error(path, "columns 1 and 3 have the same name 'CD3E'", 'duplicates="number"', transpose=True)
    table = ba.read(path, transpose=True, duplicates="number")
    assert (table.row_names, table.columns) == (("cell", "cell"), ("CD3E", "LYZ", "CD3E.2"))


@pytest.mark.parametrize("format", ["csv", "npz"])
def test_without_names_columns_of_the_file(tmp_path, format):
    table = Table(BitMatrix.from_dense(random_bits(2, 6, 5, 0.5)), list("uvwxyz"), list("abcde"))
    path = tmp_path / f"table.{format}"
    ba.write(table, path)
    fewer = Table(table.bits.take_columns([0, 2, 3]).transpose(), list("acd"), table.row_names)
    assert ba.read(path, transpose=True, without=["b", "e"]) == fewer
    assert_read_error(path, "there is no column 'u'", transpose=True, without="u")


@pytest.mark.parametrize("name", ["table.csv", "table.npy", "table.mtx"])
def test_both_tables_must_fit_into_memory(tmp_path, monkeypatch, name):
    """But not for stores, whose rows are not kept."""
    pytest.importorskip("zarr")
    path = tmp_path / name
    ba.write(random_bits(4, 1000, 64, 0.5), path)
    monkeypatch.setattr("bitatoms.io.stream.memory_limit", lambda: 8000 + 8000)
    assert_read_error(path, "1000 rows of 64 columns and their transpose take", transpose=True)
    store = ba.pack(path, tmp_path / "rows.zarr", transpose=True)
    monkeypatch.setattr("bitatoms.io.stream.memory_limit", lambda: 8000 + 64 * 128)
    assert store.shape == (64, 1000)
    assert ba.read(store.path) == ba.read(path, transpose=True)
    assert store.about["options"] == {"transpose": True}
    with pytest.raises(ValueError, match="transpose applies only to files; omit it"):
        ba.pack(np.eye(3, dtype=np.uint8), tmp_path / "rows.zarr", transpose=True)
