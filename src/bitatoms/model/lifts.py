"""Lifts: how many times as often features occur together as if they were independent of each other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..sparse_bits import Bits

LIFTS_READING = (
    "The lift compares complete rows with those expected if features were independent; the × of a feature compares its "
    "share of the rows that have the rest of the pattern with its share of all rows."
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


def lifts_of(atoms: Bits, bias: NDArray[np.uint8], counts: AtomCounts) -> Lifts:
    """Return the lifts of atoms, and of each of their features given the other features of the atom.

    A feature that the bias sets is absent from complete rows, so that its share is that of the rows without it.
    """
    weights, shares = atoms.row_weights(), member_shares(atoms, bias, counts)
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


def member_shares(atoms: Bits, bias: NDArray[np.uint8], counts: AtomCounts) -> NDArray[np.float64]:
    """Return the share of the rows that have each feature of each atom, or do not have it, if the bias sets it."""
    columns = atoms.to_sparse().indices
    known = counts.n_known[columns]
    shares = counts.ones[columns] / np.maximum(known, 1)
    return np.where(bias[columns] > 0, 1 - shares, shares)


def _finite(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return values with NaN in place of infinity."""
    return np.where(np.isfinite(values), values, np.nan)
