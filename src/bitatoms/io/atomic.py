"""Files are written beside their place and then renamed: there whole, or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from .errors import FileError

_STORE_MARKS = ("zarr.json", ".zgroup", ".zarray")


@contextmanager
def atomic_write(path: Path, companions: tuple[str, ...] = ()) -> Iterator[Path]:
    """A path in a fresh folder beside ``path``; what is written there takes the place of ``path`` at the end.

    ``companions`` are names of files that are written beside it and go along. On any error the folder is removed, and
    what was at ``path`` is as it was.
    """
    folder = path.parent
    if not folder.is_dir():
        raise FileError(f"{path}: there is no folder {str(folder)!r}; make it first")
    try:
        workplace = Path(tempfile.mkdtemp(prefix=f".{path.name[:40]}.", suffix=".part", dir=folder))
    except OSError as error:
        raise write_error(path, error) from error
    try:
        made = workplace / path.name  # the whole name, for libraries go by its ending
        yield made
        for name in companions:
            _put(workplace / name, folder / name, workplace)
        _put(made, path, workplace)
    except OSError as error:
        raise write_error(path, error) from error
    except UnicodeEncodeError as error:
        letter = ascii(error.object[error.start])
        raise FileError(f"{path}: a name holds {letter}, which cannot be written as text; rename it") from error
    finally:
        shutil.rmtree(workplace, ignore_errors=True)


def write_files(folder: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write files into a folder, which is made if it is not there, in this order; returns where they are."""
    for name in files:
        try:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise write_error(folder, error) from error
    for name, content in files.items():
        with atomic_write(folder / name) as made:
            made.write_bytes(content)
    return [folder / name for name in files]


def write_error(path: Path, error: OSError) -> FileError:
    """The error of a file that the system would not write."""
    return FileError(f"{path}: cannot be written: {error.strerror or error}; nothing was changed")


def is_zarr_store(path: Path) -> bool:
    """Whether this folder is a Zarr store."""
    return any((path / mark).is_file() for mark in _STORE_MARKS)


def _put(made: Path, path: Path, workplace: Path) -> None:
    """Rename what was made to its place; a store that was there goes first, and comes back on an error."""
    if path.is_dir() and not is_zarr_store(path):
        raise FileError(f"{path}: there is a folder of that name; choose another name")
    if not path.is_dir():
        if made.is_dir() and path.exists():
            raise FileError(f"{path}: there is a file of that name, and a store is a folder; choose another name")
        os.replace(made, path)
        return
    old = workplace / "what was there before"
    os.replace(path, old)
    try:
        os.replace(made, path)
    except OSError:
        os.replace(old, path)
        raise
