"""The partitions of a Dask array or data frame, packed; errors give the row in the complete table."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import dataframes, validation
from ..errors import InputError, InvalidCell, MissingCell
from ..sparse_bits import Bits
from ..table import Names, as_bits
from .memory import row_chunks

_HASHED_WORDS = 1 << 16  # hashed together


class InvalidPartition(NamedTuple):
    """A partition that cannot be packed; the error is raised once the number of rows before it is known."""

    n_rows: int
    error: Exception


def partitions(X: Any) -> list[Any]:
    """Return the partitions of a Dask array or data frame as delayed objects."""
    if not (validation.package_name(X) in ("dask", "dask_expr") and hasattr(X, "to_delayed")):
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
    return dataframes.column_names(X._meta) if hasattr(X, "columns") else None


def pack_partition(partition: Any, binarize: float | None) -> Bits | InvalidPartition:
    """Return the rows of a partition, packed, or sparse if it is wide and sparse; missing values are unknown cells."""
    try:
        return as_bits(partition, binarize, missing="unknown")
    except (ValueError, TypeError) as error:
        return InvalidPartition(partition.shape[0], error)


def shape_or_error(packed: Bits | InvalidPartition) -> tuple[int, int] | InvalidPartition:
    """Return the shape of a packed partition, or the error of an invalid one."""
    return packed if isinstance(packed, InvalidPartition) else packed.shape


def hash_positions(packed: Bits, start: int) -> NDArray[np.uint64]:
    """Return two sums, modulo 2**64, of hashes of each word of a partition and its position in the table.

    ``start`` is the index of its first row. The sums of partitions add up to those of the table, whatever the
    partitions, and change if any cell changes or two rows are swapped. Words without unknown cells add nothing to them,
    so that it does not matter which partitions have such cells.
    """
    width = -(-packed.n_cols // 64)
    total = np.zeros(2, np.uint64)
    for rows in row_chunks(packed, max(1, _HASHED_WORDS // max(1, width))):
        positions = np.arange(start * width, (start + len(rows)) * width, dtype=np.uint64)
        total += _hash_words(rows.words.reshape(-1), positions)
        if rows.unknown is not None:
            unknown = rows.unknown.words.reshape(-1)
            some = unknown != 0
            total += _hash_words(unknown[some], ~positions[some])
        start += len(rows)
    return total


def _hash_words(words: NDArray[np.uint64], positions: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return two sums of hashes of words and their positions."""
    hashes = _mixed(words ^ _mixed(positions))
    return np.array([hashes.sum(), _mixed(hashes).sum()], np.uint64)


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return a hash of each word (the output function of the generator SplitMix64)."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def check_partitions(found: list[tuple[int, int] | InvalidPartition]) -> tuple[NDArray[np.int64], int]:
    """Return the number of rows of each partition and the number of features; raise the error of an invalid one."""
    n_rows = np.array([each.n_rows if isinstance(each, InvalidPartition) else each[0] for each in found], np.int64)
    starts = np.cumsum(n_rows) - n_rows
    errors = [
        shifted(each.error, int(start))
        for each, start in zip(found, starts, strict=True)
        if isinstance(each, InvalidPartition)
    ]
    if errors:
        raise _combined(errors)
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


def _combined(errors: list[Exception]) -> Exception:
    """Return the error of the complete table: the first missing value and their number, or else the first error."""
    missing = [error for error in errors if isinstance(error, MissingCell)]
    return missing[0].with_cell(count=sum(error.cell.count for error in missing)) if missing else errors[0]
