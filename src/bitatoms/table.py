"""Table: packed bits with the names of their rows and columns, and what the rows look like when they are pictures."""

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
    """Rows that are pictures: the height and width of each and, where they are the blocks of one large picture, its."""

    tile: tuple[int, int]
    whole: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Table:
    """Packed bits, with names: what `bitatoms.read` makes of a file.

    Whatever takes a table of 0 and 1 takes a Table, and the names go along.

    Parameters
    ----------
    bits : BitMatrix of shape (n_rows, n_cols)
        The zeros and ones.
    row_names, columns : sequence of str, optional
        The names of the rows and of the columns. Column names are unique.
    picture : Picture, optional
        Height and width of the picture that each row is.

    See Also
    --------
    Table.from_any : from whatever a user has: an array, a frame, an AnnData, a sparse matrix.

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
        if names is not None and (twice := repeated(names)) is not None:
            raise ValueError(f"two columns have the name {twice!r}; rename one of them")
        object.__setattr__(self, "bits", bits)
        object.__setattr__(self, "row_names", _checked_names(row_names, bits.n_rows, "rows"))
        object.__setattr__(self, "columns", names)
        object.__setattr__(self, "picture", None if picture is None else fitting_picture(picture, bits.shape))

    @classmethod
    def from_any(
        cls, X: Any, *, binarize: float | None = None, missing: str = "refuse", layer: str | None = None
    ) -> Table:
        """Pack whatever table comes, and keep its names.

        Parameters
        ----------
        X : Table, BitMatrix, array-like, pandas, polars or pyarrow table, AnnData or SciPy sparse matrix
            The table, a sample a row. Names of a pandas index are taken unless they are just numbers.
        binarize : float, optional
            Take ``X > binarize`` instead of X, which must hold 0 and 1 otherwise.
        missing : {"refuse", "zero"}, default="refuse"
            What to do with missing values.
        layer : str, optional
            The layer of an AnnData to take instead of its X.

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
            raise ValueError(f"layer={layer!r} is for AnnData, not for {type(X).__name__}")
        if isinstance(X, cls):
            return cls(BitMatrix.from_any(X.bits, binarize), X.row_names, X.columns, X.picture)
        rows, columns = validation.axis_names(X)
        values = validation.as_array_like(X, layer)
        if missing == "zero":
            values = validation.missing_as_zero(values)
        return cls(BitMatrix.from_any(values, binarize), rows, columns)

    @property
    def rows(self) -> Names | None:
        """Deprecated name of ``row_names``."""
        _warn_rows()
        return self.row_names

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return self.bits.shape

    def row_name(self, row: int) -> str:
        """The name of a row; of one without, its number from 0 on."""
        return f"row {row}" if self.row_names is None else self.row_names[row]

    def names_of(self, columns: Iterable[int]) -> Names:
        """The names of these columns; without names they are x0, x1 and so on, as in scikit-learn."""
        return feature_names(self.columns, columns)

    def to_dense(self, dtype: DTypeLike = np.uint8) -> NDArray[Any]:
        """The zeros and ones as an array of shape (n_rows, n_cols)."""
        return self.bits.to_dense(dtype)

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame of uint8, with its names."""
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
        told = [f"{self.bits.n_rows} x {self.bits.n_cols}", f"density {self.bits.density:.3g}"]
        for what, names in (("rows", self.row_names), ("columns", self.columns)):
            if names:
                told.append(f"{what} {names[0]!r} ... {names[-1]!r}")
        if self.picture is not None:
            told.append("pictures of {} x {}".format(*self.picture.tile))
        return f"Table({', '.join(told)})"


def _warn_rows() -> None:
    """Warn that ``rows`` is called ``row_names`` now."""
    warnings.warn(
        "Table.rows is deprecated and will be removed in 0.3; use row_names",
        FutureWarning,
        stacklevel=3,
    )


def _checked_names(names: Sequence[str] | None, n: int, axis: str) -> Names | None:
    """Return the names of an axis as a tuple of str, after checking that there are ``n``."""
    if names is None:
        return None
    if len(names) != n:
        raise ValueError(f"there are {len(names)} names for {n} {axis}")
    return tuple(map(str, names))


def feature_names(names: Sequence[str] | None, columns: Iterable[int]) -> Names:
    """The names of these columns; without names they are x0, x1 and so on, as in scikit-learn."""
    return tuple(f"x{column}" if names is None else names[column] for column in columns)


def repeated(names: Sequence[str]) -> str | None:
    """The first name that was there before, or None."""
    seen: set[str] = set()
    if len(set(names)) == len(names):
        return None
    return next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]


def compare_names(learned: Names, given: Names) -> None:
    """Refuse names of columns that are not those that were learned from, in their order."""
    if learned == given:
        return
    for what, names in (
        ("columns that were not learned from", [name for name in given if name not in set(learned)]),
        ("no columns", [name for name in learned if name not in set(given)]),
    ):
        if names:
            some = ", ".join(map(repr, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
            raise ValueError(f"the table has {what}: {some}; the model needs the columns it was learned from")
    raise ValueError("the table's columns are in another order than those that were learned from")


def fitting_picture(picture: Any, shape: tuple[int, int]) -> Picture:
    """A picture as a Picture, made sure that its tile has as many pixels as a row, its blocks as many as rows."""
    tile, whole = picture
    tile = tall, wide = int(tile[0]), int(tile[1])
    if tall < 1 or wide < 1 or tall * wide != shape[1]:
        raise ValueError(f"a picture of {tall} x {wide} has {tall * wide} pixels, but a row has {shape[1]} columns")
    if whole is None:
        return Picture(tile)
    whole = int(whole[0]), int(whole[1])
    blocks = -(-whole[0] // tall) * -(-whole[1] // wide)
    if min(whole) < 0 or blocks != shape[0]:
        raise ValueError(
            f"a picture of {whole[0]} x {whole[1]} has {blocks} blocks of {tall} x {wide}, not {shape[0]}, a row each"
        )
    return Picture(tile, whole)
