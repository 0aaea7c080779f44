"""Tables of categories, long tables and lists of items on the command line."""

import csv
import io
import json
import shlex
from importlib.util import find_spec

import pytest

import bitatoms as ba

pytest.importorskip("click")

pytestmark = [
    pytest.mark.usefixtures("few_trials"),
    pytest.mark.filterwarnings("always::bitatoms.errors.InputWarning"),  # the command line prints them
]
VARIABLES = ["age", "household", "channel", "payment", "income", "orders", "newsletter"]


@pytest.fixture(autouse=True)
def customers(put):
    """The model and the encoded table of the files model.npz and table.csv."""
    return put("categories")


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_a_table_of_categories_from_fit_to_completion(bitatoms, tmp_path):
    code, stdout, stderr = bitatoms("fit", "table.csv", "--categories", "-k", "4", "--algebra", "or", "-o", "m.npz")
    assert code == 0
    assert "missing values are read as unknown cells" in stderr
    assert "Encoded: age (4 bins), household (4 values)" in stdout
    assert stdout.splitlines()[-1] == "Next: bitatoms report m.npz table.csv -o report.html"
    assert bitatoms(*shlex.split(stdout.splitlines()[-1])[2:], "-q")[:2] == (0, "")
    (tmp_path / "new.csv").write_text(
        "household,age,channel,payment,income,orders,newsletter\n,22,app,wallet,12,2,no\n"
    )
    code, stdout, _ = bitatoms("complete", "m.npz", "new.csv", "--decode", "-o", "filled.csv")
    assert (code, stdout) == (0, "filled.csv: 1 row of 7 columns, 1 missing value filled in\n")
    header, values = rows_of("filled.csv")
    assert header == VARIABLES
    assert values == ["22", "shared flat", "app", "wallet", "12", "2", "no"]  # known numbers are as they were
    code, stdout, _ = bitatoms("reconstruct", "m.npz", "new.csv", "--decode", "-o", "made.csv")
    assert (code, stdout) == (0, "made.csv: 1 row of 7 columns\n")
    assert rows_of("made.csv")[0] == VARIABLES
    assert rows_of("made.csv")[1][0].startswith("age<")
    for table in ("made.csv", "table.csv"):  # names of bins are values too
        assert bitatoms("transform", "m.npz", table, "-o", "codes.npz")[0] == 0
        assert len(ba.read("codes.npz")) == len(rows_of(table)) - 1


def test_known_values_are_written_as_the_file_has_them(bitatoms, tmp_path):
    given = [["c1", "22.0", "", "app", "wallet", "1.20e1", "2.0", "True"], ["c2", "", "boat", "", "", "", "", ""]]
    lines = [",".join(row) for row in (["customer", *VARIABLES], given[0], [""] * 8, given[1])]
    (tmp_path / "new.csv").write_text("".join(f"{line}\n" for line in lines))  # a blank row has no name
    stdout = bitatoms("complete", "model.npz", "new.csv", "--decode", "-o", "filled.csv", "--json")[1]
    assert {"rows": 2, "columns": 7, "filled": 7}.items() <= json.loads(stdout).items()
    header, *rows = rows_of("filled.csv")
    assert header == ["customer", *VARIABLES]
    for known, filled in zip(given, rows, strict=True):
        assert all(value in ("", made) for value, made in zip(known, filled, strict=True))
    assert rows[1][-1] in ("True", "no")  # as the file spells it, if it does


def test_completed_tables_have_one_value_per_variable(bitatoms):
    assert bitatoms("complete", "model.npz", "table.csv", "--neighbours", "--decode", "-o", "filled.csv", "-q")[0] == 0
    before, after = rows_of("table.csv"), rows_of("filled.csv")
    assert all(all(row) for row in after)
    for given, made in zip(before[1:], after[1:], strict=True):
        assert all(value in ("", filled) for value, filled in zip(given, made, strict=True))
    assert any("age" in row[0] or "<" in row[0] for row in after[1:])  # only ages that were missing are bins


@pytest.mark.skipif(not find_spec("openpyxl"), reason="needs openpyxl")
def test_known_numbers_are_numbers_in_a_sheet(bitatoms, monkeypatch):
    import openpyxl

    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"age,household\n22.50,\n,boat\n")))
    how = ("--decode", "--absent", "unknown", "-o", "filled.xlsx", "-q")
    assert bitatoms("complete", "model.npz", "-", *how)[0] == 0
    _, first, second = openpyxl.load_workbook("filled.xlsx").active.iter_rows(values_only=True)
    assert first[0] == 22.5
    assert isinstance(second[0], str)
    assert second[1] == "boat"  # which the model does not know
    assert bitatoms("transform", "model.npz", "filled.xlsx", "--absent", "unknown", "-o", "codes.xlsx", "-q")[0] == 0
    assert ba.read("codes.xlsx").shape == (2, 4)
    assert bitatoms("convert", "codes.xlsx", "-", "--sheet", "2")[0] == 2


def test_a_store_of_categories(bitatoms):
    pytest.importorskip("zarr")
    assert bitatoms("pack", "table.csv", "--categories", "-o", "rows.zarr", "-q")[0] == 0
    for table in ("rows.zarr", "table.csv"):
        assert bitatoms("transform", "model.npz", table, "-o", f"{table}.npz", "-q")[0] == 0
    assert ba.read("rows.zarr.npz") == ba.read("table.csv.npz")


def test_exports_of_shops(bitatoms, tmp_path):
    (tmp_path / "orders.csv").write_text(
        "order,item,price\n" + "".join(f"{n // 2},{'ab'[n % 2]},3\n" for n in range(40))
    )
    code, _, stderr = bitatoms("fit", "orders.csv", "-k", "1", "-o", "orders.npz")
    advised = "bitatoms fit orders.csv -k 1 -o orders.npz --long order,item"
    assert code == 2
    assert f"if each line names a row and one of its items, run {advised}; for categories" in stderr
    stdout = bitatoms.output(*advised.split()[1:])
    assert "orders.csv: 20 rows of 2 columns" in stdout
    (tmp_path / "items.dat").write_text("1 2\n2\n")
    (tmp_path / "items.csv").write_text("1,milk\n2,tea\n")
    assert bitatoms("convert", "items.dat", "-", "--names", "items.csv")[1].splitlines()[0] == "milk,tea"
