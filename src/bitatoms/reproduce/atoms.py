"""Mosaics of atoms as figures, with the atoms themselves as their numbers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..report.html.figures import Figure, pixels
from ..report.html.tables import DataTable
from .mosaics import PALETTE, mosaic


def figure_of_atoms(
    name: str,
    title: str,
    atoms: BitMatrix,
    uses: NDArray[np.int64] | None,
    tile: tuple[int, int],
    across: int,
    times: int,
    frames: Mapping[int, int] | None = None,
) -> Figure:
    """A mosaic of atoms; ``uses`` are the samples that use each, where it has been learned."""
    columns = ("atom", "black pixels", *(() if uses is None else ("samples that use it",)), "pixels")
    used: list[tuple[int, ...]] = [()] * atoms.n_rows if uses is None else [(int(count),) for count in uses]
    rows: list[tuple[int | str, ...]] = [
        (number, int(bits.sum()), *use, "".join(map(str, bits)))
        for number, (bits, use) in enumerate(zip(atoms.to_dense(), used, strict=True), 1)
    ]
    says = f"A mosaic of {atoms.n_rows} atoms: {title}"
    sheet = mosaic(atoms, tile, across, frames)
    return pixels(name, title, says, sheet, PALETTE, times, DataTable.of(columns, rows))
