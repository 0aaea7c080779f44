"""Kernels are compiled ahead by other processes, which saves time and changes nothing else."""

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from unittest import mock

import pytest

from bitatoms.kernels import ahead as ahead_module
from bitatoms.kernels.ahead import Ahead, CompiledElsewhere, Helper, divided
from bitatoms.kernels.signatures import Variant, all_variants, encoded
from bitatoms.search.plan import MdlTuning
from support.plans import use_small_budget

SMALL = [variant for variant in all_variants() if variant.kernel in ("packing.row_weights", "words.hamming")]


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


@pytest.mark.parametrize("n_processes", [1, 3, 200])
def test_every_kernel_is_compiled_by_one_process_with_all_its_variants(n_processes):
    variants = all_variants()
    shares = divided(variants, n_processes)
    assert sorted(variant for share in shares for variant in share) == sorted(variants)
    kernels = [{variant.kernel for variant in share} for share in shares]
    assert sum(map(len, kernels)) == len(set().union(*kernels))
    assert all(share == sorted(share, key=variants.index) for share in shares)
    loads = [sum(variant.seconds for variant in share) for share in shares]
    largest = max(sum(v.seconds for v in variants if v.kernel == name) for name in set().union(*kernels))
    assert max(loads) <= max(largest, 1.2 * sum(loads) / n_processes)


def variants_of(*seconds):
    """Return variants of different kernels that take these seconds."""
    return [Variant(f"module.kernel{number}", "[]", each, ("job",)) for number, each in enumerate(seconds)]


@pytest.mark.parametrize(
    ("seconds", "n_processes", "expected"),
    [
        ((4, 4, 2), 2, [[1, 2]]),
        ((1,) * 14, 2, [[8, 9, 10, 11, 12, 13]]),
        ((6, 9, 5, 2), 3, [[1], [2, 3]]),
        ((1, 1), 2, []),  # not worth a process
        ((9, 9), 1, []),
    ],
)
def test_the_process_that_needs_kernels_compiles_the_first_ones(seconds, n_processes, expected):
    variants = variants_of(*seconds)
    shares = ahead_module._after_first(variants, n_processes)
    assert sorted([variants.index(variant) for variant in share] for share in shares) == expected


class FakeHelper:
    """Stands for a process that compiles until it is told that it is done."""

    def __init__(self, variants, done, ended):
        self.keys, self.is_busy, self.ended = {variant[:2] for variant in variants}, True, ended
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

    variants = (*variants_of(4, 4, 4), Variant("module.other", "[]", 9.0, ("other job",)))
    monkeypatch.setattr(ahead_module, "Helper", start)
    monkeypatch.setattr(ahead_module, "all_variants", lambda: variants)
    monkeypatch.setattr(ahead_module, "is_stored", lambda variant: False)
    return helpers


def test_processes_are_started_once_for_each_job_by_one_process_at_a_time(started, tmp_path):
    folder, (first, second, third) = str(tmp_path), (Ahead() for _ in range(3))
    for ahead in (first, second, third):
        ahead.expect(["job"], 2)
    assert first.missing("module.kernel0", (), folder, print) == 3
    assert [helper.keys for helper in started] == [{("module.kernel2", "[]")}]
    assert first.missing("module.kernel1", (), folder, print) is None
    with pytest.raises(CompiledElsewhere) as elsewhere:
        first.missing("module.kernel2", (), folder, print)
    assert elsewhere.value.helper is started[0]
    assert second.missing("module.kernel0", (), folder, print) is None  # another process has them compiled
    started[0].end()
    assert first.missing("module.kernel2", (), folder, print) is None  # it was not stored: compile it here
    first.expect(["job"], 2)
    first.missing("module.kernel2", (), folder, print)
    assert len(started) == 1  # once for each job
    assert third.missing("module.kernel0", (), folder, print) == 3
    third.forget()  # a forked child does not wait for processes of its parent
    assert third.missing("module.kernel2", (), folder, print) is None
    started[1].end()


