"""The same seed gives the same bits and the same history, however the work is divided among threads."""

import threading

import pytest
from scipy.sparse import csr_array

from support.chaos import KINDS, chaos
from support.results import assert_same_search
from support.strategies import random_bits

pytestmark = pytest.mark.usefixtures("few_trials")


def assert_same_in_chaos(kind, X, expected, seeds):
    for seed in seeds:
        rounds = []

        def record(row):
            assert threading.current_thread() is threading.main_thread()
            rounds.append(row)  # noqa: B023

        with chaos(seed) as n_jobs:
            found = kind.fit(X, n_jobs=n_jobs, callbacks=record)
        assert_same_search(found, expected)
        of_all_starts = len(found.codelengths) > 1 or "n_init" in kind.parameters  # the history is that of the best
        assert of_all_starts or tuple(rounds) == found.history[: len(rounds)]


@pytest.mark.parametrize(("name", "number"), [(name, number) for number, name in enumerate(KINDS)])
def test_sizes_and_order_of_jobs_change_neither_bits_nor_history(name, number):
    kind = KINDS[name]
    X, seeds = kind.table, sorted({3 * number + number % 3, 3 * number + 2})
    assert_same_in_chaos(kind, X, kind.fit(X), seeds)


@pytest.mark.parametrize("name", ["windows xor", "windows or", "5 atoms, fewest errors"])
def test_nor_do_they_where_the_table_is_sparse(name):
    kind = KINDS[name]
    X = kind.table & random_bits(3, *kind.table.shape, 0.3)
    assert_same_in_chaos(kind, csr_array(X), kind.fit(X), (4, 5))
