"""Noise that flips pixels, each with the same probability: how to estimate it, and how to undo it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

# The noise is estimated from this share of the pixels, the most predictable ones; from more if these are few.
_SHARE, _MAX_SHARE, _MIN_PIXELS = 0.1, 0.25, 5000
_MAX_NOISE = 0.49


def estimate_noise(image: NDArray[np.bool_], chance: NDArray[np.float64]) -> float:
    """Estimate the share of flipped pixels, from the pixels that the others predict best.

    ``chance`` is the probability of a one, predicted from the other pixels only. Where it is closest to 0 or 1, a clean
    pixel would agree with it, so the share that disagrees is that of the noise. Where few pixels are predictable, the
    estimate is too high.
    """
    doubt = np.minimum(chance, 1 - chance)
    n_pixels = max(1, round(max(_SHARE * image.size, min(_MAX_SHARE * image.size, _MIN_PIXELS))))
    predictable = doubt <= np.partition(doubt, n_pixels - 1, axis=None)[n_pixels - 1]
    n_wrong = np.count_nonzero(predictable & (image != (chance > 0.5)))
    return min(_MAX_NOISE, n_wrong / int(np.count_nonzero(predictable)))


def clean_probability(image: NDArray[np.bool_], chance: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    """Return the probability that a clean pixel is a one, given the noisy pixel and the others.

    ``chance`` is p (1 - noise) + (1 - p) noise, where p is the probability of a one given only the other pixels. Bayes'
    rule then takes the pixel itself into account.
    """
    prior = np.clip((chance - noise) / (1 - 2 * noise), 0, 1)
    one = prior * np.where(image, 1 - noise, noise)
    zero = (1 - prior) * np.where(image, noise, 1 - noise)
    total = one + zero
    # A pixel that contradicts all others, without noise, stays as it is.
    return np.divide(one, total, out=image.astype(np.float64), where=total > 0)


def denoised(image: NDArray[np.bool_], probability: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return the more probable value of each pixel, and the noisy one where both are equally probable."""
    return np.where(probability == 0.5, image, probability > 0.5)
