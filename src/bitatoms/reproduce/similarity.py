"""How like samples atoms are, beside atoms of the same size that are like none."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix

MORE = 0.15  # in common than shuffled pixels have: alike


class Alike(NamedTuple):
    """What the typical atom shares with the sample that it is most like."""

    share: float  # of all pixels that are black in either, those that are in both
    shuffled: float  # the same for atoms whose pixels are shuffled

    @property
    def clearly(self) -> bool:
        """Whether they are more alike than chance would have it."""
        return self.share > self.shuffled + MORE


def likeness(atoms: BitMatrix, data: BitMatrix, start: BitMatrix) -> Alike:
    """How like samples atoms are, and how like they would be with their pixels shuffled.

    An atom that began as a sample is like that one, whatever it has learned: those of the start are left out.
    """
    shuffled = BitMatrix.from_dense(atoms.to_dense()[:, np.random.default_rng(0).permutation(atoms.n_cols)])
    shares = (most_shared(each, data, start) for each in (atoms, shuffled))
    return Alike(*(float(np.median(share)) if len(share) else 0.0 for share in shares))


def most_shared(atoms: BitMatrix, data: BitMatrix, start: BitMatrix) -> NDArray:
    """For each atom, the largest share of ones in both among ones in either, over the samples not of the start."""
    begun = set(map(bytes, start.words))
    others = np.array([bytes(row) not in begun for row in data.words])
    patterns, rows = (table.to_dense().astype(np.float32) for table in (atoms, data[np.flatnonzero(others)]))
    if not len(rows):
        return np.zeros(len(patterns))
    both = patterns @ rows.T
    either = patterns.sum(axis=1)[:, np.newaxis] + rows.sum(axis=1) - both
    return (both / np.maximum(either, 1)).max(axis=1)
