"""Arrays in .npy and .npz files, looked at before they are read, piece by piece; nothing is ever unpickled.

Our own .npz files say what they are in JSON, as an array of bytes under the name ``bitatoms``.
"""

from __future__ import annotations

import json
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from .._version import __version__
from .errors import FileError
from .stream import Source

KEY = "bitatoms"  # the array that holds the JSON
_MOST_TIMES = 1100  # deflate makes at most 1032 bytes of one
_MOST_TIMES_TEXT = 100  # and of text that says something no more than this; what JSON says takes many times its length
_PIECE = 1 << 20  # bytes read at once


class NpyHeader(NamedTuple):
    """What an .npy file says of its array, and where in the file the values begin."""

    dtype: np.dtype
    shape: tuple[int, ...]
    by_columns: bool
    begins: int

    @property
    def n_bytes(self) -> int:
        """Bytes that the values take."""
        return self.dtype.itemsize * prod(self.shape)


class Values:
    """The values of an array in a file, to be taken one after the other as they lie there."""

    def __init__(self, source: Source, file: IO[bytes], header: NpyHeader, what: str) -> None:
        self.source = source
        self.what = what
        self.dtype, self.shape, self.by_columns, _ = header
        self._file = file

    def take(self, count: int) -> NDArray[Any]:
        """The next so many values, as a flat array."""
        if not self.dtype.itemsize:
            return np.empty(count, self.dtype)
        out = np.empty(count * self.dtype.itemsize, np.uint8)
        done = 0
        while done < out.size:
            with self.source.foreign():  # zipfile and zlib raise anything
                some = self._file.read(min(out.size - done, _PIECE))
            if not some:
                raise self.source.error(f"{self.what} ends {out.size - done} bytes too early: cut short")
            out[done : done + len(some)] = np.frombuffer(some, np.uint8)
            done += len(some)
        return out.view(self.dtype)

    def skip(self, count: int) -> None:
        """Pass over the next so many values."""
        at_a_time = max(1, _PIECE // max(1, self.dtype.itemsize))
        for start in range(0, count, at_a_time):
            self.take(min(at_a_time, count - start))


def read_header(source: Source, file: IO[bytes], what: str = "the array") -> NpyHeader:
    """The header of an .npy file, checked; the file then stands at the first value."""
    try:
        version = npy.read_magic(file)
        reader = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
        if reader is None:
            raise ValueError(f"version {version[0]}.{version[1]} of the .npy format, which only structured arrays have")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that Python 2 wrote it
            shape, by_columns, dtype = reader(file)
    except Exception as error:  # NumPy evaluates what is there as it comes
        said = " ".join(str(error).split())[:200]
        raise source.error(f"{what} is damaged, cut short, or no NumPy array: {said}") from error
    if dtype.hasobject:
        raise source.error(
            f"{what} holds Python objects, which are never unpickled, for that would run what is in them; "
            "save it as an array of numbers or booleans"
        )
    if any(length < 0 for length in shape):
        raise source.error(f"{what} is damaged: it says that its shape is {str(shape)[:100]}")
    return NpyHeader(dtype, tuple(map(int, shape)), bool(by_columns), file.tell())


@contextmanager
def array_file(source: Source) -> Iterator[Values]:
    """The array of an .npy file, of which there is as much as its header says."""
    with open(source.path, "rb") as file:
        header = read_header(source, file)
        _check_length(source, header, source.path.stat().st_size, "the array")
        yield Values(source, file, header, "the array")


def _check_length(source: Source, header: NpyHeader, n_bytes: int, what: str) -> None:
    """Refuse a file that is longer or shorter than its header says."""
    if header.begins + header.n_bytes != n_bytes:
        raise source.error(
            f"{what} is damaged or cut short: it has {n_bytes - header.begins} bytes of values "
            f"where its shape {str(header.shape)[:100]} asks for {header.n_bytes}"
        )


class Archive:
    """The arrays of an .npz file, by name."""

    def __init__(self, source: Source, file: zipfile.ZipFile, n_bytes: int) -> None:
        self.source = source
        self._file = file
        self._n_bytes = n_bytes
        self._members: dict[str, zipfile.ZipInfo] = {}
        for member in file.infolist():
            name = member.filename.removesuffix(".npy")
            if name in self._members:
                raise source.error(f"it holds two arrays of the name {name[:40]!r}: damaged, or made to mislead")
            self._members[name] = member

    def __contains__(self, name: str) -> bool:
        return name in self._members

    @property
    def names(self) -> list[str]:
        """The names of the arrays, in the order of the file."""
        return list(self._members)

    @contextmanager
    def open(self, name: str) -> Iterator[Values]:
        """The values of an array, of which there are as many as its header says."""
        member, what = self._members[name], f"its array {name[:40]!r}"
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # which unpack to bounded lengths
            raise self.source.error(f"{what} is compressed in a way that NumPy does not use; write it with np.savez")
        if member.file_size > _MOST_TIMES * min(member.compress_size, self._n_bytes) + 1000:
            raise self.source.error(f"{what} says that it is larger than it can be: damaged, or made to mislead")
        with self.source.foreign():
            file = self._file.open(member)
        with file:
            header = read_header(self.source, file, what)
            _check_length(self.source, header, member.file_size, what)
            yield Values(self.source, file, header, what)

    def array(self, name: str) -> NDArray[Any]:
        """An array as a whole; for those that are small beside the packed table."""
        with self.open(name) as values:
            flat = values.take(prod(values.shape))
            return flat.reshape(values.shape, order="F" if values.by_columns else "C")

    def text(self, name: str) -> bytes:
        """An array of bytes that are text, which is never as small when compressed as numbers can be."""
        member = self._members[name]
        if member.file_size > _MOST_TIMES_TEXT * member.compress_size + (1 << 24):
            raise self.source.error(f"its array {name!r} is larger than it can be: damaged, or made to mislead")
        return self.array(name).astype(np.uint8, casting="safe").tobytes()


def description(file: Archive, kind: str, version: int, hint: str) -> dict[str, Any]:
    """What one of our files of this kind says of itself; others, and those of a newer bitatoms, are refused."""
    wanted = f"not a {kind.removeprefix('bitatoms ')}"
    if KEY not in file:
        raise file.source.error(f"{wanted}, but data: its arrays are {', '.join(file.names[:5])[:100] or 'none'}{hint}")
    try:
        about = json.loads(file.text(KEY))
        found, number = " ".join(about["format"].split()), int(about["version"])
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        if isinstance(error, FileError):
            raise
        raise file.source.error(f"{wanted}: what it says of itself is damaged") from error
    if found != kind:
        raise file.source.error(f"{wanted}, but a {found.removeprefix('bitatoms ')[:40]}{hint}")
    if number > version:
        by = str(about.get("bitatoms", "a newer one"))[:20]
        raise file.source.error(f"written by bitatoms {by}, which is newer than this, {__version__}; update bitatoms")
    return about


def as_bytes(about: dict[str, Any]) -> NDArray[np.uint8]:
    """JSON as an array of bytes."""
    text = json.dumps(about, ensure_ascii=False, allow_nan=False)
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)  # as json.loads decodes it


@contextmanager
def archive(source: Source) -> Iterator[Archive]:
    """The arrays of an .npz file."""
    with open(source.path, "rb") as raw:
        with source.foreign():
            file = zipfile.ZipFile(raw)
        with file:
            yield Archive(source, file, source.path.stat().st_size)


def write_archive(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write arrays into a compressed .npz file, some megabytes at a time; the same arrays give the same bytes."""
    # Level 4 makes bits nearly as small as level 6, which NumPy uses, in a fifth of the time.
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=4) as file:
        for name, values in arrays.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as out:  # by its name: so the date is always the same
                npy.write_array(out, values, allow_pickle=False)
