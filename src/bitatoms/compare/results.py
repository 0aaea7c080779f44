"""The results of a comparison: runs, and their medians per method and number of atoms."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..engine.codelength import Codelength
from .methods import Method


class Dataset(NamedTuple):
    """A table that methods were compared on.

    Attributes
    ----------
    name : str
        Name of the table.
    shape : tuple of int
        Numbers of rows and columns.
    density : float
        Share of ones.
    bits_without : int
        Codelength without a model.
    ranks : sequence of int
        Numbers of atoms, ascending.
    about : str
        What the table is.
    """

    name: str
    shape: tuple[int, int]
    density: float
    bits_without: int
    ranks: Sequence[int]
    about: str = ""

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return self.shape[0] * self.shape[1]


@dataclass(frozen=True)
class Run:
    """One run of a method: the request, the result, and the time it took.

    Attributes
    ----------
    data : str
        Name of the table.
    method : Method
        The method.
    asked : int or None
        Number of atoms; None if the method chose it.
    seed : int or None
        Random seed; None if the method is deterministic.
    atoms : int or None
        Number of atoms found.
    wrong : int or None
        Number of wrong cells.
    bits : Codelength or None
        Codelength.
    cpu : float or None
        CPU seconds, summed over all processors.
    wall : float or None
        Elapsed seconds.
    why_not : str
        The reason if there is no result.
    """

    data: str
    method: Method
    asked: int | None
    seed: int | None
    atoms: int | None = None
    wrong: int | None = None
    bits: Codelength | None = None
    cpu: float | None = None
    wall: float | None = None
    why_not: str = ""

    @property
    def done(self) -> bool:
        """Whether the run has a result."""
        return self.bits is not None


class Spread(NamedTuple):
    """The median, the minimum and the maximum of several values."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Spread:
        """Return the spread of the values that are known, at least one; the median is the lower of two middle ones."""
        known = [value for value in values if value is not None]
        return cls(statistics.median_low(known), min(known), max(known))


@dataclass(frozen=True)
class Result:
    """The runs of a method with one number of atoms, over all seeds.

    Attributes
    ----------
    method : Method
        The method.
    asked : int or None
        Number of atoms; None if the method chose it.
    runs : tuple of Run
        At least one run.
    """

    method: Method
    asked: int | None
    runs: tuple[Run, ...]

    @property
    def done(self) -> bool:
        """Whether any run has a result."""
        return any(run.done for run in self.runs)

    @property
    def why_not(self) -> str:
        """The reason given by the first run without a result."""
        return next((run.why_not for run in self.runs if run.why_not), "")

    @property
    def wrong(self) -> Spread:
        """Number of wrong cells."""
        return Spread.of(run.wrong for run in self.runs)

    @property
    def bits(self) -> Spread:
        """Codelength in bits."""
        return Spread.of(run.bits.total for run in self.runs if run.bits is not None)

    @property
    def cpu(self) -> float:
        """Median of the CPU seconds."""
        return Spread.of(run.cpu for run in self.runs).median

    @property
    def atoms(self) -> int:
        """Median of the number of atoms found."""
        return int(Spread.of(run.atoms for run in self.runs).median)


def count_seeds(results: Sequence[Result]) -> int:
    """Return the largest number of finished runs of a method with the same number of atoms, at least 1."""
    return max((sum(run.done for run in result.runs) for result in results), default=0) or 1
