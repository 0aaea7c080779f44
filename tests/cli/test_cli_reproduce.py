"""`bitatoms reproduce`: its output and files, and one-line errors before any work."""

import json

import pytest

from bitatoms.reproduce import Claim, Experiment, Panel, Verdict
from support.commands import runner

pytest.importorskip("typer")


@pytest.fixture
def bitatoms(capsys):
    return runner(capsys)


@pytest.fixture
def found(monkeypatch):
    """Replace the experiments, which test_reproduce.py runs, and return the arguments of their calls."""
    claims = (
        Claim("It converges", "it does", Verdict.AGREES),
        Claim("It is [bold]fast[/bold]", "it is slow", Verdict.PARTLY, "because"),
        Claim("It is smooth", "it is", Verdict.AGREES, in_paper=False),
    )
    asked = []

    def run(folder, *, callback, **how):
        callback("Reading the data")
        asked.append((folder, how))
        return [Experiment("here", "Here", "How it converges", "", (Panel("digits", "", (), claims),))]

    monkeypatch.setattr("bitatoms.cli.reproduce.run_experiments", run)
    return asked


def test_claims_and_page_are_printed(bitatoms, found, tmp_path):
    (tmp_path / "picture.pbm").write_text("P1 1 1 1")
    code, stdout, _ = bitatoms("reproduce", "--einstein", tmp_path / "picture.pbm", "--mnist", "openml", "-o", tmp_path)
    assert code == 0
    assert stdout.split("\n")[1:6] == [
        "How it converges: digits",
        "  agrees: It converges",
        "  agrees in part: It is [bold]fast[/bold]",
        "    it is slow because",
        "  agrees: It is smooth (not in the paper)",
    ]
    assert "2 claims of the paper were checked: 1 agree with the results, 1 agree in part." in stdout
    assert f"The page is {tmp_path / 'index.html'}" in stdout
    how = {"einstein": tmp_path / "picture.pbm", "mnist": "openml", "random_state": 0}
    assert found == [(tmp_path, how)]


def test_json_has_the_claims(bitatoms, found, tmp_path):
    code, stdout, _ = bitatoms("reproduce", "--json", "--seed", 7, "-o", tmp_path / "paper")
    claims = json.loads(stdout)["claims"]
    assert code == 0
    assert claims[0] == {
        "experiment": "Here", "data": "digits", "says": "It converges", "found": "it does", "verdict": "agrees",
        "why": "", "of_paper": True,
    }  # fmt: skip
    assert [claim["verdict"] for claim in claims] == ["agrees", "agrees in part", "agrees"]
    assert found[0][1]["random_state"] == 7


def test_quiet_prints_nothing(bitatoms, found, tmp_path):
    assert bitatoms("reproduce", "-q", "-o", tmp_path / "paper") == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--einstein", "none.pbm"), "none.pbm: there is no such file"),
        (("--mnist", "none.npz"), "none.npz: there is no such file"),
        (("-o", "taken"), "taken is a file, but the result is written to a folder"),
        (("-o", "taken/deeper"), "taken is a file"),
        (("-o", "-"), "standard output: a folder cannot be written to a stream"),
        (("--einstein", "taken"), "taken"),
    ],
)
def test_invalid_input_is_reported_in_one_line(bitatoms, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("no picture")
    code, _, stdout = bitatoms("reproduce", *arguments)
    assert code == 2
    assert message in stdout
    assert stdout.count("\n") == 1
    assert not (tmp_path / "paper").exists()


def test_missing_matplotlib_is_reported_before_any_work(bitatoms, tmp_path, monkeypatch):
    monkeypatch.setattr("bitatoms.html.figures.find_spec", lambda name: None)
    monkeypatch.setattr("bitatoms.cli.reproduce.run_experiments", lambda *_, **__: pytest.fail("long work"))
    code, _, stdout = bitatoms("reproduce", "-o", tmp_path / "paper")
    assert code == 2
    assert 'pip install "bitatoms[plot]"' in stdout
