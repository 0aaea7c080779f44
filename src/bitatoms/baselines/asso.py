"""ASSO: atoms are guessed from how surely one column is followed by others, and the best guesses are taken greedily."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..bits import BitMatrix
from ..validation import check_fraction
from .baseline import Baseline, Factors

_SWEEP = tuple(step / 100 for step in range(1, 101))
_RATIO = 10**5  # how far reward and penalty may differ
_CELLS = 1 << 22  # numbers worked on together, which bounds what is made on the way


class Asso(Baseline):
    """ASSO, the greedy method of Miettinen and others for the discrete basis problem: atoms from association rules.

    Every column j suggests one atom: the columns that are one in at least a given share of the rows in which j is one.
    Of these candidates the one that covers the data best is taken, again and again; a row uses it where it covers more
    ones, not covered before, than zeros. What was taken stays. Atoms are combined by OR.

    The share matters much and the paper leaves it to the user. By default many are tried, and the one with the fewest
    wrong cells is kept.

    Parameters
    ----------
    n_components : int or None, default=None
        The most atoms; fewer where no candidate covers more. None goes on until then.
    threshold : "sweep", float or sequence of float, default="sweep"
        The share of rows, above 0 and up to 1, from which on a column follows another. Of several the one with the
        fewest wrong cells is kept, of equals the first. "sweep": 0.01, 0.02, ... to 1. Finer steps find a little
        better, at their cost.
    reward, penalty : float, default=1.0
        What a one is worth that is covered, and what a zero costs. Only their ratio matters.
    binarize : float or None, default=None
        None: X holds 0 and 1. A number: what is above it is a one.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features), uint8
        In the order in which they were taken.
    codes_ : ndarray of shape (n_samples, n_components_), uint8
    threshold_ : float
        The threshold that was kept.
    codelength_ : Codelength
    n_components_ : int

    Notes
    -----
    Ties between candidates go to the lowest column. The paper takes exactly k atoms; here a candidate that covers no
    more than is covered already is not taken. Working memory is about 12 bytes for each cell of X.

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
    random_state = None  # nothing is left to chance

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
        # all sums are whole numbers, which float32 holds exactly up to 2**24
        rows = data.to_dense(np.float32 if (reward + penalty) * data.n_cols < 1 << 24 else np.float64)
        confidences = _confidences(rows)
        tries = (_take(rows, confidences, threshold, reward, penalty, self.n_components) for threshold in thresholds)
        found = min(tries, key=lambda tried: tried.wrong)  # of equals the first
        self.threshold_ = found.threshold
        return found.factors


def _thresholds(threshold: Any) -> tuple[float, ...]:
    """The thresholds to try."""
    if isinstance(threshold, str):
        if threshold != "sweep":
            raise ValueError(f'threshold must be "sweep", a number or several, not {threshold!r}')
        return _SWEEP
    several = (threshold,) if isinstance(threshold, Real) else threshold
    try:
        checked = tuple(check_fraction("threshold", one) for one in several)
    except TypeError:
        raise ValueError(f'threshold must be "sweep", a number or several, not {threshold!r}') from None
    if not checked or 0.0 in checked:
        raise ValueError(f"threshold must be above 0 and at most 1, one number or several, not {threshold!r}")
    return checked


def _weights(reward: Any, penalty: Any) -> tuple[int, int]:
    """Whole numbers in the ratio of the two, so that sums of them are exact."""
    for name, value in (("reward", reward), ("penalty", penalty)):
        if not isinstance(value, Real) or isinstance(value, bool) or not 0 < float(value) < np.inf:
            raise ValueError(f"{name} must be a number above 0, not {value!r}")
    ratio = float(reward) / float(penalty)
    if not 1 / _RATIO <= ratio <= _RATIO:
        raise ValueError(f"reward={reward!r} and penalty={penalty!r} differ too much; at most {_RATIO} times")
    near = Fraction(ratio).limit_denominator(_RATIO)
    return near.numerator, near.denominator


