"""Tables that estimators return: of the type of the table that was passed, with its index and its types of columns."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config

from .. import frames
from ..bits import BitMatrix
from ..cell_values import as_csr, is_sparse, package_name
from ..columns.column_types import names_of_columns
from ..columns.encoding import Encoding
from ..columns.table import Table
from ..frames import is_frame


def completed_as_given(X: Any, completed: BitMatrix, table: Table, encoding: Encoding | None) -> Any:
    """Return completed bits as X is: an array of its dtype, a data frame with its index and dtypes, a Table and so on.

    Files and AnnData become a Table. ``table`` has the bits and the names that X was matched by, ``encoding`` is the
    one that X was encoded by. Numbers of copies become numbers of copies; known ones need not be whole, and stay.
    """
    if isinstance(X, BitMatrix):
        return completed
    made = table.with_bits(completed)
    if isinstance(X, (Table, str, os.PathLike)) or frames.is_anndata(X):
        return made
    if encoding is not None and encoding.is_of_copies and len(encoding.columns) == table.shape[1]:
        return _copies_as_given(X, made, table, encoding)
    if is_sparse(X):
        return completed.to_sparse().astype(X.dtype)
    return frame_like(X, completed.to_dense(dense_dtype(X)), table.columns, keeps_types=True)


def transformed(
    estimator: Any, X: Any, values: NDArray[Any], columns: Iterable[Any] | None, keeps_types: bool = False
) -> Any:
    """Return what a transformer makes of X, as `frame_like` does, or an array for the frames of ``set_output``.

    A pyarrow table has no index column, which the next step of a pipeline would take for a feature.
    """
    if chosen_output(estimator) != "default":
        return values
    if is_frame(X) and package_name(X) == "pyarrow":
        X = X.drop_columns(list(frames.arrow_index(X)))
    return frame_like(X, values, columns, keeps_types)


def chosen_output(estimator: Any) -> str:
    """Return the type that scikit-learn's ``set_output`` or ``set_config`` chose: "default", "pandas" or "polars"."""
    chosen: str = getattr(estimator, "_sklearn_output_config", {}).get("transform", get_config()["transform_output"])
    return chosen


def frame_like(X: Any, values: NDArray[Any], columns: Iterable[Any] | None, keeps_types: bool = False) -> Any:
    """Return values for the rows of X as X is, if it is a data frame: of the same package, with its index.

    Of anything else than data frames, the values are returned as they are. ``columns`` are the names of the values, by
    default those of X; with ``keeps_types``, columns that X has are of their type there.
    """
    if not is_frame(X):
        return values
    package, library = package_name(X), sys.modules[package_name(X)]
    if package == "pandas":
        names = X.columns if columns is None else list(columns)
        frame = library.DataFrame(values, index=X.index, columns=names)
        if not keeps_types or not X.columns.is_unique:
            return frame
        return frame.astype({name: X[name].dtype for name in names if name in X.columns and X[name].dtype != object})
    names = names_of_columns(X) if columns is None else tuple(map(str, columns))
    if package == "polars":
        made = library.DataFrame(values, schema=names)
        return made.cast({name: X.schema[name] for name in names if keeps_types and name in X.columns})
    types = {field.name: field.type for field in X.schema} if keeps_types else {}
    arrays = {name: library.array(np.ascontiguousarray(own)) for name, own in zip(names, values.T, strict=True)}
    return columns_like(X, {name: array.cast(types.get(name, array.type)) for name, array in arrays.items()})


def series_like(X: Any, values: NDArray[Any], name: str) -> Any:
    """Return one value per row of X: as a series with its index if X is a data frame of pandas, and so on."""
    if not is_frame(X):
        return values
    package, library = package_name(X), sys.modules[package_name(X)]
    if package == "pyarrow":
        return library.array(values)
    return library.Series(values, X.index, name=name) if package == "pandas" else library.Series(name, values)


def columns_like(X: Any, columns: Mapping[str, Any]) -> Any:
    """Return a data frame of these columns as the data frame X is, with its index; the columns if X is not one."""
    if not is_frame(X):
        return columns
    package, library = package_name(X), sys.modules[package_name(X)]
    if package == "pandas":
        return library.DataFrame(columns, index=X.index)
    if package == "polars":
        return library.DataFrame(columns)
    index = frames.arrow_index(X)  # which pandas stored in X
    if not index:
        return library.table(columns)
    frame = library.table(columns).to_pandas().set_axis(X.select(list(index)).to_pandas().index)
    return library.Table.from_pandas(frame)


def dense_dtype(X: Any) -> np.dtype[Any]:
    """Return the dtype for the values of X: its own, if it is one of numbers or booleans."""
    dtype = getattr(X, "dtype", None)
    return dtype if isinstance(dtype, np.dtype) and dtype.kind in "biuf" else np.dtype(np.uint8)


def _copies_as_given(X: Any, completed: Table, table: Table, encoding: Encoding) -> Any:
    """Return numbers of copies as X is, one column for each variant of the model."""
    if is_frame(X):
        has_names = frames.column_names(X) is not None
        given = X if has_names else X.set_axis([variable.name for variable in encoding.variables], axis=1)
        of_given = set(names_of_columns(given))
        columns = {
            name: _filled_column(given[name] if name in of_given else None, values)
            for name, values in encoding.decode(completed, given).items()
        }
        frame = columns_like(X, columns)
        if package_name(X) != "pandas":
            return frame
        return frame.rename_axis(X.columns.name, axis=1) if has_names else frame.set_axis(X.columns, axis=1)
    copies, is_missing = completed.to_dosages(), np.isnan(table.to_dosages())
    if is_sparse(X):
        filled = as_csr(X, "X").copy()
        rows = np.repeat(np.arange(filled.shape[0]), np.diff(filled.indptr))
        stored = is_missing[rows, filled.indices]  # a missing number is stored: it is not zero
        filled.data[stored] = copies[rows, filled.indices][stored]
        filled.eliminate_zeros()
        return filled
    numbers = np.ma.getdata(X)
    made = numbers.astype(np.uint8 if numbers.dtype.kind == "b" else numbers.dtype)
    made[is_missing] = copies[is_missing]
    return made


def _filled_column(given: Any, values: Sequence[Any]) -> Any:
    """Return a column without missing values, of the type of the given one if that has numbers; None if it is absent.

    Numbers of copies need not be among the values of booleans or categories.
    """
    package = "" if given is None else package_name(given)
    if package == "pandas":
        import pandas as pd

        if not given.isna().any():
            return given
        kind = given.dtype.kind
        return pd.Series(values, given.index, "UInt8" if kind == "b" else given.dtype if kind in "iuf" else object)
    if package == "polars":
        import polars as pl

        if not given.null_count() and not (given.dtype.is_float() and given.is_nan().any()):
            return given
        return pl.Series(given.name, values, pl.UInt8 if given.dtype == pl.Boolean else given.dtype)
    if package == "pyarrow":
        import pyarrow as pa

        return pa.array(values, pa.uint8() if pa.types.is_boolean(given.type) else given.type)
    return np.array(values, np.uint8)
