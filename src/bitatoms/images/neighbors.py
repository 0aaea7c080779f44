"""How often a pixel is a one, given the values of its nearest neighbours."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MAX_NEIGHBORS = 24
_RADIUS = 3
_TILE = 16  # pixels: tiles of this size alternate between the two folds


def neighbor_contexts(image: NDArray[np.bool_], n_neighbors: int) -> NDArray[np.int64]:
    """Return the nearest neighbours of each pixel as the bits of a number; beyond the border, all is 0."""
    height, width = image.shape
    padded = np.pad(image, _RADIUS).astype(np.int64)
    contexts = np.zeros(image.shape, np.int64)
    for down, across in _nearest(n_neighbors):
        top, left = _RADIUS + down, _RADIUS + across
        contexts = 2 * contexts + padded[top : top + height, left : left + width]
    return contexts


def _nearest(n_neighbors: int) -> list[tuple[int, int]]:
    """Return the offsets of the nearest neighbours, down and across."""
    side = range(-_RADIUS, _RADIUS + 1)
    offsets = [(down, across) for down in side for across in side if (down, across) != (0, 0)]
    return sorted(offsets, key=lambda offset: (offset[0] ** 2 + offset[1] ** 2, offset))[:n_neighbors]


def share_of_ones(image: NDArray[np.bool_], contexts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return for each pixel the share of ones among all pixels with its context."""
    totals, ones = _counts(image, contexts, int(contexts.max()) + 1)
    return ones[contexts] / totals[contexts]


def held_out_share(image: NDArray[np.bool_], contexts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the share of ones in the same context, counted in the other half of the picture.

    The share therefore does not depend on the pixel itself. It is strictly between 0 and 1.
    """
    height, width = image.shape
    fold = (np.arange(height)[:, np.newaxis] // _TILE + np.arange(width) // _TILE) % 2 == 0
    n_contexts = int(contexts.max()) + 1
    shares = np.empty(image.shape)
    for predicted in (fold, ~fold):
        totals, ones = _counts(image[~predicted], contexts[~predicted], n_contexts)
        shares[predicted] = ((ones + 0.5) / (totals + 1))[contexts[predicted]]
    return shares


def _counts(
    pixels: NDArray[np.bool_], contexts: NDArray[np.int64], n_contexts: int
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the number of pixels in each context, and the number of ones among them."""
    return np.bincount(contexts.ravel(), minlength=n_contexts), np.bincount(contexts[pixels], minlength=n_contexts)
