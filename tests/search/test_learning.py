"""The learning loop: errors never rise, it converges exactly, and its history is true, for every coder and update."""

import itertools
import time
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bitatoms
import naive
from bitatoms.core.atoms import UPDATES
from bitatoms.core.block import Block
from bitatoms.core.coding import CODERS, coding_rule
from bitatoms.datasets import planted
from bitatoms.parallel import Workers
from bitatoms.search.learning import LearningMethod, learn, step
from bitatoms.search.monitor import SearchMonitor
from support.blocks import bits_of
from support.strategies import ALL_KNOWN, SEEDS, factorisations, random_bits

factorize = partial(bitatoms.factorize, search="paper")  # the loop is the paper's

ALGEBRAS = ("xor", "or")
every_search = pytest.mark.parametrize("search", ["paper", "fast", "thorough"])
LIMITS = st.sampled_from(((None, 0), (1, 0), (2, 0), (None, 3), (3, 1)))

# With the exact coder, factorize turns "mob" into the exact update; the plain vote must hold there too.
COMBINATIONS = [
    *itertools.product(ALGEBRAS, ("bmp", "greedy"), ("mob", "k-prox")),
    *itertools.product(ALGEBRAS, ("exact",), ("exact", "mob", "k-prox")),
]
every_combination = pytest.mark.parametrize(("algebra", "coder", "update"), COMBINATIONS)
every_public_combination = pytest.mark.parametrize(
    ("algebra", "coder", "update"), list(itertools.product(ALGEBRAS, ("bmp", "greedy", "exact"), ("mob", "k-prox")))
)


def planted_start(n, m, p, algebra, noise, seed):
    """Planted data with some of its rows as atoms, and no codes yet."""
    X = planted(n, m, p, algebra=algebra, atom_density=0.3, code_density=0.3, noise=noise, random_state=seed).X
    atoms = X[np.random.default_rng(seed).permutation(n)[:5]]
    return X, atoms, np.zeros((n, len(atoms)), np.uint8)


planted_starts = st.builds(
    planted_start,
    st.sampled_from((1, 17, 64, 130)),
    st.sampled_from((1, 31, 64, 65, 130)),
    st.integers(1, 6),
    st.sampled_from(ALGEBRAS),
    st.sampled_from((0.0, 0.05, 0.2)),
    SEEDS,
)
problems = st.one_of(factorisations(unknown=ALL_KNOWN), planted_starts)


def start(problem, algebra, coder, update, limits=(None, 0), max_iter=10_000):
    """A block in memory, and how to learn from it; the codes keep to the limits."""
    X, atoms, codes = problem
    max_atoms, residual_limit = limits
    if max_atoms is not None:
        codes = codes * (np.cumsum(codes, axis=1) <= max_atoms).astype(np.uint8)
    packed = [bits_of(table) for table in (X, atoms, codes)]
    block = Block(*packed, algebra == "or", Workers())
    return block, LearningMethod(coder, update, coding_rule(coder, algebra, max_atoms, residual_limit), max_iter)


def dense(block):
    return tuple(factor.to_dense() for factor in block.factors())


def count_wrong(X, block, algebra):
    return int(naive.errors(X, *dense(block), algebra).sum())


# --- one step


@every_combination
@settings(max_examples=25)
@given(problem=problems, limits=LIMITS)
def test_errors_never_rise_in_a_half_step(algebra, coder, update, problem, limits):
    X = problem[0]
    block, method = start(problem, algebra, coder, update, limits)
    wrong = count_wrong(X, block, algebra)
    for _ in range(4):
        for half_step in (CODERS[coder], UPDATES[update]):
            half_step(block, method.rule)
            before, wrong = wrong, count_wrong(X, block, algebra)
            assert wrong <= before
            assert block.wrong().sum() == wrong


@every_combination
@settings(max_examples=15)
@given(problem=problems, limits=LIMITS)
def test_no_row_uses_more_atoms_than_allowed(algebra, coder, update, problem, limits):
    block, method = start(problem, algebra, coder, update, limits)
    for _ in range(3):
        step(block, method)
        assert limits[0] is None or (dense(block)[1].sum(axis=1) <= limits[0]).all()


@pytest.mark.parametrize("update", ["mob", "k-prox"])
@pytest.mark.parametrize("coder", ["bmp", "greedy", "exact"])
@pytest.mark.parametrize("algebra", ALGEBRAS)
@settings(max_examples=25)
@given(problem=factorisations(unknown=ALL_KNOWN))
def test_unused_atoms_do_not_change(algebra, coder, update, problem):
    block, method = start(problem, algebra, coder, update)
    for _ in range(3):
        CODERS[coder](block, method.rule)
        atoms, codes = dense(block)
        unused = ~codes.any(axis=0)
        UPDATES[update](block, method.rule)
        np.testing.assert_array_equal(dense(block)[0][unused], atoms[unused])
        assert not dense(block)[1][:, unused].any()


