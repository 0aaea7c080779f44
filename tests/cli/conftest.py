"""Run commands in this process, in a folder of the test's own."""

import pytest

from support import zoo
from support.commands import runner


@pytest.fixture
def bitatoms(capsys, monkeypatch, tmp_path):
    """Return a function that runs a command in the folder of the test and returns exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    return runner(capsys)


@pytest.fixture
def put(tmp_path):
    """Return a function that writes the files of a specimen of the zoo into the folder, and returns model and table."""
    return lambda name: zoo.put(name, tmp_path)
