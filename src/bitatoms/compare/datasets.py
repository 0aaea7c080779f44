"""Data that come with bitatoms, by name, to compare on."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .. import datasets
from ..bits import BitMatrix


class Bundled(NamedTuple):
    """Data that need no file."""

    about: str
    make: Callable[[], BitMatrix]


def _planted(algebra: str, density: float) -> BitMatrix:
    """A table of 500 x 200 from eight atoms, with 5 % of its cells flipped."""
    how = {"algebra": algebra, "atom_density": density, "code_density": density}
    return BitMatrix.from_dense(datasets.planted(500, 200, 8, **how, random_state=0).X)  # type: ignore[arg-type]


BUNDLED = {
    "digits": Bundled(
        "handwritten digits, 8 × 8 pixels each, from scikit-learn", lambda: BitMatrix.from_dense(datasets.digits()[0])
    ),
    "halftone": Bundled(
        "a halftone picture in blocks of 16 × 16 pixels",
        lambda: BitMatrix.from_dense(datasets.cut_blocks(datasets.halftone())),
    ),
    "baskets": Bundled("made-up market baskets", lambda: datasets.baskets().bits),
    "genotypes": Bundled("made-up genotypes of three populations", lambda: datasets.genotypes().bits),
    "planted-or": Bundled("eight atoms put together by OR, and 5 % of the cells flipped", lambda: _planted("or", 0.15)),
    "planted-xor": Bundled(
        "eight atoms put together by XOR, and 5 % of the cells flipped", lambda: _planted("xor", 0.15)
    ),
    "planted-dense": Bundled(
        "eight atoms put together by XOR, half of each ones and half of them in each row, and 5 % of the cells flipped",
        lambda: _planted("xor", 0.5),
    ),
}
