"""Convert the cells of a file to bits, and count the missing ones: `Cells`, the same for text, numbers and bits.

Between a file and packed bits, a cell is a *state*: 0, 1, `MISSING_CELL`, or `BLANK_CELL` while it is open what blanks
mean. In a table of numbers of copies it may also be `TWO_COPIES`, and becomes two bits: one copy or more, two copies.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..cell_values import binarize_advice, binarized
from ..columns.table import as_bits
from ..columns.variables import FALSE_WORDS, TRUE_WORDS, parse_number
from ..errors import Parameter, warn
from ..formatting import be, counted, quoted
from ..sparse_bits import Bits
from ..validation import check_threshold
from .errors import FileError
from .options import CELL_FORMATS, DOSAGE_FORMATS, DROPPING_FORMATS, ReadOptions
from .stream import Source

MISSING_CELL, TWO_COPIES, BLANK_CELL = 2, 3, 4  # states besides 0 and 1; the lowest bit of a state is that of the cell
MISSING_WORDS = frozenset(("na", "n/a", "nan", "null", "none", "?", ".", "<na>", "#n/a"))
_MISSING_STATES = dict.fromkeys(MISSING_WORDS, MISSING_CELL) | {"": BLANK_CELL}
_BIT_STATES = dict.fromkeys(TRUE_WORDS | {"1", "1.0", "x", "+"}, 1) | dict.fromkeys(FALSE_WORDS | {"0", "0.0", "-"}, 0)
_COPIES_STATES = {"0": 0, "1": 1, "2": TWO_COPIES}
# Other ways to write 0 and 1, such as -0.0 and 1.00e+00. Numbers with leading zeros, such as 01, are rather codes.
_WRITTEN_BIT = re.compile(r"[+-]?0(\.0*)?(e[+-]?[0-9]+)?|(?P<one>\+?1(\.0*)?(e[+-]?0+)?)")
_NO_STATE = 255
_LEAST_COPIES, _MOST_COPIES = -0.5, 2.5  # numbers of copies are rounded
_INFINITE_WORDS = frozenset(("inf", "infinity"))  # not names either: an error in a table of numbers

Indices = tuple[Any, Any]  # of the rows and the columns of cells
Locate = Callable[[NDArray[np.intp]], Indices]  # from flat indices of some values to those of the table


class CellPosition(NamedTuple):
    """Where a cell is in a file, as messages show it."""

    row: int
    column: int | str  # its name, or its number if it has none
    unit: str = "row"  # "line" in text files
    zero_based: bool = False

    def __str__(self) -> str:
        count = " (counted from 0)" if self.zero_based else ""
        if isinstance(self.column, str):
            return f"{self.unit} {self.row}{count}, column {quoted(self.column)}"
        return f"{self.unit} {self.row}, column {self.column}{count}"


PositionOf = Callable[[int, int], CellPosition | str]  # from the row and column of a cell


def array_position(row: int, column: int | str) -> CellPosition:
    """Return the position of a cell of an array, or of a column with this name, counted from 0 as in NumPy."""
    return CellPosition(row, column, zero_based=True)


def position_in(columns: Sequence[str] | None) -> PositionOf:
    """Return the positions of the cells of an array whose columns have these names."""
    return array_position if columns is None else lambda row, column: array_position(row, columns[column])


def rectangle(top: int, left: int, width: int) -> Locate:
    """Return the indices of the cells of a part of a table that is this wide."""
    return lambda indices: (top + indices // width, left + indices % width)


def state_of(cell: str) -> int | None:
    """Return the state of a cell of text: 0, 1, missing or blank; None if it is none of these."""
    word = cell.strip().lower()
    state = _BIT_STATES.get(word, _MISSING_STATES.get(word))
    if state is None and (number := _WRITTEN_BIT.fullmatch(word)):
        state = int(number["one"] is not None)
    return state


def are_cells(words: Sequence[str]) -> bool:
    """Return whether all words are ones, zeros, blank or missing."""
    return all(state_of(word) is not None for word in words)


def is_text(cell: str) -> bool:
    """Return whether a cell is neither a number nor one of the words for ones, zeros and missing values."""
    word = cell.strip().lower()
    return state_of(word) is None and parse_number(word) is None and word.lstrip("+-") not in _INFINITE_WORDS


class CellCount:
    """The number of some cells, and the first one in row order, whatever the order in which they are found."""

    def __init__(self) -> None:
        self.n = 0
        self.first = (-1, -1)

    def add(self, n: int, row: int, column: int) -> None:
        """Add this many cells; the first one is given."""
        if n:
            self.first = min(self.first, (row, column)) if self.n else (row, column)
            self.n += n

    def add_all(self, rows: Any, columns: Any) -> None:
        """Add the cells at these indices."""
        if len(rows):
            row = int(rows.min())
            self.add(len(rows), row, int(columns[rows == row].min()))


class Cells:
    """Convert the cells of one file to states and bits, and count those that are missing or blank.

    Missing cells are unknown, or 0 (``missing="zero"``). A blank cell of text is 0 if the table contains no other zero,
    and missing otherwise. Call `check_missing` after the last cell.

    Parameters
    ----------
    source : Source
        The file.
    options : ReadOptions
        How to convert its cells.
    position : callable, default=array_position
        Returns what messages call a cell, from the indices of its row and column.
    read_again : callable, optional
        Reads the file from its beginning, and converts its cells with those given: if no zero was found yet, this shows
        whether blank cells are missing.
    """

    def __init__(
        self,
        source: Source,
        options: ReadOptions,
        position: PositionOf = array_position,
        read_again: Callable[[Cells], Iterator[object]] = lambda cells: iter(()),
    ) -> None:
        self.source, self.position, self._options, self._read_again = source, position, options, read_again
        self.threshold = check_threshold(options.binarize)
        self.missing_option = options.missing
        self.are_copies = options.dosage
        self.are_numbers = self.threshold is not None or self.are_copies  # any numbers, not only 0 and 1
        self.has_zeros = self.are_numbers  # a zero was found, or blanks are missing in any case
        self.missing, self.blank = CellCount(), CellCount()
        states = _MISSING_STATES | (_COPIES_STATES if self.are_copies else {} if self.are_numbers else _BIT_STATES)
        self._state_of_word = {spelled: states[word] for word in states for spelled in (word, word.upper())}
        self._state_of_character = np.full(128, _NO_STATE, np.uint8)
        for word, state in self._state_of_word.items():
            if len(word) == 1 and state not in (MISSING_CELL, BLANK_CELL):
                self._state_of_character[ord(word)] = state

    def is_valid(self, cell: str) -> bool:
        """Return whether a cell of text is a one, a zero, blank or missing; in a table of numbers, also a number."""
        if state_of(cell) is not None or not self.are_numbers:
            return state_of(cell) is not None
        word = cell.strip().lower()
        number = parse_number(word)
        if self.are_copies:
            return number is not None and _LEAST_COPIES < number <= _MOST_COPIES
        return number is not None or word.lstrip("+-") in _INFINITE_WORDS

    def characters_to_states(self, characters: str) -> NDArray[np.uint8] | None:
        """Convert cells of one character that are not missing; None if `words_to_states` has to do it."""
        if not characters.isascii():
            return None
        states = self._state_of_character[np.frombuffer(characters.encode("ascii"), np.uint8)]
        return None if states.size and states.max() == _NO_STATE else states

    def words_to_states(self, words: Sequence[str], row: int) -> NDArray[np.uint8]:
        """Convert the cells of a row of text."""
        known = self._state_of_word
        states = [known[word] if word in known else self.parse(word, row, i) for i, word in enumerate(words)]
        return np.array(states, np.uint8)

    def parse(self, text: str, row: int, column: int) -> int:
        """Return the state of a cell of text, which may have blanks around it, or be a number."""
        word = text.strip().lower()
        state = self._state_of_word.get(word) if self.are_numbers else state_of(word)
        if state is not None:
            return state
        number = parse_number(word) if self.are_numbers else None
        if number is None:
            raise self.invalid_cell(text.strip(), row, column)
        return int(self.numbers_to_states(np.array([number]), lambda _: ([row], [column]))[0])

    def numbers_to_states(self, values: NDArray[Any], locate: Locate) -> NDArray[Any]:
        """Convert numbers to states, booleans if none is missing."""
        bits = None if self.are_copies else binarized(values, self.threshold)
        if bits is not None:
            return bits
        missing = np.isnan(values)
        values = np.where(missing, 0, values)
        bits = binarized(values, self.threshold)
        if self.are_copies:
            valid = (_LEAST_COPIES < values) & (values <= _MOST_COPIES)
            bits = (
                np.where(values > 1.5, np.uint8(TWO_COPIES), (values > 0.5).astype(np.uint8)) if valid.all() else None
            )
        elif bits is None:
            valid = np.isfinite(values) if self.threshold is not None else (values == 0) | (values == 1)
        if bits is None:
            first = np.flatnonzero(~valid)[:1]
            (row,), (column,) = locate(first)
            raise self.invalid_cell(str(values.ravel()[first[0]]).removesuffix(".0"), int(row), int(column))
        return np.where(missing, np.uint8(MISSING_CELL), bits)

    def count(self, states: NDArray[Any], locate: Locate) -> None:
        """Count missing and blank cells among states, and note whether there are zeros."""
        self.has_zeros = self.has_zeros or not states.all()
        if states.dtype != np.bool_ and states.size and states.max() > 1:
            for state, found in ((MISSING_CELL, self.missing), (BLANK_CELL, self.blank)):
                found.add_all(*locate(np.flatnonzero(states == state)))

    def pack_numbers(self, values: NDArray[Any], locate: Locate) -> BitMatrix:
        """Pack a 2-D chunk of numbers."""
        states = self.numbers_to_states(values, locate)
        self.count(states, locate)
        return self.pack(states)

    @cached_property
    def _has_later_zeros(self) -> bool:
        """Whether the table has a zero, so that blank cells are missing; the file is read until there is one."""
        ahead = Cells(self.source, self._options, self.position)
        with suppress(FileError):  # raised again when these rows are read
            return any(ahead.has_zeros for _ in self._read_again(ahead))
        return ahead.has_zeros

    def pack(self, states: NDArray[Any], is_last: bool = False) -> BitMatrix:
        """Pack a 2-D chunk of states: missing cells are unknown, or 0. Numbers of copies become two columns each.

        ``is_last`` means that all cells of the table were counted.
        """
        ones = states
        if self.are_copies:
            ones = np.empty((len(states), 2 * states.shape[1]), bool)
            ones[:, 0::2], ones[:, 1::2] = states & 1, states == TWO_COPIES
        if states.dtype == np.bool_ or not states.size or states.max() <= 1:
            return BitMatrix.from_dense(ones)
        bits = BitMatrix.from_dense(ones if self.are_copies else states & 1)
        if self.missing_option != "unknown":
            return bits
        lacking = states == MISSING_CELL
        if states.max() == BLANK_CELL and (self.has_zeros or (not is_last and self._has_later_zeros)):
            lacking |= states == BLANK_CELL
        return bits.with_unknown(BitMatrix.from_dense(np.repeat(lacking, 2, axis=1) if self.are_copies else lacking))

    @overload
    def known(self, bits: BitMatrix, top: int) -> BitMatrix: ...
    @overload
    def known(self, bits: Bits, top: int) -> Bits: ...
    def known(self, bits: Bits, top: int) -> Bits:
        """Return rows of a table of bits, the first of which is ``top``.

        Unknown cells are missing values, and a threshold applies to the others.
        """
        if bits.unknown is not None and (rows := np.flatnonzero(bits.unknown.words.any(axis=1))).size:
            first = int(rows[0])
            self.missing.add(bits.n_unknown, top + first, int(np.argmax(bits.unknown[first])))
        above = as_bits(bits, self.threshold, missing="unknown")
        return above if self.missing_option == "unknown" else above.filled()

    def invalid_cell(self, value: str, row: int, column: int, note: str = "") -> FileError:
        """Return the error for a cell that is neither 0 nor 1, no number of copies, or not finite under a threshold."""
        position, format = self.position(row, column), self.source.format
        if self.threshold is not None:
            problem = f"{note}: {quoted(value)} is not a finite number, as "
            return self.source.error(position, problem, Parameter("binarize"), " requires; correct it")
        drop: tuple[str | Parameter, ...] = ()
        if format in CELL_FORMATS and not self.are_copies:
            drop = ("; for a table of categories and numbers, pass ", Parameter("categories", True))
        if format in DROPPING_FORMATS and isinstance(position, CellPosition):
            without = Parameter("without", str(position.column))
            drop += "; if the column is not part of the table, drop it with ", without
        if self.are_copies:
            problem = f"{note}: {quoted(value)} is not a number of copies, 0, 1 or 2; a missing genotype is blank or NA"
            return self.source.error(position, problem, *drop)
        number = math.inf if value.lstrip("+-").lower() in _INFINITE_WORDS else parse_number(value)
        if number is None:
            problem = "neither a one (1, yes, true, x) nor a zero (0, no, false); correct it"
            return self.source.error(position, f"{note}: {quoted(value)} is {problem}", *drop)
        advice = binarize_advice(number)
        if number == 2 and format in DOSAGE_FORMATS:
            advice += ("; for numbers of copies of an allele (0, 1 and 2), pass ", Parameter("dosage", True))
        return self.source.error(position, f"{note}: {value[:40]} is neither 0 nor 1; ", *advice, *drop)

    def check_missing(self) -> None:
        """Raise if cells were missing and may not be; note how many are unknown, and how many blank ones are zeros."""
        if self.missing_option == "zero":
            return
        if self.has_zeros:
            self.missing.add(self.blank.n, *self.blank.first)
        elif self.blank.n:
            cells = f"{counted(self.blank.n, 'blank cell')} {be(self.blank.n)}"
            warn(f"{self.source.name}: {cells} read as 0, because the table contains no other zeros")
        n = self.missing.n
        if not n:
            return
        values = f"{counted(n, 'value')} {be(n)} missing"
        if self.missing_option == "refuse":
            where = "at" if n == 1 else "the first at"
            them = "it" if n == 1 else "them"
            fix = f"; fill {them} in, or pass ", Parameter("missing", "zero"), f" to read {them} as 0"
            raise self.source.error(f"{values}, {where} ", self.position(*self.missing.first), *fix)
        unknown = "an unknown cell" if n == 1 else "unknown cells"
        warn(f"{self.source.name}: {counted(n, 'missing value')} {be(n)} read as {unknown}")
