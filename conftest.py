"""Examples in docstrings write their files into a folder of their own."""

import pytest


@pytest.fixture(autouse=True)
def elsewhere(request, monkeypatch, tmp_path):
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path)


collect_ignore = ["src/bitatoms/scale"]  # importing a deprecated module warns
