"""Reservoir sampling: a sample of bounded size of the rows of a stream, weighted by how recent they are."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix, stack_rows


@dataclass(frozen=True, eq=False)
class Reservoir:
    """Sampled rows in order of arrival, with their codes and keys.

    Each new row draws a key from the Gumbel distribution. With every later row, keys fall as the logarithm of the
    row's weight does. At any time the rows with the highest keys are a sample drawn without replacement by these
    weights, and a row that has left never returns (Efraimidis and Spirakis, 2006).
    """

    rows: BitMatrix
    codes: BitMatrix
    keys: NDArray[np.float64]

    @classmethod
    def empty(cls, n_features: int, n_atoms: int) -> Reservoir:
        """Return a reservoir without rows."""
        return cls(BitMatrix.zeros(0, n_features), BitMatrix.zeros(0, n_atoms), np.empty(0))

    def with_batch(
        self, batch: BitMatrix, codes: BitMatrix, forget: float, max_rows: int, random: np.random.Generator
    ) -> Reservoir:
        """Return the reservoir after a batch, with at most ``max_rows`` rows."""
        decay = -np.inf if forget == 1 else batch.n_rows * np.log1p(-forget)
        keys = np.concatenate([self.keys + decay, random.gumbel(size=batch.n_rows)])
        kept = np.sort(np.argsort(-keys, kind="stable")[: min(max_rows, int((keys > -np.inf).sum()))])
        return Reservoir(_select(self.rows, batch, kept), _select(self.codes, codes, kept), keys[kept])

    def with_atoms(self, kept: NDArray[np.intp]) -> Reservoir:
        """Return the reservoir with the codes of these atoms, in their order."""
        return replace(self, codes=self.codes.T[kept].T)

    def with_more_atoms(self, n_atoms: int) -> Reservoir:
        """Return the reservoir with additional atoms, which no row uses."""
        n_all = self.codes.n_cols + n_atoms
        words = np.zeros((len(self.rows), -(-n_all // 64)), np.uint64)
        words[:, : self.codes.words.shape[1]] = self.codes.words
        return replace(self, codes=BitMatrix.from_words(words, n_all, check=False))


def _select(first: BitMatrix, second: BitMatrix, indices: NDArray[np.intp]) -> BitMatrix:
    """Return rows of two stacked matrices by index."""
    return stack_rows([first, second], second.n_cols)[indices]
