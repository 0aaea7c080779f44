"""Table: packed bits with row and column names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .. import frames
from ..bits import BitMatrix, pack_values, row_index
from ..cell_values import is_sparse, sparse_ones
from ..errors import InputError, Parameter, named_columns
from ..formatting import counted
from ..sparse_bits import Bits, SparseBits, is_smaller_sparse, packed
from ..system.libraries import import_library
from ..validation import check_choice, check_threshold
from . import variants
from .annotations import Annotations, axis_data
from .variants import pack_dosages

Names = tuple[str, ...]


class Picture(NamedTuple):
    """Size of the images in the rows of a table.

    Attributes
    ----------
    tile : tuple of int
        Height and width of the image in each row.
    whole : tuple of int or None
        Height and width of the large image that the rows are blocks of; None if the rows are separate images.
    """

    tile: tuple[int, int]
    whole: tuple[int, int] | None = None


class Header(NamedTuple):
    """The columns of a table or a model, without rows.

    Attributes
    ----------
    n_cols : int
        Number of columns.
    names : tuple of str or None
        Their names.
    absent_is_zero : bool
        Whether rows list their ones by name, as transactions do, so that a column that is absent is zero in all rows.
    data : Annotations or None
        What else is known about them, as in genotypes and in expression data.
    """

    n_cols: int
    names: Names | None = None
    absent_is_zero: bool = False
    data: Annotations | None = None


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Table:
    """Bits with row and column names, as returned by `bitatoms.read`.

    Every function and estimator that takes a table of 0 and 1 also takes a Table, and keeps the names. Rows are
    selected as in NumPy (``table[:10]``, ``table[mask]``) and keep their names, so that scikit-learn divides a Table
    into folds.

    Parameters
    ----------
    bits : BitMatrix of shape (n_rows, n_cols), or SparseBits
        The bits. The attribute of this name is packed: where a table is held by its ones, because it has thousands of
        columns and few ones, it is packed when it is first used.
    row_names, columns : sequence of str, optional
        The names of the rows and of the columns. Column names are unique.
    picture : Picture, optional
        Height and width of the image in each row.
    absent_is_zero : bool, default=False
        Whether rows list their ones by name, as in files of transactions: a column that a model knows and this table
        lacks is then zero in all rows. It takes no part in comparisons.
    row_data, column_data : Annotations, or mapping of str to array-like, optional
        What else is known about the rows and the columns, such as populations and positions. They travel with the
        table, and take no part in comparisons.

    Attributes
    ----------
    data : BitMatrix or SparseBits
        What the table holds.

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
    >>> table[[1]].row_names
    ('bob',)
    """

    data: Bits
    row_names: Names | None
    columns: Names | None
    picture: Picture | None
    absent_is_zero: bool
    row_data: Annotations | None
    column_data: Annotations | None

    def __init__(
        self,
        bits: Bits,
        row_names: Sequence[str] | None = None,
        columns: Sequence[str] | None = None,
        picture: Picture | None = None,
        *,
        absent_is_zero: bool = False,
        row_data: Mapping[str, Any] | None = None,
        column_data: Mapping[str, Any] | None = None,
    ) -> None:
        names = _checked_names(columns, bits.n_cols, "columns")
        if names is not None and (duplicate := first_duplicate(names)) is not None:
            raise ValueError(f"two columns have the name {duplicate!r}; rename one of them")
        object.__setattr__(self, "data", bits)
        object.__setattr__(self, "row_names", _checked_names(row_names, bits.n_rows, "rows"))
        object.__setattr__(self, "columns", names)
        object.__setattr__(self, "picture", None if picture is None else check_picture(picture, bits.shape))
        object.__setattr__(self, "absent_is_zero", bool(absent_is_zero))
        object.__setattr__(self, "row_data", _as_annotations(row_data, bits.n_rows, "rows"))
        object.__setattr__(self, "column_data", _as_annotations(column_data, bits.n_cols, "columns"))

    @classmethod
    def from_any(
        cls,
        X: Any,
        *,
        binarize: float | None = None,
        missing: str = "unknown",
        layer: str | None = None,
        modality: str | None = None,
        dosage: bool = False,
    ) -> Table:
        """Pack a table of any supported type and keep its names.

        Parameters
        ----------
        X : Table, BitMatrix, array-like, data frame, AnnData, MuData or SciPy sparse matrix
            The table, one row per sample. Data frames are those of pandas, polars and pyarrow, and all tables with
            Arrow's C stream, such as results of DuckDB. The index of a pandas frame gives the row names, unless it is
            numeric. The ``obs`` and ``var`` of an AnnData become ``row_data`` and ``column_data``.
        binarize : float, optional
            Threshold: a bit is one where X is greater. Without it, X must contain only 0 and 1.
        missing : {"unknown", "zero", "refuse"}, default="unknown"
            What missing values (NaN, None, NA, masked) become: unknown cells, 0, or an error.
        layer : str, optional
            The layer of an AnnData to use instead of its X. "raw" is its ``raw`` and "obsm/protein" the array "protein"
            of its ``obsm``, if no layer has this name.
        modality : str, optional
            The modality of a MuData to use; required if there are several.
        dosage : bool, default=False
            Whether X contains numbers of copies of an allele, 0, 1 and 2; others are rounded. Each of its columns then
            becomes two, which are tied: one copy or more, two copies. A model never reconstructs two without one.

        Returns
        -------
        Table

        Examples
        --------
        >>> import pandas as pd
        >>> import bitatoms as ba
        >>> frame = pd.DataFrame({"milk": [1, 0], "bread": [1, None]}, index=["ann", "bob"])
        >>> ba.Table.from_any(frame)
        Table(2 x 2, density 0.667, 1 cell unknown, rows 'ann' ... 'bob', columns 'milk' ... 'bread')
        >>> ba.Table.from_any([[0, 1], [2, 1]], dosage=True).to_dense()
        array([[0, 0, 1, 0],
               [1, 1, 1, 0]], dtype=uint8)
        """
        check_choice("missing", missing, ("unknown", "zero", "refuse"))
        X = frames.select_modality(frames.in_memory(X), modality)
        if layer is not None and not (frames.is_anndata(X) and hasattr(X, "layers")):
            raise ValueError(f"layer={layer!r} requires an AnnData, got {type(X).__name__}")
        X, layer = frames.select_raw(X, layer)
        if isinstance(X, cls) and dosage:
            raise ValueError("dosage=True requires numbers of copies, but X is a Table of bits; omit it")
        if isinstance(X, cls):
            return X.with_bits(as_bits(X, binarize, missing=missing))
        if dosage and binarize is not None:
            raise InputError("numbers of copies cannot be thresholded; omit ", Parameter("binarize"))
        bits = as_bits(X, binarize, missing=missing, layer=layer, dosage=dosage)
        row_names, columns = frames.axis_names(X, layer)
        row_data, column_data = axis_data(X, layer)
        if dosage:
            names = feature_names(columns, range(bits.n_cols // 2))
            columns, column_data = variants.dosage_columns(names, column_data)
        return cls(bits, row_names, columns, row_data=row_data, column_data=column_data)

    def with_bits(self, bits: Bits) -> Table:
        """Return the table with other bits in its rows and columns, and all that is known about these."""
        return self._replaced(bits)

    def _replaced(self, bits: Bits, **changes: Any) -> Table:
        """Return a table of other bits, of which all but the changes is as in this one."""
        kept = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "data"}
        return Table(bits, **(kept | changes))

    @property
    def bits(self) -> BitMatrix:
        """The bits, packed."""
        bits = packed(self.data)
        object.__setattr__(self, "data", bits)
        return bits

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and number of columns."""
        return self.data.shape

    @property
    def ndim(self) -> int:
        """Number of axes: two."""
        return 2

    @property
    def size(self) -> int:
        """Number of cells."""
        return self.data.size

    @property
    def header(self) -> Header:
        """Its columns."""
        return Header(self.data.n_cols, self.columns, self.absent_is_zero, self.column_data)

    def row_name(self, row: int) -> str:
        """Return the name of a row, or ``"row i"`` (counted from 0) if rows have no names."""
        return f"row {row}" if self.row_names is None else self.row_names[row]

    def names_of(self, columns: Iterable[int]) -> Names:
        """Return the names of these columns: ``x0``, ``x1``, ... if columns have no names, as in scikit-learn."""
        return feature_names(self.columns, columns)

    def filled(self) -> Table:
        """Return the table with zeros in place of unknown cells."""
        return self.with_bits(self.data.filled())

    def to_dense(self, dtype: DTypeLike = np.uint8) -> NDArray[Any]:
        """Return the bits as an array of shape (n_rows, n_cols); unknown cells are NaN, which needs ``dtype=float``."""
        return self.data.to_dense(dtype)

    def to_dosages(self) -> NDArray[Any]:
        """Return the numbers of copies, 0, 1 and 2, of a table of genotypes: one column per variant.

        Returns
        -------
        ndarray of shape (n_rows, n_cols / 2)
            Of dtype uint8, or float64 with NaN if there are unknown cells. The variants are in the order of the
            columns; ``table.column_data["id"][::2]`` are their names.

        Raises
        ------
        InputError
            If columns are not two per variant, as ``from_any(X, dosage=True)`` and files of genotypes make them.

        Examples
        --------
        >>> import bitatoms as ba
        >>> ba.Table.from_any([[0, 1], [2, None]], dosage=True).to_dosages()
        array([[ 0.,  1.],
               [ 2., nan]])
        """
        pairs = variants.pairs(variants.genotype_data(self.column_data, self.columns))
        if 2 * len(pairs) != self.shape[1] or not len(pairs):
            raise InputError(
                "the table has no numbers of copies: its columns are not two per variant; pass numbers of copies to "
                "Table.from_any(X, dosage=True), or read a file of genotypes"
            )
        chosen = self.bits.take_columns(pairs.ravel())
        copies = chosen.filled().to_dense().reshape(len(chosen), -1, 2).sum(axis=2, dtype=np.uint8)
        if chosen.unknown is None:
            return copies
        return np.where(chosen.unknown.to_dense(bool).reshape(len(chosen), -1, 2).any(axis=2), np.nan, copies)

    def to_pandas(self) -> Any:
        """Return the table as a pandas DataFrame of dtype uint8, with its names.

        Columns with unknown cells, which become NA, have the nullable dtype UInt8.
        """
        pd = import_library("pandas", "data frames need")
        frame = pd.DataFrame(self.bits.filled().to_dense(), index=self.row_names, columns=self.columns)
        if self.bits.unknown is not None:
            unknown = self.bits.unknown.to_dense(bool)
            for column in np.flatnonzero(unknown.any(axis=0)).tolist():
                values = frame.iloc[:, column].to_numpy(copy=True)
                frame.isetitem(column, pd.arrays.IntegerArray(values, unknown[:, column].copy()))
        return frame

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, rows: Any) -> Any:
        """Return the rows of a slice or of an array of indices or booleans as a Table, a single row as an array.

        The rows keep their names and annotations, and the columns theirs; a picture of several blocks is lost.
        """
        chosen = row_index(rows, "Table", 'to_pandas()[names]; in pipelines, call set_output(transform="pandas")')
        if isinstance(chosen, int):
            return self.data[chosen]
        indices = np.arange(len(self))[chosen]
        return self._replaced(
            self.data[chosen],
            row_names=None if self.row_names is None else [self.row_names[row] for row in indices.tolist()],
            picture=None if self.picture is None else Picture(self.picture.tile),
            row_data=None if self.row_data is None else self.row_data.take(indices),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        mine, theirs = ((t.row_names, t.columns, t.picture) for t in (self, other))
        return mine == theirs and self.data == other.data

    def __hash__(self) -> int:
        return hash((self.data.shape, self.row_names, self.columns))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return packed(self.data).__array__(dtype, copy)

    def __repr__(self) -> str:
        parts = ["{} x {}".format(*self.shape), f"density {self.data.density:.3g}"]
        if n_unknown := self.data.n_unknown:
            parts.append(f"{counted(n_unknown, 'cell')} unknown")
        for what, names in (("rows", self.row_names), ("columns", self.columns)):
            if names:
                parts.append(f"{what} {names[0]!r} ... {names[-1]!r}")
        if self.picture is not None:
            parts.append("pictures of {} x {}".format(*self.picture.tile))
        return f"Table({', '.join(parts)})"


def as_bits(
    X: Any,
    binarize: float | None = None,
    name: str = "X",
    missing: str = "refuse",
    layer: str | None = None,
    dosage: bool = False,
) -> Bits:
    """Convert a table of any supported type to bits: a wide sparse matrix to sparse ones, all else to packed ones.

    ``binarize``, ``name`` and ``missing`` are those of `BitMatrix.from_any`, and ``layer`` and ``dosage`` those of
    `Table.from_any`. Errors about a cell name its column, if it has a name.
    """
    if isinstance(X, Table):
        X = X.data
    if isinstance(X, (BitMatrix, SparseBits)):
        if dosage:
            return pack_dosages(X, missing)
        is_same = isinstance(X, SparseBits) and (binarize is None or 0 <= binarize < 1)
        return X if is_same else BitMatrix.from_any(X, binarize, name, missing)
    threshold, values = check_threshold(binarize), frames.values_of(X, name, layer)
    frames.check_scaled(X, layer, values, binarize)
    with named_columns(frames.column_names(X, layer)):
        if dosage:
            return pack_dosages(values, missing)
        if is_sparse(values) and is_smaller_sparse(values.shape, values.nnz):
            ones = sparse_ones(values, threshold, name, missing)
            if ones.lacking is None and not ones.background:
                return SparseBits(ones.indptr.astype(np.int64), ones.indices, values.shape[1])
        return pack_values(values, threshold, name, missing)


def header_of(X: Any, n_cols: int) -> Header:
    """Return the columns of a table of any supported type."""
    if isinstance(X, Table):
        return X.header
    return Header(n_cols, frames.column_names(X), data=axis_data(X)[1])


def axis_names(X: Any) -> tuple[Names | None, Names | None]:
    """Return the names of the rows and of the columns of a table of any supported type."""
    return (X.row_names, X.columns) if isinstance(X, Table) else frames.axis_names(X)


def _checked_names(names: Sequence[str] | None, n: int, axis: str) -> Names | None:
    """Return the names of an axis as a tuple of str, after checking that there are ``n``."""
    if names is None:
        return None
    if len(names) != n:
        raise ValueError(f"there are {len(names)} names for {n} {axis}")
    return tuple(map(str, names))


def _as_annotations(data: Mapping[str, Any] | None, n: int, axis: str) -> Annotations | None:
    """Return the annotations of an axis, after checking that there are ``n``."""
    annotations = data if data is None or isinstance(data, Annotations) else Annotations(data, n)
    if annotations is not None and annotations.n != n:
        raise ValueError(f"there are annotations of {annotations.n} {axis} for {n} {axis}")
    return annotations


def feature_names(names: Sequence[str] | None, columns: Iterable[int]) -> Names:
    """Return the names of these columns: ``x0``, ``x1``, ... if there are no names, as in scikit-learn."""
    return tuple(f"x{column}" if names is None else names[column] for column in columns)


def first_duplicate(names: Sequence[str]) -> str | None:
    """Return the first name that occurs a second time, or None."""
    seen: set[str] = set()
    if len(set(names)) == len(names):
        return None
    return next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]


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
