"""The anytime search: it keeps the best state, ends at its limit or when nothing is gained, and repeats itself.

A search that goes on from what another one finds is never worse.
"""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from bitatoms import BinaryDictionaryLearning, BitMatrix, Constraints, factorize
from bitatoms.datasets import planted
from bitatoms.engine.objective import Objective
from bitatoms.search import mdl_search
from bitatoms.search.mdl_search import search_mdl
from bitatoms.search.plan import PLANS
from support.contexts import search_context
from support.parameters import resolved
from support.plans import use_budget
from support.results import assert_matches_oracle, every_algebra, planted_in
from support.strategies import random_bits

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
    use_budget(monkeypatch, max_trials=60, nmf_starts=1, max_failures=4, min_child_trials=2)
    short = replace(PLANS["anytime"], population=3, children=2, max_failed_epochs=2)
    monkeypatch.setitem(PLANS, "anytime", short)


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


def test_each_search_goes_on_from_what_another_one_finds():
    """The starts of a fast search are those of a thorough one, which is the first epoch of an anytime one."""
    fast, thorough, anytime = (resolved(search=search, coder="beam").plan for search in ("fast", "thorough", "anytime"))
    assert (fast.children, fast.more_starts, fast.max_failed_epochs, thorough.max_failed_epochs) == (0, (), 0, 0)
    more = {"more_starts": thorough.more_starts, "children": thorough.children, "epochs": thorough.epochs}
    assert replace(fast, **more) == thorough
    further = {"max_failed_epochs": anytime.max_failed_epochs, "max_rounds": anytime.max_rounds}
    assert replace(thorough, **further) == anytime
    assert thorough.children > 0
    assert thorough.epochs > fast.epochs == 1
    assert anytime.max_failed_epochs > 0


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


# Epochs: thorough searches from other starts, whose best states evolve together.


class Journal:
    """What searches did from now on: their starts, the populations that evolved, and children with their parents."""

    def __init__(self, patch):
        self.starts, self.evolved, self.epochs, self.perturbed, self.recombined = [], [], [], [], []
        best_start, evolve = mdl_search.best_start, mdl_search.evolve

        def noted_start(*args):
            self.starts.append(best_start(*args))
            return self.starts[-1]

        def noted_evolve(population, *args, **limits):
            before = [state.cost for state in population]
            evolve(population, *args, **limits)
            self.epochs.append(len(self.starts))
            self.evolved.append((before, [state.cost for state in population], limits))

        patch.setattr(mdl_search, "best_start", noted_start)
        patch.setattr(mdl_search, "evolve", noted_evolve)
        for name, made in (("_perturbed", self.perturbed), ("_recombined", self.recombined)):
            patch.setattr(mdl_search, name, partial(self._note, getattr(mdl_search, name), made))

    @staticmethod
    def _note(make, made, search, **parents):
        children = make(search, **parents)
        made.append(([*parents.values()], children))
        return children


def varied(algebra):
    """Return a table of which starts and children find different states."""
    return planted(90, 24, 6, algebra=algebra, noise=0.03, code_density=0.4, random_state=1).X


def searched(X, algebra, seed=0, callbacks=(), **plan):
    """Return the result of a search for the shortest codelength, which ends by itself, and its monitor."""
    plan = replace(PLANS["anytime"], **{"max_rounds": 10**6, "by_beam": True} | plan)
    context = search_context(X, Objective(True, algebra), plan, seed=seed, callbacks=callbacks)
    return search_mdl(context, coder="beam"), context.monitor


