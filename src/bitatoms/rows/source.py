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
from ..engine.counts import Counts
from ..engine.pass_spec import PassSpec
from ..sparse_bits import Bits, SparseBits


class PartialPass(NamedTuple):
    """An unfinished pass: the rows before ``next_row`` are counted, and their codes are kept."""

    next_row: int
    counts: Counts


SavePartial = Callable[[PartialPass], None]


class RowSource(Protocol):
    """The rows of a table, wherever they are.

    The codes that a pass returns have a type of the source's choice; they are only passed to its next pass.
    """

    n_rows: int
    n_features: int
    in_memory: Bits | None  # all rows, if they are in memory

    def ones(self) -> SparseBits | None:
        """Return all rows by their ones, or None if these are many, some cells are unknown, or the table is narrow.

        Raises MemoryLimitError if a search of them does not fit into the memory limit.
        """
        ...

    def max_search_rows(self, least: int, by_windows: bool) -> int | None:
        """Return how many rows can be searched within the memory limit, or None if the user has set no limit.

        Raises MemoryLimitError if these are fewer than ``least``. A search ``by_windows`` of columns takes less memory.
        """
        ...

    def take(self, rows: NDArray[np.int64]) -> BitMatrix:
        """Return the rows with these indices, which are in increasing order."""
        ...

    def run_pass(
        self,
        spec: PassSpec,
        codes: Any = None,
        number: int = 1,
        partial: PartialPass | None = None,
        save: SavePartial | None = None,
        deadline: float = float("inf"),
    ) -> tuple[Any, Counts]:
        """Run a pass over all rows and return its codes and counts.

        Parameters
        ----------
        spec : PassSpec
        codes : object, optional
            The codes that the previous pass returned.
        number : int, default=1
            The number of the pass, which identifies its codes in a later process.
        partial : PartialPass, optional
            The part of this pass that an earlier process completed.
        save : callable, optional
            Called from time to time with the part that is complete, if the source can resume a pass.
        deadline : float, optional
            A time of `time.perf_counter`, after which OutOfTime is raised.
        """
        ...

    def fingerprint(self) -> str:
        """Return a hash that identifies the rows."""
        ...

    def load_codes(self, number: int, n_atoms: int) -> Any | None:
        """Return the codes of a pass of an earlier process, or None if they were not kept."""
        ...

    def discard_codes(self, keep: set[int]) -> None:
        """Discard the codes of all passes but these."""
        ...
