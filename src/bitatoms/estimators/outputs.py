"""Tables that estimators return: of the type of the table that was passed, with its index and its types of columns."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import frames
from ..bits import BitMatrix
from ..cell_values import as_csr, is_sparse, package_name
from ..columns.encoding import Encoding
from ..columns.frame_columns import names_of_columns
from ..columns.table import Names, Table
from ..columns.variants import pairs, unpack_dosages


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
    return table_as_given(X, completed.to_dense(dense_dtype(X)), table.columns, keeps_types=True)


def table_as_given(X: Any, values: NDArray[Any], columns: Names | None, keeps_types: bool = False) -> Any:
    """Return rows of the features of X as X is, if it is a data frame: with its index, and the types of its columns.

    Of anything else than data frames, the values are returned as they are.
    """
    package = package_name(X)
    if package == "pyarrow":
        return _as_arrow(X, values, columns, keeps_types)
    if package not in ("pandas", "polars") or not hasattr(X, "columns"):
        return values
    names = X.columns if columns is None else list(columns)
    if package == "pandas":
        import pandas as pd

        frame = pd.DataFrame(values, index=X.index, columns=names)
        if not keeps_types or not X.columns.is_unique:
            return frame
        return frame.astype({name: X[name].dtype for name in names if name in X.columns and X[name].dtype != object})
    import polars as pl

    made = pl.DataFrame(values, schema=list(names))
    return made.with_columns(pl.col(name).cast(X.schema[name]) for name in names if keeps_types and name in X.columns)


def values_by_row(X: Any, values: NDArray[Any], name: str) -> Any:
    """Return one value per row of X: as a series with its index if X is a data frame of pandas, or one of polars."""
    package = package_name(X)
    if package not in ("pandas", "polars") or not hasattr(X, "columns"):
        return values
    if package == "pandas":
        import pandas as pd

        return pd.Series(values, X.index, name=name)
    import polars as pl

    return pl.Series(name, values)


def dense_dtype(X: Any) -> np.dtype[Any]:
    """Return the dtype for the values of X: its own, if it is one of numbers or booleans."""
    dtype = getattr(X, "dtype", None)
    return dtype if isinstance(dtype, np.dtype) and dtype.kind in "biuf" else np.dtype(np.uint8)


def _as_arrow(X: Any, values: NDArray[Any], columns: Names | None, keeps_types: bool) -> Any:
    """Return a pyarrow table with the index that pandas stored in X, and the types of the columns of X."""
    import pyarrow as pa

    names = frames.column_names(X) or () if columns is None else columns
    made = {name: pa.array(np.ascontiguousarray(column)) for name, column in zip(names, values.T, strict=True)}
    types = {field.name: field.type for field in X.schema} if keeps_types else {}
    return _arrow_with_index(X, {name: column.cast(types.get(name, column.type)) for name, column in made.items()})


def _arrow_with_index(X: Any, columns: dict[str, Any]) -> Any:
    """Return a pyarrow table of these columns with the index that pandas stored in X, if it did."""
    import pyarrow as pa

    index = frames.arrow_index(X)
    if not index:
        return pa.table(columns)
    return pa.Table.from_pandas(pa.table(columns).to_pandas().set_axis(X.select(list(index)).to_pandas().index))


def _copies_as_given(X: Any, completed: Table, table: Table, encoding: Encoding) -> Any:
    """Return numbers of copies as X is, one column for each variant of the model."""
    package = package_name(X)
    if package in ("pandas", "polars", "pyarrow"):
        has_names = frames.column_names(X) is not None
        given = X if has_names else X.set_axis([variable.name for variable in encoding.variables], axis=1)
        of_given = set(names_of_columns(given))
        columns = {
            name: _filled_column(given[name] if name in of_given else None, values)
            for name, values in encoding.decode(completed, given).items()
        }
        if package == "pyarrow":
            return _arrow_with_index(X, columns)
        if package == "polars":
            return type(X)(columns)
        frame = type(X)(columns, index=X.index)
        return frame.rename_axis(X.columns.name, axis=1) if has_names else frame.set_axis(X.columns, axis=1)
    variants = pairs(table.column_data, table.columns)
    copies, is_missing = (
        np.ma.getdata(unpack_dosages(completed.bits, variants)),
        np.ma.getmaskarray(unpack_dosages(table.bits, variants)),
    )
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
