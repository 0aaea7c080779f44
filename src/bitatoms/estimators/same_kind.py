"""Completed tables, in the kind of container that was given."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import dataframes, validation, variants
from ..bits import BitMatrix
from ..table import Table


def as_given(X: Any, completed: BitMatrix, table: Table) -> Any:
    """Return completed bits as X is: an array of its dtype, a data frame with its index and dtypes, a Table and so on.

    ``table`` has the names that X was matched by. Files, AnnData and pyarrow tables become a Table.
    """
    if isinstance(X, BitMatrix):
        return completed
    package = validation.package_name(X)
    if isinstance(X, (Table, str, os.PathLike)) or dataframes.is_anndata(X) or package == "pyarrow":
        return table.with_bits(completed)
    if package == "pandas" and hasattr(X, "columns"):
        return _as_pandas(X, completed, table)
    if package == "polars" and hasattr(X, "columns"):
        return _as_polars(X, completed, table)
    if validation.is_sparse(X):
        return completed.to_sparse().astype(X.dtype)
    return completed.to_dense(dense_dtype(X))


def copies_as_given(X: Any, completed: BitMatrix, table: Table) -> Any:
    """Return numbers of copies as X is, with the missing ones filled in; known ones need not be whole, and stay.

    Columns are the variants of the model. ``table`` has the bits of X before they were completed.
    """
    package, data = validation.package_name(X), table.column_data
    is_paired = data is not None and 2 * len(variants.pairs(data)) == table.shape[1]
    if data is None or not is_paired or dataframes.is_anndata(X) or package == "pyarrow":
        return as_given(X, completed, table)
    columns = table.names_of(range(table.shape[1]))
    names, numbers = variants.unpack_dosages(completed, data, columns)
    is_missing = np.ma.getmaskarray(variants.unpack_dosages(table.bits, data, columns)[1])
    copies = np.ma.getdata(numbers)
    if package == "pandas" and hasattr(X, "columns"):
        return _pandas_copies(X, names, copies, is_missing)
    if package == "polars" and hasattr(X, "columns"):
        return _polars_copies(X, names, copies, is_missing)
    if validation.is_sparse(X):
        filled = validation.as_csr(X, "X").copy()
        rows = np.repeat(np.arange(filled.shape[0]), np.diff(filled.indptr))
        stored = is_missing[rows, filled.indices]  # a missing number is stored: it is not zero
        filled.data[stored] = copies[rows, filled.indices][stored]
        filled.eliminate_zeros()
        return filled
    given = np.ma.getdata(X)
    values = given.astype(np.uint8 if given.dtype.kind == "b" else given.dtype)
    values[is_missing] = copies[is_missing]
    return values


def dense_dtype(X: Any) -> np.dtype[Any]:
    """Return the dtype for the values of X: its own, if it is one of numbers or booleans."""
    dtype = getattr(X, "dtype", None)
    return dtype if isinstance(dtype, np.dtype) and dtype.kind in "biuf" else np.dtype(np.uint8)


def _as_pandas(X: Any, completed: BitMatrix, table: Table) -> Any:
    """Return a pandas frame with the index of X and, for the columns of X, their dtypes."""
    import pandas as pd

    columns = X.columns if table.columns is None else list(table.columns)
    frame = pd.DataFrame(completed.to_dense(), index=X.index, columns=columns)
    if not X.columns.is_unique:
        return frame
    kept = [name for name in frame.columns if name in X.columns and X[name].dtype != object]
    return frame.astype({name: X[name].dtype for name in kept})


def _as_polars(X: Any, completed: BitMatrix, table: Table) -> Any:
    """Return a polars frame with the dtypes of the columns of X."""
    import polars as pl

    columns = X.columns if table.columns is None else list(table.columns)
    frame = pl.DataFrame(completed.to_dense(), schema=list(columns))
    numbers = [pl.col(name).cast(X.schema[name]) for name in columns if name in X.columns]
    return frame.with_columns(numbers)


def _pandas_copies(X: Any, names: Sequence[str], copies: NDArray[np.uint8], is_missing: NDArray[np.bool_]) -> Any:
    """Return a pandas frame of numbers of copies with the index of X, and its dtypes if these are of numbers."""
    import pandas as pd

    has_names = dataframes.column_names(X) is not None
    columns = []
    for number, name in enumerate(names):
        missing = is_missing[:, number]
        if has_names and name not in X.columns:
            columns.append(pd.Series(copies[:, number], X.index))
            continue
        column = X[name] if has_names else X.iloc[:, number]
        if missing.any():
            if column.dtype.kind == "b":
                column = column.astype("UInt8")
            dtype = column.dtype if column.dtype.kind in "iuf" else np.dtype(object)
            values = column.to_numpy(dtype if isinstance(dtype, np.dtype) else object, copy=True)
            values[missing] = copies[missing, number]
            column = pd.Series(values, X.index, dtype)
        columns.append(column)
    frame = pd.concat(columns, axis=1)
    frame.columns = pd.Index(names, name=X.columns.name) if has_names else X.columns
    return frame


def _polars_copies(X: Any, names: Sequence[str], copies: NDArray[np.uint8], is_missing: NDArray[np.bool_]) -> Any:
    """Return a polars frame of numbers of copies with the dtypes of the columns of X."""
    import polars as pl

    columns = []
    for number, name in enumerate(names):
        column, missing = pl.Series(name, copies[:, number]), is_missing[:, number]
        if name in X.columns:
            given = X[name]
            dtype = pl.UInt8 if given.dtype == pl.Boolean and missing.any() else given.dtype
            column = column.cast(dtype).zip_with(pl.Series(missing), given.cast(dtype)) if missing.any() else given
        columns.append(column)
    return pl.DataFrame(columns)
