"""Text files: UTF-8, compressed or not, with lines of bounded length; rows of text files and sheets as text cells."""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ..errors import Parameter
from .limits import FREE_LINE, LONGEST_LINE, MAX_TEXT_COMPRESSION, SEPARATOR_LINES
from .options import ReadOptions
from .sheets import SheetRows
from .stream import Source

_SEPARATORS = (",", "\t", ";", "|")
_DECLARED_SEPARATOR = re.compile(r"sep=(?P<separator>[^\r\n])[\r\n]*", re.IGNORECASE)  # as Excel writes it
# A name with blanks around it, or with a separator, or that begins as a text file may begin.
_AMBIGUOUS_NAME = re.compile(r"^\s|\s$|[,\t;|]|^\ufeff|^sep=", re.IGNORECASE)

Record = tuple[int, str | list[str]]  # the number of a row, and its cells or, if none is quoted, its line


@contextmanager
def open_decompressed(source: Source) -> Iterator[IO[bytes]]:
    """Open a file for reading bytes, decompressing gzip; raise FileError if the compressed data is corrupt."""
    with open(source.path, "rb") as file:
        compressed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if not compressed:
            yield file
            return
        try:
            with gzip.open(file) as decompressed:
                yield decompressed  # type: ignore[misc]
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise source.error(f"the compressed data is corrupt or truncated: {error}") from error


def read_lines(source: Source) -> Iterator[str]:
    """Yield the lines of a text file, with their line ends."""
    number = 0
    longest = min(LONGEST_LINE, FREE_LINE + MAX_TEXT_COMPRESSION * source.path.stat().st_size)
    with open_decompressed(source) as file:
        try:
            while line := file.readline(longest):
                number += 1
                if len(line) == longest:
                    raise source.error(f"line {number} is longer than {longest >> 20} MiB: this is not a text file")
                if b"\0" in line:
                    raise source.error(
                        f"line {number} contains a zero byte: not text, or not UTF-8; save the file as UTF-8"
                    )
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise source.error(
                f"line {number} is not UTF-8 (byte {error.object[error.start]:#04x}); save the file as UTF-8"
            ) from error
        except (EOFError, OSError, zlib.error) as error:
            raise source.error(f"cannot be read beyond line {number}: {error}") from error


class TextRows:
    """The rows of a text file or a sheet, which can be iterated once: their numbers and cells.

    Blanks around a cell are part of it only if it is quoted. A line without text has no cells.

    Parameters
    ----------
    source : Source
        The file.
    options : ReadOptions
        Its options ``separator``, ``sheet`` and ``header`` are used.
    separator : str, optional
        The separator, unless an option or the first line of the file states another. By default it is detected.
    """

    def __init__(self, source: Source, options: ReadOptions, separator: str | None = None) -> None:
        self.source = source
        self._sheet: SheetRows | None = None
        self._has_quoted_header = False
        self.records: Iterator[Record]  # lines without quotes are not split yet
        if source.format == "xlsx":
            self.separator, self._sheet = ",", SheetRows(source, options.sheet, options.header)
            self.records = iter(self._sheet)
            return
        given = options.separator
        if given and (len(given) != 1 or given in '"\r\n'):
            raise source.error(Parameter("separator"), f" must be one character, got {given!r}")
        lines = read_lines(source)
        first = next(lines, None)
        if first is None:
            raise source.error("the file is empty")
        declared = _DECLARED_SEPARATOR.fullmatch(first)
        head = [next(lines, "") if declared else first, *itertools.islice(lines, SEPARATOR_LINES)]
        found = given or (declared["separator"] if declared else separator)
        self.separator = found or ("\t" if source.format == "tsv" else _detect_separator(head))
        self._has_quoted_header = _has_quoted_header(head, self.separator)
        self.records = _split_quoted(source, itertools.chain(head, lines), self.separator, int(declared is not None))

    def head(self, n_rows: int) -> list[tuple[int, list[str]]]:
        """Return the first rows from the first one that has text, at most this many; they are not consumed."""
        records = itertools.dropwhile(lambda record: not record[1], self.records)
        head = list(itertools.islice(records, n_rows))
        self.records = itertools.chain(head, records)
        return [(number, self.cells(record)) for number, record in head]

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        return ((number, self.cells(record)) for number, record in self.records)

    def cells(self, record: str | list[str]) -> list[str]:
        """Return the cells of a row."""
        if isinstance(record, list):
            return record
        return [cell.strip() for cell in record.split(self.separator)] if record else []

    def has_marked_header(self) -> bool:
        """Return whether the first row, which was read, is quoted above others, or text in a sheet above values."""
        return self._has_quoted_header if self._sheet is None else self._sheet.has_text_header()


