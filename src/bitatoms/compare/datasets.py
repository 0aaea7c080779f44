"""The bundled data sets to compare on, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .. import datasets
from ..bits import BitMatrix


class Bundled(NamedTuple):
    """A data set that needs no file."""

    about: str
    make: Callable[[], BitMatrix]


def _planted(algebra: str, density: float) -> BitMatrix:
    """Return a table of 500 × 200 from eight atoms, with 5 % of its cells flipped."""
    data = datasets.planted(500, 200, 8, algebra=algebra, atom_density=density, code_density=density, random_state=0)
    return BitMatrix.from_dense(data.X)


#: The tables that come with bitatoms, by name: what each is, and a function that returns it.
BUNDLED = {
    "digits": Bundled(
        "handwritten digits of 8 × 8 pixels, from scikit-learn", lambda: BitMatrix.from_dense(datasets.digits()[0])
    ),
    "halftone": Bundled(
        "a halftone picture in blocks of 16 × 16 pixels",
        lambda: BitMatrix.from_dense(datasets.cut_blocks(datasets.halftone())),
    ),
    "baskets": Bundled("synthetic market baskets", lambda: datasets.baskets().bits),
    "genotypes": Bundled("synthetic genotypes of three populations", lambda: datasets.genotypes().bits),
    "planted-or": Bundled("eight atoms combined by OR, 5 % of the cells flipped", lambda: _planted("or", 0.15)),
    "planted-xor": Bundled("eight atoms combined by XOR, 5 % of the cells flipped", lambda: _planted("xor", 0.15)),
    "planted-dense": Bundled(
        "eight atoms combined by XOR, atoms and codes half ones, 5 % of the cells flipped",
        lambda: _planted("xor", 0.5),
    ),
}
