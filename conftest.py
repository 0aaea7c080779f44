"""Run the examples in docstrings in a temporary folder, and let SIGINT interrupt."""

import signal

import pytest


@pytest.fixture(autouse=True)
def doctest_folder(request, monkeypatch, tmp_path):
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True, scope="session")
def interruptible():
    """Let SIGINT interrupt this process and those that it starts.

    A shell starts commands in the background with SIGINT ignored, which their children inherit.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


collect_ignore = ["src/bitatoms/scale"]  # importing a deprecated module warns
