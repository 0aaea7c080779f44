"""Peeling: groups of near rows, and a basis that is completed by them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import naive
from bitatoms.datasets import planted
from bitatoms.engine.objective import Objective
from bitatoms.parallel import Workers
from bitatoms.search.plan import LinearBudget
from bitatoms.search.starts import linear
from bitatoms.search.starts.linear import _group_majorities, _near_limit, completed_basis
from support.blocks import bits_of, packed, unpacked
from support.contexts import search_context
from support.strategies import matrices, random_bits


def completed(X, basis, seed=9, workers=Workers(), **budget):  # noqa: B008 - frozen
    """Return the completed basis; ``seed`` is not that of a table, of which random rows would be made again."""
    context = search_context(X, Objective(True, "xor"), workers=workers, seed=seed)
    found = completed_basis(context, context.data, bits_of(basis), LinearBudget(**budget))
    assert found.n_cols == X.shape[1]
    return found.to_dense()


def table(n_atoms=8, seed=0):
    return planted(200, 100, n_atoms, atom_density=0.5, code_density=0.3, noise=0.05, random_state=seed)


@pytest.mark.parametrize(("n_known", "seed"), [(0, 0), (5, 1)])
def test_a_basis_is_completed_to_one_of_the_planted_space(n_known, seed):
    data = table(8 if n_known else 6, seed=seed)
    basis = completed(data.X, data.atoms[:n_known])
    assert naive.is_spanned(data.atoms, basis).all()
    assert len(basis) <= len(data.atoms) + 1
    np.testing.assert_array_equal(basis, completed(data.X, data.atoms[:n_known], 9, Workers(2, 64)))


@settings(max_examples=25)
@given(matrices(), st.sampled_from((0, 3)))
def test_any_table_and_any_basis_give_a_basis(X, n_known):
    basis = completed(X, random_bits(1, n_known, X.shape[1], 0.5))
    assert len(basis) <= max(n_known, 0.75 * min(X.shape))


def test_pivots_are_drawn_until_groups_are_found(monkeypatch):
    """At this noise, few pairs of rows have no error at 20 pivots."""
    data = planted(200, 100, 24, atom_density=0.5, code_density=0.3, noise=0.15, random_state=0)
    assert naive.is_spanned(data.atoms, completed(data.X, data.atoms[:20])).all()
    monkeypatch.setattr(linear, "N_DRAWS", 1)
    assert not naive.is_spanned(data.atoms, completed(data.X, data.atoms[:20])).all()


def test_vectors_that_no_row_uses_are_dropped():
    data = table()
    basis = completed(data.X, np.vstack([data.atoms, random_bits(8, 1, 100, 0.5)]))
    assert naive.is_spanned(data.atoms, basis).all()
    assert len(basis) == 8


def test_a_basis_has_no_more_vectors_than_a_share_of_the_columns(monkeypatch):
    data, none = table(6), np.zeros((0, 100), np.uint8)
    assert len(completed(data.X, none)) > 5
    monkeypatch.setattr(linear, "_MAX_RANK", 0.05)
    assert len(completed(data.X, none)) <= 5


def test_noise_adds_nothing():
    X = random_bits(0, 200, 100, 0.5)
    assert len(completed(X, np.zeros((0, 100), np.uint8))) == 0


def test_rows_are_near_only_where_chance_does_not_make_them_so():
    """Random rows at distances of about 50, and pairs at distances of about 10."""
    rows = random_bits(0, 100, 100, 0.5)
    assert _near_limit(packed(rows), 100, 0.03) == -1
    pairs = np.vstack([rows, rows[:20] ^ random_bits(1, 20, 100, 0.1)])
    limit = _near_limit(packed(pairs), 100, 0.03)
    near, distances = np.diag(naive.distances(pairs)[100:]), naive.distances(pairs)[np.tril_indices(120, -1)]
    assert near.max() <= limit < 40
    by_chance = norm.cdf((limit + 0.5 - np.median(distances)) / 5) * len(distances)
    assert by_chance <= 0.03 * (distances <= limit).sum()


@pytest.mark.parametrize("rows", [np.zeros((0, 70)), np.zeros((1, 70)), np.zeros((9, 70)), np.ones((9, 1))])
def test_rows_without_distances_have_no_limit(rows):
    assert _near_limit(packed(rows.astype(np.uint8)), rows.shape[1], 0.03) == -1


@pytest.mark.parametrize("n_cols", [64, 130])
def test_groups_are_taken_by_size_with_their_majorities(n_cols):
    """Groups of 9, 7, 5 and 4 rows; that of 4 is less than half as large, and zeros are passed over."""
    centres = random_bits(n_cols, 4, n_cols, 0.5)
    sizes = 9, 7, 5, 4
    rows = np.vstack([np.repeat(centres, sizes, axis=0), np.zeros((12, n_cols), np.uint8)])
    for j, row in enumerate(rows):
        row[j] ^= 1  # in no two rows the same
    order = np.random.default_rng(0).permutation(len(rows))
    found = unpacked(_group_majorities(packed(rows[order]), n_cols, 3, 8), n_cols)
    np.testing.assert_array_equal(found, centres[:3])
    np.testing.assert_array_equal(unpacked(_group_majorities(packed(rows), n_cols, 3, 2), n_cols), centres[:2])


def test_a_group_of_two_is_its_centre():
    """Where the two rows differ there is no majority."""
    rows = np.vstack([random_bits(0, 1, 70, 0.5), random_bits(1, 1, 70, 0.5), random_bits(2, 1, 70, 0.5)])
    rows[2] = rows[0]
    rows[2, :3] ^= 1
    found = _group_majorities(packed(rows), 70, 3, 4)
    np.testing.assert_array_equal(unpacked(found, 70), rows[:1])


def test_rows_that_are_not_near_have_no_groups():
    assert _group_majorities(packed(random_bits(0, 9, 70, 0.5)), 70, 3, 4).shape == (0, 2)
