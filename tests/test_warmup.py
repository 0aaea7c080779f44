"""Kernels are compiled ahead of their first use."""

import re
from contextlib import nullcontext
from types import SimpleNamespace
from unittest import mock

import numba
import pytest

from bitatoms import FileError, InputError, warmup
from bitatoms.kernels.gpu.device import find_device
from bitatoms.kernels.gpu.variants import common_variants
from bitatoms.kernels.jit import NoKernelCache
from bitatoms.kernels.signatures import all_variants
from bitatoms.warmup import warm_up
from support.devices import fake_cupy, installed_cupy

NAMES = ["packing.row_weights", "words.hamming"]
SMALL = [variant for variant in all_variants() if variant.kernel in NAMES]


class FakeHelper:
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
    monkeypatch.setattr(FakeHelper, "n_compiled", 99)
    monkeypatch.setattr(warmup, "Helper", FakeHelper)
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


def test_kernels_in_the_cache_are_not_compiled_again(stored):
    stored += SMALL
    told = []
    warm_up(2, lambda *progress: told.append(progress))
    assert told == []


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


class BrokenHelper:
    """Stands for a process that cannot be started."""

    def __init__(self, *_):
        raise OSError("Resource temporarily unavailable")


@pytest.mark.parametrize(
    ("patch", "how", "error", "message"),
    [
        ((FakeHelper, "n_compiled", 1), {}, InputError, "a process that compiled kernels ended early.*pass n_jobs=1"),
        ((warmup, "Helper", BrokenHelper), {}, InputError, r"cannot be started \(Resource temporarily unavailable\)"),
        ((warmup.column_weights, "_cache", NoKernelCache()), {}, FileError, "is writable; set .*NUMBA_CACHE_DIR"),
        (None, {"kinds": ["serch"]}, InputError, "kinds has 'serch', which is not a kind of fit; there are .*'search'"),
    ],
)
def test_what_cannot_be_compiled_is_an_error(stored, monkeypatch, patch, how, error, message):
    if patch is not None:
        monkeypatch.setattr(*patch)
    with pytest.raises(error, match=message):
        warm_up(1, **how)
