"""Variables: categories, numbers, booleans and copies of alleles, and the columns of 0 and 1 that stand for them.

A category or a number with few values has one column per value (``colour=red``), another number one per quantile bin
(``30<=age<45``), and a boolean one column. The annotations of such columns have the fields of `FIELDS`. Copies of an
allele, 0, 1 or 2, have two columns (see `bitatoms.columns.variants`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from decimal import ROUND_FLOOR, Decimal
from itertools import pairwise
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from ..cell_values import missing_cells
from ..errors import InputError, Parameter, warn
from ..formatting import counted, quote_name, quoted
from . import variants
from .annotations import Annotations, Labels, Values
from .table import Header, feature_names

Kind = Literal["category", "value", "bin", "boolean", "copies"]  # a value is a category that is a number
FIELDS = ("variable", "kind", "value", "lower", "upper")
MISSING, UNSEEN = -1, -2  # codes of values that have no column

TRUE_WORDS = frozenset(("true", "t", "yes", "y"))
FALSE_WORDS = frozenset(("false", "f", "no", "n"))
MAX_INTEGER_VALUES = 10  # distinct integers that are categories; each must occur twice on average
_MAX_FREE_VALUES = 100  # distinct texts that may be categories however few rows there are
_NAME_LENGTH = 40  # characters of a name that are shown
_MAX_EXACT = 2.0**53  # integers that floats represent exactly
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?\d+(,\d+)?", re.ASCII)
_BOOLEANS = {word: int(word in TRUE_WORDS) for word in TRUE_WORDS | FALSE_WORDS} | {"1": 1, "0": 0}


class Summary(NamedTuple):
    """The distinct known values of a variable, and how often each occurs."""

    values: tuple[str, ...] | NDArray[Any]  # text; or numbers or booleans, in increasing order
    counts: NDArray[np.int64]
    has_order: bool = False  # whether the values are a list of categories whose order is kept

    @property
    def n(self) -> int:
        """The number of known values."""
        return int(self.counts.sum())


class Variable(NamedTuple):
    """A variable and its columns.

    Attributes
    ----------
    name : str
        Its name.
    kind : {"category", "value", "bin", "boolean", "copies"}
        What its columns stand for: categories, numbers that are categories, bins of a number, a boolean, or at least 1
        and 2 copies of an allele.
    values : tuple of str
        The value of each column, for categories and numbers that are categories; for copies, the name of each column.
    bounds : tuple of (float, float)
        The lower and the upper bound of each column, for bins; a number belongs to a bin that begins with it.
    """

    name: str
    kind: Kind
    values: tuple[str, ...] = ()
    bounds: tuple[tuple[float, float], ...] = ()

    @property
    def n_columns(self) -> int:
        """The number of its columns."""
        return len(self.values) + len(self.bounds) + (self.kind == "boolean")

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns."""
        if self.kind == "copies":
            return self.values
        if self.kind == "boolean":
            return (self.name,)
        return (*(f"{self.name}={value}" for value in self.values), *(_bin(self.name, *each) for each in self.bounds))

    @property
    def is_number(self) -> bool:
        """Whether its code is how many of its columns are 1, in their order, not the one that is."""
        return self.kind in ("boolean", "copies")

    def ones(self, codes: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return the bits of codes, in one column for each of its columns."""
        columns = np.arange(self.n_columns)
        return codes[:, np.newaxis] > columns if self.is_number else codes[:, np.newaxis] == columns

    def codes_of_bits(self, ones: NDArray[np.bool_], is_unknown: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Return the codes of bits; `MISSING` where a cell is unknown, or not just one of exclusive columns is 1."""
        sums = ones.sum(axis=1)
        known = ~is_unknown.any(axis=1) & (self.is_number | (sums == 1))
        return np.where(known, sums if self.is_number else ones.argmax(axis=1), MISSING).astype(np.int32)

    def codes(self, given: Values, table: str = "X") -> NDArray[np.int32]:
        """Return for each value the index of its column, `MISSING` or `UNSEEN`; of booleans and copies their number.

        Raises
        ------
        InputError
            If the values are of another type than those of the variable.
        """
        if isinstance(given, Labels):
            words, occurs = _words(given), np.zeros(len(given.categories) + 1, bool)
            occurs[given.codes] = True
            known = [index for index, word in enumerate(words) if occurs[index] and word]
            codes = np.full(len(words) + 1, MISSING, np.int32)  # the last one is that of missing values
            codes[known] = self._codes_of([words[index] for index in known], table)
            return codes[given.codes]
        missing = _is_missing(given)
        numbers, codes = np.ma.getdata(given)[~missing], np.full(len(given), MISSING, np.int32)
        if self.kind == "bin":
            codes[~missing] = self._codes_of(numbers, table)
        else:
            distinct, inverse = np.unique(numbers, return_inverse=True)
            codes[~missing] = self._codes_of(distinct, table)[inverse]
        return codes

    def _codes_of(self, values: list[str] | NDArray[Any], table: str) -> NDArray[np.int32]:
        """Return the codes of texts or numbers: of the number that a text is, unless it is the text of a column."""
        texts = values if isinstance(values, list) else None
        numbers = np.array(values if texts is None else list(map(parse_number, texts)), np.float64)  # NaN: no number
        codes = np.full(len(values), UNSEEN, np.int32)
        if self.kind == "copies":
            is_valid = (numbers > -0.5) & (numbers <= 2.5)
            codes[is_valid] = np.ceil(numbers[is_valid] - 0.5)
        for code, (lower, upper) in enumerate(self.bounds):
            codes[(lower <= numbers) & ((numbers < upper) | (upper == np.inf))] = code
        known = {text: code for code, text in enumerate(self.columns if self.kind == "bin" else self.values)}
        known = {"boolean": _BOOLEANS, "copies": {}}.get(self.kind, known)
        has_code = codes != UNSEEN if self.kind != "bin" else ~np.isnan(numbers)  # bins may be left out
        for index in np.flatnonzero(~has_code).tolist():
            text = texts[index] if texts else _number_text(values[index])
            text = text.lower() if self.kind == "boolean" else text
            if texts and text not in known and self.kind in ("boolean", "value") and not np.isnan(numbers[index]):
                text = _number_text(numbers[index])  # which may be written in several ways
            codes[index] = known.get(text, UNSEEN)
        unseen = np.flatnonzero(~has_code & (codes == UNSEEN))
        may_be_new = self.kind == "value" or (self.kind == "category" and (texts or len(unseen) < len(values)))
        if len(unseen) and not may_be_new:
            found = quoted(texts[unseen[0]]) if texts else _number_text(values[unseen[0]])
            what = {"bin": "text, such as ", "category": "numbers, such as "}.get(self.kind, "")
            raise self.wrong_type(f"{what}{found}", table)
        return codes

    def wrong_type(self, found: str, table: str) -> InputError:
        """Return the error for values of another type."""
        expected = {
            "boolean": "0 and 1, or yes and no",
            "bin": "numbers",
            "category": f"text, such as {quoted(self.values[0])}" if self.values else "text",
            "value": "numbers",
            "copies": "the numbers 0, 1 and 2",
        }[self.kind]
        return InputError(
            f"{table}: the column {quoted(self.name)} contains {found}, but it was encoded from {expected}; pass "
            "values of the same type"
        )

    def decoded(self, codes: Iterable[int]) -> list[Any]:
        """Return the value of each code, the name of a bin, or True and False; None for codes of no column."""
        of_code: Sequence[Any] = {
            "boolean": (False, True), "category": self.values, "bin": self.columns, "copies": range(3),
        }.get(self.kind) or [_value_of(text) for text in self.values]  # fmt: skip
        return [of_code[code] if code >= 0 else None for code in codes]

    @property
    def is_exhaustive(self) -> bool:
        """Whether every known value is in one of the columns; not if bins are left out."""
        ends = sorted(self.bounds)
        gaps = any(upper != lower for (_, upper), (lower, _) in pairwise(ends))
        is_all = self.kind == "bin" and not gaps and ends[0][0] == -np.inf and ends[-1][1] == np.inf
        return is_all or self.kind in ("category", "value")

    def described(self) -> str:
        """Return what its columns stand for, in a few words."""
        name = quote_name(self.name if len(self.name) <= _NAME_LENGTH else f"{self.name[:_NAME_LENGTH]}...")
        if self.kind == "boolean":
            return f"{name} (yes or no)"
        if self.kind == "copies":
            return f"{name} (0, 1 or 2 copies)"
        return f"{name} ({counted(self.n_columns, 'bin' if self.kind == 'bin' else 'value')})"


def parse_number(text: str) -> float | None:
    """Return a text without blanks as a finite number written in ASCII, or None."""
    if not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    return number if math.isfinite(number) else None


def _number_text(value: Any) -> str:
    """Return a number as text: integers without a fraction, others with as many digits as they need."""
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return str(int(number)) if number.is_integer() and abs(number) < _MAX_EXACT else repr(number)
    return str(int(value))


def _value_of(text: str) -> int | float:
    """Return the number that `_number_text` wrote."""
    number = float(text)
    return int(text) if text.lstrip("-").isdecimal() else number


def _bin(name: str, lower: float, upper: float) -> str:
    """Return the name of a bin."""
    below, above = f"{_number_text(lower)}<=" if lower > -np.inf else "", f"<{_number_text(upper)}"
    if upper < np.inf:
        return f"{below}{name}{above}"
    return f"{name}>={_number_text(lower)}" if below else name


def _is_missing(given: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where numbers or booleans are missing: masked or NaN."""
    return np.ma.getmaskarray(given) | missing_cells(np.ma.getdata(given))


def _words(given: Labels) -> list[str]:
    """Return how the categories are called in names of columns."""
    if given.category_type:
        return [_number_text(value) for value in given.typed_categories().tolist()]
    return [text.strip() for text in given.categories]


def summarized(given: Values) -> Summary:
    """Return the distinct known values; blank text is missing."""
    if isinstance(given, Labels):
        counts = np.bincount(given.codes[given.codes >= 0], minlength=len(given.categories))
        merged: dict[str, int] = {}
        for text, count in zip(_words(given), counts.tolist(), strict=True):
            if text and (count or given.is_categorical):
                merged[text] = merged.get(text, 0) + count
        return Summary(tuple(merged), np.array([*merged.values()], np.int64), given.is_categorical)
    values, counts = np.unique(np.ma.getdata(given)[~_is_missing(given)], return_counts=True)
    return Summary(values, counts)


def learned_variable(name: str, summary: Summary, bins: int, how: Literal["auto", "category", "number"]) -> Variable:
    """Return the variable of these values: of the kind that they suggest, categories, or numbers.

    Raises
    ------
    InputError
        If text cannot be the values of a number, numbers are infinite, or, unless they are to be categories, almost
        all texts differ.
    """
    values = summary.values
    if isinstance(values, tuple):
        if how == "number":
            return _number_variable(name, _numbers_of_texts(name, summary), bins, how)
        if how == "auto" and not summary.has_order:
            words = {value.lower() for value in values}
            if words <= TRUE_WORDS | FALSE_WORDS and words & TRUE_WORDS and words & FALSE_WORDS:
                return Variable(name, "boolean")
            if len(values) > max(_MAX_FREE_VALUES, summary.n / 2):
                raise InputError(
                    f"the column {quoted(name)} has {len(values)} different texts in {summary.n} rows, which are "
                    "hardly categories; leave it out with ", Parameter("without", name), ", or pass ",
                    Parameter("as_category", name),
                )  # fmt: skip
            if all(map(_DECIMAL_COMMA.fullmatch, values)) and (written := [each for each in values if "," in each]):
                warn(
                    f"the column {quoted(name)} contains text such as {quoted(written[0])}, which is read as "
                    "categories; write numbers with a decimal point, or pass ", Parameter("as_category", name),
                )  # fmt: skip
        return Variable(name, "category", values if summary.has_order else tuple(sorted(values)))
    return _number_variable(name, summary, bins, how)


def _numbers_of_texts(name: str, summary: Summary) -> Summary:
    """Return the numbers that texts are, in increasing order."""
    numbers: dict[float, int] = {}
    for text, count in zip(summary.values, summary.counts.tolist(), strict=True):
        if (number := parse_number(str(text))) is None:
            raise InputError(
                f"the column {quoted(name)} contains {quoted(str(text))}, which is not a number; correct it, or omit ",
                Parameter("as_number", name),
            )
        numbers[number] = numbers.get(number, 0) + count
    ordered = sorted(numbers)
    return Summary(np.array(ordered), np.array([numbers[each] for each in ordered], np.int64))


def _number_variable(name: str, summary: Summary, bins: int, how: str) -> Variable:
    """Return the variable of numbers: a boolean, categories, or quantile bins."""
    values = np.asarray(summary.values)
    if not np.isfinite(values.astype(np.float64)).all():
        raise InputError(f"the column {quoted(name)} contains infinite numbers; correct them or leave them blank")
    if how == "auto" and set(values.tolist()) <= {0, 1}:
        return Variable(name, "boolean")
    is_integer = bool((values == np.floor(values)).all())
    is_few = is_integer and len(values) <= min(MAX_INTEGER_VALUES, summary.n / 2)
    numbers, inverse = np.unique(values.astype(np.float64), return_inverse=True)  # large integers may coincide
    edges = quantile_edges(numbers, np.bincount(inverse, summary.counts).astype(np.int64), bins)
    if how == "category" or (how == "auto" and is_few) or not edges:
        return Variable(name, "value", tuple(map(_number_text, values.tolist())))
    return Variable(name, "bin", bounds=tuple(pairwise((-np.inf, *edges, np.inf))))


def quantile_edges(values: NDArray[Any], counts: NDArray[np.int64], bins: int) -> tuple[float, ...]:
    """Return the edges between bins that contain equally many numbers, as nearly as equal numbers allow.

    An edge is the number with the fewest digits that divides the values so; fewer bins are made where edges coincide.

    Parameters
    ----------
    values, counts : ndarray of shape (n_distinct,)
        The distinct numbers in increasing order, and how often each occurs.
    bins : int
        The number of bins to make.
    """
    if len(values) < 2:
        return ()
    below = np.cumsum(counts)[:-1]  # the numbers below each value but the first
    targets = np.arange(1, bins) * (int(counts.sum()) / bins)
    chosen = np.unique(np.abs(below - targets[:, np.newaxis]).argmin(axis=1)) + 1 if bins > 1 else ()
    return tuple(shortest_between(float(values[each - 1]), float(values[each])) for each in chosen)


def shortest_between(lower: float, upper: float) -> float:
    """Return the number above ``lower`` and at most ``upper`` that has the fewest decimals, or the most zeros."""
    exact = Decimal(repr(upper))
    last = exact.as_tuple().exponent
    assert isinstance(last, int)
    for exponent in range(max(exact.adjusted(), Decimal(repr(lower)).adjusted()) + 1, last, -1):
        rounded = float(exact.scaleb(-exponent).to_integral_value(ROUND_FLOOR).scaleb(exponent))
        if lower < rounded <= upper:
            return rounded
    return upper


def column_data(variables: Sequence[Variable]) -> Annotations:
    """Return the annotations of the columns of variables."""
    cells = [
        (variable.name, variable.kind, value, lower, upper)
        for variable in variables
        for value, (lower, upper) in zip(
            variable.values or [None] * variable.n_columns,
            variable.bounds or [(np.nan, np.nan)] * variable.n_columns,
            strict=True,
        )
    ]
    *texts, lower, upper = zip(*cells, strict=True) if cells else [()] * len(FIELDS)
    fields = [*map(Labels.of, texts), np.array(lower, np.float64), np.array(upper, np.float64)]
    return Annotations(dict(zip(FIELDS, fields, strict=True)), len(cells))


def variables_of(columns: Header) -> list[tuple[Variable, NDArray[np.intp]]]:
    """Return the variables that columns stand for, and the indices of the columns of each; none of other columns."""
    data = columns.data
    if data is None or not all(name in data for name in FIELDS):
        return _copies_of(columns)
    stored = [data.values_of(name) for name in FIELDS]
    if [isinstance(each, Labels) for each in stored] != [True, True, True, False, False]:
        return []
    names, kinds, values, lower, upper = (np.asarray(each) for each in stored)
    found: dict[str, list[int]] = {}
    for index, name in enumerate(names.tolist()):
        if name is not None:
            found.setdefault(name, []).append(index)
    variables = []
    for name, indices in found.items():
        kind = kinds[indices[0]]
        if kind not in get_args(Kind) or any(kinds[each] != kind for each in indices):
            return []
        own = tuple(values[indices].tolist()) if kind in ("category", "value") else ()
        pairs = list(zip(lower[indices].tolist(), upper[indices].tolist(), strict=True)) if kind == "bin" else []
        is_valid = {"boolean": len(indices) == 1, "bin": all(low < high for low, high in pairs)}.get(
            kind, None not in own
        )
        if not is_valid or (kind == "value" and not all(parse_number(each) is not None for each in own)):
            return []
        variables.append((Variable(name, kind, own, tuple(pairs)), np.array(indices, np.intp)))
    return variables


def _copies_of(columns: Header) -> list[tuple[Variable, NDArray[np.intp]]]:
    """Return the copies of alleles that columns stand for, if these are genotypes, and the two columns of each."""
    data = variants.genotype_data(columns.data, columns.names)
    if data is None:
        return []
    names, pairs = feature_names(columns.names, range(columns.n_cols)), variants.pairs(data)
    named = zip(variants.variant_names(data, names, pairs), pairs, pairs.tolist(), strict=True)
    return [(Variable(name, "copies", (names[one], names[two])), pair) for name, pair, (one, two) in named]
