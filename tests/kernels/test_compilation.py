"""Kernels are compiled ahead of a fit, or by `warm_up`, in other processes: it saves time and changes nothing else."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

from bitatoms import FileError, InputError, warmup
from bitatoms.kernels import compilation, jit
from bitatoms.kernels.compilation import ListedKernel, divided, example, listed_kernels, prepare
from bitatoms.kernels.gpu.device import find_device
from bitatoms.kernels.gpu.variants import common_variants
from bitatoms.search.plan import MdlTuning
from bitatoms.warmup import warm_up
from support.devices import fake_cupy, installed_cupy
from support.plans import use_small_budget

NAMES = ["packing.row_weights", "words.choose_far_row"]
SMALL = tuple(kernel for kernel in listed_kernels() if kernel.name in NAMES)


@pytest.fixture
def recording(monkeypatch):
    """Return the script that records the list."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "packaging"))
    import record_kernels

    return record_kernels


@pytest.mark.slow
def test_the_list_has_the_kernels_of_all_jobs_and_no_others(recording, monkeypatch):
    """If this fails: ``make kernels``."""
    enough = MdlTuning()  # with fewer rounds or starts, some kernels are not called
    use_small_budget(
        monkeypatch, cycle_rounds=enough.cycle_rounds, close=enough.close, ordinary_close=enough.ordinary_close
    )
    recorder = recording.Recorder()
    recorder.run()
    assert recorder.jobs == {kernel.name: list(kernel.jobs) for kernel in listed_kernels()}
    # Each kernel has one type of arguments: processes that compile two at once might mix them up in numba's cache.
    assert recorder.arguments == {kernel.name: [list(kernel.arguments)] for kernel in listed_kernels()}


def test_arguments_are_described_without_loss(recording):
    for kernel in listed_kernels():
        described = [recording.described(example(argument)) for argument in kernel.arguments]
        assert described == list(kernel.arguments), kernel.name
    assert example("none") is None
    assert isinstance(example("float32"), np.float32)
    assert not example("uint64 2 const").flags.writeable


def test_kernels_of_a_module_are_compiled_by_one_process():
    kernels = [
        ListedKernel(name, (), seconds, ()) for name, seconds in (("a.1", 4), ("b.2", 5), ("a.3", 2), ("c.4", 3))
    ]
    assert [[kernel.name for kernel in share] for share in divided(kernels, 2)] == [["a.1", "a.3"], ["b.2", "c.4"]]
    assert [len(share) for share in divided(kernels, 9)] == [2, 1, 1]
    assert divided([], 2) == []


