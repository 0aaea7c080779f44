"""Convert the cells of a file to bits: numbers by `Cells`, text by `TextCells`; count the missing ones.

Between a file and packed bits, a cell is a *state*: 0, 1, `MISSING`, or `BLANK` while it is open what blanks mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from .. import checks, validation
from ..bits import BitMatrix
from ..errors import Parameter, warn
from ..sparse_bits import Bits, SparseBits, as_bits
from ..variables import FALSE_WORDS, TRUE_WORDS
from .errors import FileError
from .stream import DROPPING_FORMATS, ReadOptions, Source
from .text_numbers import parse_number

ONE_WORDS = TRUE_WORDS | {"1", "1.0", "x", "+"}
ZERO_WORDS = FALSE_WORDS | {"0", "0.0", "-"}
MISSING_WORDS = frozenset(("na", "n/a", "nan", "null", "none", "?", ".", "<na>", "#n/a"))
CELL_WORDS = ONE_WORDS | ZERO_WORDS | MISSING_WORDS | {""}
MISSING, BLANK = 2, 4  # states besides 0 and 1; both are even, so that their lowest bit is 0
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
    """Convert the cells of one file to bits. Missing cells are counted; they are unknown, or 0 (``missing="zero"``).

    Call `check_missing` after the last cell: it raises an error if cells were missing and ``missing="refuse"``, and
    notes how many are unknown.
    """

    def __init__(self, source: Source, options: ReadOptions) -> None:
        self.source = source
        self.threshold = checks.check_threshold(options.binarize)
        self.missing = options.missing
        self.n_missing = 0
        self.first_missing: CellPosition | str | None = None

    def pack_numbers(self, values: NDArray[Any], position_of: PositionOf) -> BitMatrix:
        """Pack a 2-D chunk of numbers."""

        def at(index: int) -> CellPosition:
            return position_of(*divmod(index, values.shape[1]))

        def count(indices: NDArray[np.intp]) -> None:
            if len(indices):
                self.add_missing(len(indices), at(int(indices[0])))

        return self.pack(self.numbers_to_states(values, count, at))

    def pack(self, states: NDArray[Any], has_zeros: Callable[[], bool] | None = None) -> BitMatrix:
        """Pack a 2-D chunk of states: missing cells are unknown, or 0.

        ``has_zeros`` returns whether the table has a zero, so that blank cells are missing; it is called only if that
        matters.
        """
        if states.dtype == np.bool_ or not states.size or states.max() <= 1:
            return BitMatrix.from_dense(states)
        bits = BitMatrix.from_dense(states & 1)
        if self.missing != "unknown":
            return bits
        is_blank_missing = has_zeros is not None and bool((states == BLANK).any()) and has_zeros()
        lacking = states >= MISSING if is_blank_missing else states == MISSING
        return bits.with_unknown(BitMatrix.from_dense(lacking))

    @overload
    def known(self, bits: BitMatrix, position_of: PositionOf) -> BitMatrix: ...
    @overload
    def known(self, bits: Bits, position_of: PositionOf) -> Bits: ...
    def known(self, bits: Bits, position_of: PositionOf) -> Bits:
        """Return rows of a table of bits: unknown cells are missing values, and a threshold applies to the others."""
        if isinstance(bits, SparseBits):
            return as_bits(bits, self.threshold)
        if bits.unknown is not None and (rows := np.flatnonzero(bits.unknown.words.any(axis=1))).size:
            first = int(rows[0])
            self.add_missing(bits.n_unknown, position_of(first, int(np.argmax(bits.unknown[first]))))
        above = BitMatrix.from_any(bits, self.threshold, missing="unknown")
        return above if self.missing == "unknown" else above.filled()

    def numbers_to_states(
        self,
        values: NDArray[Any],
        on_missing: Callable[[NDArray[np.intp]], None],
        position_at: Callable[[int], CellPosition],
    ) -> NDArray[Any]:
        """Convert numbers to states; ``on_missing`` and ``position_at`` get flat indices."""
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
        return np.where(missing, np.uint8(MISSING), bits)

    def invalid_cell(self, value: str, position: CellPosition, note: str = "") -> FileError:
        """Return the error for a cell that is neither 0 nor 1, or not finite where there is a threshold."""
        if self.threshold is not None:
            problem = f"{note}: {value[:40]!r} is not a finite number, as "
            return self.source.error(position, problem, Parameter("binarize"), " requires; correct it")
        drop: tuple[str | Parameter, ...] = ()
        if self.source.format in ("csv", "tsv", "xlsx"):
            drop = ("; for a table of categories and numbers, pass ", Parameter("categories", True))
        if self.source.format in DROPPING_FORMATS:
            drop += (
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
        self.has_zeros = False
        self.n_blank = 0
        self._first_blank_or_missing: CellPosition | None = None
        states = dict.fromkeys(MISSING_WORDS, MISSING) | {"": BLANK}
        if cells.threshold is None:
            states |= dict.fromkeys(ONE_WORDS, 1) | dict.fromkeys(ZERO_WORDS, 0)
        self._state_of_word = {spelled: states[word] for word in states for spelled in (word, word.upper())}
        self._bit_of_character = np.full(128, 255, np.uint8)
        for word, state in self._state_of_word.items():
            if len(word) == 1 and state <= 1:
                self._bit_of_character[ord(word)] = state

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
        """Convert a row of one-character cells to 0 and 1; None if `row_to_states` has to do it."""
        if not characters.isascii():
            return None
        bits = self._bit_of_character[np.frombuffer(characters.encode("ascii"), np.uint8)]
        if bits.size and bits.max() > 1:
            return None
        self.has_zeros = self.has_zeros or not bits.all()
        return bits

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
            missing = np.flatnonzero(states == MISSING)
            if len(missing):
                self.cells.add_missing(len(missing), position_of(int(missing[0])))
            self.n_blank += int(np.count_nonzero(states == BLANK))
            self._first_blank_or_missing = self._first_blank_or_missing or position_of(int(np.argmax(states > 1)))
        return states

    def _parse(self, cell: str, column: int, position_of: Callable[[int], CellPosition]) -> int:
        """Return the state of a cell with blanks around it, in mixed case, or, if there is a threshold, of a number."""
        word = cell.strip().lower()
        if word in self._state_of_word:
            return self._state_of_word[word]
        threshold = self.cells.threshold
        if threshold is None or (number := _number(word)) is None:
            raise self.cells.invalid_cell(cell.strip(), position_of(column))
        self.has_zeros = True  # in a table of numbers, a blank cell is missing
        return number > threshold

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
