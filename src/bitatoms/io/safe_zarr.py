"""Zarr stores from strangers: only what lies in the folder itself is opened, by codecs that only unpack numbers."""

from __future__ import annotations

import itertools
import json
import math
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .chunked import check_claimed_size
from .stream import Source

_CODECS = frozenset(("bytes", "transpose", "shuffle", "delta", "packbits", "crc32c", "sharding_indexed", "vlen-utf8"))
_CODECS |= frozenset(("gzip", "zlib", "zstd", "blosc", "lz4", "bz2", "lzma"))
_METADATA = {3: ("zarr.json",), 2: (".zarray", ".zgroup")}
_MOST_METADATA = 1 << 30  # bytes
_SMALL = 1 << 12  # bytes: a chunk of that size does no harm, whatever it unpacks to
_ZSTD = b"\x28\xb5\x2f\xfd"
_FEW_CHUNKS = 1 << 16  # that an array may be cut in, however few of them are there


class ZarrReader:
    """The elements of a Zarr store, each looked at before zarr opens it."""

    def __init__(self, source: Source) -> None:
        import zarr

        self.source = source
        self._version = 3 if (source.path / "zarr.json").is_file() else 2
        self._check(source.path, "/")
        # What is on disk counts, not what is said of it elsewhere.
        plainly = {} if self._is_array(self._metadata(source.path)) else {"use_consolidated": False}
        options: dict[str, Any] = {"mode": "r", "zarr_format": self._version, **plainly}
        self.root: Any = zarr.open(source.path, **options)

    def child(self, group: Any, name: str, all_chunks: bool = True) -> Any | None:
        """The group or array of this name; None where there is none.

        Its chunks are looked at as well, unless whoever takes from it does that (`read_complete`).
        """
        if not name or name in (".", "..") or "/" in name or "\\" in name or "\0" in name:
            return None
        folder = self.source.path / group.path / name
        if not self._metadata_file(folder):
            return None
        self._check(folder, f"{group.path}/{name}".lstrip("/"), all_chunks)
        return group[name]

    def children(self, group: Any) -> list[str]:
        """The names of what is in a group."""
        folder = self.source.path / group.path
        return sorted(entry.name for entry in folder.iterdir() if self._metadata_file(entry))

    def check_all(self, group: Any) -> None:
        """Look at all there is in a group, as `child` does."""
        for name in self.children(group):
            element = self.child(group, name)
            if element is not None and not hasattr(element, "shape"):
                self.check_all(element)

    def read(self, array: Any, *slices: slice) -> NDArray[Any]:
        """Some values of an array; where they cannot be had, the chunk that is to blame is named."""
        try:
            return np.asarray(array[slices])
        except MemoryError:
            raise
        except Exception as error:  # codecs raise anything
            said = " ".join(str(error).split())[:150]
            raise self.source.error(f"{self._to_blame(array, slices)} is corrupt or truncated: {said}") from error

    def chunk_path(self, array: Any, chunk: tuple[int, ...]) -> Path:
        """The file that holds a chunk; where there is none, its cells have the value for missing ones."""
        key: str = array.metadata.encode_chunk_key(chunk)
        return self.source.path / array.path / key

    def read_complete(self, array: Any, *slices: slice) -> NDArray[Any]:
        """Some values of an array of ours, all chunks of which are there, those of nothing but zeros too.

        Only the chunks that are taken are looked at, just before: an array may have a million.
        """
        for chunk in _chunks(array, slices):
            self.check_chunk(array, chunk)
        return self.read(array, *slices)

    def check_chunk(self, array: Any, chunk: tuple[int, ...]) -> None:
        """Refuse a chunk of an array of ours that was lost, leads elsewhere, or unpacks to more than it should."""
        key: str = array.metadata.encode_chunk_key(chunk)
        path = os.fspath(self.source.path)
        length = 0
        for name in (*array.path.split("/"), *key.split("/")):
            path = os.path.join(path, name)
            try:
                about = os.lstat(path)
            except OSError as error:
                shown = self._shown(self.chunk_path(array, chunk))
                raise self.source.error(f"its chunk {shown} is not there; copy the store anew") from error
            _refuse_odd(self.source, path, about.st_mode)
            length = about.st_size
        if array.shards is None:
            whole = array.dtype.itemsize * math.prod(array.chunks)
            self._check_chunks([(length, path)], whole, f"its array {array.path!r}", zstd=True)

    def _shown(self, file: Path) -> str:
        """A file of the store, for messages."""
        return repr(file.relative_to(self.source.path).as_posix())

    def _to_blame(self, array: Any, slices: tuple[slice, ...]) -> str:
        """The first chunk within these slices that cannot be read."""
        sizes = array.shards or array.chunks
        for chunk in _chunks(array, slices):
            corner = [slice(at * size, (at + 1) * size) for at, size in zip(chunk, sizes, strict=True)]
            try:
                array[tuple(corner)]
            except Exception:  # this is the one
                return f"its chunk {self._shown(self.chunk_path(array, chunk))}"
        return f"its array {array.path!r}"

    def _metadata_file(self, folder: Path) -> Path | None:
        """The file that says what this folder is; None where there is none, or it is not a Zarr array or group."""
        return next((found for name in _METADATA[self._version] if (found := folder / name).is_file()), None)

    def _metadata(self, folder: Path) -> dict[str, Any]:
        """What a folder says that it is."""
        file = self._metadata_file(folder)
        if file is None:
            raise self.source.error(
                "this folder is no Zarr store: it has neither 'zarr.json' nor '.zgroup' nor '.zarray'"
            )
        for path in (file,) if folder == self.source.path else (folder, file):
            _refuse_odd(self.source, os.fspath(path), os.lstat(path).st_mode)
        if file.stat().st_size > _MOST_METADATA:
            raise self.source.error(f"{file.name!r} is too large for what it should be")
        about = json.loads(file.read_bytes())
        if not isinstance(about, dict):
            raise self.source.error(f"corrupt: {file.name!r} does not say what the folder is")
        return about

    def _is_array(self, about: dict[str, Any]) -> bool:
        """Whether an array is meant, not a group."""
        return about.get("node_type") == "array" if self._version == 3 else "dtype" in about

    def _check(self, folder: Path, what: str, all_chunks: bool = True) -> None:
        """Refuse an array that needs other codecs than those that unpack numbers and text, or that claims too much."""
        about = self._metadata(folder)
        if not self._is_array(about):
            return
        codecs = _codecs(about)
        strange = next((name for name in codecs if name not in _CODECS), None)
        kind = about.get("data_type", about.get("dtype"))
        if strange is not None or not isinstance(kind, str) or (kind == "|O" and "vlen-utf8" not in codecs):
            unpacks = f"needs the codec {strange[:40]!r}" if strange is not None else f"holds {str(kind)[:40]}"
            raise self.source.error(
                f"its array {what!r} {unpacks}, which is not opened; save it as numbers or booleans"
            )
        chunk = about["chunk_grid"]["configuration"]["chunk_shape"] if self._version == 3 else about["chunks"]
        size = 8 if "vlen-utf8" in codecs else np.dtype(kind).itemsize
        shown = f"its array {what!r}"
        if not all_chunks:
            check_claimed_size(self.source, shown, about["shape"], chunk, size, size * math.prod(about["shape"]))
            return
        files = [(entry.stat().st_size, entry.path) for entry in _files(folder)]
        check_claimed_size(self.source, shown, about["shape"], chunk, size, sum(length for length, _ in files))
        count = math.prod(-(-length // piece) for length, piece in zip(about["shape"], chunk, strict=True))
        if count > _FEW_CHUNKS + 16 * len(files):
            raise self.source.error(
                f"{shown} says that it is cut in {count} chunks, and {len(files)} files are there: corrupt or malicious"
            )
        if "sharding_indexed" not in codecs and "vlen-utf8" not in codecs:
            self._check_chunks(files, size * math.prod(chunk), shown, "zstd" in codecs)

    def _check_chunks(self, files: list[tuple[int, str]], whole: int, shown: str, zstd: bool) -> None:
        """Refuse chunks that are larger, or say that they unpack to more, than so many bytes."""
        for length, path in files:
            if length <= _SMALL or path.endswith(_METADATA[self._version]):
                continue
            unpacked = length - length // 8  # what cannot be packed grows a little
            if zstd:
                with open(path, "rb") as file:
                    unpacked = max(unpacked, _unpacked(file.read(18)))
            if unpacked > whole + _SMALL:
                raise self.source.error(
                    f"{shown} has in {self._shown(Path(path))} a chunk of {unpacked} bytes where {whole} are all: "
                    "corrupt or malicious"
                )


def _chunks(array: Any, slices: tuple[slice, ...]) -> Iterator[tuple[int, ...]]:
    """The chunks, each a file, that these slices are in."""
    sizes = array.shards or array.chunks
    ranges = [piece.indices(length) for piece, length in zip(slices, array.shape, strict=True)]
    return itertools.product(
        *(range(first // size, -(-end // size)) for (first, end, _), size in zip(ranges, sizes, strict=True))
    )


def _unpacked(beginning: bytes) -> int:
    """The bytes that what zstd packed says it unpacks to; 0 where it does not say."""
    if beginning[:4] != _ZSTD:
        return 0
    form = beginning[4]
    skip = 5 + (not form & 32) + (0, 1, 2, 4)[form & 3]
    taken = (form & 32 and 1, 2, 4, 8)[form >> 6]
    return int.from_bytes(beginning[skip : skip + taken], "little")


def _codecs(about: dict[str, Any]) -> list[str]:
    """The names of all codecs that an array needs, those within others too."""
    steps = list(about.get("codecs") or ())
    steps += [about["compressor"]] if about.get("compressor") else []
    steps += list(about.get("filters") or ())
    names = []
    for step in steps:
        name = str(step.get("name", step.get("id"))) if isinstance(step, dict) else str(step)
        names.append(name.removeprefix("numcodecs."))
        inner = step.get("configuration") if isinstance(step, dict) else None
        if name == "sharding_indexed" and isinstance(inner, dict):
            names += _codecs({"codecs": [*inner.get("codecs", ()), *inner.get("index_codecs", ())]})
    return names


def _files(folder: Path) -> Iterator[os.DirEntry[str]]:
    """All files in a folder and the folders in it."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _files(Path(entry.path))
            else:
                yield entry


@contextmanager
def open_zarr(source: Source) -> Iterator[ZarrReader]:
    """A Zarr store, open for reading."""
    yield ZarrReader(source)


def check_store_folder(source: Source) -> None:
    """Refuse what is no folder, and one that leads out of itself, or holds what is no file."""
    if not source.path.is_dir():
        raise source.error("this is a file, and a Zarr store is a folder; if it is a packed store, unpack it first")
    for place, folders, files in os.walk(source.path):
        for name in (*folders, *files):
            path = os.path.join(place, name)
            _refuse_odd(source, path, os.lstat(path).st_mode)


def _refuse_odd(source: Source, path: str, mode: int) -> None:
    """Refuse what is neither a file nor a folder."""
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        kind = "a link out of its place" if stat.S_ISLNK(mode) else "no plain file"
        shown = os.path.relpath(path, source.path)
        raise source.error(f"{shown!r} is {kind}, which is not followed; copy the store with what it links to")
