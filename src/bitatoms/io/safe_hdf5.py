"""Read untrusted HDF5 files: links to other files are not followed, and claimed sizes are checked before allocation."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .chunked import check_claimed_size
from .stream import Source

_ATTRIBUTES = (
    b"encoding-type", b"encoding-version", b"_index", b"column-order", b"ordered", b"mod-order", b"shape",
    b"h5sparse_format", b"h5sparse_shape", b"na-value",
)  # fmt: skip
_STRING_POINTER = np.dtype([("length", "<u4"), ("heap", "<u8"), ("index", "<u4")])  # of a string in an array
_FREE_TEXT = 1 << 26  # characters that an array may claim however small the file is
_HEAP_SIGNATURE = b"GCOL\x01\0\0\0"  # of a global heap, which holds strings
_MAX_HEAP_BYTES = 1 << 26  # bytes of a heap that are checked; HDF5 writes some thousands
_WINDOW_BYTES = 1 << 22


class Hdf5Reader:
    """Read the groups and arrays of an HDF5 file; each is checked before it is opened."""

    def __init__(self, source: Source, root: Any) -> None:
        self.source = source
        self.root = root

    def child(self, group: Any, name: str) -> Any | None:
        """Return the group or array of this name, or None."""
        import h5py

        link = group.get(name, getlink=True) if name and "/" not in name and name != "." else None
        if link is None:
            return None
        path = f"{group.name.rstrip('/')}/{name}"
        if not isinstance(link, h5py.HardLink):
            raise self.source.error(f"{path!r} is a link, which is not followed; write the file without links")
        element = group[name]
        self._check_attributes(element)
        if isinstance(element, h5py.Dataset):
            self._check_array(element)
        elif not isinstance(element, h5py.Group):
            raise self.source.error(f"{path!r} is neither a group nor an array")
        return element

    def check_all(self, group: Any) -> None:
        """Check everything in a group as `child` does."""
        pending, seen = [group], {group.id}
        while pending:
            parent = pending.pop()
            for name in parent:
                element = self.child(parent, name)
                if element is not None and not hasattr(element, "shape") and element.id not in seen:
                    seen.add(element.id)
                    pending.append(element)

    def read(self, array: Any, *slices: slice) -> NDArray[Any]:
        """Return values of an array."""
        return np.asarray(array[slices])

    def _check_attributes(self, element: Any) -> None:
        """Raise if an attribute that bitatoms or anndata reads is neither text nor a number: h5py crashes on some."""
        from h5py import h5a, h5t

        plain = (h5t.INTEGER, h5t.FLOAT, h5t.STRING, h5t.ENUM)  # booleans are enumerations
        for name in filter(partial(h5a.exists, element.id), _ATTRIBUTES):
            attribute = h5a.open(element.id, name)
            shown = f"the attribute {name.decode()!r} of {element.name!r}"
            if attribute.get_type().get_class() not in plain:
                raise self.source.error(f"corrupt: {shown} is not text")
            n_bytes = attribute.get_space().get_simple_extent_npoints() * attribute.get_type().get_size()
            if n_bytes > self.source.path.stat().st_size:
                raise self.source.error(f"corrupt: {shown} is larger than the file")

    def _check_array(self, array: Any) -> None:
        """Raise if the values of an array are in another file, or if it claims to be larger than the file can hold."""
        import h5py

        if array.id.get_type().get_class() == h5py.h5t.VLEN:  # strings are of another class
            raise self.source.error(
                f"{array.name!r} contains lists, which are not allowed in a table: corrupt or malicious"
            )
        if array.external or array.is_virtual:
            raise self.source.error(
                f"{array.name!r} stores its values in another file, which is not opened; write the file without links"
            )
        n_bytes = array.id.get_storage_size()
        shape, chunks = array.shape or (), array.chunks or ()
        check_claimed_size(self.source, repr(array.name), shape, chunks, array.dtype.itemsize, n_bytes)
        if h5py.check_string_dtype(array.dtype) is not None and array.dtype.kind == "O":
            self._check_text(array)

    def _check_text(self, array: Any) -> None:
        """Raise if strings claim to be longer than the file: HDF5 would allocate memory for them first."""
        n_bytes = self.source.path.stat().st_size
        claimed = sum(int(lengths.sum()) for lengths in self._claimed_lengths(array))
        if claimed > _FREE_TEXT + 16 * n_bytes:
            raise self.source.error(
                f"{array.name!r} claims to have {claimed} characters of text, but the file has {n_bytes} bytes: "
                "corrupt or malicious"
            )

    def _claimed_lengths(self, array: Any) -> Iterator[NDArray[np.uint64]]:
        """Yield the lengths that strings claim, read from the file because HDF5 returns them only after allocation."""
        from h5py import h5z

        properties = array.id.get_create_plist()
        filters = [properties.get_filter(index)[0] for index in range(properties.get_nfilters())]
        if filters not in ([], [h5z.FILTER_DEFLATE], [h5z.FILTER_SHUFFLE, h5z.FILTER_DEFLATE]):
            return
        itemsize = _STRING_POINTER.itemsize
        chunk_bytes = itemsize * math.prod(array.chunks or array.shape)
        for content in self._stored_chunks(array, chunk_bytes):
            if filters:
                content = zlib.decompressobj().decompress(content, chunk_bytes)
            values = np.frombuffer(content, np.uint8, len(content) // itemsize * itemsize)
            if len(filters) == 2:
                values = np.ascontiguousarray(values.reshape(itemsize, -1).T).ravel()
            yield values.view(_STRING_POINTER)["length"].astype(np.uint64)

    def _stored_chunks(self, array: Any, n_bytes: int) -> Iterator[bytes]:
        """Yield the chunks of an array as they are stored; all of it, ``n_bytes``, if it has none."""
        if array.chunks is not None:
            offsets: list[tuple[int, ...]] = []
            most = self.source.path.stat().st_size
            array.id.chunk_iter(lambda chunk: offsets.append(chunk.chunk_offset) if chunk.size <= most else None)
            yield from (array.id.read_direct_chunk(offset)[1] for offset in offsets)
        elif array.id.get_offset() is not None:
            with self.source.path.open("rb") as file:
                file.seek(array.id.get_offset())
                yield file.read(n_bytes)


@contextmanager
def open_hdf5(source: Source) -> Iterator[Hdf5Reader]:
    """Open an HDF5 file; call `check_heaps` once before."""
    import h5py

    with h5py.File(source.path, "r") as file:
        yield Hdf5Reader(source, file)


def check_heaps(source: Source) -> None:
    """Raise if a global heap contains an object of size zero: HDF5 would search for the next one without end."""
    with source.path.open("rb") as file:
        if not file.seek(0, 2):
            raise source.error("the file is empty")
        for start in _find_all(file, _HEAP_SIGNATURE):
            file.seek(start)
            (size,) = struct.unpack("<8xQ", file.read(16).ljust(16, b"\0"))
            if _has_empty_object(file.read(max(0, min(size, _MAX_HEAP_BYTES) - 16))):
                raise source.error(f"corrupt: the heap at byte {start} has an object of size zero; copy the file again")


def _find_all(file: IO[bytes], signature: bytes) -> Iterator[int]:
    """Yield the offsets of a signature in a file."""
    start = 0
    while True:
        file.seek(start)
        window = file.read(_WINDOW_BYTES)
        offset = window.find(signature)
        while offset >= 0:
            yield start + offset
            offset = window.find(signature, offset + 1)
        if len(window) < _WINDOW_BYTES:
            return
        start += len(window) - len(signature) + 1


def _has_empty_object(objects: bytes) -> bool:
    """Return whether an object of a heap has size zero; HDF5 itself reports other corruption."""
    header = struct.Struct("<H6xQ")
    offset, last = 0, len(objects) - header.size
    while offset <= last:
        index, length = header.unpack_from(objects, offset)
        # Index 0 is the free space, including its header. Sizes have 64 bits and wrap around.
        size = (header.size + -(-length // 8) * 8 if index else length) % (1 << 64)
        if not size:
            return True
        offset += size
    return False
