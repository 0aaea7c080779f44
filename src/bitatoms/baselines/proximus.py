"""PROXIMUS: rows are parted in two by a rank-one pattern, again and again, until each part lies near its pattern."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from ..api import proximus
from ..bits import BitMatrix
from ..validation import check_choice, check_int
from .baseline import Baseline, Factors

_SHRINK = 0.7  # of the largest distance, the next radius
_PATIENCE = 2  # radii that are no better before it ends


class Proximus(Baseline):
    """PROXIMUS, the recursive method of Koyutürk, Grama and Ramakrishnan: one pattern a sample.

    Parameters
    ----------
    n_components : int or None, default=None
        The most patterns. Where the recursion leaves more, those with most samples are kept, and each sample uses the
        nearest of them, or none. None keeps all.
    radius : int or "auto", default="auto"
        A part is parted again while one of its samples differs from its pattern in more bits than these. "auto" tries
        ever smaller ones, and takes that with the fewest wrong cells, or, with ``n_components=None``, the shortest
        codelength.
    binarize : float or None, default=None
        None: X holds 0 and 1. A number: what is above it is a one.
    random_state : int, Generator, RandomState or None, default=None
        The same number gives the same result.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features), uint8
    codes_ : ndarray of shape (n_samples, n_components_), uint8
        One pattern a sample.
    codelength_ : Codelength
    n_components_ : int

    radius_ : int
        The radius of these patterns.

    Notes
    -----
    The radius, not a number of patterns, ends the recursion. The smallest that leaves few enough patterns is a poor way
    to a given number: on the digits with 16 patterns nearly .2 of the cells are wrong then, and .11 with the 16 largest
    of the hundreds that a smaller radius leaves; on planted factors no radius leaves as few as there are.

    References
    ----------
    M. Koyutürk, A. Grama, N. Ramakrishnan, "Compression, clustering, and pattern discovery in very high-dimensional
    discrete-attribute data sets", IEEE Transactions on Knowledge and Data Engineering 17(4), 2005.

    Examples
    --------
    >>> from bitatoms.baselines import Proximus
    >>> from bitatoms.datasets import digits
    >>> X, y = digits()
    >>> model = Proximus(16, random_state=0).fit(X)
    >>> model.components_.shape, bool((model.codes_.sum(axis=1) <= 1).all())
    ((16, 64), True)
    """

    algebra: ClassVar[str] = "xor"

    def __init__(
        self,
        n_components: int | None = None,
        *,
        radius: int | Literal["auto"] = "auto",
        binarize: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.radius = radius
        self.binarize = binarize
        self.random_state = random_state

    def _factorize(self, data: BitMatrix, random: np.random.Generator) -> Factors:
        if isinstance(self.radius, str):
            check_choice("radius", self.radius, ("auto",), "a whole number")
            best = self._best(data, random)
        else:
            best = self._tried(data, check_int("radius", self.radius, 0), random)
        self.radius_ = best.radius
        return best.factors

    def _best(self, data: BitMatrix, random: np.random.Generator) -> _Try:
        """The best of ever smaller radii, until two in a row are no better."""
        last = best = self._tried(data, data.n_cols, random)
        idle = 0
        while last.farthest > 0 and idle < _PATIENCE:
            # nothing changes for a radius that all samples keep already
            last = self._tried(data, int(_SHRINK * last.farthest), random)
            idle = 0 if last.score < best.score else idle + 1
            best = last if idle == 0 else best
        return best

    def _tried(self, data: BitMatrix, radius: int, random: np.random.Generator) -> _Try:
        """What one radius gives, and how good it is."""
        found = proximus(data, radius, random_state=random)
        left = data ^ found.reconstruct()
        farthest = int(left.row_weights().max())
        atoms, codes = found.atoms.to_dense(), found.codes.to_dense()
        if self.n_components is None:
            return _Try(radius, Factors(atoms, codes), found.codelength.total, farthest)
        if len(atoms) <= self.n_components:
            return _Try(radius, Factors(atoms, codes), left.count(), farthest)
        largest = np.sort(np.argsort(-codes.sum(axis=0, dtype=np.int64), kind="stable")[: self.n_components])
        kept = atoms[largest]
        codes, saved = _nearest(data.to_dense(np.float32), kept)
        return _Try(radius, Factors(kept, codes), data.count() - saved, farthest)


class _Try(NamedTuple):
    """What a radius gives."""

    radius: int
    factors: Factors
    score: int  # wrong cells, or bits
    farthest: int  # wrong bits of the sample that is farthest from its pattern, of all patterns


def _nearest(rows: np.ndarray, atoms: np.ndarray) -> tuple[np.ndarray, int]:
    """For each row the atom that differs from it in the fewest bits, or none; and how many wrong bits all save."""
    gain = 2 * (rows @ atoms.T.astype(np.float32)) - atoms.sum(axis=1, dtype=np.float32)
    best = gain.argmax(axis=1)
    most = gain.max(axis=1)
    codes = np.zeros((len(rows), len(atoms)), np.uint8)
    codes[np.arange(len(rows)), best] = most > 0
    return codes, int(most[most > 0].sum(dtype=np.float64))
