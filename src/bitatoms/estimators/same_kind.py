"""Completed tables, in the kind of container that was given."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .. import dataframes, validation
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
