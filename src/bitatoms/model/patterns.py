"""Patterns: atoms in readable form, and how many times as often their features occur together as by chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..libraries import import_library
from ..sparse_bits import Bits
from ..table import Names

LIFTS_READING = (
    "The lift compares complete rows with those expected if features were independent; the × of a feature compares its "
    "share of the rows that have the rest of the pattern with its share of all rows."
)

_COLUMNS = {  # with their types; those of "Int64" and "float64" are missing where a number is unknown
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
            for name, dtype in _COLUMNS.items()
            if name not in leave_out
        }
    )


class AtomCounts(NamedTuple):
    """Counts of a table: of its columns, and of the rows that have all features of an atom, or all but one.

    Only rows in which the cells concerned are known count.
    """

    ones: NDArray[np.int64]  # (n_features,): rows that have each feature
    n_known: NDArray[np.int64]  # rows in which each feature is known
    complete: NDArray[np.int64]  # (n_atoms,): rows in which the atom is complete
    atom_known: int | NDArray[np.int64]  # rows in which all features of the atom are known
    lacking: NDArray[np.int64] | None  # (ones of the atoms,): rows that lack this feature only; None if not counted


class Lifts(NamedTuple):
    """What chance would explain of each atom; NaN where that is nothing, or no row has the rest of the atom."""

    expected: NDArray[np.float64]  # (n_atoms,): complete rows, if features were independent
    whole: NDArray[np.float64]  # (n_atoms,): complete rows for each expected one
    members: NDArray[np.float64] | None  # (ones of the atoms,): share of the rows with the rest, per share of all rows

    def of_pattern(self, atom: int, ones: slice) -> dict[str, Any]:
        """Return the lifts of an atom, whose ones are these of all ones, as fields of its `Pattern`."""
        return {
            "expected": float(self.expected[atom]),
            "lift": number_or_none(self.whole[atom]),
            "member_lifts": None if self.members is None else tuple(map(number_or_none, self.members[ones])),
        }


def lifts_of(atoms: Bits, bias: NDArray[np.uint8], counts: AtomCounts) -> Lifts:
    """Return the lifts of atoms, and of each of their features given the other features of the atom.

    A feature that the bias sets is absent from complete rows, so that its share is that of the rows without it.
    """
    weights, shares = atoms.row_weights(), feature_shares(bias, counts.ones, counts.n_known)[atoms.to_sparse().indices]
    starts = np.concatenate(([0], np.cumsum(weights)[:-1])).astype(np.intp)
    product = np.ones(len(weights))
    if len(shares):
        has_ones = weights > 0
        product[has_ones] = np.multiply.reduceat(shares, starts[has_ones])
    expected = product * counts.atom_known
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        whole, members = counts.complete / expected, None
        if counts.lacking is not None:
            complete = np.repeat(counts.complete, weights)
            members = complete / (complete + counts.lacking) / shares
    return Lifts(expected, _finite(whole), None if members is None else _finite(members))


def feature_shares(bias: NDArray[np.uint8], ones: NDArray[np.int64], n_known: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the share of the rows that have each feature, or do not have it, if the bias sets it."""
    shares = ones / np.maximum(n_known, 1)
    return np.where(bias > 0, 1 - shares, shares)


def _finite(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values with NaN in place of infinity."""
    return np.where(np.isfinite(values), values, np.nan)


def number_or_none(value: float) -> float | None:
    """Return a number, None if it is not one."""
    return None if np.isnan(value) else float(value)
