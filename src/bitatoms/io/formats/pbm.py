"""PBM files: black-and-white images, raw (P4) or as text (P1); one line of pixels or one block of pixels per row."""

from __future__ import annotations

import gzip
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...bits import BitMatrix
from ...columns.table import Picture, Table
from ...datasets import cut_blocks, stitch_blocks
from ...validation import check_pair
from ..errors import FileError
from ..limits import CHUNK_BITS
from ..options import ReadOptions
from ..stream import RowChunk, Source, TableStream
from ..text import open_decompressed, open_text_writer

_WHITESPACE = b" \t\n\r\v\f"
_COMMENT = re.compile(rb"#[^\r\n]*")
_MAX_HEADER = 1 << 16  # bytes
_TEXT_CHUNK = 1 << 20  # bytes
_MAX_GZIP_RATIO = 1100  # deflate expands one byte to at most 1032
_OTHER_KINDS = {b"P2": "gray", b"P3": "color", b"P5": "gray", b"P6": "color", b"P7": "PAM"}
# The first pixel is the highest bit of its byte in PBM, and the lowest one in a BitMatrix.
_REVERSED_BITS = np.packbits(np.unpackbits(np.arange(256, dtype=np.uint8)), bitorder="little")


class PbmHeader(NamedTuple):
    """Kind and size of an image."""

    raw: bool
    height: int
    width: int

    @property
    def min_bytes(self) -> int:
        """The number of bytes of the pixels; of a text image, without blanks."""
        return self.height * (-(-self.width // 8) if self.raw else self.width)


class BlockChunk(NamedTuple):
    """Consecutive blocks of an image, and how to read their lines without unpacking too many pixels at once."""

    first: int  # row of the table
    n_blocks: int
    reads: list[tuple[int, int, int]]  # first line within a block, lines per block, lines of the image


def read(source: Source, options: ReadOptions) -> TableStream:
    """Open an image as lines of pixels, or as blocks."""
    with open_decompressed(source) as file:
        header = _read_header(source, file)
    if options.blocks is None:
        source.check_size(header.height, header.width)
        return TableStream(header.width, _line_chunks(source, options))
    tall, wide = check_pair("blocks", options.blocks, least=1)
    source.check_size(-(-header.height // tall) * -(-header.width // wide), tall * wide)
    picture = Picture((tall, wide), (header.height, header.width))
    return TableStream(tall * wide, _block_chunks(source, options, picture), picture=picture)


def _line_chunks(source: Source, options: ReadOptions) -> Iterator[RowChunk]:
    """Yield the lines of pixels."""
    with open_decompressed(source) as file:
        pixels = _pixels(source, file)
        height, width = pixels.header.height, pixels.header.width
        chunk_rows = max(1, CHUNK_BITS // width)
        for top in range(0, height, chunk_rows):
            yield RowChunk(BitMatrix.from_any(pixels.read(min(chunk_rows, height - top)), options.binarize))
        pixels.check_end()


def _block_chunks(source: Source, options: ReadOptions, picture: Picture) -> Iterator[RowChunk]:
    """Yield the blocks of the image, from left to right and from top to bottom."""
    tall, wide = picture.tile
    with open_decompressed(source) as file:
        pixels = _pixels(source, file)
        for chunk in _plan_chunks(picture):
            packed = np.zeros((chunk.n_blocks, -(-tall * wide // 8)), np.uint8)
            for first, n_lines, n_picture_lines in chunk.reads:
                lines = BitMatrix.from_any(pixels.read(n_picture_lines), options.binarize)
                blocks = np.packbits(cut_blocks(lines.to_dense(), (n_lines, wide)), axis=1, bitorder="little")
                start = first * wide // 8
                packed[:, start : start + blocks.shape[1]] = blocks
            yield RowChunk(BitMatrix.from_bytes(packed.data, chunk.n_blocks, tall * wide))
        pixels.check_end()


def _plan_chunks(picture: Picture) -> Iterator[BlockChunk]:
    """Yield the chunks of blocks of an image, from top to bottom."""
    tall, wide = picture.tile
    height, width = picture.whole or (0, 0)
    n_across = -(-width // wide)
    chunk_lines = tall * max(1, CHUNK_BITS // (tall * n_across * wide))
    # Blocks that are too tall are read in several steps; eight lines always end at a byte boundary.
    n_block_lines = min(tall, max(8, CHUNK_BITS // (n_across * wide) // 8 * 8))
    step = chunk_lines if n_block_lines == tall else n_block_lines
    for top in range(0, height, chunk_lines):
        n_lines = min(chunk_lines, height - top)
        reads = [
            (first, min(n_block_lines, tall - first), min(step, n_lines - first)) for first in range(0, n_lines, step)
        ]
        yield BlockChunk(top // tall * n_across, -(-n_lines // tall) * n_across, reads)


def _read_header(source: Source, file: IO[bytes]) -> PbmHeader:
    """Read and check the header, up to the first pixel."""
    kind = file.read(2)
    if kind in _OTHER_KINDS:
        raise source.error(
            f"this is a {_OTHER_KINDS[kind]} image ({kind.decode()}), not black and white; convert it to .pbm (P4)"
        )
    if kind not in (b"P1", b"P4"):
        raise source.error("not a .pbm image: it does not begin with P1 or P4" if kind else "the file is empty")
    characters = _header_characters(source, file)
    if next(characters) not in _WHITESPACE:
        raise source.error(f"the header is malformed: no blank follows {kind.decode()}")
    width, height = (_read_number(source, characters, name) for name in ("width", "height"))
    header = PbmHeader(kind == b"P4", height, width)
    size = source.path.stat().st_size
    if isinstance(file, gzip.GzipFile):
        if header.min_bytes > _MAX_GZIP_RATIO * size:
            raise source.error(f"the header states {height} x {width} pixels, more than a file of this size can hold")
    elif (missing := header.min_bytes - (size - file.tell())) > 0:
        raise source.error(
            _truncated(header, f"{missing} bytes are" if header.raw else f"at least {missing} pixels are")
        )
    return header


def _header_characters(source: Source, file: IO[bytes]) -> Iterator[bytes]:
    """Yield the characters of the header without comments, but with the line ends after them."""
    in_comment = False
    for _ in range(_MAX_HEADER):
        character = file.read(1)
        if not character:
            raise source.error("truncated: it ends within the header")
        in_comment = (in_comment or character == b"#") and character not in b"\r\n"
        if not in_comment:
            yield character
    raise source.error(f"corrupt, or not a .pbm image: the header is longer than {_MAX_HEADER >> 10} KiB")


def _read_number(source: Source, characters: Iterator[bytes], name: str) -> int:
    """Read the next number of the header and the blank after it."""
    digits = b""
    for character in characters:
        if character.isdigit() and len(digits) < 18:
            digits += character
        elif character not in _WHITESPACE:
            raise source.error(f"the header is malformed: {chr(character[0])!a} in the {name}")
        elif digits:
            break
    if not int(digits):
        raise source.error(f"the header states a {name} of 0: there are no pixels")
    return int(digits)


def _truncated(header: PbmHeader, missing: str) -> str:
    """Return the message for an image that ends too early."""
    return f"truncated: {missing} missing in an image of {header.height} x {header.width} pixels"


def _pixels(source: Source, file: IO[bytes]) -> _RawPixels | _TextPixels:
    """Return a reader of the pixels, from the first."""
    header = _read_header(source, file)
    return _RawPixels(source, file, header) if header.raw else _TextPixels(source, file, header)


class _RawPixels:
    """Read the pixels of a raw image, whose lines are padded to bytes."""

    def __init__(self, source: Source, file: IO[bytes], header: PbmHeader) -> None:
        self.source, self.file, self.header = source, file, header
        self._n_missing = header.min_bytes

    def read(self, n_lines: int) -> BitMatrix:
        """Return the next lines."""
        width = self.header.width
        size = n_lines * -(-width // 8)
        data = self.file.read(size)
        self._n_missing -= len(data)
        if len(data) < size:
            raise self.source.error(_truncated(self.header, f"{self._n_missing} bytes are"))
        packed = _REVERSED_BITS[np.frombuffer(data, np.uint8)].reshape(n_lines, -1)
        if width % 8:  # the padding bits may have any value
            packed[:, -1] &= (1 << width % 8) - 1
        return BitMatrix.from_bytes(packed.data, n_lines, width)

    def check_end(self) -> None:
        """Raise FileError if anything follows the last line."""
        rest = self.file.read(2)
        if rest:
            raise self.source.error(_trailing_data(self.header, rest))


class _TextPixels:
    """Read the pixels of a text image: zeros and ones, with or without blanks between them."""

    def __init__(self, source: Source, file: IO[bytes], header: PbmHeader) -> None:
        self.source, self.file, self.header = source, file, header
        self._n_read = 0
        self._buffer = memoryview(b"")
        self._in_comment = False

    def read(self, n_lines: int) -> BitMatrix:
        """Return the next lines."""
        width = self.header.width
        values = np.empty(n_lines * width, np.uint8)
        filled = 0
        while filled < len(values):
            if not self._buffer and not self._fill_buffer():
                missing = self.header.height * width - self._n_read
                raise self.source.error(_truncated(self.header, f"{missing} pixels are"))
            text = self._buffer[: len(values) - filled]
            self._buffer = self._buffer[len(text) :]
            values[filled : filled + len(text)] = self._to_bits(text)
            filled += len(text)
            self._n_read += len(text)
        return BitMatrix.from_dense(values.reshape(n_lines, width))

    def check_end(self) -> None:
        """Raise FileError if anything but blanks and comments follows the last pixel."""
        if self._buffer or self._fill_buffer():
            raise self.source.error(_trailing_data(self.header, self._buffer))

    def _fill_buffer(self) -> bool:
        """Read the next text that is neither blank nor comment; return False at the end of the file."""
        while not self._buffer and (text := self.file.read(_TEXT_CHUNK)):
            if self._in_comment:
                text = b"#" + text
            self._in_comment = text.rfind(b"#") > max(text.rfind(b"\n"), text.rfind(b"\r"))
            self._buffer = memoryview(_COMMENT.sub(b"", text).translate(None, _WHITESPACE))
        return bool(self._buffer)

    def _to_bits(self, text: memoryview) -> NDArray[np.uint8]:
        """Return characters as 0 and 1."""
        values = np.frombuffer(text, np.uint8) - np.uint8(ord("0"))  # characters below "0" wrap around
        if values.max() > 1:
            invalid = int(np.argmax(values > 1))
            line, column = divmod(self._n_read + invalid, self.header.width)
            raise self.source.error(
                f"line {line + 1} of the image, pixel {column + 1}: {chr(text[invalid])!a} is neither 0 nor 1"
            )
        return values


def _trailing_data(header: PbmHeader, rest: bytes | memoryview) -> str:
    """Return the message for a file that continues after its image."""
    if rest[:1] == b"P":
        return "the file contains several images; split it into one file per image (with pamsplit)"
    return f"corrupt: data follows the image of {header.height} x {header.width} pixels"


def write(table: Table, path: Path, format: str) -> None:
    """Write a raw image (P4): the image that the blocks were cut from, or one line of pixels per row."""
    height, width = picture_shape(table, path)
    with open_text_writer(path) as text:
        file = text.buffer  # type: ignore[attr-defined]
        file.write(f"P4\n{width} {height}\n".encode("ascii"))
        for lines in picture_lines(table):
            file.write(_REVERSED_BITS[np.frombuffer(lines.to_bytes(), np.uint8)].tobytes())


def picture_shape(table: Table, path: Path) -> tuple[int, int]:
    """Return the height and width of the image to write; raise for a table without pixels, warn about names."""
    height, width = table.shape
    if not height or not width:
        raise FileError(f"{path.name}: a table of shape {height} x {width} has no pixels; write .npz or .csv")
    if table.row_names is not None or table.columns is not None:
        warnings.warn(
            f"{path.name}: an image cannot store names of rows and columns; .npz and .csv files can",
            UserWarning,
            stacklevel=4,
        )
    return table.shape if table.picture is None or table.picture.whole is None else table.picture.whole


def picture_lines(table: Table) -> Iterator[BitMatrix]:
    """Yield the lines of pixels of a table, in chunks."""
    if table.picture is None or table.picture.whole is None:
        chunk_rows = max(1, CHUNK_BITS // table.shape[1])
        for start in range(0, len(table), chunk_rows):
            yield table.bits[start : start + chunk_rows]
        return
    _, wide = table.picture.tile
    _, width = table.picture.whole
    for chunk in _plan_chunks(table.picture):
        blocks = table.bits[chunk.first : chunk.first + chunk.n_blocks]
        packed = np.frombuffer(blocks.to_bytes(), np.uint8).reshape(chunk.n_blocks, -1)
        for first, n_lines, n_picture_lines in chunk.reads:
            bits = packed[:, first * wide // 8 :]
            bits = np.unpackbits(bits, axis=1, count=n_lines * wide, bitorder="little")
            yield BitMatrix.from_dense(stitch_blocks(bits, (n_picture_lines, width), (n_lines, wide)))