def _split_quoted(source: Source, lines: Iterator[str], separator: str, number: int) -> Iterator[Record]:
    """Yield the rows of a text file; ``number`` is the number of the line before the first."""
    waiting: list[str] = []  # a line with quotes
    taken: list[str] = []  # the lines of a row with quotes: a quoted cell may span several

    def take() -> Iterator[str]:
        for line in iter(lambda: waiting.pop() if waiting else next(lines, None), None):
            taken.append(line)
            yield line

    reader = csv.reader(take(), delimiter=separator, strict=True, skipinitialspace=separator != " ")
    for line in lines:
        number += 1
        if '"' not in line:
            bare = line.rstrip("\r\n")
            if "\r" in bare:
                problem = f"line {number} contains a carriage return"
                raise source.error(f"{problem}; save the file with \\n or \\r\\n line ends")
            yield number, bare
            continue
        waiting.append(line)
        taken.clear()
        try:
            record = next(reader)
        except (csv.Error, StopIteration) as error:
            raise source.error(f"line {number}: {error}; check for an unclosed quote") from error
        number += len(taken) - 1
        text = "".join(taken)
        stripped = zip(record, map(str.strip, record), strict=True)
        yield number, [cell if cell == bare or quote(cell) in text else bare for cell, bare in stripped]


def _without_quoted(lines: Sequence[str], separators: str) -> list[str]:
    """Return lines that have text, with quoted cells replaced by empty ones."""
    quoted_cell = rf'(?:(?<=[{re.escape(separators)}])|^)[ ]*"(?:[^"]|"")*+"'
    text = re.sub(quoted_cell, '""', "".join(lines), flags=re.MULTILINE)
    return [line for line in text.splitlines() if line.strip()]


def _detect_separator(lines: Sequence[str]) -> str:
    """Return the separator that each of these lines contains most often, outside quotes; a comma if there is none."""
    bare = _without_quoted(lines, "".join(_SEPARATORS))
    counts = [min((line.count(separator) for line in bare), default=0) for separator in _SEPARATORS]
    return _SEPARATORS[counts.index(max(counts))]


def _has_quoted_header(lines: Sequence[str], separator: str) -> bool:
    """Return whether all cells of the first line are quoted, and not all of the second one.

    Such a line is a header, even if its names look like ones and zeros; R writes such files.
    """
    first, second = (*_without_quoted(lines, separator), "", "")[:2]
    are_quoted = set(first.split(separator)) == {'""'}
    return are_quoted and (not second or not {cell.strip() for cell in second.split(separator)} <= {"", '""'})


def is_blank(cells: Sequence[str]) -> bool:
    """Return whether a row has no text."""
    return not any(map(str.strip, cells))


def need_quotes(names: Iterable[str]) -> bool:
    """Return whether a name would be changed, or taken for something else, without quotes."""
    return any(map(_AMBIGUOUS_NAME.search, names))


def quote(cell: str) -> str:
    """Return a cell as it is written in quotes."""
    return '"' + cell.replace('"', '""') + '"'


@contextmanager
def open_text_writer(path: Path) -> Iterator[IO[str]]:
    """Open a text file for writing, compressed if its name ends in .gz; the same text gives the same bytes."""
    with open(path, "wb") as file:
        if path.name.lower().endswith(".gz"):
            with (
                gzip.GzipFile("", "wb", fileobj=file, mtime=0) as compressed,
                io.TextIOWrapper(compressed, encoding="utf-8", newline="") as text,
            ):
                yield text
        else:
            with io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
                yield text
