"""Tables that the tests of searches share, and the budget of their searches."""

import pytest

from bitatoms.datasets import planted
from support.plans import use_small_budget


@pytest.fixture(scope="session")
def small_budget():
    """With few trials, but each kind of start and of step."""
    return use_small_budget


@pytest.fixture(scope="module")
def table():
    """Six atoms in noise: every move has something to do."""
    return planted(200, 45, 6, noise=0.05, code_density=0.4, random_state=1).X


@pytest.fixture(scope="module")
def small():
    return planted(150, 40, 6, noise=0.05, code_density=0.4, random_state=1).X
