"""Pictures of bits: atoms side by side, samples above their residuals and codes, a stripe of a picture."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..report.pictures import INK, PAPER

Pixels = NDArray[np.uint8]

GAP, RED, GREEN, BLUE, MAGENTA = 2, 3, 4, 5, 6  # places in the palette, after zeros and ones
PALETTE = (PAPER, INK, (166, 189, 219), (213, 40, 40), (0, 150, 90), (30, 90, 220), (220, 0, 200))
_THICK = 2  # pixels of a frame
_BETWEEN = 6  # pixels between lines of samples


def mosaic(atoms: BitMatrix, tile: tuple[int, int], across: int, frames: Mapping[int, int] | None = None) -> Pixels:
    """Atoms side by side, from left to right and top to bottom; those in ``frames`` have a frame of that colour."""
    tall, wide = tile
    edge = 1 if frames is None else _THICK
    n_atoms = atoms.n_rows
    across = max(1, min(across, n_atoms))
    down = max(1, -(-n_atoms // across))
    sheet = np.full((down * (tall + edge) + edge, across * (wide + edge) + edge), GAP, np.uint8)
    for place, bits in enumerate(atoms.to_dense().reshape(-1, tall, wide)):
        top, left = (edge + where * (side + edge) for where, side in zip(divmod(place, across), tile, strict=True))
        if frames and place in frames:
            sheet[top - edge : top + tall + edge, left - edge : left + wide + edge] = frames[place]
        sheet[top : top + tall, left : left + wide] = bits
    return sheet


def coded_samples(
    data: BitMatrix,
    errors: BitMatrix,
    codes: BitMatrix,
    tile: tuple[int, int],
    across: int,
    colours: Mapping[int, int],
) -> Pixels:
    """Samples, below each its residual, and below that a band for each atom that it uses, the first atom on top.

    Bands of the atoms in ``colours`` have that colour, the others are black.
    """
    tall, wide = tile
    tiles = [table.to_dense().reshape(-1, tall, wide) for table in (data, errors)]
    inks = np.ones(codes.n_cols, np.uint8)
    for atom, colour in colours.items():
        inks[atom] = colour
    bands = codes.to_dense() * inks
    high = max(1, -(-wide * 3 // max(1, codes.n_cols)))  # few atoms have thicker bands
    lines = []
    for start in range(0, data.n_rows, across):
        some = range(start, min(data.n_rows, start + across))
        line = np.full((2 * (tall + 1) + high * codes.n_cols + 2, across * (wide + 1) + 1), GAP, np.uint8)
        for place, row in enumerate(some):
            left = 1 + place * (wide + 1)
            line[1 : 1 + tall, left : left + wide] = tiles[0][row]
            line[2 + tall : 2 + 2 * tall, left : left + wide] = tiles[1][row]
            line[3 + 2 * tall : -1, left : left + wide] = np.repeat(bands[row], high)[:, np.newaxis]
        lines += [line, np.zeros((_BETWEEN, line.shape[1]), np.uint8)]
    return np.concatenate(lines[:-1])


def with_stripe(picture: Pixels, top: int, tall: int) -> Pixels:
    """A picture with a stripe of it framed."""
    shown = picture.copy()
    thick = 2 * _THICK
    for edge in (top, top + tall):
        shown[max(0, edge - thick // 2) : edge + thick // 2] = MAGENTA
    shown[top : top + tall, :thick] = shown[top : top + tall, -thick:] = MAGENTA
    return shown


def with_blocks(picture: Pixels, tile: tuple[int, int]) -> Pixels:
    """A part of a picture, cut where its blocks are."""
    tall, wide = tile
    parts = [picture[row : row + tall] for row in range(0, len(picture), tall)]
    across = range(wide, picture.shape[1], wide)
    lines = [np.insert(part, list(across), GAP, axis=1) for part in parts]
    framed = np.concatenate([np.concatenate([np.full((1, lines[0].shape[1]), GAP, np.uint8), line]) for line in lines])
    return framed[1:]
