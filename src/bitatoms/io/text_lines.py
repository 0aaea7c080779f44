"""Text in and out: compressed or not, as UTF-8, with lines of bounded length."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from .stream import Source

LONGEST_LINE = 1 << 28  # bytes; a longer one is no line
_ALWAYS = 1 << 22  # bytes that a line may have however small the file,
_MOST_TIMES_TEXT = 100  # and for each byte of a file that is compressed; the cells of a line take many times its length


@contextmanager
def open_decompressed(source: Source) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked where they are compressed."""
    with open(source.path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if packed:
            with gzip.open(file) as unpacked:
                yield unpacked  # type: ignore[misc]
        else:
            yield file


def read_lines(source: Source) -> Iterator[str]:
    """The lines of a text file, with their ends."""
    number = 0
    longest = min(LONGEST_LINE, _ALWAYS + _MOST_TIMES_TEXT * source.path.stat().st_size)
    with open_decompressed(source) as file:
        try:
            while line := file.readline(longest):
                number += 1
                if len(line) == longest:
                    raise source.error(f"line {number} is longer than {longest >> 20} MiB: this is no text file")
                if b"\0" in line:
                    raise source.error(f"line {number} holds a zero byte: no text, or not UTF-8; save it as UTF-8")
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise source.error(
                f"line {number} is not UTF-8 (byte {error.object[error.start]:#04x}); save the file as UTF-8"
            ) from error
        except (EOFError, OSError, gzip.zlib.error) as error:  # type: ignore[attr-defined]
            raise source.error(f"cannot be read beyond line {number}: {error}") from error


@contextmanager
def open_text_writer(path: Path) -> Iterator[IO[str]]:
    """A text file to write, compressed where its name ends in .gz; the same text gives the same bytes."""
    with open(path, "wb") as file:
        if path.name.lower().endswith(".gz"):
            with (
                gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
                io.TextIOWrapper(
                    packed,
                    encoding="utf-8",
                    newline="",
                ) as text,
            ):
                yield text
        else:
            with io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
                yield text
