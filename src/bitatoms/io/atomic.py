"""Atomic writes: a file is written in a temporary folder next to it and then renamed, so it is complete or absent."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from .errors import FileError

_ZARR_FILES = ("zarr.json", ".zgroup", ".zarray")


@contextmanager
def atomic_write(path: Path, companions: tuple[str, ...] = ()) -> Iterator[Path]:
    """Yield a temporary path; what is written there replaces ``path`` at the end.

    ``companions`` are names of files that are written next to it and moved along. On an error, the temporary files are
    removed and ``path`` is unchanged.
    """
    folder = path.parent
    if not folder.is_dir():
        raise FileError(f"{path}: there is no folder {str(folder)!r}; create it first")
    try:
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name[:40]}.", suffix=".part", dir=folder))
    except OSError as error:
        raise write_error(path, error) from error
    try:
        written = temporary / path.name  # the full name, because libraries depend on its extension
        yield written
        for name in companions:
            _move(temporary / name, folder / name, temporary)
        _move(written, path, temporary)
    except OSError as error:
        raise write_error(path, error) from error
    except UnicodeEncodeError as error:
        character = ascii(error.object[error.start])
        raise FileError(f"{path}: a name contains {character}, which cannot be encoded; rename it") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_files(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write files into a folder in this order, creating it if necessary, and return their paths."""
    for name in files:
        try:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise write_error(folder, error) from error
    for name, content in files.items():
        with atomic_write(folder / name) as temporary:
            temporary.write_bytes(content)
    return [folder / name for name in files]


def write_error(path: Path, error: OSError) -> FileError:
    """Return the error for a file that the system cannot write."""
    return FileError(f"{path}: cannot be written: {error.strerror or error}; nothing was changed")


def is_zarr_store(path: Path) -> bool:
    """Return whether a folder is a Zarr store."""
    return any((path / name).is_file() for name in _ZARR_FILES)


def _move(written: Path, path: Path, temporary: Path) -> None:
    """Rename a file or store to its final path; an old store is restored on an error."""
    if path.is_dir() and not is_zarr_store(path):
        raise FileError(f"{path}: a folder of that name exists; choose another name")
    if not path.is_dir():
        if written.is_dir() and path.exists():
            raise FileError(f"{path}: a file of that name exists, and a store is a folder; choose another name")
        os.replace(written, path)
        return
    old = temporary / "replaced store"
    os.replace(path, old)
    try:
        os.replace(written, path)
    except OSError:
        os.replace(old, path)
        raise
