"""Known cells hidden from a model, by which its predictions are judged, and the scores of these."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..bits import BitMatrix, either, stack_rows
from .tied_columns import copies

_CHUNK_CELLS = 1 << 20  # cells drawn at a time
_N_BINS = 10  # of probabilities, when their calibration is judged
_LEAST = 1e-12  # probability: a prediction that is certain and wrong costs about 40 bits


def hidden_folds(
    data: BitMatrix, n_folds: int, share: float, random: np.random.Generator, first: NDArray[np.intp] | None = None
) -> Iterator[BitMatrix]:
    """Yield masks, each of about this share of the known cells; they are disjoint if ``n_folds * share`` is up to 1.

    ``first`` is for each column the first one of those that are hidden together in a row (see `ColumnTies`).
    """
    together = slice(None) if first is None else first
    seed = int(random.integers(2**63))
    for fold in range(n_folds):
        draws = np.random.default_rng(seed)  # each cell has the same number in every fold
        rows = max(1, _CHUNK_CELLS // max(1, data.n_cols))
        masks = []
        for start in range(0, data.n_rows, rows):
            chunk = data[start : start + rows]
            hidden = BitMatrix.from_dense((draws.random(chunk.shape)[:, together] - fold * share) % 1 < share)
            known = hidden.words if chunk.unknown is None else hidden.words & ~chunk.unknown.words
            masks.append(BitMatrix.from_words(known, data.n_cols, check=False))
        yield stack_rows(masks, data.n_cols)


def hidden_genotypes(data: BitMatrix, pairs: NDArray[np.intp], share: float, random: np.random.Generator) -> BitMatrix:
    """Return a mask of about this share of the known cells; the two columns of a pair are hidden together."""
    partner = np.arange(data.n_cols)
    partner[pairs[:, 1]] = pairs[:, 0]
    unknown = np.zeros(data.shape, bool) if data.unknown is None else data.unknown.to_dense(bool)
    is_hidden = (random.random(data.shape) < share)[:, partner] & ~unknown
    both = is_hidden[:, pairs[:, 0]] & is_hidden[:, pairs[:, 1]]
    is_hidden[:, pairs[:, 0]] = is_hidden[:, pairs[:, 1]] = both
    return BitMatrix.from_dense(is_hidden)


def without_cells(data: BitMatrix, hidden: BitMatrix) -> BitMatrix:
    """Return the data with more unknown cells."""
    return data.with_unknown(either(data.unknown, hidden))


def shares_of(data: BitMatrix) -> NDArray[np.float64]:
    """Return the share of ones among the known cells of each column, never 0 or 1."""
    return (data.column_weights() + 0.5) / (data.n_known + 1)


def sample_of(data: BitMatrix, most_rows: int, most_by_size: int, random: np.random.Generator) -> BitMatrix:
    """Return the rows of a table or, if they are more than one of these numbers, a sample; at least 100 rows."""
    n_rows = min(most_rows, max(100, most_by_size))
    return data[np.sort(random.choice(data.n_rows, n_rows, replace=False))] if data.n_rows > n_rows else data


class CellScores(NamedTuple):
    """How well probabilities predict hidden cells."""

    n_cells: int
    accuracy: float  # share of the cells predicted right
    log_loss: float  # bits per cell: the mean of minus log2 of the probability of the value found
    calibration_error: float  # mean difference of probability and share of ones, in ten bins of equal width

    @classmethod
    def of_hidden(
        cls, data: BitMatrix, hidden: BitMatrix, predict: Callable[[BitMatrix], NDArray[np.float64]]
    ) -> CellScores:
        """Return the scores of what a function predicts for cells that are hidden from it, given all other cells."""
        cells = hidden.to_dense(bool)
        return cls.of(data.filled().to_dense(bool)[cells], predict(without_cells(data, hidden))[cells])

    @classmethod
    def of(cls, truth: NDArray[np.bool_], probabilities: NDArray[np.float64]) -> CellScores:
        """Return the scores of the probabilities of ones in cells with these values; NaN without cells."""
        if not len(truth):
            return cls(0, float("nan"), float("nan"), float("nan"))
        found = np.where(truth, probabilities, 1 - probabilities)
        bins = np.minimum((probabilities * _N_BINS).astype(np.int64), _N_BINS - 1)
        excess = np.bincount(bins, probabilities - truth, _N_BINS)
        log_loss = -float(np.log2(np.maximum(found, _LEAST)).mean())
        right = float(((probabilities > 0.5) == truth).mean())
        return cls(len(truth), right, log_loss, float(np.abs(excess).sum() / len(truth)))


class GenotypeScores(NamedTuple):
    """How well hidden genotypes are predicted; of haplotypes, their single cells."""

    n_genotypes: int
    concordance: float  # share of the genotypes predicted exactly
    dosage_r2: float  # squared correlation of true and expected numbers of copies

    @classmethod
    def of(
        cls,
        truth: NDArray[np.bool_],
        probabilities: NDArray[np.float64],
        predicted: NDArray[np.bool_],
        hidden: NDArray[np.bool_],
        pairs: NDArray[np.intp],
    ) -> GenotypeScores:
        """Return the scores of predictions of hidden cells, arrays of the same shape; pairs are hidden together."""
        first, second = pairs.T
        is_single = np.ones(truth.shape[1], bool)
        is_single[pairs.ravel()] = False
        of_pair, of_cell = hidden[:, first], hidden[:, is_single]
        numbers = [values[:, first].astype(np.int8) + values[:, second] for values in (truth, predicted)]
        of_numbers = copies(pairs).probabilities(probabilities)
        expected = of_numbers[..., 1] + 2 * of_numbers[..., 2]
        true = np.concatenate([numbers[0][of_pair], truth[:, is_single][of_cell]])
        found = np.concatenate([numbers[1][of_pair], predicted[:, is_single][of_cell]])
        dosage = np.concatenate([expected[of_pair], probabilities[:, is_single][of_cell]])
        return cls(len(true), concordance(true, found), dosage_r2(true, dosage))


def concordance(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Return the share of genotypes, or cells, predicted exactly; NaN without any."""
    equal = np.equal(truth, predicted)
    return float(equal.mean()) if equal.size else float("nan")


def dosage_r2(truth: ArrayLike, dosage: ArrayLike) -> float:
    """Return the squared correlation of true and expected numbers of copies; NaN if one of them does not vary."""
    truth, dosage = (np.asarray(values, np.float64).ravel() for values in (truth, dosage))
    if not len(truth) or np.ptp(truth) == 0 or np.ptp(dosage) == 0:
        return float("nan")
    return float(np.corrcoef(truth, dosage)[0, 1] ** 2)
