"""Temporary files of tables that are larger than a memory limit while their cells are put into the order of rows.

The owner of the folder removes it, in every case: `pack` uses the temporary folder of the atomic write of its store.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, Parameter
from .atomic import write_error

LEAST_LIMIT = 48 << 20  # bytes: a chunk of any format while its cells are converted, and one while it is compressed
# The rest of the limit is for these, for names, and for what the allocator cannot reuse.
_BUFFER_SHARE, _CHUNK_SHARE = 6, 3  # a sixth of the limit is for cells in a buffer, a third for a chunk of rows


@dataclass(frozen=True)
class Scratch:
    """Where cells are stored that do not fit into memory.

    Parameters
    ----------
    folder : Path
        An existing folder for temporary files.
    output : Path
        What is written from the cells, for messages.
    limit : int
        Memory limit in bytes.
    """

    folder: Path
    output: Path
    limit: int

    def reserving(self, n_bytes: int) -> Scratch:
        """Return the same with a lower limit that leaves so many bytes to others, at most half of it."""
        return replace(self, limit=max(self.limit - n_bytes, self.limit // 2))

    @property
    def buffer_bytes(self) -> int:
        """Size of the cells that are collected in memory before they are written together."""
        return self.limit // _BUFFER_SHARE

    def chunk_rows(self, n_cols: int, n_tables: int, step: int = 1) -> int:
        """Return the number of rows that are put together at a time, a multiple of ``step``.

        ``n_tables`` tables of that many packed rows are in memory together, and take at most a third of the limit.
        """
        step_bytes = n_tables * step * 8 * max(1, -(-n_cols // 64))
        needed = _CHUNK_SHARE * step_bytes
        if needed > self.limit:
            raise InputError(
                Parameter("max_memory", self.limit),
                f" is too small for rows of {n_cols} columns; pass at least {needed} bytes ({needed / 2**20:.0f} MiB)",
            )
        return self.limit // needed * step


class ScratchFile:
    """A temporary file of arrays. It is open only while it is used, so that its folder can be removed at any time."""

    def __init__(self, scratch: Scratch) -> None:
        self._output = scratch.output
        with self._catch_errors():
            descriptor, name = tempfile.mkstemp(suffix=".cells", dir=scratch.folder)
            os.close(descriptor)
        self._path = Path(name)

    def append(self, values: NDArray[Any]) -> int:
        """Append the values of an array; return where they begin."""
        with self._catch_errors(), open(self._path, "ab") as file:
            offset = file.tell()
            for part in values if values.ndim > 1 and not values.flags.c_contiguous else (values,):
                file.write(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
        return offset

    @contextmanager
    def reading(self) -> Iterator[IO[bytes]]:
        """Open the file for reading."""
        with self._catch_errors(), open(self._path, "rb") as file:
            yield file

    def remove(self) -> None:
        """Remove the file, to free the disk before the folder is removed."""
        self._path.unlink(missing_ok=True)

    @contextmanager
    def _catch_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise write_error(self._output, error) from error


def read_words(file: IO[bytes], offset: int, count: int) -> NDArray[np.uint64]:
    """Return this many words of a scratch file."""
    file.seek(offset)
    words = np.empty(count, np.uint64)
    if file.readinto(words.view(np.uint8).data) != words.nbytes:  # type: ignore[attr-defined]
        raise OSError("a temporary file was truncated by another process")
    return words
