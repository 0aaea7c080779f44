"""The learning loop: errors never rise, it converges exactly, and its history is true, for every coder and update."""

import itertools
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bitatoms
import naive
from bitatoms.datasets import planted
from bitatoms.engine.coding import coding_rule
from bitatoms.engine.objective import Objective
from bitatoms.search.monitor import SearchMonitor
from bitatoms.search.paper import LearningMethod, learn, step
from support.blocks import block_of, factors, within
from support.strategies import factorisations

factorize = partial(bitatoms.factorize, search="paper")  # the loop is the paper's

ALGEBRAS = ("xor", "or")
LIMITS = st.sampled_from(((None, 0), (1, 0), (2, 0), (None, 3), (3, 1)))

# With the exact coder, factorize turns "mob" into the exact update; the plain vote must hold there too.
COMBINATIONS = st.sampled_from(
    [
        *itertools.product(ALGEBRAS, ("bmp", "greedy"), ("mob", "k-prox")),
        *itertools.product(ALGEBRAS, ("exact",), ("exact", "mob", "k-prox")),
    ]
)


def start(problem, algebra, coder, update, limits=(None, 0), max_iter=10_000):
    """A block in memory, and how to learn from it; the codes keep to the limits."""
    X, atoms, codes = problem
    max_atoms, residual_limit = limits
    block = block_of(X, atoms, within(codes, max_atoms), algebra)
    return block, LearningMethod(coder, update, coding_rule(coder, algebra, max_atoms, residual_limit), max_iter)


# --- the loop


@settings(max_examples=60)
@given(factorisations(), COMBINATIONS, LIMITS)
def test_learning_converges_to_a_state_that_no_step_changes(problem, combination, limits):
    block, method = start(problem, *combination, limits)
    monitor = SearchMonitor(Objective(False, "xor"))
    assert learn(block, method, monitor) == "converged"
    *changing, last = monitor.history
    assert (last.codes_changed, last.atoms_changed, last.errors_changed) == (0, 0, 0)
    assert all(row.codes_changed or row.atoms_changed or row.errors_changed for row in changing)
    assert [row.round for row in monitor.history] == list(range(1, len(monitor.history) + 1))
    wrong = [row.wrong_bits for row in monitor.history]
    assert wrong == sorted(wrong, reverse=True)
    assert monitor.best.wrong.sum() == wrong[-1]
    for kept, found in zip((monitor.best.atoms, monitor.best.codes), factors(block), strict=True):
        np.testing.assert_array_equal(kept.to_dense(), found)
    assert not step(block, method)
    afresh, _ = start((problem[0], *factors(block)), *combination, limits)
    assert not step(afresh, method)  # in a new block every row and atom is stale


@settings(max_examples=25)
@given(factorisations(), st.sampled_from(ALGEBRAS), st.booleans())
def test_learning_by_bmp_matches_the_oracle(problem, algebra, has_codes):
    """Under XOR, rows without codes are coded by pursuit first."""
    X, atoms, codes = problem
    problem = X, atoms, codes * has_codes
    block, method = start(problem, algebra, "bmp", "mob")
    learn(block, method, SearchMonitor(Objective(False, "xor")))
    for found, expected in zip(factors(block), naive.learn_by_bmp(*problem, algebra), strict=True):
        np.testing.assert_array_equal(found, expected)


@settings(max_examples=25)
@given(factorisations(), COMBINATIONS)
def test_one_record_of_all_steps_is_the_sum_of_their_records(problem, combination):
    each, once = SearchMonitor(Objective(True, "xor")), SearchMonitor(Objective(True, "xor"))
    for monitor in (each, once):
        block, method = start(problem, *combination)
        learn(block, method, monitor, each_step=monitor is each)
    (row,) = once.history
    assert row.iterations == len(each.history)
    last = each.history[-1]
    assert (row.bits, row.wrong_bits, row.atoms) == (last.bits, last.wrong_bits, last.atoms)
    for name in ("codes_changed", "atoms_changed", "errors_changed", "iterations"):
        assert getattr(row, name) == sum(getattr(step_row, name) for step_row in each.history)


# --- what users see of it


@pytest.fixture(scope="module")
def X():
    return planted(150, 65, 5, random_state=3).X


def test_max_iter_counts_the_step_that_finds_nothing_to_change_of_each_start(X):
    enough = factorize(X, 5, algebra="xor", random_state=0).n_iter
    assert factorize(X, 5, algebra="xor", random_state=0, max_iter=enough).converged
    assert not factorize(X, 5, algebra="xor", random_state=0, max_iter=enough - 1).converged
    rounds = []
    result = factorize(X, 5, n_init=3, max_iter=1, algebra="xor", random_state=0, callbacks=rounds.append)
    assert result.ended == "max_iter"
    assert {row.start for row in rounds} == {1, 2, 3}
