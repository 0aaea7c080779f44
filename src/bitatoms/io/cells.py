"""What a cell says: one, zero, or nothing. Cells of numbers and cells of words; missing ones are counted."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..bits import BitMatrix
from .errors import FileError
from .stream import ReadOptions, Source

ONES = frozenset(("1", "1.0", "true", "t", "yes", "y", "x", "+"))
ZEROS = frozenset(("0", "0.0", "false", "f", "no", "n", "-"))
_INFINITE = frozenset(("inf", "infinity"))  # no names either; refused where they stand
MISSING = frozenset(("na", "n/a", "nan", "null", "none", "?", ".", "<na>", "#n/a"))
BITS = ONES | ZEROS | MISSING | {""}  # what may stand in a table of ones and zeros

_COLUMN = re.compile(r"column (?P<name>'.*'|\".*\"|\d+)$")  # in the words for a place

Place = Callable[[int, int], str]  # where a cell is, in words, from its row and column in the block


class Cells:
    """The cells of one file as bits, and a count of those that are missing, which are zeros.

    ``settle`` is called when all cells were seen: it refuses missing ones, unless they are to be zeros.
    """

    def __init__(self, source: Source, options: ReadOptions) -> None:
        self.source = source
        self.threshold = validation.check_threshold(options.binarize)
        self.take_missing = options.missing == "zero"
        self.n_missing = 0
        self.first_missing = ""

    def numbers(self, values: NDArray[Any], place: Place) -> BitMatrix:
        """A block of numbers, or of objects that stand for numbers, as bits."""
        ones = validation.binarized(values, self.threshold)
        if ones is None:
            ones = self._look_closer(values, place)
        return BitMatrix.from_dense(ones)

    def _look_closer(self, values: NDArray[Any], place: Place) -> NDArray[Any]:
        """The ones of a block that holds a missing value or a wrong one."""
        if values.dtype.kind == "O":
            lost = np.frompyfunc(validation.is_missing, 1, 1)(values).astype(bool)
        elif values.dtype.kind == "f":
            lost = np.isnan(values)
        else:
            lost = np.zeros(values.shape, bool)
        self.miss(lost, place)
        if lost.any():
            values = np.where(lost, 0, values)
        ones = validation.binarized(values, self.threshold)
        if ones is None:
            raise self._strange(values, place)
        return np.where(lost, 0, ones)

    def _strange(self, values: NDArray[Any], place: Place) -> FileError:
        """The first value that is neither 0 nor 1 (with a threshold: that is no finite number)."""
        flat = values.reshape(-1)
        low, high = 0, flat.size
        while high - low > 1:  # it is in the first half where that is refused
            middle = (low + high) // 2
            low, high = (
                (low, middle) if validation.binarized(flat[low:middle], self.threshold) is None else (middle, high)
            )
        row, column = divmod(low, values.shape[1])
        return self.neither(str(flat[low]).removesuffix(".0"), place(row, column))

    def neither(self, shown: str, where: str) -> FileError:
        """The error of a cell that is neither one nor zero."""
        if self.threshold is not None:
            return self.source.error(f"{where}: {shown[:40]!r} is not a finite number, which binarize needs; mend it")
        column = _COLUMN.search(where)
        leave = f"leave that column out with without={column['name'] if column else ''}"
        try:
            number = float(shown)
        except ValueError:
            words = "neither a one (1, yes, true, x) nor a zero (0, no, false)"
            return self.source.error(f"{where}: {shown[:40]!r} is {words}; mend it, or {leave}")
        other = ", or another limit" if number < 0 else ""
        return self.source.error(
            f"{where}: {shown[:40]} is neither 0 nor 1; if these are counts, pass binarize=0 to take what is above 0 "
            f"as a one{other}; if it does not belong here, {leave}"
        )

    def miss(self, lost: NDArray[np.bool_], place: Place) -> None:
        """Count the missing cells of a block."""
        count = int(np.count_nonzero(lost))
        if count and not self.n_missing:
            row, column = np.argwhere(lost)[0]
            self.first_missing = place(int(row), int(column))
        self.n_missing += count

    def settle(self) -> None:
        """All cells were seen: refuse the missing ones, unless they are to be zeros."""
        if self.n_missing and not self.take_missing:
            values = "1 value is" if self.n_missing == 1 else f"{self.n_missing} values are"
            first = "at" if self.n_missing == 1 else "the first at"
            it = "it" if self.n_missing == 1 else "them"
            remedy = f'fill {it} in, or pass missing="zero" to take {it} as 0'
            raise self.source.error(f"{values} missing, {first} {self.first_missing}; {remedy}")


class Words:
    """Cells of text as bits: 0 and 1, yes and no, true and false, x and blank; with a threshold, numbers.

    A blank is a zero where the table writes no other zeros, and a missing value where it does.
    """

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self.wrote_zeros = False
        self.n_blank = 0
        self.first_lost = ""  # blank or missing
        # What single characters mean, for rows in which all cells are such.
        self._short = np.full(128, 255, np.uint8)
        if cells.threshold is None:
            for word in ONES | ZEROS:
                for letter in (word, word.upper()):
                    if len(letter) == 1:
                        self._short[ord(letter)] = word in ONES

    def is_one_or_zero(self, cell: str) -> bool:
        """Whether this cell may stand in a table of ones and zeros: a one, a zero, a blank or a missing value."""
        word = cell.strip().lower()
        if word in BITS:
            return True
        return self.cells.threshold is not None and (_number(word) is not None or word.lstrip("+-") in _INFINITE)

    def is_text(self, cell: str) -> bool:
        """Whether this cell is neither a one, a zero or missing, nor a number."""
        return not self.is_one_or_zero(cell) and _number(cell) is None

    def letters(self, cells: str) -> NDArray[np.uint8] | None:
        """A row of cells of one letter each as 0 and 1; None where they have to be looked at one by one."""
        if not cells.isascii():
            return None
        ones = self._short[np.frombuffer(cells.encode("ascii"), np.uint8)]
        if ones.size and ones.max() > 1:
            return None
        self.wrote_zeros = self.wrote_zeros or not ones.all()
        return ones

    def row(self, cells: Sequence[str], where: Callable[[int], str]) -> NDArray[np.uint8]:
        """A row of cells as 0 and 1."""
        return np.array([self._cell(cell, column, where) for column, cell in enumerate(cells)], np.uint8)

    def _cell(self, cell: str, column: int, where: Callable[[int], str]) -> bool:
        """One cell as a bit."""
        word = cell.strip().lower()
        if not word:
            self.first_lost = self.first_lost or where(column)
            self.n_blank += 1
            return False
        if self.cells.threshold is not None:
            number = _number(word)
            if number is not None:
                self.wrote_zeros = True
                return number > self.cells.threshold
        elif word in ONES:
            return True
        elif word in ZEROS:
            self.wrote_zeros = True
            return False
        if word in MISSING:
            self.first_lost = self.first_lost or where(column)
            self.cells.first_missing = self.cells.first_missing or where(column)
            self.cells.n_missing += 1
            return False
        raise self.cells.neither(cell.strip(), where(column))

    def settle(self) -> None:
        """All cells were seen: say what a blank was, and refuse missing values, unless they are to be zeros."""
        if self.wrote_zeros and self.n_blank:
            self.cells.first_missing = self.first_lost
            self.cells.n_missing += self.n_blank
        self.cells.settle()


def _number(word: str) -> float | None:
    """A word as a finite number, or None."""
    try:
        number = float(word)
    except ValueError:
        return None
    return number if np.isfinite(number) else None
