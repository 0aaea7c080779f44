"""Table: packed bits with row and column names; `match_columns`: the columns of a model in the table of new rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import DTypeLike, NDArray

from . import checks, dataframes, variants
from .annotations import Annotations
from .bits import BitMatrix, row_index
from .errors import InputError, Parameter, named_columns, warn
from .libraries import import_library
from .sparse_bits import Bits, SparseBits, as_bits, packed
from .variants import are_variants, have_equal_alleles, match_variants, pack_dosages

Names = tuple[str, ...]

_LISTED = 5  # names in a message


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
    rows : sequence of str, optional
        Deprecated name of ``row_names``.

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
        rows: Sequence[str] | None = None,
    ) -> None:
        if rows is not None:
            _warn_rows()
            row_names = rows
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
        X : Table, BitMatrix, array-like, pandas, polars or pyarrow table, AnnData, MuData or SciPy sparse matrix
            The table, one row per sample. The index of a pandas frame gives the row names, unless it is numeric. The
            ``obs`` and ``var`` of an AnnData become ``row_data`` and ``column_data``.
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
        checks.check_choice("missing", missing, ("unknown", "zero", "refuse"))
        X = dataframes.select_modality(X, modality)
        if layer is not None and not (dataframes.is_anndata(X) and hasattr(X, "layers")):
            raise ValueError(f"layer={layer!r} requires an AnnData, got {type(X).__name__}")
        X, layer = dataframes.select_raw(X, layer)
        if isinstance(X, cls) and dosage:
            raise ValueError("dosage=True requires numbers of copies, but X is a Table of bits; omit it")
        if isinstance(X, cls):
            return X.with_bits(as_bits(X.data, binarize, missing=missing))
        row_names, columns = dataframes.axis_names(X, layer)
        values = dataframes.as_array_like(X, layer)
        dataframes.check_scaled(X, layer, values, binarize)
        row_data, column_data = dataframes.axis_data(X, layer)
        if dosage:
            if binarize is not None:
                raise InputError("numbers of copies cannot be thresholded; omit ", Parameter("binarize"))
            with named_columns(columns):
                copies = pack_dosages(values, missing)
            names = feature_names(columns, range(copies.n_cols // 2))
            columns, column_data = variants.dosage_columns(names, column_data)
            return cls(copies, row_names, columns, row_data=row_data, column_data=column_data)
        with named_columns(columns):
            bits = as_bits(values, binarize, missing=missing)
        return cls(bits, row_names, columns, row_data=row_data, column_data=column_data)

    def with_bits(self, bits: Bits) -> Table:
        """Return the table with other bits in its rows and columns, and all that is known about these."""
        return Table(
            bits,
            self.row_names,
            self.columns,
            self.picture,
            absent_is_zero=self.absent_is_zero,
            row_data=self.row_data,
            column_data=self.column_data,
        )

    @property
    def bits(self) -> BitMatrix:
        """The bits, packed."""
        bits = packed(self.data)
        object.__setattr__(self, "data", bits)
        return bits

    @property
    def rows(self) -> Names | None:
        """Deprecated name of ``row_names``."""
        _warn_rows()
        return self.row_names

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
        names = self.names_of(range(self.shape[1]))
        data = variants.from_names(names) if self.column_data is None else self.column_data
        if data is None or 2 * len(variants.pairs(data)) != self.shape[1]:
            raise InputError(
                "the table has no numbers of copies: its columns are not two per variant; pass numbers of copies to "
                "Table.from_any(X, dosage=True), or read a file of genotypes"
            )
        _, copies = variants.unpack_dosages(self.bits, data, names)
        is_missing = np.ma.getmaskarray(copies)
        return np.where(is_missing, np.nan, copies.data) if is_missing.any() else copies.data

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
        return Table(
            self.data[chosen],
            None if self.row_names is None else [self.row_names[row] for row in indices.tolist()],
            self.columns,
            None if self.picture is None else Picture(self.picture.tile),
            absent_is_zero=self.absent_is_zero,
            row_data=None if self.row_data is None else self.row_data.take(indices),
            column_data=self.column_data,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        mine, theirs = ((t.row_names, t.columns, t.picture) for t in (self, other))
        if mine != theirs or self.shape != other.shape:
            return False
        return (
            self.data == other.data if type(self.data) is type(other.data) else packed(self.data) == packed(other.data)
        )

    def __hash__(self) -> int:
        return hash((self.data.shape, self.row_names, self.columns))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return packed(self.data).__array__(dtype, copy)

    def __repr__(self) -> str:
        parts = ["{} x {}".format(*self.shape), f"density {self.data.density:.3g}"]
        if n_unknown := self.data.n_unknown:
            parts.append(f"{n_unknown} cell{'s' * (n_unknown > 1)} unknown")
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


@dataclass(frozen=True, slots=True, eq=False)
class ColumnMatch:
    """Where the columns of a model are in a table of new rows; `match_columns` finds them.

    Attributes
    ----------
    indices : ndarray of int64 or None
        For each column of the model, its index in the table, or -1 if it is absent. None if the
        table has the columns of the model, in the same order.
    names : tuple of str or None
        The names of the columns of the model, if ``indices`` is not None.
    unknown : tuple of str
        Columns of the table that the model was not fitted on; they are ignored.
    absent : tuple of str
        Columns of the model that the table lacks.
    fill : {"zero", "unknown"}
        What the cells of absent columns are.
    is_fill_chosen : bool
        Whether absent columns are worth a warning: not if the table consists of transactions.
    swapped : ndarray of bool or None
        Whether each column of the model is found as one that counts the other allele of a variant, so that its bits are
        inverted; None if none is.
    notes : tuple of str
        What else a user should know about the match.
    data : Annotations or None
        What is known about the columns of the model, if ``indices`` is not None.
    """

    indices: NDArray[np.int64] | None = None
    names: Names | None = None
    unknown: Names = ()
    absent: Names = ()
    fill: str = "zero"
    is_fill_chosen: bool = False
    swapped: NDArray[np.bool_] | None = None
    notes: Names = ()
    data: Annotations | None = None

    @overload
    def gather(self, bits: BitMatrix) -> BitMatrix: ...
    @overload
    def gather(self, bits: Bits) -> Bits: ...
    def gather(self, bits: Bits) -> Bits:
        """Return rows of the table with the columns of the model."""
        if self.indices is None:
            return bits
        taken = bits.take_columns(self.indices, self.fill)
        return taken if self.swapped is None else packed(taken) ^ BitMatrix.from_dense(self.swapped[np.newaxis])

    def gather_table(self, table: Table) -> Table:
        """Return the table with the columns of the model."""
        if self.indices is None:
            return table
        return Table(
            self.gather(table.data),
            table.row_names,
            self.names,
            absent_is_zero=table.absent_is_zero,
            row_data=table.row_data,
            column_data=self.data,
        )

    def inverse(self, n_cols: int) -> NDArray[np.int64]:
        """Return for each of the table's columns its index in the model, or -1 if it is unknown."""
        if self.indices is None:
            return np.arange(n_cols)
        known = np.flatnonzero(self.indices >= 0)
        inverse = np.full(n_cols, -1, np.int64)
        inverse[self.indices[known]] = known
        return inverse

    def warn_differences(self, table: str) -> None:
        """Warn that columns of a table, called so in the message, are ignored, and that absent ones are filled."""
        parts = []
        if self.unknown:
            n_columns = f"{len(self.unknown)} column{'s' * (len(self.unknown) > 1)}"
            parts.append(f"ignored {n_columns} that the model was not fitted on: {listed_names(self.unknown)}")
        if self.absent and (self.is_fill_chosen or self.unknown):
            absent = "1 absent column is" if len(self.absent) == 1 else f"{len(self.absent)} absent columns are"
            fill = "read as 0" if self.fill == "zero" else "unknown"
            parts.append(f"{absent} {fill}: {listed_names(self.absent)}")
        parts.extend(self.notes)
        if parts:
            warn(f"{table}: {'; '.join(parts)}")


