"""Proximus: recursive bipartition of the rows by rank-one patterns, until each row is near its pattern."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from ..api import proximus
from ..bits import BitMatrix
from ..validation import check_choice, check_int
from .baseline import Baseline, Factors

_SHRINK = 0.7  # the next radius, as a share of the largest distance
_PATIENCE = 2  # radii without improvement before the search ends


class Proximus(Baseline):
    """Proximus, the recursive method of Koyutürk, Grama and Ramakrishnan: at most one pattern per sample.

    Parameters
    ----------
    n_components : int or None, default=None
        Maximum number of patterns. If the recursion gives more, those with the most samples are kept, and each sample
        uses the nearest of them, or none. None keeps all.
    radius : int or "auto", default="auto"
        A group of samples is split further while one of them differs from its pattern in more bits than this. "auto"
        tries decreasing radii and keeps the one with the fewest wrong cells or, with ``n_components=None``, the
        shortest codelength.
    binarize : float or None, default=None
        Threshold: values above it are ones. None requires X to hold only 0 and 1.
    random_state : int, Generator, RandomState or None, default=None
        The same seed gives the same result.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features), uint8
    codes_ : ndarray of shape (n_samples, n_components_), uint8
        At most one pattern per sample.
    codelength_ : Codelength
    n_components_ : int
    radius_ : int
        The radius of the kept patterns.

    Notes
    -----
    The radius, not a number of patterns, ends the recursion. To choose the smallest radius with few enough patterns
    works badly: on the digits with 16 patterns, nearly 20 % of the cells are wrong, against 11 % with the 16 largest of
    the hundreds of patterns of a smaller radius. On planted factors, no radius gives as few patterns as were planted.

    References
    ----------
    M. Koyutürk, A. Grama, N. Ramakrishnan, "Compression, clustering, and pattern discovery in very high-dimensional
    discrete-attribute data sets", IEEE Transactions on Knowledge and Data Engineering 17(4), 2005.

    Examples
    --------
    >>> from bitatoms.baselines import Proximus
    >>> from bitatoms.datasets import digits
    >>> X, y = digits()
    >>> model = Proximus(16, random_state=0).fit(X[:300])
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
            check_choice("radius", self.radius, ("auto",), "an integer")
            best = self._search_radius(data, random)
        else:
            best = self._try_radius(data, check_int("radius", self.radius, 0), random)
        self.radius_ = best.radius
        return best.factors

    def _search_radius(self, data: BitMatrix, random: np.random.Generator) -> _Trial:
        """Try decreasing radii until ``_PATIENCE`` in a row are no better, and return the best."""
        last = best = self._try_radius(data, data.n_cols, random)
        n_worse = 0
        while last.max_distance > 0 and n_worse < _PATIENCE:
            # a radius of at least the largest distance would change nothing
            last = self._try_radius(data, int(_SHRINK * last.max_distance), random)
            n_worse = 0 if last.score < best.score else n_worse + 1
            best = last if n_worse == 0 else best
        return best

    def _try_radius(self, data: BitMatrix, radius: int, random: np.random.Generator) -> _Trial:
        """Return the factors and the score of one radius."""
        found = proximus(data, radius, random_state=random)
        errors = data ^ found.reconstruct()
        max_distance = int(errors.row_weights().max())
        atoms, codes = found.atoms.to_dense(), found.codes.to_dense()
        if self.n_components is None:
            return _Trial(radius, Factors(atoms, codes), found.codelength.total, max_distance)
        if len(atoms) <= self.n_components:
            return _Trial(radius, Factors(atoms, codes), errors.count(), max_distance)
        largest = np.sort(np.argsort(-codes.sum(axis=0, dtype=np.int64), kind="stable")[: self.n_components])
        kept = atoms[largest]
        codes, saved = _nearest(data.to_dense(np.float32), kept)
        return _Trial(radius, Factors(kept, codes), data.count() - saved, max_distance)


class _Trial(NamedTuple):
    """The result of one radius."""

    radius: int
    factors: Factors
    score: int  # wrong cells, or bits
    max_distance: int  # largest distance of a sample from its pattern, before patterns are dropped


def _nearest(rows: np.ndarray, atoms: np.ndarray) -> tuple[np.ndarray, int]:
    """Return the codes with the nearest atom of each row, or none, and the number of wrong bits that these save."""
    gain = 2 * (rows @ atoms.T.astype(np.float32)) - atoms.sum(axis=1, dtype=np.float32)
    best = gain.argmax(axis=1)
    most = gain.max(axis=1)
    codes = np.zeros((len(rows), len(atoms)), np.uint8)
    codes[np.arange(len(rows)), best] = most > 0
    return codes, int(most[most > 0].sum(dtype=np.float64))
