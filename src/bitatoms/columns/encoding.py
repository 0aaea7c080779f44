"""`encode`: tables of categories and numbers as tables of 0 and 1; `Encoding`: how, for new rows and back.

The encoding is stored in the annotations of the columns (see `bitatoms.columns.variables`), hence in tables, stores and
models. Copies of alleles, in the columns of genotypes, are variables too; `Table.from_any` and files make such columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix, stack_rows
from ..cell_values import package_name
from ..errors import InputError, Parameter, warn
from ..formatting import counted, listed_names, quote_name, quoted
from ..frames import column_names, in_memory
from ..parameters import with_options
from ..sparse_bits import SparseBits
from ..validation import check_choice
from .annotations import Annotations, Values
from .column_types import DateColumn, column_values, has_columns, names_of_columns, typed_columns
from .encode_options import EncodeOptions
from .matching import ColumnMatch, match_columns, matched_table
from .table import Header, Names, Table, axis_names, feature_names, first_duplicate
from .variables import MISSING, UNSEEN, Summary, Variable, column_data, learned_variable, summarized, variables_of
from .variants import genotype_data

_CHUNK_CELLS = 1 << 23  # that are not packed at a time
_LISTED = 5  # variables in a message
_DESCRIBED = 10  # variables that are described one by one
_KINDS = {"category": "categories", "value": "categories", "bin": "in bins", "boolean": "yes or no", "copies": "copies"}


@with_options(EncodeOptions)
def encode(frame: Any, options: EncodeOptions) -> Table:
    """Make a table of 0 and 1 from a table of categories, numbers and booleans.

    A category becomes one column per value (``colour=red``), and a number one column per quantile bin (``age<30``,
    ``30<=age<45``). Integers with at most ten different values, each of which occurs twice on average, are categories.
    Booleans, and numbers that are all 0 or 1, stay one column, and so does text that is yes and no or true and false.
    Where a value is missing (NaN, None, NA, blank text), all columns of its variable are unknown.

    The encoding is stored with the columns: a model that learns from the table applies it to new rows, also to files.

    Parameters
    ----------
    frame : pandas or polars DataFrame, pyarrow Table, mapping of names to columns, or structured array
        The table, one row per sample. Dates are an error.
    {parameters}

    Returns
    -------
    Table

    See Also
    --------
    Encoding : Apply the encoding to other rows, and decode rows.

    Examples
    --------
    >>> import bitatoms as ba
    >>> frame = {"colour": ["red", "blue", "red", None], "age": [25, 30, 41, 58]}
    >>> table = ba.encode(frame, bins=2)
    >>> table.columns
    ('colour=blue', 'colour=red', 'age<40', 'age>=40')
    >>> ba.Encoding.of(table).decode(table)
    {'colour': ['red', 'blue', 'red', None], 'age': ['age<40', 'age<40', 'age>=40', 'age>=40']}
    """
    frame = _as_frame(frame)
    excluded = options.without
    given = names_of_columns(frame)
    if (duplicate := first_duplicate(given)) is not None:
        raise InputError(f"two columns have the name {quoted(duplicate)}; rename one of them")
    check_named(excluded, given, "without")
    names = tuple(name for name in given if name not in excluded)
    columns = typed_columns(frame, names)
    encoding = Encoding.learned({name: summarized(values) for name, values in columns.items()}, options)
    bits = encoding.packed(columns, UnseenValues("X"))
    return Table(bits, axis_names(frame)[0], encoding.columns, column_data=encoding.column_data)


def check_named(names: Sequence[str], given: Sequence[str], parameter: str) -> None:
    """Raise unless a table has the columns that a parameter names."""
    if lacking := [name for name in names if name not in given]:
        raise InputError(
            Parameter(parameter, lacking[0]), f": there is no such column; the columns are {listed_names(tuple(given))}"
        )


def _as_frame(frame: Any) -> Any:
    """Return an object whose columns have names; raise for others."""
    frame = in_memory(frame)
    if not has_columns(frame):
        raise TypeError(
            f"a table of categories must have named columns, got {type(frame).__name__}; pass a data frame or a dict "
            "of columns, or read a file with bitatoms.read(path, categories=True)"
        )
    return frame


class UnseenValues:
    """Counts of values that an encoding has no column for, by variable, in a table that messages call ``table``."""

    def __init__(self, table: str) -> None:
        self.table = table
        self._counts: dict[str, int] = {}
        self._examples: dict[str, str] = {}

    def add(self, name: str, count: int, example: str) -> None:
        """Count values of a variable, one of which is the example."""
        self._counts[name] = self._counts.get(name, 0) + count
        self._examples.setdefault(name, example)

    def warn(self) -> None:
        """Warn that there are such values, if there are any."""
        if not self._counts:
            return
        listed = listed_names(
            self._counts,
            _LISTED,
            lambda name: f"{quote_name(name)} ({self._counts[name]}, such as {quoted(self._examples[name])})",
        )
        n_values = counted(sum(self._counts.values()), "value")
        warn(
            f"{self.table}: {n_values} did not occur in the training table; all columns of the variable are 0 in such "
            f"a row: {listed}"
        )


class Encoding:
    """What the columns of a table stand for: how a table of categories, numbers or copies becomes one of 0 and 1.

    Parameters
    ----------
    variables : sequence of Variable
        The variables, in the order of their columns.
    data : Annotations, optional
        The annotations of the columns; by default, those that store the variables. Those of copies know the alleles.

    Attributes
    ----------
    variables : tuple of Variable
        The variables: their names, kinds, values and bins.
    columns : tuple of str
        The names of the columns of 0 and 1.

    Examples
    --------
    >>> import bitatoms as ba
    >>> table = ba.encode({"colour": ["red", "blue", "red"], "pets": [0, 3, 1]}, bins=2)
    >>> encoding = ba.Encoding.of(table)
    >>> encoding
    Encoding(colour (2 values), pets (2 bins))
    >>> encoding.apply({"pets": [7], "colour": ["blue"]}).to_dense()
    array([[1, 0, 0, 1]], dtype=uint8)
    """

    def __init__(self, variables: Sequence[Variable], data: Annotations | None = None) -> None:
        self.variables = tuple(variables)
        self._data = data

    @classmethod
    def of(cls, encoded: Any) -> Encoding | None:
        """Return the encoding of a table, a store or a model, None if its columns are only 0 and 1.

        Parameters
        ----------
        encoded : Table, Store, Model, Header or fitted estimator
            What the encoding is stored in. Columns of genotypes are encoded copies of alleles.

        Returns
        -------
        Encoding or None
        """
        if hasattr(encoded, "as_model"):
            encoded = encoded.as_model()
        header = encoded if isinstance(encoded, Header) else encoded.header
        found = variables_of(header)
        data = genotype_data(header.data, header.names) if found else None
        if data is not None:
            data = data.take(np.concatenate([indices for _, indices in found]))
        return cls([variable for variable, _ in found], data) if found else None

    @classmethod
    def learned(cls, summaries: Mapping[str, Summary], options: EncodeOptions) -> Encoding:
        """Return the encoding of variables with these values; those without any are left out with a warning."""
        as_category, as_number = options.as_category, options.as_number
        for name, given in (("as_category", as_category), ("as_number", as_number)):
            check_named(given, tuple(summaries), name)
        if both := [name for name in as_category if name in as_number]:
            raise InputError(
                f"the column {quoted(both[0])} cannot be both categories and numbers; omit ",
                Parameter("as_category", both[0]), " or ", Parameter("as_number", both[0]),
            )  # fmt: skip
        empty = tuple(name for name, summary in summaries.items() if not summary.n)
        if empty:
            warn(f"left out {counted(len(empty), 'column')} without values: {listed_names(empty)}")
        encoding = cls(
            [
                learned_variable(
                    name,
                    summary,
                    options.bins,
                    "category" if name in as_category else "number" if name in as_number else "auto",
                )
                for name, summary in summaries.items()
                if summary.n
            ]
        )
        if (duplicate := first_duplicate(encoding.columns)) is not None:
            first, second, *_ = [each.name for each in encoding.variables for name in each.columns if name == duplicate]
            raise InputError(
                f"the columns {quoted(first)} and {quoted(second)} would both be encoded as {quoted(duplicate)}; "
                "rename one of them"
            )
        return encoding

    @property
    def columns(self) -> Names:
        """The names of the columns of 0 and 1."""
        return tuple(name for variable in self.variables for name in variable.columns)

    @property
    def column_data(self) -> Annotations:
        """The annotations of the columns, which contain the encoding."""
        return column_data(self.variables) if self._data is None else self._data

    @property
    def header(self) -> Header:
        """The columns of 0 and 1."""
        return Header(len(self.columns), self.columns, data=self.column_data)

    @property
    def raw_header(self) -> Header:
        """The columns of a table that has not been encoded: one per variable."""
        names = tuple(variable.name for variable in self.variables)
        return Header(len(names), names, data=Annotations({}, len(names)))

    @property
    def is_of_copies(self) -> bool:
        """Whether its variables are copies of alleles, not categories and numbers."""
        return bool(self.variables) and all(variable.kind == "copies" for variable in self.variables)

    def __repr__(self) -> str:
        return f"Encoding({self.described()})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Encoding) and self.variables == other.variables

    def __hash__(self) -> int:
        return hash(self.variables)

    def described(self) -> str:
        """Return the variables with their numbers of columns; of many, how many of each kind, and the first ones."""
        n_variables = len(self.variables)
        shown = n_variables if n_variables <= _DESCRIBED else _LISTED
        first = ", ".join(variable.described() for variable in self.variables[:shown])
        if shown == n_variables:
            return first
        kinds = Counter(_KINDS[variable.kind] for variable in self.variables)
        counts = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
        n_columns = len(self.columns)
        return f"{n_variables} variables as {n_columns} columns ({counts}): {first} and {n_variables - shown} more"

    def is_raw(self, names: Sequence[str] | None, n_cols: int = 0) -> bool:
        """Return whether a table with these columns has the variables, not their columns of 0 and 1.

        Numbers of copies may have no names, if their number is that of the variables, which have no names either.
        """
        if names is None:
            return self.is_of_copies and self.raw_header.names == feature_names(None, range(n_cols))
        given = set(names)
        is_encoded = any(
            not given.isdisjoint(variable.columns) for variable in self.variables if variable.kind != "boolean"
        )
        return not is_encoded and any(variable.name in given for variable in self.variables)

    def match(self, names: Sequence[str], absent: str | None, table: str) -> ColumnMatch:
        """Find the variables among the columns of a table, as `match_columns` does; warn that others are ignored."""
        match = match_columns(self.raw_header, Header(len(names), tuple(names)), absent, table)
        match.warn_differences(table)
        return match

    def apply(self, frame: Any, *, absent: str = "refuse", missing: str = "unknown") -> Table:
        """Encode other rows.

        Parameters
        ----------
        frame : pandas or polars DataFrame, pyarrow Table, mapping of names to columns, or structured array
            The rows. Columns may be in any order; those that were not encoded are ignored, with a warning. Numbers of
            copies may also be an array or a sparse matrix.
        absent : {"refuse", "zero", "unknown"}, default="refuse"
            Whether variables that the frame lacks are an error, or their columns are 0 or unknown.
        missing : {"unknown", "zero", "refuse"}, default="unknown"
            Whether the columns of a missing value are unknown or 0, or it is an error.

        Returns
        -------
        Table
            All columns of 0 and 1, in their order. Values that did not occur in the training table are 0 in all
            of them; a warning counts these values.
        """
        return self._applied(frame, absent, missing, "the table")

    def _applied(self, frame: Any, absent: str | None, missing: str, table: str, without: Sequence[str] = ()) -> Table:
        """Encode other rows, called ``table`` in messages; columns in ``without`` are ignored, with no warning."""
        check_choice("missing", missing, ("unknown", "zero", "refuse"))
        if self.is_of_copies:
            return matched_table(
                in_memory(frame), self.header, absent, table, self.raw_header, missing=missing, dosage=True
            )
        frame = _as_frame(frame)
        given = [name for name in names_of_columns(frame) if name not in without]
        match, variables = self.match(given, absent, table), {variable.name: variable for variable in self.variables}
        try:
            columns = typed_columns(frame, [name for name in variables if name not in match.absent])
        except DateColumn as error:
            raise variables[error.name].wrong_type("dates or times", table) from None
        unseen = UnseenValues(table)
        bits = self.packed(columns, unseen, missing, match.fill)
        unseen.warn()
        if missing == "refuse":
            for name, values in columns.items():
                if summarized(values).n < len(values):
                    raise InputError(f"{table}: values of the column {quoted(name)} are missing; fill them in")
        return Table(bits, axis_names(frame)[0], self.columns, column_data=self.column_data)

    def packed(
        self, columns: Mapping[str, Values], unseen: UnseenValues, missing: str = "unknown", fill: str = "zero"
    ) -> BitMatrix:
        """Return rows as bits, from the values of each variable; values without a column are counted.

        Cells of a missing value are unknown if ``missing`` is "unknown", those of an absent variable if ``fill`` is.
        """
        codes, n_rows = [], len(next(iter(columns.values()), ()))
        for variable in self.variables:
            given = columns.get(variable.name)
            own = np.full(n_rows, MISSING, np.int32) if given is None else variable.codes(given, unseen.table)
            if n_unseen := int((own == UNSEEN).sum()):
                example = np.asanyarray(given)[own == UNSEEN][:1].tolist()
                unseen.add(variable.name, n_unseen, str(*example))
            codes.append(own)
        widths = np.array([variable.n_columns for variable in self.variables], np.intp)
        starts, n_cols = np.cumsum(widths) - widths, int(widths.sum())
        step = max(1, _CHUNK_CELLS // max(1, n_cols))
        chunks = []
        for start in range(0, n_rows, step):
            ones = np.zeros((min(step, n_rows - start), n_cols), bool)
            lacking = np.zeros_like(ones)
            for variable, first, all_codes in zip(self.variables, starts.tolist(), codes, strict=True):
                own, stop = all_codes[start : start + step], first + variable.n_columns
                ones[:, first:stop] = variable.ones(own)
                how = missing if variable.name in columns else fill
                lacking[own == MISSING, first:stop] = how == "unknown"
            bits = BitMatrix.from_dense(ones)
            chunks.append(bits.with_unknown(BitMatrix.from_dense(lacking)) if lacking.any() else bits)
        return stack_rows(chunks, n_cols)

    def decode(self, table: Any, original: Any = None) -> dict[str, list[Any]]:
        """Return the values of the variables, such as those that a model filled in.

        Parameters
        ----------
        table : Table, array or data frame
            The columns of the encoding: by name in any order, or without names in its order.
        original : pandas or polars DataFrame, pyarrow Table, mapping of names to columns, or structured array, optional
            The same rows before they were encoded and completed. Every value that is known there is returned as it is
            there, and other values are spelled as equal ones there.

        Returns
        -------
        dict of str to list
            For each variable one value per row, None where it is unknown, or where a row has none of its columns or
            several. A number that was divided into bins is the name of its bin, as ``30<=age<45``, unless the original
            has it. pandas and polars make a data frame of the dict.

        Examples
        --------
        >>> import bitatoms as ba
        >>> frame = {"age": [25, 28, 41, None, 58], "pets": ["yes", "no", "no", "no", None]}
        >>> table = ba.encode(frame, bins=2)
        >>> filled = ba.BitMatrix.from_dense([[1, 0, 1], [1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 1, 1]])
        >>> ba.Encoding.of(table).decode(filled, original=frame)
        {'age': [25, 28, 41, 'age>=40', 58], 'pets': ['yes', 'no', 'no', 'no', 'yes']}
        """
        bits = matched_table(table, self.header, table="the table").bits
        known = {} if original is None else self._values_of(original, len(bits))
        decoded: dict[str, list[Any]] = {}
        ones, start = bits.filled().to_dense(bool), 0
        unknown = np.zeros_like(ones) if bits.unknown is None else bits.unknown.to_dense(bool)
        for variable in self.variables:
            own_columns = slice(start, start := start + variable.n_columns)
            made = variable.codes_of_bits(ones[:, own_columns], unknown[:, own_columns]).tolist()
            decoded[variable.name] = variable.decoded(made)
            if variable.name in known:
                values, of_values = known[variable.name]
                spelled: dict[int, Any] = {}
                if variable.kind not in ("bin", "copies"):  # whose numbers differ
                    for code, value in zip(of_values, values, strict=True):
                        spelled.setdefault(code, value)
                decoded[variable.name] = [
                    value if own != MISSING else name if code == MISSING else spelled.get(code, name)
                    for value, own, name, code in zip(values, of_values, decoded[variable.name], made, strict=True)
                ]
        return decoded

    def _values_of(self, frame: Any, n_rows: int) -> dict[str, tuple[list[Any], list[int]]]:
        """Return the values of the variables that a frame has, as they are there, and their codes."""
        frame = _as_frame(frame)
        given = set(names_of_columns(frame))
        columns = typed_columns(frame, [variable.name for variable in self.variables if variable.name in given])
        for name, values in columns.items():
            if len(values) != n_rows:
                raise InputError(
                    f"the column {quoted(name)} of ", Parameter("original"), f" has {len(values)} values, but the "
                    f"table has {n_rows} rows; pass the same rows",
                )  # fmt: skip
        return {
            variable.name: (
                column_values(frame, variable.name),
                variable.codes(columns[variable.name], "the original").tolist(),
            )
            for variable in self.variables
            if variable.name in columns
        }


def matched_rows(X: Any, learned: Header, absent: str | None = None, table: str = "X", **conversion: Any) -> Table:
    """Convert new rows as `matched_table` does; one of categories or copies is encoded as that of the model was."""
    X = in_memory(X)
    encoding = raw_encoding(X, learned)
    if encoding is None:
        return matched_table(X, learned, absent, table, **conversion)
    made = encoding._applied(X, absent, conversion.get("missing", "unknown"), table)
    return match_columns(learned, made.header, absent, table).gather_table(made)


def raw_encoding(X: Any, learned: Header) -> Encoding | None:
    """Return the encoding of a model if X has its variables, not their columns of 0 and 1; otherwise None."""
    if isinstance(X, (Table, BitMatrix, SparseBits)) or (encoding := Encoding.of(learned)) is None:
        return None
    if encoding.is_of_copies:
        shape: tuple[int, ...] = getattr(X, "shape", ())
        is_raw = len(shape) == 2 and encoding.is_raw(column_names(X), shape[1])
    else:
        is_nested = package_name(X) == "pandas" and hasattr(X, "columns") and X.columns.nlevels > 1
        is_raw = has_columns(X) and not is_nested and encoding.is_raw(names_of_columns(X))
    return encoding if is_raw else None


def check_not_copies(X: Any, learned: Header, model: str) -> None:
    """Raise if X has one column per variant of a model that has two: numbers of copies that cannot be recognized."""
    shape: tuple[int, ...] = np.shape(X[:1]) if isinstance(X, (list, tuple)) else getattr(X, "shape", ())
    is_bits = isinstance(X, (BitMatrix, SparseBits))
    if is_bits or learned.data is None or len(shape) != 2 or 2 * shape[1] != learned.n_cols:
        return
    encoding = Encoding.of(learned)
    if encoding is not None and encoding.is_of_copies and len(encoding.columns) == learned.n_cols:
        names, frame = encoding.columns[::2], ""
        if all(allele is None for allele in learned.data["allele"].tolist()):  # a data frame does not name alleles
            names, frame = encoding.raw_header.names or (), "a data frame with these columns, or "
        raise InputError(
            f"X has {shape[1]} features, but {model} is expecting {learned.n_cols} features, two per variant; if X has "
            f"numbers of copies of {listed_names(names)}, in this order, pass {frame}Table.from_any(X, "
            "dosage=True).bits"
        )


class ColumnTies(NamedTuple):
    """Which columns tell each other's values, because they stand for one variable.

    Attributes
    ----------
    nested : ndarray of shape (n_pairs, 2)
        Columns of which a row has the second only if it has the first: one copy of an allele, and two.
    exclusive : tuple of ndarray of shape (n_groups, n_columns)
        Columns of which a row has exactly one, by the number of columns.
    first : ndarray of shape (n_cols,)
        For each column the first one of its variable.
    """

    nested: NDArray[np.intp]
    exclusive: tuple[NDArray[np.intp], ...]
    first: NDArray[np.intp]

    @classmethod
    def of(cls, columns: Header) -> ColumnTies:
        """Return the ties of the columns of a table or a model."""
        first, nested, groups = np.arange(columns.n_cols), [], dict[int, list[NDArray[np.intp]]]()
        for variable, indices in variables_of(columns):
            first[indices] = indices[0]
            if variable.kind == "copies":
                nested.append(indices)
            elif variable.is_exhaustive:
                groups.setdefault(len(indices), []).append(indices)
        exclusive = tuple(np.stack(groups[size]) for size in sorted(groups))
        return cls(np.array(nested, np.intp).reshape(-1, 2), exclusive, first)
