"""The noise: its estimate, and the probabilities of clean pixels."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitatoms.images.channel import clean_probability, denoised, estimate_noise

SHARES = st.floats(0, 1)


@given(SHARES, st.floats(0.001, 0.49))
def test_the_probability_follows_bayes_rule(prior, noise):
    chance = prior * (1 - noise) + (1 - prior) * noise
    for pixel in (False, True):
        one, zero = (prior * (1 - noise), (1 - prior) * noise) if pixel else (prior * noise, (1 - prior) * (1 - noise))
        found = clean_probability(np.array([pixel]), np.array([chance]), noise)[0]
        assert found == pytest.approx(one / (one + zero), abs=1e-9)


@given(SHARES, st.booleans())
def test_without_noise_no_pixel_changes(chance, pixel):
    image = np.array([pixel])
    assert denoised(image, clean_probability(image, np.array([chance]), 0.0)) == image


def test_the_noise_is_estimated_from_the_most_predictable_pixels():
    rng = np.random.default_rng(0)
    clean = rng.random((200, 200)) < 0.5
    certain = rng.random(clean.shape) < 0.3
    flipped = rng.random(clean.shape) < 0.07
    chance = np.where(certain, np.where(clean, 0.9375, 0.0625), 0.5)
    assert estimate_noise(clean ^ flipped, chance) == (flipped & certain).sum() / certain.sum()
