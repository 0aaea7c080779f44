"""Searches with costs of missed and added ones: what is forbidden never happens, wherever rows are."""

import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import bitatoms as ba
from bitatoms.engine.block import Change
from bitatoms.engine.objective import Objective
from bitatoms.engine.prices import ErrorCosts
from bitatoms.errors import InputError
from bitatoms.search.exact_cover import remove_forbidden
from support.contexts import search_context
from support.strategies import random_bits

pytestmark = pytest.mark.usefixtures("few_trials")
factorize = partial(ba.factorize, algebra="or")
Learning = partial(ba.BinaryDictionaryLearning, algebra="or")
COST = st.sampled_from([1.0, 3.0, 1e300, math.inf])


def noisy(seed=0, n=120, m=40, noise=0.04):
    return ba.datasets.planted(n, m, 5, algebra="or", code_density=0.3, noise=noise, random_state=seed).X


def errors_of(X, result):
    """Return the numbers of missed and of added ones."""
    known, made = X <= 1, result.reconstruct().to_dense()
    return int(((X == 1) & (made == 0)).sum()), int(((X == 0) & (made == 1) & known).sum())


@settings(max_examples=5)
@given(st.integers(0, 50), COST, COST, st.booleans(), st.booleans())
@example(22, math.inf, math.inf, True, False)  # where added ones would be traded for missed ones
@example(25, math.inf, math.inf, True, False)
def test_infinite_costs_are_never_violated(seed, missed_cost, added_cost, has_unknown, per_column):
    X = noisy(seed, n=40, m=24)
    if has_unknown:
        X[random_bits(seed, 40, 24, 0.1) == 1] = 2
    costs = [np.full(24, missed_cost), np.full(24, added_cost)]
    if per_column:
        for each in costs:
            each[::2] = 1.0
    result = factorize(
        np.where(X == 2, np.nan, X), false_negative_cost=costs[0], false_positive_cost=costs[1], random_state=seed
    )
    made = result.reconstruct().to_dense()
    assert not ((X == 1) & (made == 0))[:, np.isinf(costs[0])].any()
    assert not ((X == 0) & (made == 1))[:, np.isinf(costs[1])].any()


def test_costs_may_be_given_by_name():
    X = ba.Table.from_any(pd.DataFrame(noisy(m=5), columns=list("abcde")))
    by_name = factorize(X, false_positive_cost={"b": math.inf, "d": 4}, random_state=0)
    by_column = factorize(X, false_positive_cost=[1, math.inf, 1, 4, 1], random_state=0)
    plain, of_1 = factorize(X, random_state=0), factorize(X, false_negative_cost=1, random_state=0)
    assert (plain.atoms, plain.codes) == (of_1.atoms, of_1.codes)
    assert (by_name.atoms, by_name.codes) == (by_column.atoms, by_column.codes)
    assert by_name.costs.added.tolist() == [1, math.inf, 1, 4, 1]


def test_streams_and_loaded_models_code_from_below(tmp_path):
    X = noisy(6, n=300, m=40)
    model = Learning(false_positive_cost=math.inf, random_state=0)
    for batch in np.array_split(X, 3):
        model.partial_fit(batch)
    assert len(model.components_)
    codes = model.transform(X)
    assert not (model.inverse_transform(codes) & ~X.astype(bool)).any()
    model.save(tmp_path / "model.npz")
    loaded = ba.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(loaded.transform(X), codes)
    assert np.isinf(loaded.as_model().costs.added).all()
    assert (loaded.false_negative_cost, loaded.false_positive_cost) == (1, math.inf)
    assert not loaded.as_model().has_bias


@pytest.mark.parametrize(("n_forbidden", "n_covers"), [(3, 0), (20, 1)])
def test_the_whole_table_is_covered_only_if_no_one_may_be_missed_or_added(n_forbidden, n_covers):
    """The state found has no errors."""
    X = np.kron(np.eye(4, dtype=np.uint8), np.ones((5, 5), np.uint8))
    costs = ErrorCosts(np.full(20, math.inf), np.where(np.arange(20) < n_forbidden, math.inf, 2.0))
    context = search_context(X, Objective(True, "or", costs=costs))
    context.monitor.record(context.block(*map(ba.BitMatrix.from_dense, (X[::5], X[:, ::5]))), Change(), 0, "start")
    remove_forbidden(context)
    assert [row.move for row in context.monitor.history] == ["start", *["cover"] * n_covers]


def test_a_wide_table_is_searched_with_costs_by_windows():
    X = ba.datasets.planted(
        80, 2300, 6, algebra="or", atom_density=0.02, code_density=0.5, noise=0.01, random_state=0
    ).X
    costs = np.ones(2300)
    costs[::3] = math.inf
    result = factorize(X, false_positive_cost=costs, random_state=0)
    made = result.reconstruct().to_dense()
    assert len(result.atoms)
    assert not ((X == 0) & (made == 1))[:, ::3].any()
    with pytest.raises(InputError, match="windows of its columns"):
        factorize(X, false_negative_cost=math.inf, random_state=0)
    with pytest.raises(InputError, match="a sample of 20 of its rows"):
        factorize(X[:, :20], false_negative_cost=math.inf, search_rows=20, random_state=0)


def test_a_stream_cannot_promise_to_miss_no_one():
    with pytest.raises(InputError, match="all rows at once"):
        Learning(false_negative_cost=math.inf).partial_fit(noisy())
