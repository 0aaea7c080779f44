"""The data frames of an AnnData: names and annotations from ``obs`` and ``var``, values of those in ``obsm``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....cell_values import is_missing
from ....columns.annotations import Annotations, Labels
from ....columns.table import Names
from ....errors import warn
from ....formatting import counted, listed_names, quoted
from ...errors import FileError
from .anndata_elements import HierarchicalFile, find_element, is_array, read_element, text_attribute

_OLD_CATEGORIES = "__categories"  # where AnnData 0.7 stores the categories of all columns


def open_frame(file: HierarchicalFile, path: str) -> Any:
    """Return the group of a data frame, such as "obs" or "raw/var"."""
    group = find_element(file, *path.split("/"))
    if group is None or is_array(group) or "_index" not in group.attrs:
        raise file.source.error(
            f"{path!r} is not in the format of AnnData 0.7 or later; rewrite an older file with "
            "anndata.read_h5ad(path).write_h5ad(path)"
        )
    return group


def read_names(file: HierarchicalFile, path: str, expected: int | None = None) -> Names:
    """Return the index of a data frame: the names of rows ("obs") or columns ("var", "raw/var")."""
    group = open_frame(file, path)
    name = text_attribute(group, "_index")
    element = file.child(group, name)
    if element is None:
        raise file.source.error(f"corrupt: {path!r} does not contain its index {quoted(name)}")
    names = read_element(file, element)
    if expected not in (None, len(names)):
        raise file.source.error(f"corrupt: {path!r} has {counted(len(names), 'name')}; expected {expected}")
    return tuple(name if type(name) is str else _to_text(name) for name in names)


def field_names(file: HierarchicalFile, path: str) -> list[str]:
    """Return the names of the columns of a data frame, in their order."""
    group = open_frame(file, path)
    listed = group.attrs.get("column-order")
    if listed is None:
        listed = sorted(group)
    names = [
        name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name) for name in np.atleast_1d(listed)
    ]
    return [name for name in dict.fromkeys(names) if name not in (text_attribute(group, "_index"), _OLD_CATEGORIES)]


def read_annotations(file: HierarchicalFile, path: str, n: int) -> Annotations:
    """Return the columns of a data frame of ``n`` rows; a warning names those that are neither numbers nor text."""
    fields, ignored = {}, []
    for name, values in _read_columns(file, path, n).items():
        if getattr(values, "ndim", 0) != 1 or getattr(values.dtype, "kind", "O") in "cV":
            ignored.append(name)
        else:
            fields[name] = values
    if ignored:
        warn(
            f"{file.source.name}: columns of {path!r} are ignored, because they are neither numbers nor text: "
            f"{listed_names(ignored)}"
        )
    return Annotations(fields, n)


def read_numbers(file: HierarchicalFile, path: str, shape: tuple[int, int]) -> NDArray[Any]:
    """Return the values of a data frame of numbers; those that are missing are NaN."""
    data = Annotations(_read_columns(file, path, shape[0]), shape[0])
    columns: list[NDArray[Any]] = []
    for name in data:
        values = data.values_of(name)
        if isinstance(values, Labels):
            raise file.source.error(f"the column {quoted(name)} of {path!r} does not contain numbers; remove it")
        if isinstance(values, np.ma.MaskedArray):
            values = np.where(np.ma.getmaskarray(values), np.nan, np.ma.getdata(values))
        columns.append(values)
    return np.stack(columns, axis=1) if columns else np.empty(shape, np.uint8)


def _read_columns(file: HierarchicalFile, path: str, n: int) -> dict[str, Any]:
    """Return the columns of a data frame as anndata reads them."""
    import pandas as pd

    group, names = open_frame(file, path), field_names(file, path)
    file.source.check_memory(8 * n * len(names), f"the columns of {path!r}")  # several may be the same in the file
    columns = {}
    for name in names:
        element, shown = find_element(file, *name.split("/"), start=group), quoted(f"{path}/{name}")
        if element is None:
            raise file.source.error(f"corrupt: there is no {shown}")
        old_categories = find_element(file, _OLD_CATEGORIES, name, start=group)
        try:
            values = read_element(file, element)
            if old_categories is not None:
                is_ordered = bool(old_categories.attrs.get("ordered"))
                values = pd.Categorical.from_codes(values, read_element(file, old_categories), ordered=is_ordered)
            n_values = n if isinstance(values, dict) else len(values)
        except (FileError, MemoryError):
            raise
        except Exception as error:  # anndata, pandas and the library of the file raise anything
            reason = " ".join(str(error).split())[:150]
            raise file.source.error(f"corrupt: the column {shown} cannot be read: {reason}") from error
        if n_values != n:
            raise file.source.error(f"corrupt: the column {shown} has {counted(n_values, 'value')}; expected {n}")
        columns[name] = values
    return columns


def _to_text(value: Any) -> str:
    """Return a name as text; a missing one is blank."""
    if isinstance(value, bytes):
        return value.decode()
    return "" if is_missing(value) else str(value)