class NoKnownColumn(InputError):
    """A table has no column of a model."""


def match_columns(learned: Header, given: Header, absent: str | None = None, table: str = "the table") -> ColumnMatch:
    """Find the columns of a model in a table, by name; by position if the model or the table has no names.

    Items of transactions are always matched by name; columns of a model without names are then called 0, 1, 2, ...
    Columns of genotypes are matched by variant and allele (see `match_variants`).

    Parameters
    ----------
    learned, given : Header
        The columns of the model, and those of the table.
    absent : {"auto", "refuse", "zero", "unknown"} or None
        Whether columns that the table lacks are an error, zeros or unknown. "auto" is "unknown" if columns have
        annotations, as in genotypes and expression data, and otherwise "refuse". None is "refuse" where the user cannot
        set it. Items that transactions lack are zeros.
    table : str
        What messages call the table.

    Returns
    -------
    ColumnMatch

    Raises
    ------
    InputError
        If columns are absent (and may not be), if none is known, if a name is ambiguous, or, without names, if the
        number of columns differs.

    Examples
    --------
    >>> from bitatoms.table import Header, match_columns
    >>> match = match_columns(Header(3, ("milk", "bread", "tea")), Header(3, ("gin", "tea", "milk")), "zero")
    >>> match.indices, match.unknown, match.absent
    (array([ 2, -1,  1]), ('gin',), ('bread',))
    """
    if absent is not None:
        checks.check_choice("absent", absent, ("auto", "refuse", "zero", "unknown"))
    if absent == "auto":
        absent = "refuse" if learned.data is None and given.data is None else "unknown"
    names = learned.names
    if names is None and given.names is not None and given.absent_is_zero:
        names = tuple(map(str, range(learned.n_cols)))
    if names is None or given.names is None:
        if given.n_cols != learned.n_cols:
            raise InputError(
                f"{table} has {given.n_cols} columns, but the model was learned from {learned.n_cols}; pass a table "
                "with the same columns"
            )
        return ColumnMatch()
    variants = None
    if are_variants(learned.data) and are_variants(given.data):
        variants = learned.data, given.data
    if names == given.names and (variants is None or have_equal_alleles(*variants)):
        return ColumnMatch()
    swapped: NDArray[np.bool_] | None = None
    notes: Names = ()
    if variants is not None:
        indices, swapped, notes = _match_variants(*variants)
    else:
        indices = _match_names(names, given.names)
    is_known = np.zeros(given.n_cols, bool)
    is_known[indices[indices >= 0]] = True
    unknown = tuple(name for name, known in zip(given.names, is_known, strict=True) if not known)
    lacking = tuple(name for name, index in zip(names, indices, strict=True) if index < 0)
    fill = "unknown" if absent == "unknown" and not given.absent_is_zero else "zero"
    if len(lacking) == len(names) and (given.names or not given.absent_is_zero):
        raise NoKnownColumn(
            f"{table} has no column that the model was fitted on: it has {listed_names(given.names)}, and the model "
            f"{listed_names(names)}; pass a table of the same features"
        )
    if lacking and not given.absent_is_zero and absent not in ("zero", "unknown"):
        others = f" (it has other columns: {listed_names(unknown)})" if unknown else ""
        fix = "; add them" if absent is None else "; add them, or pass "
        raise InputError(
            f"{table} lacks columns that the model was fitted on: {listed_names(lacking)}{others}{fix}",
            *(() if absent is None else (Parameter("absent", "zero"), " to read them as 0, or ")),
            *(() if absent is None else (Parameter("absent", "unknown"),)),
        )
    return ColumnMatch(indices, names, unknown, lacking, fill, not given.absent_is_zero, swapped, notes, learned.data)


