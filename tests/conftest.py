"""Fixtures of all tests, and how they are distributed among processes."""

import gc
from pathlib import Path

import pytest

from bitatoms.parallel import count_threads
from support.plans import use_one_start, use_small_cover_plan

# Modules that take longest, or wait for other processes. They are run first, so that no process is left with one.
LONG = ("test_readme.py", "test_sources.py", "test_dask.py", "test_stream.py", "test_faults.py", "test_interrupt.py")


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
    """Run long modules first, in the order above; with xdist, this needs ``--no-loadscope-reorder``."""
    items.sort(key=lambda item: LONG.index(name) if (name := Path(item.path).name) in LONG else len(LONG))


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
