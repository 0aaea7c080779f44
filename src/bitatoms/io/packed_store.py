"""Packed stores open for reading: what they say of themselves, checked, and their rows, in order or by number."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._version import __version__
from ..bits import BitMatrix
from ..table import Names, Picture, check_picture
from .safe_zarr import ZarrReader

KEY = "bitatoms"  # of our JSON in the attributes of the group
KIND = "bitatoms table"
VERSION = 1
_AT_A_TIME = 1 << 22  # bytes that are read together, in several chunks: zarr unpacks these at the same time


class Packed:
    """The rows of a packed store, as `StoreWriter` makes it.

    Nothing is read before it is asked for, and only the chunks that are read are looked at; one that was lost, cut
    short or changed is named in a FileError.
    """

    def __init__(self, shelf: ZarrReader, about: dict[str, Any]) -> None:
        self._shelf, self._source = shelf, shelf.source
        if int(about["version"]) > VERSION:
            by = str(about.get("bitatoms", "a newer one"))[:20]
            raise self._source.error(
                f"written by bitatoms {by}, which is newer than this, {__version__}; update bitatoms"
            )
        if about["complete"] is not True:
            raise self._source.error("it was not written to its end; write it anew")
        self.n_cols = n_cols = int(about["n_cols"])
        columns = about["columns"]
        arrays: list[Any] = [
            shelf.child(shelf.root, name, all_chunks=False) for name in ("bits", "name_ends", "name_bytes")
        ]
        self._bits, self._ends, self._letters = bits, ends, _ = arrays
        if bits is None or len(bits.shape) != 2 or bits.dtype != np.uint8 or bits.shape[1] != -(-n_cols // 8):
            raise self._source.error(f"damaged: its bits are not those of {n_cols} columns")
        if columns is not None and (len(columns) != n_cols or not all(isinstance(name, str) for name in columns)):
            raise self._source.error(f"damaged: it has not as many names as its {n_cols} columns")
        self.n_rows: int = bits.shape[0]
        if ends is not None and (
            ends.shape != (self.n_rows,)
            or ends.dtype.kind not in "iu"
            or getattr(self._letters, "dtype", None) != np.uint8
            or len(self._letters.shape) != 1
        ):
            raise self._source.error(f"damaged: it has not as many names as its {self.n_rows} rows")
        self.columns: Names | None = None if columns is None else tuple(columns)
        shape = self.n_rows, n_cols
        self.picture: Picture | None = None if about["picture"] is None else check_picture(about["picture"], shape)
        self.about: dict[str, Any] = dict(about.get("about") or {})
        self.chunk_rows: int = (bits.shards or bits.chunks)[0]
        if self.n_rows and n_cols:
            shelf.check_chunk(bits, ((self.n_rows - 1) // self.chunk_rows, 0))  # as good a sign as any that all came

    @property
    def has_names(self) -> bool:
        """Whether its rows have names."""
        return self._ends is not None

    @property
    def read_bytes(self) -> int:
        """Bytes that are read together."""
        return self._chunks_at_a_time() * self.chunk_rows * max(1, -(-self.n_cols // 8))

    def pieces(self, size: int, start: int = 0) -> Iterator[BitMatrix]:
        """The rows from ``start`` on, so many at a time, however they are cut into chunks; each chunk is read once."""
        at, filled = start, 0
        room = self._room(min(size, self.n_rows - at))
        for base, raw in self._read(range(start // self.chunk_rows, self._n_chunks())):
            offset = max(0, at - base)
            while offset < len(raw):
                count = min(len(raw) - offset, len(room) - filled)
                self._fill(room[filled : filled + count], raw[offset : offset + count], base + offset)
                filled, offset, at = filled + count, offset + count, at + count
                if filled == len(room):
                    yield self._as_bits(room)
                    room, filled = self._room(min(size, self.n_rows - at)), 0

    def take(self, rows: NDArray[np.int64]) -> BitMatrix:
        """These rows, given by their numbers in rising order; each chunk that has one of them is read once."""
        taken = self._room(len(rows))
        for base, raw in self._read(np.unique(rows // self.chunk_rows).tolist()):
            first, last = np.searchsorted(rows, (base, base + len(raw)))
            self._fill(taken[first:last], raw[rows[first:last] - base], base)
        return self._as_bits(taken)

    def names(self, start: int, stop: int) -> list[str] | None:
        """The names of the rows from ``start`` on and before ``stop``; None where they have none."""
        if self._ends is None:
            return None
        first = max(0, start - 1)
        with self._source.foreign():
            stops = self._shelf.take_whole(self._ends, slice(first, stop)).astype(np.int64)
            stops = stops if start else np.concatenate(([0], stops))
            if stops[0] < 0 or (stops[1:] < stops[:-1]).any() or stops[-1] > self._letters.shape[0]:
                raise self._source.error("damaged: the names of its rows do not follow each other")
            text = b""
            if stops[0] < stops[-1]:
                text = self._shelf.take_whole(self._letters, slice(int(stops[0]), int(stops[-1]))).tobytes()
            places = (stops - stops[0]).tolist()
            return [text[a:b].decode("utf-8", "surrogatepass") for a, b in itertools.pairwise(places)]

    def fingerprint(self) -> str:
        """Some letters that tell these rows from others, without reading them: what is said of them, and how long their
        chunks are and how they end, which is with their checksums."""
        digest = hashlib.sha256()
        root = self._source.path
        with self._source.foreign():
            for name in ("zarr.json", "bits/zarr.json"):
                digest.update((root / name).read_bytes())
            for chunk in range(self._n_chunks() if self.n_cols else 0):
                self._shelf.check_chunk(self._bits, (chunk, 0))
                with open(self._shelf.chunk_file(self._bits, (chunk, 0)), "rb") as file:
                    length = file.seek(0, os.SEEK_END)
                    file.seek(max(0, length - 64))
                    digest.update(length.to_bytes(8, "little") + file.read())
        return digest.hexdigest()

    def _n_chunks(self) -> int:
        return -(-self.n_rows // self.chunk_rows)

    def _chunks_at_a_time(self) -> int:
        return max(1, _AT_A_TIME // max(1, self.chunk_rows * -(-self.n_cols // 8)))

    def _read(self, chunks: Sequence[int]) -> Iterator[tuple[int, NDArray[np.uint8]]]:
        """The rows of these chunks as bytes, adjacent ones together, each with the number of the first."""
        most, place = self._chunks_at_a_time(), 0
        while place < len(chunks):
            first = chunks[place]
            count = 1
            while count < most and place + count < len(chunks) and chunks[place + count] == first + count:
                count += 1
            base = first * self.chunk_rows
            rows = slice(base, min(self.n_rows, (first + count) * self.chunk_rows))
            raw = np.empty((rows.stop - base, 0), np.uint8)
            if self.n_cols:
                with self._source.foreign():
                    raw = self._shelf.take_whole(self._bits, rows, slice(0, self._bits.shape[1]))
            yield base, raw
            place += count

    def _room(self, n_rows: int) -> NDArray[np.uint64]:
        """Room for so many rows, in the order of bytes that they have in the store."""
        return np.empty((max(0, n_rows), -(-self.n_cols // 64)), "<u8")

    def _fill(self, room: NDArray[np.uint64], raw: NDArray[np.uint8], row: int) -> None:
        """Put rows of bytes into their room; ``row`` is about where they are, for messages."""
        width = raw.shape[1]
        if self.n_cols % 8 and (raw[:, -1] >> (self.n_cols % 8)).any():
            raise self._source.error(
                f"its rows {row} to {row + len(raw) - 1} are damaged: the bits past column {self.n_cols} must be zero"
            )
        if room.size:
            places = room.view(np.uint8)
            places[:, :width] = raw
            places[:, width:] = 0

    def _as_bits(self, room: NDArray[np.uint64]) -> BitMatrix:
        return BitMatrix.from_words(room.astype(np.uint64, copy=False), self.n_cols, check=False)
