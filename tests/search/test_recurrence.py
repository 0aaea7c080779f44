"""Patterns recur: an atom has two users or more, where the codelength decides how many atoms there are.

The tables have rows of their own, dense and unlike all others, which a search would describe by copies of them.
"""

import dask
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

import bitatoms as ba
from bitatoms.engine.objective import Objective
from bitatoms.rows.passes import dropped_atoms
from bitatoms.search.moves.drop import drop_rare
from support.blocks import block_of
from support.parameters import nested, resolved
from support.plans import use_small_budget, use_windows
from support.results import every_algebra
from support.strategies import random_bits
from support.ways import WAYS

SINGLE = 4  # rows of their own
SEARCHES = pytest.mark.parametrize(
    "search", [{"search": "fast"}, {"search": "thorough"}, {"search": "anytime", "max_iter": 30}], ids=str
)


def table(n_rows=120, n_cols=70, seed=0):
    """Return a planted table whose last rows are dense and unlike the others."""
    X = ba.datasets.planted(
        n_rows, n_cols, 3, algebra="or", atom_density=0.1, code_density=0.3, noise=0.02, random_state=seed
    ).X
    X[-SINGLE:] = random_bits(seed + 1, SINGLE, n_cols, 0.6)
    return X


X = table()
HIDDEN = random_bits(7, *X.shape, 0.1).astype(bool)


@pytest.fixture(autouse=True)
def small_budget(monkeypatch):
    """Let searches make few steps of each kind."""
    use_small_budget(monkeypatch)


def fit(X=X, n_components="mdl", **parameters):
    """Return the factorization of a table."""
    return ba.factorize(X, n_components, **nested(random_state=0, **parameters))


def assert_recurs(result, n_fixed=0):
    """Assert that there are atoms, and that learned ones have two users or more."""
    assert len(result.uses) > n_fixed
    assert (result.uses[n_fixed:] > 1).all()


def test_the_tables_tempt_a_search_to_copy_rows(monkeypatch):
    monkeypatch.setattr("bitatoms.search.plan.MIN_USERS", 0)
    for algebra in ("or", "xor"):
        result = fit(algebra=algebra)
        assert (result.uses == 1).sum() == SINGLE


@every_algebra
@SEARCHES
@pytest.mark.parametrize("mask", [None, HIDDEN], ids=["known", "unknown cells"])
def test_atoms_have_two_users(algebra, search, mask):
    result = fit(algebra=algebra, mask=mask, **search)
    assert_recurs(result)
    np.testing.assert_array_equal(result.uses, result.codes.to_dense().sum(axis=0))


@every_algebra
@pytest.mark.parametrize("way", WAYS)
def test_atoms_have_two_users_in_every_way_to_fit(algebra, way, tmp_path):
    with dask.config.set(scheduler="synchronous"):
        parameters = {"algebra": algebra, "random_state": 0}
        assert_recurs(way(parameters, np.vstack([table(seed=seed) for seed in range(3)]), tmp_path))


@every_algebra
@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["windows", "sparse windows"])
def test_atoms_of_wide_tables_have_two_users(monkeypatch, algebra, form):
    use_windows(monkeypatch, min_features=128, width=48)
    assert_recurs(fit(form(table(n_cols=160)), algebra=algebra))


@every_algebra
@pytest.mark.parametrize(
    "how",
    [
        {"init": X[-SINGLE:]},
        {"init": (X[-SINGLE:], np.eye(len(X), SINGLE, SINGLE - len(X), dtype=np.uint8))},
        {"init": "samples"},
        {"max_components": 4},
        {"max_atoms_per_sample": 1},
        {"max_features_per_atom": 12},
        {"bias": False},
        {"forget": 0.01},
    ],
    ids=str,
)
def test_atoms_have_two_users_wherever_a_search_starts_and_within_limits(algebra, how):
    if "forget" not in how:
        assert_recurs(fit(algebra=algebra, **how))
        return
    model = ba.BinaryDictionaryLearning(algebra=algebra, random_state=0, **nested(**how))
    for batch in np.array_split(X, 6):
        model.partial_fit(batch)
        assert (model.as_model().uses > 1).all()


