"""Recurrence: how often the atoms of a model are found again, and by how much atoms overlap."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .result import ResultBase


class Recurrence(NamedTuple):
    """How often each atom of a model was found again by searches of parts of the rows."""

    counts: NDArray[np.int64]  # searches that found each atom again
    n_resamples: int  # searches
    share: float  # of the rows, that each search saw
    threshold: float  # overlap from which an atom counts as found again

    @property
    def shares(self) -> NDArray[np.float64]:
        """The share of the searches that found each atom again."""
        return self.counts / self.n_resamples

    @property
    def settings(self) -> dict[str, int | float]:
        """What the counts depend on, by name."""
        return {"n_resamples": self.n_resamples, "share": self.share, "threshold": self.threshold}

    @property
    def searches(self) -> str:
        """The searches in words."""
        searches = "1 search" if self.n_resamples == 1 else f"{self.n_resamples} searches, each"
        rows = "all rows with another seed" if self.share == 1 else f"{100 * self.share:g}% of the rows"
        return f"{searches} of {rows}"

    @property
    def reading(self) -> str:
        """How to read the shares, in a sentence."""
        return (
            f'"recurs" is the share of {self.searches}, that found the pattern again: with features that overlap by at '
            f"least {self.threshold:g} (Jaccard index)."
        )


def overlaps(first: ResultBase, second: ResultBase) -> NDArray[np.float64]:
    """Return the overlap of each atom of the first result (rows) with each atom of the second (columns).

    It is the Jaccard index of what the atoms say about features: that they are present, or absent where the bias sets
    them. The number of features of which both say the same is divided by the number of statements that either makes.
    An atom without ones says nothing, and overlaps with none.
    """
    agreed = np.flatnonzero(first.bias == second.bias)
    said, other = (result.atoms.to_sparse().astype(np.int64)[:, agreed] for result in (first, second))
    same = (said @ other.T).toarray()
    either = first.atoms.row_weights()[:, np.newaxis] + second.atoms.row_weights() - same
    return same / np.maximum(either, 1)


def match_atoms(overlap: NDArray[np.float64]) -> NDArray[np.float64]:
    """Match atoms one to one, and return the overlap of each atom of the rows with its partner, 0 if it has none.

    The pair with the largest overlap is matched first, on a tie the one with the lowest row, then the lowest column;
    then the next among the atoms that are left.
    """
    matched = np.zeros(overlap.shape[0])
    is_free = np.ones(overlap.shape[1], np.bool_)
    is_matched = np.zeros(overlap.shape[0], np.bool_)
    rows, columns = np.nonzero(overlap)
    for pair in np.argsort(-overlap[rows, columns], kind="stable"):
        row, column = rows[pair], columns[pair]
        if is_free[column] and not is_matched[row]:
            matched[row], is_matched[row], is_free[column] = overlap[row, column], True, False
    return matched
