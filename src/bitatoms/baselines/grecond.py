"""GreConD: the ones of a table covered by rectangles full of ones, each grown column by column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from ..bits import BitMatrix
from .baseline import Baseline, Factors

_PAIRS = 1 << 20  # pairs of columns, or words of them, looked at together


class GreConD(Baseline):
    """GreConD, the greedy method of Belohlavek and Vychodil: every atom with its samples is a rectangle of ones.

    A rectangle is a formal concept: all samples that have all of its features, and all features that all of its
    samples have. It is grown from nothing, by the feature with which it covers most ones that are not covered yet,
    until no feature adds to that. Such rectangles are taken until all ones are covered. No zero is ever covered, so
    that noise in the data makes for small rectangles, and many. Atoms are combined by OR.

    Parameters
    ----------
    n_components : int or None, default=None
        The most rectangles. None takes as many as it needs to cover every one: the product is X, exactly.
    binarize : float or None, default=None
        None: X holds 0 and 1. A number: what is above it is a one.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features), uint8
        The features of each rectangle, in the order in which they were taken.
    codes_ : ndarray of shape (n_samples, n_components_), uint8
        Its samples.
    codelength_ : Codelength
    n_components_ : int

    Notes
    -----
    This is Algorithm 2 of the paper. Where several features add the same, the first of them is taken.

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
    random_state = None  # nothing is left to chance

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
        for place, rows in enumerate(members):
            codes[rows, place] = True
        packed = np.array(atoms, np.uint64).reshape(len(atoms), data.words.shape[1])
        return Factors(BitMatrix(packed, data.n_cols).to_dense(), codes)


def _concept(data: BitMatrix, uncovered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows and the packed columns of a concept, grown by the column with which it covers most of ``uncovered``."""
    rows, atom, covered = np.arange(data.n_rows), np.zeros(data.words.shape[1], np.uint64), 0
    while True:
        words = data.words[rows]
        covers = _covers(BitMatrix(words, data.n_cols), uncovered[rows], atom)
        best = int(covers.argmax())
        if covers[best] <= covered:  # the columns it has already cover no more either
            return rows, atom
        having = np.flatnonzero(words[:, best // 64] >> np.uint64(best % 64) & np.uint64(1))
        rows, atom, covered = rows[having], np.bitwise_and.reduce(words[having], axis=0), int(covers[best])


def _covers(data: BitMatrix, uncovered: np.ndarray, atom: np.ndarray) -> np.ndarray:
    """For each column how many uncovered ones the concept would cover that has it besides the columns of ``atom``.

    ``data`` and ``uncovered`` hold only rows that have all columns of the atom.
    """
    having = data.T.words  # the rows that have a column, which are those of the concept grown by it
    wanting = BitMatrix(uncovered, data.n_cols).T.words
    covers = _counts(wanting)
    # The columns of the atom: each row of the concept brings what it lacks there.
    lacks = np.bitwise_count(uncovered & atom).sum(axis=1, dtype=np.int64)
    for power in range(int(lacks.max()).bit_length()):
        plane = BitMatrix.from_dense((lacks >> power & 1)[:, np.newaxis]).T.words
        covers += _counts(having & plane) << power
    grown = BitMatrix(atom[np.newaxis], data.n_cols).to_dense(bool)[0]
    covers[grown] = 0
    # Columns that all rows of the concept have besides.
    for column, other in _implied(having, np.flatnonzero(~grown & having.any(axis=1))):
        for some in np.array_split(np.arange(len(column)), 1 + column.size * having.shape[1] // _PAIRS):
            np.add.at(covers, column[some], _counts(having[column[some]] & wanting[other[some]]))
    return covers


def _implied(having: np.ndarray, columns: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs of different columns, the second in every row that has the first; a few of the first at a time."""
    step = max(1, _PAIRS // max(1, len(columns)))
    words = np.ascontiguousarray(having.T)
    for start in range(0, len(columns), step):
        first, second = columns[start : start + step, np.newaxis], columns
        column, other = np.nonzero((words[0, first] & ~words[0, second] == 0) & (first != second))
        column, other = columns[start + column], columns[other]
        for word in words[1:]:  # most pairs are gone after few words
            still = word[column] & ~word[other] == 0
            column, other = column[still], other[still]
        yield column, other


def _counts(words: np.ndarray) -> np.ndarray:
    """The ones of each row of words."""
    return np.bitwise_count(words).sum(axis=1, dtype=np.int64)
