"""Steps that are made at once: the result is that of making one after the other, whatever ends the search."""

import threading
from dataclasses import replace
from functools import partial
from itertools import count

import numpy as np
import pytest

import bitatoms as ba
from bitatoms import BitMatrix
from bitatoms.datasets import planted
from bitatoms.engine.objective import Objective
from bitatoms.parallel import OutOfTime, Workers
from bitatoms.search import mdl_search
from bitatoms.search import monitor as monitor_module
from bitatoms.search.loop import Population, evolve
from bitatoms.search.monitor import StoppingRule, at_once
from bitatoms.search.plan import PLANS
from bitatoms.search.rounds import MdlSearch
from bitatoms.search.states import State
from support.chaos import chaos
from support.contexts import search_context
from support.results import assert_same_search

pytestmark = pytest.mark.usefixtures("few_trials")

N, M = 120, 24
THREADS = (1, 2, 5)


@pytest.fixture(autouse=True)
def small_tables_too(monkeypatch):
    """Make several steps at once, however short they are."""
    monkeypatch.setattr(monitor_module, "_MIN_CELLS", 0)


def factors():
    """Return planted factors."""
    return planted(N, M, 4, atom_density=0.3, noise=0.05, random_state=0)


@pytest.fixture(scope="module")
def X():
    return factors().X


@pytest.mark.parametrize("how", [{}, {"algebra": "auto"}])
def test_a_search_ends_at_the_same_round_with_any_number_of_threads(X, how):
    """By a callback, or by the limit of rounds for all branches together."""

    def ended_at(last, n_jobs=1):
        seen = []

        def stop(row):
            assert threading.current_thread() is threading.main_thread()
            seen.append(row[:-1])
            return len(seen) == last

        return ba.factorize(X, random_state=0, n_jobs=n_jobs, callbacks=stop, **how), seen

    n_rounds = len(ended_at(None)[1])  # of all starts
    assert n_rounds > 30
    for last, n_jobs in ((6, 2), (n_rounds // 2, 3)):
        alone, rounds = ended_at(last)
        with chaos(3 * last + n_jobs - 1):
            found, seen = ended_at(last, n_jobs)
        assert_same_search(found, alone)
        assert seen == rounds
        assert len(seen) == last
    for max_iter in (6, 17):
        found = (ba.factorize(X, random_state=0, n_jobs=n_jobs, max_iter=max_iter, **how) for n_jobs in (1, 3))
        assert_same_search(*found)


@pytest.fixture
def search(X):
    """Return a search with a number of threads."""

    def make(n_threads, callbacks=(), **limits):
        context = search_context(X, Objective(True, "xor"), workers=Workers(n_threads, **limits), callbacks=callbacks)
        return MdlSearch(context, StoppingRule(context.monitor, None))

    return make


def state(cost):
    factors = BitMatrix.zeros(0, M), BitMatrix.zeros(N, 0), BitMatrix.zeros(1, M)
    return State(cost, *factors, np.zeros(M, np.int64), ba.Codelength(0, 0, 0))


@pytest.mark.parametrize("n_threads", THREADS)
def test_children_of_a_group_have_parents_and_random_numbers_of_their_own(search, n_threads, monkeypatch):
    """Whatever the number of threads: one state, or two different ones, drawn in the order of the children."""
    made, expected = search(n_threads), search(1)
    states = [state_with_atom(cost) for cost in (1, 2, 3)]
    population, seen = Population(3, states), {}

    def child(own, number, *parents):
        seen[own.random.integers(2**62)] = [parent.cost for parent in parents]
        return [state(number())]

    numbers = count(10)
    monkeypatch.setattr(mdl_search, "_perturbed", lambda own, state: child(own, lambda: state.cost, state))
    monkeypatch.setattr(mdl_search, "_recombined", lambda own, one, other: child(own, lambda: 0, one, other))
    found = mdl_search.children(made, population, numbers, 4)
    drawn = expected.random
    seeds = drawn.bit_generator.seed_seq.spawn(4)
    parents = []
    for number in range(10, 14):
        if number % 2:
            ((one, other),) = population.pairs(1, drawn)
            parents.append([one.cost, other.cost])
        else:
            parents.append([states[int(drawn.integers(3))].cost])
    assert [seen[random_of(seed)] for seed in seeds] == parents
    assert [each.cost for each in found] == [costs[0] if len(costs) == 1 else 0 for costs in parents]
    assert next(numbers) == 14


@pytest.mark.parametrize("algebra", ["xor", "or"])
def test_groups_of_children_are_the_same_with_any_number_of_threads(X, algebra):
    """Also the history, and what the next groups are made of."""
    found, plan = [], replace(PLANS["fast"], by_beam=True, max_rounds=10**6)
    for n_threads in THREADS:
        context = search_context(X, Objective(True, algebra), plan, Workers(n_threads))
        own = MdlSearch(context)
        starts = [own.state_of(context.block(context.data[first : first + 5])) for first in (0, 40, 80)]
        population, numbers = Population(4, starts), count()
        with chaos(n_threads):
            evolve(
                population,
                partial(mdl_search.children, own, population, numbers),
                own.stopping,
                max_failures=100,
                max_children=10,
            )
        members = [(each.cost, each.atoms.words.tolist(), each.codes.words.tolist()) for each in population]
        history = [row[:-1] for row in context.monitor.history]
        found.append((members, history, next(numbers), own.random.integers(2**62)))
    moves = [row[1] for row in found[0][1]]
    assert (moves.count("perturb"), moves.count("recombine")) == (5, 5)
    assert found[0][0][0][0] < min(start.cost for start in starts)
    assert found[1] == found[0]
    assert found[2] == found[0]


@pytest.mark.parametrize(("how", "n_jobs"), [({"search": "thorough"}, 5), ({"search": "anytime", "max_iter": 70}, 2)])
@pytest.mark.parametrize("algebra", ["xor", "or"])
def test_searches_with_children_find_the_same_with_any_number_of_threads(X, how, n_jobs, algebra):
    alone = ba.factorize(X, algebra=algebra, random_state=0, **how)
    assert "perturb" in {row.move for row in alone.history}
    with chaos(n_jobs):
        assert_same_search(ba.factorize(X, algebra=algebra, random_state=0, n_jobs=n_jobs, **how), alone)


def test_children_that_a_callback_ends_are_the_last(X):
    """At the same row of the history with any number of threads."""
    full = [row.move for row in ba.factorize(X, search="thorough", algebra="or", random_state=0).history]
    last = full.index("perturb") + 5
    found = []
    for n_jobs in THREADS:
        how = {"algebra": "or", "random_state": 0, "n_jobs": n_jobs, "callbacks": lambda row: row.round == last}
        with chaos(n_jobs):
            found.append(ba.factorize(X, search="thorough", **how))
    assert found[0].ended == "callback"
    assert [row.move for row in found[0].history][:last] == full[:last]
    assert_same_search(found[0], found[1])
    assert_same_search(found[0], found[2])


def state_with_atom(cost):
    """Return a state with an atom, by which it differs from others."""
    return state(cost)._replace(atoms=BitMatrix.from_dense(np.eye(1, M, cost, np.uint8)))


def random_of(seed):
    """Return the first random number of a step with this seed."""
    return np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=seed.spawn_key)).integers(2**62)


