"""MNIST, the handwritten digits of the paper: fetched or from their files, made small and black and white."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..validation import check_int

SIDE = 28  # pixels of a digit as it comes
_WHITE = 255
_IMAGES = (0, 0, 8, 3)  # the first bytes of a file of pictures: bytes, three dimensions
_LABELS = (0, 0, 8, 1)  # those of the file that says what they show
_TEST = 10_000  # digits of the test set, the last ones of OpenML's table


class Digits(NamedTuple):
    """Digits, and what each shows where that is known."""

    X: NDArray[np.uint8]
    y: NDArray | None


def mnist(path: str | os.PathLike[str] | None = None, *, side: int = 17, data_home: Any = None) -> Digits:
    """Return the 10 000 test digits of MNIST as black and white pictures, by default of 17 × 17 as in the paper.

    The paper does not say how its digits came to be 17 × 17. Here a pixel is black where the ink on its share of the
    28 × 28 picture covers at least half of it (the mean over that area, exactly).

    Parameters
    ----------
    path : str or path-like, optional
        A file of pictures as MNIST is published, such as ``t10k-images-idx3-ubyte.gz``, packed or not. By default the
        digits are fetched from OpenML with scikit-learn, which keeps them.
    side : int, default=17
        Height and width of a digit, from 1 to 28.
    data_home : str or path-like, optional
        Where scikit-learn keeps what it fetches.

    Returns
    -------
    X : ndarray of shape (n_digits, side * side), uint8
        1 is ink.
    y : ndarray of shape (n_digits,) or None
        The digit that each row shows; a file of pictures does not say it.

    Examples
    --------
    >>> from bitatoms.datasets import mnist
    >>> X, y = mnist()  # doctest: +SKIP
    >>> X.shape  # doctest: +SKIP
    (10000, 289)
    """
    side = check_int("side", side, least=1)
    if side > SIDE:
        raise ValueError(f"side is {side}, but a digit of MNIST has {SIDE} pixels a side; pass at most that")
    if path is not None:
        return Digits(shrunk(_pictures(Path(path)), side), None)
    gray, labels = _fetched(data_home)
    return Digits(shrunk(gray, side), labels)


def shrunk(gray: NDArray, side: int) -> NDArray[np.uint8]:
    """Pictures of shape (n, tall, tall), 0 to 255, as bits of shape (n, side * side): 1 where half the area is ink."""
    tall = gray.shape[1]
    # In parts of a pixel, tall of them to a new one and side to an old one, all is whole numbers: exact everywhere.
    new, old = np.arange(side)[:, np.newaxis] * tall, np.arange(tall) * side
    shares = np.clip(np.minimum(new + tall, old + side) - np.maximum(new, old), 0, None).astype(np.float64)
    bits = np.empty((len(gray), side * side), np.uint8)
    for start in range(0, len(gray), 1024):
        some = gray[start : start + 1024].astype(np.float64)
        ink = shares @ some @ shares.T  # whole numbers below 2**53
        bits[start : start + len(some)] = (2 * ink >= _WHITE * tall * tall).reshape(len(some), -1)
    return bits


def is_published(path: Path) -> bool:
    """Whether a file begins as MNIST's own files do, packed or not."""
    with open(path, "rb") as file:
        first = file.read(2)
    try:
        with gzip.open(path) if first == b"\x1f\x8b" else open(path, "rb") as file:
            return tuple(file.read(4)) in (_IMAGES, _LABELS)
    except (EOFError, OSError, zlib.error):
        return False


def _pictures(path: Path) -> NDArray[np.uint8]:
    """The pictures of a file as MNIST is published: four bytes of what it is, three sizes, then the pixels."""
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(path) if packed else open(path, "rb") as file:
            held = file.read()
    except (EOFError, gzip.BadGzipFile, zlib.error) as broken:
        raise ValueError(f"{path}: the file is cut short or damaged ({broken}); get it anew") from broken
    if tuple(held[:4]) == _LABELS:
        raise ValueError(f"{path}: this file says what digits show; pass the pictures, t10k-images-idx3-ubyte.gz")
    if tuple(held[:4]) != _IMAGES:
        raise ValueError(f"{path}: this is no file of MNIST's pictures; pass one like t10k-images-idx3-ubyte.gz")
    n_digits, tall, wide = (int.from_bytes(held[start : start + 4], "big") for start in (4, 8, 12))
    if (tall, wide) != (SIDE, SIDE):
        raise ValueError(f"{path}: its pictures are {tall} × {wide}, and those of MNIST {SIDE} × {SIDE}")
    if not n_digits or len(held) != 16 + n_digits * tall * wide:
        raise ValueError(
            f"{path}: {n_digits} pictures take {16 + n_digits * tall * wide} bytes, but it has {len(held)}; get it anew"
        )
    return np.frombuffer(held, np.uint8, offset=16).reshape(n_digits, tall, wide)


def _fetched(data_home: Any) -> tuple[NDArray, NDArray]:
    """The test digits of OpenML's table, and what they show."""
    from sklearn.datasets import fetch_openml

    try:
        table = fetch_openml("mnist_784", version=1, as_frame=False, parser="liac-arff", data_home=data_home)
    except OSError as trouble:  # no network, or no room
        raise OSError(
            f"MNIST could not be fetched from OpenML ({trouble}); pass the file t10k-images-idx3-ubyte.gz instead"
        ) from trouble
    pictures = np.asarray(table.data[-_TEST:]).reshape(-1, SIDE, SIDE)
    return pictures, np.asarray(table.target[-_TEST:]).astype(np.int64)
