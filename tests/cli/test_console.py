"""What the command line prints: control characters in names are escaped, and progress and notes are shown."""

import json
import logging
import sys
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

import bitatoms as ba

pytest.importorskip("click")

from rich.text import Text

from bitatoms.cli import output
from bitatoms.cli.output import SafeConsole, SearchProgress, printing_notes, show_status
from bitatoms.formatting import escape_controls, escape_name
from bitatoms.model.result import Round
from bitatoms.system.verbosity import log_to_stderr

pytestmark = pytest.mark.usefixtures("few_trials")

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


def test_controls_are_escaped_as_in_python_and_other_text_is_unchanged():
    for text in CONTROLS:
        escaped = escape_controls(text)
        assert_safe(escaped)
        assert escaped.encode("latin-1", "backslashreplace").decode("unicode_escape") == text
    text = "Käse, 牛乳, نان, می\u200cخواهم, 👩\u200d🔬, a\tb\nc"
    assert escape_controls(text) == text
    assert escape_name("a\tb\nc") == "a\\tb\\nc"


def test_names_in_patterns(bitatoms, table):
    ba.write(table, "table.npz")
    assert_safe(bitatoms.output("fit", "table.npz", "--algebra", "or", "-o", "model.npz"))
    stdout = bitatoms.output("show", "model.npz", "--top", "20")
    assert_safe(stdout)
    shown = " ".join(stdout.split())
    used = {name for pattern in ba.load("model.npz").patterns() for name in pattern.features}
    assert used & {*CONTROLS}
    for name in used:
        assert " ".join(escape_name(name).split()) in shown
    assert '"plain, simple"' in shown
    for command in (["rules"], ["score", "-n", "1"], ["recommend", "-n", "14"]):
        stdout = bitatoms.output(*command, "model.npz", "table.npz")
        assert_safe(stdout)
        assert not {"two", "lines"} & set(stdout.split())
    stdout = bitatoms.output("show", "model.npz", "--json", "--patterns", "patterns.md")
    assert_safe(stdout.replace("\n", ""))
    patterns = [pattern.features for pattern in ba.load("model.npz").patterns()]
    assert [tuple(pattern["features"]) for pattern in json.loads(stdout)["patterns"]] == patterns
    text = Path("patterns.md").read_text(encoding="utf-8")
    assert_safe(text)
    assert "\\\\x1b\\[31mred; " in text  # shown as \x1b[31mred
    assert len(text.splitlines()) == 2 + len(patterns)


def test_file_names_in_errors_and_lines(bitatoms, table):
    name = "\x1b[31mred \u202eturned"
    ba.write(table, "table.npz")
    ba.write(table, f"{name}.npz")
    np.savez("arrays.npz", **{name: np.eye(3)})
    shown = escape_controls(name)
    for command, code, part in (
        (["show", f"{name} absent.npz"], 2, f"{shown} absent"),
        (["fit", f"{name}.npz"], 0, shown),
        (["show", "model.npz", f"{name} extra"], 2, f"{shown} extra"),
        (["convert", "arrays.npz", "out.csv", "--layer", f"{name} other"], 2, ""),
        (["convert", "arrays.npz", "out.csv", "--layer", name], 0, ""),
    ):
        ended, *printed = bitatoms(*command)
        assert (ended, part in "".join(printed)) == (code, True)
        assert_safe(*printed)


def test_notes_progress_and_logs(capsys, monkeypatch):
    output.print_note("a note about \x1b[31m and \x9b2J")
    line = output.ProgressLine(quiet=False, status=None)
    monkeypatch.setattr(output, "_INTERVAL", -1.0)
    line.update("reading \x1b[31mfile")
    with log_to_stderr(1):
        logging.getLogger("bitatoms.test").info("a log of \x1b[31m and %s", "\x9b2J")
    printed = capsys.readouterr()
    assert_safe(printed.out, printed.err)
    assert printed.err.count("\\x1b[31m") == 3
    assert "[bitatoms] a log of" in printed.err


