"""The input data (Figure 1 of the paper): some digits, the halftone with its stripe, and a part of it in blocks."""

from __future__ import annotations

import numpy as np

from bitatoms.html.tables import DataTable

from .datasets import PaperDataset
from .experiment import Experiment, Panel
from .figures import Figure, pixel_figure
from .mosaics import PALETTE, mosaic, with_blocks, with_stripe

N_SAMPLES = 40  # samples that are shown with their codes
_STRIPE = 0.411  # fraction of the height: the left eye of the paper's picture
_DETAIL = (5, 8)  # blocks down and across that are shown enlarged
_DETAIL_CENTRE = 0.72  # fraction of the width: the same eye


def sample_indices(dataset: PaperDataset, seed: int) -> np.ndarray:
    """Return the indices of the samples that figures show: the blocks of the stripe, or random samples."""
    if dataset.picture is None:
        n_samples = min(N_SAMPLES, dataset.data.n_rows)
        return np.sort(np.random.default_rng(seed).choice(dataset.data.n_rows, n_samples, replace=False))
    first = stripe_row(dataset) * dataset.blocks_per_row
    return np.arange(first, first + dataset.blocks_per_row)


def stripe_row(dataset: PaperDataset) -> int:
    """Return the index of the row of blocks that is the stripe."""
    return int(_STRIPE * (dataset.data.n_rows // dataset.blocks_per_row))


def input_data(digits: PaperDataset, halftone: PaperDataset, seed: int) -> Experiment:
    """Show the two data sets."""
    rows = sample_indices(digits, seed)
    samples = digits.data[rows]
    figures = (
        pixel_figure(
            "samples",
            f"{samples.n_rows} random samples of {digits.name}",
            f"A mosaic of {samples.n_rows} handwritten digits",
            mosaic(samples, digits.tile, 8),
            PALETTE,
            scale=max(1, 52 // digits.tile[1]),
            table=DataTable.from_rows(
                ("sample", "pixels"),
                [(int(row), "".join(map(str, bits))) for row, bits in zip(rows, samples.to_dense(), strict=True)],
            ),
        ),
        *_picture_figures(halftone),
    )
    substitutes = [dataset for dataset in (digits, halftone) if dataset.is_substitute]
    description = " ".join(f"{dataset.paper_name}: {dataset.description}" for dataset in (digits, halftone))
    if substitutes:
        names = " and ".join(f"{dataset.name} for {dataset.paper_name}" for dataset in substitutes)
        description += f" These data replace those of the paper: {names}. Claims specific to the latter may not hold."
    panel = Panel("", "", figures, layout="sets")
    return Experiment("data", "Data", "The data", description, (panel,))


def _picture_figures(dataset: PaperDataset) -> tuple[Figure, ...]:
    """Return the picture with its stripe, and a part of it enlarged."""
    assert dataset.picture is not None
    (block_height, block_width), stripe = dataset.tile, stripe_row(dataset)
    height, width = dataset.picture.shape
    stripe_top = stripe * block_height
    n_down, n_across = _DETAIL
    top = max(0, min(stripe_top - (n_down // 2) * block_height, (height // block_height - n_down) * block_height))
    centre = int(_DETAIL_CENTRE * width) // block_width * block_width
    left = max(0, min(centre - (n_across // 2) * block_width, (width // block_width - n_across) * block_width))
    detail = dataset.picture[top : top + n_down * block_height, left : left + n_across * block_width]
    return (
        pixel_figure(
            "picture",
            f"{dataset.name}; the frame marks the stripe of blocks shown in other figures (row {stripe + 1} of blocks)",
            "The halftone picture with a framed stripe",
            with_stripe(dataset.picture, stripe_top, block_height),
            PALETTE,
            pixelated=False,
        ),
        pixel_figure(
            "blocks",
            "A part of it, in blocks of 16 × 16",
            "A part of the halftone picture, enlarged, with lines between its blocks",
            with_blocks(detail, dataset.tile),
            PALETTE,
            scale=3,
        ),
    )
