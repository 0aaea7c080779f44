"""Binary pictures: digits, halftones, and pictures cut into blocks and put back together."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..frames import on_host
from ..system.libraries import import_library
from ..validation import check_int, check_pair

# The order in which the pixels of a dot turn black, taken from the halftone picture of the paper. The second dot of
# each 6 × 6 cell is three pixels down and across from the first: a screen at 45 degrees.
_DOT = np.array([[17, 16, 4, 0, 1, 13], [14, 11, 8, 3, 6, 10], [2, 5, 9, 15, 12, 7]])
_SCREEN = np.vstack([_DOT, np.roll(_DOT, 3, axis=1)])


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Return scikit-learn's handwritten digits as binary images of 8 × 8 pixels.

    Returns
    -------
    X : ndarray of shape (1797, 64), uint8
        1 where the gray value is above 7 of 16.
    y : ndarray of shape (1797,)
        The label of each row.

    Examples
    --------
    >>> from bitatoms.datasets import digits
    >>> X, y = digits()
    >>> X.shape, round(float(X.mean()), 3)
    ((1797, 64), 0.323)
    """
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return (X > 7).astype(np.uint8), y


def dither(gray: Any) -> np.ndarray:
    """Turn a gray picture into black dots, as in print.

    This is ordered dithering with the clustered-dot screen of the paper's picture: two dots per 6 × 6 pixels, at 45
    degrees, 19 tones. An area of one gray level becomes one pattern, which blocks of 16 × 16 show in several positions.
    Error diffusion would give a finer picture but hardly ever the same block twice, and so no patterns to find.

    Parameters
    ----------
    gray : array-like of shape (height, width)
        Integers from 0 (black) to 255 (white), or floats from 0 to 1.

    Returns
    -------
    ndarray of shape (height, width), uint8
        1 is black.

    Examples
    --------
    >>> import numpy as np
    >>> from bitatoms.datasets import dither
    >>> dither(np.full((6, 9), 0.8))
    array([[0, 0, 0, 1, 1, 0, 0, 0, 0],
           [0, 0, 0, 1, 0, 0, 0, 0, 0],
           [1, 0, 0, 0, 0, 0, 1, 0, 0],
           [1, 1, 0, 0, 0, 0, 1, 1, 0],
           [1, 0, 0, 0, 0, 0, 1, 0, 0],
           [0, 0, 0, 1, 0, 0, 0, 0, 0]], dtype=uint8)
    """
    gray = as_2d("gray", gray)
    if np.issubdtype(gray.dtype, np.integer):
        white = 255
    elif np.issubdtype(gray.dtype, np.floating):
        white = 1
    else:
        raise TypeError(f"gray has dtype {gray.dtype}; pass integers from 0 to 255, or floats from 0 to 1")
    invalid = ~((gray >= 0) & (gray <= white))  # true for NaN, too
    if invalid.any():
        raise ValueError(f"gray contains values outside 0 to {white} ({_first(gray, invalid)}); scale it to that range")
    height, width = gray.shape
    screen = _SCREEN[np.arange(height)[:, None] % 6, np.arange(width) % 6]
    return (_DOT.size * (white - gray.astype(np.float64)) > white * (screen + 0.5)).astype(np.uint8)


def halftone(enlarge: int = 2) -> np.ndarray:
    """Return a photograph as a halftone: the picture of a temple in China that comes with scikit-learn.

    This needs Pillow, which ``bitatoms[image]`` installs.

    Parameters
    ----------
    enlarge : int, default=2
        Number of halftone pixels per pixel of the photograph, in each direction. A printer's screen is finer than the
        picture: with 2, a block of 16 × 16 shows few tones, and the same patterns recur all over the picture.

    Returns
    -------
    ndarray of shape (427 * enlarge, 640 * enlarge), uint8
        1 is black.

    Examples
    --------
    >>> from bitatoms.datasets import cut_blocks, halftone
    >>> picture = halftone()
    >>> picture.shape
    (854, 1280)
    >>> cut_blocks(picture, block=(16, 16)).shape
    (4320, 256)
    """
    enlarge = check_int("enlarge", enlarge, least=1)
    import_library("PIL", "halftone() needs")  # scikit-learn reads the JPEG with it
    from sklearn.datasets import load_sample_image

    photograph = load_sample_image("china.jpg")
    # integer luminance, so that rounding is the same on all machines
    gray = (photograph.astype(np.int64) @ np.array([299, 587, 114]) + 500) // 1000
    return dither(gray.repeat(enlarge, axis=0).repeat(enlarge, axis=1))


