"""Recommendations: the features that a row does not have, by the probability that one of them is missing.

A zero in a basket may mean "not yet". Suppose that one more feature belongs to the row: which one is it? An item is
predicted with its own cell hidden, given all other cells of the row, by the atoms, by a regression on all other columns
and by its share; these are weighed by rows from which one feature was removed. The probabilities of the features that
a row lacks sum to 1.

An atom is used or not with a probability that follows from the cells of its other features, the other atoms of the code
of the row, and how often it was used in the data learned from. It may replace an atom of the code that is a part of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..bits import BitMatrix
from ..columns.table import feature_names
from ..imputation.pool import UNFITTED, HiddenValues, doubted, fit_pool
from ..imputation.regression import MOST_COLUMNS, Regression, fit_regression
from ..imputation.tied_columns import TiedColumns
from ..parallel import Workers
from ..sparse_bits import Bits
from .likelihood import UNIT, Frequencies, cells_of_rows
from .model import Model, Recommender

if TYPE_CHECKING:
    from ..kernels.gpu.device import Device

_CHUNK_CELLS = 1 << 21  # of rows whose probabilities are computed together
_CELL_COST = 60.0  # nanoseconds per cell
_MAX_BITS = 60.0  # of evidence for or against an atom
_LEAST_FACTOR = 1e-9
_UNFITTED = Recommender(None, UNFITTED)  # of a model that was not fitted to rows with a feature removed


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
    fewest_rows: int = 50
    enough_rows: int = 1000  # of a fold, with which one fold suffices
    most_cells: int = 1 << 20  # of held-out rows,
    least_rows: int = 200  # but at least so many rows


PLAN = RemovalPlan()


def recommend(model: Model, data: Bits, n: int, workers: Workers) -> Recommendations:
    """Return the indices of at most ``n`` features for each row, ; on a tie, the first come first."""
    n = min(n, data.n_cols)
    step = max(1, _CHUNK_CELLS // max(1, data.n_cols))
    hidden = HiddenItems(model, workers.device)

    def run(start: int, stop: int) -> list[Recommendations]:
        edges = range(start, stop, step)
        return [_most_probable(hidden, data[at : min(at + step, stop)], n) for at in edges]

    return joined((each for part in workers.map_rows(run, len(data), _CELL_COST * data.n_cols) for each in part), n)


def joined(chunks: Iterable[Recommendations], n: int) -> Recommendations:
    """Return the recommendations for all rows from those for chunks of them, of ``n`` features each."""
    nothing = Recommendations(np.empty((0, n), np.int64), np.empty((0, n)))
    items, probabilities = zip(nothing, *chunks, strict=True)
    return Recommendations(np.concatenate(items), np.concatenate(probabilities))


def named(found: Recommendations, model: Model) -> Recommendations:
    """Return recommendations with names in place of the indices of features."""
    names = np.array([*feature_names(model.columns, range(model.atoms.n_cols)), ""], object)
    return Recommendations(names[found.items], found.probabilities)


def _most_probable(hidden: HiddenItems, data: Bits, n: int) -> Recommendations:
    """Return the indices of the most probable features of a few rows."""
    bits = data if isinstance(data, BitMatrix) else data.bits
    model, candidates = hidden.model, _candidates(bits, hidden.model.tied_columns)
    regression, pool = model.recommender or _UNFITTED
    logs = _logs(model, [hidden.probabilities(bits), *_predicted(regression, bits)])
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


def _predicted(regression: Regression | None, rows: BitMatrix) -> list[NDArray[np.float64]]:
    """Return what a regression, if there is one, states of the cells of rows."""
    return [] if regression is None else [regression.cell_probabilities(rows, Workers())]


def _logs(model: Model, stated: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """Return the logarithms of the shares of the columns, and of what is stated of each cell."""
    return [np.log(each) for each in doubted(model.predictors.shares, stated)]


def fit_recommender(
    data: BitMatrix, learn: Callable[[BitMatrix], Model], random: np.random.Generator, plan: RemovalPlan = PLAN
) -> Recommender:
    """Weigh what predicts items by rows that are held out, and from which one feature is removed.

    ``learn`` returns the model of the other rows. Of few rows, nothing is learned.
    """
    if len(data) < plan.fewest_rows:
        return _UNFITTED
    folds = np.array_split(random.permutation(len(data)), plan.n_folds)
    most = max(plan.least_rows, plan.most_cells // max(1, data.n_cols))
    n_folds = 1 if len(folds[0]) >= min(most, plan.enough_rows) else plan.n_folds
    values = []
    for judged in folds[:n_folds]:
        others = data[np.setdiff1d(np.arange(len(data)), judged)]
        model = learn(others)
        rows, removed = _with_one_removed(data[np.sort(judged)[:most]], random)
        stated = HiddenItems(model).probabilities(rows), *_predicted(_regression(others, model, random), rows)
        logs = [np.broadcast_to(each, rows.shape) for each in _logs(model, list(stated))]
        candidates = _candidates(rows, model.tied_columns)
        values.append(HiddenValues(np.where(candidates, np.stack(logs), 0), removed, candidates))
    return Recommender(_regression(data, model, random), fit_pool(values))


def _regression(data: BitMatrix, model: Model, random: np.random.Generator) -> Regression | None:
    """Return the regression of all columns on each other, if they are not too many."""
    return fit_regression(data, model.tied_columns, random) if data.n_cols <= MOST_COLUMNS else None


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


class HiddenItems:
    """The probability of a one in each cell of rows if that cell is hidden and all others are known as they are."""

    def __init__(self, model: Model, device: Device | None = None) -> None:
        frequencies = Frequencies.of_result(model)
        self.model, self._is_or, self._workers = model, model.algebra == "or", Workers(1, device=device)
        self._costs = frequencies.costs()
        self._where_0, self._where_1 = frequencies.probabilities_of_ones()
        ones = model.atoms.to_sparse()
        self._columns = np.split(ones.indices.astype(np.intp), ones.indptr[1:-1])[: model.atoms.n_rows]
        self._ones = csr_array((np.ones(len(ones.indices), np.int32), ones.indices, ones.indptr), shape=ones.shape)
        self._parts = _parts_of_atoms(self._ones)
        # A row without ones, in whose columns no atom of its code is: what most atoms find in most rows.
        nothing = np.zeros((1, model.atoms.n_cols), np.uint8)
        unused = np.zeros((1, model.atoms.n_rows), bool)
        factors = (self._factors(k, nothing, nothing, unused) for k in range(model.atoms.n_rows))
        self._base = [(logs[0], are_negative[0]) for logs, are_negative in factors]

    def probabilities(self, data: BitMatrix) -> NDArray[np.float64]:
        """Return the probabilities of all cells of a few rows."""
        model = self.model
        codes = model.codes(data, self._workers)
        used, cells = codes.to_dense(bool), cells_of_rows(data)
        n_covering = np.asarray((csr_array(used, dtype=np.int32) @ self._ones).toarray())
        differs = csr_array((cells > 0) | (n_covering > 0), dtype=np.int32)
        rows_of = (differs @ self._ones.T).tocsc()
        # Products as sums of logarithms, and numbers of negative factors: those of many atoms may be too small.
        log, n_negative = np.zeros(model.atoms.n_cols), np.zeros(model.atoms.n_cols, np.int32)
        for columns, (base, is_negative) in zip(self._columns, self._base, strict=True):
            log[columns] += base
            n_negative[columns] += is_negative
        logs, negatives = np.tile(log, (len(data), 1)), np.tile(n_negative, (len(data), 1))
        for k, columns in enumerate(self._columns):
            rows = np.sort(rows_of.indices[rows_of.indptr[k] : rows_of.indptr[k + 1]])
            if len(rows) and len(columns):
                own, are_negative = self._factors(k, cells[rows], n_covering[rows], used[rows])
                logs[np.ix_(rows, columns)] += own - self._base[k][0]
                negatives[np.ix_(rows, columns)] += are_negative ^ self._base[k][1]
        products = np.where(negatives % 2 == 1, -1.0, 1.0) * np.exp(logs)
        covered = 1 - products if self._is_or else (1 - products) / 2
        predicted = np.where(model.bias, 1 - covered, covered)
        return self._where_0 + np.clip(predicted, 0, 1) * (self._where_1 - self._where_0)

    def _factors(
        self, k: int, cells: NDArray[np.uint8], n_covering: NDArray[np.integer], used: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return what an atom contributes to the product of each of its columns in rows, each cell hidden in turn.

        It is returned as the logarithm of its absolute value, and whether it is negative.

        Under OR it is the probability that the atom is not used, so that the product is the probability that no atom
        covers the cell. Under XOR it is that probability less that it is used: one minus the product is twice the
        probability that an odd number of atoms cover the cell.

        The code of the row may contain parts of the atom: where the atom is used, each of them may be used or not.
        """
        columns, (costs, uses) = self._columns[k], self._costs
        own, bias = cells[:, columns], self.model.bias[columns] > 0
        others = n_covering[:, columns] - used[:, [k]]
        without = (others > 0 if self._is_or else others % 2 == 1) ^ bias
        with_atom = np.broadcast_to(~bias, without.shape) if self._is_or else ~without
        saved = costs[own, without.astype(np.intp), columns] - costs[own, with_atom.astype(np.intp), columns]
        evidence = (saved.sum(axis=1, keepdims=True) - saved + (uses[0, k] - uses[1, k])) / UNIT
        for part, inside in self._parts[k]:
            rows = np.flatnonzero(used[:, part])
            dropped = np.full((len(rows), 1), uses[1, part] - uses[0, part])  # what it saves to drop the part
            if not self._is_or:  # what the atom changes in these columns, it then does not
                own_saved = np.where(inside, saved[rows], 0)
                dropped = dropped - own_saved.sum(axis=1, keepdims=True) + own_saved
            evidence[rows] += np.logaddexp2(0, dropped / UNIT)
        odds = 2.0 ** np.clip(evidence, -_MAX_BITS, _MAX_BITS)
        if self._is_or:
            return -np.log1p(odds), np.zeros(odds.shape, bool)
        factors = (1 - odds) / (1 + odds)
        return np.log(np.maximum(np.abs(factors), _LEAST_FACTOR)), factors < 0


def _parts_of_atoms(ones: csr_array) -> list[list[tuple[int, NDArray[np.bool_]]]]:
    """Return for each atom the others that are parts of it, and which of its columns they have."""
    shared, sizes = (ones @ ones.T).tocoo(), np.diff(ones.indptr)
    parts: list[list[tuple[int, NDArray[np.bool_]]]] = [[] for _ in sizes]
    whole, part = shared.coords
    for k, other in zip(*(each[(shared.data == sizes[part]) & (whole != part)] for each in (whole, part)), strict=True):
        columns, own = (ones.indices[ones.indptr[atom] : ones.indptr[atom + 1]] for atom in (k, other))
        parts[k].append((int(other), np.isin(columns, own)))
    return parts