def _match_names(names: Names, given: Names) -> NDArray[np.int64]:
    """Return for each name its index among those given, or -1; raise InputError for a name that is ambiguous."""
    known = set(names)
    ambiguous = first_duplicate([name for name in given if name in known])
    if ambiguous is None:
        ambiguous = first_duplicate(names)
    if ambiguous is not None:
        raise InputError(f"two columns have the name {ambiguous!r}, so they cannot be matched; rename one of them")
    index = {name: column for column, name in enumerate(given)}
    return np.array([index.get(name, -1) for name in names], np.int64)


def _match_variants(
    learned: Annotations, given: Annotations
) -> tuple[NDArray[np.int64], NDArray[np.bool_] | None, Names]:
    """Return for each column its index or -1, which are swapped (None if none is), and notes about the match."""
    is_diploid = [bool((np.asarray(data["copies"]) == 2).any()) for data in (learned, given)]
    if is_diploid[0] != is_diploid[1]:
        rows = "samples", "haplotypes"
        raise InputError(
            f"the model was learned from {rows[not is_diploid[0]]}, but the rows of the table are "
            f"{rows[not is_diploid[1]]}; read it with ",
            Parameter("phased", not is_diploid[0]),
        )
    match, notes = match_variants(learned, given), []
    if match.n_swapped:
        notes.append(f"alleles swapped of {match.n_swapped} variant{'s' * (match.n_swapped > 1)}")
    if n_other := match.n_other_alleles:
        notes.append(f"{n_other} variant{'s have' if n_other > 1 else ' has'} other alleles and cannot be used")
    return match.indices, match.swapped if match.n_swapped else None, tuple(notes)


