"""Convert the cells of a file to bits: numbers by `Cells`, text by `TextCells`; count the missing ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..bits import BitMatrix
from ..errors import Parameter
from .errors import FileError
from .stream import DROPPING_FORMATS, ReadOptions, Source
from .text_numbers import parse_number

ONE_WORDS = frozenset(("1", "1.0", "true", "t", "yes", "y", "x", "+"))
ZERO_WORDS = frozenset(("0", "0.0", "false", "f", "no", "n", "-"))
MISSING_WORDS = frozenset(("na", "n/a", "nan", "null", "none", "?", ".", "<na>", "#n/a"))
CELL_WORDS = ONE_WORDS | ZERO_WORDS | MISSING_WORDS | {""}
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


PositionOf = Callable[[int, int], CellPosition]  # from the row and column within a chunk


def array_position(row: int, column: int | str) -> CellPosition:
    """Return the position of a cell of an array, or of a column with this name, counted from 0 as in NumPy."""
    return CellPosition(row, column, zero_based=True)


class Cells:
    """Convert the cells of one file to bits. Missing cells become 0 and are counted.

    Call `check_missing` after the last cell: it raises if a cell was missing, unless ``missing="zero"``.
    """

    def __init__(self, source: Source, options: ReadOptions) -> None:
        self.source = source
        self.threshold = validation.check_threshold(options.binarize)
        self.missing_as_zero = options.missing == "zero"
        self.n_missing = 0
        self.first_missing: CellPosition | str | None = None

    def pack_numbers(self, values: NDArray[Any], position_of: PositionOf) -> BitMatrix:
        """Pack a 2-D chunk of numbers."""

        def at(index: int) -> CellPosition:
            return position_of(*divmod(index, values.shape[1]))

        def count(indices: NDArray[np.intp]) -> None:
            if len(indices):
                self.add_missing(len(indices), at(int(indices[0])))

        return BitMatrix.from_dense(self.numbers_to_bits(values, count, at))

    def numbers_to_bits(
        self,
        values: NDArray[Any],
        on_missing: Callable[[NDArray[np.intp]], None],
        position_at: Callable[[int], CellPosition],
    ) -> NDArray[Any]:
        """Convert numbers to 0 and 1; ``on_missing`` and ``position_at`` get flat indices."""
        bits = validation.binarized(values, self.threshold)
        if bits is not None:
            return bits
        missing = np.isnan(values)
        on_missing(np.flatnonzero(missing))
        values = np.where(missing, 0, values)
        bits = validation.binarized(values, self.threshold)
        if bits is None:
            valid = np.isfinite(values) if self.threshold is not None else (values == 0) | (values == 1)
            first = int(np.flatnonzero(~valid)[0])
            raise self.invalid_cell(str(values.ravel()[first]).removesuffix(".0"), position_at(first))
        return bits & ~missing

    def invalid_cell(self, value: str, position: CellPosition, note: str = "") -> FileError:
        """Return the error for a cell that is neither 0 nor 1, or not finite where there is a threshold."""
        if self.threshold is not None:
            problem = f"{note}: {value[:40]!r} is not a finite number, as "
            return self.source.error(position, problem, Parameter("binarize"), " requires; correct it")
        drop: tuple[str | Parameter, ...] = ()
        if self.source.format in DROPPING_FORMATS:
            drop = (
                "; if the column is not part of the table, drop it with ",
                Parameter("without", str(position.column)),
            )
        number = parse_number(value)
        if number is None:
            problem = "neither a one (1, yes, true, x) nor a zero (0, no, false); correct it"
            return self.source.error(position, f"{note}: {value[:40]!r} is {problem}", *drop)
        problem = f"{note}: {value[:40]} is neither 0 nor 1; "
        return self.source.error(position, problem, *validation.binarize_advice(number), *drop)

    def add_missing(self, count: int, first: CellPosition | str) -> None:
        """Count missing cells; the first one is at this position."""
        if not self.n_missing:
            self.first_missing = first
        self.n_missing += count

    def check_missing(self) -> None:
        """Raise if cells were missing, unless they are read as 0."""
        if self.n_missing and not self.missing_as_zero:
            one = self.n_missing == 1
            problem = "1 value is missing, at " if one else f"{self.n_missing} values are missing, the first at "
            them = "it" if one else "them"
            fix = f"; fill {them} in, or pass ", Parameter("missing", "zero"), f" to read {them} as 0"
            raise self.source.error(problem, self.first_missing, *fix)


class TextCells:
    """Convert cells of text to bits: 0 and 1, yes and no, true and false, x and blank; with a threshold, numbers.

    A blank cell is 0 if the table contains no other zero, and missing otherwise.
    """

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self.has_zeros = False
        self.n_blank = 0
        self._first_blank_or_missing: CellPosition | None = None
        self._bit_of_character = np.full(128, 255, np.uint8)
        if cells.threshold is None:
            for word in ONE_WORDS | ZERO_WORDS:
                for character in (word, word.upper()):
                    if len(character) == 1:
                        self._bit_of_character[ord(character)] = word in ONE_WORDS

    def is_valid(self, cell: str) -> bool:
        """Return whether a cell is a one, a zero, blank or missing; with a threshold, also a number."""
        word = cell.strip().lower()
        if word in CELL_WORDS:
            return True
        return self.cells.threshold is not None and (_number(word) is not None or word.lstrip("+-") in _INFINITE_WORDS)

    def is_text(self, cell: str) -> bool:
        """Return whether a cell is neither valid nor a number."""
        return not self.is_valid(cell) and _number(cell) is None

    def characters_to_bits(self, characters: str) -> NDArray[np.uint8] | None:
        """Convert a row of one-character cells to 0 and 1; None if `row_to_bits` has to do it."""
        if not characters.isascii():
            return None
        bits = self._bit_of_character[np.frombuffer(characters.encode("ascii"), np.uint8)]
        if bits.size and bits.max() > 1:
            return None
        self.has_zeros = self.has_zeros or not bits.all()
        return bits

    def row_to_bits(self, cells: Sequence[str], position_of: Callable[[int], CellPosition]) -> NDArray[np.uint8]:
        """Convert a row of cells to 0 and 1; ``position_of`` gets the column."""
        return np.array([self._cell_to_bit(cell, column, position_of) for column, cell in enumerate(cells)], np.uint8)

    def _cell_to_bit(self, cell: str, column: int, position_of: Callable[[int], CellPosition]) -> bool:
        """Convert one cell to a bit."""
        word = cell.strip().lower()
        if not word:
            self._first_blank_or_missing = self._first_blank_or_missing or position_of(column)
            self.n_blank += 1
            return False
        if self.cells.threshold is not None:
            number = _number(word)
            if number is not None:
                self.has_zeros = True
                return number > self.cells.threshold
        elif word in ONE_WORDS:
            return True
        elif word in ZERO_WORDS:
            self.has_zeros = True
            return False
        if word in MISSING_WORDS:
            self._first_blank_or_missing = self._first_blank_or_missing or position_of(column)
            self.cells.add_missing(1, position_of(column))
            return False
        raise self.cells.invalid_cell(cell.strip(), position_of(column))

    def check_missing(self) -> None:
        """Raise if cells were missing, unless they are read as 0; blank cells count if the table has zeros."""
        if self.has_zeros and self.n_blank:
            self.cells.first_missing = self._first_blank_or_missing
            self.cells.n_missing += self.n_blank
        self.cells.check_missing()


def _number(cell: str) -> float | None:
    """Return a cell as a finite number, or None."""
    number = parse_number(cell.strip())
    return number if number is not None and np.isfinite(number) else None
