"""HDF5 files from strangers: only what lies in the file itself is opened, and only what there is of it is believed."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .chunked import check_claimed_size
from .stream import Source

_ATTRIBUTES = (b"encoding-type", b"encoding-version", b"_index", b"shape", b"h5sparse_format", b"h5sparse_shape")
_TEXT = np.dtype([("length", "<u4"), ("heap", "<u8"), ("number", "<u4")])  # what stands for a text in an array
_MOST_TEXT = 1 << 26  # letters, however small the file
_HEAP = b"GCOL\x01\0\0\0"  # what a heap of text begins with
_LARGEST_HEAP = 1 << 26  # bytes that are looked at; they are of some thousands
_WINDOW = 1 << 22  # bytes looked through together


class Hdf5Reader:
    """The elements of an HDF5 file, each made sure that it leads to no other file."""

    def __init__(self, source: Source, root: Any) -> None:
        self.source = source
        self.root = root

    def child(self, group: Any, name: str) -> Any | None:
        """The group or array of this name; None where there is none."""
        import h5py

        link = group.get(name, getlink=True) if name and "/" not in name and name != "." else None
        if link is None:
            return None
        if not isinstance(link, h5py.HardLink):
            raise self.source.error(
                f"{_path(group, name)!r} is a link, maybe to another file, and is not followed; write the file anew"
            )
        element = group[name]
        self._check_attributes(element)
        if isinstance(element, h5py.Dataset):
            self._check_array(element)
        elif not isinstance(element, h5py.Group):
            raise self.source.error(f"{_path(group, name)!r} is neither a group nor an array")
        return element

    def check_all(self, group: Any) -> None:
        """Look at all there is in a group, as `child` does."""
        waiting, seen = [group], {group.id}
        while waiting:
            around = waiting.pop()
            for name in around:
                element = self.child(around, name)
                if element is not None and not hasattr(element, "shape") and element.id not in seen:
                    seen.add(element.id)
                    waiting.append(element)

    def read(self, array: Any, *slices: slice) -> NDArray[Any]:
        """Some values of an array."""
        return np.asarray(array[slices])

    def _check_attributes(self, element: Any) -> None:
        """Refuse attributes that are read here or by anndata and are neither text nor numbers: h5py crashes on some."""
        from h5py import h5a, h5t

        plain = (h5t.INTEGER, h5t.FLOAT, h5t.STRING)
        for name in _ATTRIBUTES:
            if h5a.exists(element.id, name) and h5a.open(element.id, name).get_type().get_class() not in plain:
                raise self.source.error(f"corrupt: the attribute {name.decode()!r} of {element.name!r} is no text")

    def _check_array(self, array: Any) -> None:
        """Refuse an array whose values lie elsewhere, or that claims to be far larger than what there is of it."""
        import h5py

        if array.id.get_type().get_class() == h5py.h5t.VLEN:  # text is not of this class
            raise self.source.error(f"{array.name!r} holds lists, which no table has: corrupt or malicious")
        if array.external or array.is_virtual:
            raise self.source.error(
                f"{array.name!r} keeps its values in another file, which is not opened; write it anew"
            )
        there = array.id.get_storage_size()
        check_claimed_size(
            self.source, repr(array.name), array.shape or (), array.chunks or (), array.dtype.itemsize, there
        )
        if h5py.check_string_dtype(array.dtype) is not None and array.dtype.kind == "O":
            self._check_text(array)

    def _check_text(self, array: Any) -> None:
        """Refuse text that says it is longer than the file: HDF5 would make room for it first."""
        held = self.source.path.stat().st_size
        total = sum(int(lengths.sum()) for lengths in self._lengths(array))
        if total > _MOST_TEXT + 16 * held:
            raise self.source.error(
                f"{array.name!r} says that its text has {total} letters, and the whole file has {held} bytes: "
                "corrupt or malicious"
            )

    def _lengths(self, array: Any) -> Iterator[NDArray[np.uint64]]:
        """The lengths that texts claim; from the file itself, for HDF5 does not tell without making room."""
        from h5py import h5z

        plan = array.id.get_create_plist()
        filters = [plan.get_filter(place)[0] for place in range(plan.get_nfilters())]
        if filters not in ([], [h5z.FILTER_DEFLATE], [h5z.FILTER_SHUFFLE, h5z.FILTER_DEFLATE]):
            return
        places = [(array.id.get_offset(), array.size * _TEXT.itemsize)]
        if array.chunks is not None:
            places = []
            array.id.chunk_iter(lambda chunk: places.append((chunk.byte_offset, chunk.size)))
        whole = _TEXT.itemsize * math.prod(array.chunks or array.shape)
        with self.source.path.open("rb") as file:
            for start, size in places:
                if start is None:
                    continue
                file.seek(start)
                content = file.read(size)
                if filters:
                    content = zlib.decompressobj().decompress(content, whole)
                values = np.frombuffer(content, np.uint8, len(content) // _TEXT.itemsize * _TEXT.itemsize)
                if len(filters) == 2:
                    values = np.ascontiguousarray(values.reshape(_TEXT.itemsize, -1).T).ravel()
                yield values.view(_TEXT)["length"].astype(np.uint64)


def _path(group: Any, name: str) -> str:
    """Where an element is in the file."""
    return f"{group.name.rstrip('/')}/{name}"


@contextmanager
def open_hdf5(source: Source) -> Iterator[Hdf5Reader]:
    """An HDF5 file, open for reading; `check_heaps` is called once before."""
    import h5py

    with h5py.File(source.path, "r") as file:
        yield Hdf5Reader(source, file)


def check_heaps(source: Source) -> None:
    """Refuse a file with a heap of text in which HDF5 would look for the next object for ever."""
    with source.path.open("rb") as file:
        if not file.seek(0, 2):
            raise source.error("the file is empty")
        for start in _found(file, _HEAP):
            file.seek(start)
            (size,) = struct.unpack("<8xQ", file.read(16).ljust(16, b"\0"))
            if _is_endless(file.read(max(0, min(size, _LARGEST_HEAP) - 16))):
                raise source.error(
                    f"corrupt: the heap of text at byte {start} has an object without length; copy the file anew"
                )


def _found(file: IO[bytes], wanted: bytes) -> Iterator[int]:
    """Where some bytes are in a file."""
    start, overlap = 0, len(wanted) - 1
    while True:
        file.seek(start)
        window = file.read(_WINDOW)
        place = window.find(wanted)
        while place >= 0:
            yield start + place
            place = window.find(wanted, place + 1)
        if len(window) < _WINDOW:
            return
        start += len(window) - overlap


def _is_endless(objects: bytes) -> bool:
    """Whether one of these objects takes no room, so that the next one is itself; of other damage HDF5 tells."""
    head = struct.Struct("<H6xQ")
    place, last = 0, len(objects) - head.size
    while place <= last:
        number, length = head.unpack_from(objects, place)
        # Number 0 is the space that is free, its header with it. Lengths are of 64 bits, and go round.
        taken = (head.size + -(-length // 8) * 8 if number else length) % (1 << 64)
        if not taken:
            return True
        place += taken
    return False
