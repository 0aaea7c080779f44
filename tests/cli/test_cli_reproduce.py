"""``bitatoms reproduce``: what it says, what it writes, and what it refuses before long work."""

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
    """What is found is given; gives what was asked for. All of it is run in test_reproduce.py."""
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


def test_it_says_which_claims_hold_and_where_the_page_is(bitatoms, found, tmp_path):
    (tmp_path / "picture.pbm").write_text("P1 1 1 1")
    code, said, _ = bitatoms("reproduce", "--einstein", tmp_path / "picture.pbm", "--mnist", "openml", "-o", tmp_path)
    assert code == 0
    assert said.split("\n")[1:6] == [
        "How it converges: digits",
        "  agrees: It converges",
        "  agrees in part: It is [bold]fast[/bold]",
        "    it is slow because",
        "  agrees: It is smooth (not in the paper)",
    ]
    assert "2 claims of the paper were checked: 1 agree with the results, 1 agree in part." in said
    assert f"The page is {tmp_path / 'index.html'}" in said
    how = {"einstein": tmp_path / "picture.pbm", "mnist": "openml", "random_state": 0}
    assert found == [(tmp_path, how)]


def test_json_has_the_claims(bitatoms, found, tmp_path):
    code, said, _ = bitatoms("reproduce", "--json", "--seed", 7, "-o", tmp_path / "paper")
    claims = json.loads(said)["claims"]
    assert code == 0
    assert claims[0] == {
        "experiment": "Here", "data": "digits", "says": "It converges", "found": "it does", "verdict": "agrees",
        "why": "", "of_paper": True,
    }  # fmt: skip
    assert [claim["verdict"] for claim in claims] == ["agrees", "agrees in part", "agrees"]
    assert found[0][1]["random_state"] == 7


def test_quiet_says_nothing(bitatoms, found, tmp_path):
    assert bitatoms("reproduce", "-q", "-o", tmp_path / "paper") == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--einstein", "none.pbm"), "none.pbm: there is no such file"),
        (("--mnist", "none.npz"), "none.npz: there is no such file"),
        (("-o", "taken"), "taken is a file, and what is found is written to a folder"),
        (("-o", "taken/deeper"), "taken is a file"),
        (("-o", "-"), "standard output: a folder cannot go through it"),
        (("--einstein", "taken"), "taken"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(bitatoms, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("no picture")
    code, _, said = bitatoms("reproduce", *arguments)
    assert code == 2
    assert message in said
    assert said.count("\n") == 1
    assert not (tmp_path / "paper").exists()


def test_without_matplotlib_the_extra_is_named_before_long_work(bitatoms, tmp_path, monkeypatch):
    monkeypatch.setattr("bitatoms.report.html.figures.find_spec", lambda name: None)
    monkeypatch.setattr("bitatoms.cli.reproduce.run_experiments", lambda *_, **__: pytest.fail("long work"))
    code, _, said = bitatoms("reproduce", "-o", tmp_path / "paper")
    assert code == 2
    assert 'pip install "bitatoms[plot]"' in said
