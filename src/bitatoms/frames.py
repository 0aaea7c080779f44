"""Tables of other libraries: the values and names of AnnData objects and of pandas, polars and pyarrow data frames.

Types are recognized by the name of their package, so that none of these libraries is imported for other tables.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cell_values import binarize_advice, dense_table, is_sparse, package_name
from .errors import InputError, Parameter, warn
from .formatting import listed_names, numbered
from .system.libraries import import_library

RAW = "raw"  # what a layer is called that means the ``raw`` of an AnnData
OBSM = "obsm/"  # how a layer begins that means an array of the ``obsm`` of an AnnData


_DLPACK_CUDA, _DLPACK_HOST = 2, (1, 3, 11, 13)  # types of devices: memory of CUDA; memory that NumPy reads


def in_memory(X: Any, name: str = "X") -> Any:
    """Return a table that offers Arrow's C stream as a pyarrow table, and an array on a device as a NumPy array.

    The stream may be read only once: functions that users call import X first, and use only what this returns. Frames
    of pandas and polars, and all else, are returned unchanged.
    """
    if isinstance(X, np.ndarray) or package_name(X) in ("pandas", "polars", "bitatoms"):
        return X
    if hasattr(type(X), "__arrow_c_stream__") and not hasattr(X, "combine_chunks"):  # not a pyarrow table or array
        pa = import_library("pyarrow", f"{name} is a {package_name(X)} {type(X).__name__}; such tables need")
        return pa.table(X)
    return on_host(X, name)


def is_frame(X: Any) -> bool:
    """Return whether X is a data frame of pandas or polars, or a pyarrow table."""
    names = {"pandas": "columns", "polars": "columns", "pyarrow": "column_names"}.get(package_name(X))
    return names is not None and hasattr(X, names)


def obsm_key(layer: str | None) -> str | None:
    """Return the name of the array of ``obsm`` that a layer such as "obsm/protein" means; None for other layers."""
    return layer.removeprefix(OBSM) if layer is not None and layer.startswith(OBSM) else None


def is_anndata(X: Any) -> bool:
    """Return whether X is an AnnData, the ``raw`` of one, or a MuData (see `select_modality`)."""
    return package_name(X) in ("anndata", "mudata") and hasattr(X, "obs_names")


def select_raw(X: Any, layer: str | None) -> tuple[Any, str | None]:
    """Return the ``raw`` of an AnnData and no layer if the layer is "raw" and there is no layer of that name."""
    if layer == RAW and is_anndata(X) and RAW not in X.layers and X.raw is not None:
        return X.raw, None
    return X, layer


def values_of(X: Any, name: str = "X", layer: str | None = None) -> Any:
    """Return the values of a table of any supported type: a 2-D array, which may be masked, or a SciPy sparse matrix.

    A pandas frame whose columns are all sparse, with zeros not stored, is a sparse matrix too. Arrays and tensors of
    other libraries are copied from their device, if they are on one. Errors call the table ``name``.
    """
    values = X if isinstance(X, np.ndarray) else _values(in_memory(X, name), name, layer)
    if not is_sparse(values):
        return dense_table(values, name)
    if values.ndim != 2:
        raise ValueError(f"Expected 2D array, got {values.ndim}D array instead: {name} has shape {values.shape}")
    return values


def _values(X: Any, name: str, layer: str | None) -> Any:
    """Return the values of an AnnData, a pyarrow table or a sparse pandas frame; of others, what is no table raises."""
    if is_anndata(X):
        X, layer = select_raw(select_modality(X, None), layer)
        values = X.X if layer is None else layer_values(X, layer)
        if values is None:
            raise ValueError("the AnnData has no X; pass the name of a layer")
        values = on_host(values, "the AnnData")
        in_memory = isinstance(values, np.ndarray) or is_sparse(values)
        return values if in_memory or package_name(values) not in ("h5py", "anndata") else values[:]
    if package_name(X) == "bitatoms" and hasattr(X, "fingerprint"):
        raise TypeError(
            f"{name} is {X!r}, whose rows are not in memory; pass it to BinaryDictionaryLearning.fit, or load it with "
            "bitatoms.read"
        )
    if isinstance(X, (str, os.PathLike)):
        raise TypeError(f"{name} is {os.fspath(X)[:240]!r}, not a table; read the file with bitatoms.read")
    if isinstance(X, Mapping) and not is_sparse(X):  # sparse matrices of keys were dicts in old versions of SciPy
        raise TypeError(
            f"{name} is a {type(X).__name__}, not a table; pass pandas.DataFrame(X) if its columns are 0 and 1, or "
            "bitatoms.encode(X) to encode categories and numbers"
        )
    package = package_name(X)
    if package == "pyarrow" and is_frame(X):
        columns = [_arrow_column(column) for column in X.drop_columns(list(arrow_index(X))).columns]
        return np.stack(columns).T if columns else np.empty((X.num_rows, 0), np.uint8)  # column-major, as in Arrow
    if package == "pandas" and is_frame(X) and hasattr(X, "sparse"):
        with suppress(ValueError):  # other values than zero are not stored
            return X.sparse.to_coo()
    return X


def on_host(X: Any, name: str = "X") -> Any:
    """Return arrays and tensors of other libraries, on a CUDA device or not, as NumPy arrays; any other X unchanged.

    These are arrays of CuPy, tensors with DLPack's interface, such as those of PyTorch, and arrays with that of CUDA.
    Sparse matrices of CuPy become those of SciPy.
    """
    if isinstance(X, np.ndarray):
        return X
    if package_name(X) in ("cupy", "cupyx") and hasattr(X, "get"):
        return X.get()
    if hasattr(type(X), "__dlpack__") and hasattr(type(X), "__dlpack_device__"):
        place = int(X.__dlpack_device__()[0])
    elif hasattr(type(X), "__cuda_array_interface__"):
        place = _DLPACK_CUDA
    else:
        return X
    readers: list[Callable[[], Any]] = []  # the best one first
    if place in _DLPACK_HOST:
        readers.append(lambda: np.from_dlpack(X))
    elif place == _DLPACK_CUDA:
        from .kernels.gpu.device import import_cupy

        if hasattr(type(X), "__dlpack__"):
            readers.append(lambda: import_cupy().from_dlpack(X).get())
        readers.append(lambda: import_cupy().asarray(X).get())  # also booleans, which not all exchange by DLPack
    if hasattr(type(X), "__array__"):  # the library itself can convert more types
        readers.append(lambda: np.asarray(X))
    problem = ""
    for read in readers:
        try:
            return read()
        except MemoryError:
            raise
        except Exception as error:  # libraries raise errors of many types
            problem = problem or f" ({str(error).partition(chr(10))[0] or type(error).__name__})"
    where = "on a CUDA device, " if place == _DLPACK_CUDA else ""
    raise TypeError(
        f"{name} is a {package_name(X)} {type(X).__name__}, {where}which cannot be read as a NumPy array{problem}; "
        "convert it first, in PyTorch with X.detach().cpu().numpy()"
    )


def layer_values(X: Any, layer: str) -> Any:
    """Return a layer of an AnnData, or an array of its ``obsm``."""
    if layer in X.layers:
        return X.layers[layer]
    key = obsm_key(layer)
    if key is None:
        raise ValueError(f"the AnnData has no layer {layer!r}; it has {listed_names(_layers(X), 20)}")
    if key not in X.obsm:
        raise ValueError(f"the AnnData has no {layer!r}; its obsm has {listed_names(X.obsm, 20)}")
    return X.obsm[key]


def _layers(X: Any) -> tuple[str, ...]:
    """Return the names of the layers of an AnnData, and "raw" if it has one."""
    return (*filter(None, X.layers), *((RAW,) if X.raw is not None else ()))  # None is X, in new versions


def is_obsm(X: Any, layer: str | None) -> bool:
    """Return whether a layer of an AnnData is an array of its ``obsm``."""
    return obsm_key(layer) is not None and layer not in X.layers


def layer_of_counts(layers: Iterable[str], current: str | None) -> str | None:
    """Return the layer of an AnnData that contains counts, judging by its name, or None; not the current one."""
    names = [name for name in layers if name != current and ("count" in name.lower() or name == RAW)]
    return min(names, key=lambda name: name == RAW, default=None)


def scaled_advice(binarize: float | None, *counts: str | Parameter) -> tuple[str | Parameter, ...]:
    """Return the message about negative values in an AnnData; ``counts`` states how to get counts, if there are any."""
    if not counts and binarize is None:
        counts = ("or ", *binarize_advice(-1))
    start = "its values are scaled (some are negative) and do not show what is present; use counts instead"
    return (f"{start}{', ' if counts else ''}", *counts)


def check_scaled(X: Any, layer: str | None, values: Any, binarize: float | None) -> None:
    """Raise an error for negative values in an AnnData; with a threshold, issue a warning."""
    if not is_anndata(X):
        return
    numbers = values.data if is_sparse(values) else values
    if not (isinstance(numbers, np.ndarray) and numbers.dtype.kind in "if" and (numbers < 0).any()):
        return
    layers = [f"{OBSM}{key}" for key in X.obsm] if is_obsm(X, layer) else _layers(X) if hasattr(X, "layers") else ()
    name = layer_of_counts(layers, layer)
    counts = () if name is None else (f'Table.from_any(adata, layer="{name}", binarize=0)',)
    message = ("the AnnData: ", *scaled_advice(binarize, *counts))
    if binarize is None:
        raise InputError(*message)
    warn(*message)


def arrow_index(table: Any) -> tuple[str, ...]:
    """Return the names of the columns that hold the index of a pandas frame."""
    metadata = (table.schema.metadata or {}).get(b"pandas")
    try:
        listed = json.loads(metadata)["index_columns"] if metadata else ()
    except (ValueError, KeyError, TypeError, RecursionError):
        return ()
    return tuple(name for name in listed if isinstance(name, str) and name in table.column_names)


def _arrow_column(column: Any) -> NDArray[Any]:
    """Return the values of a pyarrow column, with NaN or None for nulls."""
    import pyarrow as pa

    if pa.types.is_boolean(column.type) and column.null_count:
        column = column.cast(pa.uint8())
    return np.asarray(column.to_numpy())


def column_names(X: Any, layer: str | None = None) -> tuple[str, ...] | None:
    """Return the column names of a data frame, pyarrow table or AnnData, None if there are none."""
    if isinstance(X, np.ndarray):
        return None
    if is_anndata(X):
        if layer is None or not is_obsm(X, layer):
            return tuple(map(str, X.var_names))
        values = layer_values(X, layer)
        return tuple(map(str, getattr(values, "columns", numbered(layer.removeprefix(OBSM), values.shape[1]))))
    if not is_frame(X):
        return None
    names = tuple(X.columns if package_name(X) != "pyarrow" else X.drop_columns(list(arrow_index(X))).column_names)
    return names if names and all(isinstance(name, str) for name in names) else None  # as scikit-learn does


def axis_names(X: Any, layer: str | None = None) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """Return the row and column names of a data frame, pyarrow table or AnnData, None where there are none."""
    rows, package = None, package_name(X)
    if is_anndata(X):
        rows = tuple(map(str, X.obs_names))
    elif package == "pandas" and hasattr(X, "columns") and X.index.inferred_type != "integer":
        rows = tuple(map(str, X.index))
    elif package == "pyarrow" and hasattr(X, "column_names") and len(index := arrow_index(X)) == 1:
        rows = tuple(map(str, X.column(index[0]).to_pylist()))
    return rows, column_names(X, layer)


def select_modality(X: Any, modality: str | None) -> Any:
    """Return the AnnData of a modality of a MuData; any other X unchanged."""
    if package_name(X) != "mudata" or not hasattr(X, "mod"):
        if modality is not None:
            raise ValueError(f"modality={modality!r} requires a MuData, got {type(X).__name__}")
        return X
    names = list(X.mod)
    listed = listed_names(names, 20)
    if modality is not None and modality not in names:
        raise ValueError(f"the MuData has no modality {modality!r}; it has {listed}")
    if modality is None and len(names) != 1:
        example = f"; pass one of them, such as mdata[{names[0]!r}]" if names else ""
        raise ValueError(f"the MuData has {len(names)} modalities ({listed}){example}")
    return X.mod[names[0] if modality is None else modality]
