"""Reading and writing tables: names that text files can and cannot keep, transposed tables, the format of a file."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bitatoms as ba
from bitatoms.errors import InputWarning
from bitatoms.io.formats.registry import FORMATS, infer_format, load_reader
from support.files import assert_read_error
from support.strategies import random_bits

AWKWARD_NAMES = {  # of columns and of rows
    "blanks around": ([" a", "b ", "c\n", "\td"], [" ann", "ann ", "ann"]),
    "blanks around names that look like cells": ([" 1", "0 "], [" 1", "0", "x"]),
    "another separator in each line": (["a;b;c"], ["x;y;z", "y;z;x", "z;x;y"]),
    "another separator in each line, quoted": (["a\t|", "b\t|"], ['"x"\t|', "y\t|", ",z\t|"]),
    "a declared separator": (["sep=;"], None),
    "a byte order mark": (["\ufeffa", "b"], None),
    "quotes": (['"a"', 'b"', '" c"'], ['"', '""', '", "']),
    "formulas": (["-1+2", "@sum(1)"], ["=1+2", "+cmd", "-3"]),
}


@pytest.mark.parametrize("case", AWKWARD_NAMES)
@pytest.mark.parametrize("format", ["csv", "xlsx"])
def test_names_are_read_back_exactly(tmp_path, format, case):
    if format == "xlsx":
        pytest.importorskip("openpyxl")
    columns, rows = AWKWARD_NAMES[case]
    for bits in (np.eye(3, len(columns)), np.zeros((3, len(columns))), np.zeros((0, len(columns)))):
        table = ba.Table(ba.BitMatrix.from_dense(bits), rows if len(bits) else None, columns)
        if not len(bits) and case == "blanks around names that look like cells" and format == "xlsx":
            continue  # refused
        ba.write(table, tmp_path / f"table.{format}")
        assert ba.read(tmp_path / f"table.{format}") == table


PARTS = st.sampled_from((*"abx01,;|\t\n\"'#=-. ", "NA", "1.0", "yes", "sep=;", "\ufeff", "\u2028", "\x0b"))
NAMES = st.lists(PARTS, max_size=3).map("".join)


@settings(max_examples=60)
@given(data=st.data(), format=st.sampled_from(("csv", "tsv")))
@pytest.mark.filterwarnings("ignore:.*missing value:bitatoms.errors.InputWarning")
def test_tables_are_read_back_or_refused(tmp_path_factory, data, format):
    n_rows, n_cols = data.draw(st.integers(0, 3)), data.draw(st.integers(1, 3))
    cells = data.draw(st.lists(st.sampled_from((0, 1, np.nan)), min_size=n_rows * n_cols, max_size=n_rows * n_cols))
    rows, columns = (
        data.draw(st.none() | st.lists(NAMES, min_size=n, max_size=n, unique=True)) for n in (n_rows, n_cols)
    )
    bits = ba.BitMatrix.from_dense(np.reshape(cells, (n_rows, n_cols)).astype(float), missing="unknown")
    path = tmp_path_factory.mktemp("names") / f"table.{format}"
    try:
        ba.write(ba.Table(bits, rows, columns), path)
    except ba.FileError:
        assert not path.exists()
        return
    has_header = rows is not None or columns is not None
    names = (columns or [f"x{column}" for column in range(n_cols)]) if has_header else None
    assert ba.read(path) == ba.Table(bits, rows or None, names)


@pytest.mark.parametrize("format", ["csv", "tsv"])
def test_a_table_without_rows_keeps_its_columns(tmp_path, format):
    for columns in (["a", "b"], ["0", "1"]):
        table = ba.Table(ba.BitMatrix.zeros(0, 2), (), columns)
        ba.write(table, tmp_path / f"table.{format}")
        assert ba.read(tmp_path / f"table.{format}") == ba.Table(ba.BitMatrix.zeros(0, 2), None, columns)
    with pytest.raises(ba.FileError, match="cannot store a table without rows and column names"):
        ba.write(ba.Table(ba.BitMatrix.zeros(0, 2)), tmp_path / f"none.{format}")
    bits = ba.BitMatrix.from_dense([[np.nan], [0]], missing="unknown")
    table = ba.Table(bits, [" ", "  "], ["0"])  # an unknown cell is not quoted beside a name that is
    ba.write(table, tmp_path / f"table.{format}")
    with pytest.warns(InputWarning, match="1 missing value"):
        assert ba.read(tmp_path / f"table.{format}") == table


@pytest.mark.parametrize(
    ("columns", "part"),
    [
        (("", "b"), "the first column has no name"),
        (("a\rb", "b"), "cannot store the name 'a\\rb'"),
        (("a", "b\0"), "cannot store the name 'b\\x00'"),
        (("a", "\ud800"), "which cannot be encoded"),
    ],
)
def test_names_that_text_cannot_keep(tmp_path, columns, part):
    with pytest.raises(ba.FileError) as caught:
        ba.write(ba.Table(ba.BitMatrix.from_dense([[1, 0]]), None, columns), tmp_path / "table.csv")
    assert part in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["missing", "duplicates"])
def test_unknown_choices(tmp_path, name):
    (tmp_path / "table.csv").write_text("a,b\n1,0\n")
    with pytest.raises(ValueError, match=f"{name}='guess' is not available"):
        ba.read(tmp_path / "table.csv", **{name: "guess"})


# Rows and columns that are exchanged


def test_duplicates_are_those_of_the_new_columns(tmp_path):
    path = tmp_path / "genes.csv"
    path.write_text(",cell,cell\nCD3E,1,0\nLYZ,0,1\nCD3E,1,1\n")
    assert_read_error(path, "columns 1 and 3 have the same name 'CD3E'", 'duplicates="number"', transpose=True)
    table = ba.read(path, transpose=True, duplicates="number")
    assert (table.row_names, table.columns) == (("cell", "cell"), ("CD3E", "LYZ", "CD3E.2"))


@pytest.mark.parametrize("format", ["csv", "npz"])
def test_without_names_columns_of_the_file(tmp_path, format):
    table = ba.Table(ba.BitMatrix.from_dense(random_bits(2, 6, 5, 0.5)), list("uvwxyz"), list("abcde"))
    path = tmp_path / f"table.{format}"
    ba.write(table, path)
    fewer = ba.Table(table.bits.take_columns([0, 2, 3]).transpose(), list("acd"), table.row_names)
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


# The format of a file, by its name


@pytest.mark.parametrize("format", FORMATS)
def test_extensions_select_the_format(format):
    for extension in FORMATS[format].extensions:
        assert infer_format(f"table{extension}") == infer_format(f"a/b.csv/TABLE{extension.upper()}") == format
        if not FORMATS[format].is_writable:
            with pytest.raises(ba.FileError, match=f"the format '{format}' .* can only be read; write .h5ad or .npz"):
                ba.write([[1]], f"table{extension}")
        if FORMATS[format].gzip:
            assert infer_format(f"table{extension}.gz") == format


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("table.cvs", "unknown extension (did you mean .csv?); pass format, one of csv"),
        ("table.npy.gz", "unknown extension (did you mean .npy?)"),
        ("table.fam", "pass the .bed file"),
        ("table.pvar", "pass the .pgen file"),
        ("table.haps", "bcftools convert --hapsample2vcf"),
        ("table.xls", "save it as .xlsx or .csv"),
        ("table.jpg", "or to black and white (.pbm)"),
        ("table.pkl", "never loaded"),
    ],
)
def test_other_extensions(name, part):
    with pytest.raises(ba.FileError) as caught:
        infer_format(name)
    assert str(caught.value).startswith(f"{name}: ")
    assert part in str(caught.value)


def test_format_overrides_the_extension():
    assert infer_format("table.csv", "npz") == "npz"
    with pytest.raises(ba.FileError, match="there is no format 'excel'; choose from csv"):
        infer_format("table.csv", "excel")
    with pytest.raises(ba.FileError, match=r"unknown extension; use one of \.csv"):
        infer_format("table.jpg", writing=True)


def test_missing_library(monkeypatch):
    monkeypatch.setattr("bitatoms.io.formats.registry.find_spec", lambda name: None)
    for format, library, extra in (
        ("bed", "bed-reader", "plink"),
        ("bcf", "cyvcf2", "vcf"),
        ("pgen", "pgenlib", "pgen"),
    ):
        message = f'table: the format {format!r} needs {library}; install it with pip install "bitatoms[{extra}]"'
        with pytest.raises(ImportError, match=f"^{re.escape(message)}$"):
            load_reader(format, "table")
    assert hasattr(load_reader("csv", "table.csv"), "read")