@every_algebra
@pytest.mark.parametrize("stop_after", [1, 2, 3, 5, 8, 13, 21])
def test_a_search_that_is_stopped_has_atoms_with_two_users(algebra, stop_after):
    def stop(row):
        return row.round == stop_after

    def interrupt(row):
        if stop(row):
            raise KeyboardInterrupt

    stopped = fit(algebra=algebra, callbacks=[stop])
    assert (stopped.uses > 1).all()
    with pytest.raises(ba.Interrupted) as interrupted:
        fit(algebra=algebra, callbacks=[interrupt])
    assert (interrupted.value.result.uses > 1).all()


@every_algebra
def test_a_resumed_search_has_atoms_with_two_users(tmp_path, algebra):
    def interrupt(row):
        if row.round == 20:
            raise KeyboardInterrupt

    how = {"algebra": algebra, "checkpoint": tmp_path / "checkpoint"}
    with pytest.raises(KeyboardInterrupt):
        fit(callbacks=[interrupt], **how)
    assert_recurs(fit(resume=True, **how))


@every_algebra
def test_a_row_that_occurs_twice_has_two_users(algebra):
    """A weight counts as equal rows."""
    weights = np.ones(len(X), int)
    weights[-1] = 2
    for result in (fit(np.vstack([X, X[-1]]), algebra=algebra), fit(algebra=algebra, sample_weight=weights)):
        assert_recurs(result)
        used = result.codes[len(X) - 1 : len(X)].to_dense()[0] > 0
        assert (result.uses[used] == 2).any()
        np.testing.assert_array_equal(result.reconstruct().to_dense()[len(X) - 1], X[-1])


@every_algebra
def test_atoms_that_are_asked_for_may_have_one_user(algebra):
    result = fit(n_components=7, algebra=algebra)
    assert result.atoms.n_rows == 7
    assert (result.uses == 1).any()
    rows, fixed = np.hstack([X, np.zeros((len(X), 30), np.uint8)]), np.arange(100)[np.newaxis] >= 70
    rows[-1, 70:] = 1
    for how in ({}, {"max_features_per_atom": 30}):
        result = fit(rows, algebra=algebra, fixed_atoms=fixed, **how)
        np.testing.assert_array_equal(result.atoms.to_dense()[:1], fixed)
        assert result.uses[0] == 1
        assert_recurs(result, n_fixed=1)


def test_the_search_of_the_paper_is_as_published():
    rows = np.vstack([X[:40], X[-SINGLE:]])
    assert (fit(rows, search="paper", algebra="or").uses == 1).any()


@pytest.mark.parametrize("algebra", ["or", "xor"])
def test_no_atoms_of_a_single_row(algebra):
    assert fit(random_bits(0, 1, 70, 0.4), algebra=algebra).atoms.n_rows == 0


def test_passes_leave_out_atoms_that_one_row_uses():
    saved, uses = np.array([30, 20, 10, -1]), np.array([9, 1, 2, 5])
    assert dropped_atoms(saved, uses, resolved()).tolist() == [1, 3]
    assert dropped_atoms(saved, uses, resolved(4)).tolist() == []
    assert dropped_atoms(saved, uses, resolved(min_samples_per_atom=3)).tolist() == [1, 2, 3]


@given(st.integers(0, 2**32 - 1), st.sampled_from(["or", "xor"]), st.integers(2, 5))
def test_rare_atoms_are_dropped_until_none_is_left(seed, algebra, min_users):
    rng = np.random.default_rng(seed)
    codes = (rng.random((40, 9)) < rng.random(9) / 3).astype(np.uint8)
    block = block_of(random_bits(rng, 40, 30, 0.3), random_bits(rng, 9, 30, 0.3), codes, algebra)
    frequent = (block.uses() >= min_users).all()
    n_dropped = drop_rare(block, Objective(True, algebra), min_users)
    assert block.n_atoms == 9 - n_dropped
    assert (block.uses() >= min_users).all()
    assert (n_dropped == 0) == frequent
