"""The codes of all rows between passes: in memory where they are small, otherwise in files.

The files are written and read in the order of the rows. They are not memory-mapped, because mapped pages count as
memory of the process.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import tempfile
import weakref
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..errors import Parameter
from ..io.errors import FileError

_HEADER = struct.Struct("<8sQQQQQ")  # magic, version, rows, atoms, rows on disk and their checksum
_MAGIC, _VERSION = b"bitcodes", 2
_READ_BYTES = 1 << 22
_NAME = re.compile(r"codes-(\d{1,9})\.bin")


class Codes(Protocol):
    """The codes of all rows that a pass computed."""

    def write(self, start: int, codes: BitMatrix) -> None:
        """Write the codes of the rows from ``start`` on."""
        ...

    def read(self, start: int, n_rows: int) -> BitMatrix:
        """Return the codes of ``n_rows`` rows from ``start`` on."""
        ...

    def sync(self) -> None:
        """Make sure that codes stored in a file are on disk."""
        ...

    def close(self) -> None:
        """Close the file, if there is one; the next use opens it again."""
        ...


class MemoryCodes:
    """Codes in memory."""

    def __init__(self, n_rows: int, n_atoms: int) -> None:
        self._words, self._n_atoms = np.empty((n_rows, -(-n_atoms // 64)), np.uint64), n_atoms

    def write(self, start: int, codes: BitMatrix) -> None:
        """Write the codes of the rows from ``start`` on."""
        self._words[start : start + len(codes)] = codes.words

    def read(self, start: int, n_rows: int) -> BitMatrix:
        """Return the codes of ``n_rows`` rows from ``start`` on."""
        return BitMatrix.from_words(self._words[start : start + n_rows], self._n_atoms, check=False)

    def sync(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class FileCodes:
    """Codes in a file: a header, then the words of each row."""

    def __init__(self, path: Path, n_rows: int, n_atoms: int) -> None:
        self._path, self._n_rows, self._n_atoms = path, n_rows, n_atoms
        self._row_bytes = 8 * -(-n_atoms // 64)
        self._file: int | None = None
        self._checksum = self._end = 0  # of the rows written so far

    @classmethod
    def open_complete(cls, path: Path, n_rows: int, n_atoms: int) -> FileCodes | None:
        """Return the codes that an earlier process wrote for all rows, or None if they are missing or corrupt."""
        try:
            with open(path, "rb") as file:
                codes = cls(path, n_rows, n_atoms)
                return codes if codes._has_rows(file, n_rows) else None
        except OSError:
            return None

    def prepare(self, start: int) -> int:
        """Keep the rows before ``start`` of an earlier process and return ``start``, or 0 if they are not intact."""
        with self._raising_file_errors():
            if start and self._path.is_file():
                with open(self._path, "r+b") as file:
                    if self._has_rows(file, start):
                        file.truncate(self._offset(start))
                        file.seek(0)
                        file.write(self._header(start))
                        return start
            self._checksum = 0
            with open(self._path, "wb") as file:
                file.write(self._header(0))
        return 0

    def _header(self, n_synced: int) -> bytes:
        return _HEADER.pack(_MAGIC, _VERSION, self._n_rows, self._n_atoms, n_synced, self._checksum)

    def _has_rows(self, file: IO[bytes], stop: int) -> bool:
        """Return whether the rows before ``stop`` are intact, and if so take over their checksum."""
        file.seek(0)
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return False
        *kind, n_synced, expected = _HEADER.unpack(header)
        if kind != [_MAGIC, _VERSION, self._n_rows, self._n_atoms] or not stop <= n_synced <= self._n_rows:
            return False
        checksum = checksum_at_stop = 0
        for end in (stop, n_synced):
            left = self._offset(end) - file.tell()
            while left:
                data = file.read(min(left, _READ_BYTES))
                if not data:
                    return False
                checksum, left = zlib.crc32(data, checksum), left - len(data)
            checksum_at_stop = checksum if end == stop else checksum_at_stop
        self._checksum, self._end = checksum_at_stop, stop
        return checksum == expected

    def write(self, start: int, codes: BitMatrix) -> None:
        """Write the codes of the rows from ``start`` on."""
        with self._raising_file_errors():
            file = self._open()
            os.lseek(file, self._offset(start), os.SEEK_SET)
            left = _buffer(codes.words.astype("<u8", copy=False))
            self._checksum, self._end = zlib.crc32(left, self._checksum), start + len(codes)
            while left:
                left = left[os.write(file, left) :]

    def read(self, start: int, n_rows: int) -> BitMatrix:
        """Return the codes of ``n_rows`` rows from ``start`` on."""
        words = np.empty((n_rows, self._row_bytes // 8), "<u8")
        if words.size:
            with self._raising_file_errors("read"):
                file = self._open()
                os.lseek(file, self._offset(start), os.SEEK_SET)
                left = _buffer(words)
                while left:
                    data = os.read(file, len(left))
                    if not data:
                        raise FileError(f"{self._path}: truncated: row {start} and later ones are missing; fit again")
                    left[: len(data)] = data
                    left = left[len(data) :]
        return BitMatrix.from_words(words.astype(np.uint64, copy=False), self._n_atoms, check=False)

    def sync(self) -> None:
        """Make sure that what was written is on disk."""
        with self._raising_file_errors():
            file = self._open()
            os.lseek(file, 0, os.SEEK_SET)
            os.write(file, self._header(self._end))
            os.fsync(file)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __del__(self) -> None:
        self.close()

    def _offset(self, row: int) -> int:
        """Return the offset in the file of the codes of a row."""
        return _HEADER.size + row * self._row_bytes

    def _open(self) -> int:
        if self._file is None:
            self._file = os.open(self._path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        return self._file

    def _raising_file_errors(self, action: str = "written") -> AbstractContextManager[None]:
        return _raising_file_errors(self._path.parent, self._offset(self._n_rows), action)


def _buffer(words: NDArray[Any]) -> memoryview:
    """Return the bytes of words, without a copy."""
    return memoryview(words.reshape(-1).view(np.uint8))  # type: ignore[arg-type]  # an array is a buffer


@contextmanager
def _raising_file_errors(folder: Path, n_bytes: int, action: str) -> Iterator[None]:
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


class CodeCache:
    """The codes of the passes: in memory, or in a folder with one file per pass.

    Parameters
    ----------
    folder : Path or None
        A folder in which the files outlive the process. Without one, a temporary folder is made when it is first
        needed, and removed with this object.
    n_rows : int
        Number of rows of the table.
    """

    def __init__(self, folder: Path | None, n_rows: int) -> None:
        self._n_rows = n_rows
        self.is_persistent = folder is not None
        self._folder = folder
        self._live: weakref.WeakValueDictionary[int, FileCodes] = weakref.WeakValueDictionary()
        self._remove_folder: weakref.finalize | None = None

    def create(self, number: int, n_atoms: int, start: int, in_memory: bool) -> tuple[Codes, int]:
        """Return codes for a pass to write, and the row to continue at: ``start`` if earlier rows are intact, or 0."""
        if in_memory and not self.is_persistent:
            return MemoryCodes(self._n_rows, n_atoms), 0
        self.discard({number - 1, number, *self._live})
        codes = FileCodes(self._path(number), self._n_rows, n_atoms)
        start = codes.prepare(start)
        self._live[number] = codes
        return codes, start

    def load(self, number: int, n_atoms: int) -> Codes | None:
        """Return the codes that a pass of an earlier process wrote, or None if they are missing or corrupt."""
        if not self.is_persistent:
            return None
        codes = FileCodes.open_complete(self._path(number), self._n_rows, n_atoms)
        if codes is not None:
            self._live[number] = codes
        return codes

    def discard(self, keep: set[int]) -> None:
        """Remove the files of all passes but these."""
        if self._folder is None:
            return
        for name in os.listdir(self._folder):
            match = _NAME.fullmatch(name)
            if match and int(match[1]) not in keep:
                (self._folder / name).unlink(missing_ok=True)

    def close(self) -> None:
        """Remove the temporary folder, if there is one."""
        if self._remove_folder is not None:
            for codes in list(self._live.values()):
                codes.close()
            self._remove_folder()
            self._remove_folder = self._folder = None

    def _path(self, number: int) -> Path:
        if self._folder is None:
            with _raising_file_errors(Path(tempfile.gettempdir()), 0, "written"):
                self._folder = Path(tempfile.mkdtemp(prefix="bitatoms-"))
            self._remove_folder = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder / f"codes-{number}.bin"
