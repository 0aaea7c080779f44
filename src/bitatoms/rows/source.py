"""RowSource: the interface through which learning sees the rows of a table, in memory, in a store or on a cluster.

A search needs only two operations: take rows by index, and run a pass over all rows that returns counts. Counts add up
over chunks, so an algorithm is written once and gives the same bits for every source.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..core.counts import Counts
from ..core.pass_spec import PassSpec


class PartialPass(NamedTuple):
    """A pass that is not done: the rows before this one are counted, and their codes kept."""

    next_row: int
    counts: Counts


class RowSource(Protocol):
    """The rows of a table, wherever they are.

    ``codes`` is what a pass left to the next: the codes of all rows, in whatever form, or None.
    """

    n_rows: int
    n_features: int
    whole: BitMatrix | None  # all rows, where they are in memory anyway

    def take(self, rows: NDArray[np.int64]) -> BitMatrix:
        """These rows, given by their numbers in rising order."""
        ...

    def run_pass(
        self, order: PassSpec, codes: Any, number: int, partial: PartialPass | None, keep: Callable[[PartialPass], None]
    ) -> tuple[Any, Counts]:
        """Pass ``number`` over all rows, on from a part of it that was done before; its codes and counts.

        ``keep`` may be called every now and then with the part that is done.
        """
        ...

    def fingerprint(self) -> str:
        """Some letters that tell these rows from others."""
        ...

    def codes_of(self, number: int) -> Any | None:
        """The codes that a pass of an earlier call left, where they were kept."""
        ...

    def forget(self, keep: set[int]) -> None:
        """The codes of all passes but these are no longer wanted."""
        ...
