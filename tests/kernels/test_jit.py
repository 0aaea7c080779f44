"""Kernels: how functions are compiled as parts of them, and the cache, which saves time and never does harm."""

import errno
import multiprocessing
import os
import pickle
import threading
import warnings
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import NamedTuple
from unittest import mock

import numba
import numpy as np
import pytest

from bitatoms import BinaryDictionaryLearning
from bitatoms.kernels import jit
from bitatoms.kernels.ahead import CompiledElsewhere
from bitatoms.kernels.jit import KernelCache, inline, kernel, subroutine


def twice(x):
    return 2 * x


def thrice(x):
    return 3 * x


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Cache kernels in an empty folder."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(jit, "_warned", set())
    return tmp_path


def n_loaded(function, expected=42):
    """Call a kernel for the first time; return how often it was loaded from the cache."""
    assert function(21) == expected
    return sum(function.stats.cache_hits.values())


def files(folder, ending):
    return sorted(path for path in folder.rglob("*") if path.name.endswith(ending))


def test_kernels_are_loaded_from_the_cache(folder):
    assert n_loaded(kernel(twice)) == 0
    assert [len(files(folder, ending)) for ending in (".nbi", ".nbc")] == [1, 1]
    assert n_loaded(kernel(twice)) == 1


@pytest.mark.parametrize("is_stored", [False, True])
def test_a_kernel_that_another_process_compiles_is_awaited_and_loaded(folder, monkeypatch, is_stored):
    """It is compiled here if that process does not store it."""
    compile_there = mock.Mock(side_effect=lambda key: is_stored and kernel(twice)(21))
    elsewhere = CompiledElsewhere(SimpleNamespace(wait=compile_there), "key")
    monkeypatch.setattr(jit.ahead, "missing", mock.Mock(side_effect=[elsewhere, None]))
    assert n_loaded(kernel(twice)) == is_stored
    compile_there.assert_called_once_with("key")


def test_the_number_of_compiled_kernels_is_logged_now_and_then(folder, caplog, monkeypatch):
    caplog.set_level("INFO", "bitatoms")
    monkeypatch.setattr(jit, "_progress", jit._Progress())
    now = [0.0]
    monkeypatch.setattr(jit, "time", SimpleNamespace(monotonic=lambda: now[0]))
    first = kernel(twice)
    for seconds, x in ((0, 1), (1, 1.5), (2, True)):  # three variants
        now[0] = seconds
        first(x)
    first(1)
    kernel(twice)(1)  # loaded from the cache
    assert caplog.messages == [
        "compiling kernels (first run only): 1 so far; a first fit takes 5 to 30 seconds longer",
        "compiling kernels (first run only): 3 so far",
    ]


class Killed(BaseException):
    """The end of a process, of which only the files are left."""


def raise_killed():
    raise Killed


