"""Genotypes as pairs of cells: the most probable number of copies of an allele, and how well it is predicted.

A genotype is 0, 1 or 2 copies of an allele, in two cells. With the coding "carries", the first cell is one with at
least one copy, and the second with two. With "exclusive", the first cell is one with two copies, and the second with
exactly one. Predicted one by one, two cells may contradict each other; predicted together, they do not.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

GenotypeCoding = Literal["carries", "exclusive"]


def genotype_probabilities(
    first: ArrayLike, second: ArrayLike, coding: GenotypeCoding = "carries"
) -> NDArray[np.float64]:
    """Return the probabilities of 0, 1 and 2 copies, on a last axis, from those of ones in the two cells.

    A known cell has the probability 0 or 1, and is kept.
    """
    first, second = np.broadcast_arrays(np.asarray(first, np.float64), np.asarray(second, np.float64))
    if coding == "carries":
        carries = np.where(second == 1, 1.0, first)
        two = np.minimum(carries, second)
        return np.stack([1 - carries, carries - two, two], axis=-1)
    none = np.maximum(1 - first - second, 0)
    total = none + first + second
    return np.stack([none, second, first], axis=-1) / total[..., np.newaxis]


def likely_genotypes(first: ArrayLike, second: ArrayLike, coding: GenotypeCoding = "carries") -> NDArray[np.int8]:
    """Return the most probable number of copies, the smaller one on a tie."""
    return genotype_probabilities(first, second, coding).argmax(axis=-1).astype(np.int8)


def genotype_cells(
    genotypes: NDArray[np.int8], coding: GenotypeCoding = "carries"
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return the two cells of genotypes."""
    return (genotypes >= 1, genotypes == 2) if coding == "carries" else (genotypes == 2, genotypes == 1)


def dosages(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the expected number of copies."""
    return probabilities[..., 1] + 2 * probabilities[..., 2]


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
