"""Convert the cells of a file to bits: numbers by `Cells`, text by `TextCells`; count the missing ones.

Between a file and packed bits, a cell is a *state*: 0, 1, `MISSING`, or `BLANK` while it is open what blanks mean. In a
table of numbers of copies it may also be `TWO`, and becomes two bits: one copy or more, two copies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..cell_values import binarize_advice, binarized
from ..columns.table import as_bits
from ..columns.variables import FALSE_WORDS, TRUE_WORDS
from ..errors import Parameter, warn
from ..sparse_bits import Bits
from ..validation import check_threshold
from .errors import FileError
from .options import DOSAGE_FORMATS, DROPPING_FORMATS, ReadOptions
from .stream import Source
from .text_numbers import parse_number

MISSING, TWO, BLANK = 2, 3, 4  # states besides 0 and 1; the lowest bit of a state is that of the cell
MISSING_WORDS = frozenset(("na", "n/a", "nan", "null", "none", "?", ".", "<na>", "#n/a"))
_MISSING_STATES = dict.fromkeys(MISSING_WORDS, MISSING) | {"": BLANK}
_BIT_STATES = dict.fromkeys(TRUE_WORDS | {"1", "1.0", "x", "+"}, 1) | dict.fromkeys(FALSE_WORDS | {"0", "0.0", "-"}, 0)
# Other ways to write 0 and 1, such as -0.0 and 1.00e+00. Numbers with leading zeros, such as 01, are rather codes.
_WRITTEN_BIT = re.compile(r"[+-]?0(\.0*)?(e[+-]?[0-9]+)?|(?P<one>\+?1(\.0*)?(e[+-]?0+)?)")
_NO_STATE = 255
_LEAST_COPIES, _MOST_COPIES = -0.5, 2.5  # numbers of copies are rounded
_INFINITE_WORDS = frozenset(("inf", "infinity"))  # not names either: an error in a table of numbers


class CellPosition(NamedTuple):
    """Where a cell is in a file, as messages show it."""

    row: int
    column: int | str  # its name, or its number if it has none
    unit: str = "row"  # "line" in text files
    zero_based: bool = False

    def __str__(self) -> str:
        count = " (counted from 0)" if self.zero_based else ""
        if isinstance(self.column, str):
            return f"{self.unit} {self.row}{count}, column {self.column[:40]!r}"
        return f"{self.unit} {self.row}, column {self.column}{count}"


def state_of(cell: str) -> int | None:
    """Return the state of a cell of text: 0, 1, missing or blank; None if it is none of these."""
    word = cell.strip().lower()
    state = _BIT_STATES.get(word, _MISSING_STATES.get(word))
    if state is None and (number := _WRITTEN_BIT.fullmatch(word)):
        return int(number["one"] is not None)
    return state


PositionOf = Callable[[int, int], CellPosition]  # from the row and column within a chunk


def array_position(row: int, column: int | str) -> CellPosition:
    """Return the position of a cell of an array, or of a column with this name, counted from 0 as in NumPy."""
    return CellPosition(row, column, zero_based=True)


class Cells:
    """Convert the cells of one file to bits. Missing cells are counted; they are unknown, or 0 (``missing="zero"``).

    Call `check_missing` after the last cell: it raises an error if cells were missing and ``missing="refuse"``, and
    notes how many are unknown.
    """

    def __init__(self, source: Source, options: ReadOptions) -> None:
        self.source = source
        self.threshold = check_threshold(options.binarize)
        self.missing = options.missing
        self.are_copies = options.dosage
        self.n_missing = 0
        self.first_missing: CellPosition | str | None = None

    @property
    def are_numbers(self) -> bool:
        """Whether cells are any numbers, not only 0 and 1."""
        return self.threshold is not None or self.are_copies

    def pack_numbers(self, values: NDArray[Any], position_of: PositionOf) -> BitMatrix:
        """Pack a 2-D chunk of numbers."""

        def at(index: int) -> CellPosition:
            return position_of(*divmod(index, values.shape[1]))

        def count(indices: NDArray[np.intp]) -> None:
            if len(indices):
                self.add_missing(len(indices), at(int(indices[0])))

        return self.pack(self.numbers_to_states(values, count, at))

    def pack(self, states: NDArray[Any], has_zeros: Callable[[], bool] | None = None) -> BitMatrix:
        """Pack a 2-D chunk of states: missing cells are unknown, or 0. Numbers of copies become two columns each.

        ``has_zeros`` returns whether the table has a zero, so that blank cells are missing; it is called only if that
        matters.
        """
        ones = states
        if self.are_copies:
            ones = np.empty((len(states), 2 * states.shape[1]), bool)
            ones[:, 0::2], ones[:, 1::2] = states & 1, states == TWO
        if states.dtype == np.bool_ or not states.size or states.max() <= 1:
            return BitMatrix.from_dense(ones)
        bits = BitMatrix.from_dense(ones if self.are_copies else states & 1)
        if self.missing != "unknown":
            return bits
        is_blank_missing = has_zeros is not None and bool((states == BLANK).any()) and has_zeros()
        lacking = (states == MISSING) | (states == BLANK) if is_blank_missing else states == MISSING
        return bits.with_unknown(BitMatrix.from_dense(np.repeat(lacking, 2, axis=1) if self.are_copies else lacking))

    @overload
    def known(self, bits: BitMatrix, position_of: PositionOf) -> BitMatrix: ...
    @overload
    def known(self, bits: Bits, position_of: PositionOf) -> Bits: ...
    def known(self, bits: Bits, position_of: PositionOf) -> Bits:
        """Return rows of a table of bits: unknown cells are missing values, and a threshold applies to the others."""
        if bits.unknown is not None and (rows := np.flatnonzero(bits.unknown.words.any(axis=1))).size:
            first = int(rows[0])
            self.add_missing(bits.n_unknown, position_of(first, int(np.argmax(bits.unknown[first]))))
        above = as_bits(bits, self.threshold, missing="unknown")
        return above if self.missing == "unknown" else above.filled()

    def numbers_to_states(
        self,
        values: NDArray[Any],
        on_missing: Callable[[NDArray[np.intp]], None],
        position_at: Callable[[int], CellPosition],
    ) -> NDArray[Any]:
        """Convert numbers to states; ``on_missing`` and ``position_at`` get flat indices."""
        if self.are_copies:
            return self._copies_to_states(values, on_missing, position_at)
        bits = binarized(values, self.threshold)
        if bits is not None:
            return bits
        missing = np.isnan(values)
        on_missing(np.flatnonzero(missing))
        values = np.where(missing, 0, values)
        bits = binarized(values, self.threshold)
        if bits is None:
            valid = np.isfinite(values) if self.threshold is not None else (values == 0) | (values == 1)
            first = int(np.flatnonzero(~valid)[0])
            raise self.invalid_cell(str(values.ravel()[first]).removesuffix(".0"), position_at(first))
        return np.where(missing, np.uint8(MISSING), bits)

    def _copies_to_states(
        self,
        values: NDArray[Any],
        on_missing: Callable[[NDArray[np.intp]], None],
        position_at: Callable[[int], CellPosition],
    ) -> NDArray[np.uint8]:
        """Convert numbers of copies, which are rounded, to states."""
        missing = np.isnan(values)
        on_missing(np.flatnonzero(missing))
        values = np.where(missing, 0, values)
        invalid = np.flatnonzero((values <= _LEAST_COPIES) | (values > _MOST_COPIES))
        if len(invalid):
            first = int(invalid[0])
            raise self.invalid_cell(str(values.ravel()[first]).removesuffix(".0"), position_at(first))
        states = np.where(values > 1.5, np.uint8(TWO), (values > 0.5).astype(np.uint8))
        return np.where(missing, np.uint8(MISSING), states)

    def invalid_cell(self, value: str, position: CellPosition, note: str = "") -> FileError:
        """Return the error for a cell that is neither 0 nor 1, no number of copies, or not finite under a threshold."""
        if self.threshold is not None:
            problem = f"{note}: {value[:40]!r} is not a finite number, as "
            return self.source.error(position, problem, Parameter("binarize"), " requires; correct it")
        drop: tuple[str | Parameter, ...] = ()
        if self.source.format in ("csv", "tsv", "xlsx") and not self.are_copies:
            drop = ("; for a table of categories and numbers, pass ", Parameter("categories", True))
        if self.source.format in DROPPING_FORMATS:
            drop += (
                "; if the column is not part of the table, drop it with ",
                Parameter("without", str(position.column)),
            )
        if self.are_copies:
            problem = f"{note}: {value[:40]!r} is not a number of copies, 0, 1 or 2; a missing genotype is blank or NA"
            return self.source.error(position, problem, *drop)
        number = parse_number(value)
        if number is None:
            problem = "neither a one (1, yes, true, x) nor a zero (0, no, false); correct it"
            return self.source.error(position, f"{note}: {value[:40]!r} is {problem}", *drop)
        problem = f"{note}: {value[:40]} is neither 0 nor 1; "
        advice = binarize_advice(number)
        if number == 2 and self.source.format in DOSAGE_FORMATS:
            advice += ("; for numbers of copies of an allele (0, 1 and 2), pass ", Parameter("dosage", True))
        return self.source.error(position, problem, *advice, *drop)

    def add_missing(self, count: int, first: CellPosition | str) -> None:
        """Count missing cells; the first one is at this position."""
        if not self.n_missing:
            self.first_missing = first
        self.n_missing += count

    def check_missing(self) -> None:
        """Raise if cells were missing and may not be; note how many are unknown."""
        if not self.n_missing or self.missing == "zero":
            return
        one = self.n_missing == 1
        if self.missing == "refuse":
            problem = "1 value is missing, at " if one else f"{self.n_missing} values are missing, the first at "
            them = "it" if one else "them"
            fix = f"; fill {them} in, or pass ", Parameter("missing", "zero"), f" to read {them} as 0"
            raise self.source.error(problem, self.first_missing, *fix)
        values = "1 missing value is" if one else f"{self.n_missing} missing values are"
        warn(f"{self.source.name}: {values} read as {'an unknown cell' if one else 'unknown cells'}")


class TextCells:
    """Convert cells of text to states: 0 and 1, yes and no, true and false, x and blank; with a threshold, numbers.

    A blank cell is 0 if the table contains no other zero, and missing otherwise: `Cells.pack` decides that.
    """

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self.has_zeros = cells.are_copies  # blank cells are then missing
        self.n_blank = 0
        self._first_blank_or_missing: CellPosition | None = None
        states = dict(_MISSING_STATES)
        if cells.are_copies:
            states |= {"0": 0, "1": 1, "2": TWO}
        elif cells.threshold is None:
            states |= _BIT_STATES
        self._state_of_word = {spelled: states[word] for word in states for spelled in (word, word.upper())}
        self._state_of_character = np.full(128, _NO_STATE, np.uint8)
        for word, state in self._state_of_word.items():
            if len(word) == 1 and state not in (MISSING, BLANK):
                self._state_of_character[ord(word)] = state

    def is_valid(self, cell: str) -> bool:
        """Return whether a cell is a one, a zero, blank or missing; with a threshold, also a number."""
        if state_of(cell) is not None:
            return True
        word = cell.strip().lower()
        number = _number(word) if self.cells.are_numbers else None
        if self.cells.are_copies:
            return number is not None and _LEAST_COPIES < number <= _MOST_COPIES
        return number is not None or (self.cells.are_numbers and word.lstrip("+-") in _INFINITE_WORDS)

    def is_text(self, cell: str) -> bool:
        """Return whether a cell is neither valid nor a number."""
        return not self.is_valid(cell) and _number(cell) is None

    def characters_to_states(self, characters: str) -> NDArray[np.uint8] | None:
        """Convert a row of one-character cells that are not missing; None if `row_to_states` has to do it."""
        if not characters.isascii():
            return None
        states = self._state_of_character[np.frombuffer(characters.encode("ascii"), np.uint8)]
        if states.size and states.max() == _NO_STATE:
            return None
        self.has_zeros = self.has_zeros or not states.all()
        return states

    def row_to_states(self, cells: Sequence[str], position_of: Callable[[int], CellPosition]) -> NDArray[np.uint8]:
        """Convert a row of cells to states; ``position_of`` gets the column."""
        known = self._state_of_word
        states = np.array(
            [
                known[cell] if cell in known else self._parse(cell, column, position_of)
                for column, cell in enumerate(cells)
            ],
            np.uint8,
        )
        self.has_zeros = self.has_zeros or not states.all()
        if states.size and states.max() > 1:
            missing, lacking = np.flatnonzero(states == MISSING), (states == MISSING) | (states == BLANK)
            if len(missing):
                self.cells.add_missing(len(missing), position_of(int(missing[0])))
            self.n_blank += int(np.count_nonzero(states == BLANK))
            if lacking.any():
                self._first_blank_or_missing = self._first_blank_or_missing or position_of(int(np.argmax(lacking)))
        return states

    def _parse(self, cell: str, column: int, position_of: Callable[[int], CellPosition]) -> int:
        """Return the state of a cell with blanks around it, in mixed case, or of a number."""
        word = cell.strip().lower()
        state = self._state_of_word.get(word) if self.cells.are_numbers else state_of(word)
        if state is not None:
            return state
        number = _number(word) if self.cells.are_numbers else None
        if number is None:
            raise self.cells.invalid_cell(cell.strip(), position_of(column))
        self.has_zeros = True  # in a table of numbers, a blank cell is missing
        if self.cells.threshold is not None:
            return number > self.cells.threshold
        return int(self.cells.numbers_to_states(np.array([number]), lambda _: None, lambda _: position_of(column))[0])

    def check_missing(self) -> None:
        """Check missing cells as `Cells.check_missing` does; blank cells count if the table has zeros."""
        if self.has_zeros and self.n_blank:
            self.cells.first_missing = self._first_blank_or_missing
            self.cells.n_missing += self.n_blank
        note_blanks(self.cells, 0 if self.has_zeros else self.n_blank)
        self.cells.check_missing()


def note_blanks(cells: Cells, n_blank: int) -> None:
    """Note that this many blank cells are zeros, unless the user asked for that."""
    if n_blank and cells.missing != "zero":
        blanks = "1 blank cell is" if n_blank == 1 else f"{n_blank} blank cells are"
        warn(f"{cells.source.name}: {blanks} read as 0, because the table contains no other zeros")


def _number(cell: str) -> float | None:
    """Return a cell as a finite number, or None."""
    number = parse_number(cell.strip())
    return number if number is not None and np.isfinite(number) else None