@contextmanager
def before_rename(number, action):
    """Do something before a kernel that is stored renames its first or second file."""
    replace, n_calls = os.replace, []

    def rename(source, target):
        n_calls.append(1)
        if len(n_calls) == number:
            action()
        replace(source, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", rename)
        yield


part = inline(twice)


def calls_part(x):
    return part(x)


def use_version(monkeypatch, name, function):
    """Install a version of the package, whose kernel calls this function."""
    monkeypatch.setattr(jit, "_sources", lambda: name)
    monkeypatch.setitem(globals(), "part", inline(function))


@pytest.mark.parametrize("rename", [1, 2])
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_kernel_that_is_being_stored_does_not_bring_back_an_earlier_version(folder, monkeypatch, rename, is_killed):
    """Another process reads it, or the one that stores it is killed."""
    use_version(monkeypatch, "0.1", twice)
    assert kernel(calls_part)(21) == 42
    use_version(monkeypatch, "0.2", thrice)
    results = []
    action = raise_killed if is_killed else lambda: results.append(kernel(calls_part)(21))
    with before_rename(rename, action), pytest.raises(Killed) if is_killed else nullcontext():
        results.append(kernel(calls_part)(21))
    assert results == ([] if is_killed else [63, 63])
    for n_hits in (0, 1) if is_killed else (1, 1):
        assert n_loaded(kernel(calls_part), 63) == n_hits
    assert not is_killed or len(files(folder, ".nbc")) == 1  # nothing is left of the earlier version


@pytest.mark.parametrize("rename", [1, 2])
def test_processes_that_store_variants_at_the_same_time_do_not_mix_them(folder, rename):
    with before_rename(rename, lambda: kernel(twice)(1.5)):
        assert kernel(twice)(21) == 42
    assert kernel(twice)(1.5) == 3.0
    assert isinstance(kernel(twice)(21), int)


def test_the_cache_depends_on_the_contents_of_the_sources_only(tmp_path, monkeypatch):
    """Times of files differ in each installation, and in container images."""
    monkeypatch.setattr(jit, "__file__", str(tmp_path / "jit.py"))
    (tmp_path / "cpu").mkdir()
    source = tmp_path / "cpu" / "words.py"
    source.write_text("one")
    first = jit._sources.__wrapped__()
    os.utime(source, (1, 1))
    assert jit._sources.__wrapped__() == first
    source.write_text("two")
    assert jit._sources.__wrapped__() != first


@pytest.mark.parametrize("ending", [".nbi", ".nbc"])
@pytest.mark.parametrize("content", ["empty", "truncated", "garbage", "another pickle"])
def test_corrupt_files_are_replaced_with_one_warning(folder, ending, content):
    function = kernel(twice)
    assert n_loaded(function) == 0
    (path,) = files(folder, ending)
    data = path.read_bytes()
    # an index begins with a pickle of the version
    other = (pickle.dumps(function._cache._cache_file._version) if ending == ".nbi" else b"") + pickle.dumps(1)
    changed = {"empty": b"", "truncated": data[: len(data) // 2], "garbage": b"\xff" * 50, "another pickle": other}
    path.write_bytes(changed[content])
    with pytest.warns(RuntimeWarning, match=r"cache of compiled kernels in .* is corrupt .*compiled again") as caught:
        n_hits = n_loaded(kernel(twice))
    assert n_hits == 0
    assert len(caught) == 1
    assert n_loaded(kernel(twice)) == 1  # without a warning: the files were written again


@pytest.mark.parametrize(("failing", "code"), [("_save_index", errno.ENOSPC), ("_save_data", errno.EROFS)])
def test_a_cache_that_cannot_be_written_warns_once(folder, failing, code):
    with mock.patch(f"numba.core.caching.IndexDataCacheFile.{failing}", side_effect=OSError(code, os.strerror(code))):
        with pytest.warns(RuntimeWarning, match=f"kernels cannot be stored in .*{os.strerror(code)}"):
            n_hits = n_loaded(kernel(twice))
        assert n_hits == n_loaded(kernel(twice)) == 0  # without a second warning
    assert not files(folder, ".nbi")  # an index without its data would name files of an earlier version
    assert n_loaded(kernel(twice)) == 0
    assert n_loaded(kernel(twice)) == 1


def test_without_any_cache_folder_kernels_are_compiled_in_each_process(folder, monkeypatch):
    error = RuntimeError("cannot cache function: no locator available")
    monkeypatch.setattr(KernelCache, "__init__", mock.Mock(side_effect=error))
    assert n_loaded(kernel(twice)) == 0
    assert not files(folder, "")


@pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="fork is not available")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_while_another_thread_compiles_can_compile(folder):
    X = np.eye(6, dtype=np.uint8)[np.arange(60) % 6]
    expected = BinaryDictionaryLearning(random_state=0, n_jobs=2).fit(X).components_
    compiling, forking = threading.Event(), threading.Event()
    os.register_at_fork(before=forking.set)  # before the fork waits until nothing is compiled

    def compile_something():
        with numba.core.compiler_lock.global_compiler_lock:
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


# --- functions that only kernels call are compiled as part of them


@pytest.fixture
def no_cache(monkeypatch):
    """Compile kernels, instead of loading them from a cache."""
    monkeypatch.setattr(jit, "KernelCache", mock.Mock(side_effect=OSError))


class Options(NamedTuple):
    size: int
    extra: int | None


@pytest.mark.usefixtures("no_cache")
def test_branches_for_what_is_none_are_not_compiled():
    @subroutine
    def only_with_extra(extra):
        return 10 * extra

    @kernel
    def of_argument(covers, size):
        return only_with_extra(size) if covers else size

    @kernel
    def of_field(options):
        return options.size if options.extra is None else only_with_extra(options.extra)

    assert (of_argument(None, 3), of_field(Options(4, None))) == (3, 4)
    assert only_with_extra.signatures == []
    assert (of_argument(True, 3), of_field(Options(4, 1))) == (30, 10)
