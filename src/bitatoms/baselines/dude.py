"""DUDE: denoise a picture by how often each value of a pixel occurs in each context."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..datasets.pictures import as_picture
from ..images.channel import clean_probability, denoised, estimate_noise
from ..images.neighbors import MAX_NEIGHBORS, held_out_share, neighbor_contexts, share_of_ones
from ..validation import check_int, check_noise


def dude(image: Any, n_neighbors: int = 12, *, noise: float | None = None) -> NDArray[Any]:
    """Denoise a binary picture by DUDE, the discrete universal denoiser of Weissman et al.

    The context of a pixel is the values of its nearest neighbours. The ones and zeros of the noisy picture are counted
    in each context. A pixel is flipped if its value is so rare in its context that it is more likely noise.

    Parameters
    ----------
    image : array-like of shape (height, width)
        0 and 1, or bools. Beyond the border, the neighbours are 0.
    n_neighbors : int, default=12
        Number of pixels in a context, at most 24. More describe the picture better, but are seen less often.
    noise : float, optional
        The probability that a pixel was flipped, below 0.5. By default it is estimated from the contexts in which one
        value is rarest.

    Returns
    -------
    ndarray of shape (height, width)
        The denoised picture, of the dtype of ``image``.

    References
    ----------
    T. Weissman, E. Ordentlich, G. Seroussi, S. Verdú, M. J. Weinberger, "Universal discrete denoising: known channel",
    IEEE Transactions on Information Theory 51(1), 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from bitatoms.baselines import dude
    >>> picture = np.tile(np.eye(4, dtype=np.uint8), (20, 20))
    >>> noisy = picture ^ (np.random.default_rng(0).random(picture.shape) < 0.05)
    >>> int((noisy != picture).sum()), int((dude(noisy, 8) != picture).sum())
    (328, 44)
    """
    picture = as_picture("image", image)
    n_neighbors = check_int("n_neighbors", n_neighbors, 1)
    if n_neighbors > MAX_NEIGHBORS:
        raise ValueError(f"n_neighbors must be at most {MAX_NEIGHBORS}, not {n_neighbors}")
    contexts = neighbor_contexts(picture, n_neighbors)
    if noise is None:
        noise = estimate_noise(picture, held_out_share(picture, contexts))
    else:
        noise = check_noise("noise", noise)
    probability = clean_probability(picture, share_of_ones(picture, contexts), noise)
    return denoised(picture, probability).astype(np.asarray(image).dtype)
