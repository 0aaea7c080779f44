"""Recurrence: how often the atoms of a model are found again, and by how much atoms overlap."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..sparse_bits import Bits
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
    return atom_overlaps(first.atoms, second.atoms, np.flatnonzero(first.bias == second.bias))


def atom_overlaps(first: Bits, second: Bits, agreed: NDArray[np.intp] | slice = slice(None)) -> NDArray[np.float64]:
    """Return the Jaccard index of each atom of the first set with each of the second.

    Ones in columns other than the ``agreed`` ones are never shared.
    """
    ones, others = (atoms.to_sparse().astype(np.int64)[:, agreed] for atoms in (first, second))
    same = (ones @ others.T).toarray()
    either = first.row_weights()[:, np.newaxis] + second.row_weights() - same
    return same / np.maximum(either, 1)


def match_atoms(overlap: NDArray[np.float64]) -> NDArray[np.float64]:
    """Match atoms one to one, and return the overlap of each atom of the rows with its partner, 0 if it has none."""
    matched = np.zeros(overlap.shape[0])
    for row, column in match_pairs(overlap):
        matched[row] = overlap[row, column]
    return matched


def match_pairs(overlap: NDArray[np.float64], preferred: NDArray[np.bool_] | None = None) -> list[tuple[int, int]]:
    """Match atoms that overlap one to one, and return the row and the column of each pair.

    The pair with the largest overlap is matched first, on a tie a preferred one, then the one with the lowest row, then
    the lowest column; then the next among the atoms that are left.
    """
    rows, columns = np.nonzero(overlap)
    others = np.zeros(len(rows), bool) if preferred is None else ~preferred[rows, columns]
    pairs, matched_rows, matched_columns = [], set(), set()
    for row, column in np.stack([rows, columns], axis=1)[np.lexsort((others, -overlap[rows, columns]))].tolist():
        if row not in matched_rows and column not in matched_columns:
            pairs.append((row, column))
            matched_rows.add(row)
            matched_columns.add(column)
    return pairs
