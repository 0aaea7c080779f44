"""Samples of a Dask array, coded with a model when they are asked for."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..core.model import Model
from ..parallel import Workers
from ..table import check_columns
from .dask_partitions import Refused, columns_of, in_wide_chunks, pack, pieces, shifted
from .memory import joined
from .store import Store


def transform(model: Model, X: Any, binarize: float | None = None) -> Any:
    """The atoms that each sample of a Dask array uses, as a Dask array; nothing is computed yet.

    Parameters
    ----------
    model : Model
        What was learned (``as_model()`` of an estimator).
    X : dask array of shape (n_samples, n_features), or dask data frame
    binarize : float or None, default=None
        As in the search.

    Returns
    -------
    dask array of shape (n_samples, n_atoms), uint8
        In the partitions of X, each sample coded afresh.

    Examples
    --------
    >>> import dask.array
    >>> import bitatoms as ba
    >>> from bitatoms.dask import transform
    >>> planted = ba.datasets.planted(300, 40, 4, code_density=0.4, noise=0.02, random_state=0)
    >>> model = ba.BinaryDictionaryLearning(random_state=0).fit(planted.X)
    >>> codes = transform(model.as_model(), dask.array.from_array(planted.X, chunks=(100, 40)))
    >>> codes
    dask.array<_codes, shape=(300, 4), dtype=uint8, chunksize=(100, 4), chunktype=numpy.ndarray>
    >>> bool((codes.compute() == model.transform(planted.X)).all())
    True
    """
    X = _known_columns(model, X)
    width = model.atoms.n_rows
    return _by_partition(_codes, X, model, binarize, dtype=np.uint8, chunks=(X.chunks[0], (width,)))


def array_of(store: Store, chunk_rows: int = 1 << 16) -> Any:
    """The rows of a packed store as a Dask array, read by the workers when they are asked for; the folder must be there
    for all of them.

    Parameters
    ----------
    store : Store
    chunk_rows : int, default=65536
        Rows of a partition.

    Returns
    -------
    dask array of shape (n_rows, n_features), uint8

    Examples
    --------
    >>> import bitatoms as ba
    >>> from bitatoms.dask import array_of
    >>> store = ba.pack(ba.datasets.planted(300, 40, 4, random_state=0).X, "rows.zarr")
    >>> array_of(store, chunk_rows=128).chunks
    ((128, 128, 44), (40,))
    """
    import dask.array as da
    from dask.delayed import delayed

    edges = [*range(0, len(store), chunk_rows), len(store)]
    parts = [
        da.from_delayed(delayed(_dense)(store, start, stop), (stop - start, store.n_features), dtype=np.uint8)
        for start, stop in itertools.pairwise(edges)
    ]
    return da.concatenate(parts) if parts else da.zeros(store.shape, dtype=np.uint8)


def _dense(store: Store, start: int, stop: int) -> NDArray[np.uint8]:
    return store.take(np.arange(start, stop)).to_dense()


def score_samples(model: Model, X: Any, binarize: float | None = None) -> Any:
    """Minus the bits that each sample of a Dask array takes, of shape (n_samples,); nothing is computed yet."""
    X = _known_columns(model, X)
    return _by_partition(_scores, X, model, binarize, dtype=np.float64, drop_axis=1, chunks=(X.chunks[0],))


def inverse_transform(model: Model, codes: Any) -> Any:
    """The samples that codes stand for, a Dask array of shape (n_samples, n_atoms); nothing is computed yet."""
    codes, (n_atoms, width) = in_wide_chunks(codes), model.atoms.shape
    if codes.shape[1] != n_atoms:
        raise ValueError(f"the codes have {codes.shape[1]} columns, but the model has {n_atoms} atoms")
    return _by_partition(_samples, codes, model, None, dtype=np.uint8, chunks=(codes.chunks[0], (width,)))


def _known_columns(model: Model, X: Any) -> Any:
    """X as an array, made sure that its columns are those that were learned from."""
    names, width = columns_of(X), model.atoms.n_cols
    if names is not None and model.columns is not None:
        check_columns(model.columns, names)
    X = in_wide_chunks(X.to_dask_array() if hasattr(X, "columns") else X)
    if X.shape[1] != width:
        raise ValueError(f"X has {X.shape[1]} features, but the model was learned from {width}")
    return X


def _by_partition(function: Any, X: Any, model: Model, binarize: float | None, dtype: Any, **shape: Any) -> Any:
    """A function of each partition and the model, which each worker gets once."""
    from dask.delayed import delayed

    sent = delayed(pickle.loads)(pickle.dumps(model))
    meta = np.empty((0,) * len(shape["chunks"]), dtype)
    return X.map_blocks(function, sent, binarize, dtype=dtype, meta=meta, **shape)


def _codes(part: Any, model: Model, binarize: float | None, block_info: Any = None) -> NDArray[np.uint8]:
    """The codes of a partition."""
    data = _packed(part, binarize, block_info)
    codes = [model.code(some, Workers(1)).factors()[1] for some in pieces(data)]
    return joined(codes, model.atoms.n_rows).to_dense()


def _scores(part: Any, model: Model, binarize: float | None, block_info: Any = None) -> NDArray[np.float64]:
    """Minus the bits that each row of a partition takes."""
    scores = [np.empty(0)]
    for some in pieces(_packed(part, binarize, block_info)):
        block = model.code(some, Workers(1))
        scores.append(-model.row_bits(block.errors(), block.factors()[1]))
    return np.concatenate(scores)


def _samples(part: Any, model: Model, binarize: None) -> NDArray[np.uint8]:
    """The samples that the codes of a partition stand for."""
    return model.reconstruct(BitMatrix.from_any(part, name="the code matrix")).to_dense()


def _packed(part: Any, binarize: float | None, block_info: Any) -> BitMatrix:
    """The rows of a partition; one that is refused has its number in the whole table, where that is known."""
    packed = pack(part, binarize)
    if not isinstance(packed, Refused):
        return packed
    before = block_info[0]["array-location"][0][0]
    raise packed.error if np.isnan(before) else shifted(packed.error, int(before))
