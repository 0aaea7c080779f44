"""NMF with a growing penalty on values other than zero and one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..validation import check_int
from .baseline import Baseline, Factors
from .thresholded import RealFactors, best_rounded, nmf_factors

_MAX_NMF_ITERATIONS = 200
_FIRST_WEIGHT, _WEIGHT_GROWTH, _MAX_STAGES = 1.0, 2.0, 40
_BINARY_TOLERANCE = 0.01  # of x(1 - x) for a value x that counts as zero or one
_EPSILON = 1e-12  # avoids 0 / 0; a zero stays zero


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
