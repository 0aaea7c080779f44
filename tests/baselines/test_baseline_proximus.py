"""Proximus: equal to the recursion, the largest patterns kept, and the search for the radius."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bitatoms import codelength, proximus
from bitatoms.baselines.proximus import Proximus
from bitatoms.datasets import digits, planted
from support.strategies import SEEDS, matrices, random_bits

TABLES = matrices(st.sampled_from((1, 2, 17, 65)), st.sampled_from((1, 2, 9, 64, 65)))


def wrong(model, X):
    return int((model.codes_ @ model.components_ != X).sum())  # at most one pattern per sample


def nearest(X, atoms):
    """Return codes with the first of the nearest patterns per sample, or none if that is no better."""
    codes = np.zeros((len(X), len(atoms)), np.uint8)
    for i, row in enumerate(X):
        left = [int((row != atom).sum()) for atom in atoms]
        if min(left) < row.sum():
            codes[i, left.index(min(left))] = 1
    return codes


@settings(max_examples=40)
@given(TABLES, st.sampled_from((0, 1, 3, 200)), SEEDS)
def test_without_n_components_equals_the_recursion(X, radius, seed):
    model = Proximus(radius=radius, random_state=seed).fit(X)
    expected = proximus(X, radius, random_state=seed)
    np.testing.assert_array_equal(model.components_, expected.atoms.to_dense())
    np.testing.assert_array_equal(model.codes_, expected.codes.to_dense())
    assert model.radius_ == radius


@settings(max_examples=40)
@given(TABLES, st.integers(1, 5), st.sampled_from((0, 2, 9)), SEEDS)
def test_largest_patterns_are_kept_and_samples_use_the_nearest(X, most, radius, seed):
    model = Proximus(most, radius=radius, random_state=seed).fit(X)
    recursion = proximus(X, radius, random_state=seed)
    atoms, codes = recursion.atoms.to_dense(), recursion.codes.to_dense()
    if len(atoms) <= most:
        np.testing.assert_array_equal(model.codes_, codes)
        return
    sizes = codes.sum(axis=0).tolist()
    largest = sorted(sorted(range(len(atoms)), key=lambda k: -sizes[k])[:most])
    np.testing.assert_array_equal(model.components_, atoms[largest])
    np.testing.assert_array_equal(model.codes_, nearest(X, atoms[largest]))


@settings(max_examples=30)
@given(TABLES, st.sampled_from((None, 1, 4)), SEEDS)
def test_auto_radius_is_no_worse_than_the_widest(X, most, seed):
    found = Proximus(most, random_state=seed).fit(X)
    widest = Proximus(most, radius=X.shape[1], random_state=seed).fit(X)  # tried first
    if most is None:
        assert found.codelength_.total <= widest.codelength_.total
        assert found.codelength_ == codelength(X, found.components_, found.codes_)
    else:
        assert found.n_components_ <= most
        assert wrong(found, X) <= wrong(widest, X)


def test_auto_radius_on_digits_is_near_the_best():
    X = digits()[0][::3]
    found = Proximus(16, random_state=0).fit(X)
    others = [wrong(Proximus(16, radius=radius, random_state=0).fit(X), X) for radius in range(6, 20, 2)]
    assert wrong(found, X) <= 1.05 * min(others)
    assert wrong(found, X) < 0.13 * X.size


def test_largest_patterns_are_better_than_a_wide_radius():
    X = digits()[0][::3]
    for radius in range(12, 64):
        few = proximus(X, radius, random_state=0)
        if few.atoms.n_rows <= 16:
            break
    assert wrong(Proximus(16, random_state=0).fit(X), X) < 0.75 * few.wrong.sum()


def test_groups_of_samples_are_found():
    centres = random_bits(0, 5, 200, 0.3)
    X = np.repeat(centres, 30, axis=0) ^ random_bits(1, 150, 200, 0.02)
    for model in (Proximus(random_state=0), Proximus(5, random_state=0)):
        model.fit(X)
        assert sorted(model.components_.tolist()) == sorted(centres.tolist())
        np.testing.assert_array_equal(model.codes_ @ model.components_, np.repeat(centres, 30, axis=0))


def test_wrong_cells_on_planted_factors():
    """One pattern per sample cannot describe samples of several atoms."""
    X = planted(500, 200, 8, algebra="or", random_state=0).X
    for seed in range(2):
        assert wrong(Proximus(8, random_state=seed).fit(X), X) < 0.12 * X.size


def test_same_seed_gives_same_bits():
    X, _ = digits()
    first, second = (Proximus(10, random_state=4).fit(X[:300]) for _ in range(2))
    assert first.radius_ == second.radius_
    np.testing.assert_array_equal(first.components_, second.components_)
    np.testing.assert_array_equal(first.codes_, second.codes_)


@pytest.mark.parametrize("most", [None, 1, 3])
@pytest.mark.parametrize("shape", [(1, 1), (1, 70), (70, 1), (65, 65)])
def test_constant_tables_have_at_most_one_pattern(shape, most):
    for value, count in ((0, 0), (1, 1)):
        X = np.full(shape, value, np.uint8)
        model = Proximus(most, random_state=0).fit(X)
        assert model.components_.shape == (count, shape[1])
        assert wrong(model, X) == 0


def test_duplicate_rows_have_the_same_pattern():
    X = np.repeat(random_bits(0, 6, 65, 0.4), 7, axis=0)
    codes = Proximus(4, random_state=0).fit(X).codes_
    np.testing.assert_array_equal(codes, np.repeat(codes[::7], 7, axis=0))


@pytest.mark.parametrize(
    ("parameters", "error", "match"),
    [
        ({"radius": -1}, ValueError, "radius must be at least 0, not -1"),
        ({"radius": "small"}, ValueError, "radius='small' is not available; choose from 'auto' or an integer"),
        ({"radius": 1.5}, TypeError, "radius must be an integer, not 1.5"),
        ({"n_components": 0}, ValueError, "n_components must be at least 1"),
    ],
)
def test_invalid_parameters_raise(parameters, error, match):
    with pytest.raises(error, match=match):
        Proximus(**parameters).fit([[1, 0], [0, 1]])
