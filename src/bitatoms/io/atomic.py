"""Atomic writes: a file is written in a temporary folder next to it and then renamed, so it is complete or absent.

The folder is hidden, and its name ends with ``.part``. A process that is killed leaves it; it can be deleted.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ..system.interrupts import deferred_interrupts
from .errors import FileError

_ZARR_FILES = ("zarr.json", ".zgroup", ".zarray")
_REPLACED = "replaced store"  # in a temporary folder; no output has such a name
_NAME_LENGTH = 40  # characters of a file's name in the name of its temporary folder
_EXCHANGE = {"linux": ("renameat2", -100), "darwin": ("renameatx_np", -2)}  # the function, and its AT_FDCWD
_EXCHANGE_FLAG = 2  # on both systems


@contextmanager
def atomic_write(path: Path, companions: tuple[str, ...] = ()) -> Iterator[Path]:
    """Yield a temporary path; what is written there replaces ``path`` at the end.

    ``companions`` are files that are written next to it, by their paths from its folder, and moved along. On an error,
    the temporary files are removed and ``path`` is unchanged. Symbolic links are followed, and the mode of an existing
    file or store is kept.
    """
    target = link_target(path)
    if not target.parent.is_dir():
        raise FileError(f"{path}: there is no folder {str(target.parent)!r}; create it first")
    temporary: Path | None = None
    try:
        prefix = f".{target.name[:_NAME_LENGTH]}."
        temporary = Path(tempfile.mkdtemp(prefix=prefix, suffix=".part", dir=target.parent))
        written = temporary / path.name  # the full name, because libraries depend on its extension
        yield written
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
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


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
    return FileError(f"{path}: cannot be written: {error.strerror or error}; nothing was changed")


def link_target(path: Path) -> Path:
    """Return the path that symbolic links lead to, whether or not it exists; a path that is not a link is unchanged."""
    target = Path(os.path.realpath(path)) if os.path.islink(path) else path
    if os.path.islink(target):
        raise FileError(f"{path}: a symbolic link that leads back to itself; choose another name")
    check_file(path)
    return target


def check_file(path: str | os.PathLike[str]) -> None:
    """Raise if a path exists and is neither a file nor a folder: a device or a pipe."""
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise FileError(f"{os.fspath(path)}: a device or a pipe, not a file; commands read and write streams as -")


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
