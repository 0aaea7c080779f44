"""Genotypes as two tied columns per variant: one copy of the allele or more, and two copies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix


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
