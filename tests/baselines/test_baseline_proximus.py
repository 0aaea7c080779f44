"""Proximus: equal to the recursion, the largest patterns kept, and the search for the radius."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bitatoms import codelength, proximus
from bitatoms.baselines.proximus import Proximus
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


@settings(max_examples=60)
@given(TABLES, st.sampled_from((None, None, 1, 2, 5)), st.sampled_from((0, 1, 3, 9, 200)), SEEDS)
def test_largest_patterns_of_the_recursion_are_kept_and_samples_use_the_nearest(X, most, radius, seed):
    model = Proximus(most, radius=radius, random_state=seed).fit(X)
    recursion = proximus(X, radius, random_state=seed)
    atoms, codes = recursion.atoms.to_dense(), recursion.codes.to_dense()
    assert model.radius_ == radius
    if most is None or len(atoms) <= most:
        np.testing.assert_array_equal(model.components_, atoms)
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


def test_groups_of_samples_are_found():
    centres = random_bits(0, 5, 200, 0.3)
    X = np.repeat(centres, 30, axis=0) ^ random_bits(1, 150, 200, 0.02)
    for model in (Proximus(random_state=0), Proximus(5, random_state=0)):
        model.fit(X)
        assert sorted(model.components_.tolist()) == sorted(centres.tolist())
        np.testing.assert_array_equal(model.codes_ @ model.components_, np.repeat(centres, 30, axis=0))
