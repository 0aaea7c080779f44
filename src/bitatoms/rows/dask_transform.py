"""Partitions of Dask arrays and data frames, packed, and their codes, scores and reconstructions, computed lazily."""

from __future__ import annotations

import inspect
import itertools
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .. import frames
from ..bits import BitMatrix, stack_rows
from ..cell_values import package_name
from ..columns.matching import ColumnMatch, match_columns, without_unknown_columns
from ..columns.table import Header, Names, as_bits
from ..device_choice import checked_device, workers_for
from ..engine.distinct_rows import mixed_words, row_hashes
from ..errors import InputError, InvalidCell, MissingCell
from ..model.model import Model
from ..run_options import DeviceChoice
from ..sparse_bits import Bits
from .budget import chunk_rows as default_chunk_rows
from .source import row_chunks
from .store import Store
from .store_transform import RowFunction, scores_of, soft_codes_of

_HASHED_WORDS = 1 << 16  # hashed together
_PARAMETERS = """\
model : Model
    What an estimator learned, from its ``as_model()``.
X : dask array of shape (n_samples, n_features), or dask data frame
    The samples; each is coded on its own.
binarize : float or None, default=None
    Values above this are 1. None requires values of 0 and 1.
absent : {"auto", "refuse", "zero", "unknown"}, default="auto"
    Columns of the model that a data frame lacks: an error, 0, or unknown cells.
device : {"cpu", "cuda", "auto"}, default="cpu"
    Where each worker processes its rows, as in `bitatoms.factorize`. The result does not depend on it."""

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


def _documented(function: AnyFunction) -> AnyFunction:
    """Put the parameters of the functions of samples into a docstring."""
    function.__doc__ = inspect.cleandoc(function.__doc__ or "").replace("{parameters}", _PARAMETERS)
    return function


@_documented
def transform(
    model: Model, X: Any, binarize: float | None = None, absent: str | None = "auto", device: DeviceChoice = "cpu"
) -> Any:
    """Return the codes of a Dask array, as a lazy Dask array.

    Parameters
    ----------
    {parameters}

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
    >>> codes.shape, codes.chunks[0]
    ((300, 4), (100, 100, 100))
    >>> bool((codes.compute() == model.transform(planted.X)).all())
    True
    """
    return _by_partition(Model.codes, model, X, binarize, absent, device, np.uint8)


@_documented
def score_samples(
    model: Model, X: Any, binarize: float | None = None, absent: str | None = "auto", device: DeviceChoice = "cpu"
) -> Any:
    """Return minus the bits of each sample of a Dask array, as a lazy Dask array of shape (n_samples,).

    With the model of ``scoring_model()`` they are those of `BinaryDictionaryLearning.score_samples`; that of
    ``as_model()`` may lack the regression.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    dask array of shape (n_samples,), float64
        The scores; higher is better.
    """
    return _by_partition(scores_of, model, X, binarize, absent, device, np.float64, per_atom=False)


@_documented
def decision_function(
    model: Model, X: Any, binarize: float | None = None, absent: str | None = "auto", device: DeviceChoice = "cpu"
) -> Any:
    """Return the soft codes of a Dask array, the bits that each atom saves in each sample, as a lazy Dask array.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    dask array of shape (n_samples, n_atoms), float64
        The soft codes; see `BinaryDictionaryLearning.decision_function`.
    """
    return _by_partition(soft_codes_of, model, X, binarize, absent, device, np.float64)


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
    chunks, meta = (codes.chunks[0], (width,)), np.empty((0, 0), np.uint8)
    return codes.map_blocks(_reconstruct, sent(model), dtype=np.uint8, meta=meta, chunks=chunks)


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


class _Task(NamedTuple):
    """A function of the rows of partitions, with all that a worker needs for it.

    A worker finds its own device: one that was found elsewhere could not be sent.
    """

    function: RowFunction[Any]
    model: Model
    match: ColumnMatch  # where its columns are in the partitions
    binarize: float | None
    device: DeviceChoice
    empty: NDArray[Any]  # the result of no rows


def _by_partition(
    function: RowFunction[Any],
    model: Model,
    X: Any,
    binarize: float | None,
    absent: str | None,
    device: DeviceChoice,
    dtype: DTypeLike,
    per_atom: bool = True,
) -> Any:
    """Map a function of rows, with one value per row or per row and atom, over the partitions of X."""
    names = column_names(X)
    if names is not None and model.columns is not None:
        X, names = without_unknown_columns(X, names, model.header, absent, "X")
    X = in_wide_chunks(X.to_dask_array() if hasattr(X, "columns") else X)
    match, width = match_columns(model.header, Header(X.shape[1], names), absent, "X"), model.atoms.n_rows
    empty = np.empty((0, width) if per_atom else 0, dtype)
    task = sent(_Task(function, model, match, binarize, checked_device(device), empty))
    shape = {"chunks": (X.chunks[0], (width,))} if per_atom else {"chunks": (X.chunks[0],), "drop_axis": 1}
    return X.map_blocks(_apply, task, dtype=dtype, meta=empty[:, :0] if per_atom else empty, **shape)


