"""A pool of predictions: several predictors of cells, weighed by how well they predict cells hidden from them.

The probability of a value is proportional to the product of what each predictor states, each to the power of its
weight (a logarithmic pool), and bent by a curve of few parts. The shares of the columns are one of the predictors.
Weights and curve have the least log loss on known cells that were hidden while the predictors learned: stated
probabilities come true, also those of a predictor alone that would state too much.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits  # comes with scikit-learn

from ..bits import BitMatrix
from ..parallel import Workers
from .hidden_cells import CellScores, hidden_folds, shares_of, without_cells
from .tied_columns import Convert, TiedColumns, Variables, fill_unknown

_DOUBT = 0.01  # weight of the shares of the columns in what each predictor states: nothing is certain
_KNOTS = np.log(np.array([1 / 4, 2 / 3, 3 / 2, 4]))  # odds of .2, .4, .6 and .8, at which the curve bends
_RIDGE = 1e-4  # of weights, per cell
_STIFFNESS = 3.0  # of the curve, in cells
_CHUNK_CELLS = 1 << 20  # of rows that are predicted together


class Predictor(Protocol):
    """What predicts cells."""

    @property
    def n_iter(self) -> int:
        """The number of iterations in which it learned."""

    def cell_probabilities(self, data: BitMatrix, workers: Workers, /) -> NDArray[np.float64]:
        """Return the probability of a one in every cell, given the known cells of its row."""


class Pool(NamedTuple):
    """Weights and curve of a pool.

    Attributes
    ----------
    weights : tuple of float
        The weight of the shares of the columns, and of each predictor.
    curve : tuple of float
        By how much the curve rises per unit of log odds, how much more beyond each of its knots, and at 0.
    """

    weights: tuple[float, ...]
    curve: tuple[float, ...] = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    def probabilities(
        self, kind: Variables, shares: NDArray[np.float64], stated: Sequence[NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """Return the probabilities of values, from the shares of the columns and what predictors state of cells."""
        return self.combined([np.log(kind.probabilities(each)) for each in doubted(shares, stated)])

    def combined(
        self, logs: Sequence[NDArray[np.float64]], possible: NDArray[np.bool_] | None = None
    ) -> NDArray[np.float64]:
        """Return the probabilities of values, on the last axis, from the logarithms of what is stated of them."""
        pooled = _softmax(_weighted(self.weights, logs), possible)
        return _softmax(_weighted(self.curve, _bends(pooled)), possible)


class HiddenValues(NamedTuple):
    """Values of variables that were hidden: what is stated of them, and which they are."""

    stated: NDArray[np.float64]  # (n_numbers, n, n_values)
    truth: NDArray[np.intp]  # (n,)
    possible: NDArray[np.bool_] | None = None  # (n, n_values): which values there may be; None for all


def doubted(shares: NDArray[np.float64], stated: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """Return the shares of the columns, and what each predictor states, with a little of the shares."""
    return [(1 - _DOUBT) * each + _DOUBT * shares for each in (shares[np.newaxis], *stated)]


def _bends(probabilities: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Return the numbers whose weighted sum is the curve at each value: log odds, their parts beyond knots, and 1.

    Of two values, only the second one is bent.
    """
    clipped = probabilities.clip(1e-7, 1 - 1e-7)
    odds = np.log(clipped / (1 - clipped))
    parts = [np.minimum(odds - knot, 0) if knot < 0 else np.maximum(odds - knot, 0) for knot in _KNOTS]
    bends = [odds, *parts, np.ones_like(odds)]
    if probabilities.shape[-1] == 2:
        for each in bends:
            each[..., 0] = 0
    return bends


