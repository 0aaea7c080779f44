"""The two data sets of the paper, from a user's files, or bundled ones that stand for them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from math import isqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from .. import datasets
from ..bits import BitMatrix
from ..datasets.mnist_digits import SIDE as MNIST_SIDE
from ..datasets.mnist_digits import downsample, is_idx_file
from ..io.api import read
from ..io.errors import FileError
from ..io.formats import format_of
from ..table import Table

OPENML = "openml"
BLOCK = (16, 16)
_SIDE = 17  # of the paper's digits
_PAPER_PICTURE = (1160, 896)
_FEWEST = 64  # samples; the paper's have thousands


@dataclass(frozen=True, eq=False)
class Subject:
    """A data set, and whether it is the paper's or stands for it."""

    name: str
    of_the_paper: str  # what it is called there
    about: str  # where it comes from, in a sentence
    stands_in: bool
    data: BitMatrix
    tile: tuple[int, int]
    picture: NDArray[np.uint8] | None = None  # of which the samples are blocks
    labels: NDArray | None = None  # the digit that each sample shows, where that is known

    @property
    def blocks_across(self) -> int:
        """Blocks from left to right in the picture."""
        return 0 if self.picture is None else -(-self.picture.shape[1] // self.tile[1])

    @property
    def density(self) -> float:
        """The share of ones."""
        return self.data.count() / (self.data.n_rows * self.data.n_cols)


def handwriting(source: str | os.PathLike[str] | None) -> Subject:
    """MNIST from OpenML or from a file; without either, the digits that come with scikit-learn."""
    if source is None:
        X, labels = datasets.digits()
        about = "1797 handwritten digits of 8 × 8 pixels that come with scikit-learn; black where ink is above 7 of 16."
        return Subject("digits", "MNIST", about, True, BitMatrix.from_dense(X), (8, 8), labels=labels)
    how = f"shrunk to {_SIDE} × {_SIDE}, black where half of a pixel is ink; the paper does not say how it did that"
    if str(source) == OPENML:
        found = datasets.mnist(side=_SIDE)
        data, about = BitMatrix.from_dense(found.X), f"The {len(found.X)} test digits of MNIST, from OpenML, {how}."
        return Subject("MNIST", "MNIST", about, False, data, (_SIDE, _SIDE), labels=found.y)
    path = Path(source)
    if is_idx_file(path):
        data = BitMatrix.from_dense(datasets.mnist(path, side=_SIDE).X)
        about = f"{data.n_rows} digits of MNIST from {path.name}, {how}."
    else:
        data = _table(path, "digits, such as t10k-images-idx3-ubyte.gz").bits
        about = f"{data.n_rows} digits from {path.name}."
        if data.n_cols == MNIST_SIDE**2:
            pictures = data.to_dense().reshape(-1, MNIST_SIDE, MNIST_SIDE)
            data, about = BitMatrix.from_dense(downsample(255 * pictures, _SIDE)), f"{about[:-1]}, {how}."
    side = isqrt(data.n_cols)
    if side * side != data.n_cols:
        raise FileError(f"{path}: rows of {data.n_cols} pixels make no square; give digits of 17 × 17 or 28 × 28")
    _refuse_few(path, data)
    if side == _SIDE:
        return Subject("MNIST", "MNIST", about, False, data, (side, side))
    return Subject("digits", "MNIST", f"{about[:-1]}, of {side} × {side} pixels.", True, data, (side, side))


def halftone(source: str | os.PathLike[str] | None) -> Subject:
    """The halftone Einstein from a file; without one, a photograph that comes with scikit-learn, made a halftone."""
    if source is None:
        picture = datasets.halftone()
        about = "A photograph of a temple, which comes with scikit-learn, in the dots of the paper's picture"
    else:
        table = _table(Path(source), "a picture, such as a .pbm")
        if table.picture is not None and table.picture.whole is not None:
            picture = datasets.stitch_blocks(table.bits, table.picture.whole, table.picture.tile)
        else:
            picture = table.bits.to_dense()
        about = f"The picture in {Path(source).name}"
    tall, wide = picture.shape
    data = BitMatrix.from_dense(datasets.cut_blocks(picture, BLOCK))
    about += f", {tall} × {wide} pixels, cut into {data.n_rows} blocks of 16 × 16 (white where a block is not full)."
    if source is not None:
        _refuse_few(Path(source), data)
    own = picture.shape == _PAPER_PICTURE
    return Subject("Einstein" if own else "halftone", "Einstein", about, not own, data, BLOCK, picture)


def _table(path: Path, wanted: str) -> Table:
    """The table in a file; the formats are told by the endings, for there is no option to name them."""
    try:
        format_of(path)
    except FileError as unknown:
        raise FileError(f"{path}: its ending tells no format of tables; give {wanted}, or a table as .npz") from unknown
    return read(path)


def _refuse_few(path: Path, data: BitMatrix) -> None:
    """Refuse what is too small to find anything in."""
    if data.n_rows < _FEWEST:
        raise FileError(f"{path}: {data.n_rows} samples are too few to learn from; give at least {_FEWEST}")
