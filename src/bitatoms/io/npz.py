"""Read .npy and .npz files without trusting them: headers are checked first, values read in chunks, never unpickled.

The .npz files that bitatoms writes describe themselves in JSON, stored as an array of bytes named ``bitatoms``.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import prod
from operator import index
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from .._version import __version__
from ..bits import BitMatrix
from ..columns.table import Names
from ..formatting import quoted
from ..sparse_bits import SparseBits, index_type
from .errors import FileError
from .limits import CHUNK_BYTES, MAX_DEFLATE_EXPANSION
from .out_of_core.chunked import stack_chunks
from .stream import Source

METADATA_KEY = "bitatoms"  # the array that holds the JSON
TABLE_FORMAT = "bitatoms table"  # the format in the metadata of a table
REVERSED_BITS = np.packbits(np.unpackbits(np.arange(256, dtype=np.uint8)), bitorder="little")  # of each byte
_PARSED_COPIES = 30  # bytes of parsed JSON per byte of text, at most


class NpyHeader(NamedTuple):
    """The header of an .npy file, and where in the file the values begin."""

    dtype: np.dtype
    shape: tuple[int, ...]
    fortran_order: bool
    data_offset: int

    @property
    def n_bytes(self) -> int:
        """Number of bytes of the values."""
        return self.dtype.itemsize * prod(self.shape)


class NpyReader:
    """Read the values of an array one after the other, in the order of the file."""

    def __init__(self, source: Source, file: IO[bytes], header: NpyHeader, what: str) -> None:
        self.source = source
        self.what = what
        self.dtype, self.shape, self.fortran_order, _ = header
        self._file = file

    def read(self, count: int) -> NDArray[Any]:
        """Return the next ``count`` values as a flat array."""
        if not self.dtype.itemsize:
            return np.empty(count, self.dtype)
        out = np.empty(count * self.dtype.itemsize, np.uint8)
        done = 0
        while done < out.size:
            with self.source.catch_library_errors():  # zipfile and zlib raise anything
                chunk = self._file.read(min(out.size - done, CHUNK_BYTES))
            if not chunk:
                raise self.source.error(f"{self.what} is truncated: it ends {out.size - done} bytes too early")
            out[done : done + len(chunk)] = np.frombuffer(chunk, np.uint8)
            done += len(chunk)
        return out.view(self.dtype)

    def packed_rows(self, n_cols: int, bit_order: str = "little") -> Iterator[BitMatrix]:
        """Yield the rows of a table of bytes that `packed_bytes` returned; ``bit_order`` is as in np.packbits."""
        width = -(-n_cols // 8)
        step = max(1, CHUNK_BYTES // max(1, width))
        for start in range(0, self.shape[0], step):
            count = min(step, self.shape[0] - start)
            values = self.read(count * width)
            yield BitMatrix.from_bytes((values if bit_order == "little" else REVERSED_BITS[values]).data, count, n_cols)

    def skip(self, count: int) -> None:
        """Skip the next ``count`` values."""
        chunk = max(1, CHUNK_BYTES // max(1, self.dtype.itemsize))
        for start in range(0, count, chunk):
            self.read(min(chunk, count - start))


def read_header(source: Source, file: IO[bytes], what: str = "the array") -> NpyHeader:
    """Read and check the header of an .npy file; the file is then at the first value."""
    try:
        version = npy.read_magic(file)
        reader = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
        if reader is None:
            raise ValueError(f"version {version[0]}.{version[1]} of the .npy format, which only structured arrays use")
        shape, fortran_order, dtype = reader(file)
    except Exception as error:  # NumPy evaluates the header, which may raise anything
        reason = " ".join(str(error).split())[:200]
        raise source.error(f"{what} is corrupt, truncated, or not a NumPy array: {reason}") from error
    if dtype.hasobject:
        raise source.error(
            f"{what} contains Python objects, which are never unpickled because that would execute code in the file; "
            "save it as an array of numbers or booleans"
        )
    if any(length < 0 for length in shape):
        raise source.error(f"{what} is corrupt: it claims the shape {str(shape)[:100]}")
    return NpyHeader(dtype, tuple(map(int, shape)), bool(fortran_order), file.tell())


def _open_array(source: Source, file: IO[bytes], n_bytes: int, what: str) -> NpyReader:
    """Return a reader of an array after checking that the file is as long as its header claims."""
    header = read_header(source, file, what)
    if header.data_offset + header.n_bytes != n_bytes:
        raise source.error(
            f"{what} is corrupt or truncated: it has {n_bytes - header.data_offset} bytes of values, "
            f"but its shape {str(header.shape)[:100]} requires {header.n_bytes}"
        )
    return NpyReader(source, file, header, what)


@contextmanager
def open_npy(source: Source) -> Iterator[NpyReader]:
    """Open the array of an .npy file."""
    with open(source.path, "rb") as file:
        yield _open_array(source, file, source.path.stat().st_size, "the array")


class NpzReader:
    """Read the arrays of an .npz file by name."""

    def __init__(self, source: Source, file: zipfile.ZipFile, n_bytes: int) -> None:
        self.source = source
        self._file = file
        self._n_bytes = n_bytes
        self._members: dict[str, zipfile.ZipInfo] = {}
        for member in file.infolist():
            name = member.filename.removesuffix(".npy")
            if name in self._members:
                raise source.error(f"it contains two arrays named {quoted(name)}: corrupt or malicious")
            self._members[name] = member

    def __contains__(self, name: str) -> bool:
        return name in self._members

    @property
    def names(self) -> list[str]:
        """The names of the arrays, in the order of the file."""
        return list(self._members)

    @contextmanager
    def open_array(self, name: str) -> Iterator[NpyReader]:
        """Open an array; its claimed size is checked first."""
        member, what = self._members[name], f"its array {quoted(name)}"
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):  # others expand without bound
            raise self.source.error(
                f"{what} uses a compression method that NumPy does not support; write it with np.savez"
            )
        if member.file_size > MAX_DEFLATE_EXPANSION * min(member.compress_size, self._n_bytes) + 1000:
            raise self.source.error(f"{what} claims an impossible size: corrupt or malicious")
        with self.source.catch_library_errors():
            file = self._file.open(member)
        with file:
            yield _open_array(self.source, file, member.file_size, what)

    def read_array(self, name: str) -> NDArray[Any]:
        """Return an array; use this only for arrays that are small compared with the packed table."""
        with self.open_array(name) as values:
            flat = values.read(prod(values.shape))
            return flat.reshape(values.shape, order="F" if values.fortran_order else "C")

    def read_bits(self, name: str, n_cols: int) -> BitMatrix:
        """Return the rows of a table of bytes that `packed_bytes` returned."""
        with self.open_array(name) as values:
            if values.dtype != np.uint8 or values.fortran_order or values.shape[1:] != (-(-n_cols // 8),):
                raise ValueError(f"its {name} are of type {values.dtype} and shape {str(values.shape)[:100]}")
            return stack_chunks(values.packed_rows(n_cols), (values.shape[0], n_cols))

    def read_sparse_bits(self, name: str, n_cols: int) -> SparseBits:
        """Return bits from `sparse_arrays`, after checking every column."""
        columns, ends = self.read_array(f"{name}_columns"), self.read_array(f"{name}_ends")
        if columns.dtype != index_type(n_cols) or ends.dtype != np.int64 or columns.ndim != 1 or ends.ndim != 1:
            raise ValueError(f"its {name}_columns or {name}_ends are not lists of integers")
        starts = np.concatenate((np.zeros(1, np.int64), ends))
        if (np.diff(starts) < 0).any() or starts[-1] != len(columns):
            raise ValueError(f"its {name}_ends do not fit its {name}_columns")
        bits = SparseBits.checked(starts, columns, n_cols)
        if bits is None:
            raise ValueError(f"its {name}_columns are not columns of {n_cols} in increasing order")
        return bits

    @property
    def n_bytes(self) -> int:
        """Number of bytes of all arrays, as the file claims; an array of another size raises an error when read."""
        return sum(member.file_size for member in self._members.values())

    def _read_json(self, name: str) -> Any:
        """Return the value of JSON in an array of bytes."""
        self.source.check_memory(_PARSED_COPIES * self._members[name].file_size, "its metadata")
        return json.loads(self.read_array(name).astype(np.uint8, casting="safe", copy=False).tobytes())

    def read_metadata(self, format: str, version: int, renewal: str, hint: str = "") -> dict[str, Any]:
        """Return the metadata of a file that bitatoms wrote; raise for another format or another version.

        ``renewal`` ends the error for an older version, ``hint`` the one for a file of another kind.
        """
        expected = f"not a {format.removeprefix('bitatoms ')}"
        if METADATA_KEY not in self:
            arrays = ", ".join(self.names[:5])[:100] or "none"
            raise self.source.error(f"{expected}; its arrays are {arrays}{hint}")
        try:
            metadata = self._read_json(METADATA_KEY)
            found, number = " ".join(metadata["format"].split()), int(metadata["version"])
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            if isinstance(error, FileError):
                raise
            raise self.source.error(f"{expected}: its metadata is corrupt") from error
        if found != format:
            raise self.source.error(f"{expected}, but a {found.removeprefix('bitatoms ')[:40]}{hint}")
        check_version(self.source, metadata, number, version, renewal)
        return metadata


def check_version(source: Source, metadata: Mapping[str, Any], number: int, version: int, renewal: str) -> None:
    """Raise if a file is in another version of its format; ``renewal`` ends the error if it is an older one."""
    if number == version:
        return
    writer = f"bitatoms {str(metadata['bitatoms'])[:20]}" if "bitatoms" in metadata else "an unknown bitatoms"
    if number > version:
        raise source.error(
            f"written by {writer}, which is newer than {__version__}, the installed version; update bitatoms"
        )
    raise source.error(f"written by {writer}, an older version, whose files are not read{renewal}")


def packed_bytes(bits: BitMatrix) -> NDArray[np.uint8]:
    """Return the rows as bytes without a copy, the first column in the lowest bit."""
    return bits.words.astype("<u8", copy=False).view(np.uint8)[:, : -(-bits.n_cols // 8)]


def sparse_arrays(name: str, bits: SparseBits) -> dict[str, NDArray[Any]]:
    """Return bits as arrays: the columns of their ones, and where those of each row end."""
    return {f"{name}_columns": bits.indices, f"{name}_ends": bits.indptr[1:]}


def check_metadata_int(metadata: Mapping[str, Any], name: str, least: int = 0, most: int = (1 << 63) - 1) -> int:
    """Return an integer of the metadata; raise ValueError if it is not one or is out of range."""
    try:
        number = index(metadata[name])
    except TypeError:
        raise ValueError(f"its {name} is not an integer") from None
    if not least <= number <= most:
        raise ValueError(f"its {name} is {str(number)[:20]}")
    return number


def check_metadata_hash(metadata: Mapping[str, Any], name: str) -> int | None:
    """Return a 64-bit hash of the metadata, written in hexadecimal, or None if there is none."""
    value = metadata.get(name)
    if value is not None and not (isinstance(value, str) and re.fullmatch("[0-9a-f]{1,16}", value)):
        raise ValueError(f"its {name} is not a hash")
    return None if value is None else int(value, 16)


def check_metadata_names(metadata: Mapping[str, Any], axis: str, length: int) -> Names | None:
    """Return the names of the rows or columns, or None; raise ValueError if they do not match the table."""
    names = metadata[axis]
    if names is None:
        return None
    if not isinstance(names, list) or len(names) != length or not all(isinstance(name, str) for name in names):
        raise ValueError(f"its names do not match its {length} {axis}")
    return tuple(names)


def encode_metadata(metadata: Mapping[str, Any]) -> NDArray[np.uint8]:
    """Return metadata as JSON in an array of bytes."""
    text = json.dumps(metadata, ensure_ascii=False, allow_nan=False)
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)  # as json.loads decodes it


@contextmanager
def open_npz(source: Source) -> Iterator[NpzReader]:
    """Open an .npz file."""
    with open(source.path, "rb") as raw:
        with source.catch_library_errors():
            file = zipfile.ZipFile(raw)
        with file:
            yield NpzReader(source, file, source.path.stat().st_size)


def write_npz(path: Path, arrays: Mapping[str, NDArray[Any]], compressed: bool = True) -> None:
    """Write arrays into an .npz file; the same arrays give the same bytes."""
    # Level 4 makes bits nearly as small as NumPy's level 6, in a fifth of the time.
    compression = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", compression, compresslevel=4) as file:
        for name, values in arrays.items():
            with file.open(f"{name}.npy", "w", force_zip64=True) as out:  # opened by name, the date is constant
                npy.write_array(out, values, allow_pickle=False)
