"""PBM files: black-and-white images, raw (P4) or as text (P1); one line of pixels or one block of pixels per row."""

from __future__ import annotations

import gzip
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from ...bits import BitMatrix
from ...columns.table import Picture, Table
from ...datasets import cut_blocks, stitch_blocks
from ...validation import check_pair
from ..errors import FileError
from ..limits import CHUNK_BITS, CHUNK_BYTES, LONGEST_IMAGE_HEADER, MAX_DEFLATE_EXPANSION
from ..npz import REVERSED_BITS, packed_bytes
from ..options import ReadOptions
from ..stream import RowChunk, Source, TableStream
from ..text import open_decompressed, open_text_writer

_WHITESPACE = b" \t\n\r\v\f"
_COMMENT = re.compile(rb"#[^\r\n]*")
_BETWEEN = rb"(?:\s|#[^\r\n]*[\r\n])+"
_HEADER = re.compile(rb"P([14])%b(\d{1,18})%b(\d{1,18})(?:#[^\r\n]*)?\s" % (_BETWEEN, _BETWEEN))
_OTHER_KINDS = {b"P2": "gray", b"P3": "color", b"P5": "gray", b"P6": "color", b"P7": "PAM"}


def read(source: Source, options: ReadOptions) -> TableStream:
    """Open an image as lines of pixels, or as blocks."""
    with open_decompressed(source) as file:
        pixels = _Pixels(source, file)
    height, width = pixels.height, pixels.width
    if options.blocks is None:
        source.check_size(height, width)
        return TableStream(width, _line_chunks(source, options))
    tall, wide = check_pair("blocks", options.blocks, least=1)
    n_across = -(-width // wide)
    source.check_size(-(-height // tall) * n_across, tall * wide)
    source.check_memory(2 * tall * wide * n_across, f"the blocks side by side, {tall} x {wide * n_across} pixels,")
    picture = Picture((tall, wide), (height, width))
    return TableStream(tall * wide, _block_chunks(source, options, picture), picture=picture)


def _line_chunks(source: Source, options: ReadOptions) -> Iterator[RowChunk]:
    """Yield the lines of pixels."""
    with open_decompressed(source) as file:
        pixels = _Pixels(source, file)
        chunk_rows = max(1, CHUNK_BITS // pixels.width)
        for top in range(0, pixels.height, chunk_rows):
            yield RowChunk(BitMatrix.from_any(pixels.read(min(chunk_rows, pixels.height - top)), options.binarize))
        pixels.check_end()


def _block_chunks(source: Source, options: ReadOptions, picture: Picture) -> Iterator[RowChunk]:
    """Yield the blocks of the image, from left to right and from top to bottom."""
    with open_decompressed(source) as file:
        pixels = _Pixels(source, file)
        for n_lines, _ in _bands(picture):
            lines = BitMatrix.from_any(pixels.read(n_lines), options.binarize)
            yield RowChunk(BitMatrix.from_dense(cut_blocks(lines.to_dense(), picture.tile)))
        pixels.check_end()


def _bands(picture: Picture) -> Iterator[tuple[int, slice]]:
    """Yield the number of lines of each band of blocks that are converted together, and these blocks."""
    tall, wide = picture.tile
    height, width = picture.whole or (0, 0)
    n_across = -(-width // wide)
    step = tall * max(1, CHUNK_BITS // (tall * n_across * wide))
    for top in range(0, height, step):
        n_lines = min(step, height - top)
        first = top // tall * n_across
        yield n_lines, slice(first, first + -(-n_lines // tall) * n_across)


class _Pixels:
    """The lines of pixels of an image, in order. A line of a raw image is padded to bytes."""

    def __init__(self, source: Source, file: IO[bytes]) -> None:
        self._source, self._file = source, file
        beginning = file.read(LONGEST_IMAGE_HEADER)
        found = _HEADER.match(beginning)
        if found is None:
            raise source.error(_header_problem(beginning))
        file.seek(found.end())
        self.is_raw = found[1] == b"4"
        self.width, self.height = int(found[2]), int(found[3])
        if not self.width or not self.height:
            raise source.error(f"there are no pixels: the header states {self.width} columns and {self.height} lines")
        self._line_bytes = -(-self.width // 8) if self.is_raw else self.width
        self._n_left = self.height * self._line_bytes  # bytes; of a text image without blanks
        self._text, self._in_comment = bytearray(), False  # pixels that were read ahead
        size = source.path.stat().st_size
        most = MAX_DEFLATE_EXPANSION * size if isinstance(file, gzip.GzipFile) else size - found.end()
        if self._n_left > most:
            raise self._truncated(self._n_left - most)

    def read(self, n_lines: int) -> BitMatrix:
        """Return the next lines."""
        size = n_lines * self._line_bytes
        data = self._file.read(size) if self.is_raw else self._read_text(size)
        self._n_left -= len(data)
        if len(data) < size:
            raise self._truncated(self._n_left)
        values = np.frombuffer(data, np.uint8).reshape(n_lines, -1)
        if self.is_raw:
            packed = REVERSED_BITS[values]  # the first pixel is the highest bit of its byte
            if self.width % 8:  # the padding bits may have any value
                packed[:, -1] &= (1 << self.width % 8) - 1
            return BitMatrix.from_bytes(packed.data, n_lines, self.width)
        digits = values - np.uint8(ord("0"))  # characters below "0" wrap around
        if digits.max() > 1:
            row, column = np.argwhere(digits > 1)[0].tolist()
            line = self.height - self._n_left // self.width - n_lines + row
            raise self._source.error(
                f"line {line + 1} of the image, pixel {column + 1}: {chr(values[row, column])!a} is neither 0 nor 1"
            )
        return BitMatrix.from_dense(digits)

    def check_end(self) -> None:
        """Raise FileError if anything but blanks and comments of a text image follows the last pixel."""
        rest = self._file.read(2) if self.is_raw else self._read_text(1)
        if rest[:1] == b"P":
            raise self._source.error("the file contains several images; split it into one file per image (pamsplit)")
        if rest:
            raise self._source.error(f"corrupt: data follows the image of {self.height} x {self.width} pixels")

    def _read_text(self, size: int) -> bytes:
        """Return the next characters that are neither blank nor in a comment."""
        while len(self._text) < size and (text := self._file.read(CHUNK_BYTES)):
            text = b"#" + text if self._in_comment else text
            self._in_comment = text.rfind(b"#") > max(text.rfind(b"\n"), text.rfind(b"\r"))
            self._text += _COMMENT.sub(b"", text).translate(None, _WHITESPACE)
        found = bytes(self._text[:size])
        del self._text[:size]
        return found

    def _truncated(self, n_missing: int) -> FileError:
        """Return the error that an image ends too early."""
        unit = "bytes" if self.is_raw else "pixels"
        return self._source.error(
            f"truncated: {n_missing} {unit} are missing in an image of {self.height} x {self.width} pixels"
        )


def _header_problem(beginning: bytes) -> str:
    """Return why a file does not begin with a header."""
    kind = beginning[:2]
    if kind in _OTHER_KINDS:
        return f"this is a {_OTHER_KINDS[kind]} image ({kind.decode()}), not black and white; convert it to .pbm (P4)"
    if kind not in (b"P1", b"P4"):
        return "not a .pbm image: it does not begin with P1 or P4" if kind else "the file is empty"
    shown = beginning[:40].decode("ascii", "replace")
    return f"the header is malformed or truncated: {kind.decode()}, width and height are expected, got {shown!a}"


def write(table: Table, path: Path, format: str) -> None:
    """Write a raw image (P4): the image that the blocks were cut from, or one line of pixels per row."""
    height, width = picture_shape(table, path)
    with open_text_writer(path) as text:
        file = text.buffer  # type: ignore[attr-defined]
        file.write(f"P4\n{width} {height}\n".encode("ascii"))
        for lines in picture_lines(table):
            file.write(REVERSED_BITS[packed_bytes(lines)].tobytes())


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
    for n_lines, blocks in _bands(table.picture):
        shape = n_lines, table.picture.whole[1]
        yield BitMatrix.from_dense(stitch_blocks(table.bits[blocks].to_dense(), shape, table.picture.tile))
