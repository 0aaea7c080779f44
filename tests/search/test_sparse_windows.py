"""Sparse tables are searched by their ones: the result is that of the packed table, and has the planted bundles."""

import itertools
import time
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import csr_array

import bitatoms as ba
from bitatoms.parallel import Workers
from bitatoms.search.windows import driver as windows
from support.bundles import N_COLS, N_ROWS, bundles, table_with_bundles
from support.clock import WorkClock
from support.results import assert_matches_oracle, assert_same_search, bits_without_atoms

pytestmark = pytest.mark.usefixtures("few_trials")


@pytest.fixture(scope="module")
def table():
    return table_with_bundles()


@pytest.fixture(scope="module")
def result(table):
    return ba.factorize(table, algebra="or", random_state=0)


def test_bundles_are_found_exactly(result, table):
    assert_matches_oracle(result, table)
    assert result.converged
    found = {tuple(np.flatnonzero(atom)) for atom in result.atoms.to_dense()}
    assert {tuple(columns) for columns in bundles()} <= found
    assert not result.bias.any()  # column 77 is in no window
    assert result.codelength.total < bits_without_atoms(table)
    assert result.history[0].bits == result.bits_without == bits_without_atoms(table)
    assert result.history[-1].bits == result.codelength.total


def test_figures_count_all_rows(result, table):
    np.testing.assert_array_equal(result.ones, table.sum(axis=0))
    missed = (table == 1) & (result.reconstruct().to_dense() == 0)
    np.testing.assert_array_equal(result.missed, missed.sum(axis=0))
    atoms, codes = result.atoms.to_dense(), result.codes.to_dense()
    assert result.complete.tolist() == [(table[:, atom == 1] == 1).all(axis=1).sum() for atom in atoms]
    for k in range(3):
        without = np.delete(atoms, k, axis=0), np.delete(codes, k, axis=1)
        assert result.saved[k] == ba.codelength(table, *without, algebra="or").total - result.codelength.total


def test_all_rows_are_searched(table, result, monkeypatch):
    monkeypatch.setattr("bitatoms.rows.subsample._MAX_ROWS", 300)
    found = ba.factorize(csr_array(table), algebra="or", random_state=0)
    assert {row.rows for row in found.history} == {N_ROWS}
    assert_same_search(found, result)


def test_a_table_of_which_nothing_is_related():
    X = (np.random.default_rng(0).random((300, N_COLS)) < 0.002).astype(np.uint8)
    result = ba.factorize(csr_array(X), algebra="or", random_state=0)
    assert result.atoms.shape == (0, N_COLS)
    assert result.codes.shape == (300, 0)
    assert_matches_oracle(result, X)


def test_a_search_without_time_searches_no_window(table, monkeypatch):
    ticks = itertools.count(1000.0)
    monkeypatch.setattr(time, "perf_counter", lambda: next(ticks))
    monkeypatch.setattr(windows, "search_mdl", None)
    result = ba.factorize(csr_array(table), algebra="or", random_state=0, max_time=1e-9)
    assert_matches_oracle(result, table)
    assert result.ended == "max_time"


def test_windows_get_enough_time_or_none(monkeypatch):
    """An equal share of little time would be too short for any of many windows."""
    search, now = object.__new__(windows.WindowSearch), WorkClock(monkeypatch).now
    search.monitor = SimpleNamespace(started=now, deadline=now + 1000)
    search.workers = Workers(1)
    all_of_them, seconds = lambda item: True, lambda item, share: share.deadline - now
    first, *_ = search._map(seconds, range(10**4), all_of_them, 1.0)
    assert 0.4 < first < 1
    first, *_ = search._map(seconds, range(10**4), lambda item: item in (0, 99), 1.0)
    assert first > 400  # the others take no time
    search.workers = Workers(2)
    first, *_ = search._map(seconds, range(10**4), lambda item: item in (0, 99), 1.0)
    assert first > 900  # both at once
    search.monitor.deadline = now  # the time is up
    assert max(search._map(lambda item, share: share.deadline - now, range(5), all_of_them, 1.0)) <= 0
