"""What ends a search, what it leaves, and what its history and its callbacks see."""

from functools import cache

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from bitatoms import BinaryDictionaryLearning, BitMatrix, Interrupted, factorize
from bitatoms.core.block import Block, Change
from bitatoms.parallel import Workers
from bitatoms.search.monitor import SearchMonitor
from bitatoms.search.stopping import StoppingRule
from support.clock import WorkClock, allowed
from support.results import (
    assert_matches_oracle,
    bits_of_bias_alone,
    bits_without_atoms,
    every_algebra,
    every_goal,
    every_search,
)
from support.strategies import random_bits

pytestmark = pytest.mark.usefixtures("few_trials")
SWEEPS = {
    *("look", "first code", "grow", "code", "recode", "boil down", "beam", "solve", "extend", "shake"),
    *("trial", "exact", "recombine", "finish"),
}
MOVES = SWEEPS | {"no model", "start", "basis", "trim", "drop", "go on", "go back"}


@pytest.fixture(scope="module")
def search_to_the_end(small):
    """Return a function that returns the result of a search that nothing ends, and the rounds of its callback."""

    @cache
    def searched(n_components, objective, search, algebra="xor"):
        rounds = []
        how = {"algebra": algebra, "search": search, "objective": objective, "random_state": 0}
        return factorize(small, n_components, **how, callbacks=rounds.append), tuple(rounds)

    return searched


@every_algebra
@every_search
@every_goal
def test_every_round_names_its_move_and_the_best_is_the_result(
    search_to_the_end, algebra, search, n_components, objective
):
    result, rounds = search_to_the_end(n_components, objective, search, algebra)
    history = result.history
    assert rounds == history
    assert [row.round for row in history] == list(range(1, len(history) + 1))
    assert {row.move for row in history} <= MOVES
    assert {(row.start, row.algebra) for row in history} == {(1, algebra)}
    assert all(row.bits == row.bits_errors + row.bits_codes + row.bits_atoms for row in history)
    assert sorted(row.seconds for row in history) == [row.seconds for row in history]
    assert result.n_iter == sum(row.iterations for row in history)
    if n_components == "mdl":
        assert all((row.iterations > 0) == (row.move in SWEEPS) for row in history)
    able = [row for row in history if n_components in ("mdl", row.atoms)]
    if objective == "errors":
        assert result.wrong_bits == min(row.wrong_bits for row in able)
        best = [row for row in able if row.wrong_bits == result.wrong_bits][-1]
    else:
        best = min((row for row in able if row.bits == result.codelength.total), key=lambda row: row.round)
        assert n_components != "mdl" or best.bits == min(row.bits for row in history)
    assert (best.bits, best.atoms, best.wrong_bits) == (
        result.codelength.total,
        result.atoms.n_rows,
        result.wrong_bits,
    )


@every_search
@every_goal
@pytest.mark.parametrize("at", [1, 9])
def test_a_callback_that_returns_true_ends_the_search_with_the_best_so_far(
    search_to_the_end, small, search, n_components, objective, at
):
    how = {"search": search, "objective": objective, "random_state": 0}
    full, _ = search_to_the_end(n_components, objective, search)
    at = min(at, len(full.history) - 1)
    rounds = []
    result = factorize(small, n_components, **how, callbacks=lambda row: rounds.append(row) or row.round == at)
    assert (result.ended, result.converged) == ("callback", False)
    assert tuple(rounds) == result.history[:at]  # it is not called again
    assert [row[:-1] for row in rounds] == [row[:-1] for row in full.history[:at]]
    assert len(result.history) <= at + 24
    assert_matches_oracle(result, small)
    if n_components == "mdl":
        assert result.codelength.total == min(row.bits for row in result.history)
    elif at > 1 or objective == "errors":
        assert result.atoms.n_rows == n_components


@every_search
@pytest.mark.parametrize("how", [{"max_time": 1e-6}, {"callbacks": lambda row: True}])
def test_a_search_that_ends_at_once_has_the_number_of_atoms_asked_for(small, search, how):
    result = factorize(small, 5, search=search, objective="codelength", random_state=0, **how)
    assert result.atoms.n_rows == 5


