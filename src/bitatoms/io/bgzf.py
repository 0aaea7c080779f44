"""Write BGZF: gzip in blocks, which programs for genomes can index."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

_BLOCK = 0xFF00  # bytes before compression; the size of a compressed block has 16 bits
_HEADER = b"\x1f\x8b\x08\x04" + bytes(5) + b"\xff\x06\x00BC\x02\x00"  # before the size of a block less 1
END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")  # an empty block, the last one


@contextmanager
def open_bgzf_writer(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing bytes that are compressed in blocks; the same bytes give the same file."""
    with open(path, "wb") as file:
        with io.BufferedWriter(_Blocks(file), _BLOCK) as buffer:
            yield buffer
        file.write(END)


def is_bgzf(beginning: bytes) -> bool:
    """Return whether a file that begins with these bytes is compressed in blocks."""
    return beginning[:4] == _HEADER[:4] and beginning[12:14] == b"BC"


class _Blocks(io.RawIOBase):
    """Compress what is written, in blocks."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        """Write blocks."""
        view = memoryview(data)
        for start in range(0, len(view), _BLOCK):
            block = view[start : start + _BLOCK]
            compressor = zlib.compressobj(6, zlib.DEFLATED, -15)
            content = compressor.compress(block) + compressor.flush()
            self._file.write(_HEADER + struct.pack("<H", len(content) + len(_HEADER) + 9) + content)
            self._file.write(struct.pack("<II", zlib.crc32(block), len(block)))
        return len(view)
