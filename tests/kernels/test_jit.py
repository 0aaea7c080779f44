"""Kernels: their views of arrays, and the cache, which saves time and never does harm."""

import errno
import multiprocessing
import os
import threading
import warnings
from typing import NamedTuple
from unittest import mock

import numba
import numpy as np
import pytest

from bitatoms import BinaryDictionaryLearning
from bitatoms.kernels import jit
from bitatoms.kernels.jit import inline, kernel, subroutine
from bitatoms.kernels.views import flat, view


def twice(x):
    return 2 * x


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Cache kernels in an empty folder."""
    monkeypatch.setattr(jit, "CACHE_FOLDER", tmp_path / "kernels")
    monkeypatch.setattr(jit, "_warned", set())
    return tmp_path / "kernels"


def is_compiled(function, caplog):
    """Call a kernel for the first time; return whether it was compiled, and not loaded from the cache."""
    caplog.set_level("INFO", "bitatoms")
    caplog.clear()
    assert function(21) == 42
    return caplog.messages == ["compiling kernel twice"]


def files(folder, ending):
    return sorted(path for path in folder.rglob("*") if path.name.endswith(ending))


def test_kernels_are_loaded_from_the_cache(folder, caplog):
    given = numba.config.CACHE_DIR
    assert is_compiled(kernel(twice), caplog)
    assert [len(files(folder, ending)) for ending in (".nbi", ".nbc")] == [1, 1]
    function = kernel(twice)
    assert not is_compiled(function, caplog)
    assert function(4) == 8
    assert given == numba.config.CACHE_DIR


def test_the_cache_depends_on_the_contents_of_the_sources_only(tmp_path, monkeypatch):
    """Times of files differ in each installation, and in container images."""
    monkeypatch.setattr(jit, "__file__", str(tmp_path / "jit.py"))
    (tmp_path / "cpu").mkdir()
    source = tmp_path / "cpu" / "words.py"
    for file in (source, *(tmp_path / name for name in ("jit.py", "structs.py", "views.py"))):
        file.write_text("one")
    first = jit._sources()
    os.utime(source, (1, 1))
    assert jit._sources() == first
    source.write_text("two")
    second = jit._sources()
    monkeypatch.setattr(numba, "__version__", "0.0")
    assert len({first, second, jit._sources()}) == 3


@pytest.mark.parametrize("is_given", [True, False])
def test_the_cache_is_in_the_first_folder_that_is_writable(tmp_path, monkeypatch, is_given):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "given") if is_given else "")
    monkeypatch.setattr(jit.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    real = jit.tempfile.TemporaryFile

    def denied(dir):
        if dir.parent.name == "__pycache__":
            raise PermissionError
        return real(dir=dir)

    monkeypatch.setattr(jit.tempfile, "TemporaryFile", denied)
    name = f"bitatoms-{jit._sources()}"
    assert jit._cache_folder() == tmp_path / ("given" if is_given else "user") / name
    monkeypatch.setattr(jit.tempfile, "TemporaryFile", mock.Mock(side_effect=PermissionError))
    assert jit._cache_folder() is None


@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
@pytest.mark.parametrize("content", ["empty", "truncated", "garbage"])
def test_corrupt_files_are_replaced_with_one_warning(folder, caplog, ending, content):
    assert is_compiled(kernel(twice), caplog)
    (path,) = files(folder, ending)
    data = path.read_bytes()
    path.write_bytes({"empty": b"", "truncated": data[: len(data) // 2], "garbage": b"\xff" * 50}[content])
    with pytest.warns(RuntimeWarning, match=r"cache of compiled kernels in .* is corrupt .*compiled again") as caught:
        assert is_compiled(kernel(twice), caplog)
    assert len(caught) == 1
    assert not folder.exists()
    assert is_compiled(kernel(twice), caplog)
    assert not is_compiled(kernel(twice), caplog)  # without a warning: the files were written again


@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
def test_a_kernel_of_which_a_killed_process_left_one_file_is_compiled(folder, caplog, ending):
    kernel(twice)(21)
    files(folder, ending)[0].unlink()
    assert is_compiled(kernel(twice), caplog)


def test_a_cache_that_cannot_be_written_warns_once(folder, caplog):
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with mock.patch("numba.core.caching.IndexDataCacheFile.save", side_effect=error):
        with pytest.warns(RuntimeWarning, match=f"kernels cannot be stored in .*{os.strerror(errno.ENOSPC)}"):
            kernel(twice)(21)
        assert kernel(twice)(21) == 42  # without a second warning
    assert is_compiled(kernel(twice), caplog)


def test_without_any_cache_folder_kernels_are_compiled_in_each_process(folder, caplog, monkeypatch):
    monkeypatch.setattr(jit, "CACHE_FOLDER", None)
    assert is_compiled(kernel(twice), caplog)
    assert not folder.exists()


def test_an_error_of_the_compiler_is_raised(folder):
    @kernel
    def wrong(x):
        return view(x)[1:2]

    with pytest.raises(numba.errors.TypingError):
        wrong(np.zeros(3))
    assert not jit._warned


@pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="fork is not available")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_while_another_thread_compiles_can_compile(folder):
    X = np.eye(6, dtype=np.uint8)[np.arange(60) % 6]
    expected = BinaryDictionaryLearning(random_state=0, n_jobs=2).fit(X).components_
    compiling, forking = threading.Event(), threading.Event()
    os.register_at_fork(before=forking.set)  # before the fork waits until nothing is compiled

    def compile_something():
        with jit._compiling:
            compiling.set()
            assert forking.wait(60)

    def fit_and_compile():
        warnings.simplefilter("ignore")
        found = BinaryDictionaryLearning(random_state=0, n_jobs=2).fit(X).components_
        os._exit(0 if kernel(twice)(21) == 42 and np.array_equal(found, expected) else 2)

    thread = threading.Thread(target=compile_something)
    thread.start()
    assert compiling.wait(60)
    forking.clear()
    child = multiprocessing.get_context("fork").Process(target=fit_and_compile)
    child.start()
    thread.join()
    child.join(60)
    code = child.exitcode
    child.kill()
    assert code == 0
    assert kernel(twice)(4) == 8  # the lock is free in the parent, too


# --- views


class Table(NamedTuple):
    numbers: np.ndarray
    flags: np.ndarray
    factor: int


@inline
def row_sum(row):
    total = 0
    for i in range(row.shape[0]):
        total += row[i]
    return total


@subroutine
def scaled(table, i, j):
    return table.factor * table.numbers[i, j]


def test_views_read_and_write_the_arrays(folder):
    @kernel
    def run(table, cube, out):
        table, cube, out = view((table, cube, out))
        for i in range(table.numbers.shape[0]):
            out[i] = row_sum(table.numbers[i]) + scaled(table, i, np.uint64(1)) + row_sum(cube[i, 0]) + cube[i, 1, 2]
            table.flags[i] = not table.flags[i]
            table.numbers[i, 0] += 0.5
        return row_sum(flat(cube))

    random = np.random.default_rng(0)
    table = Table(random.integers(9, size=(3, 4)).astype(np.float32), np.array([True, False, True]), 10)
    cube, out = random.integers(9, size=(3, 2, 5), dtype=np.int32), np.zeros(3, np.int64)
    cube.flags.writeable = False
    before = table.numbers.copy()
    assert run(table, cube, out) == cube.sum()
    expected = before.sum(axis=1) + 10 * before[:, 1] + cube[:, 0].sum(axis=1) + cube[:, 1, 2]
    assert out.tolist() == expected.tolist()
    assert table.flags.tolist() == [False, True, False]
    assert table.numbers[:, 0].tolist() == (before[:, 0] + 0.5).tolist()
    assert (table.numbers[:, 1:] == before[:, 1:]).all()
