"""The partitions of a Dask array: some of its rows each, packed; what is wrong with one is said of the whole table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..bits import BitMatrix
from ..errors import InvalidCell, MissingCell
from ..table import Names
from .memory import chunk_rows


class Refused(NamedTuple):
    """A partition that is no table of 0 and 1: the error is raised where it is known which rows come before."""

    n_rows: int
    error: Exception


def partitions(X: Any) -> list[Any]:
    """The partitions of a Dask array or data frame, each a task."""
    if not (validation.package_name(X) in ("dask", "dask_expr") and hasattr(X, "to_delayed")):
        raise TypeError(
            f"X is of type {type(X).__name__}, not a Dask array or data frame; "
            "BinaryDictionaryLearning.fit takes what is in memory"
        )
    return list(X.to_delayed() if hasattr(X, "columns") else in_wide_chunks(X).to_delayed().ravel())


def in_wide_chunks(X: Any) -> Any:
    """A Dask array, each of whose rows is in one chunk."""
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead: X has shape {X.shape}")
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def columns_of(X: Any) -> Names | None:
    """The names of the columns of a Dask data frame, where they are all strings."""
    return validation.axis_names(X._meta)[1] if hasattr(X, "columns") else None


def pack(part: Any, binarize: float | None) -> BitMatrix | Refused:
    """The rows of a partition, 64 bits to a word."""
    try:
        return BitMatrix.from_any(part, binarize)
    except (ValueError, TypeError) as error:
        return Refused(part.shape[0], error)


def about(packed: BitMatrix | Refused) -> tuple[int, int] | Refused:
    """The shape of a partition, or what is wrong with it."""
    return packed if isinstance(packed, Refused) else packed.shape


def pieces(data: BitMatrix) -> Iterator[BitMatrix]:
    """So many rows at a time as are worked on together."""
    size = chunk_rows(data.n_cols)
    return (data[start : start + size] for start in range(0, len(data), size))


def sizes(found: list[tuple[int, int] | Refused]) -> tuple[NDArray[np.int64], int]:
    """The rows of each partition, and the features; an error where a partition is refused or not as wide as others."""
    n_rows = np.array([each.n_rows if isinstance(each, Refused) else each[0] for each in found], np.int64)
    before = np.cumsum(n_rows) - n_rows
    refused = [shifted(each.error, int(before[i])) for i, each in enumerate(found) if isinstance(each, Refused)]
    if refused:
        raise _of_all(refused)
    widths = [int(each[1]) for each in found if not isinstance(each, Refused)]
    if odd := [i for i, width in enumerate(widths) if width != widths[0]]:
        raise ValueError(
            f"partition {odd[0]} of X has {widths[odd[0]]} columns, but the first has {widths[0]}; "
            "give all partitions the same columns"
        )
    return n_rows, widths[0]


def shifted(error: Exception, n_rows: int) -> Exception:
    """Return what is wrong with a partition, by the index that its row has in the whole table."""
    return error.shifted(n_rows) if isinstance(error, InvalidCell) else error


def _of_all(errors: list[Exception]) -> Exception:
    """Return what is wrong with the whole table: the first missing value and how many there are, or the first error."""
    missing = [error for error in errors if isinstance(error, MissingCell)]
    return missing[0].with_cell(count=sum(error.cell.count for error in missing)) if missing else errors[0]
