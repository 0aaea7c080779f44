"""The two data sets of the paper, read from the user's files, or bundled substitutes."""

from __future__ import annotations

import gzip
import os
import zlib
from dataclasses import dataclass
from math import isqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bitatoms import datasets
from bitatoms.bits import BitMatrix
from bitatoms.columns.table import Table
from bitatoms.datasets.mnist_digits import SIDE as MNIST_SIDE
from bitatoms.datasets.mnist_digits import downsample
from bitatoms.io.api import read
from bitatoms.io.errors import FileError
from bitatoms.io.formats.registry import infer_format

OPENML = "openml"
BLOCK = (16, 16)
_SIDE = 17  # of the paper's digits
_PAPER_PICTURE = (1160, 896)
_MIN_SAMPLES = 64  # the data sets of the paper have thousands


@dataclass(frozen=True, eq=False)
class PaperDataset:
    """A data set of the paper, or a substitute for it."""

    name: str
    paper_name: str  # "MNIST" or "Einstein"
    description: str  # where it comes from, in one sentence
    is_substitute: bool
    data: BitMatrix
    tile: tuple[int, int]
    picture: NDArray[np.uint8] | None = None  # the picture that the samples are blocks of
    labels: NDArray | None = None  # the digit that each sample shows, if known

    @property
    def blocks_per_row(self) -> int:
        """The number of blocks from left to right in the picture."""
        return 0 if self.picture is None else -(-self.picture.shape[1] // self.tile[1])

    @property
    def density(self) -> float:
        """The fraction of ones."""
        return self.data.count() / (self.data.n_rows * self.data.n_cols)


def load_digits(source: str | os.PathLike[str] | None) -> PaperDataset:
    """Return MNIST from OpenML or from a file; without a source, the digits that scikit-learn contains."""
    if source is None:
        X, labels = datasets.digits()
        description = (
            "1797 handwritten digits of 8 × 8 pixels, contained in scikit-learn; a pixel is black if its value is "
            "above 7 of 16."
        )
        return PaperDataset("digits", "MNIST", description, True, BitMatrix.from_dense(X), (8, 8), labels=labels)
    method = (
        f"reduced to {_SIDE} × {_SIDE}, a pixel black if at least half of it is ink (the paper does not describe its "
        "method)"
    )
    if str(source) == OPENML:
        mnist = datasets.mnist(side=_SIDE)
        description = f"The {len(mnist.X)} test digits of MNIST, from OpenML, {method}."
        data = BitMatrix.from_dense(mnist.X)
        return PaperDataset("MNIST", "MNIST", description, False, data, (_SIDE, _SIDE), labels=mnist.y)
    path = Path(source)
    if _is_idx_file(path):
        data = BitMatrix.from_dense(datasets.mnist(path, side=_SIDE).X)
        description = f"{data.n_rows} digits of MNIST from {path.name}, {method}."
    else:
        data = _read_table(path, "digits, such as t10k-images-idx3-ubyte.gz").bits
        description = f"{data.n_rows} digits from {path.name}."
        if data.n_cols == MNIST_SIDE**2:
            pictures = data.to_dense().reshape(-1, MNIST_SIDE, MNIST_SIDE)
            data = BitMatrix.from_dense(downsample(255 * pictures, _SIDE))
            description = f"{description[:-1]}, {method}."
    side = isqrt(data.n_cols)
    if side * side != data.n_cols:
        raise FileError(f"{path}: rows of {data.n_cols} pixels are not square; pass digits of 17 × 17 or 28 × 28")
    _check_size(path, data)
    if side == _SIDE:
        return PaperDataset("MNIST", "MNIST", description, False, data, (side, side))
    description = f"{description[:-1]}, of {side} × {side} pixels."
    return PaperDataset("digits", "MNIST", description, True, data, (side, side))


def load_halftone(source: str | os.PathLike[str] | None) -> PaperDataset:
    """Return the halftone Einstein from a file; without a source, a halftone of a photograph in scikit-learn."""
    if source is None:
        picture = datasets.halftone()
        description = "A photograph of a temple, contained in scikit-learn, as a halftone like the paper's"
    else:
        table = _read_table(Path(source), "a picture, such as a .pbm file")
        if table.picture is not None and table.picture.whole is not None:
            picture = datasets.stitch_blocks(table.bits, table.picture.whole, table.picture.tile)
        else:
            picture = table.bits.to_dense()
        description = f"The picture in {Path(source).name}"
    height, width = picture.shape
    data = BitMatrix.from_dense(datasets.cut_blocks(picture, BLOCK))
    description += f", {height} × {width} pixels, cut into {data.n_rows} blocks of 16 × 16 (padded with white)."
    if source is not None:
        _check_size(Path(source), data)
    is_papers = picture.shape == _PAPER_PICTURE
    name = "Einstein" if is_papers else "halftone"
    return PaperDataset(name, "Einstein", description, not is_papers, data, BLOCK, picture)


def _read_table(path: Path, expected: str) -> Table:
    """Return the table in a file, whose format must be known from its suffix since no option names it."""
    try:
        infer_format(path)
    except FileError as error:
        raise FileError(f"{path}: not a known table format; pass {expected}, or a table as .npz") from error
    return read(path)


def _check_size(path: Path, data: BitMatrix) -> None:
    """Raise FileError if there are too few samples to learn from."""
    if data.n_rows < _MIN_SAMPLES:
        raise FileError(f"{path}: {data.n_rows} samples are too few; pass at least {_MIN_SAMPLES}")


def _is_idx_file(path: Path) -> bool:
    """Return whether a file starts like the published files of MNIST, compressed or not."""
    with open(path, "rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(path) if compressed else open(path, "rb") as file:
            return file.read(3) == bytes((0, 0, 8))
    except (EOFError, OSError, zlib.error):
        return False
