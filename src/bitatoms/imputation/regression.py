"""Each variable predicted from all others by ridge regression, learned from incomplete tables.

The regressions of all columns follow from one matrix, the inverse of the penalized correlations. Unknown cells are
replaced by what is predicted for them, a few times. It suits tables whose columns say a little about many others.

Numbers are rounded so that all sums are exact, in any order: BLAS adds in an order that depends on its threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # comes with scikit-learn

from ..bits import BitMatrix
from ..parallel import Workers
from ..sparse_bits import Bits, packed
from .hidden_cells import hidden_folds, sample_of, shares_of, without_cells
from .tied_columns import TiedColumns

MOST_COLUMNS = 1000  # a fit inverts 30 matrices with this many columns
FEWEST_ROWS = 50  # of which a regression is part of the predictions of a model
_CHUNK_CELLS = 1 << 22
_CELL_UNIT, _WEIGHT_UNIT = 2.0**-18, 2.0**-22  # of cells and of weights: sums of 4,000 products have 53 bits


class RegressionPlan(NamedTuple):
    """How columns are predicted."""

    most_rows: int = 10_000  # a sample of this many rows is learned from,
    most_cells: int = 1 << 22  # or of rows with so many cells
    penalties: tuple[float, ...] = (10.0, 30.0, 100.0, 300.0, 1000.0)  # in rows; the best one predicts hidden cells
    hidden_share: float = 0.1  # of the known cells, by which it is chosen
    n_steps: int = 5  # in which unknown cells are replaced
    least: float = 0.1  # probability of a value, relative to its share in the column


PLAN = RegressionPlan()


@dataclass(frozen=True, eq=False)
class Regression:
    """The shares of ones in the columns, and the weights of all columns in the prediction of each."""

    shares: NDArray[np.float64]
    weights: NDArray[np.float64]  # (m, m): of a difference from the share in a row, in the prediction of a column
    n_iter: int = PLAN.n_steps

    def cell_probabilities(self, data: BitMatrix, _: Workers) -> NDArray[np.float64]:
        """Return the probability of a one in every cell, given the other known cells of its row."""
        found = np.empty(data.shape)
        size = max(1, _CHUNK_CELLS // max(1, data.n_cols))
        with threadpool_limits(1):  # more threads of BLAS are slower if others are busy
            for start in range(0, data.n_rows, size):
                rows = slice(start, start + size)
                cells, unknown = _cells(data[rows], self.shares)
                for _step in range(self.n_iter if unknown.any() else 1):
                    found[rows] = self._predicted(cells)
                    cells = np.where(unknown, found[rows], cells)
        return found

    def _predicted(self, cells: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return predictions of all cells, from known cells and replaced ones."""
        differences = np.rint((cells - self.shares) / _CELL_UNIT) * _CELL_UNIT
        found, least = self.shares + differences @ self.weights, PLAN.least
        return np.clip(found, least * self.shares, 1 - least * (1 - self.shares))


def fit_regression(
    data: BitMatrix, tied: TiedColumns, random: np.random.Generator, plan: RegressionPlan = PLAN
) -> Regression:
    """Learn from rows with unknown cells; of many rows, from a sample."""
    data = sample_of(data, plan.most_rows, plan.most_cells // max(1, data.n_cols), random)
    (hidden,) = hidden_folds(data, 1, plan.hidden_share, random, tied.first)
    visible, mask = without_cells(data, hidden), hidden.to_dense(bool)
    truth = data.filled().to_dense(bool)[mask]
    losses = []
    with threadpool_limits(1):
        for penalty in plan.penalties:
            tried = _learned(visible, tied, penalty, plan.n_steps)
            predicted = tried.cell_probabilities(visible, Workers())[mask]
            losses.append(-np.log(np.where(truth, predicted, 1 - predicted)).sum())
        return _learned(data, tied, plan.penalties[int(np.argmin(losses))], plan.n_steps)


def regression_for(data: Bits, tied: TiedColumns) -> Regression | None:
    """Return the regression that predicts cells beside the atoms of a model; None of few rows, or of many columns.

    It is the same for every seed of the model.
    """
    if len(data) < FEWEST_ROWS or data.n_cols > MOST_COLUMNS:
        return None
    return fit_regression(packed(data), tied, np.random.default_rng(0))


def _learned(data: BitMatrix, tied: TiedColumns, penalty: float, n_steps: int) -> Regression:
    """Learn with a penalty, replacing unknown cells this many times."""
    shares = shares_of(data)
    cells, unknown = _cells(data, shares)
    deviations = np.sqrt(shares * (1 - shares))
    for _ in range(n_steps if unknown.any() else 1):
        differences = np.rint((cells - shares) / _CELL_UNIT) * _CELL_UNIT
        correlations = (differences.T @ differences) / np.outer(deviations, deviations)
        inverse = np.linalg.inv(correlations + penalty * np.eye(len(shares)))
        weights = _weights(inverse, tied) * deviations / deviations[:, np.newaxis]
        found = Regression(shares, np.rint(weights / _WEIGHT_UNIT) * _WEIGHT_UNIT, n_steps)
        cells = np.where(unknown, found._predicted(cells), cells)
    return found


def _weights(inverse: NDArray[np.float64], tied: TiedColumns) -> NDArray[np.float64]:
    """Return the weights of all columns in the prediction of each, 0 for those of its own variable."""
    weights = np.empty_like(inverse)
    for kind in tied.kinds:
        for own in kind.columns:
            weights[:, own] = -inverse[:, own] @ np.linalg.inv(inverse[np.ix_(own, own)])
            weights[np.ix_(own, own)] = 0
    return weights


def _cells(data: BitMatrix, shares: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the cells, unknown ones as the shares of their columns, and which are unknown."""
    cells = data.filled().to_dense(np.float64)
    if data.unknown is None:
        return cells, np.zeros(data.shape, bool)
    unknown = data.unknown.to_dense(bool)
    return np.where(unknown, shares, cells), unknown
