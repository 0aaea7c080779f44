"""Missing values on the command line: notes, descriptions, --missing and --absent."""

import numpy as np
import pytest

import bitatoms as ba

pytest.importorskip("typer")

from support.commands import runner

pytestmark = [
    pytest.mark.usefixtures("few_trials"),
    pytest.mark.filterwarnings("always::bitatoms.errors.InputWarning"),  # the command line prints them
]


@pytest.fixture
def bitatoms(capsys, monkeypatch, tmp_path):
    """Return a function that runs a command in a folder with a table; cells of column b and row 3 are missing."""
    monkeypatch.chdir(tmp_path)
    values = np.tile([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]], (20, 1))
    values[::5, 1] = values[3, :2] = np.nan
    ba.write(ba.Table(ba.Table.from_any(values).bits, None, ["a", "b", "c"]), "table.csv")
    return runner(capsys)


NOTE = "Note: table.csv: 10 missing values are read as unknown cells\n"
WHERE = "Most unknown cells are in the columns b (22.5%), a (2.5%), and in the rows row 3 (66.7%), row 0 (33.3%), row 5"


def test_notes_and_descriptions(bitatoms):
    code, out, err = bitatoms("fit", "table.csv", "-o", "model.npz", "--search", "paper", "--atoms", "1")
    assert code == 0
    assert NOTE in err
    shape, where, *_ = (out + err).replace(NOTE, "").splitlines()
    assert shape.startswith("table.csv: 40 rows of 3 columns, ")
    assert " ones among the known cells, 8.3% unknown, columns have names" in shape
    assert where.startswith(WHERE)
    code, out, err = bitatoms("convert", "table.csv", "copy.npz")
    assert (code, err) == (0, NOTE)
    assert WHERE in out
    assert bitatoms("convert", "copy.npz", "copy.pairs", "--missing", "zero")[:2] == (0, out_of("copy.pairs"))
    code, out, err = bitatoms("convert", "copy.npz", "copy.basket")
    assert code == 2
    assert (
        "copy.basket: 10 cells are unknown, which this format cannot store; read the table with --missing zero" in err
    )


def out_of(name):
    """Return what is printed about the table with zeros in place of missing values."""
    n_ones = ba.read("table.csv", missing="zero").bits.count()
    return f"{name}: 40 rows of 3 columns, {100 * n_ones / 120:.1f}% ones\n"


def test_missing_values_as_errors(bitatoms):
    code, out, err = bitatoms("convert", "table.csv", "copy.csv", "--missing", "refuse")
    assert (code, out) == (2, "")
    assert "10 values are missing, the first at line 2, column 'b'; fill them in, or pass --missing zero" in err


def test_new_rows_and_codes(bitatoms, tmp_path):
    assert bitatoms("fit", "table.csv", "-o", "model.npz", "--search", "paper", "--atoms", "1", "-q")[0] == 0
    (tmp_path / "fewer.csv").write_text("c,a\n0,1\n1,0\n")
    code, _, err = bitatoms("transform", "model.npz", "fewer.csv")
    assert code == 2
    assert "add them, or pass --absent zero to read them as 0, or --absent unknown" in err
    code, _, err = bitatoms("transform", "model.npz", "fewer.csv", "--absent", "unknown")
    assert code == 0
    assert "Note: fewer.csv: 1 absent column is unknown: 'b'\n" in err
    (tmp_path / "codes.csv").write_text("atom1\n1\nNA\n0\n")
    code, _, err = bitatoms("reconstruct", "model.npz", "--codes", "codes.csv", "-o", "made.csv")
    assert code == 2
    assert "codes.csv: 1 value is missing, at line 3, column 'atom1'" in err


def test_the_cells_of_a_store_are_set_when_it_is_packed(bitatoms):
    assert bitatoms("pack", "table.csv", "-o", "rows.zarr")[0] == 0
    assert "40 rows of 3 columns, packed, some cells unknown, columns have names" in bitatoms("show", "rows.zarr")[1]
    code, out, err = bitatoms("fit", "rows.zarr", "--missing", "zero")
    assert (code, out) == (2, "")
    assert "rows.zarr: some of its cells are unknown, which only bitatoms pack can change; omit --missing zero" in err
    assert bitatoms("pack", "table.csv", "-o", "rows.zarr", "--missing", "zero")[0] == 0
    assert ba.read("rows.zarr").bits == ba.read("table.csv", missing="zero").bits


def test_methods_are_compared_on_complete_tables(bitatoms):
    code, out, err = bitatoms("compare", "table.csv")
    assert (code, out) == (2, "")
    assert "10 values are missing, the first at line 2, column 'b'; fill them in, or pass --missing zero" in err
