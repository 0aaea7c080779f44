"""The data sets (the paper's first figure): some digits, the halftone with its stripe, and a part of it in blocks."""

from __future__ import annotations

import numpy as np

from ...report.html.figures import Figure, pixels
from ...report.html.tables import DataTable
from ..datasets import Subject
from ..experiment import Experiment, Panel
from ..mosaics import PALETTE, mosaic, with_blocks, with_stripe

SHOWN = 40  # samples that are shown with their codes
_STRIPE = 0.411  # of the height: the left eye of the paper's picture
_DETAIL = (5, 8)  # blocks down and across that are shown enlarged
_DETAIL_AT = 0.72  # of the width, the middle of what is enlarged: that eye


def shown_samples(subject: Subject, seed: int) -> np.ndarray:
    """The numbers of the samples that figures show: the blocks of the stripe, or some drawn at random."""
    if subject.picture is None:
        n_shown = min(SHOWN, subject.data.n_rows)
        return np.sort(np.random.default_rng(seed).choice(subject.data.n_rows, n_shown, replace=False))
    first = stripe(subject) * subject.blocks_across
    return np.arange(first, first + subject.blocks_across)


def stripe(subject: Subject) -> int:
    """The row of blocks that is the stripe."""
    return int(_STRIPE * (subject.data.n_rows // subject.blocks_across))


def data_sets(digits: Subject, halftone: Subject, seed: int) -> Experiment:
    """What the two sets look like."""
    rows = shown_samples(digits, seed)
    chosen = digits.data[rows]
    figures = (
        pixels(
            "samples",
            f"{chosen.n_rows} samples of {digits.name}, drawn at random",
            f"A mosaic of {chosen.n_rows} handwritten digits",
            mosaic(chosen, digits.tile, 8),
            PALETTE,
            times=max(1, 52 // digits.tile[1]),
            numbers=DataTable.of(
                ("sample", "pixels"),
                [(int(row), "".join(map(str, bits))) for row, bits in zip(rows, chosen.to_dense(), strict=True)],
            ),
        ),
        *_of_picture(halftone),
    )
    stands = [subject for subject in (digits, halftone) if subject.stands_in]
    about = " ".join(f"{subject.of_the_paper}: {subject.about}" for subject in (digits, halftone))
    if stands:
        names = " and ".join(f"{subject.name} for {subject.of_the_paper}" for subject in stands)
        about += f" Other data stand in here: {names}. What is particular to the paper's own data may not be seen."
    panel = Panel("", "", figures, layout="sets")
    return Experiment("data", "Data", "The data", about, (panel,))


def _of_picture(subject: Subject) -> tuple[Figure, ...]:
    """The picture with its stripe, and a part of it enlarged."""
    assert subject.picture is not None
    (tall, wide), row = subject.tile, stripe(subject)
    height, width = subject.picture.shape
    top = row * tall
    down, across = _DETAIL
    above = max(0, min(top - (down // 2) * tall, (height // tall - down) * tall))
    left = max(0, min(int(_DETAIL_AT * width) // wide * wide - (across // 2) * wide, (width // wide - across) * wide))
    part = subject.picture[above : above + down * tall, left : left + across * wide]
    return (
        pixels(
            "picture",
            f"{subject.name}; framed, the stripe of blocks that figures show (row {row + 1} of blocks)",
            "The halftone picture, with a stripe of it framed",
            with_stripe(subject.picture, top, tall),
            PALETTE,
            pixelated=False,
        ),
        pixels(
            "blocks",
            "A part of it, in blocks of 16 × 16",
            "A part of the halftone picture, enlarged, with its blocks apart",
            with_blocks(part, subject.tile),
            PALETTE,
            times=3,
        ),
    )
