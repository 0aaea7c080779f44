"""Kernels are compiled ahead of their first use."""

import os
from pathlib import Path

import numba
import pytest

from bitatoms import FileError, InputError, warmup
from bitatoms.kernels.jit import NoKernelCache
from bitatoms.warmup import JOBS, run_job, warm_up


@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("algebra", warmup.ALGEBRAS)
def test_every_job_runs(name, algebra):
    assert run_job((name, algebra)) == f"{name}, {algebra.upper()}"


def test_jobs_run_in_order_in_both_algebras(monkeypatch):
    ran, told = [], []
    jobs = {name: lambda algebra, name=name: ran.append((name, algebra)) for name in ("search", "wide", "paper")}
    monkeypatch.setattr(warmup, "JOBS", jobs)
    folder = warm_up(1, lambda *progress: told.append(progress))
    assert folder.is_dir()
    assert ran == [(name, algebra) for name in jobs for algebra in ("or", "xor")]
    assert told[0] == ("search, OR", 1, 6)
    assert told[-1] == ("paper, XOR", 6, 6)


def test_jobs_run_in_processes():
    stage = [("search", "or"), ("classes", "or")]
    names = sorted(warmup._run(stage, 2))
    assert names == ["classes, OR", "search, OR"]


def test_a_process_that_ends_early_is_an_error(monkeypatch):
    monkeypatch.setattr(warmup, "run_job", lambda job: os._exit(1))
    with pytest.raises(InputError, match=r"a process that compiled kernels ended early.*pass n_jobs=1"):
        list(warmup._run([("search", "or")], 2))


def test_without_a_folder_for_the_cache_it_fails_at_once(monkeypatch):
    monkeypatch.setattr(warmup.column_weights, "_cache", NoKernelCache())
    with pytest.raises(FileError, match=r"no folder for compiled kernels is writable; set .*NUMBA_CACHE_DIR"):
        warm_up()


def test_the_folder_is_that_of_numba(monkeypatch, tmp_path):
    assert warmup._cache_folder() == Path(numba.config.CACHE_DIR or warmup.column_weights._cache.cache_path)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert warmup._cache_folder() == tmp_path
