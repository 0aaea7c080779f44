"""Text files of numbers, read in chunks of complete lines.

A number is written in ASCII: decimal digits, with a sign, a point and an exponent where needed; or nan, inf, infinity.
Python's ``float`` also accepts underscores and the digits of other scripts, which are more likely mistakes in a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import FileError
from ..limits import CHUNK_BYTES, LONGEST_NUMBER_LINE
from ..stream import Source

_PREVIEW_BYTES = 1 << 12  # the beginning of a chunk, which shows how its numbers are written
_BLANKS = b" \t\r\n\v\f"
_DIGITS = b"0123456789"
_ITEM = re.compile(rb"[0-9]+")
# Optional groups are not possessive: in Python 3.11.0 to 3.11.2, a group such as (?:e[0-9]+)?+ matches the "e" alone.
_NUMBER = re.compile(rb"[+-]?(?:(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?|(?i:nan|inf(?:inity)?))")
_NUMBERS = re.compile(rb"\s*+(?:%b(?:\s++|\Z))*+" % _NUMBER.pattern)  # possessive: no backtracking in long texts
_ZERO_FRACTION = re.compile(rb"(?<=[0-9])\.0*(?:[eE][+-]?0+)?(\s)")  # as in 1.0 and 1.00e+00


class NumberLines(NamedTuple):
    """The numbers of consecutive lines."""

    values: NDArray[Any]  # int64, or float64 if one is not an integer
    counts: NDArray[np.integer]  # numbers per line
    line: int  # number of the first line

    def line_of(self, index: int) -> int:
        """Return the number of the line that contains a value."""
        return self.line + int(np.searchsorted(np.cumsum(self.counts), index, "right"))


def read_numbers(
    source: Source, file: IO[bytes], line: int, items: bool = False, hint: Sequence[object] = ()
) -> Iterator[NumberLines]:
    """Yield the numbers of a text file.

    Parameters
    ----------
    source : Source
        The file, for messages.
    file : binary file
        Where to read from.
    line : int
        Number of the next line.
    items : bool, default=False
        Whether all numbers must be non-negative integers.
    hint : sequence of str and Parameter, default=()
        The end of the message about a word that is not a number.
    """
    for text in _line_chunks(source, file):
        if line == 1:
            text = text.removeprefix(b"\xef\xbb\xbf") or b"\n"  # the byte order mark that some editors write
        counts = _words_per_line(text)
        values = _parse(text, int(counts.sum()), items)
        if values is None:
            raise _not_a_number(source, text, line, items, hint)
        numbers = NumberLines(values, counts, line)
        if values.dtype == np.int64 and len(values):
            too_large = abs(values.astype(np.float64)) >= 2.0**63  # NumPy parses larger numbers as the largest
            if too_large.any():
                raise source.error(f"line {numbers.line_of(int(np.argmax(too_large)))}: a number is too large")
        yield numbers
        line += len(counts)


def _line_chunks(source: Source, file: IO[bytes]) -> Iterator[bytes]:
    """Yield the text of a file in chunks of complete lines."""
    begun: list[bytes] = []
    while chunk := file.read(CHUNK_BYTES):
        end = chunk.rfind(b"\n") + 1
        if end:
            yield b"".join((*begun, chunk[:end]))
            begun = []
        begun.append(chunk[end:])
        if len(begun) * CHUNK_BYTES > LONGEST_NUMBER_LINE:
            raise source.error(f"a line is longer than {LONGEST_NUMBER_LINE >> 20} MiB: not lines of numbers")
    if rest := b"".join(begun):
        yield rest


def _parse(text: bytes, n_words: int, items: bool) -> NDArray[Any] | None:
    """Return the numbers of a text, as integers if all are; None if a word is not a number."""
    if items and text.translate(None, _DIGITS + _BLANKS):
        return None
    # Integers are parsed several times as fast, also after removing the same zero fraction from all of them.
    if (fraction := _ZERO_FRACTION.search(text, 0, _PREVIEW_BYTES)) is not None:
        integers = _parse_words(text.replace(fraction[0], fraction[1]), n_words)
        if integers is not None and integers.dtype == np.int64:
            return integers
    return _parse_words(text, n_words)


def _parse_words(text: bytes, n_words: int) -> NDArray[Any] | None:
    """Return the numbers of a text if each of its words is one, otherwise None."""
    if not n_words:
        return np.empty(0, np.int64)
    others = text.translate(None, _DIGITS + _BLANKS)
    if others and not _NUMBERS.fullmatch(text):  # which NumPy would only warn about
        return None
    values = np.fromstring(text, np.float64 if others.strip(b"-") else np.int64, sep=" ")
    return values if len(values) == n_words else None


def _words_per_line(text: bytes) -> NDArray[np.integer]:
    """Return the number of words of each line."""
    characters = np.frombuffer(text, np.uint8)
    blank = characters <= ord(" ")
    begins = ~blank
    begins[1:] &= blank[:-1]
    ends = np.flatnonzero(characters == ord("\n"))
    if not text.endswith(b"\n"):
        ends = np.append(ends, len(text) - 1)
    return np.diff(np.cumsum(begins, dtype=np.int32)[ends], prepend=0)


def _not_a_number(source: Source, text: bytes, line: int, items: bool, hint: Sequence[object]) -> FileError:
    """Return the error for the first word of a text that is not a number."""
    form, expected = (_ITEM, "a non-negative integer") if items else (_NUMBER, "a number")
    for number, words in enumerate(text.split(b"\n"), line):
        for word in words.split():
            if not form.fullmatch(word):
                shown = word[:40].decode("utf-8", "replace")
                return source.error(f"line {number}: {shown!r} is not {expected}", *hint)
    return source.error(f"after line {line}: a word is not {expected}", *hint)
