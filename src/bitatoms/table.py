"""Table: packed bits with row and column names, and the image size of rows that are images."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from . import validation
from .bits import BitMatrix

Names = tuple[str, ...]


class Picture(NamedTuple):
    """Size of the image in each row, and of the large image that the rows are blocks of, if any."""

    tile: tuple[int, int]
    whole: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Table:
    """Packed bits with row and column names, as returned by `bitatoms.read`.

    Every function and estimator that takes a table of 0 and 1 also takes a Table, and keeps the names.

    Parameters
    ----------
    bits : BitMatrix of shape (n_rows, n_cols)
        The bits.
    row_names, columns : sequence of str, optional
        The names of the rows and of the columns. Column names are unique.
    picture : Picture, optional
        Height and width of the image in each row.
    rows : sequence of str, optional
        Deprecated name of ``row_names``.

    See Also
    --------
    Table.from_any : Convert an array, a data frame, an AnnData or a sparse matrix.

    Examples
    --------
    >>> import bitatoms as ba
    >>> table = ba.Table(ba.BitMatrix.from_dense([[1, 0], [1, 1]]), row_names=["ann", "bob"], columns=["milk", "bread"])
    >>> table
    Table(2 x 2, density 0.75, rows 'ann' ... 'bob', columns 'milk' ... 'bread')
    >>> table.names_of([1])
    ('bread',)
    """

    bits: BitMatrix
    row_names: Names | None
    columns: Names | None
    picture: Picture | None

    def __init__(
        self,
        bits: BitMatrix,
        row_names: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        picture: Picture | None = None,
        *,
        rows: Sequence[str] | None = None,
    ) -> None:
        if rows is not None:
            _warn_rows()
            row_names = rows
        names = _checked_names(columns, bits.n_cols, "columns")
        if names is not None and (duplicate := first_duplicate(names)) is not None:
            raise ValueError(f"two columns have the name {duplicate!r}; rename one of them")
        object.__setattr__(self, "bits", bits)
        object.__setattr__(self, "row_names", _checked_names(row_names, bits.n_rows, "rows"))
        object.__setattr__(self, "columns", names)
        object.__setattr__(self, "picture", None if picture is None else check_picture(picture, bits.shape))

    @classmethod
    def from_any(
        cls, X: Any, *, binarize: float | None = None, missing: str = "refuse", layer: str | None = None
    ) -> Table:
        """Pack a table of any supported type and keep its names.

        Parameters
        ----------
        X : Table, BitMatrix, array-like, pandas, polars or pyarrow table, AnnData or SciPy sparse matrix
            The table, one row per sample. The index of a pandas frame gives the row names, unless it is numeric.
        binarize : float, optional
            Threshold: a bit is one where X is greater. Without it, X must contain only 0 and 1.
        missing : {"refuse", "zero"}, default="refuse"
            Raise an error for missing values, or convert them to 0.
        layer : str, optional
            The layer of an AnnData to use instead of its X.

        Returns
        -------
        Table

        Examples
        --------
        >>> import pandas as pd
        >>> import bitatoms as ba
        >>> frame = pd.DataFrame({"milk": [1, 0], "bread": [1, None]}, index=["ann", "bob"])
        >>> ba.Table.from_any(frame, missing="zero").columns
        ('milk', 'bread')
        """
        if missing not in ("refuse", "zero"):
            raise ValueError(f'missing must be "refuse" or "zero", got {missing!r}')
        if layer is not None and not validation.is_anndata(X):
            raise ValueError(f"layer={layer!r} requires an AnnData, got {type(X).__name__}")
        if isinstance(X, cls):
            return cls(BitMatrix.from_any(X.bits, binarize), X.row_names, X.columns, X.picture)
        row_names, columns = validation.axis_names(X)
        values = validation.as_array_like(X, layer)
        if missing == "zero":
            values = validation.missing_as_zero(values)
        return cls(BitMatrix.from_any(values, binarize), row_names, columns)

    @property
    def rows(self) -> Names | None:
        """Deprecated name of ``row_names``."""
        _warn_rows()
        return self.row_names

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and number of columns."""
        return self.bits.shape

    def row_name(self, row: int) -> str:
        """Return the name of a row, or ``"row i"`` (counted from 0) if rows have no names."""
        return f"row {row}" if self.row_names is None else self.row_names[row]

    def names_of(self, columns: Iterable[int]) -> Names:
        """Return the names of these columns: ``x0``, ``x1``, ... if columns have no names, as in scikit-learn."""
        return feature_names(self.columns, columns)

    def to_dense(self, dtype: DTypeLike = np.uint8) -> NDArray[Any]:
        """Return the bits as an array of shape (n_rows, n_cols)."""
        return self.bits.to_dense(dtype)

    def to_pandas(self) -> Any:
        """Return the table as a pandas DataFrame of dtype uint8, with its names."""
        import pandas as pd

        return pd.DataFrame(self.bits.to_dense(), index=self.row_names, columns=self.columns)

    def __len__(self) -> int:
        return len(self.bits)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        mine, theirs = ((t.row_names, t.columns, t.picture) for t in (self, other))
        return mine == theirs and self.bits == other.bits

    def __hash__(self) -> int:
        return hash((self.bits, self.row_names, self.columns))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return self.bits.__array__(dtype, copy)

    def __repr__(self) -> str:
        parts = [f"{self.bits.n_rows} x {self.bits.n_cols}", f"density {self.bits.density:.3g}"]
        for what, names in (("rows", self.row_names), ("columns", self.columns)):
            if names:
                parts.append(f"{what} {names[0]!r} ... {names[-1]!r}")
        if self.picture is not None:
            parts.append("pictures of {} x {}".format(*self.picture.tile))
        return f"Table({', '.join(parts)})"


