"""bitatoms stability, and what show and report show of it."""

import csv
import json
import re

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.table import Picture

pytest.importorskip("typer")

from support.commands import runner

pytestmark = pytest.mark.usefixtures("few_trials")

SEARCH = ("-k", 4, "--search", "paper", "--algebra", "or", "--resamples", 3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Create a folder with a table of pictures, and its model."""
    folder = tmp_path_factory.mktemp("stability")
    bits = ba.BitMatrix.from_dense(ba.datasets.digits()[0][:150])
    names = [f"r{j}" for j in range(150)], [f"p{i}" for i in range(64)]
    ba.write(ba.Table(bits, *names), folder / "table.csv")
    model = ba.BinaryDictionaryLearning(4, search="paper", algebra="or", random_state=0)
    model.fit(ba.Table(bits, *names)).save(folder / "model.npz")
    model.fit(ba.Table(bits, picture=Picture((8, 8)))).save(folder / "pictures.npz")
    return folder


@pytest.fixture(scope="module")
def expected(folder):
    return ba.stability(folder / "table.csv", folder / "model.npz", n_resamples=3)


@pytest.fixture
def bitatoms(capsys, monkeypatch, folder):
    """Return a function that runs a command in the folder and returns exit code, stdout and stderr."""
    monkeypatch.chdir(folder)
    return runner(capsys)


def shares_of(path):
    return [pattern.recurs for pattern in ba.load(path).patterns()]


def test_show_and_report_show_how_often_atoms_recur(bitatoms, folder, expected):
    code, out, _ = bitatoms("stability", "table.csv", *SEARCH, "-o", "new.npz", "--patterns", "patterns.csv")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "table.csv: 150 rows of 64 columns, 32.1% ones, rows and columns have names"
    assert lines[2:4] == expected.summary().splitlines()
    assert lines[-1] == "Written: new.npz, patterns.csv"
    shares = shares_of(folder / "new.npz")
    assert shares == expected.recurs.tolist()
    assert 0 < np.mean(shares) < 1
    assert ba.load(folder / "new.npz").get_params()["n_components"] == 4
    with open(folder / "patterns.csv", newline="") as file:
        assert [float(row["recurs"]) for row in csv.DictReader(file)] == pytest.approx(shares, abs=1e-4)
    shown = bitatoms("show", "new.npz")[1]
    assert '"recurs" is the share of 3 searches, each of 50% of the rows, that found the pattern again' in shown
    texts = re.findall(r"rows? +[×–]\S* +-?\d+ +(\S+%)", shown)
    assert texts == re.findall(r"rows? +[×–]\S* +-?\d+ +(\S+%)", out)
    assert bitatoms("report", "new.npz", "table.csv", "-o", "report.html")[0] == 0
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert re.findall(r"<dt>recurs</dt><dd>(\S+%)</dd>", page) == texts
    assert [float(share) for share in re.findall(r'data-recurs="(.*?)"', page)] == shares
    assert '<option value="recurs">' in page


def test_a_model_without_shares_shows_none(bitatoms, folder):
    assert "recurs" not in bitatoms("show", "model.npz")[1]
    assert json.loads(bitatoms("show", "model.npz", "--json")[1])["recurrence"] is None
    assert bitatoms("show", "model.npz", "--patterns", "without.csv")[0] == 0
    assert "recurs" not in (folder / "without.csv").read_text()
    assert bitatoms("report", "model.npz", "table.csv", "-o", "without.html")[0] == 0
    assert "recurs" not in (folder / "without.html").read_text(encoding="utf-8")


def test_a_model_is_written_to_its_own_file(bitatoms, folder, expected):
    before = ba.load(folder / "model.npz")
    (folder / "own.npz").write_bytes((folder / "model.npz").read_bytes())
    assert bitatoms("stability", "table.csv", "own.npz", "--resamples", 3, "-o", "own.npz", "-q")[:2] == (0, "")
    assert shares_of(folder / "own.npz") == expected.recurs.tolist()
    again = ba.load(folder / "own.npz")
    assert again.get_params() == before.get_params()
    np.testing.assert_array_equal(again.components_, before.components_)


def test_the_captions_of_pictures_show_shares(bitatoms):
    code, out, _ = bitatoms("stability", "table.csv", "pictures.npz", "--resamples", 3)
    assert code == 0
    assert len(re.findall(r"recurs: \S+%", out)) == 4


def test_the_result_as_json(bitatoms, expected):
    code, out, _ = bitatoms("stability", "table.csv", "model.npz", "--resamples", 3, "--threshold", 0.6, "--json")
    assert code == 0
    result = json.loads(out)
    assert [result[name] for name in ("n_resamples", "share", "threshold")] == [3, 0.5, 0.6]
    shares = (expected.overlaps >= 0.6).mean(axis=0)
    assert [atom["recurs"] for atom in result["atoms"]] == shares.tolist()
    assert result["stable"] == (shares >= 0.75).sum()


def test_a_packed_store(bitatoms, folder):
    pytest.importorskip("zarr")
    ba.pack(folder / "table.csv", folder / "rows.zarr")
    code, out, _ = bitatoms("stability", "rows.zarr", "--resamples", 1, "--algebra", "xor", "--json")
    assert code == 0
    table = bitatoms("stability", "table.csv", "--resamples", 1, "--algebra", "xor", "--json")[1]
    assert out == table


def test_an_interrupt_keeps_the_resamples_that_were_searched(bitatoms, folder, monkeypatch, expected):
    def interrupted(X, model, callback, **options):
        ba.stability(X, model, callback=callback, **options | {"n_resamples": 2})
        raise KeyboardInterrupt

    monkeypatch.setattr("bitatoms.cli.stability.stability", interrupted)
    code, out, err = bitatoms("stability", "table.csv", "model.npz", "--resamples", 3, "-o", "part.npz")
    assert code == 130
    assert "only 2 of 3 resamples were searched" in err
    assert "Written: part.npz" in out
    assert shares_of(folder / "part.npz") == (expected.overlaps[:2] >= 0.8).mean(axis=0).tolist()

    def at_once(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("bitatoms.cli.stability.stability", at_once)
    code, _, err = bitatoms("stability", "table.csv", "model.npz", "-o", "none.npz")
    assert (code, "nothing was written" in err) == (130, True)
    assert not (folder / "none.npz").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("table.csv", "model.npz", "-k", 3), "a model has its own --atoms, --algebra and --search"),
        (("table.csv", "--share", 0), "share must be above 0"),
        (("table.csv", "none.npz"), "there is no such file"),
        (("table.csv", "--max-memory", "1kB"), "--max-memory 1000 is too small for a search of"),
        (("table.csv", "-o", "table.csv"), "this command already reads or writes this file"),
        (("table.csv", "-o", "model.csv"), "a model is an .npz file"),
    ],
)
def test_wrong_arguments_are_reported(bitatoms, arguments, message):
    code, _, err = bitatoms("stability", *arguments)
    assert code == 2
    assert message in " ".join(err.replace("│", "").split())
