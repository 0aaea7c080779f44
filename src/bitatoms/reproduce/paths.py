"""A path of forward selection, forced past its minimum, and what can be measured on its curve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..algorithms.result import Round
from .runs import Run, shortest

_DEEP = 0.005  # two minima are told apart by a rise of so much between them
_GAINED = 0.05  # of what there was to gain: what is left when it is as good as gained


@dataclass(frozen=True, eq=False)
class Path:
    """What forward selection went through, atom by atom."""

    run: Run

    @property
    def rounds(self) -> tuple[Round, ...]:
        """What was counted after each atom."""
        return self.run.history

    @property
    def atoms(self) -> NDArray[np.int64]:
        """Their number at each round."""
        return np.array([row.atoms for row in self.rounds])

    @property
    def bits(self) -> NDArray[np.float64]:
        """The codelength a sample."""
        return np.array([row.bits for row in self.rounds]) / self.run.codes.n_rows

    @property
    def steps(self) -> NDArray[np.float64]:
        """Seconds that each round took, but for the first, which starts from nothing."""
        return np.diff([row.seconds for row in self.rounds])

    @property
    def best(self) -> Round:
        """The round with the shortest codelength."""
        return shortest(self.rounds)


def count_valleys(bits: NDArray[np.float64], deep: float = _DEEP) -> int:
    """Minimum regions of a curve: a new one begins where it has risen by so much, and falls by so much again."""
    step = deep * float(bits.min())
    valleys, lowest, highest, falling = 1, float(bits[0]), float(bits[0]), True
    for value in map(float, bits):
        if falling:
            lowest = min(lowest, value)
            if value > lowest + step:
                falling, highest = False, value
        else:
            highest = max(highest, value)
            if value < highest - step:
                falling, lowest = True, value
                valleys += 1
    return valleys


def exponential(path: Path) -> float:
    """How straight the logarithm of what is left to gain is, down to a twentieth of it: R² of a line."""
    left = path.bits - path.bits.min()
    until = int(np.argmax(left < _GAINED * left[0])) if left[0] > 0 else 0
    if until < 3:
        return 1.0
    return float(np.corrcoef(path.atoms[:until], np.log(left[:until]))[0, 1] ** 2)


def growth_of(steps: NDArray[np.float64]) -> float:
    """How many times as long a step takes in the last third as in the first."""
    third = max(1, len(steps) // 3)
    return float(np.median(steps[-third:]) / np.median(steps[:third]))


def running_median(values: NDArray[np.float64], reach: int = 7) -> NDArray[np.float64]:
    """The median of each value and those around it."""
    return np.array([np.median(values[max(0, at - reach) : at + reach + 1]) for at in range(len(values))])