def _warn_rows() -> None:
    """Warn that ``rows`` has been renamed to ``row_names``."""
    warnings.warn("Table.rows is deprecated and will be removed in 0.3; use row_names", FutureWarning, stacklevel=3)


def _checked_names(names: Sequence[str] | None, n: int, axis: str) -> Names | None:
    """Return the names of an axis as a tuple of str, after checking that there are ``n``."""
    if names is None:
        return None
    if len(names) != n:
        raise ValueError(f"there are {len(names)} names for {n} {axis}")
    return tuple(map(str, names))


def feature_names(names: Sequence[str] | None, columns: Iterable[int]) -> Names:
    """Return the names of these columns: ``x0``, ``x1``, ... if there are no names, as in scikit-learn."""
    return tuple(f"x{column}" if names is None else names[column] for column in columns)


def first_duplicate(names: Sequence[str]) -> str | None:
    """Return the first name that occurs a second time, or None."""
    seen: set[str] = set()
    if len(set(names)) == len(names):
        return None
    return next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]


def check_columns(learned: Names, given: Names) -> None:
    """Raise unless the column names equal those of the training data, in the same order."""
    if learned == given:
        return
    for what, names in (
        ("has columns that the model was not fitted on", [name for name in given if name not in set(learned)]),
        ("lacks columns that the model was fitted on", [name for name in learned if name not in set(given)]),
    ):
        if names:
            listed = ", ".join(map(repr, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
            raise ValueError(f"the table {what}: {listed}; pass the columns of the training data")
    raise ValueError("the columns are in a different order than in the training data; reorder them")


def check_picture(picture: Any, shape: tuple[int, int]) -> Picture:
    """Return a Picture after checking that it matches the shape of the table."""
    tile, whole = picture
    tile = height, width = int(tile[0]), int(tile[1])
    if height < 1 or width < 1 or height * width != shape[1]:
        raise ValueError(
            f"an image of {height} x {width} has {height * width} pixels, but the rows have {shape[1]} columns"
        )
    if whole is None:
        return Picture(tile)
    whole = int(whole[0]), int(whole[1])
    n_blocks = -(-whole[0] // height) * -(-whole[1] // width)
    if min(whole) < 0 or n_blocks != shape[0]:
        raise ValueError(
            f"an image of {whole[0]} x {whole[1]} has {n_blocks} blocks of {height} x {width}, "
            f"but the table has {shape[0]} rows"
        )
    return Picture(tile, whole)
