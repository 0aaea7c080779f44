"""DUDE: equal to a naive version of the rule in the paper."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from bitatoms.baselines import dude
from bitatoms.images.neighbors import MAX_NEIGHBORS
from support.strategies import matrices

SIDES = st.integers(1, 12)


@given(matrices(n_rows=SIDES, n_cols=SIDES), st.integers(1, MAX_NEIGHBORS), st.sampled_from((0.0, 0.013, 0.11, 0.37)))
@settings(max_examples=30)
def test_equals_the_naive_version(image, n_neighbors, noise):
    assert dude(image, n_neighbors, noise=noise).tolist() == naive.dude(image, n_neighbors, noise).tolist()


def test_estimates_the_noise_of_a_regular_picture():
    picture = np.tile(np.eye(4, dtype=bool), (40, 40))
    noisy = picture ^ (np.random.default_rng(0).random(picture.shape) < 0.02)
    clean = dude(noisy, 8)
    assert clean.dtype == bool
    assert (clean != picture).sum() < (noisy != picture).sum() / 5
    assert (clean == dude(noisy, 8, noise=0.02)).mean() > 0.999
