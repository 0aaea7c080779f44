"""Fill the holes of a binary picture by atoms learned from its known pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import binary_dilation

from ..datasets.pictures import as_2d, as_picture, binary_image
from ..device_choice import workers_for
from ..parallel import Workers
from ..parameters import with_options
from ..validation import as_generator
from .blocks import evidence_at
from .learning import BlockModel, learn_blocks
from .options import BlockOptions

_TEST_SHARE, _MAX_TESTED = 0.02, 5000  # of the known pixels: hidden, to measure how many are predicted


@dataclass(frozen=True, eq=False)
class Inpainted:
    """The result of `inpaint`.

    Attributes
    ----------
    image : ndarray of shape (height, width)
        The picture with its holes filled, of the dtype of the given one.
    n_filled : int
        Number of unknown pixels.
    accuracy : float
        The share of pixels predicted correctly, of a sample of known pixels that were hidden for this test. Pixels
        deep inside a large hole are predicted less well.
    baseline : float
        The same share if every pixel had the more frequent value.
    n_atoms : tuple of int
        Number of atoms for each block size.
    """

    image: NDArray[Any]
    n_filled: int
    accuracy: float
    baseline: float
    n_atoms: tuple[int, ...]


@with_options(BlockOptions)
def inpaint(
    image: Any,
    mask: Any,
    options: BlockOptions,
) -> Inpainted:
    """Fill the holes of a binary picture: pixels whose value is unknown.

    Atoms are learned from the known pixels of the overlapping blocks of the picture. Holes are filled from their border
    inwards, one layer of pixels at a time. A pixel becomes the value with which the blocks that contain it are
    described in fewer bits; pixels that are still unknown count for nothing. Known pixels do not change.

    Parameters
    ----------
    image : array-like of shape (height, width)
        0 and 1, or bools. The values under the mask are ignored, whatever they are.
    mask : array-like of shape (height, width)
        1 or True where a pixel is unknown.
    {parameters}

    Returns
    -------
    Inpainted
        With ``image``, and ``accuracy``, which is measured on known pixels.

    Examples
    --------
    >>> import bitatoms as ba
    >>> import numpy as np
    >>> picture = np.tile(ba.datasets.dither(np.full((6, 6), 0.6)), (10, 10))
    >>> mask = np.zeros(picture.shape, bool)
    >>> mask[20:40, 28:32] = True
    >>> result = ba.inpaint(np.where(mask, 0, picture), mask, random_state=1)
    >>> result.n_filled, int((result.image != picture).sum())
    (80, 0)
    """
    image = as_2d("image", image)
    unknown = binary_image("mask", mask).astype(bool)
    if unknown.shape != image.shape:
        raise ValueError(f"mask has shape {unknown.shape}, but image has shape {image.shape}")
    picture = as_picture("image", np.where(unknown, 0, image))  # under the mask, there may be NaN or 255
    if unknown.all():
        raise ValueError("mask covers all pixels, so there is nothing to learn from")
    n_cells = picture.size * max(options.block_sizes) ** 2 // options.stride**2  # of the table of blocks
    random, workers = as_generator(options.random_state), workers_for(options.n_jobs, options.device, n_cells)
    models = learn_blocks(picture, unknown, options, random)
    known = picture[~unknown]
    tested = _sample(~unknown, random)
    predicted = _predict(picture & ~tested, unknown | tested, tested, models, workers)
    filled = _filled(picture, unknown, models, workers)
    return Inpainted(
        image=filled.astype(image.dtype),
        n_filled=int(unknown.sum()),
        accuracy=float((predicted == picture)[tested].mean()),
        baseline=float(max(known.mean(), 1 - known.mean())),
        n_atoms=tuple(learned.model.atoms.n_rows for learned in models),
    )


def _sample(known: NDArray[np.bool_], random: np.random.Generator) -> NDArray[np.bool_]:
    """Return a sample of the known pixels."""
    indices = np.flatnonzero(known)
    n_tested = min(_MAX_TESTED, max(1, round(_TEST_SHARE * len(indices))))
    sample = np.zeros(known.shape, bool)
    sample.flat[random.choice(indices, n_tested, replace=False)] = True
    return sample


def _filled(
    picture: NDArray[np.bool_], unknown: NDArray[np.bool_], models: list[BlockModel], workers: Workers
) -> NDArray[np.bool_]:
    """Return the picture with all unknown pixels predicted, the layer next to known pixels first."""
    while unknown.any():
        layer = unknown & binary_dilation(~unknown, np.ones((3, 3), bool))
        picture = np.where(layer, _predict(picture, unknown, layer, models, workers), picture)
        unknown = unknown & ~layer
    return picture


def _predict(
    picture: NDArray[np.bool_],
    unknown: NDArray[np.bool_],
    wanted: NDArray[np.bool_],
    models: list[BlockModel],
    workers: Workers,
) -> NDArray[np.bool_]:
    """Return whether the wanted pixels, which are unknown, are more likely ones."""
    total = np.zeros(picture.shape)
    for model, grid, unit in models:
        total += evidence_at(wanted, model, grid.cut(picture, unknown), grid, workers) / unit
    return total > 0
