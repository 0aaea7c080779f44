"""Denoise a binary picture by atoms learned from its own blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import logit

from ..datasets.pictures import as_picture
from ..device_choice import workers_for
from ..frames import on_host
from ..parameters import with_options
from ..validation import as_generator
from .blocks import evidence
from .channel import clean_probability, denoised, estimate_noise
from .learning import learn_blocks
from .neighbors import held_out_share, neighbor_contexts
from .options import DenoiseOptions

_N_NEIGHBORS = (4, 8, 12, 16, 20)  # context sizes to choose from
#: Below this value of ``Denoised.repetition``, blocks hardly help.
LITTLE_REPETITION = 0.05


@dataclass(frozen=True, eq=False)
class Denoised:
    """The result of `denoise`.

    Attributes
    ----------
    image : ndarray of shape (height, width)
        The denoised picture, of the dtype of the noisy one.
    noise : float
        The probability that a pixel was flipped: estimated, or as given.
    probability : ndarray of shape (height, width), float64
        The probability that each clean pixel is a one.
    n_changed : int
        Number of pixels in which ``image`` differs from the noisy picture.
    repetition : float
        By what share the blocks of the picture shorten the codelength of its pixels, compared with their nearest
        neighbours alone. Below 0.05, few blocks recur, and the result is about that of `bitatoms.baselines.dude`.
    n_atoms : tuple of int
        Number of atoms for each block size.
    """

    image: NDArray[Any]
    noise: float
    probability: NDArray[np.float64]
    n_changed: int
    repetition: float
    n_atoms: tuple[int, ...]


@with_options(DenoiseOptions)
def denoise(
    image: Any,
    options: DenoiseOptions,
) -> Denoised:
    """Remove noise from a binary picture: pixels that were flipped, each with the same probability.

    Atoms are learned from the overlapping blocks of the noisy picture. Each block is then coded with both values of
    each of its pixels. The difference in bits, averaged over the blocks that contain the pixel, predicts the pixel
    from the others. It is combined with the prediction of the nearest neighbours, and a pixel is flipped if it
    contradicts the prediction so clearly that noise is the more probable cause. Neither the clean picture nor the
    noise need be known. See docs/tutorials/images.md for the pictures for which this works well.

    Parameters
    ----------
    image : array-like of shape (height, width)
        0 and 1, or bools.
    {parameters}

    Returns
    -------
    Denoised
        With ``image``, the estimated ``noise``, and ``repetition``, which shows whether the blocks helped.

    Examples
    --------
    >>> import bitatoms as ba
    >>> import numpy as np
    >>> picture = np.tile(ba.datasets.dither(np.full((6, 6), 0.6)), (12, 12))
    >>> noisy = picture ^ (np.random.default_rng(0).random(picture.shape) < 0.1)
    >>> result = ba.denoise(noisy, random_state=0)
    >>> int((noisy != picture).sum()), int((result.image != picture).sum())
    (543, 3)
    """
    image = on_host(image)
    picture = as_picture("image", image)
    n_cells = picture.size * max(options.block_sizes) ** 2 // options.stride**2  # of the table of blocks
    random, workers = as_generator(options.random_state), workers_for(options.n_jobs, options.device, n_cells)
    models = learn_blocks(picture, None, options, random)
    near = neighbor_evidence(picture)
    features = [near, *(evidence(model, grid.cut(picture), grid, workers) for model, grid, _ in models)]
    weighted = combine(picture, features)
    chance = calibrated(picture, weighted)
    noise = estimate_noise(picture, weighted) if options.noise is None else options.noise
    probability = clean_probability(picture, chance, noise)
    clean = denoised(picture, probability)
    return Denoised(
        image=clean.astype(np.asarray(image).dtype),
        noise=noise,
        probability=probability,
        n_changed=int(np.count_nonzero(clean != picture)),
        repetition=_saving(bits_per_pixel(picture, calibrated(picture, near)), bits_per_pixel(picture, chance)),
        n_atoms=tuple(learned.model.atoms.n_rows for learned in models),
    )


def neighbor_evidence(picture: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the log-odds of a one given the nearest neighbours, as many as give the shortest codelength."""
    shares = [held_out_share(picture, neighbor_contexts(picture, number)) for number in _N_NEIGHBORS]
    return logit(min(shares, key=lambda share: bits_per_pixel(picture, share)))


def combine(picture: NDArray[np.bool_], features: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the probability of a one by logistic regression on features that do not depend on the pixel itself."""
    from sklearn.linear_model import LogisticRegression

    if picture.all() or not picture.any():
        return picture.astype(np.float64)
    pixels = np.column_stack([feature.ravel() for feature in features])
    spread = pixels.std(axis=0)
    # Products of sparse arrays are added in one order; BLAS has another one for each number of its threads.
    pixels = csr_array((pixels - pixels.mean(axis=0)) / np.where(spread > 0, spread, 1))
    chance: NDArray[np.float64] = LogisticRegression().fit(pixels, picture.ravel()).predict_proba(pixels)[:, 1]
    return chance.reshape(picture.shape)


def calibrated(picture: NDArray[np.bool_], score: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of ones among pixels of about the same score, which rises with the score."""
    from sklearn.isotonic import IsotonicRegression

    chance: NDArray[np.float64] = IsotonicRegression().fit_transform(score.ravel(), picture.ravel())
    return chance.astype(np.float64).reshape(picture.shape)


def bits_per_pixel(picture: NDArray[np.bool_], chance: NDArray[np.float64]) -> float:
    """Return the mean codelength of a pixel that is a one with this probability."""
    return float(-np.log2(np.maximum(np.where(picture, chance, 1 - chance), 1e-12)).mean())


def _saving(before: float, after: float) -> float:
    """Return by which share a codelength became shorter."""
    return 1 - after / before if before > 0 else 0.0
