"""NMF with thresholds: a factorisation over the reals, cut to zeros and ones where the fewest cells come out wrong."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from ..bits import BitMatrix
from ..validation import check_int
from .baseline import Baseline, Factors

_GRID = 16  # thresholds of atoms to begin with, each tried with the best of as many of codes as fit in a byte
_BYTE, _TWO_BYTES = 255, 65535  # the most thresholds whose ranks fit
_CELLS = 1 << 18  # cells looked at together: what is made of them on the way stays in the cache


class RealFactors(NamedTuple):
    """A product over the reals; the largest number of each column of codes and of each atom is 1, or 0."""

    codes: NDArray[np.float64]  # (n_samples, n_atoms)
    atoms: NDArray[np.float64]  # (n_atoms, n_features)
    n_iter: int  # iterations that made them


class Cut(NamedTuple):
    """What is above the thresholds is a one; the product of those ones is wrong in so many cells."""

    wrong: int
    codes: float
    atoms: float


class ThresholdedNMF(Baseline):
    """Non-negative matrix factorisation, its factors cut to zeros and ones by one threshold each.

    The thresholding method of Zhang, Ding, Li and Zhang. scikit-learn's ``NMF`` finds real factors; both are scaled;
    what is above the threshold of its factor is a one. The two thresholds are those that make the fewest cells wrong.

    It differs from the paper in three ways. The product of the binary factors is read as OR; the paper's is over the
    reals, where two atoms on one cell make a 2. Codes and atoms are scaled so that the largest number of each is 1,
    where the paper scales them to the same maximum and keeps their product. And the paper descends from 1/2 and 1/2
    along the gradient of a smoothed error; here a grid of both thresholds is gone through, and from its best pair on,
    each is in turn set to its best value given the other, by exact counts, until neither gains.

    Parameters
    ----------
    n_components : int, default=8
        Number of atoms.
    n_init : int, default=5
        Starts of NMF: one from the singular vectors (NNDSVD, unless there are more atoms than samples or features),
        the others random. The one with the fewest wrong cells is kept.
    max_iter : int, default=200
        Iterations of NMF, at most.
    binarize : float or None, default=None
        None: X holds 0 and 1. A number: what is above it is a one.
    random_state : int, Generator, RandomState or None, default=None
        The same number gives the same result. The real factors are made by BLAS, whose last digits may depend on the
        number of its threads; the bits rarely do.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features), uint8
    codes_ : ndarray of shape (n_samples, n_components_), uint8
    codelength_ : Codelength
    n_components_ : int
    n_iter_ : int
        Iterations of NMF in the start that is kept.

    References
    ----------
    Z. Zhang, C. Ding, T. Li, X. Zhang, "Binary matrix factorization with applications", ICDM 2007.

    Examples
    --------
    >>> from bitatoms.baselines import ThresholdedNMF
    >>> from bitatoms.datasets import planted
    >>> data = planted(100, 40, 3, algebra="or", noise=0.02, random_state=0)
    >>> model = ThresholdedNMF(3, n_init=1, random_state=0).fit(data.X)
    >>> bool((model.inverse_transform(model.codes_) == data.clean).all())
    True
    """

    algebra: ClassVar[str] = "or"
    stops_itself: ClassVar[bool] = False
    n_components: int

    def __init__(
        self,
        n_components: int = 8,
        *,
        n_init: int = 5,
        max_iter: int = 200,
        binarize: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_init = n_init
        self.max_iter = max_iter
        self.binarize = binarize
        self.random_state = random_state

    def _factorize(self, data: BitMatrix, random: np.random.Generator) -> Factors:
        n_init, max_iter = check_int("n_init", self.n_init, 1), check_int("max_iter", self.max_iter, 1)
        cells = data.to_dense()
        starts = real_starts(cells, self.n_components, n_init, max_iter, random)
        found, self.n_iter_ = best_rounded(cells, starts)
        return found


def real_starts(
    cells: NDArray[np.uint8], n_atoms: int, n_init: int, max_iter: int, random: np.random.Generator
) -> Iterator[RealFactors]:
    """Factors by NMF, scaled: from the singular vectors where there are as many, and from random starts."""
    numbers = cells.astype(np.float64)
    for start in range(n_init):
        init = "nndsvd" if start == 0 and n_atoms <= min(cells.shape) else "random"
        method = NMF(n_atoms, init=init, max_iter=max_iter, random_state=int(random.integers(2**31)))
        with warnings.catch_warnings():  # the thresholds do not need the last digits
            warnings.simplefilter("ignore", ConvergenceWarning)
            codes = method.fit_transform(numbers)
        atoms = method.components_
        yield RealFactors(codes / _maxima(codes, 0), atoms / _maxima(atoms, 1), method.n_iter_)


def _maxima(factor: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """The largest number of each column or row, or 1 where it holds zeros only."""
    largest = factor.max(axis=axis, keepdims=True)
    return np.where(largest > 0, largest, 1.0)


def best_rounded(cells: NDArray[np.uint8], candidates: Iterable[RealFactors]) -> tuple[Factors, int]:
    """Of several real factors those that are best rounded, as zeros and ones, and the iterations that made them."""
    cut, real = min(((best_cut(cells, real), real) for real in candidates), key=lambda found: found[0].wrong)
    return Factors(real.atoms > cut.atoms, real.codes > cut.codes), real.n_iter


def best_cut(cells: NDArray[np.uint8], real: RealFactors) -> Cut:
    """The thresholds that make the fewest cells wrong: by a grid, then each in turn given the other, exactly."""
    codes, atoms, _ = real
    coarse = _levels(codes, _BYTE)
    best = min(_best_codes(cells, codes, coarse, atoms, threshold) for threshold in _levels(atoms, _GRID))
    fine_codes, fine_atoms = _levels(codes, _TWO_BYTES), _levels(atoms, _TWO_BYTES)
    while True:
        before = best
        best = min(best, _best_codes(cells, codes, fine_codes, atoms, best.atoms))
        wrong, at_atoms, at_codes = _best_codes(cells.T, atoms.T, fine_atoms, codes.T, best.codes)
        best = min(best, Cut(wrong, at_codes, at_atoms))
        if best.wrong == before.wrong:
            return before


def _levels(factor: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """Every threshold that makes a difference, or, where they are too many, so many, evenly among them."""
    values = np.unique(np.append(factor, 0.0))
    if len(values) <= most:
        return values
    return values[np.linspace(0, len(values) - 1, most).astype(np.intp)]


def _best_codes(
    cells: NDArray[np.uint8],
    codes: NDArray[np.float64],
    levels: NDArray[np.float64],
    atoms: NDArray[np.float64],
    threshold: float,
) -> Cut:
    """The best of ascending thresholds of the codes, given that of the atoms.

    A cell of the product is a one just where the largest code among the atoms that have the cell is above the
    threshold. So one look at the largest codes counts the wrong cells of all thresholds at once.
    """
    n_levels = len(levels)
    ranks = np.searchsorted(levels, codes).astype(np.uint8 if n_levels <= _BYTE else np.uint16)  # thresholds below it
    ones = (atoms > threshold).astype(ranks.dtype)
    counts = np.zeros((2, n_levels + 1), np.int64)  # zeros and ones by the rank of the largest code
    n_rows = max(1, _CELLS // cells.shape[1])
    for first in range(0, len(cells), n_rows):
        rows = ranks[first : first + n_rows]
        largest = np.zeros((len(rows), cells.shape[1]), ranks.dtype)
        term = np.empty_like(largest)
        for k, atom in enumerate(ones):
            np.multiply(rows[:, k, None], atom, out=term)
            np.maximum(largest, term, out=largest)
        places = largest + cells[first : first + n_rows].astype(np.intp) * (n_levels + 1)
        counts += np.bincount(places.ravel(), minlength=2 * (n_levels + 1)).reshape(2, -1)
    missed = np.cumsum(counts[1])  # ones not above the threshold
    invented = counts[0].sum() - np.cumsum(counts[0])
    wrong = (missed + invented)[:n_levels]
    best = int(wrong.argmin())
    return Cut(int(wrong[best]), float(levels[best]), float(threshold))