@every_search
def test_no_start_is_made_after_the_end(table, search):
    rounds = []
    factorize(table, search=search, random_state=0, callbacks=lambda row: rounds.append(row.move) or len(rounds) >= 3)
    assert "start" not in rounds[3:]


def test_a_callback_ends_all_restarts_and_both_algebras(table):
    result = factorize(table, algebra="auto", n_init=3, random_state=0, callbacks=lambda row: True)
    assert {(row.start, row.algebra) for row in result.history} == {(1, "xor")}
    assert list(result.codelengths) == ["xor"]


@every_goal
@pytest.mark.parametrize(
    ("search", "how"),
    [
        ("fast", {"max_iter": 1}),
        ("thorough", {"max_iter": 3}),
        ("fast", {"max_time": 1e-6}),
        ("thorough", {"max_time": 1e-6}),
    ],
)
def test_limits_end_the_search_with_a_usable_model(small, search, n_components, objective, how):
    expected = next(iter(how))
    how = {**how, "search": search, "objective": objective, "random_state": 0}
    result = factorize(small, n_components, **how)
    assert (result.ended, result.converged) == (expected, False)
    assert_matches_oracle(result, small)
    if expected == "max_iter" and objective == "errors":
        assert result.wrong_bits < small.sum() / 2
    elif n_components == "mdl" or expected == "max_iter":  # there may be no time to fit a given number of atoms
        assert result.codelength.total <= max(bits_of_bias_alone(small), bits_without_atoms(small))
    with pytest.warns(ConvergenceWarning, match=f"{expected} ended the search before it converged; raise it") as caught:
        model = BinaryDictionaryLearning(n_components, **how).fit(small)
    assert caught[0].filename == __file__
    codes = model.transform(small)
    assert codes.shape == (150, model.n_components_)
    assert model.inverse_transform(codes).shape == small.shape
    assert n_components in ("mdl", model.n_components_) or (objective == "codelength" and expected == "max_time")


def test_more_rounds_never_give_a_longer_codelength(table):
    bits = [factorize(table, max_iter=rounds, random_state=0).codelength.total for rounds in (1, 4)]
    assert bits == sorted(bits, reverse=True)


@every_algebra
@every_search
@every_goal
@pytest.mark.parametrize("at", [1, 12])
def test_ctrl_c_leaves_the_best_so_far(search_to_the_end, small, algebra, search, n_components, objective, at):
    how = {"algebra": algebra, "search": search, "objective": objective, "random_state": 0}
    if objective == "errors":
        at = min(at, len(search_to_the_end(n_components, objective, search, algebra)[0].history))

    def press(row):
        if row.round == at:
            raise KeyboardInterrupt

    model = BinaryDictionaryLearning(n_components, **how, callbacks=press)
    with pytest.raises(Interrupted, match="the best result so far") as caught:
        model.fit(small)
    result = caught.value.result
    assert_matches_oracle(result, small)
    assert (result.ended, len(result.history), len(model.history_)) == ("interrupted", at, at)
    if n_components == "mdl":
        assert result.codelength.total == min(row.bits for row in result.history)
    elif objective == "errors":
        assert result.wrong_bits == min(row.wrong_bits for row in result.history)
        assert result.atoms.n_rows == n_components
    np.testing.assert_array_equal(model.components_, result.atoms.to_dense())
    assert model.codelength_ == result.codelength
    assert model.transform(small[:7]).shape == (7, model.n_components_)


def test_ctrl_c_never_leaves_a_model_that_is_worse_than_none():
    def press(row):
        raise KeyboardInterrupt

    X = random_bits(0, 150, 40, 0.1)
    with pytest.raises(Interrupted) as caught:
        factorize(X, random_state=0, callbacks=press)
    assert caught.value.result.codelength.total <= bits_without_atoms(X)


def test_an_interrupted_result_has_the_codelengths_to_compare_with(table):
    def press(row):
        if row.round == 12:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        factorize(table, random_state=0, callbacks=press)
    result = caught.value.result
    assert result.bits_without == bits_without_atoms(table)
    assert result.codelengths == {"xor": result.codelength.total}


