"""Profiles: groups of similar rows, each with the shares of the values of variables; of tables with unknown cells.

A mixture of independent variables (latent classes), fitted by expectation maximization. A row belongs to each profile
with some probability, which follows from its known values; the probability of a one in a cell is the mean over the
profiles. It suits tables whose rows fall into groups, and in which no few atoms explain the cells.

BLAS adds products in an order that depends on its number of threads. Factors are rounded so that all sums are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # comes with scikit-learn

from ..bits import BitMatrix
from ..parallel import Workers
from .hidden_cells import sample_of
from .tied_columns import TiedColumns

_CHUNK_ROWS = 8192
_UNIT = 2.0**-26  # of probabilities: a product of two of them has 52 bits


class ProfilePlan(NamedTuple):
    """How profiles are learned."""

    rows_per_profile: int = 20
    most_profiles: int = 50
    n_starts: int = 5  # mixtures, whose probabilities are averaged
    n_steps: int = 30  # of expectation maximization
    most_rows: int = 10_000  # a sample of this many rows is learned from,
    most_values: int = 1 << 22  # or of rows with so many values
    prior_rows: float = 1.0  # rows with the shares of all rows, that each profile has besides its own
    contrast: float = 0.6  # weight of the values of a profile's first row in the shares that it begins with


PLAN = ProfilePlan()


@dataclass(frozen=True, eq=False)
class Mixture:
    """Profiles of one start.

    Attributes
    ----------
    shares : ndarray of shape (n_profiles, n_values), float64
        The probabilities of the values of all variables, one variable after the other.
    weights : ndarray of shape (n_profiles,), float64
        The probability of each profile.
    """

    shares: NDArray[np.float64]
    weights: NDArray[np.float64]

    def memberships(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of each profile for rows with these known values."""
        logs = _rounded(np.log(self.shares), self.shares.shape[1]).T
        logs = values @ logs + np.log(self.weights)
        members = np.exp(logs - logs.max(axis=1, keepdims=True))
        members /= members.sum(axis=1, keepdims=True)
        return members

    def cell_shares(self, tied: TiedColumns) -> NDArray[np.float64]:
        """Return the probability of a one in each column, (n_profiles, n_cols)."""
        cells = np.empty((len(self.shares), tied.n_cols))
        for kind, own in zip(tied.kinds, tied.value_slices, strict=True):
            kind.add_cells(self.shares[:, own].reshape(len(cells), *kind.shape), cells)
        return cells


@dataclass(frozen=True, eq=False)
class Profiles:
    """Mixtures of several starts, whose predictions are averaged."""

    mixtures: tuple[Mixture, ...]
    tied: TiedColumns
    n_iter: int = PLAN.n_steps

    def cell_probabilities(self, data: BitMatrix, _: Workers) -> NDArray[np.float64]:
        """Return the probability of a one in every cell, given the known cells of its row."""
        probabilities = np.zeros(data.shape)
        cell_shares = [
            np.rint(mixture.cell_shares(self.tied) / _UNIT).clip(1, 1 / _UNIT - 1) * _UNIT for mixture in self.mixtures
        ]
        with threadpool_limits(1):  # more threads of BLAS are slower if others are busy
            for start in range(0, data.n_rows, _CHUNK_ROWS):
                chunk = data[start : start + _CHUNK_ROWS]
                values = self.tied.indicators(chunk)
                for mixture, shares in zip(self.mixtures, cell_shares, strict=True):
                    members = np.floor(mixture.memberships(values) / _UNIT) * _UNIT  # whose sum is at most 1
                    probabilities[start : start + len(chunk)] += members @ shares
        return probabilities / len(self.mixtures)


def fit_profiles(
    data: BitMatrix,
    tied: TiedColumns,
    n_profiles: int | None,
    random: np.random.Generator,
    plan: ProfilePlan = PLAN,
) -> Profiles:
    """Learn profiles from rows with unknown cells; None chooses their number by the number of rows."""
    data = sample_of(data, plan.most_rows, plan.most_values // max(1, tied.n_values), random)
    if n_profiles is None:
        n_profiles = min(plan.most_profiles, max(1, data.n_rows // plan.rows_per_profile))
    n_profiles, values = min(n_profiles, data.n_rows), tied.indicators(data)
    with threadpool_limits(1):
        mixtures = tuple(_fit_mixture(values, tied, n_profiles, random, plan) for _ in range(plan.n_starts))
    return Profiles(mixtures, tied, plan.n_steps)


def _fit_mixture(
    values: NDArray[np.float64], tied: TiedColumns, n_profiles: int, random: np.random.Generator, plan: ProfilePlan
) -> Mixture:
    """Learn a mixture, starting from rows drawn at random."""
    overall = tied.normalized(values.sum(axis=0) + 0.5)
    first = values[random.choice(len(values), n_profiles, replace=False)]
    is_known = tied.sums(first) > 0
    n_values = tied.sums(np.ones_like(overall))
    start = (1 - plan.contrast) / n_values + plan.contrast * first
    mixture = Mixture(np.where(is_known, start, overall), np.full(n_profiles, 1 / n_profiles))
    for _ in range(plan.n_steps):
        members = mixture.memberships(values)
        found = _rounded(members, len(members)).T @ values
        shares = tied.normalized(found + plan.prior_rows * overall)
        mixture = Mixture(shares, (members.sum(axis=0) + 0.5) / (len(values) + 0.5 * n_profiles))
    return mixture


def _rounded(values: NDArray[np.float64], n_terms: int) -> NDArray[np.float64]:
    """Round values so that every sum of ``n_terms`` of them is exact, in any order."""
    unit = 2 * np.spacing(n_terms * np.abs(values).max(initial=1))
    return np.rint(values / unit) * unit
