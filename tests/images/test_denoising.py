"""Denoising: fewer wrong pixels than before and than DUDE, the noise estimated, the same result for any threads."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

import bitatoms as ba
from bitatoms.images.channel import clean_probability, denoised, estimate_noise
from bitatoms.images.denoising import combine
from bitatoms.images.neighbors import held_out_share, neighbor_contexts

NOISE = 0.05

pytestmark = pytest.mark.usefixtures("few_trials")


@pytest.fixture(scope="module")
def picture():
    """A small halftone: a disk whose gray changes from left to right."""
    down, across = np.mgrid[-1:1:96j, -1:1:96j]
    gray = np.where(down**2 + across**2 < 0.8, 0.3 + 0.4 * (across > 0), 0.9)
    return ba.datasets.dither(gray)


@pytest.fixture(scope="module")
def noisy(picture):
    return picture ^ (np.random.default_rng(1).random(picture.shape) < NOISE)


@pytest.fixture(scope="module")
def result(noisy):
    return ba.denoise(noisy, block_sizes=6, random_state=0)


def test_denoises_better_than_dude_without_knowing_the_noise(picture, noisy, result):
    wrong = int((result.image != picture).sum())
    assert wrong < 0.2 * (noisy != picture).sum()
    assert wrong < 0.5 * min((ba.baselines.dude(noisy, size, noise=NOISE) != picture).sum() for size in (8, 12, 16))
    assert result.noise == pytest.approx(NOISE, rel=0.25)
    assert result.repetition > 0.1
    assert result.image.dtype == noisy.dtype
    assert result.n_changed == (result.image != noisy).sum()
    assert ((result.probability > 0.5) == result.image)[result.probability != 0.5].all()
    assert len(result.n_atoms) == 1


def test_the_result_depends_neither_on_threads_nor_on_the_dtype(noisy, result):
    again = ba.denoise(noisy.astype(bool), block_sizes=(6,), random_state=0, n_jobs=2)
    assert again.image.dtype == bool
    assert np.array_equal(again.image, result.image)
    assert np.array_equal(again.probability, result.probability)


def test_probabilities_do_not_depend_on_the_threads_of_blas():
    random = np.random.default_rng(0)
    picture = random.random((500, 500)) < 0.4
    features = [random.normal(size=picture.shape) + picture for _ in range(3)]
    found = []
    for n_threads in (1, 2):
        with threadpool_limits(n_threads):
            found.append(combine(picture, features))
    np.testing.assert_array_equal(*found)


def test_a_given_noise_decides(noisy):
    results = [ba.denoise(noisy[:40, :40], block_sizes=6, noise=level, random_state=0) for level in (0, 0.01, 0.2)]
    none, few, many = (result.n_changed for result in results)
    assert none == 0
    assert few < many


@pytest.mark.parametrize(("shape", "value"), [((1, 1), 0), ((1, 9), 1), ((3, 2), 0), ((7, 30), 1)])
def test_pictures_of_one_color_and_small_ones_do_not_change(shape, value):
    result = ba.denoise(np.full(shape, value, np.uint8), random_state=0)
    assert (result.image == value).all()
    assert (result.noise, result.n_changed, result.repetition) == (0, 0, 0)


def test_predictions_of_neighbours_do_not_depend_on_the_pixel():
    """Contexts are counted in the other half of the picture."""
    image = np.random.default_rng(0).random((20, 40)) < 0.3
    changed = image.copy()
    changed[5, 7] ^= True
    shares = (held_out_share(each, neighbor_contexts(each, 4)) for each in (image, changed))
    first, second = (share[5, 7] for share in shares)
    assert first == second


# --- the noise

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
