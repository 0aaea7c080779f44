"""Pictures: digits, a halftone, and a large one cut in blocks and stitched back."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..validation import check_int, check_pair

# The order in which the pixels of a dot turn black, as read off the halftone picture of the paper. The second dot of a
# tile of 6 × 6 lies three pixels down and across from the first: a screen at 45 degrees.
_DOT = np.array([[17, 16, 4, 0, 1, 13], [14, 11, 8, 3, 6, 10], [2, 5, 9, 15, 12, 7]])
_SCREEN = np.vstack([_DOT, np.roll(_DOT, 3, axis=1)])


def digits() -> tuple[np.ndarray, np.ndarray]:
    """Return scikit-learn's handwritten digits as black and white pictures of 8 × 8.

    Returns
    -------
    X : ndarray of shape (1797, 64), uint8
        1 where the ink is darker than 7 of 16.
    y : ndarray of shape (1797,)
        The digit that each row shows.

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

    The screen is the clustered-dot one of the paper's picture: two dots to 6 × 6 pixels, at 45 degrees, 19 tones. An
    area of one gray is then one pattern, which blocks of 16 × 16 show in several positions. Error diffusion would give
    a finer picture, but hardly ever the same block twice, and so no patterns to find.

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
    gray = _picture("gray", gray)
    if np.issubdtype(gray.dtype, np.integer):
        white = 255
    elif np.issubdtype(gray.dtype, np.floating):
        white = 1
    else:
        raise TypeError(f"gray holds {gray.dtype}; pass integers from 0 to 255, or floats from 0 to 1")
    # written so that NaN is refused too
    bad = ~((gray >= 0) & (gray <= white))
    if bad.any():
        raise ValueError(f"gray holds values outside 0 to {white} ({_first(gray, bad)}); scale it to that range")
    height, width = gray.shape
    screen = _SCREEN[np.arange(height)[:, None] % 6, np.arange(width) % 6]
    return (_DOT.size * (white - gray.astype(np.float64)) > white * (screen + 0.5)).astype(np.uint8)


def halftone(enlarge: int = 2) -> np.ndarray:
    """Return a photograph as a halftone: a temple in China, the picture that comes with scikit-learn.

    Reading the picture needs Pillow, which comes with ``bitatoms[plot]``.

    Parameters
    ----------
    enlarge : int, default=2
        Pixels of the halftone for one of the photograph, each way. A printer's screen is finer than the picture: with
        2, a block of 16 × 16 shows few tones, and the same patterns come back all over the picture.

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
    try:
        import PIL  # noqa: F401  (scikit-learn reads the JPEG with it, and names no extra of ours)
    except ImportError as missing:
        raise ImportError('halftone() reads a JPEG with Pillow; get it with pip install "bitatoms[plot]"') from missing
    from sklearn.datasets import load_sample_image

    photograph = load_sample_image("china.jpg")
    # luminance in whole numbers, so that no rounding differs between machines
    gray = (photograph.astype(np.int64) @ np.array([299, 587, 114]) + 500) // 1000
    return dither(gray.repeat(enlarge, axis=0).repeat(enlarge, axis=1))


def cut_blocks(image: Any, block: tuple[int, int] = (16, 16)) -> np.ndarray:
    """Cut a black and white picture into blocks, one flattened block a row, from left to right and top to bottom.

    Parameters
    ----------
    image : array-like of shape (height, width)
        0 and 1. It is padded with zeros at the right and at the bottom to whole blocks.
    block : pair of int, default=(16, 16)
        Height and width of a block.

    Returns
    -------
    ndarray of shape (n_blocks, block height × block width), uint8

    See Also
    --------
    stitch_blocks : The way back.

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
    image = _bits("image", _picture("image", image))
    tall, wide = check_pair("block", block, least=1)
    height, width = image.shape
    down, across = -(-height // tall), -(-width // wide)
    whole = np.zeros((down * tall, across * wide), dtype=np.uint8)
    whole[:height, :width] = image
    return whole.reshape(down, tall, across, wide).swapaxes(1, 2).reshape(down * across, tall * wide)


def stitch_blocks(X: Any, shape: tuple[int, int], block: tuple[int, int] = (16, 16)) -> np.ndarray:
    """Put the blocks of `cut_blocks` back into a picture, without the padding.

    Parameters
    ----------
    X : array-like or BitMatrix of shape (n_blocks, block height × block width)
        One flattened block a row; 0 and 1.
    shape : pair of int
        Height and width of the picture.
    block : pair of int, default=(16, 16)
        Height and width of a block.

    Returns
    -------
    ndarray of shape ``shape``, uint8

    See Also
    --------
    cut_blocks : The way there.

    Examples
    --------
    >>> import numpy as np
    >>> from bitatoms.datasets import cut_blocks, stitch_blocks
    >>> picture = np.eye(3, dtype=np.uint8)
    >>> bool((stitch_blocks(cut_blocks(picture, (2, 2)), picture.shape, (2, 2)) == picture).all())
    True
    """
    X = _bits("X", _picture("X", X.to_dense() if hasattr(X, "to_dense") else X))
    height, width = check_pair("shape", shape, 0)
    tall, wide = check_pair("block", block, least=1)
    down, across = -(-height // tall), -(-width // wide)
    if X.shape != (down * across, tall * wide):
        raise ValueError(
            f"X is {X.shape[0]} × {X.shape[1]}, but a picture of {height} × {width} in blocks of {tall} × {wide} "
            f"takes {down * across} × {tall * wide}; pass the shape and block that the picture was cut with"
        )
    whole = X.reshape(down, across, tall, wide).swapaxes(1, 2).reshape(down * tall, across * wide)
    return whole[:height, :width].copy()


def _picture(name: str, value: Any) -> np.ndarray:
    array = np.asarray(value)
    if array.ndim != 2:
        hint = " (turn a color picture gray first)" if array.ndim == 3 else ""
        raise ValueError(f"{name} has {array.ndim} dimensions; pass a 2-D array{hint}")
    return array


def _bits(name: str, array: np.ndarray) -> np.ndarray:
    bad = (array != 0) & (array != 1)
    if bad.any():
        raise ValueError(f"{name} holds values other than 0 and 1 ({_first(array, bad)}); threshold or dither it first")
    return array.astype(np.uint8)


def _first(array: np.ndarray, bad: np.ndarray) -> str:
    row, column = np.unravel_index(int(bad.argmax()), array.shape)
    return f"first: {array[row, column]} at row {row}, column {column}"
