"""`bitatoms fit --weight-column`: a column of a file with the weights of its rows."""

import numpy as np
import pytest

import bitatoms as ba
import naive

pytest.importorskip("typer")

from bitatoms.cli.files import read_with_weights
from bitatoms.cli.options import Input, Reading
from bitatoms.parameters import ReadKwargs, with_defaults
from support.commands import runner

pytestmark = pytest.mark.usefixtures("few_trials")

NAMES = [f"item{number}" for number in range(12)]
X = ba.datasets.planted(60, 12, 3, code_density=0.4, noise=0.02, random_state=0).X
WEIGHTS = np.random.default_rng(0).permutation(60)
LINE = f"line {np.argmin(WEIGHTS) + 2}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Create a folder with counted rows in several formats, and a model of the repeated rows."""
    folder = tmp_path_factory.mktemp("weights")
    lines = [",".join(map(str, row)) for row in X.tolist()]
    write = {
        "first.csv": [f"count,{','.join(NAMES)}", *(f"{w},{line}" for w, line in zip(WEIGHTS, lines, strict=True))],
        "last.csv": [
            f"who,{','.join(NAMES)},count",
            *(f"p{k},{line},{w}.0" for k, (w, line) in enumerate(zip(WEIGHTS, lines, strict=True))),
        ],
        "r.csv": [
            f"{','.join(NAMES)},count",
            *(f"p{k},{line},{w}" for k, (w, line) in enumerate(zip(WEIGHTS, lines, strict=True))),
        ],
        "repeated.csv": [",".join(NAMES), *(naive.repeat_rows(np.array(lines, object), WEIGHTS))],
    }
    for name, text in write.items():
        (folder / name).write_text("\n".join(text) + "\n\n", encoding="utf-8")
    return folder


@pytest.fixture
def bitatoms(capsys, monkeypatch, folder):
    """Return a function that runs a command in the folder and returns exit code, stdout and stderr."""
    monkeypatch.chdir(folder)
    return runner(capsys)


@pytest.fixture(scope="module")
def plain(folder):
    """Return the model of the repeated rows."""
    return ba.BinaryDictionaryLearning(algebra="prefer-or", random_state=0).fit(folder / "repeated.csv")


def test_a_weight_column_equals_repeated_rows(bitatoms, folder, plain):
    code, printed, _ = bitatoms(
        *("fit", "last.csv", "--weight-column", "count", "-o", "m.npz", "--codes", "codes.csv", "--report", "r.html")
    )
    assert code == 0
    assert "last.csv: 60 rows of 12 columns" in printed
    assert f"Weights: column 'count', {WEIGHTS.sum()} rows in all" in printed
    model = ba.load(folder / "m.npz")
    np.testing.assert_array_equal(model.components_, plain.components_)
    assert model.codelength_ == plain.codelength_
    codes = ba.read(folder / "codes.csv")
    assert codes.row_names == tuple(f"p{k}" for k in range(60))
    assert codes.bits == ba.factorize(X, sample_weight=WEIGHTS, algebra="prefer-or", random_state=0).codes
    assert "may be new to them" not in (folder / "r.html").read_text(encoding="utf-8")


def read_counted(path):
    return read_with_weights(Input(path, Reading(None, with_defaults(ReadKwargs, {}), None)), "count", quiet=True)


@pytest.mark.parametrize("name", ["first.csv", "last.csv", "r.csv"])
def test_text_files(folder, name):
    """Different weights in the first column are not taken for names; R writes no cell above the names of rows."""
    table, weights = read_counted(folder / name)
    assert table.columns == tuple(NAMES)
    assert table.row_names == (None if name == "first.csv" else tuple(f"p{k}" for k in range(60)))
    np.testing.assert_array_equal(table.to_dense(), X)
    np.testing.assert_array_equal(weights, WEIGHTS)


@pytest.mark.parametrize("extension", ["parquet", "feather", "xlsx"])
def test_other_formats(folder, extension):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("openpyxl" if extension == "xlsx" else "pyarrow")
    frame = pandas.DataFrame(X, columns=NAMES)
    frame.insert(3, "count", WEIGHTS)
    save = {"index": False} if extension == "xlsx" else {}
    getattr(frame, f"to_{'excel' if extension == 'xlsx' else extension}")(folder / f"rows.{extension}", **save)
    table, weights = read_counted(folder / f"rows.{extension}")
    assert table.columns == tuple(NAMES)
    np.testing.assert_array_equal(table.to_dense(), X)
    np.testing.assert_array_equal(weights, WEIGHTS)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (",0.0\n", ",2.5\n", f"bad.csv: {LINE}, column 'count': '2.5' is not a whole number from 0 up; multiply all"),
        (",0.0\n", ",-1\n", f"{LINE}, column 'count': '-1' is not a whole number from 0 up; pass 0 to leave a row out"),
        (
            ",0.0\n",
            ",1e300\n",
            f"{LINE}, column 'count': '1e300' is not a whole number from 0 up; a weight is how often",
        ),
        (",0.0\n", ",inf\n", f"{LINE}, column 'count': 'inf' is not a "),
        ("item3", "count", "columns 5 and 14 have the same name 'count'; rename one"),
        (",0.0\n", ",many\n", ", column 'count': 'many' is not a number; a weight is a whole number from 0 up"),
        (",0.0\n", ",\n", ", column 'count': '' is not a number"),
        (",count\n", ",n\n", "there is no column 'count'"),
    ],
)
def test_invalid_weights(bitatoms, folder, old, new, message):
    (folder / "bad.csv").write_text((folder / "last.csv").read_text().replace(old, new))
    code, _, error = bitatoms("fit", "bad.csv", "--weight-column", "count")
    assert (code, message in error) == (2, True), error


def test_where_there_is_no_column_of_weights(bitatoms, folder):
    pytest.importorskip("zarr")
    ba.pack(X, folder / "rows.zarr")
    ba.write(X, folder / "rows.npy")
    for path, more, message in (
        ("rows.zarr", (), "rows.zarr: --weight-column count does not apply to packed stores"),
        ("rows.npy", (), "--weight-column count applies to csv, tsv, xlsx, parquet, feather, not to 'npy'; omit it"),
        ("last.csv", ("--transpose",), "--weight-column count cannot be combined with --transpose"),
        ("none.csv", (), "none.csv: there is no such file"),
    ):
        code, _, error = bitatoms("fit", path, "--weight-column", "count", *more)
        assert (code, message in error) == (2, True), error
