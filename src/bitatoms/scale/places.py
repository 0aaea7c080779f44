"""What a user hands in that is not in memory, told by its kind: a packed store, or an array of Dask's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from .. import door
from ..algorithms.evidence import AllRows
from ..io.beside import is_store, unwritable
from ..io.errors import FileError
from ..parallel import Workers
from ..table import Names, Picture
from .store import Store, StoreRows


class Place(NamedTuple):
    """Rows somewhere, and what is known of their columns."""

    rows: AllRows
    columns: Names | None
    picture: Picture | None = None


def is_dask(X: Any) -> bool:
    """Whether X is an array or data frame of Dask's."""
    return door.library_of(X) in ("dask", "dask_expr")


def store_of(X: Any) -> Store | None:
    """The store that is meant: one as it is, a path to one, or a group of zarr's that is one."""
    if isinstance(X, Store):
        return X
    if isinstance(X, (str, os.PathLike)):
        return Store(X) if is_store(Path(X)) else None
    if door.library_of(X) == "zarr":
        root = getattr(X.store, "root", None)
        if root is None:
            raise FileError("a zarr group that is no folder on disk was given; bitatoms.pack writes its rows to one")
        return Store(Path(root) / X.path)
    return None


def is_elsewhere(X: Any) -> bool:
    """Whether the rows of X are not in memory."""
    return is_dask(X) or isinstance(X, Store) or door.library_of(X) == "zarr" or _is_path_of_store(X)


def _is_path_of_store(X: Any) -> bool:
    return isinstance(X, (str, os.PathLike)) and is_store(Path(X))


def _make(folder: Path) -> None:
    """Make a folder for a checkpoint, where there is none."""
    if folder.exists() and not folder.is_dir():
        raise FileError(f"{folder}: this is a file, and a checkpoint is a folder; choose another name")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from error


@contextmanager
def opened(
    X: Any, binarize: float | None, workers: Workers, max_memory: int | None, scratch: str | os.PathLike[str] | None
) -> Iterator[Place]:
    """The rows of X, to learn from; what is kept of them only for that is removed in the end."""
    store = store_of(X)
    if store is None:
        from . import dask

        yield Place(dask.rows_of(X, binarize), dask.columns_of(X))
        return
    if scratch is not None:
        _make(Path(scratch))
    with closing(StoreRows(store, workers, max_memory, scratch)) as rows:
        picture = None if store.picture is None else Picture(store.picture.tile)
        yield Place(rows, store.columns, picture)