@pytest.mark.parametrize("update", ["mob", "k-prox"])
@pytest.mark.parametrize("algebra", ALGEBRAS)
def test_duplicate_and_empty_atoms_are_not_replaced(algebra, update):
    atom, other = random_bits(0, 2, 65, 0.4)
    atoms = np.array([atom, atom, np.zeros_like(atom)])
    X = np.array([atom, atom, other, atom])
    result = factorize(X, 3, init=atoms, coder="greedy", update=update, algebra=algebra)
    assert sorted(result.atoms.to_dense().tolist()) == sorted(atoms.tolist())
    assert (result.n_unused, result.n_duplicate, result.n_zero) == (2, 1, 1)


# --- the loop


@every_combination
@settings(max_examples=25)
@given(problem=problems, limits=LIMITS)
def test_learning_converges_to_a_state_that_no_step_changes(algebra, coder, update, problem, limits):
    block, method = start(problem, algebra, coder, update, limits)
    monitor = SearchMonitor(by_codelength=False)
    assert learn(block, method, monitor) == "converged"
    last = monitor.history[-1]
    assert (last.codes_changed, last.atoms_changed, last.errors_changed) == (0, 0, 0)
    assert not step(block, method)
    afresh, _ = start((problem[0], *dense(block)), algebra, coder, update, limits)
    assert not step(afresh, method)  # in a new block every row and atom is stale


@pytest.mark.parametrize("algebra", ALGEBRAS)
@settings(max_examples=15)
@given(problem=problems, has_codes=st.booleans())
def test_learning_by_bmp_matches_the_oracle(algebra, problem, has_codes):
    """Under XOR, rows without codes are coded by pursuit first."""
    X, atoms, codes = problem
    problem = X, atoms, codes * has_codes
    block, method = start(problem, algebra, "bmp", "mob")
    learn(block, method, SearchMonitor(by_codelength=False))
    for found, expected in zip(dense(block), naive.learn_by_bmp(*problem, algebra), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_pursuit_first_leaves_fewer_errors_than_bmp_alone():
    """As in the paper's program: a row takes more atoms only after the first ones are fitted."""
    X = planted(600, 80, 12, atom_density=0.3, code_density=0.25, noise=0.05, random_state=0).X
    for seed in range(6):
        problem = X, random_bits(seed, 24, 80, 0.4), np.zeros((600, 24), np.uint8)
        (pursued, method), (alone, _) = (start(problem, "xor", "bmp", "mob") for _ in range(2))
        learn(pursued, method, SearchMonitor(by_codelength=False))
        while step(alone, method):
            pass
        assert pursued.wrong().sum() < alone.wrong().sum()


@every_combination
@settings(max_examples=15)
@given(problem=problems)
def test_every_step_before_the_last_changes_something_and_errors_never_rise(algebra, coder, update, problem):
    block, method = start(problem, algebra, coder, update)
    monitor = SearchMonitor(by_codelength=False)
    learn(block, method, monitor)
    *changing, _ = monitor.history
    assert all(row.codes_changed or row.atoms_changed or row.errors_changed for row in changing)
    assert [row.round for row in monitor.history] == list(range(1, len(monitor.history) + 1))
    wrong = [row.wrong_bits for row in monitor.history]
    assert wrong == sorted(wrong, reverse=True)
    seconds = [row.seconds for row in monitor.history]
    assert seconds == sorted(seconds)
    assert monitor.best is not None
    assert monitor.best.wrong_bits == wrong[-1]
    assert tuple(factor.to_dense().tolist() for factor in (monitor.best.atoms, monitor.best.codes)) == tuple(
        factor.tolist() for factor in dense(block)
    )


@settings(max_examples=25)
@given(problem=problems, combination=st.sampled_from(COMBINATIONS))
def test_one_record_of_all_steps_is_the_sum_of_their_records(problem, combination):
    each, once = SearchMonitor(by_codelength=True), SearchMonitor(by_codelength=True)
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


@every_public_combination
def test_the_result_is_a_fixed_point_and_its_history_matches_the_oracle(algebra, coder, update):
    X = planted(150, 65, 5, algebra=algebra, noise=0.1, random_state=2).X
    how = {"algebra": algebra, "coder": coder, "update": update}
    result = factorize(X, 5, **how, random_state=0)
    assert result.converged
    atoms, codes = result.atoms.to_dense(), result.codes.to_dense()
    assert result.algebra == algebra
    last = result.history[-1]
    expected = naive.codelength(X, atoms, codes, algebra)
    assert (last.bits_errors, last.bits_codes, last.bits_atoms) == expected
    assert last.bits == sum(expected) == result.codelength.total
    wrong = naive.errors(X, atoms, codes, algebra)
    assert last.wrong_bits == wrong.sum() == result.wrong_bits
    np.testing.assert_array_equal(result.wrong, wrong.sum(axis=0))
    assert {row.atoms for row in result.history} == {5}
    assert result.n_iter == len(result.history) == sum(row.iterations for row in result.history)
    again = factorize(X, 5, init=(atoms, codes), **how)
    assert again.n_iter == 1
    assert again.atoms == result.atoms
    assert again.codes == result.codes


@every_public_combination
def test_one_iteration_ends_unconverged(algebra, coder, update):
    X = planted(150, 65, 5, algebra=algebra, noise=0.1, random_state=3).X
    result = factorize(X, 5, algebra=algebra, coder=coder, update=update, max_iter=1, random_state=0)
    assert not result.converged
    assert result.n_iter == len(result.history) == 1
    assert result.codelength.total == sum(
        naive.codelength(X, result.atoms.to_dense(), result.codes.to_dense(), algebra)
    )


def test_max_iter_counts_the_step_that_finds_nothing_to_change():
    X = planted(150, 65, 5, random_state=3).X
    enough = factorize(X, 5, random_state=0).n_iter
    assert factorize(X, 5, random_state=0, max_iter=enough).converged
    assert not factorize(X, 5, random_state=0, max_iter=enough - 1).converged


def test_max_iter_of_the_paper_search_limits_each_start_and_not_their_number():
    rounds = []
    how = {"search": "paper", "n_init": 3, "max_iter": 1, "random_state": 0, "callbacks": rounds.append}
    assert factorize(planted(150, 65, 5, random_state=3).X, 5, **how).ended == "max_iter"
    assert {row.start for row in rounds} == {1, 2, 3}


def test_max_time_ends_learning_after_the_current_step(monkeypatch):
    X = planted(150, 65, 5, random_state=3).X
    free = factorize(X, 5, max_time=3600, random_state=0)
    assert free.converged
    assert free.n_iter > 1
    seconds = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: seconds[0])

    def pass_time(row):
        seconds[0] += 0.3

    result = factorize(X, 5, max_time=0.2, callbacks=pass_time, random_state=0)
    assert result.ended == "max_time"
    assert result.n_iter == len(result.history) == 1


