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
from bitatoms.search.finish import remove_forbidden
from support.contexts import search_context
from support.strategies import random_bits

pytestmark = pytest.mark.usefixtures("few_trials")
factorize = partial(ba.factorize, algebra="or")
Learning = partial(ba.BinaryDictionaryLearning, algebra="or")


def noisy(seed=0, n=120, m=40, noise=0.04):
    return ba.datasets.planted(n, m, 5, algebra="or", code_density=0.3, noise=noise, random_state=seed).X


@settings(max_examples=5)
@given(st.integers(0, 50), st.sampled_from([1.0, 3.0, 1e300]), st.booleans(), st.booleans())
@example(22, 1e300, True, False)  # where added ones would be traded for missed ones
@example(25, 1e300, True, False)
def test_a_forbidden_one_is_never_added(seed, missed_cost, has_unknown, per_column):
    X = noisy(seed, n=40, m=24)
    if has_unknown:
        X[random_bits(seed, 40, 24, 0.1) == 1] = 2
    costs = np.full(24, math.inf)
    if per_column:
        costs[::2] = 1.0
    table = np.where(X == 2, np.nan, X)
    result = factorize(table, false_negative_cost=missed_cost, false_positive_cost=costs, random_state=seed)
    assert not ((X == 0) & (result.reconstruct().to_dense() == 1))[:, np.isinf(costs)].any()


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


@pytest.mark.parametrize(("forbidden", "users"), [([0], [4, 5, 5, 5]), ([1], [5, 5, 5, 5]), ([0, 7], [4, 4, 5, 5])])
def test_only_uses_that_add_a_forbidden_one_are_removed(forbidden, users):
    X = np.kron(np.eye(4, dtype=np.uint8), np.ones((5, 5), np.uint8))
    codes = X[:, ::5].copy()
    X[0, 0] = X[6, 7] = 0
    added = np.full(20, 2.0)
    added[forbidden] = math.inf
    context = search_context(X, Objective(True, "or", costs=ErrorCosts(np.full(20, 2.0), added)))
    context.monitor.objective = context.objective
    context.monitor.record(context.block(*map(ba.BitMatrix.from_dense, (X[2::5], codes))), Change(), 0, "start")
    remove_forbidden(context)
    assert context.monitor.best.codes.column_weights().tolist() == users
    assert len(context.monitor.history) == (1 if users == [5, 5, 5, 5] else 2)


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
