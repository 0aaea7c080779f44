"""Codes of all rows between two passes, in a file: written and read in the order of the rows.

The file is not memory-mapped, because mapped pages count as memory of the process.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from ..bits import BitMatrix
from ..errors import Parameter
from ..io.errors import FileError

_HEADER = struct.Struct("<8sQQQQQ")  # magic, version, rows, atoms, rows on disk and their checksum
_MAGIC, _VERSION = b"bitcodes", 2
_READ_BYTES = 1 << 22


class CodeFile:
    """The codes of all rows in a file: a header, then the words of each row. It is open only while it is used."""

    def __init__(self, path: Path, n_rows: int, n_atoms: int) -> None:
        self._path, self._n_rows, self._n_atoms = path, n_rows, n_atoms
        self._row_bytes = 8 * -(-n_atoms // 64)
        self._checksum = self._end = 0  # of the rows written so far

    def begin(self, start: int) -> int:
        """Keep the rows before ``start`` of an earlier process and return ``start``, or 0 if they are not intact."""
        with self._raising_file_errors("written"):
            if start and self.has_rows(start):
                os.truncate(self._path, self._offset(start))
            else:
                start = self._checksum = self._end = 0
                self._path.write_bytes(b"")
            self._write(0, self._header())
        return start

    def has_rows(self, stop: int) -> bool:
        """Return whether the rows before ``stop`` are intact, and if so take over their checksum."""
        try:
            with open(self._path, "rb") as file:
                *kind, n_synced, expected = _HEADER.unpack(file.read(_HEADER.size))
                if kind != [_MAGIC, _VERSION, self._n_rows, self._n_atoms] or not stop <= n_synced <= self._n_rows:
                    return False
                self._checksum, self._end = _checksum(file, self._offset(stop), 0), stop
                return _checksum(file, self._offset(n_synced), self._checksum) == expected
        except (OSError, EOFError, struct.error):  # missing or truncated
            return False

    def write(self, start: int, codes: BitMatrix) -> None:
        """Write the codes of the rows from ``start`` on."""
        words = codes.words.astype("<u8", copy=False).reshape(-1).view(np.uint8)
        content = memoryview(words)  # type: ignore[arg-type]  # an array is a buffer
        self._checksum, self._end = zlib.crc32(content, self._checksum), start + len(codes)
        self._write(self._offset(start), content)

    def __getitem__(self, rows: slice) -> BitMatrix:
        """Return the codes of the rows of a slice."""
        start, stop, _ = rows.indices(self._n_rows)
        shape = stop - start, self._row_bytes // 8
        with self._raising_file_errors("read"):
            words = np.fromfile(self._path, "<u8", shape[0] * shape[1], offset=self._offset(start))
        if words.size < shape[0] * shape[1]:
            raise FileError(f"{self._path}: truncated: row {start} and later ones are missing; fit again")
        return BitMatrix.from_words(words.astype(np.uint64, copy=False).reshape(shape), self._n_atoms, check=False)

    def sync(self) -> None:
        """Make sure that what was written is on disk."""
        self._write(0, self._header(), sync=True)

    def _header(self) -> bytes:
        """Return the header, with the number of rows in the file and their checksum."""
        return _HEADER.pack(_MAGIC, _VERSION, self._n_rows, self._n_atoms, self._end, self._checksum)

    def _offset(self, row: int) -> int:
        """Return the offset in the file of the codes of a row."""
        return _HEADER.size + row * self._row_bytes

    def _raising_file_errors(self, action: str) -> AbstractContextManager[None]:
        return raising_file_errors(self._path.parent, self._offset(self._n_rows), action)

    def _write(self, offset: int, content: bytes | memoryview, sync: bool = False) -> None:
        """Write bytes at an offset."""
        with (
            self._raising_file_errors("written"),
            open(self._path, "r+b", buffering=0) as file,
        ):
            file.seek(offset)
            while content:
                content = content[os.write(file.fileno(), content) :]
            if sync:
                os.fsync(file.fileno())


def _checksum(file: IO[bytes], stop: int, checksum: int) -> int:
    """Return the checksum of a file up to an offset, given that of the part before; raise EOFError if it is shorter."""
    while left := stop - file.tell():
        data = file.read(min(left, _READ_BYTES))
        if not data:
            raise EOFError
        checksum = zlib.crc32(data, checksum)
    return checksum


@contextmanager
def raising_file_errors(folder: Path, n_bytes: int, action: str) -> Iterator[None]:
    """Raise errors of the operating system as FileErrors that state how much space is needed."""
    try:
        yield
    except OSError as error:
        raise FileError(
            f"{folder}: the codes of all rows cannot be {action}: {error.strerror or error}; free some space (the "
            f"codes of two passes take {2 * n_bytes / 2**20:.1f} MiB), or choose a folder on another disk with ",
            Parameter("checkpoint"),
            " or the environment variable TMPDIR",
        ) from error
