"""A sample of the rows of a stream, of bounded size, in which every row stands as likely as it is remembered."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix

_MOST_ROWS, _FEWEST_ROWS = 1 << 12, 1 << 10  # of a sample: the first, unless they have more bits than
_MOST_BITS = 1 << 26  # this; then fewer, but not fewer than the second


def sample_size(n_features: int) -> int:
    """How many rows of a stream are kept at most."""
    return min(_MOST_ROWS, max(_FEWEST_ROWS, _MOST_BITS // max(1, n_features)))


@dataclass(frozen=True, eq=False)
class Reservoir:
    """Rows in the order they came, the code and the key of each.

    A row that comes draws a key from Gumbel's distribution, and keys fall, with every row that comes after, by as much
    as the logarithm of what its row weighs. The rows with the highest keys are then a sample drawn without replacement
    by these weights, at any time, and one that has left never comes back (Efraimidis and Spirakis, 2006).
    """

    rows: BitMatrix
    codes: BitMatrix
    keys: NDArray[np.float64]

    @classmethod
    def empty(cls, n_features: int, n_atoms: int) -> Reservoir:
        """No rows yet."""
        return cls(BitMatrix.zeros(0, n_features), BitMatrix.zeros(0, n_atoms), np.empty(0))

    def take_in(
        self, batch: BitMatrix, codes: BitMatrix, forget: float, most: int, random: np.random.Generator
    ) -> Reservoir:
        """The same after these rows came, of which so many may stay."""
        faded = -np.inf if forget == 1 else batch.n_rows * np.log1p(-forget)
        keys = np.concatenate([self.keys + faded, random.gumbel(size=batch.n_rows)])
        stay = np.sort(np.argsort(-keys, kind="stable")[: min(most, int((keys > -np.inf).sum()))])
        return Reservoir(_joined(self.rows, batch, stay), _joined(self.codes, codes, stay), keys[stay])

    def with_atoms(self, kept: NDArray[np.intp]) -> Reservoir:
        """With the codes of these atoms, in their order."""
        return replace(self, codes=self.codes.T[kept].T)

    def with_more_atoms(self, n_atoms: int) -> Reservoir:
        """With so many more atoms, which no row uses."""
        n_all = self.codes.n_cols + n_atoms
        words = np.zeros((len(self.rows), -(-n_all // 64)), np.uint64)
        words[:, : self.codes.words.shape[1]] = self.codes.words
        return replace(self, codes=BitMatrix.from_words(words, n_all, check=False))


def _joined(first: BitMatrix, second: BitMatrix, places: NDArray[np.intp]) -> BitMatrix:
    """Rows of one matrix and another below it, by their places."""
    return BitMatrix.from_words(np.concatenate([first.words, second.words])[places], second.n_cols, check=False)
