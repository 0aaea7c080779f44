"""Fixtures of the tests of searches."""

import pytest

from support.plans import use_small_budget


@pytest.fixture(scope="module")
def few_trials():
    """Search with few trials, but with each kind of start and of step."""
    with pytest.MonkeyPatch.context() as patch:
        use_small_budget(patch)
        yield


@pytest.fixture
def few_trials_here(monkeypatch):
    """Search with few trials in one test, but not in the others of its module."""
    use_small_budget(monkeypatch)
