"""GreConD: cover the ones of a table by formal concepts, each grown column by column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from ..bits import BitMatrix
from ..core.complete import complete_atoms
from .baseline import Baseline, Factors

_CHUNK_PAIRS = 1 << 20  # pairs of columns, or their words, processed together


class GreConD(Baseline):
    """GreConD, the greedy method of Belohlavek and Vychodil: each atom with its samples is a rectangle of ones.

    A rectangle is a formal concept: all samples that have all of its features, and all features that all of its
    samples have. It starts empty and is grown by the feature with which it covers the most uncovered ones, until no
    feature increases this number. Rectangles are added until all ones are covered. No zero is ever covered, so noise in
    the data leads to many small rectangles. Atoms are combined by OR. ``transform`` covers no zero either: a sample
    uses the atoms of which it has all features, so that the codes of the training data are ``codes_``.

    Parameters
    ----------
    n_components : int or None, default=None
        Maximum number of rectangles. None: as many as are needed to cover every one, so that the product equals X.
    binarize : float or None, default=None
        Threshold: values above it are ones. None requires X to hold only 0 and 1.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features), uint8
        The features of each rectangle, in the order of selection.
    codes_ : ndarray of shape (n_samples, n_components_), uint8
        The samples of each rectangle.
    codelength_ : Codelength
    n_components_ : int

    Notes
    -----
    This is Algorithm 2 of the paper. Ties go to the first feature.

    References
    ----------
    R. Belohlavek, V. Vychodil, "Discovery of optimal factors in binary data via a novel method of matrix
    decomposition", Journal of Computer and System Sciences 76(1), 2010.

    Examples
    --------
    >>> from bitatoms.baselines import GreConD
    >>> from bitatoms.datasets import planted
    >>> data = planted(100, 30, 4, algebra="or", noise=0, random_state=0)
    >>> model = GreConD().fit(data.X)
    >>> model.n_components_, bool((model.inverse_transform(model.codes_) == data.X).all())
    (4, True)
    """

    algebra: ClassVar[str] = "or"
    random_state = None  # deterministic

    def __init__(self, n_components: int | None = None, *, binarize: float | None = None) -> None:
        self.n_components = n_components
        self.binarize = binarize

    def _factorize(self, data: BitMatrix, random: np.random.Generator) -> Factors:
        uncovered = data.words.copy()
        atoms: list[np.ndarray] = []
        members: list[np.ndarray] = []
        while uncovered.any() and (self.n_components is None or len(atoms) < self.n_components):
            rows, atom = _concept(data, uncovered)
            uncovered[rows] &= ~atom
            atoms.append(atom)
            members.append(rows)
        codes = np.zeros((data.n_rows, len(atoms)), bool)
        for k, rows in enumerate(members):
            codes[rows, k] = True
        packed = np.array(atoms, np.uint64).reshape(len(atoms), data.words.shape[1])
        return Factors(BitMatrix(packed, data.n_cols).to_dense(), codes)

    def _code(self, data: BitMatrix, atoms: BitMatrix) -> BitMatrix:
        """Return the codes of samples: all atoms of which they have every feature."""
        return complete_atoms(data, atoms)


def _concept(data: BitMatrix, uncovered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and the packed columns of a concept, grown greedily to cover the most of ``uncovered``."""
    rows, atom, covered = np.arange(data.n_rows), np.zeros(data.words.shape[1], np.uint64), 0
    while True:
        words = data.words[rows]
        covers = _count_covered(BitMatrix(words, data.n_cols), uncovered[rows], atom)
        best = int(covers.argmax())
        if covers[best] <= covered:  # columns already in the concept add nothing either
            return rows, atom
        having = np.flatnonzero(words[:, best // 64] >> np.uint64(best % 64) & np.uint64(1))
        rows, atom, covered = rows[having], np.bitwise_and.reduce(words[having], axis=0), int(covers[best])


def _count_covered(data: BitMatrix, uncovered: np.ndarray, atom: np.ndarray) -> np.ndarray:
    """Return for each column the number of uncovered ones that the concept covers if grown by this column.

    ``data`` and ``uncovered`` hold only rows that have all columns of ``atom``.
    """
    having = data.T.words  # rows that have a column: those of the concept grown by it
    wanting = BitMatrix(uncovered, data.n_cols).T.words
    covers = _row_counts(wanting)
    # Add the uncovered ones in the columns of the atom, bit plane by bit plane of their number per row.
    lacks = np.bitwise_count(uncovered & atom).sum(axis=1, dtype=np.int64)
    for power in range(int(lacks.max()).bit_length()):
        plane = BitMatrix.from_dense((lacks >> power & 1)[:, np.newaxis]).T.words
        covers += _row_counts(having & plane) << power
    grown = BitMatrix(atom[np.newaxis], data.n_cols).to_dense(bool)[0]
    covers[grown] = 0
    # Add the further columns that all rows of the grown concept have.
    for column, other in _implied(having, np.flatnonzero(~grown & having.any(axis=1))):
        for chunk in np.array_split(np.arange(len(column)), 1 + column.size * having.shape[1] // _CHUNK_PAIRS):
            np.add.at(covers, column[chunk], _row_counts(having[column[chunk]] & wanting[other[chunk]]))
    return covers


def _implied(having: np.ndarray, columns: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield pairs of different columns where the first implies the second, in chunks of first columns."""
    step = max(1, _CHUNK_PAIRS // max(1, len(columns)))
    words = np.ascontiguousarray(having.T)
    for start in range(0, len(columns), step):
        first, second = columns[start : start + step, np.newaxis], columns
        column, other = np.nonzero((words[0, first] & ~words[0, second] == 0) & (first != second))
        column, other = columns[start + column], columns[other]
        for word in words[1:]:  # few pairs are left after the first words
            implied = word[column] & ~word[other] == 0
            column, other = column[implied], other[implied]
        yield column, other


def _row_counts(words: np.ndarray) -> np.ndarray:
    """Return the number of ones of each row of words."""
    return np.bitwise_count(words).sum(axis=1, dtype=np.int64)
