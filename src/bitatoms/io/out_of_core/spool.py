"""Entries that are read before the size of the table is known: in memory, or in a temporary file if they are many."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from tempfile import SpooledTemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..limits import CHUNK_ENTRIES, SPOOL_BYTES
from ..stream import Source


class Spool:
    """Records of numbers, which are appended first and then read, any number of times.

    Parameters
    ----------
    source : Source
        The file that is read; the temporary file is in its scratch folder, if it has one.
    **fields : dtype
        The fields of a record.
    """

    def __init__(self, source: Source, **fields: Any) -> None:
        self._dtype = np.dtype(list(fields.items()))
        folder = None if source.scratch is None else str(source.scratch.folder)
        self._file = SpooledTemporaryFile(SPOOL_BYTES, dir=folder)  # noqa: SIM115
        weakref.finalize(self, self._file.close)

    def append(self, *fields: Sequence[Any] | NDArray[Any]) -> None:
        """Append records, given by field."""
        records = np.empty(len(fields[0]), self._dtype)
        for name, values in zip(self._dtype.names or (), fields, strict=True):
            records[name] = values
        self._file.write(records.tobytes())

    def __iter__(self) -> Iterator[NDArray[Any]]:
        self._file.seek(0)
        while data := self._file.read(CHUNK_ENTRIES * self._dtype.itemsize):
            yield np.frombuffer(data, self._dtype)