def sent(value: Any) -> Any:
    """Return a value as a task, whose result is sent to each worker once: workers pass it on to each other."""
    from dask.delayed import delayed

    return delayed(pickle.loads)(pickle.dumps(value))


def _apply(partition: Any, task: _Task, block_info: Any = None) -> NDArray[Any]:
    """Return a function of the rows of a partition, one chunk at a time; errors give the row in the complete table."""
    bits = pack_partition(partition, task.binarize)
    if isinstance(bits, InvalidPartition):
        start = block_info[0]["array-location"][0][0]
        raise bits.error if np.isnan(start) else shifted(bits.error, int(start))
    size, workers = default_chunk_rows(bits.n_cols), workers_for(1, task.device)  # Dask runs several partitions at once
    chunks = (task.match.gather(bits[start : start + size]) for start in range(0, len(bits), size))
    results = (task.function(task.model, chunk, workers) for chunk in chunks)
    if task.function is Model.codes:
        return stack_rows(results, task.model.atoms.n_rows).to_dense()
    return np.concatenate([task.empty, *results])


def _reconstruct(partition: Any, model: Model) -> NDArray[np.uint8]:
    """Return the samples that the codes of a partition describe."""
    codes = BitMatrix.from_any(partition, name="the code matrix")
    return model.possible(model.reconstruct(codes))[0].to_dense()


# The partitions.


class InvalidPartition(NamedTuple):
    """A partition that cannot be packed; the error is raised once the number of rows before it is known."""

    n_rows: int
    error: Exception


def partitions(X: Any) -> list[Any]:
    """Return the partitions of a Dask array or data frame as delayed objects."""
    if not (package_name(X) in ("dask", "dask_expr") and hasattr(X, "to_delayed")):
        raise TypeError(
            f"X is of type {type(X).__name__}, not a Dask array or data frame; "
            "pass data in memory to BinaryDictionaryLearning.fit"
        )
    return list(X.to_delayed() if hasattr(X, "columns") else in_wide_chunks(X).to_delayed().ravel())


def in_wide_chunks(X: Any) -> Any:
    """Return a Dask array rechunked so that each row is in one chunk."""
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead: X has shape {X.shape}")
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def column_names(X: Any) -> Names | None:
    """Return the column names of a Dask data frame, if they are all strings."""
    return frames.column_names(X._meta) if hasattr(X, "columns") else None


def pack_partition(partition: Any, binarize: float | None) -> Bits | InvalidPartition:
    """Return the rows of a partition, packed, or sparse if it is wide and sparse; missing values are unknown cells."""
    try:
        return as_bits(partition, binarize, missing="unknown")
    except (ValueError, TypeError) as error:
        return InvalidPartition(partition.shape[0], error)


def shape_or_error(packed: Bits | InvalidPartition) -> tuple[int, int] | InvalidPartition:
    """Return the shape of a packed partition, or the error of an invalid one."""
    return packed if isinstance(packed, InvalidPartition) else packed.shape


def hash_positions(packed: Bits, start: int) -> int:
    """Return the sum, modulo 2**64, of hashes of each row of a partition and its position in the table.

    ``start`` is the index of its first row. The sums of partitions add up to that of the table, whatever the
    partitions, and change if any cell changes or two rows are swapped.
    """
    total = 0
    for rows in row_chunks(packed, max(1, 64 * _HASHED_WORDS // max(1, packed.n_cols))):
        positions = np.arange(start, start + len(rows), dtype=np.uint64)
        total += int(mixed_words(row_hashes(rows) ^ mixed_words(positions)).sum())
        start += len(rows)
    return total % 2**64


def check_partitions(found: list[tuple[int, int] | InvalidPartition]) -> tuple[NDArray[np.int64], int]:
    """Return the number of rows of each partition and the number of features; raise the error of the complete table.

    That is the first missing value, with the number of all of them, or else the first error.
    """
    n_rows = np.array([each[0] for each in found], np.int64)
    starts = np.cumsum(n_rows) - n_rows
    invalid = zip(found, starts.tolist(), strict=True)
    errors = [shifted(each.error, start) for each, start in invalid if isinstance(each, InvalidPartition)]
    missing = [error for error in errors if isinstance(error, MissingCell)]
    if missing:
        raise missing[0].with_cell(count=sum(error.cell.count for error in missing))
    if errors:
        raise errors[0]
    widths = [int(each[1]) for each in found if not isinstance(each, InvalidPartition)]
    if odd := [i for i, width in enumerate(widths) if width != widths[0]]:
        raise InputError(
            f"partition {odd[0]} of X has {widths[odd[0]]} columns, but the first has {widths[0]}; "
            "give all partitions the same columns"
        )
    return n_rows, widths[0]


def shifted(error: Exception, n_rows: int) -> Exception:
    """Return the error of a partition with the row index in the complete table."""
    return error.shifted(n_rows) if isinstance(error, InvalidCell) else error
