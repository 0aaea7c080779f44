"""Steps that are made at once: the result is that of making one after the other, whatever ends the search."""

import threading

import numpy as np
import pytest

import bitatoms as ba
from bitatoms import BitMatrix
from bitatoms.datasets import planted
from bitatoms.engine.objective import Objective
from bitatoms.parallel import OutOfTime, Workers
from bitatoms.search import monitor as monitor_module
from bitatoms.search.monitor import StoppingRule, at_once
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
def test_perturbations_start_from_the_best_state_so_far(search, n_threads, monkeypatch):
    """Steps 2 and 5 gain: all after them start from what they found."""
    made = search(n_threads)
    first = {random_of(seed): number for number, seed in enumerate(search(1).seeds(7))}
    begun = []

    def perturb(own, state):
        number = first[own.random.integers(2**62)]
        begun.append((number, state.cost))
        return [state._replace(cost=state.cost - 1 if number in (2, 5) else state.cost + number)]

    monkeypatch.setattr(MdlSearch, "perturb", perturb)
    assert made.perturb_often(state(100), 7).cost == 98
    expected = {(0, 100), (1, 100), (2, 100), (3, 99), (4, 99), (5, 99), (6, 98)}
    assert expected <= set(begun)
    if n_threads == 1:
        assert begun == sorted(expected)


def test_a_perturbation_that_gains_nothing_leaves_the_state(search, monkeypatch):
    first = state(100)
    monkeypatch.setattr(MdlSearch, "perturb", lambda own, state: [state._replace(cost=state.cost)])
    for n_threads in THREADS:
        assert search(n_threads).perturb_often(first, 3) is first


def random_of(seed):
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
