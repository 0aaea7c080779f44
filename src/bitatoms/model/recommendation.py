"""Recommendations: the features that a row does not have, by the probability that it has them.

A zero in a basket may mean "not yet". The probability of an item is therefore that with its own cell hidden, given all
other cells of the row. An atom is used or not with a probability that follows from the cells of its other features, the
other atoms of the code of the row, and how often it was used in the data learned from. It may replace an atom of the
code that is a part of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from ..bits import BitMatrix
from ..columns.table import feature_names
from ..parallel import Workers
from ..sparse_bits import Bits
from .likelihood import UNIT, Frequencies, cells_of_rows
from .model import Model

if TYPE_CHECKING:
    from ..kernels.gpu.device import Device

_CHUNK_CELLS = 1 << 21  # of rows whose probabilities are computed together
_CELL_COST = 60.0  # nanoseconds per cell
_MAX_BITS = 60.0  # of evidence for or against an atom
_LEAST_FACTOR = 1e-9


class Recommendations(NamedTuple):
    """The most probable items that each sample does not have, the most probable first.

    Attributes
    ----------
    items : ndarray of shape (n_samples, n), str or int
        Names of features, "" where a sample has fewer other features; for samples without names, indices and -1.
    probabilities : ndarray of shape (n_samples, n), float64
        Their probabilities; NaN where a sample has fewer other features.
    """

    items: NDArray[Any]
    probabilities: NDArray[np.float64]


def recommend(model: Model, data: Bits, n: int, workers: Workers) -> Recommendations:
    """Return the indices of at most ``n`` features for each row, by `HiddenItems`; on a tie, the first come first."""
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
    probabilities = hidden.probabilities(bits)
    probabilities[bits.filled().to_dense(bool)] = -np.inf
    for kind in hidden.variables:  # of a question that is answered, no other answer is recommended
        is_answered = kind.indicators(bits).any(axis=2)
        for columns in kind.columns.T:
            probabilities[:, columns] = np.where(is_answered, -np.inf, probabilities[:, columns])
    features = largest(probabilities, n)
    chosen = np.take_along_axis(probabilities, features, axis=1)
    has_none = np.isneginf(chosen)
    return Recommendations(np.where(has_none, -1, features), np.where(has_none, np.nan, chosen))


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
        self.variables = [kind for kind in model.tied_columns.kinds if not kind.is_binary]
        self._model, self._is_or, self._workers = model, model.algebra == "or", Workers(1, device=device)
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
        model = self._model
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
        own, bias = cells[:, columns], self._model.bias[columns] > 0
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
