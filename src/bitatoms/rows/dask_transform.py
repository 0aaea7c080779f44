"""Codes, scores and reconstructions of Dask arrays with a model, computed lazily."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ..bits import BitMatrix, stack_rows
from ..device_choice import checked_device, workers_for
from ..errors import InputError
from ..matching import ColumnMatch, match_columns, without_unknown_columns
from ..model.model import Model
from ..parallel import Workers
from ..parameters import DeviceChoice
from ..sparse_bits import Bits
from ..table import Header
from .budget import chunk_rows as default_chunk_rows
from .dask_partitions import InvalidPartition, column_names, in_wide_chunks, pack_partition, shifted
from .store import Store
from .store_transform import scores_of, soft_codes_of


class Sent(NamedTuple):
    """What is sent to the workers: a model, where its columns are in the partitions, and the choice of a device.

    A worker finds its own device: one that was found elsewhere could not be sent.
    """

    model: Model
    match: ColumnMatch
    device: DeviceChoice

    @property
    def workers(self) -> Workers:
        """Who processes the rows of a partition: one thread, as Dask runs several partitions at once."""
        return workers_for(1, self.device)


def transform(
    model: Model,
    X: Any,
    binarize: float | None = None,
    absent: str | None = "auto",
    device: DeviceChoice = "cpu",
) -> Any:
    """Return the codes of a Dask array, as a lazy Dask array.

    Parameters
    ----------
    model : Model
        What an estimator learned, from its ``as_model()``.
    X : dask array of shape (n_samples, n_features), or dask data frame
        The samples; each is coded on its own.
    binarize : float or None, default=None
        Values above this are 1. None requires values of 0 and 1.
    absent : {"auto", "refuse", "zero", "unknown"}, default="auto"
        Columns of the model that a data frame lacks: an error, 0, or unknown cells.
    device : {"cpu", "cuda", "auto"}, default="cpu"
        Where each worker processes its rows, as in `bitatoms.factorize`. The result does not depend on it.

    Returns
    -------
    dask array of shape (n_samples, n_atoms), uint8
        The codes, in the partitions of X.

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
    X, match = _matched_columns(model, X, absent)
    sent, width = Sent(model, match, checked_device(device)), model.atoms.n_rows
    return _by_partition(_codes, X, sent, binarize, dtype=np.uint8, chunks=(X.chunks[0], (width,)))


