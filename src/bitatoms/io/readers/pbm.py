"""PBM: black and white pictures, raw (P4) or as text (P1); a line of pixels a row, or a block of pixels a row."""

from __future__ import annotations

import gzip
import re
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix
from ...datasets import cut_blocks, stitch_blocks
from ...table import Picture, Table
from ...validation import check_pair
from ..errors import FileError
from ..stream import CHUNK_BITS, ReadOptions, RowChunk, Source, TableStream
from ..text_lines import open_decompressed, open_text_writer

_WHITE = b" \t\n\r\v\f"
_COMMENT = re.compile(rb"#[^\r\n]*")
_LONGEST_HEADER = 1 << 16
_CHUNK = 1 << 20  # bytes of text looked at together
_MOST_TIMES = 1100  # deflate makes at most 1032 bytes of one
_OTHERS = {b"P2": "gray", b"P3": "coloured", b"P5": "gray", b"P6": "coloured", b"P7": "in the format PAM"}
# In PBM the first pixel is the highest bit of its byte, here it is the lowest.
_TURNED = np.packbits(np.unpackbits(np.arange(256, dtype=np.uint8)), bitorder="little")


class PbmHeader(NamedTuple):
    """What a picture says of itself."""

    raw: bool
    height: int
    width: int

    @property
    def n_bytes(self) -> int:
        """The bytes of its pixels; as text, the fewest that they can be."""
        return self.height * (-(-self.width // 8) if self.raw else self.width)


class Strip(NamedTuple):
    """Some rows of blocks of a large picture, gone through in pieces, so that not too much is unpacked at a time."""

    first: int  # of the blocks, as a row of the table
    n_blocks: int
    pieces: list[tuple[int, int, int]]  # the first line within a block, lines of the block, lines of the picture


def read(source: Source, options: ReadOptions) -> TableStream:
    """The lines of pixels of a picture, or its blocks."""
    with _unpacked(source) as file:
        header = _header(source, file)
    if options.blocks is None:
        source.check_size(header.height, header.width)
        return TableStream(header.width, _lines(source, options))
    tall, wide = check_pair("blocks", options.blocks, least=1)
    source.check_size(-(-header.height // tall) * -(-header.width // wide), tall * wide)
    picture = Picture((tall, wide), (header.height, header.width))
    return TableStream(tall * wide, _blocks(source, options, picture), picture=picture)


def _lines(source: Source, options: ReadOptions) -> Iterator[RowChunk]:
    """The picture as it is, a line of pixels a row."""
    with _unpacked(source) as file:
        pixels = _pixels(source, file)
        height, width = pixels.header.height, pixels.header.width
        at_a_time = max(1, CHUNK_BITS // width)
        for top in range(0, height, at_a_time):
            yield RowChunk(BitMatrix.from_any(pixels.take(min(at_a_time, height - top)), options.binarize))
        pixels.end()


def _blocks(source: Source, options: ReadOptions, picture: Picture) -> Iterator[RowChunk]:
    """The picture cut in blocks, from left to right and top to bottom, a block a row."""
    tall, wide = picture.tile
    with _unpacked(source) as file:
        pixels = _pixels(source, file)
        for strip in _strips(picture):
            packed = np.zeros((strip.n_blocks, -(-tall * wide // 8)), np.uint8)
            for first, n_lines, n_taken in strip.pieces:
                lines = BitMatrix.from_any(pixels.take(n_taken), options.binarize)
                part = np.packbits(cut_blocks(lines.to_dense(), (n_lines, wide)), axis=1, bitorder="little")
                begins = first * wide // 8
                packed[:, begins : begins + part.shape[1]] = part
            yield RowChunk(BitMatrix.from_bytes(packed.data, strip.n_blocks, tall * wide))
        pixels.end()


def _strips(picture: Picture) -> Iterator[Strip]:
    """The large picture from top to bottom."""
    tall, wide = picture.tile
    height, width = picture.whole or (0, 0)
    across = -(-width // wide)
    at_once = tall * max(1, CHUNK_BITS // (tall * across * wide))
    # A piece of a block that is too tall: eight lines of it always end with a whole byte.
    piece = min(tall, max(8, CHUNK_BITS // (across * wide) // 8 * 8))
    step = at_once if piece == tall else piece
    for top in range(0, height, at_once):
        n_lines = min(at_once, height - top)
        pieces = [(first, min(piece, tall - first), min(step, n_lines - first)) for first in range(0, n_lines, step)]
        yield Strip(top // tall * across, -(-n_lines // tall) * across, pieces)


@contextmanager
def _unpacked(source: Source) -> Iterator[IO[bytes]]:
    """The bytes of the file, with errors of its compression in our words."""
    try:
        with open_decompressed(source) as file:
            yield file
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise source.error(f"its compression is corrupt, or it is truncated: {error}") from error


def _header(source: Source, file: IO[bytes]) -> PbmHeader:
    """The header, checked; the file then stands at the first pixel."""
    kind = file.read(2)
    if kind in _OTHERS:
        raise source.error(
            f"this picture is {_OTHERS[kind]} ({kind.decode()}), not black and white; turn it into a .pbm (P4) first"
        )
    if kind not in (b"P1", b"P4"):
        raise source.error("not a .pbm picture: it does not begin with P1 or P4" if kind else "the file is empty")
    characters = _characters(source, file)
    if next(characters) not in _WHITE:
        raise source.error(f"its header is corrupt: no blank follows {kind.decode()}")
    width, height = (_number(source, characters, what) for what in ("width", "height"))
    header = PbmHeader(kind == b"P4", height, width)
    size = source.path.stat().st_size
    if isinstance(file, gzip.GzipFile):
        if header.n_bytes > _MOST_TIMES * size:
            raise source.error(f"it says that it is {height} x {width} pixels, more than can be in a file so small")
    elif (missing := header.n_bytes - (size - file.tell())) > 0:
        raise source.error(_cut_short(header, f"{missing} bytes" if header.raw else f"at least {missing} pixels"))
    return header


def _characters(source: Source, file: IO[bytes]) -> Iterator[bytes]:
    """The characters of the header; of a comment, the end of the line."""
    in_comment = False
    for _ in range(_LONGEST_HEADER):
        character = file.read(1)
        if not character:
            raise source.error("it ends within its header: truncated")
        in_comment = (in_comment or character == b"#") and character not in b"\r\n"
        if not in_comment:
            yield character
    raise source.error(f"its header is longer than {_LONGEST_HEADER >> 10} KiB: corrupt, or no .pbm picture")


def _number(source: Source, characters: Iterator[bytes], what: str) -> int:
    """The next number of the header, and one blank behind it."""
    digits = b""
    for character in characters:
        if character.isdigit() and len(digits) < 18:
            digits += character
        elif character not in _WHITE:
            raise source.error(f"its header is corrupt: {chr(character[0])!a} in its {what}")
        elif digits:
            break
    if not int(digits):
        raise source.error(f"it says that its {what} is 0: there are no pixels to read")
    return int(digits)


def _cut_short(header: PbmHeader, missing: str) -> str:
    """The trouble of a picture that ends too early."""
    return f"it ends {missing} too early for a picture of {header.height} x {header.width} pixels: truncated"


def _pixels(source: Source, file: IO[bytes]) -> _Raw | _Plain:
    """The pixels of a picture, from its beginning."""
    header = _header(source, file)
    return _Raw(source, file, header) if header.raw else _Plain(source, file, header)


class _Raw:
    """The pixels of a raw picture: lines of whole bytes."""

    def __init__(self, source: Source, file: IO[bytes], header: PbmHeader) -> None:
        self.source, self.file, self.header = source, file, header
        self._missing = header.n_bytes

    def take(self, n_lines: int) -> BitMatrix:
        """The next lines."""
        width = self.header.width
        size = n_lines * -(-width // 8)
        data = self.file.read(size)
        self._missing -= len(data)
        if len(data) < size:
            raise self.source.error(_cut_short(self.header, f"{self._missing} bytes"))
        packed = _TURNED[np.frombuffer(data, np.uint8)].reshape(n_lines, -1)
        if width % 8:  # what lies beyond the width may be anything
            packed[:, -1] &= (1 << width % 8) - 1
        return BitMatrix.from_bytes(packed.data, n_lines, width)

    def end(self) -> None:
        """Refuse what comes after the last line."""
        rest = self.file.read(2)
        if rest:
            raise self.source.error(_too_much(self.header, rest))


class _Plain:
    """The pixels of a picture of text: zeros and ones, with or without blanks between them."""

    def __init__(self, source: Source, file: IO[bytes], header: PbmHeader) -> None:
        self.source, self.file, self.header = source, file, header
        self._done = 0
        self._rest = memoryview(b"")
        self._in_comment = False

    def take(self, n_lines: int) -> BitMatrix:
        """The next lines."""
        width = self.header.width
        values = np.empty(n_lines * width, np.uint8)
        filled = 0
        while filled < len(values):
            if not self._rest and not self._more():
                missing = self.header.height * width - self._done
                raise self.source.error(_cut_short(self.header, f"{missing} pixels"))
            taken = self._rest[: len(values) - filled]
            self._rest = self._rest[len(taken) :]
            values[filled : filled + len(taken)] = self._bits(taken)
            filled += len(taken)
            self._done += len(taken)
        return BitMatrix.from_dense(values.reshape(n_lines, width))

    def end(self) -> None:
        """Refuse what comes after the last pixel."""
        if self._rest or self._more():
            raise self.source.error(_too_much(self.header, self._rest))

    def _more(self) -> bool:
        """Read on to the next text that is no blank and no comment; False at the end of the file."""
        while not self._rest and (text := self.file.read(_CHUNK)):
            if self._in_comment:
                text = b"#" + text
            self._in_comment = text.rfind(b"#") > max(text.rfind(b"\n"), text.rfind(b"\r"))
            self._rest = memoryview(_COMMENT.sub(b"", text).translate(None, _WHITE))
        return bool(self._rest)

    def _bits(self, text: memoryview) -> NDArray[np.uint8]:
        """Characters as 0 and 1."""
        values = np.frombuffer(text, np.uint8) - np.uint8(ord("0"))  # what is below "0" becomes large
        if values.max() > 1:
            wrong = int(np.argmax(values > 1))
            line, column = divmod(self._done + wrong, self.header.width)
            shown = ascii(chr(text[wrong]))
            raise self.source.error(f"line {line + 1} of the picture, pixel {column + 1}: {shown} is neither 0 nor 1")
        return values


def _too_much(header: PbmHeader, rest: bytes | memoryview) -> str:
    """The trouble of a file that goes on after its picture."""
    if rest[:1] == b"P":
        return "it holds several pictures; split it in files of one each (pamsplit does)"
    return f"it goes on after its picture of {header.height} x {header.width} pixels: corrupt, or of another size"


def write(table: Table, path: Path, format: str) -> None:
    """Write a table as a raw picture (P4): blocks put back into the picture they were cut from, or a row a line."""
    height, width = table.shape
    if not height or not width:
        raise FileError(f"{path.name}: a table of {height} x {width} has no pixels; write .npz or .csv")
    if table.row_names is not None or table.columns is not None:
        warnings.warn(
            f"{path.name}: a picture keeps no names of rows and columns; .npz and .csv do", UserWarning, stacklevel=3
        )
    if table.picture is not None and table.picture.whole is not None:
        height, width = table.picture.whole
    with open_text_writer(path) as text:
        file = text.buffer  # type: ignore[attr-defined]
        file.write(f"P4\n{width} {height}\n".encode("ascii"))
        for lines in _written(table):
            file.write(_TURNED[np.frombuffer(lines.to_bytes(), np.uint8)].tobytes())


def _written(table: Table) -> Iterator[BitMatrix]:
    """The lines of pixels of a table."""
    if table.picture is None or table.picture.whole is None:
        at_a_time = max(1, CHUNK_BITS // table.shape[1])
        for start in range(0, len(table), at_a_time):
            yield table.bits[start : start + at_a_time]
        return
    _, wide = table.picture.tile
    _, width = table.picture.whole
    for strip in _strips(table.picture):
        blocks = table.bits[strip.first : strip.first + strip.n_blocks]
        packed = np.frombuffer(blocks.to_bytes(), np.uint8).reshape(strip.n_blocks, -1)
        for first, n_lines, n_taken in strip.pieces:
            part = packed[:, first * wide // 8 :]
            part = np.unpackbits(part, axis=1, count=n_lines * wide, bitorder="little")
            yield BitMatrix.from_dense(stitch_blocks(part, (n_taken, width), (n_lines, wide)))
