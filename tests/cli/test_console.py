"""What the command line prints: control characters in names are escaped, in every kind of output."""

import json
import logging
from pathlib import Path

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.verbosity import escape_controls, escape_name, log_to_stderr

pytestmark = pytest.mark.usefixtures("few_trials")

pytest.importorskip("typer")

CONTROLS = ["\x1b[31mred", "\x07bell", "\x9b2J", "\x7fdelete", "\u202eturned", "\u2066isolated", "\x00nul", "a\rb"]
RAW = {char for text in CONTROLS for char in text if not char.isprintable()}
NAMES = [*CONTROLS, "two\nlines", "tab\there", "plain, simple", "Käse", "牛乳", "نان"]


@pytest.fixture
def table():
    halves = np.repeat(np.eye(3, 2, dtype=np.uint8), 7, axis=1)  # the first half of the columns, the second, none
    return ba.Table(ba.BitMatrix.from_dense(np.repeat(halves, 60, axis=0)), columns=NAMES)


def assert_safe(*texts):
    for text in texts:
        assert not RAW & set(text), repr(text)


@pytest.mark.parametrize("text", CONTROLS)
def test_controls_are_escaped_as_in_python(text):
    escaped = escape_controls(text)
    assert_safe(escaped)
    assert escaped.encode("latin-1", "backslashreplace").decode("unicode_escape") == text


def test_other_text_is_unchanged():
    text = "Käse, 牛乳, نان, می\u200cخواهم, 👩\u200d🔬, a\tb\nc"
    assert escape_controls(text) == text
    assert escape_name("a\tb\nc") == "a\\tb\\nc"


def test_names_in_patterns(bitatoms, table):
    ba.write(table, "table.npz")
    code, stdout, stderr = bitatoms("fit", "table.npz", "--algebra", "or", "-o", "model.npz")
    assert code == 0
    assert_safe(stdout, stderr)
    code, stdout, stderr = bitatoms("show", "model.npz", "--top", "20")
    assert code == 0
    assert_safe(stdout, stderr)
    shown = " ".join(stdout.split())
    used = {name for pattern in ba.load("model.npz").patterns() for name in pattern.features}
    assert used & {*CONTROLS}
    for name in used:
        assert " ".join(escape_name(name).split()) in shown
    assert '"plain, simple"' in shown
    for command in (("rules",), ("score", "-n", "1"), ("recommend", "-n", "14")):
        code, stdout, stderr = bitatoms(command[0], "model.npz", "table.npz", *command[1:])
        assert code == 0
        assert_safe(stdout, stderr)
        assert not {"two", "lines"} & set(stdout.split())
        assert '"plain, simple"' in stdout or command[0] == "score"
    code, stdout, _ = bitatoms("show", "model.npz", "--json", "--patterns", "patterns.md")
    assert code == 0
    assert_safe(stdout.replace("\n", ""))
    patterns = [pattern.features for pattern in ba.load("model.npz").patterns()]
    assert [tuple(pattern["features"]) for pattern in json.loads(stdout)["patterns"]] == patterns
    text = Path("patterns.md").read_text(encoding="utf-8")
    assert_safe(text)
    assert "\\\\x1b\\[31mred; " in text  # shown as \x1b[31mred
    assert len(text.splitlines()) == 2 + len(patterns)


@pytest.mark.parametrize("name", ["\x1b[31mred", "\x9b2J", "\u202eturned"])
def test_file_names_in_errors_and_lines(bitatoms, name, table):
    code, stdout, stderr = bitatoms("show", f"{name}.npz")
    assert code == 2
    assert_safe(stdout, stderr)
    assert escape_controls(name) in stderr
    ba.write(table, f"{name}.npz")
    code, stdout, stderr = bitatoms("fit", f"{name}.npz")
    assert code == 0
    assert_safe(stdout, stderr)
    assert escape_controls(name) in stdout
    code, stdout, stderr = bitatoms("show", "model.npz", f"{name} extra")
    assert code == 2
    assert_safe(stdout, stderr)
    assert f"{escape_controls(name)} extra" in stderr
    np.savez("arrays.npz", **{name: np.eye(3)})
    for layer in (f"{name} other", name):
        assert_safe(*bitatoms("convert", "arrays.npz", "out.csv", "--layer", layer)[1:])


def test_notes_progress_and_logs(capsys, monkeypatch):
    from bitatoms.cli import console, progress

    console.print_note("a note about \x1b[31m and \x9b2J")
    line = progress.ProgressLine(quiet=False, status=None)
    monkeypatch.setattr(progress, "_INTERVAL", -1.0)
    line.update("reading \x1b[31mfile")
    with log_to_stderr(1):
        logging.getLogger("bitatoms.test").info("a log of \x1b[31m and %s", "\x9b2J")
    printed = capsys.readouterr()
    assert_safe(printed.out, printed.err)
    assert printed.err.count("\\x1b[31m") == 3
    assert "[bitatoms] a log of" in printed.err


def test_styles_of_a_terminal_are_kept():
    from io import StringIO

    from rich.console import Console
    from rich.text import Text

    terminal = Console(file=StringIO(), force_terminal=True, color_system="standard")
    terminal.print(Text("name \x1b[2J", style="red"))
    assert terminal.file.getvalue() == "\x1b[31mname \\x1b[2J\x1b[0m\n"
