"""Read untrusted Zarr stores: no links, only codecs that decompress numbers and text, and no more than claimed."""

from __future__ import annotations

import itertools
import json
import math
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .chunked import check_claimed_size
from .stream import Source

_CODECS = frozenset(("bytes", "transpose", "shuffle", "delta", "packbits", "crc32c", "sharding_indexed", "vlen-utf8"))
_CODECS |= frozenset(("gzip", "zlib", "zstd", "blosc", "lz4", "bz2", "lzma"))
_METADATA = {3: ("zarr.json",), 2: (".zarray", ".zgroup")}
_MAX_METADATA_BYTES = 1 << 30
_SMALL_CHUNK = 1 << 12  # bytes; such a chunk does no harm, whatever it decompresses to
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_FREE_CHUNKS = 1 << 16  # chunks that an array may claim however few files there are


class ZarrReader:
    """Read the groups and arrays of a Zarr store; each is checked before zarr opens it."""

    def __init__(self, source: Source) -> None:
        import zarr

        self.source = source
        self._identity = _identity(source.path)
        self._version = 3 if (source.path / "zarr.json").is_file() else 2
        self._check(source.path, "/")
        # Consolidated metadata could differ from the files that were checked.
        consolidated = {} if self._is_array(self._metadata(source.path)) else {"use_consolidated": False}
        options: dict[str, Any] = {"mode": "r", "zarr_format": self._version, **consolidated}
        self.root: Any = zarr.open(source.path, **options)

    def was_replaced(self) -> bool:
        """Return whether the store is another one than when it was opened, or is gone."""
        return _identity(self.source.path) != self._identity

    def child(self, group: Any, name: str, all_chunks: bool = True) -> Any | None:
        """Return the group or array of this name, or None; pass ``all_chunks=False`` if `read_complete` reads it."""
        if not name or name in (".", "..") or "/" in name or "\\" in name or "\0" in name:
            return None
        folder = self.source.path / group.path / name
        if not self._metadata_file(folder):
            return None
        self._check(folder, f"{group.path}/{name}".lstrip("/"), all_chunks)
        return group[name]

    def children(self, group: Any) -> list[str]:
        """Return the names of the groups and arrays in a group."""
        folder = self.source.path / group.path
        return sorted(entry.name for entry in folder.iterdir() if self._metadata_file(entry))

    def check_all(self, group: Any) -> None:
        """Check everything in a group as `child` does."""
        for name in self.children(group):
            element = self.child(group, name)
            if element is not None and not hasattr(element, "shape"):
                self.check_all(element)

    def read(self, array: Any, *slices: slice) -> NDArray[Any]:
        """Return values of an array; if a chunk cannot be read, the error names it."""
        try:
            return np.asarray(array[slices])
        except MemoryError:
            raise
        except Exception as error:  # codecs raise anything
            reason = " ".join(str(error).split())[:150]
            raise self.source.error(f"{self._unreadable(array, slices)} is corrupt or truncated: {reason}") from error

    def chunk_path(self, array: Any, chunk: tuple[int, ...]) -> Path:
        """Return the file of a chunk; if it does not exist, its cells have the fill value."""
        key: str = array.metadata.encode_chunk_key(chunk)
        return self.source.path / array.path / key

    def chunk_name(self, array: Any, *chunk: int) -> str:
        """Return the file of a chunk, for messages; indices that are not given are 0."""
        indices = (*chunk, *(0 for _ in array.shape[len(chunk) :]))
        return self._shown(self.chunk_path(array, indices))

    def read_complete(self, array: Any, *slices: slice) -> NDArray[Any]:
        """Return values of an array that bitatoms wrote; raise if one of their chunks is missing.

        Only the chunks that are read are checked, since an array may have a million.
        """
        for chunk in _chunks(array, slices):
            self.check_chunk(array, chunk)
        return self.read(array, *slices)

    def check_chunk(self, array: Any, chunk: tuple[int, ...]) -> None:
        """Raise if a chunk is missing, is reached through a link, or decompresses to more than it should."""
        key: str = array.metadata.encode_chunk_key(chunk)
        path = os.fspath(self.source.path)
        size = 0
        for name in (*array.path.split("/"), *key.split("/")):
            path = os.path.join(path, name)
            try:
                status = os.lstat(path)
            except OSError as error:
                shown = self._shown(self.chunk_path(array, chunk))
                raise self.source.error(f"its chunk {shown} is missing; copy the store again") from error
            _check_regular(self.source, path, status.st_mode)
            size = status.st_size
        if array.shards is None:
            chunk_bytes = array.dtype.itemsize * math.prod(array.chunks)
            self._check_chunk_sizes([(size, path)], chunk_bytes, f"its array {array.path!r}", zstd=True)

    def _shown(self, file: Path) -> str:
        """Return the path of a file within the store, for messages."""
        return repr(file.relative_to(self.source.path).as_posix())

    def _unreadable(self, array: Any, slices: tuple[slice, ...]) -> str:
        """Return the first chunk within these slices that cannot be read, for messages."""
        sizes = array.shards or array.chunks
        for chunk in _chunks(array, slices):
            try:
                array[tuple(slice(at * size, (at + 1) * size) for at, size in zip(chunk, sizes, strict=True))]
            except Exception:  # this is the one
                return f"its chunk {self._shown(self.chunk_path(array, chunk))}"
        return f"its array {array.path!r}"

    def _metadata_file(self, folder: Path) -> Path | None:
        """Return the metadata file of a folder; None if it is neither a group nor an array."""
        return next((found for name in _METADATA[self._version] if (found := folder / name).is_file()), None)

    def _metadata(self, folder: Path) -> dict[str, Any]:
        """Return the metadata of a group or array."""
        file = self._metadata_file(folder)
        if file is None:
            raise self.source.error(
                "this folder is not a Zarr store: it contains neither 'zarr.json' nor '.zgroup' nor '.zarray'"
            )
        for path in (file,) if folder == self.source.path else (folder, file):
            _check_regular(self.source, os.fspath(path), os.lstat(path).st_mode)
        if file.stat().st_size > _MAX_METADATA_BYTES:
            raise self.source.error(f"{file.name!r} is too large for metadata")
        metadata = json.loads(file.read_bytes())
        if not isinstance(metadata, dict):
            raise self.source.error(f"corrupt: {file.name!r} is not a JSON object")
        return metadata

    def _is_array(self, metadata: dict[str, Any]) -> bool:
        """Return whether metadata describe an array, not a group."""
        return metadata.get("node_type") == "array" if self._version == 3 else "dtype" in metadata

    def _check(self, folder: Path, name: str, all_chunks: bool = True) -> None:
        """Raise if an array needs a codec that is not allowed, or claims more than its files can hold."""
        metadata = self._metadata(folder)
        if not self._is_array(metadata):
            return
        codecs = _codecs(metadata)
        unknown = next((codec for codec in codecs if codec not in _CODECS), None)
        dtype = metadata.get("data_type", metadata.get("dtype"))
        if unknown is not None or not isinstance(dtype, str) or (dtype == "|O" and "vlen-utf8" not in codecs):
            problem = f"needs the codec {unknown[:40]!r}" if unknown is not None else f"has the type {str(dtype)[:40]}"
            raise self.source.error(
                f"its array {name!r} {problem}, which is not supported; save it as numbers or booleans"
            )
        shape = metadata["shape"]
        chunks = metadata["chunk_grid"]["configuration"]["chunk_shape"] if self._version == 3 else metadata["chunks"]
        itemsize = 8 if "vlen-utf8" in codecs else np.dtype(dtype).itemsize
        shown = f"its array {name!r}"
        if not all_chunks:
            check_claimed_size(self.source, shown, shape, chunks, itemsize, itemsize * math.prod(shape))
            return
        files = [(entry.stat().st_size, entry.path) for entry in _files(folder)]
        check_claimed_size(self.source, shown, shape, chunks, itemsize, sum(size for size, _ in files))
        n_chunks = math.prod(-(-length // size) for length, size in zip(shape, chunks, strict=True))
        if n_chunks > _FREE_CHUNKS + 16 * len(files):
            raise self.source.error(
                f"{shown} claims to have {n_chunks} chunks, but there are {len(files)} files: corrupt or malicious"
            )
        if "sharding_indexed" not in codecs and "vlen-utf8" not in codecs:
            self._check_chunk_sizes(files, itemsize * math.prod(chunks), shown, "zstd" in codecs)

    def _check_chunk_sizes(self, files: list[tuple[int, str]], chunk_bytes: int, shown: str, zstd: bool) -> None:
        """Raise if a chunk is larger than ``chunk_bytes``, or claims to decompress to more."""
        for size, path in files:
            if size <= _SMALL_CHUNK or path.endswith(_METADATA[self._version]):
                continue
            decompressed = size - size // 8  # compression makes incompressible data slightly longer
            if zstd:
                with open(path, "rb") as file:
                    decompressed = max(decompressed, _zstd_content_size(file.read(18)))
            if decompressed > chunk_bytes + _SMALL_CHUNK:
                raise self.source.error(
                    f"{shown}: the chunk in {self._shown(Path(path))} has {decompressed} bytes, but at most "
                    f"{chunk_bytes} are allowed: corrupt or malicious"
                )


def _identity(store: Path) -> tuple[int, ...] | None:
    """Return numbers by which the system tells the store at a path from one that replaces it."""
    for name in itertools.chain(*_METADATA.values()):
        with suppress(OSError):
            status = os.stat(store / name)
            return status.st_dev, status.st_ino, status.st_mtime_ns
    return None


def _chunks(array: Any, slices: tuple[slice, ...]) -> Iterator[tuple[int, ...]]:
    """Return the indices of the chunks, each a file, that these slices intersect."""
    sizes = array.shards or array.chunks
    ranges = [item.indices(length) for item, length in zip(slices, array.shape, strict=True)]
    return itertools.product(
        *(range(first // size, -(-end // size)) for (first, end, _), size in zip(ranges, sizes, strict=True))
    )


def _zstd_content_size(beginning: bytes) -> int:
    """Return the decompressed size that a zstd frame claims; 0 if it claims none."""
    if beginning[:4] != _ZSTD_MAGIC:
        return 0
    descriptor = beginning[4]
    offset = 5 + (not descriptor & 32) + (0, 1, 2, 4)[descriptor & 3]
    length = (descriptor & 32 and 1, 2, 4, 8)[descriptor >> 6]
    return int.from_bytes(beginning[offset : offset + length], "little")


def _codecs(metadata: dict[str, Any]) -> list[str]:
    """Return the names of all codecs of an array, including those within shards."""
    steps = [*(metadata.get("codecs") or ()), *(metadata.get("filters") or ())]
    steps += [metadata["compressor"]] if metadata.get("compressor") else []
    names = []
    for step in steps:
        name = str(step.get("name", step.get("id"))) if isinstance(step, dict) else str(step)
        names.append(name.removeprefix("numcodecs."))
        inner = step.get("configuration") if isinstance(step, dict) else None
        if name == "sharding_indexed" and isinstance(inner, dict):
            names += _codecs({"codecs": [*inner.get("codecs", ()), *inner.get("index_codecs", ())]})
    return names


def _files(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield all files in a folder and its subfolders."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(Path(entry.path))
            else:
                yield entry


@contextmanager
def open_zarr(source: Source) -> Iterator[ZarrReader]:
    """Open a Zarr store for reading."""
    yield ZarrReader(source)


def check_store_folder(source: Source) -> None:
    """Raise if a path is not a folder, or if anything in it is neither a file nor a folder."""
    if not source.path.is_dir():
        raise source.error("this is a file, but a Zarr store is a folder; if it is an archive, extract it first")
    for folder, folders, files in os.walk(source.path):
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            _check_regular(source, path, os.lstat(path).st_mode)


def _check_regular(source: Source, path: str, mode: int) -> None:
    """Raise if a path is neither a file nor a folder."""
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        kind = "a symbolic link, which is not followed" if stat.S_ISLNK(mode) else "not a regular file"
        shown = os.path.relpath(path, source.path)
        raise source.error(f"{shown!r} is {kind}; copy the store without links")
