"""Recommendations: the features that a row does not have, by the probability that one of them is missing.

A zero in a basket may mean "not yet". Suppose that one more feature belongs to the row: which one is it? An item is
predicted with its own cell hidden, given all other cells of the row, by the atoms, by a regression on all other columns
and by its share; these are weighed by rows from which one feature was removed. The probabilities of the features that
a row lacks sum to 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..columns.table import feature_names
from ..imputation.pool import UNFITTED, HiddenValues, Pool, fit_pool
from ..imputation.regression import FEWEST_ROWS, fit_regression
from ..imputation.tied_columns import TiedColumns
from ..parallel import Workers
from ..sparse_bits import Bits
from .conditionals import CELL_COST, Conditionals
from .model import Model


class Recommendations(NamedTuple):
    """The most probable items that each sample does not have, the most probable first.

    Attributes
    ----------
    items : ndarray of shape (n_samples, n), str or int
        Names of features, "" where a sample has fewer other features; for samples without names, indices and -1.
    probabilities : ndarray of shape (n_samples, n), float64
        How probable it is that, if one feature of the sample is missing, it is this one; NaN where a sample has fewer
        other features.
    """

    items: NDArray[Any]
    probabilities: NDArray[np.float64]


class RemovalPlan(NamedTuple):
    """How rows are held out, and features removed from them, to weigh what predicts these."""

    n_folds: int = 5
    enough_rows: int = 1000  # of a fold, with which one fold suffices
    most_cells: int = 1 << 20  # of held-out rows,
    least_rows: int = 200  # but at least so many rows


PLAN = RemovalPlan()


def recommend(model: Model, data: Bits, n: int, workers: Workers) -> Recommendations:
    """Return the indices of at most ``n`` features for each row; on a tie, the first come first."""
    n = min(n, data.n_cols)
    hidden = Conditionals(model, workers.device)

    def run(start: int, stop: int) -> list[Recommendations]:
        return [_most_probable(hidden, data[rows], n) for rows in hidden.chunks(data, start, stop)]

    return joined((each for part in workers.map_rows(run, len(data), CELL_COST * data.n_cols) for each in part), n)


def joined(chunks: Iterable[Recommendations], n: int) -> Recommendations:
    """Return the recommendations for all rows from those for chunks of them, of ``n`` features each."""
    nothing = Recommendations(np.empty((0, n), np.int64), np.empty((0, n)))
    items, probabilities = zip(nothing, *chunks, strict=True)
    return Recommendations(np.concatenate(items), np.concatenate(probabilities))


def named(found: Recommendations, model: Model) -> Recommendations:
    """Return recommendations with names in place of the indices of features."""
    names = np.array([*feature_names(model.columns, range(model.atoms.n_cols)), ""], object)
    return Recommendations(names[found.items], found.probabilities)


def _most_probable(hidden: Conditionals, data: Bits, n: int) -> Recommendations:
    """Return the indices of the most probable features of a few rows."""
    bits = data if isinstance(data, BitMatrix) else data.bits
    model, candidates = hidden.model, _candidates(bits, hidden.model.tied_columns)
    pool, logs = model.item_pool or UNFITTED, _logs(hidden, bits)
    logs = logs[: len(pool.weights)]  # without what a regression states, if it was not weighed
    probabilities = np.full(bits.shape, -np.inf)
    some = candidates.any(axis=1)
    own = [each[some] if len(each) > 1 else each for each in logs]
    probabilities[some] = np.where(candidates[some], pool.combined(own, candidates[some]), -np.inf)
    features = largest(probabilities, n)
    chosen = np.take_along_axis(probabilities, features, axis=1)
    has_none = np.isneginf(chosen)
    return Recommendations(np.where(has_none, -1, features), np.where(has_none, np.nan, chosen))


def _candidates(rows: BitMatrix, tied: TiedColumns) -> NDArray[np.bool_]:
    """Return which features may be recommended: those that a row lacks, but no second answer to a question."""
    candidates = ~rows.filled().to_dense(bool)
    for kind in tied.kinds:
        if not kind.is_binary:
            is_answered = kind.indicators(rows).any(axis=2)
            for columns in kind.columns.T:
                candidates[:, columns] &= ~is_answered
    return candidates


def _logs(hidden: Conditionals, rows: BitMatrix) -> list[NDArray[np.float64]]:
    """Return the logarithms of the shares of the columns, and of what is stated of each cell."""
    return [np.log(each) for each in (hidden.shares[np.newaxis], *hidden.stated(rows))]


def fit_item_pool(
    data: BitMatrix,
    model: Model,
    learn: Callable[[BitMatrix], Model],
    random: np.random.Generator,
    plan: RemovalPlan = PLAN,
) -> Pool:
    """Weigh what predicts items by rows that are held out, and from which one feature is removed.

    ``learn`` returns the model of the other rows; they have a regression if ``model`` has one. Of few rows, nothing is
    learned.
    """
    if len(data) < FEWEST_ROWS:
        return UNFITTED
    folds = np.array_split(random.permutation(len(data)), plan.n_folds)
    most = max(plan.least_rows, plan.most_cells // max(1, data.n_cols))
    n_folds = 1 if len(folds[0]) >= min(most, plan.enough_rows) else plan.n_folds
    values = []
    for judged in folds[:n_folds]:
        others = data[np.setdiff1d(np.arange(len(data)), judged)]
        learned = learn(others)
        if model.regression is not None:
            learned = replace(learned, regression=fit_regression(others, model.tied_columns, random))
        rows, removed = _with_one_removed(data[np.sort(judged)[:most]], random)
        logs = [np.broadcast_to(each, rows.shape) for each in _logs(Conditionals(learned), rows)]
        candidates = _candidates(rows, model.tied_columns)
        values.append(HiddenValues(np.where(candidates, np.stack(logs), 0), removed, candidates))
    return fit_pool(values)


def _with_one_removed(rows: BitMatrix, random: np.random.Generator) -> tuple[BitMatrix, NDArray[np.intp]]:
    """Return the rows with at least two features, without one of them, drawn at random; and which one."""
    cells = rows.filled().to_dense()
    several = np.flatnonzero(cells.sum(axis=1, dtype=np.int64) > 1)
    cells = cells[several]
    removed = np.where(cells == 1, random.random(cells.shape), -1).argmax(axis=1)
    cells[np.arange(len(cells)), removed] = 0
    return BitMatrix.from_dense(cells).with_unknown(rows[several].unknown), removed


def largest(values: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    """Return the columns of the ``n`` largest values of each row in descending order; on a tie, the first columns."""
    if not n:
        return np.empty((len(values), 0), np.int64)
    least = -np.partition(-values, n - 1, axis=1)[:, n - 1 : n]
    above, equal = values > least, values == least
    chosen = above | (equal & (np.cumsum(equal, axis=1) <= n - above.sum(axis=1, keepdims=True)))
    columns = np.nonzero(chosen)[1].reshape(len(values), n)
    order = np.argsort(-np.take_along_axis(values, columns, axis=1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)
