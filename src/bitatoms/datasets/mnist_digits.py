"""MNIST, the handwritten digits of the paper: fetched or read from its files, downsampled and binarized."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..validation import check_int

SIDE = 28  # height and width of the original images, in pixels
_MAX_GRAY = 255
_N_TEST = 10_000  # size of the test set, the last rows of OpenML's table


class Digits(NamedTuple):
    """Binary images of digits, and their labels if known."""

    X: NDArray[np.uint8]
    y: NDArray | None


def mnist(
    path: str | os.PathLike[str] | None = None,
    *,
    labels: str | os.PathLike[str] | None = None,
    side: int = 17,
    data_home: Any = None,
) -> Digits:
    """Return the 10 000 test digits of MNIST as binary images, by default of 17 × 17 pixels as in the paper.

    The paper does not describe how its digits were reduced to 17 × 17. Here, a pixel is 1 if the mean ink over its area
    in the 28 × 28 image is at least one half, computed exactly.

    Parameters
    ----------
    path : str or path-like, optional
        An image file of MNIST, such as ``t10k-images-idx3-ubyte.gz``, compressed or not. By default the digits are
        fetched from OpenML by scikit-learn, which caches them.
    labels : str or path-like, optional
        The label file that belongs to ``path``, such as ``t10k-labels-idx1-ubyte.gz``, compressed or not.
    side : int, default=17
        Height and width of the images, from 1 to 28.
    data_home : str or path-like, optional
        The cache folder of scikit-learn.

    Returns
    -------
    X : ndarray of shape (n_digits, side * side), uint8
        1 is ink.
    y : ndarray of shape (n_digits,) or None
        The label of each row. None if the images are read from a file and ``labels`` is not passed.

    Examples
    --------
    >>> from bitatoms.datasets import mnist
    >>> X, y = mnist()  # doctest: +SKIP
    >>> X.shape  # doctest: +SKIP
    (10000, 289)
    """
    side = check_int("side", side, least=1)
    if side > SIDE:
        raise ValueError(f"side must be at most {SIDE}, the size of the images of MNIST, not {side}")
    if path is not None:
        images = _read_idx(Path(path), "images", 3)
        if images.shape[1:] != (SIDE, SIDE):
            height, width = images.shape[1:]
            raise ValueError(f"{path}: the images have {height} × {width} pixels, but those of MNIST {SIDE} × {SIDE}")
        y = None if labels is None else _read_idx(Path(labels), "labels", 1).astype(np.int64)
        if y is not None and len(y) != len(images):
            raise ValueError(f"{labels}: {len(y)} labels for {len(images)} images; pass the file of the same set")
        return Digits(downsample(images, side), y)
    if labels is not None:
        raise ValueError("labels= is the label file of the images in path=; pass both or neither")
    gray, y = _fetch(data_home)
    return Digits(downsample(gray, side), y)


def downsample(gray: NDArray, side: int) -> NDArray[np.uint8]:
    """Return images of shape (n, size, size), 0 to 255, as bits of shape (n, side**2): 1 where at least half is ink."""
    size = gray.shape[1]
    # In units of 1 / (size * side) of the width, all overlaps of old and new pixels are integers, hence exact.
    new, old = np.arange(side)[:, np.newaxis] * size, np.arange(size) * side
    overlaps = np.clip(np.minimum(new + size, old + side) - np.maximum(new, old), 0, None).astype(np.float64)
    bits = np.empty((len(gray), side * side), np.uint8)
    for start in range(0, len(gray), 1024):
        chunk = gray[start : start + 1024].astype(np.float64)
        ink = overlaps @ chunk @ overlaps.T  # integers below 2**53
        bits[start : start + len(chunk)] = (2 * ink >= _MAX_GRAY * size * size).reshape(len(chunk), -1)
    return bits


def _read_idx(path: Path, content: str, n_dims: int) -> NDArray[np.uint8]:
    """Return the array of an IDX file, compressed or not: four magic bytes, its shape, then its values."""
    with open(path, "rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(path) if compressed else open(path, "rb") as file:
            found = file.read()
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}: the file is truncated or corrupt ({error}); download it again") from error
    if found[:4] != bytes((0, 0, 8, n_dims)):
        raise ValueError(
            f"{path}: not a file of {content} of MNIST; pass one such as t10k-{content}-idx{n_dims}-ubyte.gz"
        )
    begin = 4 + 4 * n_dims
    shape = np.frombuffer(found[4:begin].ljust(4 * n_dims, b"\0"), ">u4").astype(np.int64)
    if not shape.all() or len(found) != begin + shape.prod():
        raise ValueError(f"{path}: the file is truncated or corrupt; download it again")
    return np.frombuffer(found, np.uint8, offset=begin).reshape(shape)


def _fetch(data_home: Any) -> tuple[NDArray, NDArray]:
    """Return the test images and labels from OpenML."""
    from sklearn.datasets import fetch_openml

    try:
        table = fetch_openml("mnist_784", version=1, as_frame=False, parser="liac-arff", data_home=data_home)
    except OSError as error:  # no network, or no disk space
        raise OSError(
            f"MNIST could not be fetched from OpenML ({error}); pass the file t10k-images-idx3-ubyte.gz instead"
        ) from error
    images = np.asarray(table.data[-_N_TEST:]).reshape(-1, SIDE, SIDE)
    return images, np.asarray(table.target[-_N_TEST:]).astype(np.int64)
