"""Fixtures of all tests, how they are ordered and distributed among processes, and what Hypothesis draws.

``TEST_ORDER=7`` runs modules, and the tests of each, in a random order (seed 7); ``TEST_ORDER=given`` runs them as they
are named. ``HYPOTHESIS_PROFILE=random`` draws other examples in each run, and ``HYPOTHESIS_EXAMPLES=1000`` draws more.
"""

import gc
import os
import random
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from bitatoms.parallel import count_threads
from support.plans import use_one_start, use_small_cover_plan

# Modules that take longest, or wait for other processes. They are run first, so that no process is left with one.
LONG = (
    "test_readme.py",
    "test_sources.py",
    "test_dask.py",
    "test_stream.py",
    "test_cut_anywhere.py",
    "test_interrupt.py",
)


# No deadline: the first call of a kernel compiles it. No database: a run does not depend on earlier ones.
EXAMPLES = {"deadline": None, "database": None, "max_examples": int(os.environ.get("HYPOTHESIS_EXAMPLES", "15"))}
settings.register_profile("same", derandomize=True, **EXAMPLES)
settings.register_profile("random", derandomize=False, **EXAMPLES)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Return the number of processes for ``-n auto``: one per processor, because each collects all tests."""
    return count_threads(-1)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect without looking for garbage, and never look through what was collected: both take seconds.

    The collector stays enabled: Dask, if it is imported while it is not, leaves it disabled after each call.
    """
    thresholds = gc.get_threshold()
    gc.set_threshold(0)
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(*thresholds)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Look for tests, but not for examples in docstrings, which only the package has."""
    return [collector for collector in (yield) if type(collector) is pytest.Module]


def pytest_collection_modifyitems(items):
    """Order the tests: long modules first, or at random. With xdist, this needs ``--no-loadscope-reorder``."""
    order = os.environ.get("TEST_ORDER")
    if order is None:
        items.sort(key=lambda item: LONG.index(name) if (name := Path(item.path).name) in LONG else len(LONG))
    elif order != "given":
        items.sort(key=lambda item: random.Random(f"{order} {item.nodeid}").random())
        items.sort(key=lambda item: random.Random(f"{order} {item.path}").random())


@pytest.fixture(autouse=True, scope="session")
def own_temporary_folder(tmp_path_factory):
    """Give each process of the tests and its children a folder for temporary files; nothing may be left in it."""
    tmp_path_factory.getbasetemp()  # before the folder changes
    with pytest.MonkeyPatch.context() as patch:
        # Not below pytest's own folder: paths of sockets are at most 104 characters long on macOS.
        folder = tempfile.mkdtemp(prefix="t")
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", folder)
        yield
    # openpyxl keeps the file of a sheet that could not be written, and scikit-learn its memory maps, until the end.
    left = sorted(name for name in os.listdir(folder) if not name.startswith(("openpyxl.", "sklearn_testing_")))
    shutil.rmtree(folder, ignore_errors=True)
    assert not left, f"the tests left files in the folder for temporary files: {left}"


@pytest.fixture(scope="session")
def small_budget():
    """How little `few_trials` searches: from one start, with few trials. Tests of searches have another one."""
    return use_one_start


@pytest.fixture(scope="module")
def few_trials(small_budget):
    """Search with a small budget, in tests that do not need more."""
    with pytest.MonkeyPatch.context() as patch:
        small_budget(patch)
        yield


@pytest.fixture
def few_trials_here(small_budget, monkeypatch):
    """Search with a small budget in one test, but not in the others of its module."""
    small_budget(monkeypatch)


@pytest.fixture(scope="module")
def few_exchanges():
    """Exchange few roles of covers, in tests that do not need more."""
    with pytest.MonkeyPatch.context() as patch:
        use_small_cover_plan(patch)
        yield
