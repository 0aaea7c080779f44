"""The cells of tables that users pass: which of their values are ones, missing or invalid."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from .errors import Cell, InvalidCell, InvalidCellType, MissingCell, Parameter

_COMPLEX = "Complex data not supported: {name} contains complex numbers; take their real part or magnitude"


def binarize_advice(value: float) -> tuple[str | Parameter, ...]:
    """Return how to read a table that contains this value, which is neither 0 nor 1, as a part of a message."""
    is_count = value > 1 and float(value).is_integer()
    start, end = ("for counts, pass ", "") if is_count else ("pass ", ", or another threshold")
    return start, Parameter("binarize", 0), f" to read values above 0 as 1{end}"


def is_sparse(X: Any) -> bool:
    """Return whether X is a SciPy sparse matrix or array."""
    # If scipy.sparse has not been imported, X cannot be sparse.
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and not isinstance(X, np.ndarray) and bool(sparse.issparse(X))


def package_name(X: Any) -> str:
    """Return the name of the top-level package that defines the type of X, without importing it."""
    return type(X).__module__.partition(".")[0]


def missing_cells(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return where the values are missing: NaN, None or NA."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind == "O":
        return np.array([is_missing(value) for value in values.ravel().tolist()], bool).reshape(values.shape)
    return np.zeros(values.shape, bool)


def is_missing(value: Any) -> bool:
    """Return whether the value is None, NA or NaN."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and value != value


def dense_table(X: Any, name: str) -> NDArray[Any]:
    """Return an array, a data frame or lists as a 2-D array of numbers or objects, which may be masked."""
    try:
        table = X if isinstance(X, np.ma.MaskedArray) else np.asarray(_numeric_frame(X))
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"{name} is not a table: {error}") from error
    if table.dtype.kind == "c":
        raise ValueError(_COMPLEX.format(name=name))
    if table.dtype.kind not in "biufO":
        raise ValueError(f"{name} must contain numbers, but its dtype is {table.dtype}; convert it to 0 and 1 first")
    if table.ndim == 0:
        raise ValueError(f"Expected 2D array, got scalar array instead: {name} is of type {type(X).__name__}")
    if table.ndim == 1:
        raise ValueError(
            f"Expected 2D array, got 1D array instead: {name} has shape {table.shape}. Reshape your data "
            "either using array.reshape(-1, 1) if your data has a single feature "
            "or array.reshape(1, -1) if it contains a single sample."
        )
    if table.ndim > 2:
        raise ValueError(f"Expected 2D array, got {table.ndim}D array instead: {name} has shape {table.shape}")
    return table


def _numeric_frame(X: Any) -> Any:
    """Return a pandas frame of booleans and numbers as numbers; NumPy would convert it to objects."""
    if isinstance(X, np.ndarray) or package_name(X) != "pandas" or not hasattr(X, "columns"):
        return X
    kinds = set(X.dtypes)
    if (
        len(kinds) == 1
        or np.dtype(bool) not in kinds
        or not all(isinstance(kind, np.dtype) and kind.kind in "biuf" for kind in kinds)
    ):
        return X
    return X.to_numpy(dtype=np.result_type(np.uint8, *(kind for kind in kinds if kind.kind != "b")))


def check_not_masked(X: np.ma.MaskedArray, name: str, missing: str) -> None:
    """Raise for the first masked value of a masked array, if missing values are refused."""
    if missing == "refuse" and np.ma.is_masked(X):
        row, column = np.argwhere(np.ma.getmaskarray(X))[0]
        cell = Cell(int(row), int(column), "a missing value (masked)", int(np.ma.count_masked(X)))
        raise MissingCell(name, cell)


def sparse_table(S: Any, name: str) -> tuple[NDArray[Any], NDArray[np.integer], NDArray[np.integer]]:
    """Return data, indices and indptr of S in CSR format without duplicates; S is not modified."""
    if S.dtype.kind == "c":
        raise ValueError(_COMPLEX.format(name=name))
    csr = as_csr(S, name)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    count = int(csr.indptr[-1])
    return csr.data[:count], csr.indices[:count], csr.indptr


