"""What a user hands in that is not in memory, told by its kind: a packed store, or an array of Dask's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from .. import validation
from ..io.atomic import is_zarr_store
from ..io.errors import FileError
from ..parallel import Workers
from ..table import Names, Picture
from .checkpoint import make_folder
from .source import RowSource
from .store import Store, StoreRows


class OpenedRows(NamedTuple):
    """Rows somewhere, and what is known of their columns."""

    rows: RowSource
    columns: Names | None
    picture: Picture | None = None


def is_dask(X: Any) -> bool:
    """Whether X is an array or data frame of Dask's."""
    return validation.package_name(X) in ("dask", "dask_expr")


def store_of(X: Any, binarize: float | None = None) -> Store | None:
    """The store that is meant: one as it is, a path to one, or a group of zarr's that is one."""
    store = X if isinstance(X, Store) else None
    if isinstance(X, (str, os.PathLike)) and is_zarr_store(Path(X)):
        store = Store(X)
    elif validation.package_name(X) == "zarr":
        root = getattr(X.store, "root", None)
        if root is None:
            raise FileError("a zarr group that is no folder on disk was given; bitatoms.pack writes its rows to one")
        store = Store(Path(root) / X.path)
    if store is not None and binarize is not None and not 0 <= binarize < 1:
        raise ValueError(f"a packed store holds 0 and 1, of which none is above binarize={binarize}; give it to pack")
    return store


def is_elsewhere(X: Any) -> bool:
    """Whether the rows of X are not in memory."""
    return is_dask(X) or isinstance(X, Store) or validation.package_name(X) == "zarr" or _is_path_of_store(X)


def _is_path_of_store(X: Any) -> bool:
    return isinstance(X, (str, os.PathLike)) and is_zarr_store(Path(X))


@contextmanager
def open_rows(
    X: Any,
    binarize: float | None,
    workers: Workers,
    max_memory: int | None,
    scratch: str | os.PathLike[str] | None,
    client: Any = None,
) -> Iterator[OpenedRows]:
    """The rows of X, to learn from; what is kept of them only for that is removed in the end."""
    store = store_of(X, binarize)
    if store is None:
        from .dask import rows_of
        from .dask_partitions import columns_of

        yield OpenedRows(rows_of(X, binarize, client), columns_of(X))
        return
    if scratch is not None:
        make_folder(Path(scratch))
    with closing(StoreRows(store, workers, max_memory, scratch)) as rows:
        picture = None if store.picture is None else Picture(store.picture.tile)
        yield OpenedRows(rows, store.columns, picture)
