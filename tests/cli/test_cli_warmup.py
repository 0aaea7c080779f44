"""`bitatoms warmup`: progress, where the kernels are, and errors."""

from pathlib import Path

import pytest

pytest.importorskip("typer")

from bitatoms import FileError
from bitatoms.cli import progress, warmup
from support.commands import runner


@pytest.fixture
def bitatoms(capsys):
    return runner(capsys)


@pytest.mark.parametrize("options", [["--jobs", "3"], ["--jobs", "3", "--quiet"]])
def test_progress_and_folder(bitatoms, monkeypatch, options):
    asked = []

    def warm_up(n_jobs, callback):
        asked.append(n_jobs)
        callback("coding.code_rows", 1, 2)
        callback("words.hamming", 2, 2)
        return Path("kernels")

    monkeypatch.setattr(warmup, "warm_up", warm_up)
    monkeypatch.setattr(progress, "_INTERVAL", -1.0)
    code, out, err = bitatoms("warmup", *options)
    assert (code, asked) == (0, [3])
    if "--quiet" in options:
        assert (out, err) == ("", "")
    else:
        assert out == "Kernels for this kind of processor are compiled and stored in kernels.\n"
        assert err.splitlines() == ["compiling kernels: 1 of 2, 0 s", "compiling kernels: 2 of 2, 0 s"]


def test_errors_are_one_line(bitatoms, monkeypatch):
    def warm_up(n_jobs, callback):
        raise FileError("no folder for compiled kernels is writable")

    monkeypatch.setattr(warmup, "warm_up", warm_up)
    code, out, err = bitatoms("warmup")
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == "bitatoms: no folder for compiled kernels is writable"


def test_zero_jobs(bitatoms):
    code, _, err = bitatoms("warmup", "--jobs", "0")
    assert code == 2
    assert "--jobs must not be 0" in err
