"""The anytime search: it keeps the best state, ends at its limit or when nothing is gained, and repeats itself."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from bitatoms import BinaryDictionaryLearning, factorize
from bitatoms.datasets import planted
from bitatoms.search.plan import PLANS, AnytimeTuning
from support.parameters import resolved
from support.plans import use_budget
from support.results import assert_matches_oracle
from support.strategies import random_bits

TUNING = AnytimeTuning(champions=3, max_failed_states=1, max_failed_epochs=2)
GIVEN = random_bits(1, 4, 24, 0.4), random_bits(2, 70, 4, 0.3)
GOALS = pytest.mark.parametrize(
    "how",
    [
        *[{"n_components": 5, "algebra": "or"}, {}, {"n_components": 4, "objective": "codelength"}],
        *[{"n_components": 4, "algebra": "or", "init": GIVEN}, {"algebra": "or", "init": GIVEN}],
    ],
    ids=["5 or", "mdl", "4 codelength", "4 or, given", "mdl, given"],
)


@pytest.fixture
def short_epochs(monkeypatch):
    """Let epochs and the search end soon."""
    use_budget(monkeypatch, max_trials=60, nmf_starts=1, max_failures=4)
    monkeypatch.setitem(PLANS, "anytime", replace(PLANS["anytime"], anytime=TUNING))


@pytest.fixture(scope="module")
def noisy():
    return planted(70, 24, 4, algebra="or", noise=0.08, random_state=1).X


def test_a_minute_unless_time_or_rounds_are_limited():
    anytime, default = {"search": "anytime"}, 1000
    assert resolved(**anytime).max_time == 60
    assert resolved(**anytime).plan.max_rounds > 10**9
    assert resolved(**anytime, max_time=5).max_time == 5
    assert resolved(**anytime, max_time=5).plan.max_rounds > 10**9
    limited = resolved(**anytime, max_iter=7)
    assert (limited.max_time, limited.plan.max_rounds) == (None, 7)
    assert resolved().max_time is None
    assert resolved().plan.max_rounds == default


def test_each_epoch_begins_with_fewer_starts_than_a_thorough_search():
    plan = resolved(search="anytime").plan
    assert (plan.starts, plan.from_look, plan.finalists) == ((32, 512, 0), False, 1)


@pytest.mark.parametrize("how", [{"n_components": 5, "algebra": "or"}, {}])
def test_reaching_its_limit_of_rounds_is_no_reason_to_warn(noisy, how):
    how = {"algebra": "xor", **how, "search": "anytime", "max_iter": 12, "random_state": 3}
    result = factorize(noisy, **how)
    assert result.ended == "max_iter"
    assert_matches_oracle(result, noisy)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = BinaryDictionaryLearning(**how).fit(noisy)
    np.testing.assert_array_equal(model.components_, result.atoms.to_dense())


@GOALS
@pytest.mark.usefixtures("short_epochs")
def test_it_ends_by_itself_and_returns_the_best_state_of_its_history(noisy, how):
    """Also from a start that is given."""
    result = factorize(noisy, search="anytime", random_state=0, **how)
    assert result.ended == "converged"
    assert "init" not in how or next(row.atoms for row in result.history if row.move == "start") == 4
    assert_matches_oracle(result, noisy)
    by_errors = result.objective == "errors"
    costs = [row.wrong_bits if by_errors else row.bits for row in result.history if row.atoms == len(result.atoms)]
    assert min(costs) == (result.wrong_bits if by_errors else result.codelength.total)
    assert len(result.atoms) == how.get("n_components", len(result.atoms))
    moves = {row.move for row in result.history}
    assert moves >= ({"start"} if by_errors else {"perturb", "no model"})


@pytest.mark.usefixtures("short_epochs")
@pytest.mark.parametrize("how", [{"n_components": 6}, {}])
def test_large_tables_are_searched_by_sample(monkeypatch, how):
    use_budget(monkeypatch, sample_rows=60)
    X = planted(160, 30, 5, algebra="or", noise=0.05, random_state=1).X
    sampled = factorize(X, search="anytime", algebra="or", search_rows=None if how else 90, random_state=0, **how)
    assert sampled.ended == "converged"
    assert_matches_oracle(sampled, X)
