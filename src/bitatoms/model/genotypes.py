"""Genotypes as pairs of cells: how probable each number of copies of an allele is, and how well it is predicted.

A genotype is 0, 1 or 2 copies of an allele, in two cells: the first is a one with at least one copy, the second with
two. Predicted one by one, two cells may contradict each other; predicted together, they do not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..bits import BitMatrix


def genotype_probabilities(first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
    """Return the probabilities of 0, 1 and 2 copies, on a last axis, from those of ones in the two cells.

    A known cell has the probability 0 or 1, and is kept.
    """
    first, second = np.broadcast_arrays(np.asarray(first, np.float64), np.asarray(second, np.float64))
    carries = np.where(second == 1, 1.0, first)
    two = np.minimum(carries, second)
    return np.stack([1 - carries, carries - two, two], axis=-1)


def dosages(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the expected number of copies."""
    return probabilities[..., 1] + 2 * probabilities[..., 2]


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
        copies = [values[:, first].astype(np.int8) + values[:, second] for values in (truth, predicted)]
        expected = dosages(genotype_probabilities(probabilities[:, first], probabilities[:, second]))
        true = np.concatenate([copies[0][of_pair], truth[:, is_single][of_cell]])
        found = np.concatenate([copies[1][of_pair], predicted[:, is_single][of_cell]])
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


def nearest_genotypes(bits: BitMatrix, pairs: NDArray[np.intp], wrong: NDArray[np.int64]) -> tuple[BitMatrix, int]:
    """Return samples of which every genotype is possible, and the number of genotypes that were not.

    A reconstruction may contain two copies of an allele but not one. No copy and two copies both differ from that in
    one bit. The bit that is changed is the one that the model gets wrong more often: the first, which gives two copies,
    or else, also on a tie, the second, which gives no copy.

    Parameters
    ----------
    bits : BitMatrix
        Samples without unknown cells.
    pairs : ndarray of shape (n_variants, 2)
        The columns of each variant: carries the allele, carries two copies.
    wrong : ndarray of shape (n_cols,)
        Number of training rows in which the model gets each column wrong.
    """
    if not len(pairs):
        return bits, 0
    columns = bits.T.words.copy()
    first, second = pairs.T
    impossible = columns[second] & ~columns[first]
    n_impossible = int(np.bitwise_count(impossible).sum())
    if not n_impossible:
        return bits, 0
    changes_first = (wrong[first] > wrong[second])[:, np.newaxis]
    columns[first] |= np.where(changes_first, impossible, np.uint64(0))
    columns[second] &= ~np.where(changes_first, np.uint64(0), impossible)
    return BitMatrix.from_words(columns, len(bits), check=False).T, n_impossible
