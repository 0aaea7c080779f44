"""NMF with thresholds, and with a penalty: real factors, rounded by the thresholds with the fewest wrong cells."""

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

_GRID_SIZE = 16  # initial thresholds of the atoms, each tried with the best of up to _MAX_UINT8 of the codes
_MAX_UINT8, _MAX_UINT16 = 255, 65535  # maximum number of thresholds whose ranks fit the type
_CHUNK_CELLS = 1 << 18  # cells processed together, so that the temporaries fit the cache
_MAX_NMF_ITERATIONS = 200
_FIRST_WEIGHT, _WEIGHT_GROWTH, _MAX_STAGES = 1.0, 2.0, 40
_BINARY_TOLERANCE = 0.01  # of x(1 - x) for a value x that counts as zero or one
_EPSILON = 1e-12  # avoids 0 / 0; a zero stays zero


class RealFactors(NamedTuple):
    """Real factors, scaled so that the maximum of each column of codes and of each atom is 1, or 0."""

    codes: NDArray[np.float64]  # (n_samples, n_atoms)
    atoms: NDArray[np.float64]  # (n_atoms, n_features)
    n_iter: int  # number of iterations


class Thresholds(NamedTuple):
    """Thresholds of codes and atoms, and the number of wrong cells of the binary product."""

    wrong: int
    codes: float
    atoms: float