@pytest.mark.parametrize(("n_threads", "error"), [(1, OutOfTime), (2, MemoryError), (5, KeyboardInterrupt)])
def test_the_best_state_of_any_branch_is_kept_if_the_search_is_cut_off(search, X, n_threads, error):
    made = search(n_threads)
    atoms = BitMatrix.from_dense(factors().atoms)
    is_recorded = threading.Event()

    def good(own):
        block = own.context.block(atoms)
        own.run_flat_sweeps(block)
        is_recorded.set()
        return [own.state_of(block)]

    def fails(own):
        own.record(own.context.block(BitMatrix.zeros(0, M)), "start")
        if n_threads > 1:
            assert is_recorded.wait(60)
        raise error

    makes = [good, fails] if n_threads == 1 else [fails, good]
    with pytest.raises(error):
        list(made.steps(makes))
    assert made.context.monitor.best.atoms.n_rows == 4


def test_steps_after_one_that_ends_the_search_return_nothing(search):
    for n_threads in THREADS:
        made = search(n_threads, [lambda row: row.round == 2])

        def one(own):
            own.record(own.context.block(BitMatrix.zeros(0, M)), "start")
            return [state(1)]

        assert [len(states) for states in made.steps([one] * 4)] == [1, 1, 0, 0]
        assert len(made.context.monitor.history) == 2


def test_steps_of_small_tables_and_those_in_series_are_made_one_after_the_other(monkeypatch):
    monkeypatch.setattr(monitor_module, "_MIN_CELLS", 10)
    assert [at_once(9), at_once(10), at_once(9, True), at_once(10, True)] == [1, None, 1, 1]