@every_algebra
@pytest.mark.usefixtures("few_trials_here")
def test_epochs_are_new_starts_and_the_best_states_of_all_evolve_together(algebra, noisy, monkeypatch):
    journal = Journal(monkeypatch)
    X = noisy if algebra == "xor" else varied("or")
    found, monitor = searched(X, algebra, children=6, population=3, max_failed_epochs=2)
    assert found.ended == "converged"
    assert len(journal.starts) >= 3  # one gains, and two in a row do not
    looks = [row.bits for row in monitor.history if row.move == "first look"]
    n_looks = len(looks) // len(journal.starts)
    assert len(set(looks[::n_looks])) == len(journal.starts)  # random numbers of each epoch are its own
    for before, after, limits in journal.evolved:
        assert after[0] <= before[0]
        assert max(len(before), len(after)) <= 3
        assert limits == {"max_failures": 6, "max_children": 6 if len(before) == 1 else None}
    assert journal.epochs[0] == 1
    assert journal.epochs == sorted(journal.epochs)
    epochs, together = [], []
    for number, (before, after, _) in zip(journal.epochs, journal.evolved, strict=True):
        if number > len(epochs):
            epochs.append(after[0])
        else:  # champions, if there are several that differ
            together.append(before)
            assert 2 <= len(before) <= min(3, number)
            assert before[0] <= min(epochs)
    assert len(epochs) == len(journal.starts)
    assert together
    best = [champions[0] for champions in together]
    assert best == sorted(best, reverse=True)  # the best one is never given up
    assert monitor.best_cost <= min(after[0] for _, after, _ in journal.evolved)


@every_algebra
@pytest.mark.usefixtures("few_trials_here")
def test_children_are_perturbed_or_recombined_in_turn(algebra, monkeypatch):
    journal = Journal(monkeypatch)
    _, monitor = searched(varied(algebra), algebra, more_starts=(), children=12, max_failed_epochs=0)
    ((before, after, _),), moves = journal.evolved, [row.move for row in monitor.history]
    assert len(before) == 1 < len(after)
    # One state alone is not recombined: children of the first group are all perturbed.
    assert (len(journal.perturbed), len(journal.recombined)) == (8, 4)
    assert (moves.count("perturb"), moves.count("recombine")) == (8, 4)
    children = [child.cost for _, made in journal.perturbed + journal.recombined for child in made]
    for parents, _ in journal.perturbed + journal.recombined:
        assert {parent.cost for parent in parents} <= {*before, *children}
    for (one, other), _ in journal.recombined:
        assert one.cost != other.cost or not one.has_atoms_of(other)
    assert after[0] == min(before + children)


@every_algebra
@pytest.mark.usefixtures("few_trials_here")
def test_fast_searches_make_no_children_and_all_but_the_anytime_one_have_one_epoch(algebra, noisy, monkeypatch):
    for children in (0, 5):
        journal = Journal(monkeypatch)
        found, _ = searched(noisy, algebra, children=children, max_failed_epochs=0)
        assert found.ended == "converged"
        assert (len(journal.starts), len(journal.evolved)) == (1, 1)
        assert len(journal.perturbed) + len(journal.recombined) == children


@pytest.mark.usefixtures("few_trials_here")
def test_a_table_that_is_coded_in_full_ends_the_search(monkeypatch):
    """A state that costs nothing cannot be improved."""
    journal = Journal(monkeypatch)
    found, monitor = searched(np.zeros((30, 0), np.uint8), "or", max_failed_epochs=10**6)
    assert (found.ended, monitor.best_cost) == ("converged", 0)
    assert len(journal.starts) == 1
    assert not journal.perturbed


@pytest.mark.parametrize("at", ["an early round", "a child", "a later epoch"])
@pytest.mark.usefixtures("few_trials_here")
def test_a_search_that_must_stop_leaves_its_best_state(noisy, monkeypatch, at):
    journal = Journal(monkeypatch)
    is_there = {
        "an early round": lambda row: row.round == 3,
        "a child": lambda row: row.move == "perturb",
        "a later epoch": lambda row: len(journal.starts) == 2,
    }[at]
    found, monitor = searched(noisy, "or", callbacks=[is_there])
    assert found.ended == "callback"
    assert monitor.best_cost == min(row.bits for row in monitor.history)
    assert len(journal.starts) == (2 if at == "a later epoch" else 1)
    assert len(journal.perturbed) == 0 if at == "an early round" else len(journal.perturbed) > 0


