"""A path of forward selection, forced past its minimum, and what can be measured on its curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.result import Round
from .runs import Run, shortest

_DEEP = 0.005  # two minima are told apart by a rise of so much between them
_GAINED = 0.05  # of what there was to gain: what is left when it is as good as gained
_POINTS = 8  # steps until then that a law can be told from


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

    def seconds_to(self, n_atoms: int) -> float:
        """How long it took to come to so many atoms."""
        return max(row.seconds for row in self.rounds if row.atoms <= n_atoms)

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


class Fit(NamedTuple):
    """How well a law describes what is left to gain: R² of a straight line, after the logarithm."""

    exponential: float
    power: float


def law_of(path: Path) -> Fit | None:
    """How well what is left to gain falls like an exponential, and like a power of the number of atoms; None where it
    is gained in a few steps."""
    left = path.bits - path.bits.min()
    until = int(np.argmax(left < _GAINED * left[0])) if left[0] > 0 else 0
    if until < _POINTS:
        return None
    atoms, logarithm = path.atoms[:until], np.log(left[:until])
    return Fit(*(float(np.corrcoef(x, logarithm)[0, 1] ** 2) for x in (atoms, np.log(atoms))))


def growth_of(steps: NDArray[np.float64]) -> float:
    """How many times as long a step takes in the last third as in the first."""
    third = max(1, len(steps) // 3)
    return float(np.median(steps[-third:]) / np.median(steps[:third]))


def running_median(values: NDArray[np.float64], reach: int = 7) -> NDArray[np.float64]:
    """The median of each value and those around it."""
    return np.array([np.median(values[max(0, at - reach) : at + reach + 1]) for at in range(len(values))])
