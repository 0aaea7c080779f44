"""Atomic writes: pipes and devices, symbolic links, permissions, stores, and what a killed process leaves."""

import os
import signal
import stat
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import bitatoms as ba
from bitatoms.errors import InputWarning
from bitatoms.io import atomic
from bitatoms.io.atomic import atomic_write, write_files
from bitatoms.io.patterns import write_patterns
from bitatoms.report import write_report
from bitatoms.rows.checkpoint import Checkpoint


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def write(path, content):
    with atomic_write(path) as temporary:
        temporary.write_text(content)


def make_store(path, content):
    path.mkdir(parents=True)
    (path / "zarr.json").write_text(content)


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


def test_store_of_a_process_killed_between_two_renames_is_restored(tmp_path):
    left = tmp_path / ".rows.zarr.abcdefgh.part"
    make_store(left / "rows.zarr", "new")
    make_store(left / "replaced store", "old")
    (left / ".lock").touch()
    with pytest.raises(ZeroDivisionError), atomic_write(tmp_path / "rows.zarr"):
        raise ZeroDivisionError
    assert names(tmp_path) == ["rows.zarr"]
    assert (tmp_path / "rows.zarr" / "zarr.json").read_text() == "old"


# --- pipes, links, permissions

X = np.eye(40, 6, dtype=np.uint8)
TABLE = ba.Table(ba.BitMatrix.from_dense(X), columns=tuple("abcdef"))
SMALL = ba.Table(ba.BitMatrix.from_dense(X[:2]), columns=tuple("abcdef"))
TEXT = "a,b,c,d,e,f\n1,0,0,0,0,0\n0,1,0,0,0,0\n"  # of it
posix_only = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX files")
WRITERS = {  # ending of the file, and a function that writes one
    "table": (".csv", lambda path, model: ba.write(TABLE, path)),
    "compressed table": (".tsv.gz", lambda path, model: ba.write(TABLE, path)),
    "array": (".npy", lambda path, model: ba.write(X, path)),
    "model": (".npz", lambda path, model: model.save(path)),
    "patterns": (".json", lambda path, model: write_patterns(model.as_model(), path)),
    "report": (".html", lambda path, model: write_report(model, TABLE, path)),
}


@pytest.fixture(scope="module")
def model():
    return ba.BinaryDictionaryLearning(2, random_state=0).fit(TABLE)


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def read_in_thread(path, size=-1):
    """Read from a pipe in a thread; return the thread and the list that gets the content."""
    content = []

    def read():
        with open(path, "rb") as file:
            content.append(file.read(size))

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread, content


@posix_only
@pytest.mark.parametrize(("writer", "ending"), [("table", ""), ("model", ".npz"), ("patterns", "")])
def test_a_pipe_is_written_into(writer, ending, model, tmp_path):
    """As CSV if its name has no extension."""
    write = WRITERS[writer][1]
    pipe, file = tmp_path / f"pipe{ending}", tmp_path / f"file{ending or '.csv'}"
    os.mkfifo(pipe)
    thread, content = read_in_thread(pipe)
    write(pipe, model)
    assert stat.S_ISFIFO(os.stat(pipe).st_mode)
    thread.join(10)
    write(file, model)
    assert content == [file.read_bytes()]
    assert sorted(os.listdir(tmp_path)) == sorted([pipe.name, file.name])


@posix_only
def test_a_pipe_cannot_hold_several_files(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for format in ("bed", "zarr"):
        with pytest.raises(ba.FileError, match=r"pipe: .* cannot be written to a stream; pass"):
            ba.write(X, tmp_path / "pipe", format)
    assert os.listdir(tmp_path) == ["pipe"]


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="needs /dev/stdout")
def test_standard_output_redirected_to_a_file_keeps_what_is_in_it(tmp_path, capfd):
    link = tmp_path / "link.csv"  # to fail without replacing the device itself
    link.symlink_to("/dev/stdout")
    print("before", flush=True)
    ba.write(SMALL, link)
    print("after", flush=True)
    assert capfd.readouterr().out == f"before\n{TEXT}after\n"


@posix_only
@pytest.mark.parametrize(("writer", "dangling"), [*((writer, False) for writer in WRITERS), ("table", True)])
def test_a_link_is_followed(writer, dangling, model, tmp_path):
    ending, write = WRITERS[writer]
    (tmp_path / "folder").mkdir()
    file, link, other = tmp_path / f"folder/file{ending}", tmp_path / f"link{ending}", tmp_path / f"other{ending}"
    link.symlink_to(Path("folder") / file.name)
    if not dangling:
        file.write_bytes(b"earlier content")
    write(link, model)
    write(other, model)
    assert link.is_symlink()
    assert file.read_bytes() == other.read_bytes()
    assert os.listdir(tmp_path / "folder") == [file.name]


