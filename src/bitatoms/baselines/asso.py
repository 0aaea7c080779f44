"""Asso: greedy selection among candidate atoms from pairwise associations of columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from ..bits import BitMatrix
from ..validation import check_fraction
from .baseline import Baseline, Factors

_SWEEP = tuple(step / 100 for step in range(1, 101))
_MAX_RATIO = 10**5  # of reward and penalty
_CHUNK_CELLS = 1 << 22  # bounds the working memory


class Asso(Baseline):
    """Asso, the greedy method of Miettinen et al. for the discrete basis problem: atoms from association rules.

    Each column j gives one candidate atom: the columns that are one in at least a given share of the rows in which j is
    one. The method repeatedly selects the candidate that covers the data best. A row uses it if it covers more ones
    than zeros among the cells not covered yet. Selected atoms are not changed later. Atoms are combined by OR.

    The share is a threshold that has a strong effect, and the paper leaves it to the user. By default many thresholds
    are tried, and the one with the fewest wrong cells is kept.

    Parameters
    ----------
    n_components : int or None, default=None
        Maximum number of atoms. The method stops earlier if no candidate improves the cover. None: no maximum.
    threshold : "sweep", float or sequence of float, default="sweep"
        Minimum share of rows, greater than 0 and at most 1, for one column to imply another. Of several thresholds,
        the one with the fewest wrong cells is kept; ties go to the first. "sweep" tries 0.01, 0.02, ..., 1. Finer steps
        are slightly better and take longer.
    reward, penalty : float, default=1.0
        Weight of a covered one, and of a covered zero. Only their ratio matters.
    binarize : float or None, default=None
        Threshold: values above it are ones. None requires X to hold only 0 and 1.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features), uint8
        Atoms in the order of selection.
    codes_ : ndarray of shape (n_samples, n_components_), uint8
    threshold_ : float
        The threshold of the kept factors.
    codelength_ : Codelength
    n_components_ : int

    Notes
    -----
    Ties between candidates go to the lowest column. The paper selects exactly k atoms; here, a candidate that does not
    improve the cover is not selected. The working memory is about 12 bytes per cell of X.

    References
    ----------
    P. Miettinen, T. Mielikäinen, A. Gionis, G. Das, H. Mannila, "The discrete basis problem", IEEE Transactions on
    Knowledge and Data Engineering 20(10), 2008.

    Examples
    --------
    >>> from bitatoms.baselines import Asso
    >>> from bitatoms.datasets import planted
    >>> data = planted(200, 40, 4, algebra="or", noise=0.02, random_state=0)
    >>> model = Asso(4).fit(data.X)
    >>> wrong = model.inverse_transform(model.codes_) != data.X
    >>> model.threshold_, float(wrong.mean().round(3))
    (0.31, 0.018)
    """

    algebra: ClassVar[str] = "or"
    random_state = None  # deterministic

    def __init__(
        self,
        n_components: int | None = None,
        *,
        threshold: Any = "sweep",
        reward: float = 1.0,
        penalty: float = 1.0,
        binarize: float | None = None,
    ) -> None:
        self.n_components = n_components
        self.threshold = threshold
        self.reward = reward
        self.penalty = penalty
        self.binarize = binarize

    def _factorize(self, data: BitMatrix, random: np.random.Generator) -> Factors:
        thresholds = _thresholds(self.threshold)
        reward, penalty = _weights(self.reward, self.penalty)
        # all sums are integers, which float32 represents exactly up to 2**24
        rows = data.to_dense(np.float32 if (reward + penalty) * data.n_cols < 1 << 24 else np.float64)
        confidences = _confidences(rows)
        covers = (
            _greedy_cover(rows, _candidates(confidences, threshold), reward, penalty, self.n_components)
            for threshold in thresholds
        )
        (_, factors), self.threshold_ = min(zip(covers, thresholds, strict=True), key=lambda pair: pair[0][0])
        return factors


def _thresholds(threshold: Any) -> tuple[float, ...]:
    """Return the thresholds to try."""
    several = [threshold] if isinstance(threshold, Real) else threshold
    if isinstance(several, str) and several == "sweep":
        return _SWEEP
    if isinstance(several, str) or not isinstance(several, Iterable):
        raise ValueError(f'threshold must be "sweep", a number or a sequence of numbers, not {threshold!r}')
    checked = tuple(check_fraction("threshold", one) for one in several)
    if not checked or 0.0 in checked:
        raise ValueError(f"threshold must be greater than 0 and at most 1, not {threshold!r}")
    return checked


def _weights(reward: Any, penalty: Any) -> tuple[int, int]:
    """Return integers in the ratio of the two weights, so that their sums are exact."""
    for name, value in (("reward", reward), ("penalty", penalty)):
        if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < np.inf:
            raise ValueError(f"{name} must be a number greater than 0, not {value!r}")
    ratio = float(reward) / float(penalty)
    if not 1 / _MAX_RATIO <= ratio <= _MAX_RATIO:
        raise ValueError(f"reward={reward!r} and penalty={penalty!r} must differ by a factor of at most {_MAX_RATIO}")
    fraction = Fraction(ratio).limit_denominator(_MAX_RATIO)
    return fraction.numerator, fraction.denominator


def _confidences(rows: np.ndarray) -> np.ndarray:
    """Return in [i, j] the share of the rows with column i that also have column j; 0 for a column without ones."""
    shared = np.zeros((rows.shape[1], rows.shape[1]))
    for chunk in _row_chunks(len(rows), rows.shape[1]):  # counts per chunk are exact in float32, their sum in float64
        shared += rows[chunk].T @ rows[chunk]
    totals = np.diagonal(shared)
    return shared / np.where(totals > 0, totals, 1)[:, np.newaxis]


def _candidates(confidences: np.ndarray, threshold: float) -> np.ndarray:
    """Return the distinct candidate atoms in the order of their columns, as (n_candidates, n_features) bools."""
    candidates = confidences >= threshold
    candidates = candidates[candidates.any(axis=1)]
    if not len(candidates):
        return candidates
    return candidates[np.sort(np.unique(np.packbits(candidates, axis=1), axis=0, return_index=True)[1])]


def _row_chunks(n_rows: int, width: int) -> Iterator[slice]:
    """Yield slices of rows with about ``_CHUNK_CELLS`` cells each."""
    step = max(1, _CHUNK_CELLS // max(1, width))
    return (slice(start, start + step) for start in range(0, n_rows, step))


def _greedy_cover(
    rows: np.ndarray, candidates: np.ndarray, reward: int, penalty: int, max_atoms: int | None
) -> tuple[int, Factors]:
    """Select the best candidate until there are ``max_atoms`` or none improves; return the wrong cells and factors."""
    cover = _Cover(rows, candidates, reward, penalty)
    selected: list[int] = []
    codes = []
    while len(candidates) and (max_atoms is None or len(selected) < max_atoms):
        best = int(cover.scores.argmax())
        if cover.scores[best] <= 0:
            break
        selected.append(best)
        codes.append(cover.add(best))
    return cover.wrong, Factors(candidates[selected], np.array(codes, bool).reshape(len(selected), len(rows)).T)


class _Cover:
    """The cells covered by the selected atoms, and the gain of each candidate.

    ``values`` holds the value of covering each cell, 0 once it is covered. ``gains`` is its sum per row over the cells
    of a candidate. ``scores`` is the sum of the gains over the rows that would use the candidate. ``wrong`` is the
    number of wrong cells. Selecting an atom changes these only in its rows and columns.
    """

    def __init__(self, rows: np.ndarray, candidates: np.ndarray, reward: int, penalty: int) -> None:
        dtype = rows.dtype
        self.candidates = candidates.astype(dtype)
        self.values = np.where(rows, dtype.type(reward), dtype.type(-penalty))
        self.gains = np.empty((len(rows), len(candidates)), dtype)
        self.scores = np.zeros(len(candidates))
        self.wrong = int(np.count_nonzero(rows))
        for chunk in _row_chunks(*self.gains.shape):
            np.matmul(self.values[chunk], self.candidates.T, out=self.gains[chunk])
            self.scores += _sum_positive(self.gains[chunk])

    def add(self, best: int) -> np.ndarray:
        """Cover the cells of a candidate in the rows that gain from it, and return these rows as a mask."""
        gaining = self.gains[:, best] > 0
        users, columns = np.flatnonzero(gaining), np.flatnonzero(self.candidates[best])
        overlaps = np.ascontiguousarray(self.candidates[:, columns].T)
        for chunk in _row_chunks(len(users), len(self.scores) + len(columns)):
            cells = np.ix_(users[chunk], columns)
            covered = self.values[cells]
            self.values[cells] = 0
            self.wrong += int((covered < 0).sum()) - int((covered > 0).sum())
            before = self.gains[users[chunk]]
            after = before - covered @ overlaps
            self.gains[users[chunk]] = after
            self.scores += _sum_positive(after) - _sum_positive(before)
        return gaining


def _sum_positive(gains: np.ndarray) -> np.ndarray:
    """Return per candidate the sum of the gains of the rows that would use it."""
    return np.maximum(gains, 0).sum(axis=0, dtype=np.float64)