def cut_blocks(image: Any, block: tuple[int, int] = (16, 16)) -> np.ndarray:
    """Cut a binary picture into blocks, from left to right and top to bottom.

    Parameters
    ----------
    image : array-like of shape (height, width)
        0 and 1. It is padded with zeros at the right and at the bottom to full blocks.
    block : pair of int, default=(16, 16)
        Height and width of a block.

    Returns
    -------
    ndarray of shape (n_blocks, block height × block width), uint8
        One flattened block per row.

    See Also
    --------
    stitch_blocks : The inverse.

    Examples
    --------
    >>> import numpy as np
    >>> from bitatoms.datasets import cut_blocks
    >>> cut_blocks(np.eye(3), block=(2, 2))
    array([[1, 0, 0, 1],
           [0, 0, 0, 0],
           [0, 0, 0, 0],
           [1, 0, 0, 0]], dtype=uint8)
    """
    image = binary_image("image", image)
    block_height, block_width = check_pair("block", block, least=1)
    height, width = image.shape
    down, across = -(-height // block_height), -(-width // block_width)
    padded = np.zeros((down * block_height, across * block_width), dtype=np.uint8)
    padded[:height, :width] = image
    blocks = padded.reshape(down, block_height, across, block_width).swapaxes(1, 2)
    return blocks.reshape(down * across, block_height * block_width)


def stitch_blocks(X: Any, shape: tuple[int, int], block: tuple[int, int] = (16, 16)) -> np.ndarray:
    """Put the blocks of `cut_blocks` back together into a picture, without the padding.

    Parameters
    ----------
    X : array-like or BitMatrix of shape (n_blocks, block height × block width)
        One flattened block per row; 0 and 1.
    shape : pair of int
        Height and width of the picture.
    block : pair of int, default=(16, 16)
        Height and width of a block.

    Returns
    -------
    ndarray of shape ``shape``, uint8

    See Also
    --------
    cut_blocks : The inverse.

    Examples
    --------
    >>> import numpy as np
    >>> from bitatoms.datasets import cut_blocks, stitch_blocks
    >>> picture = np.eye(3, dtype=np.uint8)
    >>> bool((stitch_blocks(cut_blocks(picture, (2, 2)), picture.shape, (2, 2)) == picture).all())
    True
    """
    X = binary_image("X", X.to_dense() if hasattr(X, "to_dense") else X)
    height, width = check_pair("shape", shape, 0)
    block_height, block_width = check_pair("block", block, least=1)
    down, across = -(-height // block_height), -(-width // block_width)
    n_blocks, n_pixels = down * across, block_height * block_width
    if X.shape != (n_blocks, n_pixels):
        raise ValueError(
            f"X is {X.shape[0]} × {X.shape[1]}, but an image of {height} × {width} in blocks of {block_height} × "
            f"{block_width} takes {n_blocks} × {n_pixels}; pass the shape and block that the image was cut with"
        )
    blocks = X.reshape(down, across, block_height, block_width).swapaxes(1, 2)
    return blocks.reshape(down * block_height, across * block_width)[:height, :width].copy()


def as_2d(name: str, value: Any) -> np.ndarray:
    """Return a 2-D array, or raise."""
    array = np.asarray(on_host(value, name))
    if array.ndim != 2:
        hint = " (convert a color image to gray first)" if array.ndim == 3 else ""
        raise ValueError(f"{name} has {array.ndim} dimensions; pass a 2-D array{hint}")
    return array


def as_picture(name: str, value: Any) -> np.ndarray:
    """Return a picture of 0 and 1 with at least one pixel as bools, or raise."""
    picture = binary_image(name, value).astype(bool)
    if not picture.size:
        raise ValueError(f"{name} has shape {picture.shape}, and so no pixels")
    return picture


def binary_image(name: str, value: Any) -> np.ndarray:
    """Return a 2-D array of 0 and 1 as uint8, or raise."""
    array = as_2d(name, value)
    invalid = (array != 0) & (array != 1)
    if invalid.any():
        first = _first(array, invalid)
        raise ValueError(f"{name} contains values other than 0 and 1 ({first}); threshold or dither it first")
    return array.astype(np.uint8)


def _first(array: np.ndarray, invalid: np.ndarray) -> str:
    """Describe the first invalid value."""
    row, column = np.unravel_index(int(invalid.argmax()), array.shape)
    return f"first: {array[row, column]} at row {row}, column {column}"
