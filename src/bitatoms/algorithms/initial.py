"""Starting atoms, one function each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.cpu import words
from ..parallel import Workers
from .block import Block
from .coding import coding_rule

_CANDIDATES = 3
_LLOYD_ROUNDS = 3


def bernoulli(n_atoms: int, n_features: int, density: float, random: np.random.Generator) -> BitMatrix:
    """Each bit is 1 with probability ``density`` (Section III-D)."""
    return BitMatrix.from_dense(random.random((n_atoms, n_features)) < density)


def samples(data: BitMatrix, n_atoms: int, random: np.random.Generator) -> BitMatrix:
    """Rows of the data drawn at random, distinct and not all zeros; fewer where the data has fewer (Section III-D)."""
    chosen: dict[bytes, int] = {bytes(data.words.shape[1] * 8): -1}
    n_tries = min(data.n_rows, 2 * n_atoms)
    while len(chosen) <= n_atoms and n_tries:  # few rows are enough, unless many are equal or zero
        for j in random.choice(data.n_rows, n_tries, replace=False):
            if len(chosen) <= n_atoms:
                chosen.setdefault(data.words[j].tobytes(), int(j))
        n_tries = 0 if n_tries == data.n_rows else min(data.n_rows, 8 * n_tries)
    return data[np.array([j for j in chosen.values() if j >= 0], np.intp)]


def spread(data: BitMatrix, n_atoms: int, random: np.random.Generator, workers: Workers) -> BitMatrix:
    """Rows far from each other by Hamming distance, moved to the middle of the rows nearest to them.

    In the manner of k-means++: a row is drawn with its distance to the nearest atom so far as weight, at first its
    distance to the zero vector; the best of three such rows is taken. Then three rounds of Lloyd's algorithm with at
    most one atom a row. Fewer atoms come back where the data has fewer distinct rows.
    """
    distances = data.row_weights()
    chosen: list[int] = []
    for _ in range(n_atoms):
        total = int(distances.sum())
        if total == 0:
            break
        ends = np.cumsum(distances)
        candidates = np.searchsorted(ends, random.integers(total, size=_CANDIDATES), side="right")
        trials = [np.minimum(distances, _hamming(data, int(j))) for j in candidates]
        best = int(np.argmin([trial.sum() for trial in trials]))
        chosen.append(int(candidates[best]))
        distances = trials[best]
    atoms = data[np.array(chosen, np.intp)]
    for _ in range(_LLOYD_ROUNDS):
        block = Block(data, atoms, None, False, workers)
        block.code(coding_rule("greedy", "xor", max_atoms=1))
        block.update()
        atoms = block.factors()[0]
    return atoms


def _hamming(data: BitMatrix, j: int) -> NDArray[np.int64]:
    """The number of bits in which each row differs from row j."""
    distances = np.empty(data.n_rows, np.int64)
    words.hamming(data.words, j, distances)
    return distances
