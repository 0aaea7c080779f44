"""Rows in memory, gone through a piece at a time; and the passes over pieces that a store shares."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..core.counts import Counts
from ..core.pass_spec import PassSpec, run_pass
from ..parallel import Workers
from .source import PartialPass

PIECE_BYTES = 1 << 22  # of packed rows that are worked on together,
FEWEST_ROWS = 1 << 10  # but so many rows at least: the counts of a piece take room for themselves;
MOST_ROWS = 1 << 15  # and no more than so many: Ctrl-C waits for the piece that is worked on


def chunk_rows(n_features: int) -> int:
    """How many rows to run_pass on together; a multiple of 64."""
    fitting = PIECE_BYTES // max(1, -(-n_features // 64) * 8) // 64 * 64
    return min(MOST_ROWS, max(FEWEST_ROWS, fitting))


def run_pass_on_chunks(
    pieces: Iterable[tuple[BitMatrix, BitMatrix | None]], order: PassSpec, workers: Workers
) -> Iterator[tuple[BitMatrix, Counts]]:
    """Do what is ordered with each piece, rows and the codes they had; each thread takes one at a time."""
    alone = Workers(1)
    return workers.map_stream(lambda piece: run_pass(*piece, order, alone), pieces)


class MemoryRows:
    """All rows of a table that is in memory. Their codes are a list of pieces."""

    def __init__(self, data: BitMatrix, workers: Workers) -> None:
        self.n_rows, self.n_features = data.shape
        self.whole: BitMatrix | None = data
        self._data, self._workers = data, workers
        self._size = workers.chunk_rows or chunk_rows(data.n_cols)

    def take(self, rows: NDArray[np.int64]) -> BitMatrix:
        """These rows."""
        return self._data[rows]

    def run_pass(
        self, order: PassSpec, codes: Any, number: int, partial: PartialPass | None, keep: Callable[[PartialPass], None]
    ) -> tuple[list[BitMatrix], Counts]:
        """A pass over all rows."""
        starts = range(0, self.n_rows, self._size)
        before = codes if codes is not None else [None] * len(starts)
        pieces = ((self._data[i : i + self._size], some) for i, some in zip(starts, before, strict=True))
        after: list[BitMatrix] = []
        total = Counts.none(order.atoms.n_rows, self.n_features)
        for some, counts in run_pass_on_chunks(pieces, order, self._workers):
            after.append(some)
            total = total.add(counts)
        return after, total

    def fingerprint(self) -> str:
        """Some letters that tell these rows from others."""
        return fingerprint_of(self._data.words)

    def codes_of(self, number: int) -> None:
        """They are not kept from one call to the next."""
        return None

    def forget(self, keep: set[int]) -> None:
        """They go when nobody holds them."""


def fingerprint_of(*arrays: NDArray[Any]) -> str:
    """Some letters that tell arrays from others."""
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def joined(pieces: list[BitMatrix], n_cols: int) -> BitMatrix:
    """Pieces as one matrix of so many columns."""
    words = np.concatenate([np.empty((0, -(-n_cols // 64)), np.uint64), *(piece.words for piece in pieces)])
    return BitMatrix.from_words(words, n_cols, check=False)
