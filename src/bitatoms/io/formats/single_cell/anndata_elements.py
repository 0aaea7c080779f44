"""The elements of an AnnData, in an HDF5 file or a Zarr store: groups and arrays, each checked before it is read."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from numpy.typing import NDArray

from ....errors import Parameter
from ...stream import Source


class HierarchicalFile(Protocol):
    """An HDF5 file or a Zarr store that may be untrusted: it gives access only to its own groups and arrays."""

    root: Any

    def child(self, group: Any, name: str) -> Any | None:
        """Return the group or array of this name, checked, or None if there is none."""

    def check_all(self, group: Any) -> None:
        """Check everything in a group, as `child` does."""

    def read(self, array: Any, *slices: slice) -> NDArray[Any]:
        """Return some values of an array."""


OpenFile = Callable[[Source], AbstractContextManager[HierarchicalFile]]


def check_kind(source: Source, file: HierarchicalFile) -> None:
    """Raise FileError if an HDF5 file is of another format than its name, judging by the groups in it."""
    names = set(file.root)
    if "mod" in names:
        found = "h5mu"
    elif {"obs", "var"} <= names:
        found = "h5ad"
    else:
        found = "10x" if "matrix" in names else source.format
    if found != source.format:
        problem = f"not a file of the format {source.format!r}: it looks like {found!r}; pass "
        raise source.error(problem, Parameter("format", found))


def find_element(file: HierarchicalFile, *names: str, start: Any = None) -> Any | None:
    """Return the group or array that these names lead to from the root, or from ``start``; None if there is none."""
    element = file.root if start is None else start
    for name in names:
        element = None if element is None or is_array(element) else file.child(element, name)
    return element


def is_array(element: Any) -> bool:
    """Return whether an element is an array, not a group."""
    return hasattr(element, "shape")


def open_array(source: Source, file: HierarchicalFile, group: Any, name: str, kinds: str, *shape: int | None) -> Any:
    """Return an array of a group; its type must be of one of these kinds, and it has this shape (None: any length)."""
    array = file.child(group, name)
    found = getattr(array, "shape", None) or ()
    fits = len(found) == len(shape) and all(length in (None, n) for length, n in zip(shape, found, strict=True))
    if array is None or not is_array(array):
        raise source.error(f"corrupt: {group.name!r} has no array {name!r}")
    if not fits or array.dtype.kind not in kinds:
        raise source.error(f"corrupt: {group.name!r} has no valid {name!r}: shape {found}, type {array.dtype}")
    return array


def read_array(source: Source, file: HierarchicalFile, group: Any, name: str, kinds: str, *shape: int | None) -> Any:
    """Return the values of an array; see `open_array`."""
    return file.read(open_array(source, file, group, name, kinds, *shape), slice(None))


def read_texts(source: Source, file: HierarchicalFile, group: Any, name: str, n: int | None = None) -> list[str]:
    """Return the values of an array of text."""
    values = read_array(source, file, group, name, "OSTU", n).tolist()
    return [value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value) for value in values]


def text_attribute(element: Any, name: str) -> str:
    """Return an attribute as text; it is empty if there is none."""
    value = element.attrs.get(name, "")
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def encoding(element: Any) -> str:
    """Return how an element is stored, by the names of AnnData."""
    return text_attribute(element, "encoding-type")


def read_element(file: HierarchicalFile, element: Any) -> Any:
    """Return a small element as anndata reads it, after checking all of it."""
    from anndata import OldFormatWarning
    from anndata.io import read_elem

    if not is_array(element):
        file.check_all(element)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OldFormatWarning)  # AnnData 0.7 wrote no encoding of arrays
        return read_elem(element)
