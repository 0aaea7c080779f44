"""Small pictures in few colours as PNG in a data URI, made of nothing but zlib."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Colour = tuple[int, int, int]

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_INDEXED = 3  # the colour type of pictures with a palette


def data_uri(pixels: NDArray[np.uint8], palette: Sequence[Colour]) -> str:
    """A picture, to stand in the src of an img; pixels of shape (height, width) are places in the palette."""
    return "data:image/png;base64," + base64.b64encode(encoded(pixels, palette)).decode("ascii")


def encoded(pixels: NDArray[np.uint8], palette: Sequence[Colour]) -> bytes:
    """A PNG file with 1, 2 or 4 bits a pixel, whatever the palette of at most 16 colours needs."""
    height, width = pixels.shape
    depth = next(bits for bits in (1, 2, 4) if len(palette) <= 1 << bits)
    header = struct.pack(">IIBBBBB", width, height, depth, _INDEXED, 0, 0, 0)
    lines = np.zeros((height, 1 + -(-width * depth // 8)), np.uint8)  # a line begins with its filter: none
    places = np.arange(depth - 1, -1, -1, dtype=np.uint8)
    bits = (pixels[:, :, np.newaxis] >> places) & 1
    lines[:, 1:] = np.packbits(bits.reshape(height, width * depth), axis=1)
    return (
        _SIGNATURE
        + _chunk(b"IHDR", header)
        + _chunk(b"PLTE", bytes(part for colour in palette for part in colour))
        + _chunk(b"IDAT", zlib.compress(lines.tobytes(), 9))
        + _chunk(b"IEND", b"")
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    """A chunk: its length, its kind, its data, and a checksum of the two."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
