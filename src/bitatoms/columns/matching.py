"""`match_columns`: the columns of a model in a table of new rows; `matched_table`: new rows with these columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from .. import frames
from ..bits import BitMatrix
from ..cell_values import package_name
from ..errors import InputError, Parameter, warn
from ..formatting import be, counted, listed_names
from ..sparse_bits import Bits, packed
from ..validation import check_choice
from .table import Header, Names, Table, first_duplicate
from .variants import are_variants, have_equal_alleles, match_variants


@dataclass(frozen=True, slots=True, eq=False)
class ColumnMatch:
    """Where the columns of a model are in a table of new rows; `match_columns` finds them.

    Attributes
    ----------
    indices : ndarray of int64 or None
        For each column of the model, its index in the table, or -1 if it is absent. None if the
        table has the columns of the model, in the same order.
    learned : Header or None
        The columns of the model, if ``indices`` is not None.
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
    """

    indices: NDArray[np.int64] | None = None
    learned: Header | None = None
    unknown: Names = ()
    absent: Names = ()
    fill: str = "zero"
    is_fill_chosen: bool = False
    swapped: NDArray[np.bool_] | None = None
    notes: Names = ()

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
        if self.learned is None:
            return table
        names, data = self.learned.names, self.learned.data
        return table._replaced(self.gather(table.data), columns=names, picture=None, column_data=data)

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
            n_columns = counted(len(self.unknown), "column")
            parts.append(f"ignored {n_columns} that the model was not fitted on: {listed_names(self.unknown)}")
        if self.absent and (self.is_fill_chosen or self.unknown):
            absent = f"{counted(len(self.absent), 'absent column')} {be(len(self.absent))}"
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
    >>> from bitatoms.columns.matching import match_columns
    >>> from bitatoms.columns.table import Header
    >>> match = match_columns(Header(3, ("milk", "bread", "tea")), Header(3, ("gin", "tea", "milk")), "zero")
    >>> match.indices, match.unknown, match.absent
    (array([ 2, -1,  1]), ('gin',), ('bread',))
    """
    if absent is not None:
        check_choice("absent", absent, ("auto", "refuse", "zero", "unknown"))
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
        indices, swapped, notes = match_variants(*variants)
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
        fills = Parameter("absent", "zero"), " to read them as 0, or ", Parameter("absent", "unknown")
        raise InputError(
            f"{table} lacks columns that the model was fitted on: {listed_names(lacking)}{others}; add them",
            *(() if absent is None else (", or pass ", *fills)),
        )
    learned = learned._replace(names=names)
    return ColumnMatch(indices, learned, unknown, lacking, fill, not given.absent_is_zero, swapped, notes)


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


def matched_table(
    X: Any,
    learned: Header,
    absent: str | None = None,
    table: str = "X",
    of_frame: Header | None = None,
    **conversion: Any,
) -> Table:
    """Convert new rows as `Table.from_any` does, with the columns of a model; see `match_columns`.

    Columns of a data frame that the model does not know are left out first, and may hold anything; ``of_frame`` are
    those that it may have, if these are not the columns of the model.
    """
    names = None if frames.is_anndata(X) else frames.column_names(X)
    is_matched = names is not None and learned.names is not None
    if names is not None and learned.names is not None:
        X, _ = without_unknown_columns(X, names, of_frame or learned, absent, table)
    converted = Table.from_any(X, **conversion)
    match = match_columns(learned, converted.header, absent, table)
    if not is_matched:
        match.warn_differences(table)
    return match.gather_table(converted)


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
    return frame.select(list(names)) if package_name(frame) == "pyarrow" else frame[list(names)], names
