"""Kernels are compiled ahead by other processes, or by `warm_up`, which saves time and changes nothing else."""

import re
import sys
import threading
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numba
import pytest

from bitatoms import FileError, InputError, warmup
from bitatoms.kernels import ahead as ahead_module
from bitatoms.kernels.ahead import Ahead, CompiledElsewhere, Helper
from bitatoms.kernels.gpu.device import find_device
from bitatoms.kernels.gpu.variants import common_variants
from bitatoms.kernels.jit import NoKernelCache
from bitatoms.kernels.signatures import Variant, all_variants, encoded
from bitatoms.search.plan import MdlTuning
from bitatoms.warmup import warm_up
from support.devices import fake_cupy, installed_cupy
from support.plans import use_small_budget

NAMES = ["packing.row_weights", "words.hamming"]
SMALL = [variant for variant in all_variants() if variant.kernel in NAMES]


@pytest.mark.slow
def test_the_list_has_the_kernels_of_all_jobs_and_no_others(monkeypatch):
    """If this fails: ``make kernels``."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "packaging"))
    from record_kernels import recorded

    enough = MdlTuning()  # with fewer rounds or starts, some kernels are not called
    use_small_budget(
        monkeypatch, cycle_rounds=enough.cycle_rounds, close=enough.close, ordinary_close=enough.ordinary_close
    )
    found = {variant[:2]: set(variant.jobs) for variant in recorded()}
    assert found == {variant[:2]: set(variant.jobs) for variant in all_variants()}


def test_types_are_encoded_without_loss():
    for variant in all_variants():
        assert encoded(variant.types) == variant.signature, variant.kernel
        assert variant.dispatcher.py_func.__name__ == variant.kernel.split(".")[1]


def variants_of(kernels, *seconds):
    """Return variants of these kernels, each named by a letter, that take these seconds."""
    return [Variant(f"module.{kernel}", "[]", each, ("job",)) for kernel, each in zip(kernels, seconds, strict=True)]


@pytest.mark.parametrize(
    ("kernels", "seconds", "n_processes", "expected"),
    [
        ("abc", (4, 4, 2), 2, [[1, 2]]),
        ("abcdefghijklmn", (1,) * 14, 2, [[8, 9, 10, 11, 12, 13]]),
        ("abcd", (6, 9, 5, 2), 3, [[1], [2, 3]]),
        ("abab", (4, 4, 3, 5), 2, [[1, 3]]),  # one process compiles all variants of a kernel
        ("ab", (1, 1), 2, []),  # not worth a process
        ("ab", (9, 9), 1, []),
    ],
)
def test_the_process_that_needs_kernels_compiles_the_first_ones(kernels, seconds, n_processes, expected):
    numbered = [variant._replace(signature=str(i)) for i, variant in enumerate(variants_of(kernels, *seconds))]
    shares = ahead_module._after_first(numbered, n_processes)
    assert sorted([int(variant.signature) for variant in share] for share in shares) == expected


class FakeHelper:
    """Stands for a process that compiles until it is told that it is done."""

    def __init__(self, variants, done, ended):
        self.keys, self.is_busy, self.ended = {variant.key for variant in variants}, True, ended
        self.has = self.keys.__contains__

    def end(self):
        self.keys.clear()
        self.is_busy = False
        self.ended()


@pytest.fixture
def started(monkeypatch):
    """Return the processes that would have been started, for kernels of two jobs that are not in the cache."""
    helpers = []

    def start(*given):
        helpers.append(FakeHelper(*given))
        return helpers[-1]

    variants = (*variants_of("abc", 4, 4, 4), Variant("module.other", "[]", 9.0, ("other job",)))
    monkeypatch.setattr(ahead_module, "Helper", start)
    monkeypatch.setattr(ahead_module, "all_variants", lambda: variants)
    monkeypatch.setattr(ahead_module, "is_stored", lambda variant: False)
    return helpers


def test_processes_are_started_once_for_each_job_by_one_process_at_a_time(started, tmp_path):
    folder, (first, second, third) = str(tmp_path), (Ahead() for _ in range(3))
    for ahead in (first, second, third):
        ahead.expect(["job"], 2)
    assert first.missing("module.a []", folder, print) == 3
    assert [helper.keys for helper in started] == [{"module.c []"}]
    assert first.missing("module.b []", folder, print) is None
    with pytest.raises(CompiledElsewhere) as elsewhere:
        first.missing("module.c []", folder, print)
    assert elsewhere.value.helper is started[0]
    assert second.missing("module.a []", folder, print) is None  # another process has them compiled
    started[0].end()
    assert first.missing("module.c []", folder, print) is None  # it was not stored: compile it here
    first.expect(["job"], 2)
    first.missing("module.c []", folder, print)
    assert len(started) == 1  # once for each job
    assert third.missing("module.a []", folder, print) == 3
    third.forget()  # a forked child does not wait for processes of its parent
    assert third.missing("module.c []", folder, print) is None
    started[1].end()


def test_no_process_is_started_without_need_or_if_it_cannot_be(started, tmp_path, monkeypatch, caplog):
    caplog.set_level("INFO", "bitatoms")
    with mock.patch.object(ahead_module, "Helper", side_effect=OSError("Resource temporarily unavailable")):
        ahead = Ahead()
        ahead.expect(["job"], 2)
        assert ahead.missing("module.c []", str(tmp_path), print) is None
    assert caplog.messages == ["kernels are compiled by one process: Resource temporarily unavailable"]
    ahead = Ahead()
    assert ahead.missing("module.a []", str(tmp_path), print) is None  # nothing is expected
    ahead.expect(["job"], 1)
    assert ahead.missing("module.a []", str(tmp_path), print) is None  # one processor
    ahead.expect(["other job"], 2)
    assert ahead.missing("module.a []", str(tmp_path), print) is None  # a kernel of another job
    assert ahead.missing("module.other []", str(tmp_path), print) == 1  # which still begins later
    ahead = Ahead()
    monkeypatch.setattr(ahead_module.multiprocessing, "parent_process", lambda: "a process of joblib or Dask")
    ahead.expect(["job"], 2)
    assert ahead.missing("module.a []", str(tmp_path), print) is None
    assert started == []


@pytest.mark.parametrize("start", [None, "print('not a kernel')", "input()"])
def test_a_process_stores_kernels_or_is_not_waited_for(tmp_path, monkeypatch, start):
    """Whatever it does instead: write something else, end, or never end."""
    monkeypatch.setattr(ahead_module.numba.config, "CACHE_DIR", str(tmp_path))
    if start is not None:
        popen = ahead_module.subprocess.Popen
        change = lambda command, **how: popen([*command[:2], start], **how)  # noqa: E731
        monkeypatch.setattr(ahead_module.subprocess, "Popen", change)
        monkeypatch.setattr(ahead_module, "_MAX_WAIT", 60.0 if start != "input()" else 0.0)
    ended, compiled, key = threading.Event(), [], SMALL[0].key
    helper = Helper(SMALL[:1], compiled.append, ended.set)
    helper.wait(key)
    assert ended.wait(60)
    assert (compiled, helper.has(key), helper.is_busy) == (SMALL[:1] if start is None else [], False, False)
    assert len(list(tmp_path.rglob("*.nbc"))) == (start is None)
    helper.stop()


@pytest.mark.parametrize("executable", ["", None, "/opt/host/application"])
def test_applications_that_contain_python_are_not_started(monkeypatch, executable):
    monkeypatch.setattr(sys, "executable", executable)
    with pytest.raises(OSError, match="is not Python"):
        Helper(SMALL, print, print)


# --- warm_up


class QuickHelper:
    """Stands for a process that compiles kernels: it fails after some of them."""

    n_compiled = 99

    def __init__(self, variants, done, ended):
        for variant in variants[: self.n_compiled]:
            done(variant)
        ended()

    def stop(self):
        pass


@pytest.fixture
def stored(monkeypatch):
    """Return a list of kernels that pass for stored; two are known, and fake processes compile them."""
    found = []
    monkeypatch.setattr(QuickHelper, "n_compiled", 99)
    monkeypatch.setattr(warmup, "Helper", QuickHelper)
    monkeypatch.setattr(warmup, "all_variants", lambda: SMALL)
    monkeypatch.setattr(warmup, "is_stored", lambda variant: variant in found)
    return found


def test_all_kernels_are_compiled_in_processes(tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(warmup, "all_variants", lambda: SMALL)
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(warmup, "is_stored", lambda variant: len(told) == len(SMALL))
    assert warm_up(2, lambda *progress: told.append(progress)) == tmp_path
    assert sorted(name for name, _, _ in told) == sorted(variant.kernel for variant in SMALL)
    assert [progress[1:] for progress in told] == [(1, 2), (2, 2)]
    assert {path.name.rpartition("-")[0] for path in tmp_path.rglob("*.nbc")} == set(NAMES)


def test_kernels_of_a_device_are_compiled_after_those_of_the_processor(stored):
    stored += SMALL[:1]
    modules, told = [], []

    def compile_module(code, options):
        modules.append((code, options))
        return SimpleNamespace(get_function=lambda name: name)

    cupy = fake_cupy()
    cupy.RawModule, cupy.cuda.Stream = compile_module, lambda non_blocking: mock.MagicMock()
    cupy.cuda.memory = SimpleNamespace(OutOfMemoryError=MemoryError)
    with installed_cupy(cupy), pytest.raises(FileError, match="cannot be stored"):
        warm_up(1, lambda *progress: told.append(progress), device="cuda")
    assert not modules
    assert told == [(SMALL[1].kernel, 1, 1 + len(common_variants()))]
    stored += SMALL[1:]
    told.clear()
    with installed_cupy(cupy):
        warm_up(1, lambda *progress: told.append(progress), device="auto")
        assert find_device().name == "NVIDIA H200"
    assert [(n, n_all) for _, n, n_all in told] == [(n, len(modules)) for n in range(1, len(modules) + 1)]
    assert len(set(modules)) == len(modules) == len(common_variants()) > 100
    for (code, options), (name, _, _), variant in zip(modules, told, common_variants(), strict=True):
        assert re.findall(r'extern "C" __global__ void (?:LIMITS )?(\w+)', code) == [name] == [variant.kernel]
        macros = dict(option.removeprefix("-D").split("=") for option in options[1:])
        assert macros == {name: str(value) for name, value in variant.macros}
    with installed_cupy(None), pytest.raises(InputError, match='device="cuda" is not available: CuPy is not installed'):
        warm_up(device="cuda")


@pytest.mark.parametrize("kinds", [["search"], ["search, xor"], ["paper", "k-prox, or"], []])
def test_only_the_kernels_of_some_kinds_are_compiled(stored, monkeypatch, kinds):
    monkeypatch.setattr(warmup, "all_variants", all_variants)
    monkeypatch.setattr(warmup, "is_stored", lambda variant: False)
    told = []
    with pytest.raises(FileError) if kinds else nullcontext():
        warm_up(1, lambda *progress: told.append(progress[0]), kinds)
    wanted = [v for v in all_variants() if any(job.startswith(kind) for job in v.jobs for kind in kinds)]
    assert told == [variant.kernel for variant in wanted]
    assert bool(wanted) == bool(kinds)


BROKEN = mock.Mock(side_effect=OSError("Resource temporarily unavailable"))


@pytest.mark.parametrize(
    ("patch", "how", "error", "message"),
    [
        ((QuickHelper, "n_compiled", 1), {}, InputError, "a process that compiled kernels ended early.*pass n_jobs=1"),
        ((warmup, "Helper", BROKEN), {}, InputError, r"cannot be started \(Resource temporarily unavailable\)"),
        ((warmup.column_weights, "_cache", NoKernelCache()), {}, FileError, "is writable; set .*NUMBA_CACHE_DIR"),
        (None, {"kinds": ["serch"]}, InputError, "kinds has 'serch', which is not a kind of fit; there are .*'search'"),
    ],
)
def test_what_cannot_be_compiled_is_an_error(stored, monkeypatch, patch, how, error, message):
    if patch is not None:
        monkeypatch.setattr(*patch)
    with pytest.raises(error, match=message):
        warm_up(1, **how)
