"""bitatoms stability, and what show and report show of it."""

import csv
import json
import re

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.columns.table import Picture
from bitatoms.formatting import percent

pytest.importorskip("click")


@pytest.fixture(autouse=True)
def digits(tmp_path):
    """Write a table of pictures and a model of four atoms, some of which are found again; return both."""
    bits = ba.BitMatrix.from_dense(ba.datasets.digits()[0][:150])
    table = ba.Table(bits, [f"r{j}" for j in range(150)], [f"p{i}" for i in range(64)])
    ba.write(table, tmp_path / "table.csv")
    model = ba.BinaryDictionaryLearning(4, search="paper", algebra="or", random_state=0).fit(table)
    model.save(tmp_path / "model.npz")
    return model, table


@pytest.fixture
def expected(digits):
    model, table = digits
    return ba.stability(table, model, n_resamples=3, random_state=0)


def shares_of(path):
    return [pattern.recurs for pattern in ba.load(path).patterns()]


def test_show_and_report_show_how_often_atoms_recur(bitatoms, expected, tmp_path):
    search = ("-k", 4, "--search", "paper", "--algebra", "or", "--resamples", 3)
    out = bitatoms.output("stability", "table.csv", *search, "-o", "new.npz", "--patterns", "patterns.csv")
    lines = out.splitlines()
    assert lines[0] == "table.csv: 150 rows of 64 columns, 32.1% ones, rows and columns have names"
    assert lines[2:4] == expected.summary().splitlines()
    assert lines[-1] == "Written: new.npz, patterns.csv"
    shares = shares_of("new.npz")
    assert shares == expected.recurs.tolist()
    assert 0 < np.mean(shares) < 1
    assert ba.load("new.npz").get_params()["n_components"] == 4
    with open("patterns.csv", newline="") as file:
        assert [float(row["recurs"]) for row in csv.DictReader(file)] == pytest.approx(shares, abs=1e-4)
    shown, texts = bitatoms("show", "new.npz")[1], [percent(share, 1) for share in shares]
    assert '"recurs" is the share of 3 searches, each of 50% of the rows, that found the pattern again' in shown
    assert "recurs" not in bitatoms("show", "model.npz")[1]
    for printed in (shown, out):
        assert re.findall(r"rows? +[×–]\S* +-?\d+ +(\S+%)", printed) == texts
    assert bitatoms("report", "new.npz", "table.csv", "-o", "report.html")[0] == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert re.findall(r'<td class="number">(\S+%)</td></tr>', page.split("</table>")[0]) == texts
    assert json.loads(re.search(r'"recurs":(\[.*?\])', page)[1]) == shares


def test_a_model_is_written_to_its_own_file(bitatoms, digits, expected):
    assert bitatoms("stability", "table.csv", "model.npz", "--resamples", 3, "-o", "model.npz", "-q")[:2] == (0, "")
    assert shares_of("model.npz") == expected.recurs.tolist()
    again = ba.load("model.npz")
    assert again.get_params() == digits[0].get_params()
    np.testing.assert_array_equal(again.components_, digits[0].components_)


def test_the_captions_of_pictures_show_shares(bitatoms, digits):
    model = ba.BinaryDictionaryLearning(4, search="paper", algebra="or", random_state=0)
    model.fit(ba.Table(digits[1].bits, picture=Picture((8, 8)))).save("pictures.npz")
    out = bitatoms.output("stability", "table.csv", "pictures.npz", "--resamples", 2)
    assert len(re.findall(r"recurs: \S+%", out)) == 4


def test_the_result_as_json(bitatoms, expected):
    out = bitatoms.output("stability", "table.csv", "model.npz", "--resamples", 3, "--threshold", 0.6, "--json")
    result = json.loads(out)
    assert [result[name] for name in ("n_resamples", "share", "threshold")] == [3, 0.5, 0.6]
    shares = (expected.overlaps >= 0.6).mean(axis=0)
    assert [atom["recurs"] for atom in result["atoms"]] == shares.tolist()
    assert result["stable"] == (shares >= 0.75).sum()


def test_an_interrupt_keeps_the_resamples_that_were_searched(bitatoms, monkeypatch, tmp_path, expected):
    def interrupted(X, model, callback, **options):
        if options["n_resamples"] == 3:
            ba.stability(X, model, callback=callback, **options | {"n_resamples": 2})
        raise KeyboardInterrupt

    monkeypatch.setattr("bitatoms.estimators.atom_stability.stability", interrupted)
    code, out, err = bitatoms("stability", "table.csv", "model.npz", "--resamples", 3, "-o", "part.npz")
    assert (code, err) == (130, "bitatoms: interrupted; only 2 of 3 resamples were searched\n")
    assert "Written: part.npz" in out
    assert shares_of("part.npz") == (expected.overlaps[:2] >= 0.8).mean(axis=0).tolist()
    code, _, err = bitatoms("stability", "table.csv", "model.npz", "-o", "none.npz")
    assert (code, err) == (130, "bitatoms: interrupted; nothing was written\n")
    assert not (tmp_path / "none.npz").exists()
