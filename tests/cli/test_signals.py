"""Ctrl-C and SIGTERM: what is saved, what is kept, and the exit codes."""

import os
import signal

import pytest

import bitatoms as ba

pytest.importorskip("click")

from bitatoms.cli.output import SearchProgress
from bitatoms.io import model_file
from bitatoms.parallel import Workers

pytestmark = pytest.mark.usefixtures("few_trials")

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "interrupted by SIGTERM"}
both_signals = pytest.mark.parametrize("number", CODES, ids=lambda number: number.name)


@pytest.fixture(autouse=True)
def table(tmp_path):
    ba.write(ba.datasets.planted(200, 30, 4, noise=0.02, random_state=0).X, tmp_path / "table.csv")


def send(number):
    """Send a signal to this process, which must handle it."""
    assert signal.getsignal(number) is not signal.SIG_DFL
    signal.raise_signal(number)


@pytest.fixture
def interrupt_search(monkeypatch):
    """Return a function that makes the second round of the next searches send a signal."""

    def interrupt(number):
        monkeypatch.setattr(SearchProgress, "__call__", lambda self, row: send(number) if row.round == 2 else None)

    return interrupt


def listed(folder):
    return sorted(path.name for path in folder.iterdir())


@both_signals
def test_signal_during_a_search_saves_the_best_model(bitatoms, interrupt_search, tmp_path, number):
    before = signal.getsignal(signal.SIGTERM)
    interrupt_search(number)
    code, stdout, stderr = bitatoms("fit", "table.csv", "-o", "a.npz", "--patterns", "p.md")
    message = f"bitatoms: {WORDS[number]}; the best model so far is in a.npz, and nothing else was written\n"
    assert (code, stderr) == (CODES[number], message)
    assert "Written: a.npz" in stdout
    assert listed(tmp_path) == ["a.npz", "table.csv"]
    model = model_file.load(tmp_path / "a.npz").model
    assert (model.ended, len(model.history)) == ("interrupted", 2)
    assert signal.getsignal(signal.SIGTERM) is before


def test_interrupted_search_does_not_replace_a_finished_model(bitatoms, interrupt_search, tmp_path):
    number = signal.SIGTERM
    assert bitatoms("fit", "table.csv", "-o", "a.npz", "-q")[0] == 0
    finished = (tmp_path / "a.npz").read_bytes()
    interrupt_search(number)
    message = f"bitatoms: {WORDS[number]}; the best model so far is in %s, and a.npz was not replaced\n"
    for _ in range(2):  # the second replaces the model of the first
        code, _, stderr = bitatoms("fit", "table.csv", "-o", "a.npz")
        assert (code, stderr) == (CODES[number], message % "a.interrupted.npz")
        assert listed(tmp_path) == ["a.interrupted.npz", "a.npz", "table.csv"]
    (tmp_path / "a.interrupted.npz").write_bytes(finished)
    assert bitatoms("fit", "table.csv", "-o", "a.npz")[2] == message % "a.interrupted-2.npz"
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "a.interrupted.npz").read_bytes() == finished
    assert model_file.load(tmp_path / "a.interrupted-2.npz").model.ended == "interrupted"


def test_second_sigterm_does_not_stop_saving(bitatoms, interrupt_search, monkeypatch, tmp_path):
    save = model_file.save
    monkeypatch.setattr(model_file, "save", lambda *arguments: (send(signal.SIGTERM), save(*arguments)))
    interrupt_search(signal.SIGTERM)
    assert bitatoms("fit", "table.csv", "-o", "a.npz", "-q")[0] == 143
    assert model_file.load(tmp_path / "a.npz").model.ended == "interrupted"


@both_signals
def test_signal_while_a_model_is_saved_keeps_it(bitatoms, monkeypatch, tmp_path, number):
    move, sent = os.replace, []

    def interrupted(*arguments):
        if not sent:
            sent.append(number)
            send(number)
        move(*arguments)

    monkeypatch.setattr("os.replace", interrupted)
    code, _, stderr = bitatoms("fit", "table.csv", "-o", "a.npz", "--patterns", "p.md")
    assert (code, stderr) == (CODES[number], f"bitatoms: {WORDS[number]}; only a.npz was written\n")
    assert listed(tmp_path) == ["a.npz", "table.csv"]
    assert model_file.load(tmp_path / "a.npz").model.ended == "converged"


WRITING = [
    ("pack table.csv -o new.zarr", signal.SIGTERM),
    ("convert table.csv new.parquet", signal.SIGINT),
    ("transform model.npz table.csv -o new.csv", signal.SIGTERM),
]


@pytest.mark.parametrize(("command", "number"), WRITING)
def test_signal_while_a_file_is_written_leaves_nothing(bitatoms, put, monkeypatch, tmp_path, command, number):
    put("or")
    before = listed(tmp_path)
    monkeypatch.setattr("os.replace", lambda *arguments: send(number))
    code, _, stderr = bitatoms(*command.split())
    assert (code, stderr) == (CODES[number], f"bitatoms: {WORDS[number]}; nothing was written\n")
    assert listed(tmp_path) == before


@pytest.mark.filterwarnings("default:memory ran out")
def test_model_is_kept_if_memory_runs_out(bitatoms, monkeypatch, tmp_path):
    map_rows, calls = Workers.map_rows, iter(range(199, -1, -1))

    def failing(*arguments):
        if next(calls, None) == 0:
            raise MemoryError
        return map_rows(*arguments)

    monkeypatch.setattr(Workers, "map_rows", failing)
    code, stdout, stderr = bitatoms("fit", "table.csv", "-o", "a.npz", "--patterns", "p.md")
    assert (code, "The search was cut short" in stdout) == (2, True)
    assert "Note: memory ran out before the search converged; this is the best model so far\n" in stderr
    message = "bitatoms: memory ran out; the best model so far is in a.npz, and nothing else was written\n"
    assert stderr.endswith(message)
    assert model_file.load(tmp_path / "a.npz").model.ended == "max_memory"


def test_ignored_sigterm_stays_ignored(bitatoms, interrupt_search):
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        interrupt_search(signal.SIGTERM)
        assert bitatoms("fit", "table.csv", "-q") == (0, "", "")
    finally:
        signal.signal(signal.SIGTERM, before)
