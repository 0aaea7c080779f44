"""Atomic writes: two writers, interrupts, symbolic links, permissions and stores."""

import os
import signal
import stat
import sys
from pathlib import Path

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.html.model_tables import pattern_table
from bitatoms.io import atomic
from bitatoms.io.atomic import atomic_write, write_files
from bitatoms.report import write_report

X = np.eye(40, 6, dtype=np.uint8)
TABLE = ba.Table(ba.BitMatrix.from_dense(X), columns=tuple("abcdef"))
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX files")


def test_of_two_writers_the_last_wins_and_both_are_complete(tmp_path):
    with atomic_write(tmp_path / "table.csv") as temporary:
        temporary.write_text("first")
        with atomic_write(tmp_path / "table.csv") as other:  # by another process, say
            other.write_text("second")
        assert (tmp_path / "table.csv").read_text() == "second"
    assert os.listdir(tmp_path) == ["table.csv"]
    assert (tmp_path / "table.csv").read_text() == "first"


@pytest.mark.parametrize("is_new", [True, False])
def test_an_interrupted_write_changes_nothing(tmp_path, is_new):
    path = tmp_path / "table.csv"
    if not is_new:
        path.write_text("old")

    def write():
        with atomic_write(path) as temporary:
            temporary.write_text("a part")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == ({} if is_new else {"table.csv": "old"})


FILES = {"figures/one.png": b"new", "table.csv": b"new", "index.html": b"new"}


@pytest.fixture
def earlier(tmp_path):
    """A folder with older files of the same names."""
    (tmp_path / "figures").mkdir()
    for name in FILES:
        (tmp_path / name).write_bytes(b"old")
    return tmp_path


