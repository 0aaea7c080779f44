"""The search for the shortest codelength: the right number of atoms, its moves and its parameters."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitatoms import BitMatrix, Constraints, factorize
from bitatoms.engine.objective import Objective
from bitatoms.search import mdl_search
from bitatoms.search.mdl_search import search_mdl
from bitatoms.search.monitor import SearchResult
from bitatoms.search.plan import PLANS
from bitatoms.search.rounds import MdlSearch
from support.contexts import search_context
from support.results import (
    ALGEBRAS,
    AWKWARD,
    SEARCHES,
    assert_matches_oracle,
    bits_of_bias_alone,
    bits_without_atoms,
    every_algebra,
)
from support.strategies import SEEDS, matrices, random_bits

pytestmark = pytest.mark.usefixtures("few_trials")


TABLES = st.one_of(matrices(), st.sampled_from([*AWKWARD.values()]), st.just(np.zeros((5, 0), np.uint8)))


@settings(max_examples=24)
@given(TABLES, st.sampled_from((*ALGEBRAS, "auto")), st.sampled_from(SEARCHES), SEEDS)
def test_no_table_takes_more_bits_than_without_atoms(X, algebra, search, seed):
    result = factorize(X, algebra=algebra, search=search, random_state=seed)
    assert_matches_oracle(result, X)
    assert result.codelength.total <= bits_of_bias_alone(X)
    assert (result.n_unused, result.n_zero, result.converged) == (0, 0, True)


@pytest.mark.parametrize(("algebra", "search"), [("xor", "fast"), ("or", "thorough")])
def test_the_moves_for_the_shortest_codelength(table, algebra, search):
    history = factorize(table, algebra=algebra, search=search, random_state=0).history
    moves = [row.move for row in history]
    (nothing,) = (row for row in history if row.move == "no model")
    wrong = np.minimum(table.sum(axis=0), len(table) - table.sum(axis=0)).sum()
    assert (nothing.atoms, nothing.bits, nothing.wrong_bits) == (0, bits_of_bias_alone(table), wrong)
    assert moves.index("no model") < moves.index("start")
    assert {"flat sweep", "grow", "sweep", "drop", "finish", "go back"} <= set(moves)
    assert ("change basis" in moves) == (algebra == "xor")
    assert ("perturb" in moves) == ("recombine" in moves) == (search == "thorough")
    assert ("beam sweep" in moves) == (search == "thorough")
    assert not {"trial", "exact"} & set(moves)


@pytest.mark.parametrize(("algebra", "search", "most"), [("xor", "fast", 0), ("or", "fast", 1), ("xor", "thorough", 3)])
def test_there_are_no_more_atoms_than_allowed(small, algebra, search, most):
    result = factorize(
        small, constraints=Constraints(max_components=most), algebra=algebra, search=search, random_state=0
    )
    assert result.atoms.n_rows <= most
    assert result.codelength.total == min(row.bits for row in result.history if row.atoms <= most)
    assert_matches_oracle(result, small)
    assert most == 0 or result.codelength.total < bits_without_atoms(small)


def test_patience_is_the_number_of_rounds_without_a_gain(small, monkeypatch):
    def fit(patience, **how):
        monkeypatch.setitem(PLANS, "fast", replace(PLANS["fast"], patience=patience))
        return factorize(small, algebra="xor", random_state=0, **how)

    short, long = fit(1), fit(6)
    assert len(short.history) < len(long.history)
    assert (short.converged, long.converged) == (True, True)
    assert fit(float("inf"), max_iter=40).ended == "max_iter"


def states_of(costs):
    return [SimpleNamespace(cost=cost) for cost in costs]


@pytest.mark.parametrize(
    ("ordinary", "solved", "kept"),
    [
        *[([100, 150, 151], [], [100]), ([], [150, 100], [100])],
        *[([120], [100, 110], [120, 100]), ([100], [150, 160], [100, 150]), ([140, 100], [160, 150], [100, 150])],
        *[([100], [151], [100]), ([151], [100], [100]), ([200, 150], [100], [150, 100]), ([0], [0], [0, 0])],
    ],
)
def test_the_best_start_of_each_kind_is_continued_if_it_is_close_to_the_best_of_all(ordinary, solved, kept):
    found = mdl_search._finalists(states_of(ordinary), states_of(solved), 1.5)
    assert [state.cost for state in found] == kept


@pytest.fixture
def search_of(monkeypatch):
    """Return a search for the shortest codelength, in which nothing is done yet; and the rounds that states had."""

    def make(X, algebra, **plan):
        rounds, run_rounds = [], MdlSearch.run_rounds

        def counted(search, block, max_rounds=None):
            rounds.append(max_rounds)
            return run_rounds(search, block, max_rounds)

        monkeypatch.setattr(MdlSearch, "run_rounds", counted)
        plan = replace(PLANS["fast"], max_rounds=10**6, **plan)
        return MdlSearch(search_context(X, Objective(True, algebra), plan)), rounds

    return make


@every_algebra
def test_each_start_has_one_cycle_and_the_best_one_goes_on_to_the_end(table, algebra, search_of):
    search, rounds = search_of(table, algebra)
    found = mdl_search.best_start(search)
    *cycles, last = rounds
    assert last is None
    assert len(cycles) > 1
    assert set(cycles) <= {1, search.tuning.cycle_rounds}  # one round of each factorization
    assert found.cost == search.context.cost(search.context.block_of(found))
    assert found.cost <= min(row.bits for row in search.context.monitor.history) + found.cost // 50
    assert [row.move for row in search.context.monitor.history].count("continue") == 1


@every_algebra
def test_the_best_start_of_each_kind_has_one_cycle_more_if_both_are_close(table, algebra, search_of):
    tuning = PLANS["fast"].mdl
    any_basis = replace(tuning.linear, max_judged=float("inf"), max_spread=float("inf"))
    tuning = replace(tuning, close=100.0, linear=any_basis)
    search, rounds = search_of(table, algebra, mdl=tuning)
    mdl_search.best_start(search)
    assert rounds[-3:] == [tuning.cycle_rounds, tuning.cycle_rounds, None]
    assert [row.move for row in search.context.monitor.history].count("continue") == 3


def found_first(context, ended="converged"):
    """Return the result of a search before this one: the first rows as atoms."""
    return SearchResult(context.block(context.data[:3]), ended)


@pytest.mark.parametrize("search", ["fast", "thorough"])
def test_a_search_before_this_one_takes_the_place_of_the_first_look(table, search):
    context = search_context(table, Objective(True, "xor"), replace(PLANS[search], max_rounds=10**6))
    calls = []

    def first():
        calls.append(len(context.monitor.history))
        return found_first(context)

    search_mdl(context, first=first)
    moves = [row.move for row in context.monitor.history]
    assert calls == [0]  # once, before all else
    assert moves[0] == "no model"
    assert "first look" not in moves


@pytest.mark.parametrize("search", ["fast", "thorough", "anytime"])
def test_a_search_before_this_one_that_ends_early_ends_it_at_once(table, search):
    context = search_context(table, Objective(True, "xor"), replace(PLANS[search], max_rounds=10**6))
    found = search_mdl(context, first=lambda: found_first(context, "max_time"), coder="beam")
    assert found.ended == "max_time"
    assert [row.move for row in context.monitor.history] == ["no model", "go back"]
    assert found.block.atoms() == context.data[:3]


@every_algebra
def test_factors_that_are_given_are_the_only_start(table, algebra):
    atoms, codes = random_bits(0, 4, 45, 0.3), random_bits(1, 200, 4, 0.3)
    for factors, first_moves in (
        ((atoms, None), ["no model", "start", "flat sweep"]),
        ((atoms, codes), ["no model", "start", "grow"]),
    ):
        context = search_context(table, Objective(True, algebra), replace(PLANS["fast"], max_rounds=10**6))
        search_mdl(context, tuple(None if part is None else BitMatrix.from_dense(part) for part in factors))
        moves = [row.move for row in context.monitor.history]
        assert moves[:3] == first_moves
        assert moves.count("start") == 1
        assert not {"first look", "continue"} & set(moves)


@pytest.mark.parametrize(("coder", "n_sweeps"), [("beam", 1), ("mdl", 0), ("auto", 0)])
def test_a_fast_search_sweeps_by_beam_if_asked_to(table, coder, n_sweeps):
    result = factorize(table, algebra="xor", coder=coder, random_state=0)
    assert [row.move for row in result.history].count("beam sweep") == n_sweeps