def matched_table(X: Any, learned: Header, absent: str | None = None, table: str = "X", **conversion: Any) -> Table:
    """Convert new rows as `Table.from_any` does, with the columns of a model; see `match_columns`.

    Columns of a data frame that the model does not know are left out first, and may hold anything. Numbers of copies of
    the variants of a model (see `are_copies`) become its columns.
    """
    names = None if dataframes.is_anndata(X) else dataframes.column_names(X)
    warned = names is not None and learned.names is not None
    of_model = learned
    if are_copies(X, learned):
        conversion |= {"dosage": True, "binarize": None}
        of_model = copied_header(learned)
    if names is not None and learned.names is not None:
        X, _ = without_unknown_columns(X, names, of_model, absent, table)
    converted = Table.from_any(X, **conversion)
    match = match_columns(learned, converted.header, absent, table)
    if not warned:
        match.warn_differences(table)
    return match.gather_table(converted)


def copied_header(learned: Header) -> Header:
    """Return the columns of a table of numbers of copies from which the columns of a model can be made."""
    names = variants.copied_variants(learned.data)
    return Header(len(names), names, data=Annotations({}, len(names)))


def have_copies(names: Names | None, n_cols: int, learned: Header) -> bool:
    """Return whether columns with these names are the variants of a model, rather than its two columns of each.

    Without names, they are if their number is that of the variants, and the model was learned without names too.
    """
    of_model = copied_header(learned)
    if names is None or not of_model.names:
        return n_cols > 0 and of_model.names == feature_names(None, range(n_cols))
    given = set(names)
    return given.isdisjoint(learned.names or ()) and not given.isdisjoint(of_model.names)


def are_copies(X: Any, learned: Header) -> bool:
    """Return whether new rows for a model are numbers of copies, as `Table.from_any` takes with ``dosage=True``."""
    if isinstance(X, (Table, BitMatrix, SparseBits)) or len(getattr(X, "shape", ())) != 2:
        return False
    return have_copies(dataframes.column_names(X), X.shape[1], learned)


def check_not_copies(X: Any, learned: Header, model: str) -> None:
    """Raise if X has one column per variant of a model that has two: numbers of copies that cannot be recognized."""
    names = copied_header(learned).names
    if not names or learned.data is None or isinstance(X, (BitMatrix, SparseBits)):
        return
    shape: tuple[int, ...] = np.shape(X[:1]) if isinstance(X, (list, tuple)) else getattr(X, "shape", ())
    if len(shape) != 2 or shape[1] != len(names) or learned.n_cols != 2 * len(names):
        return
    frame = "a data frame with these columns, or "
    if any(allele is not None for allele in learned.data["allele"].tolist()):  # a data frame names no alleles
        names, frame = feature_names(learned.names, range(0, learned.n_cols, 2)), ""
    raise InputError(
        f"X has {len(names)} features, but {model} is expecting {learned.n_cols} features, two per variant; if X has "
        f"numbers of copies of {listed_names(names)}, in this order, pass {frame}Table.from_any(X, dosage=True).bits"
    )


def without_unknown_columns(
    frame: Any, names: Names, learned: Header, absent: str | None, table: str
) -> tuple[Any, Names]:
    """Return a data frame without the columns that the model does not know, with a warning, and the names left."""
    match = match_columns(learned, Header(len(names), names), absent, table)
    match.warn_differences(table)
    if not match.unknown:
        return frame, names
    unknown = set(match.unknown)
    names = tuple(name for name in names if name not in unknown)
    return dataframes.select_columns(frame, names), names


def listed_names(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    shown = ", ".join(repr(name[:40]) for name in names[:_LISTED]) or "none"
    return f"{shown} and {len(names) - _LISTED} more" if len(names) > _LISTED else shown


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
