"""Profiles: groups of similar rows, each with the shares of ones in its columns, learned from incomplete tables.

A mixture of Bernoulli distributions, fitted by expectation maximization. A row belongs to each profile with some
probability, which follows from its known cells; the probability of a one in a cell is the mean over the profiles. It
suits tables whose rows fall into groups, and in which no few atoms explain the cells.

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

_CHUNK_ROWS = 8192
_UNIT = 2.0**-26  # of probabilities: a product of two of them has 52 bits


class ProfilePlan(NamedTuple):
    """How profiles are learned."""

    rows_per_profile: int = 20
    most_profiles: int = 50
    n_starts: int = 5  # mixtures, whose probabilities are averaged
    n_steps: int = 30  # of expectation maximization
    most_rows: int = 10_000  # a sample of this many rows is learned from
    prior_rows: float = 1.0  # rows with the shares of all rows, that each profile has besides its own
    contrast: float = 0.6  # difference between the share where a profile's first row has a one and where it has a zero


PLAN = ProfilePlan()


@dataclass(frozen=True, eq=False)
class Mixture:
    """Profiles of one start.

    Attributes
    ----------
    shares : ndarray of shape (n_profiles, n_features), float64
        The probability of a one in each column.
    weights : ndarray of shape (n_profiles,), float64
        The probability of each profile.
    """

    shares: NDArray[np.float64]
    weights: NDArray[np.float64]

    def memberships(self, ones: NDArray[np.float64], zeros: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of each profile for rows with these known ones and zeros."""
        of_ones, of_zeros = (_rounded(logs, logs.shape[1]).T for logs in (np.log(self.shares), np.log1p(-self.shares)))
        logs = ones @ of_ones + zeros @ of_zeros + np.log(self.weights)
        members = np.exp(logs - logs.max(axis=1, keepdims=True))
        members /= members.sum(axis=1, keepdims=True)
        return members


@dataclass(frozen=True, eq=False)
class Profiles:
    """Mixtures of several starts, whose predictions are averaged."""

    mixtures: tuple[Mixture, ...]
    n_iter: int = PLAN.n_steps

    def cell_probabilities(self, data: BitMatrix, _: Workers) -> NDArray[np.float64]:
        """Return the probability of a one in every cell, given the known cells of its row."""
        probabilities = np.zeros(data.shape)
        with threadpool_limits(1):  # more threads of BLAS are slower if others are busy
            for start in range(0, data.n_rows, _CHUNK_ROWS):
                chunk = data[start : start + _CHUNK_ROWS]
                ones, zeros = _known_values(chunk)
                for mixture in self.mixtures:
                    members = np.floor(mixture.memberships(ones, zeros) / _UNIT) * _UNIT  # whose sum is at most 1
                    shares = np.rint(mixture.shares / _UNIT).clip(1, 1 / _UNIT - 1) * _UNIT
                    probabilities[start : start + len(chunk)] += members @ shares
        return probabilities / len(self.mixtures)


def fit_profiles(
    data: BitMatrix, n_profiles: int | None, random: np.random.Generator, plan: ProfilePlan = PLAN
) -> Profiles:
    """Learn profiles from rows with unknown cells; None chooses their number by the number of rows."""
    if data.n_rows > plan.most_rows:
        data = data[np.sort(random.choice(data.n_rows, plan.most_rows, replace=False))]
    if n_profiles is None:
        n_profiles = min(plan.most_profiles, max(1, data.n_rows // plan.rows_per_profile))
    values = _known_values(data)
    n_profiles = min(n_profiles, data.n_rows)
    with threadpool_limits(1):
        mixtures = tuple(_fit_mixture(*values, n_profiles, random, plan) for _ in range(plan.n_starts))
    return Profiles(mixtures, plan.n_steps)


def _fit_mixture(
    ones: NDArray[np.float64],
    zeros: NDArray[np.float64],
    n_profiles: int,
    random: np.random.Generator,
    plan: ProfilePlan,
) -> Mixture:
    """Learn a mixture, starting from rows drawn at random."""
    known = ones + zeros
    overall = (ones.sum(axis=0) + 0.5) / (known.sum(axis=0) + 1)
    rows = random.choice(len(ones), n_profiles, replace=False)
    start = (1 - plan.contrast) / 2 + plan.contrast * ones[rows]
    mixture = Mixture(np.where(known[rows] > 0, start, overall), np.full(n_profiles, 1 / n_profiles))
    for _ in range(plan.n_steps):
        members = mixture.memberships(ones, zeros)
        counted = _rounded(members, len(members)).T
        found, n_rows = counted @ ones, counted @ known
        shares = (found + plan.prior_rows * overall) / (n_rows + plan.prior_rows)
        mixture = Mixture(shares, (members.sum(axis=0) + 0.5) / (len(ones) + 0.5 * n_profiles))
    return mixture


def _rounded(values: NDArray[np.float64], n_terms: int) -> NDArray[np.float64]:
    """Round values so that every sum of ``n_terms`` of them is exact, in any order."""
    unit = 2 * np.spacing(n_terms * np.abs(values).max(initial=1))
    return np.rint(values / unit) * unit


def _known_values(data: BitMatrix) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the known ones and the known zeros, as numbers 1 and 0."""
    ones = data.filled().to_dense(np.float64)
    zeros = 1 - ones
    return ones, zeros if data.unknown is None else zeros - data.unknown.to_dense(np.float64)