@pytest.mark.parametrize("max_rounds", [1, 7, 40])
@pytest.mark.usefixtures("few_trials_here")
def test_all_epochs_share_the_rounds_that_are_allowed(noisy, max_rounds):
    found, monitor = searched(noisy, "xor", max_rounds=max_rounds)
    assert found.ended == "max_iter"
    assert sum(row.move == "grow" for row in monitor.history) <= max_rounds
    assert monitor.best_cost == min(row.bits for row in monitor.history)


def test_a_search_that_must_stop_at_once_has_a_result(noisy):
    found, _ = searched(noisy, "or", max_rounds=0)
    assert found.ended == "max_iter"
    assert found.block.n_rows == len(noisy)


# A search that goes on from what another one finds is never worse.


def lengths(X, searches, **how):
    """Return the shortest codelengths that these searches find, which end by themselves."""
    results = [
        factorize(X, search=search, **how, **({"max_iter": 10**6} if search == "anytime" else {}))
        for search in searches
    ]
    assert all(result.converged for result in results)
    return [result.codelength.total for result in results]


TABLES = {
    "planted": lambda algebra, seed: planted_in(algebra, 80, 30, 5, noise=0.05, seed=seed).X,
    "noisy": lambda algebra, seed: planted_in(algebra, 60, 20, 4, noise=0.15, seed=seed).X,
    "long": lambda algebra, seed: planted_in(algebra, 250, 12, 5, noise=0.02, seed=seed).X,
}
every_table = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)


@every_table
@every_algebra
def test_a_thorough_search_is_never_worse_than_a_fast_one(table, algebra):
    found = []
    for seed in range(4):
        found.append(lengths(table(algebra, seed), ("fast", "thorough"), algebra=algebra, random_state=seed))
    assert all(thorough <= fast for fast, thorough in found)


@every_table
@every_algebra
def test_an_anytime_search_with_enough_rounds_is_never_worse_than_a_thorough_one(table, algebra, monkeypatch):
    monkeypatch.setitem(PLANS, "anytime", replace(PLANS["anytime"], max_failed_epochs=1))
    found = []
    for seed in range(3):
        found.append(lengths(table(algebra, seed), ("thorough", "anytime"), algebra=algebra, random_state=seed))
    assert all(anytime <= thorough for thorough, anytime in found)


def unknown_cells(algebra, seed):
    """Return a table of which a fifth is unknown."""
    X = TABLES["noisy"](algebra, seed).astype(float)
    X[np.random.default_rng(seed).random(X.shape) < 0.2] = np.nan
    return BitMatrix.from_dense(X, missing="unknown")


NUMBERS = {
    "few": (TABLES["noisy"], {"n_components": 4}),
    "many": (TABLES["noisy"], {"n_components": 17}),
    "unknown": (unknown_cells, {"n_components": 5}),
    "sampled": (TABLES["long"], {"n_components": 9}),
    "two per row": (TABLES["noisy"], {"n_components": 6, "constraints": Constraints(max_atoms_per_sample=2)}),
    "given": (lambda algebra, seed: random_bits(seed, 70, 24, 0.3), {"n_components": 4, "init": GIVEN}),
    "codelength": (TABLES["noisy"], {"n_components": 6, "objective": "codelength"}),
}


@every_algebra
@pytest.mark.parametrize(("table", "how"), NUMBERS.values(), ids=NUMBERS)
@pytest.mark.filterwarnings("ignore:.*were requested")
def test_neither_are_they_for_a_given_number_of_atoms(table, how, algebra, monkeypatch):
    """By the cells that are wrong or, if that is the objective, by the codelength."""
    use_budget(monkeypatch, max_trials=300, sample_rows=100, children=8, max_failures=4)
    monkeypatch.setitem(PLANS, "anytime", replace(PLANS["anytime"], max_failed_epochs=1))
    for seed in range(2):
        costs = []
        for search in ("fast", "thorough", "anytime"):
            limits = {"max_iter": 10**6} if search == "anytime" else {}
            X = table(algebra, seed)
            result = factorize(X, search=search, algebra=algebra, random_state=seed, **how, **limits)
            assert result.converged
            assert len(result.atoms) == how["n_components"]
            costs.append(result.wrong_bits if result.objective == "errors" else result.codelength.total)
        assert costs == sorted(costs, reverse=True)