def contents(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("n_written", [0, 1, 2])
def test_files_of_a_folder_are_kept_if_writing_others_is_interrupted(earlier, monkeypatch, n_written):
    written, write_bytes = [], Path.write_bytes

    def interrupt(path, content):
        if len(written) == n_written:
            raise KeyboardInterrupt
        written.append(path)
        return write_bytes(path, content)

    monkeypatch.setattr(Path, "write_bytes", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_files(earlier, FILES)
    assert contents(earlier) == dict.fromkeys(FILES, b"old")


def test_an_interrupt_while_files_are_replaced_waits_for_the_last(earlier, monkeypatch):
    replace = os.replace

    def interrupt(*paths):
        replace(*paths)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_files(earlier, FILES)
    assert contents(earlier) == FILES


@posix_only
@pytest.mark.parametrize("path", [os.devnull, "pipe"])
def test_devices_and_pipes_are_refused(tmp_path, path):
    os.mkfifo(tmp_path / "pipe")
    for use in (lambda path: ba.write(X, path, "csv"), lambda path: ba.read(path, format="csv")):
        with pytest.raises(ba.FileError, match="a device or a pipe, not a file; commands read and write streams as -"):
            use(tmp_path / path)
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


WRITERS = {  # ending of the file, and a function that writes one
    "table": (".csv", lambda path, model: ba.write(TABLE, path)),
    "compressed table": (".tsv.gz", lambda path, model: ba.write(TABLE, path)),
    "array": (".npy", lambda path, model: ba.write(X, path)),
    "model": (".npz", lambda path, model: model.save(path)),
    "patterns": (".json", lambda path, model: pattern_table(model.patterns()).write(path)),
    "report": (".html", lambda path, model: write_report(model, TABLE, path)),
}


@pytest.fixture(scope="module")
def model():
    return ba.BinaryDictionaryLearning(2, algebra="xor", random_state=0).fit(TABLE)


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@posix_only
@pytest.mark.parametrize(("writer", "dangling"), [*((writer, False) for writer in WRITERS), ("table", True)])
def test_a_link_is_followed_and_the_mode_of_a_file_is_kept(writer, dangling, model, tmp_path):
    ending, write = WRITERS[writer]
    (tmp_path / "folder").mkdir()
    file, link, new = tmp_path / f"folder/file{ending}", tmp_path / f"link{ending}", tmp_path / f"new{ending}"
    link.symlink_to(Path("folder") / file.name)
    if not dangling:
        file.write_bytes(b"earlier content")
        file.chmod(0o600)
    earlier = os.umask(0o027)
    try:
        write(link, model)
        write(new, model)
    finally:
        os.umask(earlier)
    assert link.is_symlink()
    assert file.read_bytes() == new.read_bytes()
    assert (mode_of(file), mode_of(new)) == (0o640 if dangling else 0o600, 0o640)
    assert os.listdir(tmp_path / "folder") == [file.name]


@posix_only
@pytest.mark.filterwarnings("ignore:.*does not store population")
def test_links_to_stores_and_to_several_files_are_followed(tmp_path):
    pytest.importorskip("bed_reader")
    (tmp_path / "folder").mkdir()
    for kind in ("zarr", "bed", "bim", "fam"):
        (tmp_path / f"link.{kind}").symlink_to(f"folder/{kind}.{kind}")
    genotypes = ba.datasets.genotypes(20, 8, random_state=0)
    for rows in (genotypes, genotypes[:7]):
        for kind in ("bed", "zarr"):
            ba.write(rows, tmp_path / f"link.{kind}")
            assert ba.read(tmp_path / f"link.{kind}") == rows
    assert sorted(os.listdir(tmp_path / "folder")) == ["bed.bed", "bim.bim", "fam.fam", "zarr.zarr"]
    assert all(path.is_symlink() for path in tmp_path.glob("link.*"))
    for name, target, message in (
        ("a.csv", "a.csv", r"a\.csv: a symbolic link that leads back to itself"),
        ("c.csv", "missing/c.csv", r"c\.csv: there is no folder .*missing"),
    ):
        (tmp_path / name).symlink_to(target)
        with pytest.raises(ba.FileError, match=message):
            ba.write(TABLE, tmp_path / name)
        assert (tmp_path / name).is_symlink()


@posix_only
def test_the_mode_of_a_store_is_kept(tmp_path):
    pytest.importorskip("zarr")
    ba.pack(X, tmp_path / "table.zarr").path.chmod(0o700)
    ba.pack(X[:7], tmp_path / "table.zarr")
    assert mode_of(tmp_path / "table.zarr") == 0o700


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a file system may need two renames")
def test_a_store_is_replaced_by_one_rename(tmp_path, monkeypatch):
    pytest.importorskip("zarr")
    ba.pack(X, tmp_path / "table.zarr")
    replace = os.replace

    def only_within_stores(*paths):
        assert tmp_path / "table.zarr" not in paths
        replace(*paths)

    monkeypatch.setattr(os, "replace", only_within_stores)
    ba.pack(X[:7], tmp_path / "table.zarr")
    np.testing.assert_array_equal(ba.read(tmp_path / "table.zarr").to_dense(), X[:7])


def test_a_store_is_restored_if_it_cannot_be_replaced(tmp_path, monkeypatch):
    """On file systems that cannot exchange two folders, and on Windows, two renames are needed."""
    pytest.importorskip("zarr")
    monkeypatch.setattr(atomic, "_EXCHANGE", {})
    for rows in (X[:3], X):
        ba.pack(rows, tmp_path / "table.zarr")
        np.testing.assert_array_equal(ba.read(tmp_path / "table.zarr").to_dense(), rows)
        assert os.listdir(tmp_path) == ["table.zarr"]
    replace, calls = os.replace, []

    def fail_second(*paths):
        calls.append(tmp_path / "table.zarr" in paths)
        if sum(calls) == 2 and calls[-1]:
            raise OSError(5, "Input/output error")
        replace(*paths)

    monkeypatch.setattr(os, "replace", fail_second)
    with pytest.raises(ba.FileError, match="Input/output error; nothing was changed"):
        ba.pack(X[:7], tmp_path / "table.zarr")
    np.testing.assert_array_equal(ba.read(tmp_path / "table.zarr").to_dense(), X)
    assert os.listdir(tmp_path) == ["table.zarr"]
