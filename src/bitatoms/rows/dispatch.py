"""Dispatch on the type of X: a packed store, or a Dask array or data frame."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from .. import validation
from ..errors import InputError, Parameter
from ..io.atomic import is_zarr_store
from ..io.errors import FileError
from ..parallel import Workers
from ..parameters import DeviceChoice
from ..table import Header, Picture
from .checkpoint import make_folder
from .source import RowSource
from .store import Store, StoreRows


class OpenedRows(NamedTuple):
    """Rows to learn from, and what is known about their columns."""

    rows: RowSource
    header: Header
    picture: Picture | None = None


def is_dask(X: Any) -> bool:
    """Return whether X is a Dask array or data frame."""
    return validation.package_name(X) in ("dask", "dask_expr")


def is_out_of_core(X: Any) -> bool:
    """Return whether the rows of X are not in memory."""
    return is_dask(X) or isinstance(X, Store) or validation.package_name(X) == "zarr" or _is_store_path(X)


def _is_store_path(X: Any) -> bool:
    return isinstance(X, (str, os.PathLike)) and is_zarr_store(Path(X))


def as_store(X: Any, binarize: float | None = None) -> Store | None:
    """Return X as a store if it is one, the path of one, or a zarr group that is one; otherwise None."""
    store = X if isinstance(X, Store) else None
    if _is_store_path(X):
        store = Store(X)
    elif validation.package_name(X) == "zarr":
        root = getattr(X.store, "root", None)
        if root is None:
            raise FileError("the zarr group is not a folder on disk; write its rows to one with bitatoms.pack")
        store = Store(Path(root) / X.path)
    if store is not None and binarize is not None and not 0 <= binarize < 1:
        raise InputError(
            "a packed store contains only 0 and 1, none of which is above ",
            Parameter("binarize", binarize),
            "; pass it to bitatoms.pack instead",
        )
    return store


@contextmanager
def open_rows(
    X: Any,
    binarize: float | None,
    workers: Workers,
    max_memory: int | None,
    code_folder: str | os.PathLike[str] | None,
    client: Any = None,
    device: DeviceChoice = "cpu",
) -> Iterator[OpenedRows]:
    """Open the rows of X to learn from; temporary files are removed on exit. Workers of Dask choose their device."""
    store = as_store(X, binarize)
    if store is None:
        from .dask import DaskRows
        from .dask_partitions import column_names

        rows = DaskRows(X, binarize, client, device)
        yield OpenedRows(rows, Header(rows.n_features, column_names(X)))
        return
    if code_folder is not None:
        make_folder(Path(code_folder))
    with closing(StoreRows(store, workers, max_memory, code_folder)) as store_rows:
        picture = None if store.picture is None else Picture(store.picture.tile)
        yield OpenedRows(store_rows, store.header, picture)
