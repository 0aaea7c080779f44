"""GreConD: cover the ones of a table by formal concepts, each grown column by column."""

from __future__ import annotations

from itertools import islice
from typing import ClassVar

import numpy as np

from ..bits import BitMatrix
from ..search.starts.rank import concepts
from .baseline import Baseline, Factors


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
        found = list(islice(concepts(data), self.n_components))
        codes = np.zeros((data.n_rows, len(found)), bool)
        for k, concept in enumerate(found):
            codes[concept.rows, k] = True
        packed = np.array([concept.columns for concept in found], np.uint64).reshape(-1, data.words.shape[1])
        return Factors(BitMatrix(packed, data.n_cols).to_dense(), codes)

    def _code(self, data: BitMatrix, atoms: BitMatrix) -> BitMatrix:
        """Return the codes of samples: all atoms of which they have every feature."""
        n_shared = data.filled().to_sparse().astype(np.int32) @ atoms.to_sparse().astype(np.int32).T
        return BitMatrix.from_dense(n_shared.toarray() == atoms.row_weights())
