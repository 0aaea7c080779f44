"""BitMatrix: a matrix of packed bits, and its conversions to dense, sparse and byte formats and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from . import frames
from .cell_values import (
    binarized,
    check_not_masked,
    is_sparse,
    missing_cells,
    raise_invalid,
    sparse_ones,
)
from .errors import Cell, MissingCell
from .formatting import be, counted
from .kernels.cpu import packing
from .kernels.structs import PLANES
from .validation import check_threshold

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_CHUNK_VALUES = 1 << 18  # values converted at a time, so that intermediate arrays stay in the cache
_ROWS_AT_ONCE = 1 << 16  # whose sparse indices are converted at a time


class Matrix:
    """What packed and sparse matrices of bits have in common."""

    __slots__ = ()

    if TYPE_CHECKING:
        n_cols: int

        @property
        def n_unknown(self) -> int: ...
        def __len__(self) -> int: ...
        def count(self) -> int: ...
        def to_dense(self, dtype: DTypeLike = np.uint8) -> NDArray[Any]: ...

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and number of columns."""
        return len(self), self.n_cols

    @property
    def ndim(self) -> int:
        """Number of axes: two."""
        return 2

    @property
    def size(self) -> int:
        """Number of cells."""
        return len(self) * self.n_cols

    @property
    def density(self) -> float:
        """Fraction of ones among the known cells; 0 if there are none."""
        return self.count() / max(self.size - self.n_unknown, 1)

    def __hash__(self) -> int:
        return hash((self.shape, self.count()))  # the same for packed and for sparse bits

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError(f"the bits of a {type(self).__name__} cannot be returned as an array without a copy")
        if dtype is None:
            dtype = np.float64 if self.n_unknown else np.uint8
        return self.to_dense(dtype)

    def __repr__(self) -> str:
        unknown = f", {counted(self.n_unknown, 'cell')} unknown" if self.n_unknown else ""
        return f"{type(self).__name__}({len(self)} x {self.n_cols}, density {self.density:.3g}{unknown})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BitMatrix(Matrix):
    """Rows of bits, 64 to a word; every bit past ``n_cols`` is zero, and so is every cell whose value is unknown.

    Bit ``j`` of a row is bit ``j % 64``, counted from the lowest, of its word ``j // 64``. A BitMatrix is immutable
    and hashable: its words are read-only.

    Parameters
    ----------
    words : ndarray of shape (n_rows, ceil(n_cols / 64)), uint64, C-contiguous
        The packed rows. The array is kept without a copy and becomes read-only.
    n_cols : int
        Number of bits per row.
    unknown : BitMatrix of the same shape or None, default=None
        The cells whose value is unknown; None if all are known. `with_unknown` sets them.

    See Also
    --------
    BitMatrix.from_any : Pack an array, a data frame, lists or a sparse matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from bitatoms import BitMatrix
    >>> bits = BitMatrix.from_dense([[1, 0, 1], [0, 0, 1]])
    >>> bits
    BitMatrix(2 x 3, density 0.5)
    >>> bits.column_weights()
    array([1, 0, 2])
    >>> bits.T.to_dense()
    array([[1, 0],
           [0, 0],
           [1, 1]], dtype=uint8)
    """

    words: NDArray[np.uint64]
    n_cols: int
    unknown: BitMatrix | None = None

    def __post_init__(self) -> None:
        words = self.words
        if not isinstance(words, np.ndarray) or words.dtype != np.uint64 or words.ndim != 2:
            raise TypeError("words must be a 2-D array of uint64; BitMatrix.from_any packs any table of 0 and 1")
        object.__setattr__(self, "n_cols", _size(self.n_cols, "n_cols"))
        if words.shape[1] != _words_for(self.n_cols):
            raise ValueError(
                f"{self.n_cols} columns take {_words_for(self.n_cols)} words per row, not {words.shape[1]}"
            )
        if not words.flags.c_contiguous:
            raise ValueError("words must be C-contiguous")
        if self.n_cols % 64 and (words[:, -1] >> np.uint64(self.n_cols % 64)).any():
            raise ValueError(f"words hold ones past column {self.n_cols}")
        words.flags.writeable = False
        if self.unknown is not None:
            if self.unknown.shape != self.shape or self.unknown.unknown is not None:
                raise ValueError(f"unknown must be a BitMatrix of {self.n_rows} x {self.n_cols} known bits")
            if (words & self.unknown.words).any():
                raise ValueError("words hold ones in unknown cells; with_unknown clears them")

    @classmethod
    def from_words(
        cls, words: NDArray[np.uint64], n_cols: int, check: bool = True, unknown: BitMatrix | None = None
    ) -> BitMatrix:
        """Wrap words that are already packed.

        Parameters
        ----------
        words : ndarray of shape (n_rows, ceil(n_cols / 64)), uint64, C-contiguous
            The packed rows, with zeros past ``n_cols``. The array is kept without a copy and becomes read-only.
        n_cols : int
            Number of bits per row.
        check : bool, default=True
            Whether to check the words. Pass False only for words that the calling code has just computed.
        unknown : BitMatrix or None, default=None
            The cells whose value is unknown; the words have zeros there.

        Returns
        -------
        BitMatrix

        Examples
        --------
        >>> import numpy as np
        >>> from bitatoms import BitMatrix
        >>> BitMatrix.from_words(np.array([[5]], np.uint64), 3).to_dense()
        array([[1, 0, 1]], dtype=uint8)
        """
        if check:
            return cls(words, n_cols, unknown)
        bits = object.__new__(cls)
        words.flags.writeable = False
        object.__setattr__(bits, "words", words)
        object.__setattr__(bits, "n_cols", n_cols)
        object.__setattr__(bits, "unknown", unknown)
        return bits

    @classmethod
    def zeros(cls, n_rows: int, n_cols: int) -> BitMatrix:
        """Return a matrix of zeros of this shape."""
        n_rows, n_cols = _size(n_rows, "n_rows"), _size(n_cols, "n_cols")
        return cls.from_words(_filled(n_rows, n_cols, one=False), n_cols, check=False)

    @classmethod
    def from_any(cls, X: Any, binarize: float | None = None, name: str = "X", missing: str = "refuse") -> BitMatrix:
        """Pack a table of 0 and 1 of any supported type.

        Parameters
        ----------
        X : BitMatrix, Table, SciPy sparse matrix or array, or array-like of shape (n_rows, n_cols)
            The table. A BitMatrix is returned unchanged. Arrays and sparse matrices of CuPy, and tensors with DLPack's
            interface, are copied from their device.
        binarize : float or None, default=None
            Threshold: a bit is one where X is greater. With None, X must contain only 0 and 1.
        name : str, default="X"
            Name of the table in error messages.
        missing : {"refuse", "zero", "unknown"}, default="refuse"
            What missing values (NaN, None, NA, masked) become: an error, zeros, or unknown cells.

        Returns
        -------
        BitMatrix of shape (n_rows, n_cols)

        Raises
        ------
        ValueError
            If X is not a 2-D table of numbers, or contains missing, infinite or (without ``binarize``) non-binary
            values.

        Examples
        --------
        >>> from bitatoms import BitMatrix
        >>> BitMatrix.from_any([[0.2, 0.9], [0.7, 0.1]], binarize=0.5).to_dense()
        array([[0, 1],
               [1, 0]], dtype=uint8)
        """
        threshold = check_threshold(binarize)
        bits = X if isinstance(X, (BitMatrix, np.ndarray)) else getattr(X, "bits", None)  # a Table or SparseBits has
        if isinstance(bits, BitMatrix):
            return _thresholded(bits, threshold, name, missing)
        return pack_values(frames.values_of(X, name), threshold, name, missing)

    @classmethod
    def from_dense(
        cls, X: ArrayLike, binarize: float | None = None, name: str = "X", missing: str = "refuse"
    ) -> BitMatrix:
        """Pack a dense table.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_cols)
            Booleans, integers or floats, or objects that are such numbers.
        binarize, name, missing
            As in `from_any`.

        Returns
        -------
        BitMatrix of shape (n_rows, n_cols)

        Examples
        --------
        >>> from bitatoms import BitMatrix
        >>> BitMatrix.from_dense([[True, False], [True, True]]).row_weights()
        array([1, 2])
        """
        if is_sparse(X):
            raise TypeError(f"{name} is sparse; use BitMatrix.from_sparse or BitMatrix.from_any")
        return cls.from_any(X, binarize, name, missing)

    @classmethod
    def from_sparse(cls, S: Any, binarize: float | None = None, name: str = "X", missing: str = "refuse") -> BitMatrix:
        """Pack a SciPy sparse matrix or array of any format, without converting it to a dense array.

        Parameters
        ----------
        S : SciPy sparse matrix or array of shape (n_rows, n_cols)
            The matrix. Duplicate entries are summed, as in SciPy. It is not modified.
        binarize, name, missing
            As in `from_any`. Entries that are not stored are zeros, which a negative threshold turns into ones.

        Returns
        -------
        BitMatrix of shape (n_rows, n_cols)

        Examples
        --------
        >>> from scipy.sparse import coo_array
        >>> from bitatoms import BitMatrix
        >>> BitMatrix.from_sparse(coo_array(([1, 1], ([0, 1], [2, 0])), shape=(2, 3))).to_dense()
        array([[0, 0, 1],
               [1, 0, 0]], dtype=uint8)
        """
        S = frames.on_host(S, name)
        if not is_sparse(S):
            raise TypeError(f"{name} must be a SciPy sparse matrix or array, got {type(S).__name__}")
        return cls.from_any(S, binarize, name, missing)

    @classmethod
    def from_csr(
        cls, indptr: NDArray[np.integer], indices: NDArray[np.integer], n_cols: int, background: bool = False
    ) -> BitMatrix:
        """Return a matrix of the background with other bits at these columns of each row.

        The arrays, of a sparse matrix in CSR format whose columns occur once per row, are not checked: pass only what
        the calling code has checked or computed.
        """
        words = _filled(len(indptr) - 1, n_cols, one=background)
        flip_sparse(indptr, indices, words)
        return cls.from_words(words, n_cols, check=False)

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview, n_rows: int, n_cols: int) -> BitMatrix:
        """Return the matrix that `to_bytes` wrote.

        Parameters
        ----------
        data : bytes-like
            ceil(n_cols / 8) bytes per row; bit ``j`` is bit ``j % 8``, counted from the lowest, of byte ``j // 8``.
        n_rows, n_cols : int
            The shape.

        Returns
        -------
        BitMatrix of shape (n_rows, n_cols)

        Examples
        --------
        >>> from bitatoms import BitMatrix
        >>> BitMatrix.from_bytes(bytes([5, 2]), 2, 3).to_dense()
        array([[1, 0, 1],
               [0, 1, 0]], dtype=uint8)
        """
        n_rows, n_cols = _size(n_rows, "n_rows"), _size(n_cols, "n_cols")
        raw = np.frombuffer(data, np.uint8)
        width = -(-n_cols // 8)
        if raw.size != n_rows * width:
            raise ValueError(
                f"{n_rows} rows of {n_cols} bits take {n_rows} x {width} = {n_rows * width} bytes, got {raw.size}"
            )
        rows = raw.reshape(n_rows, width)
        if n_cols % 8:
            stray = np.flatnonzero(rows[:, -1] >> (n_cols % 8))
            if stray.size:
                count = f"{stray.size} rows in total"
                raise ValueError(f"the bits past column {n_cols} must be zero; row {stray[0]} has ones there ({count})")
        words = _words(rows, n_cols)
        return cls.from_words(words.copy() if np.shares_memory(words, raw) else words, n_cols, check=False)

    def to_bytes(self) -> bytes:
        """Return the rows as bytes.

        Returns
        -------
        bytes
            ceil(n_cols / 8) bytes per row, the first column in the lowest bit. Unknown cells raise an error: `filled`
            and ``unknown`` are two matrices without such cells.
        """
        if self.n_unknown:
            raise ValueError(f"{self.n_unknown} cells are unknown, which bytes cannot hold; call filled() first")
        return self._bytes().tobytes()

    def to_dense(self, dtype: DTypeLike = np.uint8) -> NDArray[Any]:
        """Return the bits as an array of 0 and 1.

        Parameters
        ----------
        dtype : data-type, default=numpy.uint8
            Data type of the array. Unknown cells become NaN, which needs a floating-point type or objects;
            ``numpy.asarray`` chooses float64 if there are any, and uint8 otherwise.

        Returns
        -------
        ndarray of shape (n_rows, n_cols)
        """
        dense = np.unpackbits(self._bytes(), axis=1, count=self.n_cols, bitorder="little")
        if self.n_unknown:
            if np.dtype(dtype).kind not in "fO":
                raise ValueError(
                    f"{counted(self.n_unknown, 'cell')} {be(self.n_unknown)} unknown; pass dtype=float to get "
                    "NaN there, or call filled() first to get 0"
                )
            return np.where(self.unknown.to_dense(bool), np.nan, dense).astype(dtype)  # type: ignore[union-attr]
        return dense.view(np.bool_) if np.dtype(dtype) == np.bool_ else dense.astype(dtype, copy=False)

    def to_sparse(self) -> csr_array:
        """Return the bits as a SciPy csr_array, of dtype uint8; of float64 if cells are unknown (NaN)."""
        from scipy.sparse import csr_array

        if self.unknown is not None and self.n_unknown:
            return csr_array(self.filled().to_sparse() + self.unknown.to_sparse() * np.nan)
        indptr = np.concatenate(([0], np.cumsum(self.row_weights())))
        count = int(indptr[-1])
        kind = np.int32 if max(count, self.n_cols) <= np.iinfo(np.int32).max else np.int64
        indices = np.empty(count, kind)
        packing.list_columns(self.words, indices)
        return csr_array((np.ones(count, np.uint8), indices, indptr.astype(kind)), shape=self.shape)

    @property
    def T(self) -> BitMatrix:
        """The transposed matrix."""
        return self.transpose()

    def transpose(self) -> BitMatrix:
        """Return the transposed matrix, of shape (n_cols, n_rows)."""
        out = np.empty((self.n_cols, _words_for(self.n_rows)), np.uint64)
        packing.transpose(self.words, self.n_rows, self.n_cols, np.empty(64, np.uint64), out)
        return BitMatrix.from_words(out, self.n_rows, False, self._mapped_unknown(BitMatrix.transpose))

    def take_columns(self, columns: ArrayLike, absent: str = "zero") -> BitMatrix:
        """Return the columns with these indices, in this order; -1 stands for a column that is absent.

        Parameters
        ----------
        columns : array-like of int
            Indices of columns, which may repeat, or -1.
        absent : {"zero", "unknown"}, default="zero"
            What the cells of an absent column are.

        Returns
        -------
        BitMatrix of shape (n_rows, len(columns))

        Examples
        --------
        >>> from bitatoms import BitMatrix
        >>> BitMatrix.from_dense([[1, 0, 1], [0, 1, 1]]).take_columns([2, -1, 0]).to_dense()
        array([[1, 0, 1],
               [1, 0, 0]], dtype=uint8)
        """
        given = np.asarray(columns)
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise TypeError("columns must be a 1-D sequence of integers")
        indices = given.astype(np.int64)
        if indices.size and not -1 <= indices.min() <= indices.max() < self.n_cols:
            wrong = indices.min() if indices.min() < -1 else indices.max()
            raise IndexError(f"column {wrong} is out of range for a BitMatrix of {self.n_cols} columns")
        out = np.empty((self.n_rows, _words_for(indices.size)), np.uint64)
        packing.take_columns(self.words, indices, out)
        unknown = self._mapped_unknown(lambda mask: mask.take_columns(indices))
        if absent == "unknown" and (indices < 0).any():
            lacking = np.repeat(BitMatrix.from_dense((indices < 0)[np.newaxis]).words, self.n_rows, axis=0)
            unknown = BitMatrix.from_words(lacking if unknown is None else lacking | unknown.words, indices.size, False)
        return BitMatrix.from_words(out, indices.size, check=False).with_unknown(unknown)

    def with_unknown(self, unknown: BitMatrix | None) -> BitMatrix:
        """Return the same bits with these cells unknown, and no others.

        Parameters
        ----------
        unknown : BitMatrix of the same shape, or None
            The cells whose value is unknown. The bits there become zero.

        Returns
        -------
        BitMatrix
            ``unknown`` is None in it if no cell is unknown.

        Examples
        --------
        >>> import numpy as np
        >>> from bitatoms import BitMatrix
        >>> bits = BitMatrix.from_dense([[1, 0, 1], [0, 0, 1]])
        >>> bits.with_unknown(BitMatrix.from_dense([[1, 0, 0], [0, 0, 0]]))
        BitMatrix(2 x 3, density 0.4, 1 cell unknown)
        """
        if unknown is not None and (unknown.shape != self.shape or unknown.unknown is not None):
            raise ValueError(f"unknown must be a BitMatrix of {self.n_rows} x {self.n_cols} known bits")
        if unknown is None or not unknown.words.any():
            return BitMatrix.from_words(self.words, self.n_cols, check=False)
        return BitMatrix.from_words(self.words & ~unknown.words, self.n_cols, False, unknown)

    def filled(self) -> BitMatrix:
        """Return the bits with zeros in place of unknown cells."""
        return self if self.unknown is None else BitMatrix.from_words(self.words, self.n_cols, check=False)

    @property
    def unknown_words(self) -> NDArray[np.uint64]:
        """The words of ``unknown``, as kernels take them: no rows if all cells are known."""
        return self.words[:0] if self.unknown is None else self.unknown.words

    @property
    def n_unknown(self) -> int:
        """Number of unknown cells."""
        return 0 if self.unknown is None else self.unknown.count()

    @property
    def n_known(self) -> NDArray[np.int64]:
        """Number of rows in which each column is known, of shape (n_cols,)."""
        n_rows = np.broadcast_to(np.int64(self.n_rows), self.n_cols)  # as a view, equal numbers are soon recognized
        return n_rows if self.unknown is None else n_rows - self.unknown.column_weights()

    def row_weights(self) -> NDArray[np.int64]:
        """Return the number of ones in each row, an array of shape (n_rows,)."""
        out = np.empty(self.n_rows, np.int64)
        packing.row_weights(self.words, out)
        return out

    def column_weights(self) -> NDArray[np.int64]:
        """Return the number of ones in each column, an array of shape (n_cols,)."""
        out = np.empty(self.n_cols, np.int64)
        packing.column_weights(self.words, np.empty((PLANES, self.words.shape[1]), np.uint64), out)
        return out

    def count(self) -> int:
        """Return the total number of ones."""
        return int(self.row_weights().sum())

    def __len__(self) -> int:
        return self.words.shape[0]

    def __getitem__(self, rows: Any) -> Any:
        """Return the rows of a slice or of an array of indices or booleans as a BitMatrix, a single row as an array."""
        chosen = row_index(rows, "BitMatrix", "take_columns")
        if isinstance(chosen, int):
            if not -self.n_rows <= chosen < self.n_rows:
                raise IndexError(f"row {chosen} is out of range for a BitMatrix of {self.n_rows} rows")
            one = self[chosen % self.n_rows : chosen % self.n_rows + 1]
            return np.asarray(one)[0]
        words = np.ascontiguousarray(self.words[chosen])
        return BitMatrix.from_words(words, self.n_cols, False, self._mapped_unknown(lambda mask: mask[chosen]))

    def __xor__(self, other: object) -> BitMatrix:
        """Return the cells in which two matrices differ; the second may be a single row. Unknown cells stay unknown."""
        if not isinstance(other, BitMatrix):
            return NotImplemented
        if self.n_cols != other.n_cols or other.n_rows not in (1, self.n_rows):
            raise ValueError(f"shapes {self.shape} and {other.shape} differ")
        words = self.words ^ other.words
        if self.unknown is None and other.unknown is None:
            return BitMatrix.from_words(words, self.n_cols, check=False)
        unknown = np.zeros_like(words)
        for bits in (self, other):
            unknown |= 0 if bits.unknown is None else bits.unknown.words
        return BitMatrix.from_words(words & ~unknown, self.n_cols, False, BitMatrix.from_words(unknown, self.n_cols))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BitMatrix):
            return NotImplemented
        same = self.n_cols == other.n_cols and np.array_equal(self.words, other.words)
        if same and (self.n_unknown or other.n_unknown):  # rows of a matrix that has unknown cells may have none
            return self.unknown == other.unknown
        return same

    __hash__ = Matrix.__hash__

    def _mapped_unknown(self, function: Callable[[BitMatrix], BitMatrix]) -> BitMatrix | None:
        """Return the function of the unknown cells, if there are any."""
        return None if self.unknown is None else function(self.unknown)

    def __reduce__(self) -> tuple[Any, ...]:
        return BitMatrix, (self.words, self.n_cols, self.unknown)  # the constructor checks what is unpickled

    def _bytes(self) -> NDArray[np.uint8]:
        """Return the rows as bytes, the first column in the lowest bit for either byte order of the machine."""
        little = self.words.astype("<u8", copy=False)
        if not little.size:
            return np.zeros((self.n_rows, 0), np.uint8)
        return little.view(np.uint8)[:, : -(-self.n_cols // 8)]


def row_index(rows: Any, kind: str, column_selection: str) -> int | slice | NDArray[Any]:
    """Return an index of rows as an int, a slice, or an array of integers or booleans.

    As in NumPy, a second index may be ``...`` or ``:``. Errors call what is indexed ``kind``, and name the method that
    selects columns.
    """
    if isinstance(rows, tuple):
        if len(rows) != 2 or not (rows[1] is Ellipsis or (isinstance(rows[1], slice) and rows[1] == slice(None))):
            raise IndexError(f"a {kind} is indexed by rows only; select columns with {column_selection}")
        rows = rows[0]
    if isinstance(rows, slice):
        return rows
    chosen = np.asarray(rows)
    if chosen.dtype.kind in "US" or (chosen.dtype.kind == "O" and any(isinstance(each, str) for each in chosen.flat)):
        raise IndexError(f"a {kind} is indexed by the positions of rows; select columns with {column_selection}")
    if chosen.ndim == 0 and chosen.dtype.kind != "b":
        return index(rows)
    if chosen.ndim != 1:
        raise IndexError(f"rows are indexed by a 1-D array of integers or booleans, not a {chosen.ndim}-D one")
    if chosen.size == 0 and chosen.dtype.kind != "b":
        chosen = chosen.astype(np.intp)
    if chosen.dtype.kind not in "iub":
        raise IndexError(f"rows are indexed by integers, booleans or a slice, not by values of type {chosen.dtype}")
    return chosen


def stack_rows(matrices: Iterable[BitMatrix], n_cols: int) -> BitMatrix:
    """Return the rows of several matrices as one; ``n_cols`` gives its width where there are no matrices."""
    parts = [BitMatrix.zeros(0, n_cols), *matrices]
    words = np.concatenate([part.words for part in parts])
    unknown = None
    if any(part.unknown is not None for part in parts):
        masks = [np.zeros_like(part.words) if part.unknown is None else part.unknown.words for part in parts]
        unknown = BitMatrix.from_words(np.concatenate(masks), n_cols, check=False)
    return BitMatrix.from_words(words, n_cols, False, unknown)


def bits_at(rows: NDArray[np.integer], columns: NDArray[np.integer], shape: tuple[int, int]) -> BitMatrix:
    """Return a matrix of this shape with ones in these cells, each given once."""
    words = _filled(*shape, one=False)
    np.bitwise_xor.at(words, (rows, columns >> 6), np.uint64(1) << (columns & 63).astype(np.uint64))
    return BitMatrix.from_words(words, shape[1], check=False)


def count_ones(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return the number of ones in each row of words."""
    return np.bitwise_count(words).sum(axis=1, dtype=np.int64)


def either(first: BitMatrix | None, second: BitMatrix) -> BitMatrix:
    """Return the cells that are in the first mask, if there is one, or in the second."""
    if first is None:
        return second
    return BitMatrix.from_words(first.words | second.words, second.n_cols, check=False)


def _words_for(n_cols: int) -> int:
    """Return the number of words per row of ``n_cols`` bits."""
    return (n_cols + 63) // 64


def _size(value: int, name: str) -> int:
    """Return a number of rows or columns as an int."""
    if index(value) < 0:
        raise ValueError(f"{name} must not be negative, got {value}")
    return index(value)


def _words(packed: NDArray[np.uint8], n_cols: int) -> NDArray[np.uint64]:
    """Return rows of bytes as rows of words padded with zeros, without a copy where the bytes fill their words."""
    width = 8 * _words_for(n_cols)
    if not packed.size:
        return np.zeros((len(packed), width // 8), np.uint64)
    if packed.shape[1] != width:
        padded = np.zeros((len(packed), width), np.uint8)
        padded[:, : packed.shape[1]] = packed
        packed = padded
    return packed.view("<u8").astype(np.uint64, copy=False)


def _chunks(dense: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield the table in chunks of rows."""
    step = max(1, _CHUNK_VALUES // max(dense.shape[1], 1))
    for start in range(0, len(dense), step):
        yield dense[start : start + step]


def pack_values(values: Any, threshold: float | None, name: str, missing: str) -> BitMatrix:
    """Pack what `frames.values_of` returns: a dense array, in chunks of rows, or a sparse matrix."""
    if is_sparse(values):
        ones = sparse_ones(values, threshold, name, missing)
        unknown = None if ones.lacking is None else BitMatrix.from_csr(*ones.lacking, values.shape[1])
        return BitMatrix.from_csr(ones.indptr, ones.indices, values.shape[1], ones.background).with_unknown(unknown)
    masked: BitMatrix | None = None
    if isinstance(values, np.ma.MaskedArray):
        check_not_masked(values, name, missing)
        masked = _packed(np.ma.getmaskarray(values), None, "refuse") if missing == "unknown" else None
        values = values.filled(0)
    if values.flags.f_contiguous and not values.flags.c_contiguous:  # pandas frames are: pack along the columns
        packed = _packed(values.T, threshold, missing)
        packed = None if packed is None else packed.transpose()
    else:
        packed = _packed(values, threshold, missing)
    if packed is None:
        n_cols = values.shape[1]
        chunks = map(np.ravel, _chunks(values))
        raise_invalid(chunks, lambda index: divmod(index, n_cols), threshold, name, missing)
    return packed if masked is None else packed.with_unknown(either(packed.unknown, masked))


def _packed(dense: NDArray[Any], threshold: float | None, missing: str) -> BitMatrix | None:
    """Return a table as bits, or None if it contains an invalid value."""
    n_rows, n_cols = dense.shape
    if threshold is None and dense.dtype.itemsize == 1:  # no intermediate array is needed
        ones = binarized(dense, threshold)
        if ones is None:
            return None
        words = _pack_bits(ones)
        if words.base is not None:  # nothing can change them: a device keeps a copy of such words
            words.base.flags.writeable = False
        return BitMatrix.from_words(words, n_cols, check=False)
    words = np.empty((n_rows, _words_for(n_cols)), np.uint64)
    unknown: NDArray[np.uint64] | None = None
    start = 0
    for chunk in _chunks(dense):
        ones = binarized(chunk, threshold)
        if ones is None and missing != "refuse":
            lacking = missing_cells(chunk)
            ones = binarized(np.where(lacking, 0, chunk), threshold)
            if ones is not None and missing == "unknown":
                unknown = np.zeros_like(words) if unknown is None else unknown
                unknown[start : start + len(chunk)] = _pack_bits(lacking)
                ones = ones & ~lacking
        if ones is None:
            return None
        words[start : start + len(chunk)] = _pack_bits(ones)
        start += len(chunk)
    mask = None if unknown is None else BitMatrix.from_words(unknown, n_cols, check=False)
    return BitMatrix.from_words(words, n_cols, False, mask)


def _pack_bits(ones: NDArray[np.bool_] | NDArray[np.uint8]) -> NDArray[np.uint64]:
    """Return the words of rows of bits."""
    return _words(np.packbits(ones, axis=1, bitorder="little"), ones.shape[1])


def _thresholded(bits: BitMatrix, threshold: float | None, name: str, missing: str) -> BitMatrix:
    """Return bits above a threshold, with zeros in unknown cells, or an error for the first of these, if asked for."""
    if missing == "refuse" and bits.n_unknown:
        assert bits.unknown is not None
        row = int(np.argmax(bits.unknown.words.any(axis=1)))
        column = int(np.argmax(bits.unknown[row]))
        raise MissingCell(name, Cell(row, column, "an unknown value", bits.n_unknown))
    bits = bits if missing == "unknown" else bits.filled()
    if threshold is None or 0 <= threshold < 1:
        return bits
    filled = BitMatrix.from_words(_filled(*bits.shape, one=threshold < 0), bits.n_cols, check=False)
    return filled.with_unknown(bits.unknown)


def flip_sparse(indptr: NDArray[np.integer], indices: NDArray[np.integer], words: NDArray[np.uint64]) -> None:
    """Flip bits indices[indptr[i]:indptr[i + 1]] of row i of these words; indices of a row are unique."""
    for first in range(0, len(words), _ROWS_AT_ONCE):  # not all at once: indices are copied if they have 32 bits
        starts = indptr[first : first + _ROWS_AT_ONCE + 1].astype(np.int64)
        some = np.ascontiguousarray(indices[starts[0] : starts[-1]], np.int64)
        packing.flip_sparse(starts - starts[0], some, words[first : first + _ROWS_AT_ONCE])


def _filled(n_rows: int, n_cols: int, one: bool) -> NDArray[np.uint64]:
    """Return the words of a matrix of zeros or of ones."""
    words = np.full((n_rows, _words_for(n_cols)), ~np.uint64(0) if one else np.uint64(0))
    if one and n_cols % 64:
        words[:, -1] >>= np.uint64(64 - n_cols % 64)
    return words
