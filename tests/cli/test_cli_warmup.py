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


@pytest.mark.parametrize("options", [["--jobs", "3"], ["--jobs", "3", "--quiet"], ["--jobs", "3", "--device", "cuda"]])
def test_progress_and_folder(bitatoms, monkeypatch, options):
    asked = []

    def warm_up(n_jobs, callback, device):
        asked.append((n_jobs, device))
        callback("coding.code_rows", 1, 2)
        callback("words.hamming", 2, 2)
        return Path("kernels")

    monkeypatch.setattr(warmup, "warm_up", warm_up)
    monkeypatch.setattr(progress, "_INTERVAL", -1.0)
    code, out, err = bitatoms("warmup", *options)
    assert (code, asked) == (0, [(3, "cuda" if "--device" in options else "cpu")])
    if "--quiet" in options:
        assert (out, err) == ("", "")
    else:
        line = "Kernels for this kind of processor are compiled and stored in kernels."
        more = " Those for this kind of GPU are in the cache of CuPy." if "--device" in options else ""
        assert out == f"{line}{more}\n"
        assert err.splitlines() == ["compiling kernels: 1 of 2, 0 s", "compiling kernels: 2 of 2, 0 s"]


def test_errors_are_one_line(bitatoms, monkeypatch):
    def warm_up(n_jobs, callback, device):
        raise FileError("no folder for compiled kernels is writable")

    monkeypatch.setattr(warmup, "warm_up", warm_up)
    code, out, err = bitatoms("warmup")
    assert (code, out) == (2, "")
    assert err.splitlines()[-1] == "bitatoms: no folder for compiled kernels is writable"


def test_zero_jobs(bitatoms):
    code, _, err = bitatoms("warmup", "--jobs", "0")
    assert code == 2
    assert "--jobs must not be 0" in err
