"""Similarity of atoms to samples, compared with atoms whose pixels are shuffled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitatoms.bits import BitMatrix

MARGIN = 0.15  # above the similarity of shuffled atoms: clearly similar


class Similarity(NamedTuple):
    """The median over atoms of the Jaccard index with the most similar sample."""

    jaccard: float
    shuffled: float  # the same for atoms whose pixels are shuffled

    @property
    def is_clear(self) -> bool:
        """Whether atoms are clearly more similar to samples than shuffled atoms are."""
        return self.jaccard > self.shuffled + MARGIN


def sample_similarity(atoms: BitMatrix, data: BitMatrix, start: BitMatrix) -> Similarity:
    """Return the similarity of atoms to samples.

    Samples among the initial atoms are excluded: an atom that started as a sample resembles it without learning.
    """
    shuffled = BitMatrix.from_dense(atoms.to_dense()[:, np.random.default_rng(0).permutation(atoms.n_cols)])
    maxima = (max_jaccard(each, data, start) for each in (atoms, shuffled))
    return Similarity(*(float(np.median(values)) if len(values) else 0.0 for values in maxima))


def max_jaccard(atoms: BitMatrix, data: BitMatrix, start: BitMatrix) -> NDArray:
    """Return for each atom the largest Jaccard index with a sample that is not an initial atom."""
    initial = set(map(bytes, start.words))
    others = np.array([bytes(row) not in initial for row in data.words])
    patterns, rows = (bits.to_dense().astype(np.float32) for bits in (atoms, data[np.flatnonzero(others)]))
    if not len(rows):
        return np.zeros(len(patterns))
    intersection = patterns @ rows.T
    union = patterns.sum(axis=1)[:, np.newaxis] + rows.sum(axis=1) - intersection
    return (intersection / np.maximum(union, 1)).max(axis=1)
