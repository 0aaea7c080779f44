"""The data frames of an AnnData: names and annotations from ``obs`` and ``var``, values of those in ``obsm``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....cell_values import is_missing
from ....columns.annotations import Annotations, Labels, Values
from ....columns.table import Names
from ....errors import warn
from ....formatting import listed_names, quoted
from ...stream import Source
from .anndata_elements import HierarchicalFile, encoding, find_element, is_array, read_element, text_attribute

_OLD_CATEGORIES = "__categories"  # where AnnData 0.7 stores the categories of all columns
_LISTED = 5  # columns in a message
_REFERENCE = "ref"  # in the metadata of a type of h5py


def open_frame(source: Source, file: HierarchicalFile, path: str) -> Any:
    """Return the group of a data frame, such as "obs" or "raw/var"."""
    group = find_element(file, *path.split("/"))
    if group is None or is_array(group) or "_index" not in group.attrs:
        raise source.error(
            f"{path!r} is not in the format of AnnData 0.7 or later; rewrite an older file with "
            "anndata.read_h5ad(path).write_h5ad(path)"
        )
    return group


def frame_length(source: Source, file: HierarchicalFile, path: str) -> int:
    """Return the number of rows of a data frame."""
    shape = _shape(file, _index(source, file, path))
    return shape[0] if shape is not None and len(shape) == 1 else 0


def read_names(source: Source, file: HierarchicalFile, path: str, expected: int) -> Names:
    """Return the index of a data frame: the names of rows ("obs") or columns ("var", "raw/var")."""
    element = _index(source, file, path)
    shape = _shape(file, element)
    if shape != (expected,):
        raise source.error(f"corrupt: the names in {path!r} have shape {shape}; expected ({expected},)")
    return tuple(name if type(name) is str else _to_text(name) for name in read_element(element))


def field_names(source: Source, file: HierarchicalFile, path: str) -> list[str]:
    """Return the names of the columns of a data frame, in their order."""
    group = open_frame(source, file, path)
    listed = group.attrs.get("column-order")
    if listed is None:
        listed = sorted(group)
    names = [
        name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name) for name in np.atleast_1d(listed)
    ]
    return [name for name in dict.fromkeys(names) if name not in (text_attribute(group, "_index"), _OLD_CATEGORIES)]


def read_annotations(source: Source, file: HierarchicalFile, path: str, n: int) -> Annotations:
    """Return the columns of a data frame of ``n`` rows; a warning names those that are neither numbers nor text."""
    fields = _read_fields(source, file, path, n)
    if ignored := [name for name, values in fields.items() if values is None]:
        warn(
            f"{source.name}: columns of {path!r} are ignored, because they are neither numbers nor text: "
            f"{listed_names(ignored, _LISTED)}"
        )
    return Annotations({name: values for name, values in fields.items() if values is not None}, n)


def read_numbers(source: Source, file: HierarchicalFile, path: str, shape: tuple[int, int]) -> NDArray[Any]:
    """Return the values of a data frame of numbers; those that are missing are NaN."""
    source.check_memory(8 * shape[0] * shape[1], f"the values of {path!r}")
    columns: list[NDArray[Any]] = []
    for name, values in _read_fields(source, file, path, shape[0]).items():
        if values is None or isinstance(values, Labels):
            raise source.error(f"the column {quoted(name)} of {path!r} does not contain numbers; remove it")
        if isinstance(values, np.ma.MaskedArray):
            values = np.where(np.ma.getmaskarray(values), np.nan, np.ma.getdata(values))
        columns.append(values)
    return np.stack(columns, axis=1) if columns else np.empty(shape, np.uint8)


def _index(source: Source, file: HierarchicalFile, path: str) -> Any:
    """Return the element that holds the index of a data frame."""
    group = open_frame(source, file, path)
    name = text_attribute(group, "_index")
    element = file.child(group, name)
    if element is None:
        raise source.error(f"corrupt: {path!r} does not contain its index {quoted(name)}")
    return element


def _shape(file: HierarchicalFile, element: Any) -> tuple[int, ...] | None:
    """Return the shape of a column, which may be categorical or nullable, after checking all of it."""
    if is_array(element):
        return element.shape
    file.check_all(element)
    arrays = [array for name in ("codes", "values") if (array := file.child(element, name)) is not None]
    return arrays[0].shape if len(arrays) == 1 and is_array(arrays[0]) else None


def _read_fields(source: Source, file: HierarchicalFile, path: str, n: int) -> dict[str, Values | None]:
    """Return the columns of a data frame; None for those that are of another type."""
    group = open_frame(source, file, path)
    old_categories = file.child(group, _OLD_CATEGORIES)
    fields: dict[str, Values | None] = {}
    n_bytes = 0
    for name in field_names(source, file, path):
        element = find_element(file, *name.split("/"), start=group)
        shown = f"{path}/{name[:40]}"
        if element is None:
            raise source.error(f"corrupt: there is no {shown!r}")
        n_bytes += n * _itemsize(element)
        source.check_memory(n_bytes, f"the columns of {path!r}")  # several may be the same in the file
        old = None if old_categories is None or is_array(old_categories) else file.child(old_categories, name)
        if old is not None and is_array(element):
            fields[name] = _read_categories(source, file, (element, old, old), n, shown)
        else:
            fields[name] = _read_field(source, file, element, n, shown)
    return fields


def _read_field(source: Source, file: HierarchicalFile, element: Any, n: int, shown: str) -> Values | None:
    """Return the values of a column, or None if they are neither numbers nor text."""
    kind = encoding(element)
    if is_array(element):
        if len(element.shape or ()) != 1:
            return None
        return _read_array(source, file, element, n, shown)
    if kind == "categorical":
        parts = file.child(element, "codes"), file.child(element, "categories"), element
        return _read_categories(source, file, parts, n, shown)
    if not kind.startswith("nullable-"):
        return None
    values, mask = (_read_part(source, file, element, name, n, shown) for name in ("values", "mask"))
    if values is None or isinstance(mask, Labels) or mask is None or mask.dtype.kind != "b":
        raise source.error(f"corrupt: {shown!r} has no valid values and mask")
    if isinstance(values, Labels):
        return Labels(np.where(mask, -1, values.codes).astype(np.int32), values.categories, is_nullable=True)
    return np.ma.MaskedArray(values, mask)


def _read_part(source: Source, file: HierarchicalFile, group: Any, name: str, n: int, shown: str) -> Values | None:
    """Return an array of a column that is stored as several arrays."""
    array = file.child(group, name)
    return None if array is None or not is_array(array) else _read_array(source, file, array, n, f"{shown}/{name}")


def _read_array(source: Source, file: HierarchicalFile, array: Any, n: int, shown: str) -> Values | None:
    """Return an array of numbers or text; None if it is of another type."""
    if array.shape != (n,):
        raise source.error(f"corrupt: {shown!r} has shape {array.shape}; expected ({n},)")
    if array.dtype.kind in "biuf":
        values = file.read(array, slice(None))
        return values.astype(values.dtype.newbyteorder("="), copy=False)
    if array.dtype.kind not in "SUTO" or _REFERENCE in (array.dtype.metadata or {}):
        return None
    return Labels.of(file.read(array, slice(None)).tolist())


def _read_categories(source: Source, file: HierarchicalFile, parts: tuple[Any, Any, Any], n: int, shown: str) -> Labels:
    """Return categories from their codes, their values, and the element that states whether they are ordered."""
    code_array, category_element, described = parts
    codes = None if code_array is None or not is_array(code_array) else _read_array(source, file, code_array, n, shown)
    shape = None if category_element is None else _shape(file, category_element)
    categories = None
    if shape is not None and len(shape) == 1 and encoding(category_element) != "categorical":
        categories = _read_field(source, file, category_element, shape[0], f"{shown}/categories")
    if codes is None or isinstance(codes, Labels) or codes.dtype.kind not in "iu" or categories is None:
        raise source.error(f"corrupt: {shown!r} has no valid codes and categories")
    values = np.ma.getdata(categories) if isinstance(categories, np.ma.MaskedArray) else np.asarray(categories)
    labels = Labels.of_categories(
        codes.astype(np.int64).clip(-2, len(values)), values, bool(described.attrs.get("ordered"))
    )
    if len(set(labels.categories)) < len(values) or None in values.tolist():
        raise source.error(f"corrupt: the categories of {shown!r} are not distinct")
    if n and not -1 <= labels.codes.min() <= labels.codes.max() < len(values):
        raise source.error(f"corrupt: {shown!r} has a code without a category")
    return labels


def _itemsize(element: Any) -> int:
    """Return the bytes of a value of a column in memory."""
    return max(8, element.dtype.itemsize) if is_array(element) else 8


def _to_text(value: Any) -> str:
    """Return a name as text; a missing one is blank."""
    if isinstance(value, bytes):
        return value.decode()
    return "" if is_missing(value) else str(value)
