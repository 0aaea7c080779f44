"""Run the examples in docstrings in a temporary folder."""

import pytest


@pytest.fixture(autouse=True)
def doctest_folder(request, monkeypatch, tmp_path):
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path)


collect_ignore = ["src/bitatoms/scale"]  # importing a deprecated module warns
