"""`bitatoms warmup` and `bitatoms reproduce`: progress, what is printed, and errors before any work."""

import json
from pathlib import Path

import pytest

pytest.importorskip("typer")

from bitatoms import FileError
from bitatoms.cli import progress, warmup
from bitatoms.reproduce import Claim, Experiment, Panel, Verdict


@pytest.mark.parametrize("options", ["", "--quiet", "--device cuda"])
def test_warmup_prints_progress_and_the_folder(bitatoms, monkeypatch, options):
    asked = []

    def warm_up(n_jobs, callback, device):
        asked.append((n_jobs, device))
        callback("coding.code_rows", 1, 2)
        callback("words.hamming", 2, 2)
        return Path("kernels")

    monkeypatch.setattr(warmup, "warm_up", warm_up)
    monkeypatch.setattr(progress, "_INTERVAL", -1.0)
    code, out, err = bitatoms("warmup", "--jobs", "3", *options.split())
    assert (code, asked) == (0, [(3, "cuda" if "cuda" in options else "cpu")])
    line = "Kernels for this kind of processor are compiled and stored in kernels."
    more = " Those for this kind of GPU are in the cache of CuPy." if "cuda" in options else ""
    lines = "compiling kernels: 1 of 2, 0 s\ncompiling kernels: 2 of 2, 0 s\n"
    assert (out, err) == (("", "") if options == "--quiet" else (f"{line}{more}\n", lines))


def test_warmup_without_a_folder_is_an_error(bitatoms, monkeypatch):
    def warm_up(n_jobs, callback, device):
        raise FileError("no folder for compiled kernels is writable")

    monkeypatch.setattr(warmup, "warm_up", warm_up)
    code, out, err = bitatoms("warmup")
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == "bitatoms: no folder for compiled kernels is writable"


def test_reproduce_prints_claims(bitatoms, monkeypatch):
    pytest.importorskip("matplotlib")
    claims = (
        Claim("It is [bold]fast[/bold]", "it is slow", Verdict.PARTLY, "because"),
        Claim("It is smooth", "it is", Verdict.AGREES, in_paper=False),
    )
    found = [Experiment("here", "Here", "How it converges", "", (Panel("digits", "", (), claims),))]
    monkeypatch.setattr("bitatoms.cli.reproduce.run_experiments", lambda folder, callback, **how: found)
    stdout = bitatoms.output("reproduce", "-o", "paper")
    assert stdout.split("\n")[1:5] == [
        "How it converges: digits",
        "  agrees in part: It is [bold]fast[/bold]",
        "    it is slow because",
        "  agrees: It is smooth (not in the paper)",
    ]
    assert "1 claims of the paper were checked: 1 agree in part." in stdout
    assert json.loads(bitatoms("reproduce", "--json", "-o", "paper")[1])["claims"][1] == {
        "experiment": "Here", "data": "digits", "says": "It is smooth", "found": "it is", "verdict": "agrees",
        "why": "", "of_paper": False,
    }  # fmt: skip
    assert bitatoms("reproduce", "-q", "-o", "paper") == (0, "", "")


@pytest.mark.parametrize("command", [("reproduce",), ("compare", "planted-or")])
def test_missing_matplotlib_is_reported_before_any_work(bitatoms, monkeypatch, command):
    monkeypatch.setattr("bitatoms.html.figures.find_spec", lambda name: None)
    code, _, stderr = bitatoms(*command)
    assert code == 2
    assert 'install it with pip install "bitatoms[plot]"' in stderr