def _confidences(rows: np.ndarray) -> np.ndarray:
    """In [i, j] the share of rows with column j among those with column i; a column without ones implies nothing."""
    shared = np.zeros((rows.shape[1], rows.shape[1]))
    for some in _slabs(len(rows), rows.shape[1]):  # counts of one slab are exact in float32, their sum in float64
        shared += rows[some].T @ rows[some]
    alone = np.diagonal(shared)
    return shared / np.where(alone > 0, alone, 1)[:, np.newaxis]


def _candidates(confidences: np.ndarray, threshold: float) -> np.ndarray:
    """The atoms that columns suggest, in the order of the columns, each once: (n_candidates, n_features) bools."""
    suggested = confidences >= threshold
    suggested = suggested[suggested.any(axis=1)]
    if not len(suggested):
        return suggested
    return suggested[np.sort(np.unique(np.packbits(suggested, axis=1), axis=0, return_index=True)[1])]


def _slabs(n_rows: int, width: int) -> Iterator[slice]:
    """Rows in slabs of about ``_CELLS`` numbers."""
    step = max(1, _CELLS // max(1, width))
    return (slice(start, start + step) for start in range(0, n_rows, step))


class _Found(NamedTuple):
    """What one threshold gives."""

    threshold: float
    wrong: int
    factors: Factors


def _take(
    rows: np.ndarray, confidences: np.ndarray, threshold: float, reward: int, penalty: int, most: int | None
) -> _Found:
    """Take the best candidate until there are ``most``, or none covers more."""
    candidates = _candidates(confidences, threshold)
    cover = _Cover(rows, candidates, reward, penalty)
    taken: list[int] = []
    codes = []
    while len(candidates) and (most is None or len(taken) < most):
        best = int(cover.scores.argmax())
        if cover.scores[best] <= 0:
            break
        taken.append(best)
        codes.append(cover.add(best))
    used = np.array(codes, bool).reshape(len(taken), len(rows)).T
    return _Found(threshold, cover.wrong, Factors(candidates[taken], used))


class _Cover:
    """What the atoms taken so far cover, and what each candidate would bring.

    ``worth`` holds for every cell what covering it brings, 0 once it is covered; ``gains`` its sum over the cells of a
    candidate in a row; ``scores`` the sum over the rows that would use the candidate; ``wrong`` how many cells differ.
    An atom that is taken changes them only in its rows, and there by its columns.
    """

    def __init__(self, rows: np.ndarray, candidates: np.ndarray, reward: int, penalty: int) -> None:
        number = rows.dtype
        self.candidates = candidates.astype(number)
        self.worth = np.where(rows, number.type(reward), number.type(-penalty))
        self.gains = np.empty((len(rows), len(candidates)), number)
        self.scores = np.zeros(len(candidates))
        self.wrong = int(np.count_nonzero(rows))
        for some in _slabs(*self.gains.shape):
            np.matmul(self.worth[some], self.candidates.T, out=self.gains[some])
            self.scores += _total(self.gains[some])

    def add(self, best: int) -> np.ndarray:
        """Cover what a candidate covers in the rows that gain by it; which those are, as bools."""
        gaining = self.gains[:, best] > 0
        users, columns = np.flatnonzero(gaining), np.flatnonzero(self.candidates[best])
        there = np.ascontiguousarray(self.candidates[:, columns].T)
        for some in _slabs(len(users), len(self.scores) + len(columns)):
            cells = np.ix_(users[some], columns)
            brought = self.worth[cells]
            self.worth[cells] = 0
            self.wrong += int((brought < 0).sum()) - int((brought > 0).sum())
            before = self.gains[users[some]]
            after = before - brought @ there
            self.gains[users[some]] = after
            self.scores += _total(after) - _total(before)
        return gaining


def _total(gains: np.ndarray) -> np.ndarray:
    """For each candidate the gains of the rows that would use it, together."""
    return np.maximum(gains, 0).sum(axis=0, dtype=np.float64)
