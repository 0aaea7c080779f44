"""Overlapping blocks of a picture, and what the codelengths of the blocks say about its pixels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..engine.passes import PassSpec, coded_block
from ..model.model import Model
from ..parallel import Workers

_CHUNK_BLOCKS = 1 << 18  # coded together


@dataclass(frozen=True)
class BlockGrid:
    """Overlapping blocks of a picture.

    Blocks begin every ``stride`` pixels; the last ones end at the border, so that each pixel is in a block.
    """

    shape: tuple[int, int]  # of the picture
    block: tuple[int, int]
    stride: int

    @property
    def tops(self) -> NDArray[np.intp]:
        """The first line of pixels of each row of blocks."""
        return _starts(self.shape[0], self.block[0], self.stride)

    @property
    def lefts(self) -> NDArray[np.intp]:
        """The first column of pixels of each column of blocks."""
        return _starts(self.shape[1], self.block[1], self.stride)

    def cut(self, image: NDArray[np.bool_], unknown: NDArray[np.bool_] | None = None) -> BitMatrix:
        """Return the blocks, from left to right and top to bottom; one flattened block per row."""
        windows = np.lib.stride_tricks.sliding_window_view(image, self.block)[self.tops][:, self.lefts]
        blocks = BitMatrix.from_dense(windows.reshape(-1, self.block[0] * self.block[1]))
        return blocks if unknown is None else blocks.with_unknown(self.cut(unknown))

    def chunks(self) -> Iterator[tuple[slice, NDArray[np.intp]]]:
        """Yield rows of blocks in chunks: which blocks they are, and their first lines of pixels."""
        tops, n_across = self.tops, len(self.lefts)
        step = max(1, _CHUNK_BLOCKS // n_across)
        for first in range(0, len(tops), step):
            chunk = tops[first : first + step]
            yield slice(first * n_across, (first + len(chunk)) * n_across), chunk


def _starts(length: int, block: int, stride: int) -> NDArray[np.intp]:
    """Return where blocks begin along an axis."""
    last = length - block
    return np.append(np.arange(0, last, stride), last)


def evidence(model: Model, blocks: BitMatrix, grid: BlockGrid, workers: Workers) -> NDArray[np.float64]:
    """Return for each pixel how much less its blocks cost on average with a one there than with a zero.

    The unit is that of the model's prices. Each block is coded with both values of each of its pixels, from scratch, so
    that the evidence does not depend on the pixel itself, only on the others.
    """
    spec = _spec_from_scratch(model)
    height, width = grid.block
    total, n_blocks = np.zeros(grid.shape, np.int64), np.zeros(grid.shape, np.int64)
    for chunk, tops in grid.chunks():
        rows = blocks[chunk]
        costs = _costs(rows, spec, workers)
        for pixel in range(height * width):
            saved = _costs(_flipped(rows, pixel), spec, workers) - costs
            saved[~_column(rows, pixel)] *= -1
            pixels = np.ix_(tops + pixel // width, grid.lefts + pixel % width)
            total[pixels] += saved.reshape(len(tops), -1)
            n_blocks[pixels] += 1
    return total / n_blocks


def evidence_at(
    wanted: NDArray[np.bool_], model: Model, blocks: BitMatrix, grid: BlockGrid, workers: Workers
) -> NDArray[np.float64]:
    """Return the same for the wanted pixels of a picture in which they, and perhaps others, are unknown; else 0."""
    spec, wanted_cells = _spec_from_scratch(model), grid.cut(wanted)
    total, n_blocks = np.zeros(grid.shape, np.int64), np.zeros(grid.shape, np.int64)
    for pixel in range(blocks.n_cols):
        rows = np.flatnonzero(_column(wanted_cells, pixel))
        if not len(rows):
            continue
        zero = _known(blocks[rows], pixel)
        saved = _costs(zero, spec, workers) - _costs(_flipped(zero, pixel), spec, workers)
        down, across = np.divmod(rows, len(grid.lefts))
        pixels = grid.tops[down] + pixel // grid.block[1], grid.lefts[across] + pixel % grid.block[1]
        np.add.at(total, pixels, saved)
        np.add.at(n_blocks, pixels, 1)
    return total / np.maximum(1, n_blocks)


def _spec_from_scratch(model: Model) -> PassSpec:
    """Return the pass that codes blocks from scratch only: a remembered code may be that of the block itself."""
    return replace(model.pass_spec, remembered=None)


def _costs(rows: BitMatrix, spec: PassSpec, workers: Workers) -> NDArray[np.int64]:
    """Return the costs of rows, coded from scratch."""
    assert spec.rule.prices is not None
    return coded_block(rows, None, spec, workers).row_costs(spec.rule.prices)


def _flipped(rows: BitMatrix, column: int) -> BitMatrix:
    """Return rows with one column flipped."""
    words = rows.words.copy()
    words[:, column // 64] ^= np.uint64(1) << np.uint64(column % 64)
    return BitMatrix.from_words(words, rows.n_cols, False, rows.unknown)


def _known(rows: BitMatrix, column: int) -> BitMatrix:
    """Return rows in which a column is known: zero."""
    if rows.unknown is None:
        return rows
    words = rows.unknown.words.copy()
    words[:, column // 64] &= ~(np.uint64(1) << np.uint64(column % 64))
    return rows.with_unknown(BitMatrix.from_words(words, rows.n_cols, check=False))


def _column(rows: BitMatrix, column: int) -> NDArray[np.bool_]:
    """Return one column."""
    return (rows.words[:, column // 64] >> np.uint64(column % 64) & np.uint64(1)).astype(bool)
