"""How many kernels are compiled is shown on the line of progress or, without a terminal, in one note."""

import io
import logging

import pytest
from rich.console import Console

from bitatoms.cli import console, progress
from bitatoms.cli.console import printing_notes
from bitatoms.cli.progress import show_status


@pytest.fixture
def stderr(monkeypatch, request):
    """A standard error, which is a terminal or not."""
    shown = io.StringIO()
    for module in (console, progress):
        monkeypatch.setattr(module, "err", Console(file=shown, force_terminal=request.param, width=200))
    return shown


def log_compilation():
    for n_kernels in (1, 5):
        logging.getLogger("bitatoms.kernels.jit").info("compiling kernels (first run only): %d so far", n_kernels)


@pytest.mark.parametrize("stderr", [True], indirect=True)
def test_a_terminal_shows_the_number_on_the_line_of_progress(stderr):
    with printing_notes(), show_status("Predicting", quiet=False) as status:
        log_compilation()
        assert str(status.status) == "Predicting: compiling kernels (first run only): 5 so far"
    assert "Note:" not in stderr.getvalue()


@pytest.mark.parametrize("stderr", [False], indirect=True)
def test_without_a_terminal_there_is_one_note_per_command(stderr):
    for n_commands in (1, 2):
        with printing_notes(), show_status("Predicting", quiet=False) as status:
            log_compilation()
        assert status is None
        assert stderr.getvalue() == "Note: compiling kernels (first run only): 1 so far\n" * n_commands


@pytest.mark.parametrize("stderr", [True], indirect=True)
def test_after_the_line_of_progress_compilation_is_noted(stderr):
    with printing_notes():
        with show_status("Predicting", quiet=False):
            pass
        log_compilation()
    assert "Note: compiling kernels (first run only): 1 so far" in stderr.getvalue()
