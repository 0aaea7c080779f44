"""The README tells the truth: its code runs, and the files and commands it names exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_code_runs(monkeypatch, tmp_path):
    blocks = re.findall(r"^```python\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
    assert blocks
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "readme"}
    for number, block in enumerate(blocks, start=1):
        exec(compile(block, f"README.md, block {number}", "exec"), names)


def test_the_make_targets_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    named = set(re.findall(r"^make ([a-z]+)|`make ([a-z]+)", README, flags=re.MULTILINE))
    assert {"demo", "test"} <= {one or other for one, other in named} <= targets


def test_the_files_exist():
    links = re.findall(r"\]\(([^)#]+)\)|src=\"([^\"]+)\"", README)
    files = [one or other for one, other in links if "://" not in (one or other)]
    assert "LICENSE" in files
    assert [file for file in files if not (ROOT / file).exists()] == []