def array_of(store: Store, chunk_rows: int = 1 << 16) -> Any:
    """Return the rows of a packed store as a lazy Dask array, which the workers read.

    Parameters
    ----------
    store : Store
        The store; all workers must have access to its folder.
    chunk_rows : int, default=65536
        Rows per partition.

    Returns
    -------
    dask array of shape (n_rows, n_features), uint8
        Of float32, with NaN in unknown cells, if the store has such cells.

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
    dtype = np.float32 if store.has_unknown else np.uint8
    partitions = [
        da.from_delayed(delayed(_read_dense)(store, start, stop, dtype), (stop - start, store.n_features), dtype=dtype)
        for start, stop in itertools.pairwise(edges)
    ]
    return da.concatenate(partitions) if partitions else da.zeros(store.shape, dtype=dtype)


def _read_dense(store: Store, start: int, stop: int, dtype: DTypeLike) -> NDArray[Any]:
    return store.take(np.arange(start, stop)).to_dense(dtype)


def score_samples(
    model: Model,
    X: Any,
    binarize: float | None = None,
    absent: str | None = "auto",
    device: DeviceChoice = "cpu",
) -> Any:
    """Return minus the bits of each sample of a Dask array, as a lazy Dask array of shape (n_samples,).

    Parameters
    ----------
    model : Model
        What an estimator learned, from its ``as_model()``.
    X : dask array of shape (n_samples, n_features), or dask data frame
        The samples; each is coded on its own.
    binarize : float or None, default=None
        Values above this are 1. None requires values of 0 and 1.
    absent : {"auto", "refuse", "zero", "unknown"}, default="auto"
        Columns of the model that a data frame lacks: an error, 0, or unknown cells.
    device : {"cpu", "cuda", "auto"}, default="cpu"
        Where each worker processes its rows, as in `bitatoms.factorize`. The result does not depend on it.

    Returns
    -------
    dask array of shape (n_samples,), float64
        The scores; higher is better.
    """
    X, match = _matched_columns(model, X, absent)
    sent = Sent(model, match, checked_device(device))
    return _by_partition(_scores, X, sent, binarize, dtype=np.float64, drop_axis=1, chunks=(X.chunks[0],))


def decision_function(
    model: Model,
    X: Any,
    binarize: float | None = None,
    absent: str | None = "auto",
    device: DeviceChoice = "cpu",
) -> Any:
    """Return the soft codes of a Dask array, the bits that each atom saves in each sample, as a lazy Dask array.

    Parameters
    ----------
    model : Model
        What an estimator learned, from its ``as_model()``.
    X : dask array of shape (n_samples, n_features), or dask data frame
        The samples; each is coded on its own.
    binarize : float or None, default=None
        Values above this are 1. None requires values of 0 and 1.
    absent : {"auto", "refuse", "zero", "unknown"}, default="auto"
        Columns of the model that a data frame lacks: an error, 0, or unknown cells.
    device : {"cpu", "cuda", "auto"}, default="cpu"
        Where each worker processes its rows, as in `bitatoms.factorize`. The result does not depend on it.

    Returns
    -------
    dask array of shape (n_samples, n_atoms), float64
        The soft codes; see `BinaryDictionaryLearning.decision_function`.
    """
    X, match = _matched_columns(model, X, absent)
    sent, width = Sent(model, match, checked_device(device)), model.atoms.n_rows
    return _by_partition(_soft_codes, X, sent, binarize, dtype=np.float64, chunks=(X.chunks[0], (width,)))


def inverse_transform(model: Model, codes: Any) -> Any:
    """Return the samples that codes describe, as a lazy Dask array.

    Parameters
    ----------
    model : Model
        What an estimator learned, from its ``as_model()``.
    codes : dask array of shape (n_samples, n_atoms)
        Codes such as `transform` returns.

    Returns
    -------
    dask array of shape (n_samples, n_features), uint8
        The reconstructed samples.
    """
    codes, (n_atoms, width) = in_wide_chunks(codes), model.atoms.shape
    if codes.shape[1] != n_atoms:
        raise InputError(f"the codes have {codes.shape[1]} columns, but the model has {n_atoms} atoms")
    return _by_partition(_reconstruct, codes, model, None, dtype=np.uint8, chunks=(codes.chunks[0], (width,)))


def _matched_columns(model: Model, X: Any, absent: str | None) -> tuple[Any, ColumnMatch]:
    """Return X as an array of columns that the model was fitted on, and where they are."""
    names = column_names(X)
    if names is not None and model.columns is not None:
        X, names = without_unknown_columns(X, names, model.header, absent, "X")
    X = in_wide_chunks(X.to_dask_array() if hasattr(X, "columns") else X)
    return X, match_columns(model.header, Header(X.shape[1], names), absent, "X")


def _by_partition(function: Any, X: Any, sent: Any, binarize: float | None, dtype: Any, **shape: Any) -> Any:
    """Map a function over the partitions; what is sent, such as the model, is sent to each worker once."""
    from dask.delayed import delayed

    once = delayed(pickle.loads)(pickle.dumps(sent))
    meta = np.empty((0,) * len(shape["chunks"]), dtype)
    return X.map_blocks(function, once, binarize, dtype=dtype, meta=meta, **shape)


def _codes(partition: Any, sent: Sent, binarize: float | None, block_info: Any = None) -> NDArray[np.uint8]:
    """Return the codes of a partition."""
    model, workers = sent.model, sent.workers
    chunks = _matched_chunks(partition, sent.match, binarize, block_info)
    return stack_rows((model.codes(chunk, workers) for chunk in chunks), model.atoms.n_rows).to_dense()


def _scores(partition: Any, sent: Sent, binarize: float | None, block_info: Any = None) -> NDArray[np.float64]:
    """Return minus the bits of each row of a partition."""
    workers = sent.workers
    chunks = _matched_chunks(partition, sent.match, binarize, block_info)
    return np.concatenate([np.empty(0), *(scores_of(sent.model, chunk, workers) for chunk in chunks)])


def _soft_codes(partition: Any, sent: Sent, binarize: float | None, block_info: Any = None) -> NDArray[np.float64]:
    """Return the bits that each atom saves in each row of a partition."""
    workers = sent.workers
    chunks = _matched_chunks(partition, sent.match, binarize, block_info)
    soft = [soft_codes_of(sent.model, chunk, workers) for chunk in chunks]
    return np.concatenate([np.empty((0, sent.model.atoms.n_rows)), *soft])


def _reconstruct(partition: Any, model: Model, binarize: None) -> NDArray[np.uint8]:
    """Return the samples that the codes of a partition describe."""
    codes = BitMatrix.from_any(partition, name="the code matrix")
    return model.possible(model.reconstruct(codes))[0].to_dense()


def _matched_chunks(partition: Any, match: ColumnMatch, binarize: float | None, block_info: Any) -> Iterator[Bits]:
    """Yield the rows of a partition in chunks; errors give the row in the complete table if known."""
    bits = pack_partition(partition, binarize)
    if isinstance(bits, InvalidPartition):
        start = block_info[0]["array-location"][0][0]
        raise bits.error if np.isnan(start) else shifted(bits.error, int(start))
    size = default_chunk_rows(bits.n_cols)
    for start in range(0, len(bits), size):
        yield match.gather(bits[start : start + size])
