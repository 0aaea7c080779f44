"""Tables of categories, long tables and lists of items on the command line."""

import csv
import io
import json
import shlex
from importlib.util import find_spec

import numpy as np
import pytest

import bitatoms as ba

pytest.importorskip("typer")

from bitatoms.errors import InputWarning
from bitatoms.io.values import write_values
from support.commands import runner

pytestmark = [
    pytest.mark.usefixtures("few_trials"),
    pytest.mark.filterwarnings("always::bitatoms.errors.InputWarning"),  # the command line prints them
]
FIT = ("fit", "customers.csv", "--categories", "-k", "4", "--algebra", "or")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with customers and a model of them, and a model of the same table without its encoding."""
    folder = tmp_path_factory.mktemp("customers")
    write_values(ba.datasets.customers(150), None, folder / "customers.csv", "csv")
    with pytest.warns(InputWarning, match="missing values are read as unknown cells"):
        table = ba.read(folder / "customers.csv", categories=True)
    estimator = ba.BinaryDictionaryLearning(4, algebra="or", search="paper", random_state=0)
    estimator.fit(table).save(folder / "model.npz")
    numbers = ba.Table(table.bits, None, [f"c{column}" for column in range(table.shape[1])])
    ba.write(numbers, folder / "numbers.csv")
    estimator.fit(numbers).save(folder / "numbers.npz")
    (folder / "wrong.csv").write_text("age,household\nold,single\n")
    return folder


@pytest.fixture
def bitatoms(capsys, monkeypatch, folder):
    """Run a command in the folder."""
    monkeypatch.chdir(folder)
    return runner(capsys)


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_a_table_of_categories_from_fit_to_completion(bitatoms, folder):
    code, stdout, stderr = bitatoms(*FIT, "-o", "fitted.npz")
    assert code == 0
    assert "missing values are read as unknown cells" in stderr
    assert "Encoded: age (4 bins), household (4 values)" in stdout
    assert stdout.splitlines()[-1] == "Next: bitatoms report fitted.npz customers.csv -o report.html"
    assert bitatoms(*shlex.split(stdout.splitlines()[-1])[2:], "-q")[:2] == (0, "")
    (folder / "new.csv").write_text("household,age,channel,payment,income,orders,newsletter\n,22,app,wallet,12,2,no\n")
    for table, n_rows in (("new.csv", 1), ("customers.csv", 150)):
        assert bitatoms("transform", "fitted.npz", table, "-o", "codes.npz", "-q")[0] == 0
        assert len(ba.read("codes.npz")) == n_rows
    code, stdout, _ = bitatoms("complete", "fitted.npz", "new.csv", "--decode", "-o", "filled.csv")
    assert (code, stdout) == (0, "filled.csv: 1 row of 7 columns, 1 missing value filled in\n")
    header, values = rows_of("filled.csv")
    assert header == ["age", "household", "channel", "payment", "income", "orders", "newsletter"]
    assert values == ["22", "shared flat", "app", "wallet", "12", "2", "no"]  # known numbers are as they were
    code, stdout, _ = bitatoms("reconstruct", "model.npz", "new.csv", "--decode", "-o", "made.csv")
    assert (code, stdout) == (0, "made.csv: 1 row of 7 columns\n")
    assert rows_of("made.csv")[0] == header
    assert rows_of("made.csv")[1][0].startswith("age<")
    assert bitatoms("transform", "model.npz", "made.csv", "-o", "codes.npz")[0] == 0  # names of bins are values too


def test_known_values_are_written_as_the_file_has_them(bitatoms, folder):
    names = ["customer", "age", "household", "channel", "payment", "income", "orders", "newsletter"]
    given = [["c1", "22.0", "", "app", "wallet", "1.20e1", "2.0", "True"], ["c2", "", "boat", "", "", "", "", ""]]
    lines = [",".join(row) for row in (names, given[0], [""] * 8, given[1])]  # a blank row has no name
    (folder / "new.csv").write_text("".join(f"{line}\n" for line in lines))
    command = "complete", "model.npz", "new.csv", "--decode", "-o", "filled.csv", "--json"
    stdout = bitatoms(*command)[1]
    assert {"rows": 2, "columns": 7, "filled": 7}.items() <= json.loads(stdout).items()
    header, *rows = rows_of("filled.csv")
    assert header == names
    for known, filled in zip(given, rows, strict=True):
        assert all(value in ("", made) for value, made in zip(known, filled, strict=True))
    assert rows[1][-1] in ("True", "no")  # as the file spells it, if it does


def test_completed_tables_have_one_value_per_variable(bitatoms):
    for method in ((), ("--neighbours",)):
        assert bitatoms("complete", "model.npz", "customers.csv", *method, "--decode", "-o", "filled.csv", "-q")[0] == 0
        before, after = rows_of("customers.csv"), rows_of("filled.csv")
        assert all(all(row) for row in after)
        for given, made in zip(before[1:], after[1:], strict=True):
            assert all(value in ("", filled) for value, filled in zip(given, made, strict=True))
    assert any("age" in row[0] or "<" in row[0] for row in after[1:])  # only ages that were missing are bins


@pytest.mark.skipif(not find_spec("openpyxl"), reason="needs openpyxl")
def test_known_numbers_are_numbers_in_a_sheet(bitatoms, folder, monkeypatch):
    import openpyxl

    (folder / "new.csv").write_text("age,household\n22.50,\n,boat\n")
    stdin = io.TextIOWrapper(io.BytesIO((folder / "new.csv").read_bytes()))
    monkeypatch.setattr("sys.stdin", stdin)
    code = bitatoms("complete", "model.npz", "-", "--decode", "--absent", "unknown", "-o", "filled.xlsx", "-q")[0]
    assert code == 0
    _, first, second = openpyxl.load_workbook("filled.xlsx").active.iter_rows(values_only=True)
    assert first[0] == 22.5
    assert isinstance(second[0], str)
    assert second[1] == "boat"  # which the model does not know


def test_a_store_of_categories(bitatoms):
    assert bitatoms("pack", "customers.csv", "--categories", "-o", "customers.zarr", "-q")[0] == 0
    for table in ("customers.zarr", "customers.csv"):
        assert bitatoms("transform", "model.npz", table, "-o", f"codes-{table}.npz", "-q")[0] == 0
    assert ba.read("codes-customers.zarr.npz") == ba.read("codes-customers.csv.npz")


ERRORS = {
    "decode": ("complete numbers.npz numbers.csv --decode", "numbers.npz: the model was not learned from a table of"),
    "decode to bits": ("complete model.npz customers.csv --decode -o x.npz", "written as .csv, .tsv or .xlsx"),
    "decode a list": ("complete model.npz customers.csv --decode --only-missing", "omit --only-missing"),
    "type": ("transform model.npz wrong.csv", "wrong.csv: the column 'age' contains text, such as 'old'"),
    "bins": ("fit customers.csv --bins 3", "customers.csv: --bins requires --categories"),
    "column": ("fit customers.csv --categories --as-number agee", "--as-number agee: there is no such column"),
    "no categories": ("fit customers.csv", "--categories"),
    "long": ("fit customers.csv --long age", "--long must be two columns"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_name_the_option(bitatoms, case):
    command, part = ERRORS[case]
    code, stdout, stderr = bitatoms(*command.split())
    assert (code, stdout) == (2, "")
    assert part in " ".join(stderr.replace("│", " ").split())


def test_exports_of_shops(bitatoms, folder):
    (folder / "orders.csv").write_text("order,item,price\n" + "".join(f"{n // 2},{'ab'[n % 2]},3\n" for n in range(40)))
    code, stdout, stderr = bitatoms("fit", "orders.csv", "-k", "1", "-o", "orders.npz")
    assert code == 0
    assert "--long chooses other columns, and --categories reads a table of categories" in stderr
    assert "orders.csv: 20 rows of 2 columns" in stdout
    code, stdout, _ = bitatoms("fit", "orders.csv", "--long", "order,item", "-k", "1", "-o", "orders.npz")
    assert stdout.splitlines()[-1] == "Next: bitatoms report orders.npz orders.csv -o report.html --long order,item"
    assert bitatoms(*shlex.split(stdout.splitlines()[-1])[2:])[0] == 0
    (folder / "items.dat").write_text("1 2\n2\n")
    (folder / "items.csv").write_text("1,milk\n2,tea\n")
    assert bitatoms("convert", "items.dat", "-", "--names", "items.csv")[1].splitlines()[0] == "milk,tea"


def test_sheets(bitatoms):
    pytest.importorskip("openpyxl")
    assert bitatoms("complete", "model.npz", "customers.csv", "--decode", "-o", "filled.xlsx", "-q")[0] == 0
    assert bitatoms("transform", "model.npz", "filled.xlsx", "-o", "codes.xlsx", "-q")[0] == 0
    assert bitatoms("show", "model.npz", "--patterns", "patterns.xlsx")[0] == 0
    assert ba.read("codes.xlsx").shape == (150, 4)
    assert bitatoms("convert", "codes.xlsx", "-", "--sheet", "2")[0] == 2


def test_customers_are_reproducible():
    frame = ba.datasets.customers(50, random_state=3)
    assert frame == ba.datasets.customers(50, random_state=3)
    assert {len(values) for values in frame.values()} == {50}
    assert any(value is None for values in frame.values() for value in values)
    assert np.isfinite([value for value in frame["income"] if value is not None]).all()
