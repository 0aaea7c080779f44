"""MuData: one modality of an .h5mu file, or of a Zarr store, which is an AnnData."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from ....errors import Parameter
from ....formatting import listed_names, quoted
from ...hdf5_reader import open_hdf5
from ...options import ReadOptions
from ...stream import Source, TableStream
from .anndata_elements import HierarchicalFile, OpenFile, check_kind, find_element, is_array
from .h5ad import read_anndata

_LISTED = 20  # modalities in a message


def read(source: Source, options: ReadOptions) -> TableStream:
    """Open a modality of an .h5mu file."""
    with source.catch_library_errors(), open_hdf5(source) as file:
        check_kind(file)
    return read_modality(source, options, open_hdf5)


def read_modality(source: Source, options: ReadOptions, open_file: OpenFile) -> TableStream:
    """Open a modality of a MuData in an HDF5 file or a Zarr store."""
    return read_anndata(source, options, partial(_open_modality, modality=options.modality, open_file=open_file))


@contextmanager
def _open_modality(source: Source, modality: str | None, open_file: OpenFile) -> Iterator[HierarchicalFile]:
    """Open a file whose root is the AnnData of a modality."""
    with open_file(source) as file:
        file.root = _select(file, modality)
        yield file


def _select(file: HierarchicalFile, modality: str | None) -> Any:
    """Return the group of a modality, or of the only one."""
    group = find_element(file, "mod")
    if group is None or is_array(group):
        raise file.source.error("this is not a MuData: it has no 'mod'")
    stored = sorted(group)
    order = [name.decode() if isinstance(name, bytes) else str(name) for name in _mod_order(group)]
    names = stored if sorted(order) != stored else order
    listed = listed_names(names, _LISTED)
    if not names:
        raise file.source.error("it has no modalities")
    if modality is None and len(names) != 1:
        raise file.source.error(f"it has {len(names)} modalities ({listed}); pass ", Parameter("modality"))
    element = find_element(file, names[0] if modality is None else modality, start=group)
    if element is None or is_array(element):
        raise file.source.error(f"there is no modality {quoted(modality or names[0])} (modalities: {listed})")
    return element


def _mod_order(group: Any) -> list[Any]:
    """Return the names of the modalities in the order that the file states."""
    return np.atleast_1d(group.attrs.get("mod-order", [])).tolist()