def _weighted(weights: Sequence[float], numbers: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Return the weighted sum of arrays, added in their order."""
    total = weights[0] * numbers[0]
    for weight, each in zip(weights[1:], numbers[1:], strict=True):
        total = total + weight * each
    return total


def _softmax(scores: NDArray[np.float64], possible: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """Return probabilities proportional to the exponentials of scores, on the last axis; 0 where it is not possible."""
    if possible is not None:
        scores = np.where(possible, scores, -np.inf)
    found = np.exp(scores - scores.max(axis=-1, keepdims=True))
    found /= found.sum(axis=-1, keepdims=True)
    return found


@dataclass(frozen=True, eq=False)
class PooledPredictors:
    """Predictors with the weights of their pool."""

    shares: NDArray[np.float64]  # of ones in the columns
    predictors: tuple[Predictor, ...]
    pool: Pool
    tied: TiedColumns

    def cell_probabilities(self, data: BitMatrix, workers: Workers) -> NDArray[np.float64]:
        """Return the probability of a one in every cell, given the known cells of its row."""
        return np.concatenate([self._of_chunk(chunk, workers) for chunk in self._chunks(data)])

    def completed(self, data: BitMatrix, workers: Workers) -> BitMatrix:
        """Return rows with unknown cells filled in by the most probable values of their variables."""

        def predict(rows: BitMatrix, convert: Convert) -> list[BitMatrix]:
            return [convert(self._of_chunk(chunk, workers), chunk) for chunk in self._chunks(rows)]

        return fill_unknown(data, self.tied, predict)

    def _chunks(self, data: BitMatrix) -> list[BitMatrix]:
        size = max(1, _CHUNK_CELLS // max(1, data.n_cols))
        return [data[start : start + size] for start in range(0, max(1, data.n_rows), size)]

    def _of_chunk(self, data: BitMatrix, workers: Workers) -> NDArray[np.float64]:
        stated = [each.cell_probabilities(data, workers) for each in self.predictors]
        cells = np.empty(data.shape)
        for kind in self.tied.kinds:
            values = self.pool.probabilities(kind, self.shares, stated)
            values = np.broadcast_to(values, (len(data), *kind.shape))
            kind.add_cells(kind.given_known(values, data), cells)
        return cells


UNFITTED = Pool((0.25, 0.75))  # of the atoms of a model, where it was not fitted: what fits most tables


class PoolPlan(NamedTuple):
    """How cells are hidden, and predictors left out."""

    hidden_share: float = 0.05  # of the known cells, in each fold
    enough_values: int = 5000  # that are hidden; with fewer, in up to
    most_folds: int = 5
    most_values: int = 50_000  # that are hidden; of more, in a sample of the rows
    least_gain: float = 0.003  # of the log loss, by which a predictor that is kept lowers it


PLAN = PoolPlan()


@dataclass(frozen=True, eq=False)
class HiddenPredictions:
    """What predictors, and the shares of the columns, state of values that were hidden from them."""

    names: tuple[str, ...]  # of the predictors
    kinds: tuple[HiddenValues, ...]  # logarithms of probabilities
    scores: dict[str, CellScores]  # of each predictor alone

    def pool_of(self, names: Sequence[str]) -> Pool:
        """Return the pool of the shares of the columns and these predictors with the least log loss."""
        chosen = [0, *(1 + self.names.index(name) for name in names)]
        return fit_pool([each._replace(stated=each.stated[chosen]) for each in self.kinds])

    def loss(self, names: Sequence[str], pool: Pool) -> float:
        """Return the log loss of a pool of these predictors, the mean over values."""
        chosen = [0, *(1 + self.names.index(name) for name in names)]
        total, n_values = 0.0, 0
        for each in self.kinds:
            found = pool.combined([each.stated[index] for index in chosen])
            total -= float(np.log(found[np.arange(len(found)), each.truth]).sum())
            n_values += len(found)
        return total / max(1, n_values)

    def best(self, plan: PoolPlan = PLAN) -> tuple[tuple[str, ...], Pool]:
        """Return the predictors that are worth their time, and their pool."""
        names = self.names
        pool = self.pool_of(names)
        least = self.loss(names, pool)
        while len(names) > 1:
            trials = []
            for name in names:
                others = tuple(other for other in names if other != name)
                trial = self.pool_of(others)
                trials.append((self.loss(others, trial), others, trial))
            loss, others, trial = min(trials, key=lambda each: each[0])
            if loss > (1 + plan.least_gain) * least:
                break
            names, pool = others, trial
        return names, pool


def fit_pool(values: Sequence[HiddenValues]) -> Pool:
    """Return the pool with the least log loss on hidden values, of which logarithms of probabilities are stated.

    Weights are equal, and the curve is straight, where the values do not tell.
    """
    n_values, n_stated = sum(len(each.truth) for each in values), len(values[0].stated)
    if not n_values:
        return Pool((0.0, *[1 / (n_stated - 1)] * (n_stated - 1)))
    weights = fit_weights(values)
    pooled = [_softmax(_weighted(weights.tolist(), list(each.stated)), each.possible) for each in values]
    bent = [each._replace(stated=np.stack(_bends(own))) for each, own in zip(values, pooled, strict=True)]
    straight = np.zeros(2 + len(_KNOTS))
    straight[0] = 1
    return Pool(tuple(weights.tolist()), tuple(_fitted(bent, straight, _STIFFNESS, least=None).tolist()))


def fit_weights(values: Sequence[HiddenValues]) -> NDArray[np.float64]:
    """Return the weights of a pool with the least log loss, before its curve; equal where the values do not tell."""
    n_values, n_stated = sum(len(each.truth) for each in values), len(values[0].stated)
    return _fitted(values, np.full(n_stated, 1 / n_stated), _RIDGE * n_values, least=0.0)


def _fitted(
    values: Sequence[HiddenValues], start: NDArray[np.float64], ridge: float, least: float | None
) -> NDArray[np.float64]:
    """Return the weights, near those to start from, with which weighted sums predict values with the least log loss."""
    n_values = sum(len(each.truth) for each in values)

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        total, slope = float(ridge * ((weights - start) ** 2).sum()), 2 * ridge * (weights - start)
        for stated, truth, possible in values:
            found, own = _softmax(_weighted(weights.tolist(), list(stated)), possible), np.arange(len(truth))
            total -= float(np.log(found[own, truth]).sum())
            slope = slope + (stated * found).sum(axis=(1, 2)) - stated[:, own, truth].sum(axis=1)
        return total / n_values, slope / n_values

    with threadpool_limits(1):
        bounds = None if least is None else [(least, None)] * len(start)
        return np.asarray(minimize(loss, start, jac=True, bounds=bounds, method="L-BFGS-B").x)


def predict_hidden(
    data: BitMatrix,
    tied: TiedColumns,
    learn: Callable[[BitMatrix], Mapping[str, Predictor]],
    random: np.random.Generator,
    workers: Workers,
    plan: PoolPlan = PLAN,
) -> HiddenPredictions:
    """Hide known cells, let predictors learn from the others, and return what they state of the hidden ones.

    All cells of a variable are hidden together.
    """
    n_variables = sum(len(kind.columns) for kind in tied.kinds)
    per_fold = plan.hidden_share * float(data.n_known.sum()) * n_variables / max(1, data.n_cols)
    n_folds = min(plan.most_folds, max(1, round(plan.enough_values / max(1.0, per_fold))))
    kinds: list[list[HiddenValues]] = [[] for _ in tied.kinds]
    names: tuple[str, ...] = ()
    truth, stated_of = [], list[list[NDArray[np.float64]]]()
    for hidden in hidden_folds(data, n_folds, plan.hidden_share, random, tied.first):
        if per_fold > plan.most_values:
            hidden = _of_some_rows(hidden, plan.most_values / per_fold, random)
        visible = without_cells(data, hidden)
        learned = learn(visible)
        names = tuple(learned)
        rows = np.flatnonzero(hidden.words.any(axis=1))
        mask, shares = hidden[rows].to_dense(bool), shares_of(visible)
        stated = [each.cell_probabilities(visible[rows], workers) for each in learned.values()]
        truth.append(data.filled()[rows].to_dense(bool)[mask])
        stated_of.append([each[mask] for each in stated])
        for kind, found in zip(tied.kinds, kinds, strict=True):
            found.append(_hidden_values(kind, data[rows], mask, shares, stated))
    together = (
        HiddenValues(np.concatenate([part.stated for part in found], axis=1), np.concatenate([p.truth for p in found]))
        for found in kinds
    )
    scores = {
        name: CellScores.of(np.concatenate(truth), np.concatenate([fold[index] for fold in stated_of]))
        for index, name in enumerate(names)
    }
    return HiddenPredictions(names, tuple(together), scores)


def _of_some_rows(hidden: BitMatrix, share: float, random: np.random.Generator) -> BitMatrix:
    """Return the hidden cells of a sample of the rows."""
    rows = random.choice(hidden.n_rows, max(1, round(share * hidden.n_rows)), replace=False)
    words = np.zeros_like(hidden.words)
    words[rows] = hidden.words[rows]
    return BitMatrix.from_words(words, hidden.n_cols, check=False)


def _hidden_values(
    kind: Variables,
    rows: BitMatrix,
    mask: NDArray[np.bool_],
    shares: NDArray[np.float64],
    stated: Sequence[NDArray[np.float64]],
) -> HiddenValues:
    """Return what is stated of the variables that are hidden as a whole, and that have a value."""
    is_value = kind.indicators(rows)
    where = np.nonzero(mask[:, kind.columns].all(axis=2) & is_value.any(axis=2))
    found = [kind.probabilities(each) for each in doubted(shares, stated)]
    logs = [np.log(np.broadcast_to(each, is_value.shape)[where]) for each in found]
    return HiddenValues(np.stack(logs), is_value[where].argmax(axis=1))