@posix_only
def test_links_that_lead_nowhere_raise(tmp_path):
    (tmp_path / "a.csv").symlink_to("b.csv")
    (tmp_path / "b.csv").symlink_to("a.csv")
    with pytest.raises(ba.FileError, match=r"a\.csv: a symbolic link that leads back to itself"):
        ba.write(TABLE, tmp_path / "a.csv")
    (tmp_path / "c.csv").symlink_to("missing/c.csv")
    with pytest.raises(ba.FileError, match=r"c\.csv: there is no folder .*missing"):
        ba.write(TABLE, tmp_path / "c.csv")
    assert (tmp_path / "a.csv").is_symlink()
    assert (tmp_path / "c.csv").is_symlink()


@posix_only
def test_a_link_to_a_store_is_followed(tmp_path):
    pytest.importorskip("zarr")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.zarr").symlink_to("folder/store.zarr")
    for rows in (X, X[:7]):
        ba.pack(rows, tmp_path / "link.zarr")
        assert (tmp_path / "link.zarr").is_symlink()
        assert os.listdir(tmp_path / "folder") == ["store.zarr"]
        np.testing.assert_array_equal(ba.read(tmp_path / "folder/store.zarr").to_dense(), rows)


@posix_only
def test_links_to_the_files_of_a_plink_table_are_followed(tmp_path):
    pytest.importorskip("bed_reader")
    genotypes = ba.datasets.genotypes(20, 8, random_state=0)
    (tmp_path / "folder").mkdir()
    for kind in ("bed", "bim", "fam"):
        (tmp_path / f"link.{kind}").symlink_to(f"folder/{kind}.{kind}")
    with pytest.warns(InputWarning, match="does not store population of samples"):
        ba.write(genotypes, tmp_path / "link.bed")
    assert sorted(os.listdir(tmp_path / "folder")) == ["bed.bed", "bim.bim", "fam.fam"]
    assert sorted(os.listdir(tmp_path)) == ["folder", "link.bed", "link.bim", "link.fam"]
    assert ba.read(tmp_path / "link.bed") == genotypes


@posix_only
@pytest.mark.parametrize("writer", WRITERS)
def test_the_mode_of_a_file_is_kept(writer, model, tmp_path):
    ending, write = WRITERS[writer]
    private, new = tmp_path / f"private{ending}", tmp_path / f"new{ending}"
    private.touch(0o600)
    private.chmod(0o600)
    earlier = os.umask(0o027)
    try:
        write(private, model)
        write(new, model)
    finally:
        os.umask(earlier)
    assert (mode_of(private), mode_of(new)) == (0o600, 0o640)
    assert private.read_bytes() == new.read_bytes()


@posix_only
def test_the_modes_of_a_store_and_a_checkpoint_are_kept(tmp_path):
    pytest.importorskip("zarr")
    ba.pack(X, tmp_path / "table.zarr").path.chmod(0o700)
    ba.pack(X[:7], tmp_path / "table.zarr")
    assert mode_of(tmp_path / "table.zarr") == 0o700
    call = {"n_samples": 40, "n_features": 6}
    for _ in range(2):
        with Checkpoint(tmp_path / "fit", call, resume=False) as checkpoint:
            checkpoint.random(np.random.default_rng(0))
        (tmp_path / "fit/state.npz").chmod(0o600)
    with Checkpoint(tmp_path / "fit", call, resume=False) as checkpoint:
        checkpoint.random(np.random.default_rng(0))
    assert mode_of(tmp_path / "fit/state.npz") == 0o600


@pytest.mark.parametrize("exchanges", [True, False])
def test_a_store_is_replaced_by_a_store(exchanges, tmp_path, monkeypatch):
    pytest.importorskip("zarr")
    if not exchanges:  # as on Windows, and on file systems that cannot
        monkeypatch.setattr(atomic, "_EXCHANGE", {})
    for rows in (X, X[:7]):
        ba.pack(rows, tmp_path / "table.zarr")
        np.testing.assert_array_equal(ba.read(tmp_path / "table.zarr").to_dense(), rows)
        assert os.listdir(tmp_path) == ["table.zarr"]


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
    pytest.importorskip("zarr")
    ba.pack(X, tmp_path / "table.zarr")
    replace, calls = os.replace, []

    def fail_second(*paths):
        calls.append(tmp_path / "table.zarr" in paths)
        if sum(calls) == 2 and calls[-1]:
            raise OSError(5, "Input/output error")
        replace(*paths)

    monkeypatch.setattr(atomic, "_EXCHANGE", {})
    monkeypatch.setattr(os, "replace", fail_second)
    with pytest.raises(ba.FileError, match="Input/output error; nothing was changed"):
        ba.pack(X[:7], tmp_path / "table.zarr")
    np.testing.assert_array_equal(ba.read(tmp_path / "table.zarr").to_dense(), X)
    assert os.listdir(tmp_path) == ["table.zarr"]