@pytest.mark.parametrize("n_components", [5, "mdl"])
@pytest.mark.parametrize("algebra", ["xor", "auto"])
@every_search
def test_max_time_too_short_for_a_step_still_gives_a_factorization(n_components, algebra, search):
    X = planted(150, 65, 5, random_state=3).X
    result = factorize(X, n_components, algebra=algebra, search=search, n_init=2, max_time=1e-9, random_state=0)
    assert not result.converged
    atoms, codes = result.atoms.to_dense(), result.codes.to_dense()
    assert result.codelength.total == sum(naive.codelength(X, atoms, codes, result.algebra, result.bias))
    assert result.n_iter >= 1


@every_search
@pytest.mark.parametrize("n_components", [17, "mdl"])
@pytest.mark.usefixtures("few_trials_here")
def test_callbacks_get_every_round(search, n_components):
    rounds, second_rounds = [], []
    X = planted(150, 65, 5, random_state=3).X
    result = factorize(X, n_components, search=search, random_state=0, callbacks=[rounds.append, second_rounds.append])
    assert tuple(rounds) == tuple(second_rounds) == result.history


@pytest.mark.parametrize("n_components", [5, "mdl"])
def test_a_callback_that_returns_true_ends_the_search(n_components):
    X = random_bits(0, 150, 65, 0.3)
    rounds = []

    def second_round(row):
        rounds.append(row)
        return row.round == 2

    result = factorize(X, n_components, patience=10, random_state=0, callbacks=second_round)
    assert tuple(rounds) == result.history
    assert len(rounds) == 2
    assert not result.converged


def test_a_callback_ends_all_restarts_and_both_algebras():
    X = planted(150, 65, 5, random_state=3).X
    rounds = []
    result = factorize(X, 5, algebra="auto", n_init=3, random_state=0, callbacks=lambda row: rounds.append(row) or True)
    assert len(rounds) == 1
    assert result.history == tuple(rounds)


@every_search
def test_only_true_ends_the_search(search):
    X = planted(150, 65, 5, random_state=3).X
    result = factorize(X, search=search, random_state=0, callbacks=lambda row: "continue")
    assert result.converged
