"""Entries of a table of any size, sorted by chunks of rows: collected in memory, and written to a scratch file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..limits import CHUNK_ENTRIES
from ..scratch import Scratch, ScratchFile, read_words

FLIPPED, UNKNOWN = 1, 2  # states of an entry: the bit is not that of a cell without an entry; it is unknown
_STATE_BITS = np.uint64(2)

Entries = tuple[NDArray[np.int64], NDArray[np.uint8]]  # indices of cells, and states


class _Segment(NamedTuple):
    """Entries that were sorted together: where they begin in the file, and the first entry of each chunk."""

    offset: int
    firsts: NDArray[np.int64]


class SortedEntries:
    """Collect entries, and return those of each chunk of rows.

    Parameters
    ----------
    scratch : Scratch
        Where entries are stored that do not fit into the memory limit.
    starts : ndarray of uint64
        For each chunk of rows, the index of its first cell.
    """

    def __init__(self, scratch: Scratch, starts: NDArray[np.uint64]) -> None:
        self._scratch = scratch
        self._starts = starts
        self._buffer = np.empty(max(1, scratch.buffer_bytes // 8), np.uint64)  # index and state in one word
        self._n_filled = 0
        self._segments: list[_Segment] = []
        self._file: ScratchFile | None = None

    def add(self, indices: NDArray[np.int64], states: NDArray[np.uint8]) -> None:
        """Add entries."""
        done = 0
        while done < len(indices):
            if self._n_filled == len(self._buffer):
                self._write()
            count = min(len(indices) - done, len(self._buffer) - self._n_filled)
            words = self._buffer[self._n_filled : self._n_filled + count]
            words[:] = indices[done : done + count]
            words <<= _STATE_BITS
            words |= states[done : done + count]
            self._n_filled += count
            done += count

    def groups(self, most: int) -> Iterator[tuple[range, int]]:
        """Yield adjacent chunks with at most this many entries in all, or one chunk, and the number of entries.

        All entries must have been added.
        """
        if self._n_filled or not self._segments:
            self._write()
            self._buffer = np.empty(0, np.uint64)
        before = np.sum([segment.firsts for segment in self._segments], axis=0)  # entries before each chunk
        first = 0
        while first < len(self._starts):
            stop = max(first + 1, int(np.searchsorted(before, before[first] + most, "right")) - 1)
            yield range(first, stop), int(before[stop] - before[first])
            first = stop

    def read(self, chunks: range) -> Iterator[Entries]:
        """Yield the entries of adjacent chunks of rows; indices count from the first cell of the first chunk."""
        for segment in self._segments:
            first, end = segment.firsts[[chunks.start, chunks.stop]].tolist()
            for start in range(first, end, CHUNK_ENTRIES):
                words = self._read(segment.offset + 8 * start, min(CHUNK_ENTRIES, end - start))
                states = (words & np.uint64(FLIPPED | UNKNOWN)).astype(np.uint8)
                words >>= _STATE_BITS
                words -= self._starts[chunks.start]
                yield words.view(np.int64), states

    def remove(self) -> None:
        """Remove the file."""
        if self._file is not None:
            self._file.remove()

    def _read(self, offset: int, count: int) -> NDArray[np.uint64]:
        """Return words of the file."""
        assert self._file is not None
        with self._file.reading() as file:
            return read_words(file, offset, count)

    def _write(self) -> None:
        """Sort the entries in the buffer and write them to the file."""
        if self._file is None:
            self._file = ScratchFile(self._scratch)
        entries = self._buffer[: self._n_filled]
        entries.sort()
        firsts = np.append(np.searchsorted(entries, self._starts << _STATE_BITS), len(entries))
        self._segments.append(_Segment(self._file.append(entries), firsts))
        self._n_filled = 0
