"""Reading and writing tables: names that text files can and cannot keep, options that do not apply."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bitatoms as ba
from bitatoms.errors import InputWarning

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
