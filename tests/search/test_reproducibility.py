"""The same seed gives the same bits, for any number of threads and chunks."""

from itertools import cycle

import pytest

from bitatoms import api, factorize, parallel
from bitatoms.parallel import Workers
from support.plans import use_budget
from support.results import (
    GOALS,
    SEARCHES,
    assert_matches_oracle,
    assert_same_search,
    every_algebra,
    every_search,
    planted_in,
)
from support.strategies import random_bits

pytestmark = pytest.mark.usefixtures("few_trials")


def variants(X, monkeypatch):
    """Return ways to run the same search: numbers of threads, and chunks of rows."""

    def in_chunks(n_threads):
        return lambda **how: _in_chunks(X, monkeypatch, n_threads, how)

    return [
        *(lambda n_jobs=n_jobs, **how: factorize(X, n_jobs=n_jobs, **how) for n_jobs in (1, 2, 3)),
        in_chunks(1),
        in_chunks(2),
    ]


def _in_chunks(X, monkeypatch, n_threads, how):
    with monkeypatch.context() as patch:
        patch.setattr(api, "Workers", lambda n: Workers(n_threads, 64))
        return factorize(X, **how)


@every_algebra
@every_search
@pytest.mark.parametrize(("n_components", "seed"), [("mdl", 0), (5, 1), (20, 0)])
def test_threads_and_chunks_do_not_change_the_result(monkeypatch, algebra, search, n_components, seed):
    monkeypatch.setattr(parallel, "_WAKE_NS", 1e-3)  # split even the smallest job between threads
    use_budget(monkeypatch, max_trials=3, sample_rows=100 if seed else 4000)
    X = planted_in(algebra, 130, 40, 4, noise=0.05, seed=seed).X
    how = {"n_components": n_components, "algebra": algebra, "search": search, "random_state": seed}
    runs = variants(X, monkeypatch)
    first, *others = (run(**how) for run in ([runs[0], *runs[2:4]] if seed == 0 else [runs[0], runs[-1]]))
    for other in others:
        assert_same_search(first, other)
    assert_matches_oracle(first, X)


@pytest.mark.parametrize(
    ("search", "how"),
    [
        ("fast", {"algebra": "auto", "n_init": 2}),
        ("thorough", {"n_components": 20, "objective": "codelength"}),
    ],
)
def test_threads_and_chunks_do_not_change_restarts_and_both_algebras(monkeypatch, dense_table, search, how):
    monkeypatch.setattr(parallel, "_WAKE_NS", 1e-3)
    X = dense_table[:130, :45]
    how = {**how, "search": search, "patience": 1, "random_state": 2}
    first, *others = (run(**how) for run in variants(X, monkeypatch)[2:4])
    for other in others:
        assert_same_search(first, other)


@pytest.mark.parametrize(("goal", "search"), [*zip(GOALS, cycle(SEARCHES), strict=False)])
def test_the_same_seed_gives_the_same_bits(small, goal, search):
    n_components, objective = goal
    how = {"objective": objective, "search": search}
    X = small if objective == "codelength" else random_bits(0, 100, 40, 0.4)  # seeds agree on the few errors of `small`
    first, again, other = (factorize(X, n_components, **how, random_state=seed) for seed in (5, 5, 6))
    assert_same_search(first, again)
    assert [row[:-1] for row in other.history] != [row[:-1] for row in first.history]
