"""The codelength during forward selection past its minimum, and measurements on that curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitatoms.model.result import Round

from .runs import MethodRun, best_round

_MIN_RISE = 0.005  # of the minimum: two minima are distinct if the curve rises by this much between them
_TAIL = 0.05  # of the initial excess over the minimum: the decay is fitted until only this much is left
_MIN_POINTS = 8  # to fit a decay


@dataclass(frozen=True, eq=False)
class SelectionCurve:
    """The rounds of a forward selection, one per number of atoms."""

    run: MethodRun

    @property
    def rounds(self) -> tuple[Round, ...]:
        """The history of the run."""
        return self.run.history

    @property
    def atoms(self) -> NDArray[np.int64]:
        """The number of atoms at each round."""
        return np.array([row.atoms for row in self.rounds])

    @property
    def bits(self) -> NDArray[np.float64]:
        """The codelength per sample at each round."""
        return np.array([row.bits for row in self.rounds]) / self.run.codes.n_rows

    @property
    def step_seconds(self) -> NDArray[np.float64]:
        """The duration of each round but the first, which starts from scratch."""
        return np.diff([row.seconds for row in self.rounds])

    def seconds_to(self, n_atoms: int) -> float:
        """Return the time until this number of atoms."""
        return max(row.seconds for row in self.rounds if row.atoms <= n_atoms)

    @property
    def best(self) -> Round:
        """The round with the shortest codelength."""
        return best_round(self.rounds)


def count_minima(bits: NDArray[np.float64], min_rise: float = _MIN_RISE) -> int:
    """Return the number of minimum regions: a new one starts where the curve has risen and falls by ``min_rise``."""
    step = min_rise * float(bits.min())
    n_minima, lowest, highest, falling = 1, float(bits[0]), float(bits[0]), True
    for value in map(float, bits):
        if falling:
            lowest = min(lowest, value)
            if value > lowest + step:
                falling, highest = False, value
        else:
            highest = max(highest, value)
            if value < highest - step:
                falling, lowest = True, value
                n_minima += 1
    return n_minima


class DecayFit(NamedTuple):
    """R² of a linear fit to the logarithm of the excess over the minimum."""

    exponential: float  # against the number of atoms
    power: float  # against its logarithm


def fit_decay(curve: SelectionCurve) -> DecayFit | None:
    """Fit an exponential and a power law to the excess over the minimum; None if there are too few points."""
    excess = curve.bits - curve.bits.min()
    until = int(np.argmax(excess < _TAIL * excess[0])) if excess[0] > 0 else 0
    if until < _MIN_POINTS:
        return None
    atoms, log_excess = curve.atoms[:until], np.log(excess[:until])
    return DecayFit(*(float(np.corrcoef(x, log_excess)[0, 1] ** 2) for x in (atoms, np.log(atoms))))


def growth_factor(step_seconds: NDArray[np.float64]) -> float:
    """Return the ratio of the median duration of a step in the last third to that in the first third."""
    third = max(1, len(step_seconds) // 3)
    return float(np.median(step_seconds[-third:]) / np.median(step_seconds[:third]))


def running_median(values: NDArray[np.float64], reach: int = 7) -> NDArray[np.float64]:
    """Return the median of each value and up to ``reach`` values on either side."""
    return np.array([np.median(values[max(0, at - reach) : at + reach + 1]) for at in range(len(values))])
