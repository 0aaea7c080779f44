"""Fixtures of all tests."""

import pytest

from support.plans import use_budget, use_few_starts


@pytest.fixture(scope="module")
def few_trials():
    """Search with few trials and starts, in tests that do not need more."""
    with pytest.MonkeyPatch.context() as patch:
        use_budget(patch, max_trials=8, nmf_starts=2)
        use_few_starts(patch)
        yield