def test_max_rounds_stop_a_search_unless_it_was_stopped_before():
    monitor = SearchMonitor(by_codelength=True)
    stopping = StoppingRule(monitor, 2)
    assert stopping.ended == "converged"
    for _ in range(2):
        assert not stopping.should_stop()
        stopping.count_round()
    assert stopping.should_stop()
    assert (stopping.ended, monitor.stop_reason) == ("max_iter", None)


def test_the_deadline_stops_a_search():
    monitor = SearchMonitor(by_codelength=True, deadline=0.0)
    stopping = StoppingRule(monitor, None)
    assert stopping.should_stop()
    assert stopping.ended == monitor.stop_reason == "max_time"


@every_search
@pytest.mark.parametrize("n_components", [5, "mdl"])
def test_a_search_that_is_cut_off_before_its_first_state_has_one_round(small, monkeypatch, search, n_components):
    WorkClock(monkeypatch)
    monkeypatch.setattr("support.clock.CHUNK_SECONDS", 60.0)
    result = factorize(small, n_components, search=search, max_time=1, random_state=0)
    n_atoms = 0 if n_components == "mdl" else 5
    assert [(row.move, row.iterations, row.atoms) for row in result.history] == [("start", 1, n_atoms)]
    assert (result.ended, result.n_iter, result.atoms.n_rows) == ("max_time", 1, n_atoms)


@pytest.mark.parametrize("max_time", [0.05, 1, 5])
@pytest.mark.parametrize("algebra", ["xor", "auto"])
@every_search
@every_goal
def test_time_limits_are_kept(small, monkeypatch, algebra, search, n_components, objective, max_time):
    """The clock advances with the work: a move that takes long is cut off, and the best state so far is the result."""
    clock = WorkClock(monkeypatch)
    how = {"algebra": algebra, "search": search, "objective": objective, "random_state": 0}
    result = factorize(small, n_components, **how, max_time=max_time)
    assert result.ended in ("max_time", "converged")
    assert clock.elapsed <= allowed(max_time)
    assert all(0 <= row.seconds <= clock.elapsed for row in result.history)
    assert_matches_oracle(result, small)
    assert objective != "errors" or result.atoms.n_rows == n_components


@pytest.mark.parametrize("how", [{}, {"coder": "greedy", "update": "k-prox"}, {"init": "greedy"}])
@pytest.mark.parametrize("n_components", [5, "mdl"])
def test_time_limits_are_kept_by_the_search_of_the_paper(small, monkeypatch, n_components, how):
    clock = WorkClock(monkeypatch)
    result = factorize(small, n_components, search="paper", n_init=3, **how, max_time=1, random_state=0)
    assert clock.elapsed <= allowed(1)
    assert_matches_oracle(result, small)


@every_search
@every_goal
@pytest.mark.parametrize("at", [1, 30, 100])
def test_if_memory_runs_out_the_best_so_far_is_kept(small, monkeypatch, search, n_components, objective, at):
    map_rows, left = Workers.map_rows, [at]

    def failing(*arguments):
        left[0] -= 1
        if left[0] == 0:
            raise MemoryError
        return map_rows(*arguments)

    monkeypatch.setattr(Workers, "map_rows", failing)
    how = {"search": search, "objective": objective, "random_state": 0, "callbacks": (rounds := []).append}
    try:
        result = factorize(small, n_components, **how)
    except MemoryError:
        assert not rounds  # there is no state to keep
        return
    assert result.ended == "max_memory"
    assert rounds
    assert_matches_oracle(result, small)


def test_interrupt_while_held_out_rows_are_coded_keeps_the_best_so_far(small, monkeypatch):
    data = BitMatrix.from_dense(small)
    block = Block(data, data[:3], None, None, Workers())
    monitor = SearchMonitor(by_codelength=True, by_holdout=True)
    monitor.record(block, Change(), 0)

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(block, "wrong", interrupted)
    with pytest.raises(KeyboardInterrupt):
        monitor.record_holdout_cost(block, 1)
    assert monitor.best.atoms == data[:3]


@every_search
@every_goal
def test_callbacks_see_all_rounds_of_a_search_that_ends_at_max_iter(small, search, n_components, objective):
    rounds = []
    how = {"search": search, "objective": objective, "max_iter": 1, "random_state": 0}
    result = factorize(small, n_components, **how, callbacks=rounds.append)
    assert result.ended == "max_iter"
    assert tuple(rounds) == result.history
