"""Atomic writes: a file is written in a temporary folder next to it and then renamed, so it is complete or absent.

The folder is hidden, its name ends with ``.part``, and it contains a file that is locked as long as the write lasts. If
the process is killed, the folder is left, unlocked; the next write to the same file removes it.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from .errors import FileError
from .locks import FileLocked, lock

_ZARR_FILES = ("zarr.json", ".zgroup", ".zarray")
_LOCK, _REPLACED = ".lock", "replaced store"  # in a temporary folder; no output has such a name
_SUFFIX, _NAME_LENGTH = ".part", 40


@contextmanager
def atomic_write(path: Path, companions: tuple[str, ...] = ()) -> Iterator[Path]:
    """Yield a temporary path; what is written there replaces ``path`` at the end.

    ``companions`` are names of files that are written next to it and moved along. On an error, the temporary files are
    removed and ``path`` is unchanged.
    """
    folder = path.parent
    if not folder.is_dir():
        raise FileError(f"{path}: there is no folder {str(folder)!r}; create it first")
    temporary: Path | None = None
    file: IO[bytes] | None = None
    try:
        _remove_stale_folders(path)
        temporary, file = _make_folder(path)
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
        if file is not None:
            file.close()
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _make_folder(path: Path) -> tuple[Path, IO[bytes]]:
    """Create the temporary folder of a write and lock it; closing the file unlocks it."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_prefix(path), suffix=_SUFFIX, dir=path.parent))
        # Until it is locked, another process may take the folder for a stale one and remove it.
        with suppress(FileNotFoundError, FileLocked):
            file = open(folder / _LOCK, "xb")  # noqa: SIM115, closed by the caller
            try:
                lock(file)
            except BaseException:
                file.close()
                raise
            return folder, file


def _prefix(path: Path) -> str:
    return f".{path.name[:_NAME_LENGTH]}."


def _remove_stale_folders(path: Path) -> None:
    """Remove the temporary folders of earlier writes to a path whose process was killed."""
    name = re.compile(rf"{re.escape(_prefix(path))}\w{{8}}{re.escape(_SUFFIX)}")
    folders: list[Path] = []
    with suppress(OSError):  # a folder may be writable, but not readable
        folders = [entry for entry in path.parent.iterdir() if name.fullmatch(entry.name)]
    for folder in folders:
        with suppress(OSError, FileLocked):
            if not any(folder.iterdir()):  # killed, or not yet locked: then `_make_folder` creates another one
                folder.rmdir()
                continue
            with open(folder / _LOCK, "r+b") as file:
                is_stale = lock(file)
                if is_stale and not path.exists() and is_zarr_store(folder / path.name):
                    os.replace(folder / _REPLACED, path)  # killed between the two renames of `_move`
            if is_stale:
                shutil.rmtree(folder, ignore_errors=True)


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
    old = temporary / _REPLACED
    try:
        os.replace(path, old)
        os.replace(written, path)
    except BaseException:
        if old.exists() and not path.exists():
            os.replace(old, path)
        raise
