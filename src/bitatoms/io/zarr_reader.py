"""Read untrusted Zarr stores: no links, only codecs that decompress numbers and text, and no more than claimed."""

from __future__ import annotations

import itertools
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..formatting import quoted
from .out_of_core.chunked import check_claimed_size
from .stream import Source

_CODECS = frozenset(("bytes", "transpose", "shuffle", "delta", "packbits", "crc32c", "sharding_indexed", "vlen-utf8"))
_CODECS |= frozenset(("gzip", "zlib", "zstd", "blosc", "lz4", "bz2", "lzma"))
_METADATA = {3: ("zarr.json",), 2: (".zarray", ".zgroup")}


class ZarrReader:
    """Read the groups and arrays of a Zarr store; each is checked before zarr opens it."""

    def __init__(self, source: Source) -> None:
        import zarr

        self.source = source
        _check_folder(source)
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

    def child(self, group: Any, name: str, check_size: bool = True) -> Any | None:
        """Return the group or array of this name, or None.

        ``check_size=False`` is for arrays of a million files, if reading one of them fails where a file is missing.
        """
        if not name or name in (".", "..") or "/" in name or "\\" in name or "\0" in name:
            return None
        folder = self.source.path / group.path / name
        if not self._metadata_file(folder):
            return None
        self._check(folder, f"{group.path}/{name}".lstrip("/"), check_size)
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
        """Return values of an array."""
        try:
            return np.asarray(array[slices])
        except MemoryError:
            raise
        except Exception as error:  # codecs raise anything
            rows, reason = slices[0].indices(array.shape[0]), " ".join(str(error).split())[:150]
            raise self.source.error(
                f"its array {array.path!r} is corrupt or truncated in rows {rows[0]} to {rows[1] - 1}: {reason}; copy "
                "the store again"
            ) from error

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
        metadata = json.loads(file.read_bytes())
        if not isinstance(metadata, dict):
            raise self.source.error(f"corrupt: {file.name!r} is not a JSON object")
        return metadata

    def _is_array(self, metadata: dict[str, Any]) -> bool:
        """Return whether metadata describe an array, not a group."""
        return metadata.get("node_type") == "array" if self._version == 3 else "dtype" in metadata

    def _check(self, folder: Path, name: str, check_size: bool = True) -> None:
        """Raise if an array needs a codec that is not allowed, or claims more than its files can hold."""
        metadata = self._metadata(folder)
        if not self._is_array(metadata):
            return
        codecs = _codecs(metadata)
        unknown = next((codec for codec in codecs if codec not in _CODECS), None)
        dtype = metadata.get("data_type", metadata.get("dtype"))
        if unknown is not None or not isinstance(dtype, str) or (dtype == "|O" and "vlen-utf8" not in codecs):
            problem = f"needs the codec {quoted(unknown)}" if unknown is not None else f"has the type {str(dtype)[:40]}"
            raise self.source.error(
                f"its array {name!r} {problem}, which is not supported; save it as numbers or booleans"
            )
        if not check_size:
            return
        shape = metadata["shape"]
        chunks = metadata["chunk_grid"]["configuration"]["chunk_shape"] if self._version == 3 else metadata["chunks"]
        itemsize = 8 if "vlen-utf8" in codecs else np.dtype(dtype).itemsize
        n_bytes = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        check_claimed_size(self.source, f"its array {name!r}", shape, chunks, itemsize, n_bytes)


def _identity(store: Path) -> tuple[int, ...] | None:
    """Return numbers by which the system distinguishes the store at a path from one that replaces it."""
    for name in itertools.chain(*_METADATA.values()):
        with suppress(OSError):
            status = os.stat(store / name)
            return status.st_dev, status.st_ino, status.st_mtime_ns
    return None


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


def _check_folder(source: Source) -> None:
    """Raise if a path is not a folder, or if anything in it is neither a file nor a folder, such as a link."""
    if not source.path.is_dir():
        raise source.error("this is a file, but a Zarr store is a folder; if it is an archive, extract it first")
    folders = [os.fspath(source.path)]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif not entry.is_file(follow_symlinks=False):
                    kind = "a symbolic link, which is not followed" if entry.is_symlink() else "not a regular file"
                    shown = os.path.relpath(entry.path, source.path)
                    raise source.error(f"{shown!r} is {kind}; copy the store without links")
