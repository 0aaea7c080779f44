"""Annotations: what is known about the rows or the columns of a table besides their names, such as positions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .validation import is_missing


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """Text of which equal values are stored once.

    Attributes
    ----------
    codes : ndarray of int32
        For each value its index in ``categories``, or -1 if it is missing.
    categories : tuple of str
        The distinct values.
    is_categorical : bool
        Whether the values are categories, as in pandas, whose list and order are kept.
    is_ordered : bool
        Whether these categories are ordered.
    """

    codes: NDArray[np.int32]
    categories: tuple[str, ...]
    is_categorical: bool = False
    is_ordered: bool = False

    @classmethod
    def of(cls, values: Sequence[Any]) -> Labels:
        """Return text, in which None and NaN are missing."""
        index: dict[str, int] = {}
        codes = [-1 if is_missing(value) else index.setdefault(str(value), len(index)) for value in values]
        return cls(np.array(codes, np.int32), tuple(index))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, indices: Any) -> Labels:
        """Return some of the values."""
        return Labels(self.codes[indices], self.categories, self.is_categorical, self.is_ordered)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the values as strings; missing ones are None."""
        return np.array((*self.categories, None), object)[self.codes]


class Groups(NamedTuple):
    """Groups of rows, such as populations: the number of the group of each row, and the names of the groups."""

    numbers: NDArray[np.intp]
    names: tuple[str, ...]

    @classmethod
    def of(cls, values: Any) -> Groups:
        """Return the groups that occur: in the order of the categories, if there are any, else sorted by name.

        Missing values are a group of their own, "unknown", the last one.
        """
        if isinstance(values, Labels):
            categories, values = values.categories if values.is_categorical else None, np.asarray(values)
        else:
            categories = getattr(getattr(values, "dtype", None), "categories", None)
        texts = ["unknown" if is_missing(value) else str(value) for value in values]
        found = set(texts)
        order = sorted(found - {"unknown"}) if categories is None else map(str, categories)
        names = tuple(name for name in dict.fromkeys([*order, "unknown"]) if name in found)
        index = {name: number for number, name in enumerate(names)}
        return cls(np.array([index[text] for text in texts], np.intp), names)


Values: TypeAlias = Labels | NDArray[Any]  # numbers may be a masked array, in which masked values are missing


class Annotations(Mapping[str, NDArray[Any]]):
    """What is known about the rows or the columns of a table, by field: one value for each of them.

    Values are text, integers, floats or booleans. They are not used to learn; the fields that `bitatoms.variants` lists
    identify the columns of genotypes.

    Parameters
    ----------
    fields : mapping of str to array-like
        For each field, its values. Those of type str are text; None and NaN are then missing.
    n : int
        The number of rows or columns.

    Examples
    --------
    >>> from bitatoms.annotations import Annotations
    >>> about = Annotations({"chromosome": ["1", "X"], "position": [12345, 678]}, 2)
    >>> about["position"]
    array([12345,   678])
    >>> about
    Annotations of 2: chromosome, position
    """

    __slots__ = ("_fields", "n")

    def __init__(self, fields: Mapping[str, Any] | None = None, n: int = 0) -> None:
        self.n = n
        self._fields = {str(name): _as_values(str(name), values, n) for name, values in (fields or {}).items()}

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return the values of a field; text as objects of type str, or None where it is missing."""
        values = self._fields[name]
        return np.asarray(values) if isinstance(values, Labels) else values

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Annotations):
            return NotImplemented
        if self.n != other.n or list(self) != list(other):
            return False
        return all(_equal(values, other._fields[name]) for name, values in self._fields.items())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Annotations of {self.n}: {', '.join(self) or 'no fields'}"

    def values_of(self, name: str) -> Values:
        """Return the values of a field as they are stored."""
        return self._fields[name]

    def take(self, indices: Any) -> Annotations:
        """Return the annotations of some rows or columns, in this order."""
        indices = np.asarray(indices)
        n = int(indices.sum()) if indices.dtype == bool else len(indices)
        return Annotations({name: values[indices] for name, values in self._fields.items()}, n)

    def updated(self, **fields: ArrayLike | Labels) -> Annotations:
        """Return these annotations with other fields added or replaced."""
        return Annotations({**self._fields, **fields}, self.n)

    def to_pandas(self, index: Sequence[str] | None = None) -> Any:
        """Return the annotations as a pandas DataFrame, with an index if it is given."""
        import pandas as pd

        columns = {name: _to_pandas(values) for name, values in self._fields.items()}
        frame = pd.DataFrame(columns, index=pd.RangeIndex(self.n))
        if index is not None:
            frame.index = pd.Index(index, dtype=object)
        return frame

    @classmethod
    def from_pandas(cls, frame: Any) -> Annotations:
        """Return the columns of a pandas DataFrame; other types than those of numbers and booleans become text."""
        return cls({str(name): _from_pandas(frame.iloc[:, k]) for k, name in enumerate(frame.columns)}, len(frame))


def _as_values(name: str, values: ArrayLike | Labels, n: int) -> Values:
    """Return the values of a field as they are stored, after checking that there are ``n``."""
    if not isinstance(values, Labels):
        array = values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
        if array.ndim != 1:
            raise ValueError(f"the annotation {name!r} has shape {array.shape}; expected one value for each of {n}")
        values = array if array.dtype.kind in "biuf" else Labels.of(array.tolist())
    if len(values) != n:
        raise ValueError(f"the annotation {name!r} has {len(values)} values; expected {n}")
    return values


def _equal(a: Values, b: Values) -> bool:
    """Return whether the values of two fields are the same, missing ones included."""
    if isinstance(a, Labels) or isinstance(b, Labels):
        return isinstance(a, Labels) and isinstance(b, Labels) and np.asarray(a).tolist() == np.asarray(b).tolist()
    masks = np.ma.getmaskarray(a), np.ma.getmaskarray(b)
    return np.array_equal(*masks) and np.array_equal(
        np.ma.getdata(a)[~masks[0]], np.ma.getdata(b)[~masks[1]], equal_nan=a.dtype.kind == "f" == b.dtype.kind
    )


def _to_pandas(values: Values) -> Any:
    """Return the values of a field as a pandas array."""
    import pandas as pd

    if isinstance(values, Labels):
        if not values.is_categorical:
            return np.asarray(values)
        return pd.Categorical.from_codes(values.codes, list(values.categories), ordered=values.is_ordered)
    if not isinstance(values, np.ma.MaskedArray):
        return values
    arrays = {"b": pd.arrays.BooleanArray, "f": pd.arrays.FloatingArray}
    array = arrays.get(values.dtype.kind, pd.arrays.IntegerArray)
    return array(np.ma.getdata(values).copy(), np.ma.getmaskarray(values).copy())


def _from_pandas(column: Any) -> ArrayLike | Labels:
    """Return a column of a DataFrame as the values of a field."""
    import pandas as pd

    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        codes = np.asarray(column.cat.codes, np.int32)
        return Labels(codes, tuple(map(str, column.cat.categories)), True, bool(column.cat.ordered))
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return np.asarray(column)
    mask = np.asarray(column.isna())
    if not isinstance(dtype, np.dtype) and getattr(dtype, "kind", "O") in "biuf":
        kept = np.asarray(column.fillna(column.dtype.type(0))).astype(dtype.numpy_dtype)
        return np.ma.MaskedArray(kept, mask)
    return Labels.of([None if missing else value for value, missing in zip(column, mask, strict=True)])
