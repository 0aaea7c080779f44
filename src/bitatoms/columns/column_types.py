"""The columns of data frames by type: numbers, booleans, or text and categories; dates are refused."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..cell_values import is_missing, package_name
from ..errors import InputError, Parameter
from ..formatting import quoted
from ..frames import column_names, is_frame
from .annotations import Annotations, Labels, Values

_DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


class DateColumn(InputError):
    """A column contains dates or times; ``name`` is its name."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"the column {quoted(name)} contains dates or times; pass what matters of them, such as the month, the "
            "weekday or a duration in days, or leave the column out with ", Parameter("without", name),
        )  # fmt: skip

    def __reduce__(self) -> Any:
        return type(self), (self.name,)


def has_columns(X: Any) -> bool:
    """Return whether X has columns with names and types of their own: a data frame, a mapping or a structured array."""
    return is_frame(X) or isinstance(X, Mapping) or (isinstance(X, np.ndarray) and X.dtype.names is not None)


def names_of_columns(X: Any) -> tuple[str, ...]:
    """Return the names of the columns of a data frame, a mapping or a structured array."""
    if isinstance(X, np.ndarray):
        return tuple(X.dtype.names or ())
    if package_name(X) == "pyarrow":
        return column_names(X) or ()  # without the index of a pandas frame
    return tuple(map(str, X if isinstance(X, Mapping) else X.columns))


def typed_columns(X: Any, names: Sequence[str]) -> dict[str, Values]:
    """Return these columns of a data frame, a mapping or a structured array, by their types.

    Raises
    ------
    DateColumn
        If a column contains dates.
    InputError
        If a column is not one-dimensional, or is not as long as the others.
    """
    indices = {name: index for index, name in enumerate(names_of_columns(X))}
    columns = {name: _typed_column(name, _column(X, name, indices[name])) for name in names}
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        first, *others = lengths
        other = next(name for name in others if lengths[name] != lengths[first])
        raise InputError(
            f"the column {quoted(first)} has {lengths[first]} values and the column {quoted(other)} {lengths[other]}; "
            "pass columns of the same length"
        )
    return columns


def column_values(X: Any, name: str) -> list[Any]:
    """Return the values of a column as they are."""
    return _as_list(_column(X, name, names_of_columns(X).index(name)))


def _as_list(column: Any) -> list[Any]:
    """Return the values of a column of any kind as objects of Python."""
    to_list = next((each for each in ("to_pylist", "to_list", "tolist") if hasattr(column, each)), None)
    return list(column if to_list is None else getattr(column, to_list)())


def _column(X: Any, name: str, index: int) -> Any:
    """Return a column; its name need not be text in pandas and in mappings."""
    if package_name(X) == "pandas":
        return X.iloc[:, index]
    if package_name(X) == "pyarrow":
        return X.column(name)
    return list(X.values())[index] if isinstance(X, Mapping) else X[name]


def _typed_column(name: str, column: Any) -> Values:
    """Return a column by its type."""
    package = package_name(column)
    if package in ("polars", "pyarrow"):
        if type(getattr(column, "dtype", None)).__name__ != "Enum":
            return _typed_values(name, _as_list(column))
        categories = column.dtype.categories.to_list()  # of polars, which keep their order
        codes = column.to_physical().cast(int).fill_null(-1).to_numpy()
        return Labels.of_categories(codes, np.array(categories, object))
    if package == "pandas":
        distinct = getattr(column.dtype, "categories", None)
        if _are_dates(column.dtype) or (
            distinct is not None and (_are_dates(distinct.dtype) or any(isinstance(each, _DATES) for each in distinct))
        ):
            raise DateColumn(name)
        if column.dtype != object:
            return Annotations.from_pandas(column.to_frame(name)).values_of(name)
        return _typed_values(name, column.tolist())
    if isinstance(column, np.ma.MaskedArray) and column.dtype.kind in "biuf" and column.ndim == 1:
        return column
    array: NDArray[Any] = np.asarray(column, None if isinstance(column, np.ndarray) else object)
    if array.ndim != 1:
        raise InputError(f"the column {quoted(name)} has shape {array.shape}; pass one value for each row")
    if array.dtype.kind in "mM":
        raise DateColumn(name)
    return array if array.dtype.kind in "biuf" else _typed_values(name, array.tolist())


def _are_dates(dtype: Any) -> bool:
    """Return whether a type of pandas is that of dates, times or periods."""
    return getattr(dtype, "kind", "O") in "mM" or type(dtype).__name__ == "PeriodDtype"


def _typed_values(name: str, values: list[Any]) -> Values:
    """Return a list of values by the type that all of them have: booleans, numbers, or else text."""
    kinds = set(map(type, values))  # few, while there may be many values
    if any(issubclass(kind, _DATES) for kind in kinds):
        raise DateColumn(name)
    if str in kinds:
        return Labels.of(values)
    missing = np.array([is_missing(value) for value in values], bool)
    known = {type(value) for value, lacks in zip(values, missing, strict=True) if not lacks}
    filled = [0 if lacks else value for value, lacks in zip(values, missing, strict=True)]
    if known and all(issubclass(kind, (bool, np.bool_)) for kind in known):
        return np.ma.MaskedArray(np.array(filled, bool), missing)
    if all(issubclass(kind, (Real, Decimal, np.bool_)) for kind in known):
        are_integers = all(issubclass(kind, (int, np.integer)) for kind in known) and all(
            abs(int(value)) < 2**63 for value in filled
        )
        return np.ma.MaskedArray(np.array(filled, np.int64 if are_integers else np.float64), missing)
    return Labels.of(values)
