"""Atomic writes: a file is written in a temporary folder next to it and then renamed, so it is complete or absent.

The folder is hidden, its name ends with ``.part``, and it contains a file that is locked as long as the write lasts. If
the process is killed, the folder is left, unlocked; the next write to the same file removes it.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from ..interrupts import deferred_interrupts
from ..locks import FileLocked, lock
from .errors import FileError

_ZARR_FILES = ("zarr.json", ".zgroup", ".zarray")
_LOCK, _REPLACED = ".lock", "replaced store"  # in a temporary folder; no output has such a name
_SUFFIX, _NAME_LENGTH = ".part", 40
_EXCHANGE = {"linux": ("renameat2", -100), "darwin": ("renameatx_np", -2)}  # the function, and its AT_FDCWD
_EXCHANGE_FLAG = 2  # on both systems


@contextmanager
def atomic_write(path: Path, companions: tuple[str, ...] = ()) -> Iterator[Path]:
    """Yield a temporary path; what is written there replaces ``path`` at the end.

    ``companions`` are files that are written next to it, by their paths from its folder, and moved along. On an error,
    the temporary files are removed and ``path`` is unchanged. Symbolic links are followed, and the mode of an existing
    file or store is kept. A device or a pipe is not replaced: the content is written into it.
    """
    writes_into = is_stream(path)
    target = Path(tempfile.gettempdir()) / path.name if writes_into else link_target(path)
    if not target.parent.is_dir():
        raise FileError(f"{path}: there is no folder {str(target.parent)!r}; create it first")
    temporary: Path | None = None
    file: IO[bytes] | None = None
    try:
        _remove_stale_folders(target)
        temporary, file = _make_folder(target)
        written = temporary / path.name  # the full name, because libraries depend on its extension
        yield written
        if writes_into:
            _copy_into(written, path)
            return
        with deferred_interrupts():  # files that belong together are replaced together
            for name in companions:
                with atomic_write(path.parent / name) as companion:
                    shutil.move(temporary / name, companion)
            _move(written, target, temporary)
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
                if is_stale and not path.exists() and _holds_both_stores(folder):
                    os.replace(folder / _REPLACED, path)  # killed between the two renames of `_move`
            if is_stale:
                shutil.rmtree(folder, ignore_errors=True)


def _holds_both_stores(folder: Path) -> bool:
    """Return whether a temporary folder holds the store to write and the one that it replaces."""
    return (folder / _REPLACED).is_dir() and sum(is_zarr_store(entry) for entry in folder.iterdir()) == 2


def write_files(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write files into a folder, creating it if necessary, and return their paths; if interrupted, write none.

    The last file is in the folder itself, others may be in folders of it.
    """
    for name in files:
        try:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise write_error(folder, error) from error
    *others, last = files
    with atomic_write(folder / last, tuple(others)) as temporary:
        for name, content in files.items():
            (temporary.parent / name).parent.mkdir(exist_ok=True)
            (temporary.parent / name).write_bytes(content)
    return [folder / name for name in files]


def write_error(path: Path, error: OSError) -> FileError:
    """Return the error for a file that the system cannot write."""
    unchanged = "" if is_stream(path) else "; nothing was changed"
    return FileError(f"{path}: cannot be written: {error.strerror or error}{unchanged}")


def link_target(path: Path) -> Path:
    """Return the path that symbolic links lead to, whether or not it exists; a path that is no link is unchanged."""
    target = Path(os.path.realpath(path)) if os.path.islink(path) else path
    if os.path.islink(target):
        raise FileError(f"{path}: a symbolic link that leads back to itself; choose another name")
    return target


def is_zarr_store(path: Path) -> bool:
    """Return whether a folder is a Zarr store."""
    return any((path / name).is_file() for name in _ZARR_FILES)


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is written into rather than replaced: a device, a pipe, or where standard output goes."""
    status = _status(path)
    if status is None:
        return False
    is_replaceable = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    return not is_replaceable or _descriptor(status) is not None


def is_stdout(path: str | os.PathLike[str]) -> bool:
    """Return whether a path leads to where standard output goes, unless this is the null device."""
    status = _status(path)
    return status is not None and _descriptor(status) == 1 and not is_null_device(path)


def is_null_device(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is the null device, which any number of outputs can share."""
    status, null = _status(path), _status(os.devnull)
    return status is not None and null is not None and os.path.samestat(status, null)


def _status(path: str | os.PathLike[str]) -> os.stat_result | None:
    """Return what the system knows about a file; None if there is no such file."""
    try:
        return os.stat(path)
    except (OSError, ValueError):  # other problems show when it is written
        return None


def _descriptor(status: os.stat_result) -> int | None:
    """Return the descriptor if this file is the standard output or error, as with /dev/stdout; otherwise None."""
    for descriptor in (1, 2):
        with suppress(OSError):  # it may be closed
            if os.path.samestat(status, os.fstat(descriptor)):
                return descriptor
    return None


def _copy_into(written: Path, path: Path) -> None:
    """Copy a file into a device, a pipe, or the standard output or error."""
    if written.is_dir():
        raise FileError(f"{path}: this is a device or a pipe, and a store is a folder; choose another name")
    descriptor = _descriptor(os.stat(path))
    with (
        open(written, "rb") as content,
        open(path if descriptor is None else os.dup(descriptor), "wb") as stream,  # a copy shares the position
    ):
        shutil.copyfileobj(content, stream)


def _move(written: Path, path: Path, temporary: Path) -> None:
    """Rename a file or store to its final path; an old store is restored on an error."""
    if path.is_dir() and not is_zarr_store(path):
        raise FileError(f"{path}: a folder of that name exists; choose another name")
    if not path.is_dir():
        if written.is_dir() and path.exists():
            raise FileError(f"{path}: a file of that name exists, and a store is a folder; choose another name")
        _copy_mode(path, written)
        os.replace(written, path)
        return
    _copy_mode(path, written)
    if written.is_dir() and _exchange(written, path):
        return
    old = temporary / _REPLACED
    try:
        os.replace(path, old)
        os.replace(written, path)
    except BaseException:
        if old.exists() and not path.exists():
            os.replace(old, path)
        raise


def _copy_mode(path: Path, written: Path) -> None:
    """Give what was written the permissions of what it replaces, if there is anything."""
    if path.exists():
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode != stat.S_IMODE(written.stat().st_mode):
            written.chmod(mode)


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two folders by one rename; return False where the system or the file system cannot."""
    name, here = _EXCHANGE.get(sys.platform, ("", 0))
    function = getattr(ctypes.CDLL(None), name, None) if name else None
    if function is None:
        return False
    paths = ctypes.c_char_p(os.fsencode(first)), ctypes.c_char_p(os.fsencode(second))
    failed: int = function(here, paths[0], here, paths[1], ctypes.c_uint(_EXCHANGE_FLAG))
    return not failed
