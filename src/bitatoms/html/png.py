"""Indexed-colour PNG images, encoded with zlib alone."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Colour = tuple[int, int, int]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_INDEXED = 3  # the PNG colour type of images with a palette


def png_data_uri(png: bytes) -> str:
    """Return a PNG file as a data URI."""
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def encode_png(pixels: NDArray[np.uint8], palette: Sequence[Colour]) -> bytes:
    """Return a PNG file of pixels, given as indices into a palette of at most 16 colours."""
    height, width = pixels.shape
    depth = next(bits for bits in (1, 2, 4) if len(palette) <= 1 << bits)
    header = struct.pack(">IIBBBBB", width, height, depth, _INDEXED, 0, 0, 0)
    scanlines = np.zeros((height, 1 + -(-width * depth // 8)), np.uint8)  # the first byte is the filter: none
    shifts = np.arange(depth - 1, -1, -1, dtype=np.uint8)
    bits = (pixels[:, :, np.newaxis] >> shifts) & 1
    scanlines[:, 1:] = np.packbits(bits.reshape(height, width * depth), axis=1)
    return (
        _SIGNATURE
        + _png_chunk(b"IHDR", header)
        + _png_chunk(b"PLTE", bytes(channel for colour in palette for channel in colour))
        + _png_chunk(b"IDAT", zlib.compress(scanlines.tobytes(), 9))
        + _png_chunk(b"IEND", b"")
    )


def _png_chunk(kind: bytes, data: bytes) -> bytes:
    """Return a PNG chunk: length, type, data and checksum."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
