"""NMF with a penalty: real factors, driven towards zeros and ones by a growing weight on what is neither."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..validation import check_int
from .baseline import Baseline, Factors
from .thresholded import RealFactors, best_rounded, real_starts

_START_ITERATIONS = 200  # of NMF, at most
_FIRST_WEIGHT, _GROWTH, _MOST_STAGES = 1.0, 2.0, 40
_NEARLY = 0.01  # x(1 - x) of a number x that is as good as zero or one
_TINY = 1e-12  # keeps 0 / 0 from being undefined; a zero stays one


class PenalizedNMF(Baseline):
    """Non-negative matrix factorisation with a penalty on numbers that are neither zero nor one.

    The penalty method of Zhang, Ding, Li and Zhang: the squared error of codes times atoms plus a weight times the sum
    of the squares of x² - x over all numbers x of both factors is made small by multiplicative updates, from the
    factors that scikit-learn's ``NMF`` finds. After ``n_updates`` updates the weight is doubled, and again, until all
    numbers are nearly zero or one.

    It differs from the paper in three ways. The factors to start from are scaled so that the largest number of each
    code and atom is 1, where the paper keeps their product; the first updates restore it. The product of the binary
    factors is read as OR; the paper's is over the reals, where two atoms on one cell make a 2, so that the penalty by
    itself shuns atoms that overlap. Therefore the factors are rounded not only in the end: at each weight by the best
    thresholds, as in ``ThresholdedNMF``, and those with the fewest wrong cells are kept.

    Parameters
    ----------
    n_components : int, default=8
        Number of atoms.
    n_init : int, default=3
        Starts of NMF: one from the singular vectors (NNDSVD, unless there are more atoms than samples or features),
        the others random. The one with the fewest wrong cells is kept.
    n_updates : int, default=20
        Updates of both factors at each weight.
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
        Iterations of NMF, and updates, that led to the factors that are kept.

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
    stops_itself: ClassVar[bool] = False
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
        starts = real_starts(cells, self.n_components, n_init, _START_ITERATIONS, random)
        found, self.n_iter_ = best_rounded(cells, _ways(cells.astype(np.float64), starts, n_updates))
        return found


def _ways(numbers: NDArray[np.float64], starts: Iterable[RealFactors], n_updates: int) -> Iterator[RealFactors]:
    """From each start the factors at one weight after the other, until all numbers are nearly zero or one."""
    for real in starts:
        for stage in range(_MOST_STAGES):
            real = penalized(numbers, real, _FIRST_WEIGHT * _GROWTH**stage, n_updates)
            yield real
            if max(np.abs(factor * (1 - factor)).max() for factor in (real.codes, real.atoms)) < _NEARLY:
                break


def penalized(numbers: NDArray[np.float64], real: RealFactors, weight: float, n_updates: int) -> RealFactors:
    """The factors after some multiplicative updates at a weight, first the atoms, then the codes, in turn."""
    codes, atoms, n_iter = real
    for _ in range(n_updates):
        atoms = _updated(atoms, codes.T @ numbers, (codes.T @ codes) @ atoms, weight)
        codes = _updated(codes, numbers @ atoms.T, codes @ (atoms @ atoms.T), weight)
    return RealFactors(codes, atoms, n_iter + n_updates)


def _updated(
    factor: NDArray[np.float64], wanted: NDArray[np.float64], there: NDArray[np.float64], weight: float
) -> NDArray[np.float64]:
    """One factor, multiplied by the ratio of what draws it up to what draws it down."""
    square = factor * factor
    return factor * (wanted + 3 * weight * square) / (there + 2 * weight * square * factor + weight * factor + _TINY)