def test_styles_of_a_terminal_are_kept():
    terminal = SafeConsole(file=StringIO(), force_terminal=True, color_system="standard")
    terminal.print(Text("name \x1b[2J", style="red"))
    assert terminal.file.getvalue() == "\x1b[31mname \\x1b[2J\x1b[0m\n"


# --- progress


def compiling(monkeypatch, is_terminal, inside=True, n_commands=1):
    """Log that kernels are compiled while a command predicts, or after it; return the line of progress and stderr."""
    stderr, line = StringIO(), None
    monkeypatch.setattr(output, "err", SafeConsole(file=stderr, force_terminal=is_terminal, width=200))
    log = logging.getLogger("bitatoms.kernels.compilation").info
    for _ in range(n_commands):
        with printing_notes():
            with show_status("Predicting", quiet=False) as progress:
                for n_kernels in (1, 5) if inside else ():
                    log("compiling kernels (first run only): %d so far", n_kernels)
                line = progress.status and str(progress.status.status)
            if not inside:
                log("compiling kernels (first run only): 1 so far")
    return line, stderr.getvalue()


def test_how_many_kernels_are_compiled_is_shown_on_the_line_of_progress_or_in_one_note(monkeypatch):
    text, note = "compiling kernels (first run only): ", "Note: compiling kernels (first run only): 1 so far"
    line, printed = compiling(monkeypatch, is_terminal=True)
    assert (line, "Note:" in printed) == (f"Predicting: {text}5 so far", False)
    assert note in compiling(monkeypatch, is_terminal=True, inside=False)[1]
    assert compiling(monkeypatch, is_terminal=False, n_commands=2) == (None, f"{note}\n" * 2)


def test_progress_distinguishes_subsample_and_all_rows(monkeypatch):
    shown, line = [], output.ProgressLine(False, None)
    monkeypatch.setattr(line, "update", lambda text, hint="": shown.append(text.rpartition(", ")[0]))
    line = SearchProgress(line, 20000, keeps_model=False)
    figures = dict.fromkeys(Round._fields, 0) | {"atoms": 7, "algebra": "xor"}
    line(Round(**figures | {"move": "grow", "rows": 500, "bits": 5000}))
    line.update_rows(5000)
    line(Round(**figures | {"move": "pass 1 over all rows", "rows": 20000, "bits": 240000}))
    line.update_rows(20000)
    assert shown == [
        "Searching 500 of 20000 rows: 7 atoms (XOR), 10.00 bits per row",
        "Processing all rows: 25% of 20000 rows",
        "Pass 1 over all rows: 7 atoms (XOR), 12.00 bits per row",
        "Processing all rows: 100% of 20000 rows; after pass 1: 7 atoms (XOR), 12.00 bits per row",
    ]


# --- warmup and compare


@pytest.mark.parametrize("options", ["", "--quiet", "--device cuda"])
def test_warmup_prints_progress_and_the_folder(bitatoms, monkeypatch, options):
    asked = []

    def warm_up(n_jobs, callback, device):
        asked.append((n_jobs, device))
        callback("coding.code_rows", 1, 2)
        callback("words.choose_far_row", 2, 2)
        return Path("kernels")

    monkeypatch.setattr("bitatoms.warmup.warm_up", warm_up)
    monkeypatch.setattr(output, "_INTERVAL", -1.0)
    code, out, err = bitatoms("warmup", "--jobs", "3", *options.split())
    assert (code, asked) == (0, [(3, "cuda" if "cuda" in options else "cpu")])
    line = "Kernels for this kind of processor are compiled and stored in kernels."
    more = " Those for this kind of GPU are in the cache of CuPy." if "cuda" in options else ""
    lines = "compiling kernels: 1 of 2, 0 s\ncompiling kernels: 2 of 2, 0 s\n"
    assert (out, err) == (("", "") if options == "--quiet" else (f"{line}{more}\n", lines))


def test_missing_matplotlib_is_reported_before_any_work(bitatoms, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr("bitatoms.compare.compare", lambda *_, **__: pytest.fail("there is work"))
    code, _, stderr = bitatoms("compare", "planted-or")
    assert code == 2
    assert 'install it with pip install "bitatoms[plot]"' in stderr
