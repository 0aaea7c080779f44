"""The codes of all rows from pass to pass: in memory where they take little of it, else in files.

The files are written and read in the order of the rows; they are not mapped, for pages of a map count as memory.
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
from ..io.errors import FileError

_HEADER = struct.Struct("<8sQQQQQ")  # what it is, version, rows, atoms, rows that are synced and their checksum
_MAGIC, _VERSION = b"bitcodes", 2
_AT_A_TIME = 1 << 22  # bytes that are read together
_NAME = re.compile(r"codes-(\d{1,9})\.bin")


class Codes(Protocol):
    """The codes of all rows that a pass left."""

    def put(self, start: int, codes: BitMatrix) -> None:
        """Keep the codes of the rows from ``start`` on."""
        ...

    def take(self, start: int, count: int) -> BitMatrix:
        """The codes of so many rows from ``start`` on."""
        ...

    def sync(self) -> None:
        """Have on the disk what was put, where it goes there."""
        ...

    def rest(self) -> None:
        """Hold no file open until the next use."""
        ...


class CodesInMemory:
    """Codes that are packed in memory."""

    def __init__(self, n_rows: int, n_atoms: int) -> None:
        self._words, self._n_atoms = np.empty((n_rows, -(-n_atoms // 64)), np.uint64), n_atoms

    def put(self, start: int, codes: BitMatrix) -> None:
        """Keep the codes of the rows from ``start`` on."""
        self._words[start : start + len(codes)] = codes.words

    def take(self, start: int, count: int) -> BitMatrix:
        """The codes of so many rows from ``start`` on."""
        return BitMatrix.from_words(self._words[start : start + count], self._n_atoms, check=False)

    def sync(self) -> None:
        """They go nowhere."""

    def rest(self) -> None:
        """There is no file."""


class CodesInFile:
    """Codes in a file: a header, then the words of row after row."""

    def __init__(self, path: Path, n_rows: int, n_atoms: int) -> None:
        self._path, self._n_rows, self._n_atoms = path, n_rows, n_atoms
        self._row = 8 * -(-n_atoms // 64)
        self._file: int | None = None
        self._sum = self._end = 0  # checksum of the rows that were put, and where they end

    @classmethod
    def found(cls, path: Path, n_rows: int) -> CodesInFile | None:
        """Those of an earlier process, for so many rows; None where they are not there, not whole, or damaged."""
        try:
            with open(path, "rb") as file:
                header = file.read(_HEADER.size)
                if len(header) < _HEADER.size:
                    return None
                magic, version, rows, n_atoms, *_ = _HEADER.unpack(header)
                codes = cls(path, n_rows, n_atoms)
                fits = (magic, version, rows) == (_MAGIC, _VERSION, n_rows)
                return codes if fits and codes._is_sound(file, n_rows) else None
        except OSError:
            return None

    def begin(self, start: int) -> int:
        """Have the rows before ``start`` as an earlier process left them, and no others; from which row to go on.

        That is ``start``, or 0 where they are not there, or not as they were written.
        """
        with self._telling():
            if start and self._path.is_file():
                with open(self._path, "r+b") as file:
                    if self._is_sound(file, start):
                        file.truncate(self._place(start))
                        file.seek(0)
                        file.write(self._header(start))
                        return start
            self._sum = 0
            with open(self._path, "wb") as file:
                file.write(self._header(0))
        return 0

    def _header(self, synced: int) -> bytes:
        return _HEADER.pack(_MAGIC, _VERSION, self._n_rows, self._n_atoms, synced, self._sum)

    def _is_sound(self, file: IO[bytes], start: int) -> bool:
        """Whether the rows before ``start`` are there as they were written; then the checksum is theirs."""
        file.seek(0)
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return False
        *what, synced, expected = _HEADER.unpack(header)
        if what != [_MAGIC, _VERSION, self._n_rows, self._n_atoms] or not start <= synced <= self._n_rows:
            return False
        found = here = 0
        for stop in (start, synced):
            left = self._place(stop) - file.tell()
            while left:
                some = file.read(min(left, _AT_A_TIME))
                if not some:
                    return False
                found, left = zlib.crc32(some, found), left - len(some)
            here = found if stop == start else here
        self._sum, self._end = here, start
        return found == expected

    def put(self, start: int, codes: BitMatrix) -> None:
        """Keep the codes of the rows from ``start`` on."""
        with self._telling():
            file = self._opened()
            os.lseek(file, self._place(start), os.SEEK_SET)
            left = _bytes(codes.words.astype("<u8", copy=False))
            self._sum, self._end = zlib.crc32(left, self._sum), start + len(codes)
            while left:
                left = left[os.write(file, left) :]

    def take(self, start: int, count: int) -> BitMatrix:
        """The codes of so many rows from ``start`` on."""
        words = np.empty((count, self._row // 8), "<u8")
        if words.size:
            with self._telling("read"):
                file = self._opened()
                os.lseek(file, self._place(start), os.SEEK_SET)
                left = _bytes(words)
                while left:
                    some = os.read(file, len(left))
                    if not some:
                        raise FileError(f"{self._path}: it is cut short: rows {start} and on are not there; begin anew")
                    left[: len(some)] = some
                    left = left[len(some) :]
        return BitMatrix.from_words(words.astype(np.uint64, copy=False), self._n_atoms, check=False)

    def sync(self) -> None:
        """Have on the disk what was put."""
        with self._telling():
            file = self._opened()
            os.lseek(file, 0, os.SEEK_SET)
            os.write(file, self._header(self._end))
            os.fsync(file)

    def rest(self) -> None:
        """Hold no file open until the next use."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __del__(self) -> None:
        self.rest()

    def _place(self, row: int) -> int:
        """Where the codes of a row begin."""
        return _HEADER.size + row * self._row

    def _opened(self) -> int:
        if self._file is None:
            self._file = os.open(self._path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        return self._file

    def _telling(self, what: str = "written") -> AbstractContextManager[None]:
        return _said(self._path.parent, self._place(self._n_rows), what)


def _bytes(words: NDArray[Any]) -> memoryview:
    """The bytes of words as they lie."""
    return memoryview(words.reshape(-1).view(np.uint8))  # type: ignore[arg-type]  # an array is a buffer


@contextmanager
def _said(folder: Path, needed: int, what: str) -> Iterator[None]:
    """Whatever the system refuses in here is said in one line, with what to do."""
    try:
        yield
    except OSError as error:
        raise FileError(
            f"{folder}: the codes of all rows cannot be {what} there: {error.strerror or error}; "
            f"those of two passes take {2 * needed / 2**20:.1f} MiB: make room, or name a folder on another disk "
            "(checkpoint=, or without one the environment variable TMPDIR)"
        ) from error


class Scratch:
    """Where the codes of the passes are: in memory, or in a folder of files named by pass.

    Parameters
    ----------
    folder : Path or None
        A folder of the user's, in which files outlive the process. Without one there is a temporary one, made when
        first needed, which goes with this object.
    n_rows : int
        Rows that there are codes of.
    """

    def __init__(self, folder: Path | None, n_rows: int) -> None:
        self._n_rows = n_rows
        self.lasts = folder is not None
        self._folder = folder
        self._live: weakref.WeakValueDictionary[int, CodesInFile] = weakref.WeakValueDictionary()
        self._end: weakref.finalize | None = None

    def begin(self, number: int, n_atoms: int, start: int, in_memory: bool) -> tuple[Codes, int]:
        """Codes for a pass to fill, and the row to go on from: ``start`` where the rows before are there, else 0."""
        if in_memory and not self.lasts:
            return CodesInMemory(self._n_rows, n_atoms), 0
        self.forget({number - 1, number, *self._live})
        codes = CodesInFile(self._path(number), self._n_rows, n_atoms)
        start = codes.begin(start)
        self._live[number] = codes
        return codes, start

    def found(self, number: int) -> Codes | None:
        """The codes that a pass of an earlier process left, where they are whole."""
        if not self.lasts:
            return None
        codes = CodesInFile.found(self._path(number), self._n_rows)
        if codes is not None:
            self._live[number] = codes
        return codes

    def forget(self, keep: set[int]) -> None:
        """Remove the codes of all passes but these."""
        if self._folder is None:
            return
        for name in os.listdir(self._folder):
            match = _NAME.fullmatch(name)
            if match and int(match[1]) not in keep:
                (self._folder / name).unlink(missing_ok=True)

    def close(self) -> None:
        """Remove the temporary folder, if there is one."""
        if self._end is not None:
            for codes in list(self._live.values()):
                codes.rest()
            self._end()
            self._end = self._folder = None

    def _path(self, number: int) -> Path:
        if self._folder is None:
            with _said(Path(tempfile.gettempdir()), 0, "written"):
                self._folder = Path(tempfile.mkdtemp(prefix="bitatoms-"))
            self._end = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder / f"codes-{number}.bin"
