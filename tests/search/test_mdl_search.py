"""The search for the shortest codelength: the right number of atoms, its moves and its parameters."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitatoms import Constraints, factorize
from bitatoms.engine.objective import Objective
from bitatoms.search import mdl_search
from bitatoms.search.plan import PLANS, MdlTuning
from support.results import (
    ALGEBRAS,
    AWKWARD,
    SEARCHES,
    assert_matches_oracle,
    bits_of_bias_alone,
    bits_without_atoms,
)
from support.strategies import SEEDS, matrices

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
    assert {"flat sweep", "grow", "sweep", "fresh sweep", "drop", "thin out"} <= set(moves)
    assert ("change basis" in moves) == (algebra == "xor")
    assert ("perturb" in moves) == (search == "thorough")
    assert ("beam sweep" in moves) >= (search == "thorough")
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
    assert fit(None, max_iter=40).ended == "max_iter"


def states_of(costs):
    return [SimpleNamespace(cost=cost) for cost in costs]


@pytest.mark.parametrize(
    ("algebra", "ordinary", "solved", "kept"),
    [
        ("or", [100, 150, 151], [], [100, 150]),
        ("xor", [100, 150], [], [100]),
        ("xor", [120], [100, 110], [100, 120]),
        ("xor", [100], [150, 160], [100, 150]),
        ("xor", [100], [151], [100]),
        ("or", [201, 210], [100, 120], [100, 120]),
        ("xor", [200, 199], [100], [100, 199]),
    ],
)
def test_starts_that_are_close_to_the_best_one_are_continued(algebra, ordinary, solved, kept):
    """Under OR all of them; under XOR the best of linear algebra, and the best other one, which may be further off."""
    tuning, plan = MdlTuning(close=1.5, ordinary_close=2.0), PLANS["fast"]
    search = SimpleNamespace(plan=plan, tuning=tuning, objective=Objective(True, algebra))
    found = mdl_search._finalists(search, states_of(ordinary), states_of(solved))
    assert [state.cost for state in found] == kept


@pytest.mark.parametrize(
    ("n_rows", "linear", "others", "is_enough"),
    [
        *[(50, [90, 79], [100, 120], True), (50, [80], [100, 120], False), (49, [1], [100], False)],
        *[(50, [159], [], True), (50, [160], [], False), (50, [], [100], False)],
    ],
)
def test_a_start_by_linear_algebra_that_is_far_better_is_enough_for_many_rows(n_rows, linear, others, is_enough):
    """Than the best other one or, without any, than no atoms."""
    tuning, data = MdlTuning(min_explained_rows=50, explained_share=0.8), SimpleNamespace(n_rows=n_rows)
    search = SimpleNamespace(tuning=tuning, data=data, cost_without_atoms=200)
    assert mdl_search._explains(search, states_of(linear), states_of(others)) == is_enough