def test_no_process_is_started_without_need_or_if_it_cannot_be(started, tmp_path, monkeypatch, caplog):
    caplog.set_level("INFO", "bitatoms")
    with mock.patch.object(ahead_module, "Helper", side_effect=OSError("Resource temporarily unavailable")):
        ahead = Ahead()
        ahead.expect(["job"], 2)
        assert ahead.missing("module.kernel2", (), str(tmp_path), print) is None
    assert caplog.messages == ["kernels are compiled by one process: Resource temporarily unavailable"]
    ahead = Ahead()
    assert ahead.missing("module.kernel0", (), str(tmp_path), print) is None  # nothing is expected
    ahead.expect(["job"], 1)
    assert ahead.missing("module.kernel0", (), str(tmp_path), print) is None  # one processor
    ahead.expect(["other job"], 2)
    assert ahead.missing("module.kernel0", (), str(tmp_path), print) is None  # a kernel of another job
    assert ahead.missing("module.other", (), str(tmp_path), print) == 1  # which still begins later
    ahead = Ahead()
    monkeypatch.setattr(ahead_module.multiprocessing, "parent_process", lambda: "a process of joblib or Dask")
    ahead.expect(["job"], 2)
    assert ahead.missing("module.kernel0", (), str(tmp_path), print) is None
    assert started == []


FIRST_CALLS = """
    import sys
    import numpy as np
    from bitatoms.kernels import ahead as module
    from bitatoms.kernels.cpu.packing import row_weights
    from bitatoms.kernels.cpu.words import hamming
    from bitatoms.kernels.signatures import Variant, encoded
    from numba import typeof

    words, counts = np.full((3, 2), 7, np.uint64), np.empty(3, np.int64)
    calls = {row_weights: (words, counts), hamming: (words, words[:0], words[:1], words[:0], counts)}
    module._MIN_SECONDS, module._START_SECONDS = 0.1, 0.0
    names = {row_weights: "packing.row_weights", hamming: "words.hamming"}
    signatures = {kernel: encoded(map(typeof, given)) for kernel, given in calls.items()}
    module.all_variants = lambda: [Variant(names[each], signatures[each], 1.0, ("job",)) for each in calls]
    module.ahead.expect(["job"], 2)
    for kernel, given in calls.items():
        kernel(*given)
        if "stop" in sys.argv:
            module.ahead._helpers[0].stop()
        hits = sum(kernel.stats.cache_hits.values())
        print(kernel.__name__, "loaded" if hits else "compiled", counts.tolist())
"""


def run(code, cache, *arguments):
    """Run code in a process with its own cache of kernels; return what it prints."""
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


@pytest.mark.parametrize(
    ("argument", "second"), [("", "loaded"), pytest.param("stop", "compiled", marks=pytest.mark.slow)]
)
def test_a_kernel_that_another_process_compiles_is_loaded(tmp_path, argument, second):
    """If that process is stopped, the kernel is compiled here. A second process finds both in the cache."""
    first = ["row_weights compiled [6, 6, 6]", f"hamming {second} [0, 0, 0]"]
    assert run(FIRST_CALLS, tmp_path, argument).splitlines() == first
    if not argument:
        again = [line.replace("compiled", "loaded") for line in first]
        assert run(FIRST_CALLS, tmp_path, argument).splitlines() == again


@pytest.mark.parametrize("start", [None, "print('not JSON')", "raise SystemExit", "input()"])
def test_a_process_stores_kernels_or_is_not_waited_for(tmp_path, monkeypatch, start):
    """Whatever it does instead: write something else, end, or never end."""
    monkeypatch.setattr(ahead_module.numba.config, "CACHE_DIR", str(tmp_path))
    if start is not None:
        popen = ahead_module.subprocess.Popen
        change = lambda command, **how: popen([*command[:2], start], **how)  # noqa: E731
        monkeypatch.setattr(ahead_module.subprocess, "Popen", change)
        monkeypatch.setattr(ahead_module, "_MAX_WAIT", 60.0 if start != "input()" else 0.0)
    ended, compiled, key = threading.Event(), [], SMALL[0][:2]
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