class SparseOnes(NamedTuple):
    """The ones of a sparse matrix, in CSR format, each once, in increasing order in each row."""

    indptr: NDArray[np.integer]
    indices: NDArray[np.integer]
    background: bool  # what entries are that are not stored; if they are ones, these are the zeros
    lacking: tuple[NDArray[np.integer], NDArray[np.integer]] | None  # indptr and indices of unknown cells


def sparse_ones(S: Any, threshold: float | None, name: str, missing: str) -> SparseOnes:
    """Return the ones of a SciPy sparse matrix; raise as `raise_invalid` does for values that are not valid."""
    values, indices, indptr = sparse_table(S, name)
    unknown = None
    if missing != "refuse" and (lacking := missing_cells(values)).any():
        values = np.where(lacking, values.dtype.type(0), values)
        unknown = _selected(indptr, indices, lacking) if missing == "unknown" else None
    ones = binarized(values, threshold)
    if ones is None:
        rows = np.repeat(np.arange(S.shape[0]), np.diff(indptr))
        cell_at = lambda index: (int(rows[index]), int(indices[index]))  # noqa: E731
        raise_invalid([values], cell_at, threshold, name, missing)
    background = threshold is not None and threshold < 0
    return SparseOnes(*_selected(indptr, indices, ones != background), background, unknown)


def _selected(
    indptr: NDArray[np.integer], indices: NDArray[np.integer], kept: NDArray[np.bool_]
) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    """Return the arrays of a CSR matrix with some of its entries."""
    return (indptr, indices) if kept.all() else (np.concatenate(([0], np.cumsum(kept)))[indptr], indices[kept])


def as_csr(S: Any, name: str) -> Any:
    """Return a 2-D sparse matrix in CSR format; raise ValueError if its arrays are inconsistent.

    SciPy does not check arrays that were modified, and its conversions read and write out of bounds where they are
    inconsistent. They are therefore checked before.
    """
    if S.format == "lil":
        lengths = ([len(line) for line in lines] for lines in (S.rows, S.data))
        _require(len(S.rows) == S.shape[0] and len(set(map(tuple, lengths))) == 1, name, "its lists differ in length")
    elif S.format == "dia":
        consistent = S.data.ndim == 2 and S.offsets.shape == S.data.shape[:1]
        _require(consistent, name, "its offsets do not match its diagonals")
    elif S.format == "coo":
        _require(S.data.ndim == 1, name, "its values are not a 1-D array")
        for indices, length, axis in zip(S.coords, S.shape, ("row", "column"), strict=True):
            _require(indices.shape == S.data.shape, name, f"its {axis} indices do not match its values")
            _check_indices(indices, length, name, axis)
    if S.format not in ("csr", "csc", "bsr"):
        try:
            S = S.tocsr()
        except (ValueError, OverflowError) as error:  # SciPy checks the indices of DOK matrices
            raise ValueError(f"{name} is not a valid sparse matrix: {error}") from error
    _check_compressed(S, name)
    return S.tocsr()


