"""Atomic writes: what an interrupt or a killed process leaves, and who removes it."""

import os
import subprocess
import sys

import pytest

from bitatoms.io import atomic
from bitatoms.io.atomic import atomic_write
from bitatoms.io.locks import lock


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def write(path, content):
    with atomic_write(path) as temporary:
        temporary.write_text(content)


def make_store(path, content):
    path.mkdir(parents=True)
    (path / "zarr.json").write_text(content)


KILLED = """
import os, signal, sys
from pathlib import Path
from bitatoms.io.atomic import atomic_write

with atomic_write(Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_next_write_removes_what_a_killed_process_left(tmp_path):
    killed = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "table.csv")], check=False)
    assert killed.returncode == -9
    assert [name[-5:] for name in names(tmp_path)] == [".part"]
    write(tmp_path / "other.csv", "another file")
    assert len(names(tmp_path)) == 2
    write(tmp_path / "table.csv", "complete")
    assert names(tmp_path) == ["other.csv", "table.csv"]


def test_only_own_and_unused_folders_are_removed(tmp_path):
    kept = [
        ".table.csv.backup.part",
        ".table.csv.abcdefgh.parts",
        ".other.csv.abcdefgh.part",
        ".table.csv.00000000.part",
    ]
    for name in kept:
        (tmp_path / name).mkdir()
        (tmp_path / name / "table.csv").write_text("of someone")
    (tmp_path / ".table.csv.empty_01.part").mkdir()  # killed before it was locked
    with atomic_write(tmp_path / "table.csv") as temporary:
        temporary.write_text("first")
        write(tmp_path / "table.csv", "second")  # by another process, say
        assert temporary.read_text() == "first"
    assert names(tmp_path) == sorted([*kept, "table.csv"])
    assert (tmp_path / "table.csv").read_text() == "first"


def test_folder_that_another_process_takes_for_stale_is_replaced(tmp_path, monkeypatch):
    """Between its creation and its lock, another process may lock and remove a folder."""
    others = []

    def locked_by_another(file):
        if not others:
            others.append(open(file.name, "r+b"))  # noqa: SIM115, closed below
            assert lock(others[0])
        return lock(file)

    monkeypatch.setattr(atomic, "lock", locked_by_another)
    with atomic_write(tmp_path / "table.csv") as temporary:
        assert str(temporary.parent) != os.path.dirname(others[0].name)
        temporary.write_text("complete")
    others[0].close()
    write(tmp_path / "table.csv", "again")
    assert names(tmp_path) == ["table.csv"]


def test_interrupt_between_two_renames_keeps_the_old_store(tmp_path, monkeypatch):
    make_store(tmp_path / "rows.zarr", "old")
    replace = os.replace

    def interrupted(source, target):
        if not os.path.exists(target) and os.path.basename(target) == "rows.zarr" and "replaced" not in str(source):
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(atomic.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt), atomic_write(tmp_path / "rows.zarr") as temporary:
        make_store(temporary, "new")
    assert names(tmp_path) == ["rows.zarr"]
    assert (tmp_path / "rows.zarr" / "zarr.json").read_text() == "old"


def test_store_of_a_process_killed_between_two_renames_is_restored(tmp_path):
    left = tmp_path / ".rows.zarr.abcdefgh.part"
    make_store(left / "rows.zarr", "new")
    make_store(left / "replaced store", "old")
    (left / ".lock").touch()
    with pytest.raises(ZeroDivisionError), atomic_write(tmp_path / "rows.zarr"):
        raise ZeroDivisionError
    assert names(tmp_path) == ["rows.zarr"]
    assert (tmp_path / "rows.zarr" / "zarr.json").read_text() == "old"
