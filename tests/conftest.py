"""Fixtures of all tests."""

from pathlib import Path

import pytest

from support.plans import use_budget, use_few_starts

# Modules that take longest, or wait for other processes. They are run first, so that no worker is left with one.
LONG = ("test_readme.py", "test_sources.py", "test_dask.py", "test_stream.py", "test_faults.py", "test_interrupt.py")


def pytest_collection_modifyitems(items):
    """Run long modules first, in the order above."""
    items.sort(key=lambda item: LONG.index(name) if (name := Path(item.path).name) in LONG else len(LONG))


@pytest.fixture(scope="module")
def few_trials():
    """Search with few trials and starts, in tests that do not need more."""
    with pytest.MonkeyPatch.context() as patch:
        use_budget(patch, max_trials=8, nmf_starts=2)
        use_few_starts(patch)
        yield