def _check_compressed(S: Any, name: str) -> None:
    """Raise unless the arrays of a CSR, CSC or BSR matrix are consistent."""
    _require(S.data.ndim == (3 if S.format == "bsr" else 1), name, "its values do not match its shape")
    tall, wide = S.data.shape[1:] or (1, 1)
    divides = min(tall, wide) > 0 and S.shape[0] % tall == 0 and S.shape[1] % wide == 0
    _require(divides, name, "its values do not match its shape")
    axes = [(S.shape[0] // tall, "row"), (S.shape[1] // wide, "column")]
    (n_lines, line), (length, axis) = axes[::-1] if S.format == "csc" else axes
    starts = S.indptr
    stored = min(len(S.indices), len(S.data))
    _require(
        starts.shape == (n_lines + 1,)
        and S.indices.ndim == 1
        and starts[0] == 0
        and not (starts[1:] < starts[:-1]).any()
        and starts[-1] <= stored,
        name,
        f"its {line} pointers do not match its shape or its values",
    )
    _check_indices(S.indices[: starts[-1]], length, name, axis)


def _check_indices(indices: NDArray[np.integer], length: int, name: str, axis: str) -> None:
    """Raise unless all indices are integers from 0 to length - 1."""
    _require(indices.dtype.kind in "iu", name, f"its {axis} indices are not integers")
    within = not indices.size or (indices.min() >= 0 and indices.max() < length)
    _require(within, name, f"it has a {axis} index outside 0..{length - 1}")


def _require(condition: Any, name: str, problem: str) -> None:
    """Raise ValueError about an inconsistent sparse matrix unless the condition holds."""
    if not condition:
        raise ValueError(f"{name} is not a valid sparse matrix: {problem}")


def binarized(values: NDArray[Any], threshold: float | None) -> NDArray[np.bool_] | NDArray[np.uint8] | None:
    """Return where the values are one, or above the threshold; None if one of them is invalid."""
    kind = values.dtype.kind
    if kind == "O":
        numbers = _numbers(values)
        return None if numbers is None else binarized(numbers, threshold)
    if kind == "f":
        if threshold is not None:
            with np.errstate(over="ignore"):  # a threshold too large for float32 exceeds all values
                return values > threshold if np.isfinite(values).all() else None
        is_one = values == 1
        return is_one if (is_one | (values == 0)).all() else None
    if kind == "b":
        return values if threshold is None else binarized(values.view(np.uint8), threshold)
    if threshold is not None:
        return values > math.floor(threshold)  # equivalent for integers, and exact for large ones
    unsigned = values.view(f"{values.dtype.byteorder}u{values.dtype.itemsize}")  # negative values become large
    if unsigned.size and unsigned.max() > 1:
        return None
    return unsigned if unsigned.itemsize == 1 else unsigned == 1


def raise_invalid(
    chunks: Iterable[NDArray[Any]],
    locate: Callable[[int], tuple[int, int]],
    threshold: float | None,
    name: str,
    missing_values: str = "refuse",
) -> NoReturn:
    """Raise for the first value that cannot become a bit; ``locate`` turns its flat index into a row and a column."""
    missing: Cell | None = None
    other: Cell | None = None
    advice: tuple[str | Parameter, ...] = ()
    n_missing = start = 0
    for chunk in chunks:
        numbers = chunk
        if chunk.dtype.kind == "O":
            numbers = np.array([_number(value, start + i, locate, name) for i, value in enumerate(chunk)])
        finite = np.isfinite(numbers) if missing_values == "refuse" else ~np.isinf(numbers)
        n_missing += int(np.count_nonzero(~finite))
        if missing is None and not finite.all():
            i = int(np.argmin(finite))
            shown = str(chunk[i]).replace("nan", "NaN").replace("<NA>", "NA")
            kind = "an infinite" if np.isinf(numbers[i]) else "a missing"
            missing = Cell(*locate(start + i), f"{kind} value ({shown})")
        not_binary = (numbers != 0) & (numbers != 1) & np.isfinite(numbers)
        if other is None and not_binary.any():
            i = int(np.argmax(not_binary))
            other = Cell(*locate(start + i), str(numbers[i]).removesuffix(".0"))
            advice = binarize_advice(float(numbers[i]))
        start += chunk.size
    if missing is not None:
        raise MissingCell(name, replace(missing, count=n_missing))
    assert other is not None
    hint = advice if name == "X" else ("convert it to 0 and 1 first",)
    if name == "X" and other.problem == "2":
        hint += ("; for numbers of copies of an allele (0, 1 and 2), pass Table.from_any(X, dosage=True)",)
    raise InvalidCell(name, other, "contains values other than 0 and 1 (first: {problem} {where})", *hint)


def _numbers(values: NDArray[Any]) -> NDArray[np.float64] | None:
    """Return objects as floats, or None if one of them is not a number."""
    kinds = set(map(type, values.ravel().tolist()))
    if any(issubclass(kind, (str, bytes, np.complexfloating)) for kind in kinds):  # astype would convert these
        return None
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def _number(value: Any, index: int, locate: Callable[[int], tuple[int, int]], name: str) -> float:
    """Return an object as a float, NaN for a missing value."""
    if is_missing(value):
        return math.nan
    if isinstance(value, (complex, np.complexfloating)):
        raise ValueError(_COMPLEX.format(name=name))
    if isinstance(value, (str, bytes)):
        cell = Cell(*locate(index), f"text ({value!r})")
        hint = "convert it to numbers first; bitatoms.encode(X) encodes categories"
        raise InvalidCell(name, cell, "contains {problem} {where}", hint)
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        cell = Cell(*locate(index), f"something that is not a number ({error})")
        raise InvalidCellType(name, cell, "contains {problem} {where}", "convert it to 0 and 1 first") from error
