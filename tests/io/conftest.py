"""A fixture that writes small files."""

import pytest


@pytest.fixture
def file(tmp_path):
    """Return a function that writes a file, of text or bytes, and returns its path."""

    def write(content, name="table.csv"):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path / name

    return write
