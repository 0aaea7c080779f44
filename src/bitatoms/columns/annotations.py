"""Annotations: what is known about the rows or the columns of a table besides their names, such as positions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..cell_values import is_missing, package_name
from ..frames import is_anndata, is_obsm, layer_values
from ..system.libraries import import_library


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
    category_type : str
        The NumPy type of categories that are numbers or booleans, such as "<i8"; empty if they are text.
    is_nullable : bool
        Whether the text, if it has no categories, was of the nullable type of pandas.
    """

    codes: NDArray[np.int32]
    categories: tuple[str, ...]
    is_categorical: bool = False
    is_ordered: bool = False
    category_type: str = ""
    is_nullable: bool = False

    @classmethod
    def of(cls, values: Sequence[Any], is_nullable: bool = False) -> Labels:
        """Return text, in which None and NaN are missing."""
        index: dict[str, int] = {}
        codes = [
            index.setdefault(value, len(index))
            if type(value) is str
            else -1
            if value is None or is_missing(value)
            else index.setdefault(_to_text(value), len(index))
            for value in values
        ]
        return cls(np.array(codes, np.int32), tuple(index), is_nullable=is_nullable)

    @classmethod
    def of_categories(cls, codes: ArrayLike, categories: ArrayLike, is_ordered: bool = False) -> Labels:
        """Return categories, which may be text, numbers or booleans, by their codes."""
        values = np.asarray(categories)
        is_number = values.dtype.kind in "biuf"
        kind = values.dtype.newbyteorder("<").str if is_number else ""
        return cls(np.asarray(codes, np.int32), tuple(map(_to_text, _as_list(values))), True, is_ordered, kind)

    def typed_categories(self) -> NDArray[Any]:
        """Return the categories as an array of their type; that of text is object."""
        if not self.category_type:
            return np.array(self.categories, object)
        dtype = np.dtype(self.category_type).newbyteorder("=")
        if dtype.kind == "b":
            return np.array([name == "True" for name in self.categories], bool)
        number = int if dtype.kind in "iu" else float
        return np.array([number(name) for name in self.categories], dtype)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, indices: Any) -> Labels:
        """Return some of the values."""
        return replace(self, codes=self.codes[indices])

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

    Values are text, integers, floats or booleans. They are not used to learn; the fields that
    `bitatoms.columns.variants` lists identify the columns of genotypes.

    Parameters
    ----------
    fields : mapping of str to array-like
        For each field, its values: an array, a list, or a column or a categorical of pandas. Values of other types than
        numbers and booleans are text; None and NaN are then missing.
    n : int
        The number of rows or columns.

    Examples
    --------
    >>> from bitatoms.columns.annotations import Annotations
    >>> about = Annotations({"chromosome": ["1", "X"], "position": [12345, 678]}, 2)
    >>> about["position"]
    array([12345,   678])
    >>> about
    Annotations of 2: chromosome, position
    """

    __slots__ = ("_fields", "n")

    def __init__(self, fields: Mapping[str, Any] | None = None, n: int = 0) -> None:
        self.n = n
        self._fields = {
            str(name): _as_values(str(name), values, n) for name, values in ({} if fields is None else fields).items()
        }

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
        indices = indices if len(indices) else indices.astype(np.intp)
        n = int(indices.sum()) if indices.dtype == bool else len(indices)
        return Annotations({name: values[indices] for name, values in self._fields.items()}, n)

    def updated(self, **fields: ArrayLike | Labels) -> Annotations:
        """Return these annotations with other fields added or replaced."""
        return Annotations({**self._fields, **fields}, self.n)

    def to_pandas(self, index: Sequence[str] | None = None) -> Any:
        """Return the annotations as a pandas DataFrame, with an index if it is given."""
        pd = import_library("pandas", "data frames need")
        columns = {name: _to_pandas(values) for name, values in self._fields.items()}
        frame = pd.DataFrame(columns, index=pd.RangeIndex(self.n))
        if index is not None:
            frame.index = pd.Index(index, dtype=object)
        return frame

    @classmethod
    def from_pandas(cls, frame: Any) -> Annotations:
        """Return the columns of a pandas DataFrame; other types than those of numbers and booleans become text."""
        return cls({str(name): _from_pandas(frame.iloc[:, k]) for k, name in enumerate(frame.columns)}, len(frame))


def axis_data(X: Any, layer: str | None = None) -> tuple[Annotations | None, Annotations | None]:
    """Return what an AnnData knows about its rows and columns (``obs`` and ``var``); None for other tables."""
    if not is_anndata(X):
        return None, None
    obs = X.obs if hasattr(X, "obs") else X._adata.obs  # the ``raw`` of an AnnData has its observations
    if layer is not None and is_obsm(X, layer):
        return Annotations.from_pandas(obs), Annotations({}, layer_values(X, layer).shape[1])
    return Annotations.from_pandas(obs), Annotations.from_pandas(X.var)


def _as_values(name: str, values: ArrayLike | Labels, n: int) -> Values:
    """Return the values of a field as they are stored, after checking that there are ``n``."""
    if package_name(values) == "pandas":
        import pandas as pd

        values = _from_pandas(pd.Series(values))
    if not isinstance(values, Labels):
        array = values if isinstance(values, np.ma.MaskedArray) else np.asarray(values)
        if array.ndim != 1:
            raise ValueError(f"the annotation {name!r} has shape {array.shape}; expected one value for each of {n}")
        values = array if array.dtype.kind in "biuf" else Labels.of(_as_list(array))
    if len(values) != n:
        raise ValueError(f"the annotation {name!r} has {len(values)} values; expected {n}")
    return values


def _as_list(values: NDArray[Any]) -> list[Any]:
    """Return the values of an array; NumPy lists dates of nanoseconds as integers."""
    if values.dtype.kind not in "mM":
        return values.tolist()
    return [None if np.isnat(value) else value for value in values]


def _to_text(value: Any) -> str:
    """Return a value as text."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


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
            text = np.asarray(values)
            return pd.array(text, pd.StringDtype("python")) if values.is_nullable else text
        return pd.Categorical.from_codes(values.codes, values.typed_categories(), ordered=values.is_ordered)
    if not isinstance(values, np.ma.MaskedArray):
        return values
    arrays = {"b": pd.arrays.BooleanArray, "f": pd.arrays.FloatingArray}
    array = arrays.get(values.dtype.kind, pd.arrays.IntegerArray)
    data = np.ma.getdata(values)
    if data.dtype in (np.float16, np.longdouble):
        data = data.astype(np.float64)  # pandas has no nullable type for them
    return array(data.astype(data.dtype.newbyteorder("=")), np.ma.getmaskarray(values).copy())


def _from_pandas(column: Any) -> ArrayLike | Labels:
    """Return a column of a DataFrame as the values of a field."""
    import pandas as pd

    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return Labels.of_categories(column.cat.codes, column.cat.categories, bool(column.cat.ordered))
    if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
        return np.asarray(column)
    mask = np.asarray(column.isna())
    if not isinstance(dtype, np.dtype) and getattr(dtype, "kind", "O") in "biuf" and hasattr(dtype, "numpy_dtype"):
        kept = column.to_numpy(dtype.numpy_dtype, na_value=dtype.type(0))
        return np.ma.MaskedArray(kept, mask)
    if not isinstance(dtype, np.dtype) and getattr(dtype, "kind", "O") in "biuf":  # sparse
        return np.asarray(column)
    is_nullable = isinstance(dtype, pd.StringDtype) and dtype.na_value is pd.NA
    return Labels.of([None if missing else value for value, missing in zip(column, mask, strict=True)], is_nullable)
