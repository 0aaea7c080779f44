"""Images of bits: mosaics of atoms, samples above their residuals and codes, a picture with its stripe or blocks."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from bitatoms.bits import BitMatrix
from bitatoms.html.tables import DataTable
from bitatoms.report.pictures import INK, PAPER

from .figures import Figure, pixel_figure

Pixels = NDArray[np.uint8]

GAP, RED, GREEN, BLUE, MAGENTA = 2, 3, 4, 5, 6  # indices into the palette, after zeros and ones
PALETTE = (PAPER, INK, (166, 189, 219), (213, 40, 40), (0, 150, 90), (30, 90, 220), (220, 0, 200))
_FRAME = 2  # pixels
_LINE_GAP = 6  # pixels between lines of samples


def mosaic(atoms: BitMatrix, tile: tuple[int, int], n_across: int, frames: Mapping[int, int] | None = None) -> Pixels:
    """Return atoms side by side, row by row; ``frames`` maps indices of atoms to the colours of their frames."""
    height, width = tile
    edge = 1 if frames is None else _FRAME
    n_atoms = atoms.n_rows
    n_across = max(1, min(n_across, n_atoms))
    n_down = max(1, -(-n_atoms // n_across))
    sheet = np.full((n_down * (height + edge) + edge, n_across * (width + edge) + edge), GAP, np.uint8)
    for atom, bits in enumerate(atoms.to_dense().reshape(-1, height, width)):
        top, left = (edge + at * (side + edge) for at, side in zip(divmod(atom, n_across), tile, strict=True))
        if frames and atom in frames:
            sheet[top - edge : top + height + edge, left - edge : left + width + edge] = frames[atom]
        sheet[top : top + height, left : left + width] = bits
    return sheet


def mosaic_figure(
    name: str,
    title: str,
    atoms: BitMatrix,
    uses: NDArray[np.int64] | None,
    tile: tuple[int, int],
    n_across: int,
    scale: int,
    frames: Mapping[int, int] | None = None,
) -> Figure:
    """Return a mosaic of atoms with a table of their pixels and, if given, the number of samples that use each."""
    columns = ("atom", "black pixels", *(() if uses is None else ("samples that use it",)), "pixels")
    use_cells: list[tuple[int, ...]] = [()] * atoms.n_rows if uses is None else [(int(n_uses),) for n_uses in uses]
    rows: list[tuple[int | str, ...]] = [
        (number, int(bits.sum()), *use_cell, "".join(map(str, bits)))
        for number, (bits, use_cell) in enumerate(zip(atoms.to_dense(), use_cells, strict=True), 1)
    ]
    alt = f"A mosaic of {atoms.n_rows} atoms: {title}"
    pixels = mosaic(atoms, tile, n_across, frames)
    return pixel_figure(name, title, alt, pixels, PALETTE, scale, DataTable.from_rows(columns, rows))


def coded_samples(
    data: BitMatrix,
    errors: BitMatrix,
    codes: BitMatrix,
    tile: tuple[int, int],
    n_across: int,
    colours: Mapping[int, int],
) -> Pixels:
    """Return samples, below each its residual, and below that one bar per atom that it uses, first atom on top.

    ``colours`` maps indices of atoms to the colours of their bars; other bars are black.
    """
    height, width = tile
    samples, residuals = (bits.to_dense().reshape(-1, height, width) for bits in (data, errors))
    inks = np.ones(codes.n_cols, np.uint8)
    for atom, colour in colours.items():
        inks[atom] = colour
    bars = codes.to_dense() * inks
    bar_height = max(1, -(-width * 3 // max(1, codes.n_cols)))  # the fewer atoms, the thicker the bars
    lines = []
    for start in range(0, data.n_rows, n_across):
        stop = min(data.n_rows, start + n_across)
        line_height = 2 * (height + 1) + bar_height * codes.n_cols + 2
        line = np.full((line_height, n_across * (width + 1) + 1), GAP, np.uint8)
        for column, row in enumerate(range(start, stop)):
            left = 1 + column * (width + 1)
            line[1 : 1 + height, left : left + width] = samples[row]
            line[2 + height : 2 + 2 * height, left : left + width] = residuals[row]
            line[3 + 2 * height : -1, left : left + width] = np.repeat(bars[row], bar_height)[:, np.newaxis]
        lines += [line, np.zeros((_LINE_GAP, line.shape[1]), np.uint8)]
    return np.concatenate(lines[:-1])


def with_stripe(picture: Pixels, top: int, height: int) -> Pixels:
    """Return a picture with a frame around a horizontal stripe."""
    framed = picture.copy()
    frame = 2 * _FRAME
    for edge in (top, top + height):
        framed[max(0, edge - frame // 2) : edge + frame // 2] = MAGENTA
    framed[top : top + height, :frame] = framed[top : top + height, -frame:] = MAGENTA
    return framed


def with_blocks(picture: Pixels, tile: tuple[int, int]) -> Pixels:
    """Return a picture with lines between its blocks."""
    height, width = tile
    n_rows, n_columns = picture.shape
    across = np.insert(picture, list(range(width, n_columns, width)), GAP, axis=1)
    return np.insert(across, list(range(height, n_rows, height)), GAP, axis=0)
