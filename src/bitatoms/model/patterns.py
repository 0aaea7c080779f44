"""Patterns: atoms in readable form, and what is known about them.

How many times as often their features occur together as by chance (lifts), how often they are found again (recurrence),
and by how much atoms overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..columns.table import Names
from ..formatting import counted
from ..sparse_bits import Bits
from ..system.libraries import import_library
from .complete_rows import MemberCounts
from .result import ResultBase

LIFTS_READING = (
    "The lift compares complete rows with those expected if features were independent; the × of a feature compares its "
    "share of the rows that have the rest of the pattern with its share of all rows."
)

PATTERN_COLUMNS = {  # with their types; those of "Int64" and "float64" are missing where a number is unknown
    "atom": "int64",
    "features": "object",
    "size": "int64",
    "rows": "int64",
    "share": "float64",
    "bits_saved": "int64",
    "complete": "Int64",
    "expected": "float64",
    "lift": "float64",
    "member_lifts": "object",
    "recurs": "float64",
    "span": "object",
}


class Pattern(NamedTuple):
    """An atom in readable form.

    Attributes
    ----------
    atom : int
        Rank by bits saved, from 1.
    features : tuple of str
        The features that it sets; "not x" where it clears a feature that the bias sets.
    rows : int
        Number of rows that use it.
    share : float
        Their share of all rows.
    bits_saved : int
        By how many bits the description would be longer without it.
    complete : int or None
        Number of rows that have all its features, whether they use it or not; None if unknown.
    recurs : float or None
        Share of the searches of `bitatoms.stability` that found it again; None if unknown.
    span : str or None
        From its first to its last position, as in 20:1000-2000; None if columns have no positions.
    expected : float or None
        Number of complete rows, if features were independent; None if unknown.
    lift : float or None
        Complete rows for each expected one; None if unknown, or none are expected.
    member_lifts : tuple of float or None
        For each feature: its share of the rows that have the others, divided by its share of all rows; None if
        unknown.
    """

    atom: int
    features: Names
    rows: int
    share: float
    bits_saved: int
    complete: int | None = None
    recurs: float | None = None
    span: str | None = None
    expected: float | None = None
    lift: float | None = None
    member_lifts: tuple[float | None, ...] | None = None

    @property
    def size(self) -> int:
        """The number of features."""
        return len(self.features)


def pattern_frame(patterns: Sequence[Pattern], leave_out: Sequence[str] = ()) -> Any:
    """Return a data frame with one row per pattern and the same columns for all models, less those to leave out."""
    pd = import_library("pandas", "data frames need")
    return pd.DataFrame(
        {
            name: pd.Series([getattr(pattern, name) for pattern in patterns], dtype=dtype)
            for name, dtype in PATTERN_COLUMNS.items()
            if name not in leave_out
        }
    )


class Lifts(NamedTuple):
    """What chance would explain of each atom; NaN where that is nothing, or no row has the rest of the atom."""

    expected: NDArray[np.float64]  # (n_atoms,): complete rows, if features were independent
    whole: NDArray[np.float64]  # (n_atoms,): complete rows for each expected one
    members: NDArray[np.float64]  # (ones of the atoms,): share of the rows with the rest, per share of all rows
    edges: NDArray[np.intp]  # (n_atoms + 1,): where the ones of each atom begin, and where the last ones end

    def of_members(self, atom: int) -> NDArray[np.float64]:
        """Return the lifts of the features of an atom."""
        return self.members[self.edges[atom] : self.edges[atom + 1]]

    def of_pattern(self, atom: int) -> dict[str, Any]:
        """Return the lifts of an atom as fields of its `Pattern`."""
        return {
            "expected": float(self.expected[atom]),
            "lift": number_or_none(self.whole[atom]),
            "member_lifts": tuple(map(number_or_none, self.of_members(atom))),
        }


def lifts_of(atoms: Bits, shares: NDArray[np.float64], counts: MemberCounts) -> Lifts:
    """Return the lifts of atoms, and of each of their features given the other features of the atom.

    ``shares`` are the shares of the rows that have each feature (see `feature_shares`).
    """
    weights, of_ones = atoms.row_weights(), shares[atoms.to_sparse().indices]
    edges = np.concatenate(([0], np.cumsum(weights))).astype(np.intp)
    product, has_ones = np.ones(len(weights)), weights > 0
    if has_ones.any():
        product[has_ones] = np.multiply.reduceat(of_ones, edges[:-1][has_ones])
    expected = product * counts.atom_known
    complete = np.repeat(counts.complete, weights)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        whole = counts.complete / expected
        members = complete / (complete + counts.lacking) / of_ones
    return Lifts(expected, _finite(whole), _finite(members), edges)


def feature_shares(bias: NDArray[np.uint8], ones: NDArray[np.int64], n_known: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the share of the rows that have each feature or, where the bias sets it, of those that do not.

    A feature that the bias sets is absent from the complete rows of an atom.
    """
    shares = ones / np.maximum(n_known, 1)
    return np.where(bias > 0, 1 - shares, shares)


def _finite(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values with NaN in place of infinity."""
    return np.where(np.isfinite(values), values, np.nan)


def number_or_none(value: float) -> float | None:
    """Return a number, None if it is not one."""
    return None if np.isnan(value) else float(value)


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
        searches = counted(self.n_resamples, "search", "searches")
        if self.n_resamples > 1:
            searches += ", each"
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