class ThresholdedNMF(Baseline):
    """Non-negative matrix factorization with factors binarized by one threshold each.

    The thresholding method of Zhang, Ding, Li and Zhang. scikit-learn's ``NMF`` finds real factors, which are scaled.
    Values above the threshold of their factor are ones. The two thresholds minimize the number of wrong cells.

    It differs from the paper in three ways. The product of the binary factors is OR; the paper's is over the reals,
    where two atoms on one cell make a 2. Codes and atoms are scaled to a maximum of 1 each, where the paper scales them
    to the same maximum and keeps their product. The paper finds the thresholds by gradient descent on a smoothed error,
    from 1/2 and 1/2; here, a grid of both thresholds is searched, and from its best pair each threshold is set in turn
    to its best value given the other, by exact counts, until neither improves.

    Parameters
    ----------
    n_components : int, default=8
        Number of atoms.
    n_init : int, default=5
        Number of starts of NMF: one from the singular vectors (NNDSVD, unless there are more atoms than samples or
        features), the others random. The one with the fewest wrong cells is kept.
    max_iter : int, default=200
        Maximum number of iterations of NMF.
    binarize : float or None, default=None
        Threshold: values above it are ones. None requires X to hold only 0 and 1.
    random_state : int, Generator, RandomState or None, default=None
        The same seed gives the same result. The real factors are computed by BLAS, whose rounding may depend on the
        number of threads; the binary factors rarely do.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features), uint8
    codes_ : ndarray of shape (n_samples, n_components_), uint8
    codelength_ : Codelength
    n_components_ : int
    n_iter_ : int
        Number of iterations of NMF in the kept start.

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
    chooses_rank: ClassVar[bool] = False
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
        starts = nmf_factors(cells, self.n_components, n_init, max_iter, random)
        factors, self.n_iter_ = best_rounded(cells, starts)
        return factors


class PenalizedNMF(Baseline):
    """Non-negative matrix factorization with a penalty on values other than zero and one.

    The penalty method of Zhang, Ding, Li and Zhang. It starts from the factors of scikit-learn's ``NMF``.
    Multiplicative updates minimize the squared error of codes times atoms plus a weight times the sum of (x² - x)² over
    all values x of both factors. After every ``n_updates`` updates the weight is doubled, until all values are nearly
    zero or one.

    It differs from the paper in three ways. The initial factors are scaled so that the maximum of each code column and
    atom is 1, where the paper keeps their product; the first updates restore it. The product of the binary factors is
    OR; the paper's is over the reals, where two atoms on one cell make a 2, so that the penalty by itself avoids atoms
    that overlap. For this reason the factors are rounded at each weight, not only at the end, by the best thresholds as
    in ``ThresholdedNMF``, and those with the fewest wrong cells are kept.

    Parameters
    ----------
    n_components : int, default=8
        Number of atoms.
    n_init : int, default=3
        Number of starts of NMF: one from the singular vectors (NNDSVD, unless there are more atoms than samples or
        features), the others random. The one with the fewest wrong cells is kept.
    n_updates : int, default=20
        Number of updates of both factors per weight.
    binarize : float or None, default=None
        Threshold: values above it are ones. None requires X to hold only 0 and 1.
    random_state : int, Generator, RandomState or None, default=None
        The same seed gives the same result. The real factors are computed by BLAS, whose rounding may depend on the
        number of threads; the binary factors rarely do.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features), uint8
    codes_ : ndarray of shape (n_samples, n_components_), uint8
    codelength_ : Codelength
    n_components_ : int
    n_iter_ : int
        Number of iterations of NMF plus updates that led to the kept factors.

    References
    ----------
    Z. Zhang, C. Ding, T. Li, X. Zhang, "Binary matrix factorization with applications", ICDM 2007.

    Z. Zhang, T. Li, C. Ding, X. Ren, X. Zhang, "Binary matrix factorization for analyzing gene expression data", Data
    Mining and Knowledge Discovery 20(1), 2010.

    Examples
    --------
    >>> from bitatoms.baselines import PenalizedNMF
    >>> from bitatoms.datasets import planted
    >>> data = planted(100, 40, 3, algebra="or", noise=0.02, random_state=0)
    >>> model = PenalizedNMF(3, n_init=1, random_state=0).fit(data.X)
    >>> bool((model.inverse_transform(model.codes_) == data.clean).all())
    True
    """

    algebra: ClassVar[str] = "or"
    chooses_rank: ClassVar[bool] = False
    n_components: int

    def __init__(
        self,
        n_components: int = 8,
        *,
        n_init: int = 3,
        n_updates: int = 20,
        binarize: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_init = n_init
        self.n_updates = n_updates
        self.binarize = binarize
        self.random_state = random_state

    def _factorize(self, data: BitMatrix, random: np.random.Generator) -> Factors:
        n_init, n_updates = check_int("n_init", self.n_init, 1), check_int("n_updates", self.n_updates, 1)
        cells = data.to_dense()
        starts = nmf_factors(cells, self.n_components, n_init, _MAX_NMF_ITERATIONS, random)
        candidates = _penalty_path(cells.astype(np.float64), starts, n_updates)
        factors, self.n_iter_ = best_rounded(cells, candidates)
        return factors


def nmf_factors(
    cells: NDArray[np.uint8], n_atoms: int, n_init: int, max_iter: int, random: np.random.Generator
) -> Iterator[RealFactors]:
    """Yield scaled factors of NMF: from the singular vectors if there are enough, then from random starts."""
    values = cells.astype(np.float64)
    for start in range(n_init):
        init = "nndsvd" if start == 0 and n_atoms <= min(cells.shape) else "random"
        method = NMF(n_atoms, init=init, max_iter=max_iter, random_state=int(random.integers(2**31)))
        with warnings.catch_warnings():  # thresholds do not need exact convergence
            warnings.simplefilter("ignore", ConvergenceWarning)
            codes = method.fit_transform(values)
        atoms = method.components_
        yield RealFactors(codes / _maxima(codes, 0), atoms / _maxima(atoms, 1), method.n_iter_)


def _maxima(factor: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """Return the maximum of each column or row, or 1 if it holds only zeros."""
    maxima = factor.max(axis=axis, keepdims=True)
    return np.where(maxima > 0, maxima, 1.0)


def best_rounded(cells: NDArray[np.uint8], candidates: Iterable[RealFactors]) -> tuple[Factors, int]:
    """Return the binary factors with the fewest wrong cells among the candidates, and their number of iterations."""
    best, real = min(((best_thresholds(cells, real), real) for real in candidates), key=lambda pair: pair[0].wrong)
    return Factors(real.atoms > best.atoms, real.codes > best.codes), real.n_iter


def best_thresholds(cells: NDArray[np.uint8], real: RealFactors) -> Thresholds:
    """Return the thresholds with the fewest wrong cells: by a grid, then exactly for each in turn given the other."""
    codes, atoms, _ = real
    coarse = _levels(codes, _MAX_UINT8)
    best = min(_best_code_threshold(cells, codes, coarse, atoms, threshold) for threshold in _levels(atoms, _GRID_SIZE))
    fine_codes, fine_atoms = _levels(codes, _MAX_UINT16), _levels(atoms, _MAX_UINT16)
    while True:
        before = best
        best = min(best, _best_code_threshold(cells, codes, fine_codes, atoms, best.atoms))
        wrong, atom_threshold, code_threshold = _best_code_threshold(cells.T, atoms.T, fine_atoms, codes.T, best.codes)
        best = min(best, Thresholds(wrong, code_threshold, atom_threshold))
        if best.wrong == before.wrong:
            return before


def _levels(factor: NDArray[np.float64], max_levels: int) -> NDArray[np.float64]:
    """Return all thresholds that give different factors, or ``max_levels`` evenly spaced among them."""
    values = np.unique(np.append(factor, 0.0))
    if len(values) <= max_levels:
        return values
    return values[np.linspace(0, len(values) - 1, max_levels).astype(np.intp)]


def _best_code_threshold(
    cells: NDArray[np.uint8],
    codes: NDArray[np.float64],
    levels: NDArray[np.float64],
    atoms: NDArray[np.float64],
    threshold: float,
) -> Thresholds:
    """Return the best of ascending thresholds of the codes, given the threshold of the atoms.

    A cell of the product is a one if and only if the largest code among the atoms that contain the cell is above the
    threshold. A histogram of the largest codes therefore counts the wrong cells of all thresholds at once.
    """
    n_levels = len(levels)
    # the rank of a code is the number of thresholds below it
    ranks = np.searchsorted(levels, codes).astype(np.uint8 if n_levels <= _MAX_UINT8 else np.uint16)
    ones = (atoms > threshold).astype(ranks.dtype)
    counts = np.zeros((2, n_levels + 1), np.int64)  # of zeros and ones, by the rank of the largest code
    n_rows = max(1, _CHUNK_CELLS // cells.shape[1])
    for first in range(0, len(cells), n_rows):
        rows = ranks[first : first + n_rows]
        largest = np.zeros((len(rows), cells.shape[1]), ranks.dtype)
        term = np.empty_like(largest)
        for k, atom in enumerate(ones):
            np.multiply(rows[:, k, None], atom, out=term)
            np.maximum(largest, term, out=largest)
        bins = largest + cells[first : first + n_rows].astype(np.intp) * (n_levels + 1)
        counts += np.bincount(bins.ravel(), minlength=2 * (n_levels + 1)).reshape(2, -1)
    missed = np.cumsum(counts[1])  # ones at or below the threshold
    added = counts[0].sum() - np.cumsum(counts[0])
    wrong = (missed + added)[:n_levels]
    best = int(wrong.argmin())
    return Thresholds(int(wrong[best]), float(levels[best]), float(threshold))


def _penalty_path(values: NDArray[np.float64], starts: Iterable[RealFactors], n_updates: int) -> Iterator[RealFactors]:
    """Yield from each start the factors at growing weights, until all values are nearly zero or one."""
    for real in starts:
        for stage in range(_MAX_STAGES):
            real = penalized(values, real, _FIRST_WEIGHT * _WEIGHT_GROWTH**stage, n_updates)
            yield real
            if max(np.abs(factor * (1 - factor)).max() for factor in (real.codes, real.atoms)) < _BINARY_TOLERANCE:
                break


def penalized(values: NDArray[np.float64], real: RealFactors, weight: float, n_updates: int) -> RealFactors:
    """Return the factors after alternating multiplicative updates of atoms and codes at one weight."""
    codes, atoms, n_iter = real
    for _ in range(n_updates):
        atoms = _updated(atoms, codes.T @ values, (codes.T @ codes) @ atoms, weight)
        codes = _updated(codes, values @ atoms.T, codes @ (atoms @ atoms.T), weight)
    return RealFactors(codes, atoms, n_iter + n_updates)


def _updated(
    factor: NDArray[np.float64], target: NDArray[np.float64], current: NDArray[np.float64], weight: float
) -> NDArray[np.float64]:
    """Return one factor after a multiplicative update: the negative over the positive part of the gradient."""
    square = factor * factor
    positive = current + 2 * weight * square * factor + weight * factor + _EPSILON
    return factor * (target + 3 * weight * square) / positive