def test_kernels_that_code_rows_are_compiled_by_one_process():
    shares = divided(compilation.kernels_of(["search, or"]), 2)
    coders = [{kernel.name.partition(".")[0] for kernel in share} >= {"coding", "removal"} for share in shares]
    assert sorted(coders) == [False, True]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Cache kernels in an empty folder, of which two are listed for a search."""
    path = tmp_path / f"bitatoms-{jit._sources()}"
    path.mkdir()
    for module in (compilation, jit, warmup):
        monkeypatch.setattr(module, "CACHE_FOLDER", path)
    monkeypatch.setattr(compilation.numba.config, "CACHE_DIR", str(tmp_path))
    for module in (compilation, warmup):
        monkeypatch.setattr(module, "kernels_of", lambda jobs: list(SMALL) if "search, xor" in jobs else [])
    return path


def test_missing_kernels_are_compiled_in_processes_and_used(folder, caplog):
    caplog.set_level("INFO", "bitatoms")
    prepare(["another"], 2)
    assert not list(folder.iterdir())
    prepare(["search, xor"], 2)
    assert {path.name for path in folder.glob("*.compiled")} == {f"{name}.compiled" for name in NAMES}
    assert {path.name.rpartition("-")[0] for path in folder.rglob("*.nbc")} == set(NAMES)
    assert caplog.messages[0].startswith("compiling kernels (first run only): 0 of 2; a first fit takes")
    with mock.patch.object(compilation, "_start", side_effect=AssertionError):
        prepare(["search, xor"], 2)
    code = (
        "import logging; logging.basicConfig(level='INFO'); import numpy as np;"
        "from bitatoms.kernels.cpu.packing import row_weights;"
        "words, out = np.full((2, 1), 7, np.uint64), np.empty(2, np.int64); words.flags.writeable = False;"
        "row_weights(words, out); print(out)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (found.stdout, found.stderr) == ("[3 3]\n", "")  # loaded, not compiled


def test_one_process_at_a_time_compiles_for_a_folder(folder):
    """Two at once: both end with all kernels, compiled once."""
    code = (
        f"from bitatoms.kernels import compilation as c; small = [k for k in c.listed_kernels() if k.name in {NAMES}];"
    )
    code += " c.compile_in_processes(small, 1, lambda *_: None); print(all(k.is_compiled for k in small))"
    env = {**os.environ, "NUMBA_CACHE_DIR": str(folder.parent)}
    both = [subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True) for _ in "ab"]
    assert [process.communicate()[0] for process in both] == ["True\n", "True\n"]
    assert len(list(folder.rglob("*.nbc"))) == 2


def ending(code):
    """Return what starts a process that runs this code instead of compiling kernels."""
    return lambda kernels: subprocess.Popen([sys.executable, "-c", code])


@pytest.mark.parametrize("code", ["", "raise SystemExit(1)", "import os; os.abort()"])
def test_a_process_that_ends_early_is_not_waited_for(folder, monkeypatch, code):
    monkeypatch.setattr(compilation, "_start", ending(code))
    prepare(["search, xor"], 2)
    assert not list(folder.glob("*.compiled"))
    with pytest.raises(InputError, match=r"ended early.*[Pp]ass n_jobs=1"):
        warm_up(1, kinds=["search, xor"])


def test_processes_are_killed_on_an_interrupt(folder, monkeypatch):
    processes = []

    def start(kernels):
        processes.append(ending("import time; time.sleep(600)")(kernels))
        return processes[-1]

    monkeypatch.setattr(compilation, "_start", start)
    monkeypatch.setattr(compilation.time, "sleep", mock.Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        prepare(["search, xor"], 2)
    assert processes
    assert all(process.returncode is not None for process in processes)


@pytest.mark.parametrize("how", ["", None, "/opt/host/application", "frozen", "no cache", "no processes"])
def test_where_no_process_can_be_started_kernels_are_compiled_when_called(folder, monkeypatch, how, caplog):
    start = mock.Mock(side_effect=OSError("Resource temporarily unavailable"))
    monkeypatch.setattr(compilation, "_start", start)
    if how == "frozen":
        monkeypatch.setattr(sys, "frozen", True, raising=False)
    elif how == "no cache":
        for module in (compilation, warmup):
            monkeypatch.setattr(module, "CACHE_FOLDER", None)
    elif how != "no processes":
        monkeypatch.setattr(sys, "executable", how)
    prepare(["search, xor"], 2)
    assert start.called == (how == "no processes")
    error = FileError if how == "no cache" else InputError
    with pytest.raises(error, match="is writable; set .*NUMBA_CACHE_DIR" if how == "no cache" else "cannot be started"):
        warm_up(1, kinds=["search, xor"])


# --- warm_up


def test_the_kernels_of_some_kinds_are_compiled(folder, monkeypatch):
    told = []
    assert warm_up(2, lambda *progress: told.append(progress), ["search, xor"]) == folder
    assert sorted(name for name, _, _ in told) == NAMES
    assert [progress[1:] for progress in told] == [(1, 2), (2, 2)]
    assert warmup.count_stored() == (2, len(listed_kernels()), folder)
    with pytest.raises(InputError, match=r"kinds has 'serch', which is not a kind of fit; there are .*'search, xor'"):
        warm_up(1, kinds=["serch"])


def test_kernels_of_a_device_are_compiled_after_those_of_the_processor(folder, monkeypatch):
    modules, told = [], []

    def compile_module(code, options):
        modules.append((code, options))
        return SimpleNamespace(get_function=lambda name: name)

    cupy = fake_cupy()
    cupy.RawModule, cupy.cuda.Stream = compile_module, lambda non_blocking: mock.MagicMock()
    cupy.cuda.memory = SimpleNamespace(OutOfMemoryError=MemoryError)
    with monkeypatch.context() as patched:
        patched.setattr(compilation, "_start", ending(""))
        with installed_cupy(cupy), pytest.raises(InputError, match="ended early"):
            warm_up(1, kinds=["search, xor"], device="cuda")
    assert not modules
    for kernel in SMALL:
        (folder / f"{kernel.name}.compiled").touch()
    with installed_cupy(cupy):
        warm_up(1, lambda *progress: told.append(progress), ["search, xor"], device="auto")
        assert find_device().name == "NVIDIA H200"
    assert [(n, n_all) for _, n, n_all in told] == [(n, len(modules)) for n in range(1, len(modules) + 1)]
    assert len(set(modules)) == len(modules) == len(common_variants()) > 100
    for (code, options), (name, _, _), variant in zip(modules, told, common_variants(), strict=True):
        assert re.findall(r'extern "C" __global__ void (?:LIMITS )?(\w+)', code) == [name] == [variant.kernel]
        macros = dict(option.removeprefix("-D").split("=") for option in options[1:])
        assert macros == {name: str(value) for name, value in variant.macros}
    with installed_cupy(None), pytest.raises(InputError, match='device="cuda" is not available: CuPy is not installed'):
        warm_up(device="cuda")
