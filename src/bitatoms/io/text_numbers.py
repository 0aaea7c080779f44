"""Numbers in text, a block of whole lines at a time."""

from __future__ import annotations

import re
import warnings
import zlib
from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .errors import FileError
from .stream import Source

_CHUNK_BYTES = 1 << 20  # bytes of text looked at together
_LONGEST_LINE = 1 << 26  # bytes; one of numbers takes some ten times as many while it is looked at
_LOOKED_AT = 1 << 12  # bytes in which it is seen how numbers are written
_BLANKS = b" \t\r\n\v\f"
_DIGITS = b"0123456789"
_ITEM = re.compile(rb"[0-9]+")
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*(e[+-]?[0-9]+)?|\.[0-9]+(e[+-]?[0-9]+)?|nan|inf|infinity)", re.IGNORECASE)
_NO_FRACTION = re.compile(rb"(?<=[0-9])\.0*(?:[eE][+-]?0+)?(\s)")  # as in 1.0, and in 1.00e+00


class NumberLines(NamedTuple):
    """The numbers of some lines."""

    values: NDArray[Any]  # int64, or float64 where some are not whole
    counts: NDArray[np.integer]  # how many there are in each line
    line: int  # the number of the first of these lines

    def line_of(self, place: int) -> int:
        """The number of the line that a value is in."""
        return self.line + int(np.searchsorted(np.cumsum(self.counts), place, "right"))


def read_numbers(
    source: Source, file: IO[bytes], line: int, items: bool = False, hint: str = ""
) -> Iterator[NumberLines]:
    """The numbers of a text file from this line on; items are whole numbers that are not negative."""
    for text in _whole_lines(source, file):
        if line == 1:
            text = text.removeprefix(b"\xef\xbb\xbf") or b"\n"  # a mark that some editors put before UTF-8
        counts = _counts(text)
        values = _parsed(text, int(counts.sum()), items)
        if values is None:
            raise _no_number(source, text, line, items, hint)
        found = NumberLines(values, counts, line)
        if values.dtype == np.int64 and len(values):
            too_large = abs(values.astype(np.float64)) >= 2.0**63  # what does not fit is the largest that does
            if too_large.any():
                raise source.error(f"line {found.line_of(int(np.argmax(too_large)))}: the number there is too large")
        yield found
        line += len(counts)


def _whole_lines(source: Source, file: IO[bytes]) -> Iterator[bytes]:
    """The text of a file, some lines at a time."""
    begun: list[bytes] = []
    while True:
        try:
            some = file.read(_CHUNK_BYTES)
        except (EOFError, OSError, zlib.error) as error:
            raise source.error(f"corrupt, or truncated: {error}") from error
        if not some:
            break
        end = some.rfind(b"\n") + 1
        if end:
            yield b"".join((*begun, some[:end]))
            begun = []
        begun.append(some[end:])
        if len(begun) * _CHUNK_BYTES > _LONGEST_LINE:
            raise source.error(f"it has a line longer than {_LONGEST_LINE >> 20} MiB: these are no lines of numbers")
    if rest := b"".join(begun):
        yield rest


def _parsed(text: bytes, n_words: int, items: bool) -> NDArray[Any] | None:
    """The numbers in a text of so many words, as integers where all are such; None where a word is something else."""
    if items and text.translate(None, _DIGITS + _BLANKS):
        return None
    # Whole numbers are read several times as fast, also those that are written with the same fraction of zeros.
    if (fraction := _NO_FRACTION.search(text, 0, _LOOKED_AT)) is not None:
        whole = _words_parsed(text.replace(fraction[0], fraction[1]), n_words)
        if whole is not None and whole.dtype == np.int64:
            return whole
    return _words_parsed(text, n_words)


def _words_parsed(text: bytes, n_words: int) -> NDArray[Any] | None:
    """The numbers in a text, if there are as many as words, so that each word is one."""
    if not n_words:
        return np.empty(0, np.int64)
    others = text.translate(None, _DIGITS + _BLANKS + b"-")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            values = np.fromstring(text, np.float64 if others else np.int64, sep=" ")
        except (ValueError, DeprecationWarning):  # which of them depends on the version of NumPy
            return None
    return values if len(values) == n_words else None


def _counts(text: bytes) -> NDArray[np.integer]:
    """How many words there are in each line."""
    letters = np.frombuffer(text, np.uint8)
    blank = letters <= ord(" ")
    begins = ~blank
    begins[1:] &= blank[:-1]
    ends = np.flatnonzero(letters == ord("\n"))
    if not text.endswith(b"\n"):
        ends = np.append(ends, len(text) - 1)
    return np.diff(np.cumsum(begins, dtype=np.int32)[ends], prepend=0)


def _no_number(source: Source, text: bytes, line: int, items: bool, hint: str) -> FileError:
    """The first word of a text that is no number, and the line that it is in."""
    form, wanted = (_ITEM, "a whole number") if items else (_NUMBER, "a number")
    for number, words in enumerate(text.split(b"\n"), line):
        for word in words.split():
            if not form.fullmatch(word):
                return source.error(f"line {number}: {word[:40].decode('utf-8', 'replace')!r} is not {wanted}{hint}")
    return source.error(f"something behind line {line} is not {wanted}{hint}")
