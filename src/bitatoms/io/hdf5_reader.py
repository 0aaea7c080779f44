"""Read untrusted HDF5 files: links to other files are not followed, and claimed sizes are checked before allocation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .out_of_core.chunked import check_claimed_size
from .stream import Source

_ATTRIBUTES = (
    b"encoding-type", b"encoding-version", b"_index", b"column-order", b"ordered", b"mod-order", b"shape",
    b"h5sparse_format", b"h5sparse_shape", b"na-value",
)  # fmt: skip


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
            n_bytes = attribute.get_space().get_simple_extent_npoints() * attribute.get_type().get_size()
            if attribute.get_type().get_class() not in plain or n_bytes > self.source.path.stat().st_size:
                raise self.source.error(
                    f"corrupt: the attribute {name.decode()!r} of {element.name!r} is not text or too large"
                )

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


@contextmanager
def open_hdf5(source: Source) -> Iterator[Hdf5Reader]:
    """Open an HDF5 file."""
    import h5py

    if not source.path.stat().st_size:
        raise source.error("the file is empty")
    with h5py.File(source.path, "r") as file:
        yield Hdf5Reader(source, file)
