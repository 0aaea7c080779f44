"""`bitatoms fit --weight-column`, and `--codes`: the codes that the counts of a model refer to."""

import numpy as np
import pytest

import bitatoms as ba

pytest.importorskip("click")

from bitatoms.cli.files import read_with_weights
from bitatoms.cli.paths import Input
from bitatoms.engine.block import reconstruct
from support.scripts import bits_of, data_of
from support.zoo import WEIGHTS

pytestmark = pytest.mark.usefixtures("few_trials")


@pytest.fixture(autouse=True)
def counted(put):
    """The model and the table of the files model.npz and table.csv, whose last column has the weights."""
    return put("weights")


def test_a_weight_column_gives_the_model_of_the_weights(bitatoms, counted, tmp_path):
    outputs = ("-o", "m.npz", "--codes", "codes.csv", "--report", "r.html")
    printed = bitatoms.output("fit", "table.csv", "--weight-column", "count", *outputs)
    assert "table.csv: 60 rows of 12 columns" in printed
    assert f"Weights: column 'count', {WEIGHTS.sum()} rows in all" in printed
    assert "Next:" not in bitatoms("fit", "table.csv", "--weight-column", "count", "-k", "1", "-o", "one.npz")[1]
    assert ba.load("m.npz").components_.tolist() == counted.model.components_.tolist()
    assert ba.load("m.npz").codelength_ == counted.model.codelength_
    codes = ba.read("codes.csv")
    assert codes.row_names == counted.table.row_names
    expected = ba.factorize(counted.table, sample_weight=WEIGHTS, random_state=0).codes
    assert codes.bits == expected
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "may be new to them" not in page
    repeated = np.repeat(codes.to_dense(), WEIGHTS, axis=0)  # each row as often as it counts
    np.testing.assert_array_equal(bits_of(data_of(page)["rows"]["codes"], *repeated.shape), repeated)


def assert_is_read(path, counted, row_names):
    table, weights = read_with_weights(Input(path), "count", quiet=True)
    assert (table.columns, table.row_names) == (counted.table.columns, row_names)
    np.testing.assert_array_equal(table.to_dense(), counted.table.to_dense())
    np.testing.assert_array_equal(weights, WEIGHTS)


def test_text_files(counted, tmp_path):
    """Different weights in the first column are not taken for names; R writes no cell above the names of rows."""
    rows = [line.split(",") for line in (tmp_path / "table.csv").read_text().splitlines()]
    first = [[row[-1], *row[1:-1]] for row in rows]
    r = [rows[0][1:], *rows[1:]]
    for name, cells in (("first.csv", first), ("r.csv", r), ("last.csv", rows)):
        (tmp_path / name).write_text("".join(f"{','.join(row)}\n" for row in cells) + "\n")
        assert_is_read(tmp_path / name, counted, None if name == "first.csv" else counted.table.row_names)


@pytest.mark.parametrize("extension", ["parquet", "feather", "xlsx"])
def test_other_formats(counted, tmp_path, extension):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("openpyxl" if extension == "xlsx" else "pyarrow")
    frame = pandas.DataFrame(counted.table.to_dense(), columns=counted.table.columns)
    frame.insert(3, "count", WEIGHTS)
    path = tmp_path / f"rows.{extension}"
    if extension == "xlsx":
        frame.to_excel(path, index=False)
    else:
        getattr(frame, f"to_{extension}")(path)
    assert_is_read(path, counted, None)


BAD = [  # what replaces the weight 0 of a row, and the message
    ("2.5", "bad.csv: LINE, column 'count': '2.5' is not a whole number from 0 up; multiply all"),
    ("-1", "LINE, column 'count': '-1' is not a whole number from 0 up; pass 0 to leave a row out"),
    ("1e300", "LINE, column 'count': '1e300' is not a whole number from 0 up; a weight is how often"),
    ("inf", "LINE, column 'count': 'inf' is not a "),
    ("many", "LINE, column 'count': 'many' is not a number; a weight is a whole number from 0 up"),
    ("", "LINE, column 'count': '' is not a number"),
    ("item 3", "columns 5 and 14 have the same name 'count'; rename one"),
]


@pytest.mark.parametrize(("weight", "message"), BAD)
def test_invalid_weights(bitatoms, tmp_path, weight, message):
    lines = (tmp_path / "table.csv").read_text().splitlines(keepends=True)
    row = int(np.argmin(WEIGHTS)) + 1
    if weight == "item 3":
        lines[0] = lines[0].replace(weight, "count")
    else:
        assert lines[row].endswith(",0\n")
        lines[row] = f"{lines[row][:-2]}{weight}\n"
    (tmp_path / "bad.csv").write_text("".join(lines))
    code, _, error = bitatoms("fit", "bad.csv", "--weight-column", "count")
    assert (code, message.replace("LINE", f"line {row + 1}") in error) == (2, True), error


# --- codes

X = ba.datasets.planted(300, 40, 12, code_density=0.3, noise=0.15, random_state=2).X


@pytest.mark.parametrize(("rows", "how"), [("rows.npz", ()), ("rows.zarr", ("--search-rows", "150"))])
def test_the_counts_of_a_model_are_those_of_the_codes_that_fit_writes_and_its_report_shows(
    bitatoms, tmp_path, rows, how
):
    pytest.importorskip("zarr")
    ba.write(X, "rows.npz")
    ba.pack("rows.npz", "rows.zarr")
    written = ("-o", "model.npz", "--codes", "codes.npz", "--report", "fit.html")
    assert bitatoms("fit", rows, *written, "--algebra", "xor", *how)[0] == 0
    model, codes = ba.load("model.npz").as_model(), ba.read("codes.npz").bits
    np.testing.assert_array_equal(codes.column_weights(), model.uses)
    wrong = reconstruct(codes, model.atoms, model.bias, model.algebra).to_dense() != X
    np.testing.assert_array_equal(wrong.sum(axis=0), model.wrong)
    page = (tmp_path / "fit.html").read_text(encoding="utf-8")
    np.testing.assert_array_equal(bits_of(data_of(page)["rows"]["codes"], *codes.shape), codes.to_dense())
    assert "with the patterns that the fit gave them" in page
    assert bitatoms("transform", "model.npz", "rows.npz", "-o", "again.npz")[0] == 0
    assert ba.read("again.npz").bits != codes  # this table shows the difference
    assert bitatoms("report", "model.npz", "rows.npz", "-o", "again.html")[0] == 0
    assert "does not hold the codes of its fit" in (tmp_path / "again.html").read_text(encoding="utf-8")
