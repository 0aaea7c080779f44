"""Read and write text files: UTF-8, compressed or not, with lines of bounded length; split lines into cells."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ..errors import Parameter
from .limits import FREE_LINE, LONGEST_LINE, MAX_TEXT_COMPRESSION
from .stream import Source

_SEPARATORS = (",", "\t", ";", "|")
_QUOTED_CELL = re.compile(r'(?:(?<=[,\t;|])|^)[ ]*"(?:[^"]|"")*+"', re.MULTILINE)
# A name with blanks around it, or with a separator, or that begins as a text file may begin.
_AMBIGUOUS_NAME = re.compile(r"^\s|\s$|[,\t;|]|^\ufeff|^sep=", re.IGNORECASE)


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


def check_separator(source: Source, separator: str) -> None:
    """Raise unless a separator of cells is one character that can be one."""
    if len(separator) != 1 or separator in '"\r\n':
        raise source.error(Parameter("separator"), f" must be one character, got {separator!r}")


def detect_separator(lines: Sequence[str]) -> str:
    """Return the separator that each of these lines contains most often, outside quotes; a comma if there is none."""
    bare = [line for line in _QUOTED_CELL.sub('""', "".join(lines)).splitlines() if line.strip()]
    counts = [min((line.count(separator) for line in bare), default=0) for separator in _SEPARATORS]
    return _SEPARATORS[counts.index(max(counts))]


def need_quotes(names: Iterable[str]) -> bool:
    """Return whether a name would be changed, or taken for something else, without quotes."""
    return any(map(_AMBIGUOUS_NAME.search, names))


def split_lines(source: Source, lines: Iterable[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each line, which may be quoted, with the number of the line; of a blank line, no cells."""
    reader = csv.reader(lines, delimiter=separator, strict=True, skipinitialspace=separator != " ")
    while True:
        try:
            record = next(reader, None)
        except csv.Error as error:
            raise source.error(f"line {reader.line_num}: {error}; check for an unclosed quote") from error
        if record is None:
            return
        yield reader.line_num, record


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
