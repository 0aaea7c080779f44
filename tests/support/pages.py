"""Parsers of HTML pages and PNG images."""

import base64
import struct
import zlib
from html.parser import HTMLParser

import numpy as np

VOID = {"meta", "link", "img", "br", "input"}


class Outline(HTMLParser):
    """Parse a page into its tags with attributes and its text, and assert that tags are balanced."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.tags, self.open, self.texts = [], [], []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.texts.append(data)

    @property
    def text(self):
        return " ".join("".join(self.texts).split())

    def find_all(self, tag, **expected):
        expected = {name.rstrip("_"): value for name, value in expected.items()}
        return [attrs for name, attrs in self.tags if name == tag and expected.items() <= attrs.items()]


def decode_png(uri):
    """Decode a PNG data URI by the PNG specification; return its pixels and palette."""
    data = base64.b64decode(uri.removeprefix("data:image/png;base64,"))
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, offset = {}, 8
    while offset < len(data):
        (length,) = struct.unpack(">I", data[offset : offset + 4])
        kind, body = data[offset + 4 : offset + 8], data[offset + 8 : offset + 8 + length]
        (check,) = struct.unpack(">I", data[offset + 8 + length : offset + 12 + length])
        assert check == zlib.crc32(kind + body)
        chunks[kind] = body
        offset += 12 + length
    width, height, depth, colour, *_ = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert colour == 3
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, -1)
    assert not lines[:, 0].any()
    bits = np.unpackbits(lines[:, 1:], axis=1)[:, : width * depth].reshape(height, width, depth)
    return bits @ (1 << np.arange(depth)[::-1]), np.frombuffer(chunks[b"PLTE"], np.uint8).reshape(-1, 3)
