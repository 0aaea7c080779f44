"""BitMatrix: a matrix of packed bits, and its conversions from and to dense, sparse and byte formats."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from . import dataframes, validation
from .kernels.cpu import packing
from .kernels.structs import PLANES

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_CHUNK_VALUES = 1 << 18  # values converted at a time, so that intermediate arrays stay in the cache


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class BitMatrix:
    """Rows of bits, 64 to a word; every bit past ``n_cols`` is zero.

    Bit ``j`` of a row is bit ``j % 64``, counted from the lowest, of its word ``j // 64``. A BitMatrix is immutable
    and hashable: its words are read-only.

    Parameters
    ----------
    words : ndarray of shape (n_rows, ceil(n_cols / 64)), uint64, C-contiguous
        The packed rows. The array is kept without a copy and becomes read-only.
    n_cols : int
        Number of bits per row.

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

    @classmethod
    def from_words(cls, words: NDArray[np.uint64], n_cols: int, check: bool = True) -> BitMatrix:
        """Wrap words that are already packed.

        Parameters
        ----------
        words : ndarray of shape (n_rows, ceil(n_cols / 64)), uint64, C-contiguous
            The packed rows, with zeros past ``n_cols``. The array is kept without a copy and becomes read-only.
        n_cols : int
            Number of bits per row.
        check : bool, default=True
            Whether to check the words. Pass False only for words that the calling code has just computed.

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
            return cls(words, n_cols)
        bits = object.__new__(cls)
        words.flags.writeable = False
        object.__setattr__(bits, "words", words)
        object.__setattr__(bits, "n_cols", n_cols)
        return bits

    @classmethod
    def trusted(cls, words: NDArray[np.uint64], n_cols: int) -> BitMatrix:
        """Deprecated name of ``from_words(words, n_cols, check=False)``."""
        warnings.warn(
            "BitMatrix.trusted is deprecated and will be removed in 0.3; use BitMatrix.from_words(..., check=False)",
            FutureWarning,
            stacklevel=2,
        )
        return cls.from_words(words, n_cols, check=False)

    @classmethod
    def zeros(cls, n_rows: int, n_cols: int) -> BitMatrix:
        """Return a matrix of zeros.

        Parameters
        ----------
        n_rows, n_cols : int
            The shape.

        Returns
        -------
        BitMatrix of shape (n_rows, n_cols)
        """
        n_rows, n_cols = _size(n_rows, "n_rows"), _size(n_cols, "n_cols")
        return cls.from_words(_filled(n_rows, n_cols, one=False), n_cols, check=False)

    @classmethod
    def from_any(cls, X: Any, binarize: float | None = None, name: str = "X") -> BitMatrix:
        """Pack a table of 0 and 1 of any supported type.

        Parameters
        ----------
        X : BitMatrix, Table, SciPy sparse matrix or array, or array-like of shape (n_rows, n_cols)
            The table. A BitMatrix is returned unchanged. Missing values raise an error.
        binarize : float or None, default=None
            Threshold: a bit is one where X is greater. With None, X must contain only 0 and 1.
        name : str, default="X"
            Name of the table in error messages.

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
        if isinstance(X, BitMatrix):
            threshold = validation.check_threshold(binarize)
            if threshold is None or 0 <= threshold < 1:
                return X
            return cls.from_words(_filled(X.n_rows, X.n_cols, one=threshold < 0), X.n_cols, check=False)
        if isinstance(bits := getattr(X, "bits", None), BitMatrix):  # a Table
            return cls.from_any(bits, binarize, name)
        X = dataframes.as_array_like(X)
        if validation.is_sparse(X):
            return cls.from_sparse(X, binarize, name)
        return cls.from_dense(X, binarize, name)

    @classmethod
    def from_dense(cls, X: ArrayLike, binarize: float | None = None, name: str = "X") -> BitMatrix:
        """Pack a dense table.

        The table is packed in chunks of rows, so that no intermediate array has its size.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_cols)
            Booleans, integers or floats, or objects that are such numbers. Missing values raise an error.
        binarize : float or None, default=None
            Threshold: a bit is one where X is greater. With None, X must contain only 0 and 1.
        name : str, default="X"
            Name of the table in error messages.

        Returns
        -------
        BitMatrix of shape (n_rows, n_cols)

        Examples
        --------
        >>> from bitatoms import BitMatrix
        >>> BitMatrix.from_dense([[True, False], [True, True]]).row_weights()
        array([1, 2])
        """
        threshold = validation.check_threshold(binarize)
        dense = validation.dense_table(X, name)
        n_rows, n_cols = dense.shape
        if dense.flags.f_contiguous and not dense.flags.c_contiguous:  # pandas frames are: pack along the columns
            words = _packed(dense.T, threshold)
            bits = None if words is None else cls.from_words(words, n_rows, check=False).transpose()
        else:
            words = _packed(dense, threshold)
            bits = None if words is None else cls.from_words(words, n_cols, check=False)
        if bits is None:
            validation.raise_invalid(
                map(np.ravel, _chunks(dense)), lambda index: divmod(index, n_cols), threshold, name
            )
        return bits

    @classmethod
    def from_sparse(cls, S: Any, binarize: float | None = None, name: str = "X") -> BitMatrix:
        """Pack a SciPy sparse matrix or array of any format, without converting it to a dense array.

        Parameters
        ----------
        S : SciPy sparse matrix or array of shape (n_rows, n_cols)
            The matrix. Duplicate entries are summed, as in SciPy. It is not modified.
        binarize : float or None, default=None
            Threshold: a bit is one where S is greater. Entries that are not stored are zeros, which a negative
            threshold turns into ones. With None, S must contain only 0 and 1.
        name : str, default="X"
            Name of the table in error messages.

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
        threshold = validation.check_threshold(binarize)
        values, indices, indptr = validation.sparse_table(S, name)
        n_rows, n_cols = S.shape
        ones = validation.binarized(values, threshold)
        if ones is None:
            rows = np.repeat(np.arange(n_rows), np.diff(indptr))
            validation.raise_invalid([values], lambda index: (int(rows[index]), int(indices[index])), threshold, name)
        background = threshold is not None and threshold < 0  # entries not stored are ones
        words = _filled(n_rows, n_cols, one=background)
        differs = ones != background
        if not differs.all():
            indptr = np.concatenate(([0], np.cumsum(differs)))[indptr]
            indices = indices[differs]
        packing.flip_sparse(indptr, indices, words)
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
        width = _bytes_for(n_cols)
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
            ceil(n_cols / 8) bytes per row, the first column in the lowest bit.
        """
        return self._bytes().tobytes()

    def to_dense(self, dtype: DTypeLike = np.uint8) -> NDArray[Any]:
        """Return the bits as an array of 0 and 1.

        Parameters
        ----------
        dtype : data-type, default=numpy.uint8
            Data type of the array.

        Returns
        -------
        ndarray of shape (n_rows, n_cols)
        """
        dense = np.unpackbits(self._bytes(), axis=1, count=self.n_cols, bitorder="little")
        return dense.view(np.bool_) if np.dtype(dtype) == np.bool_ else dense.astype(dtype, copy=False)

    def to_sparse(self) -> csr_array:
        """Return the bits as a SciPy sparse array in CSR format, of dtype uint8.

        Returns
        -------
        scipy.sparse.csr_array of shape (n_rows, n_cols)
        """
        from scipy.sparse import csr_array

        indptr = np.concatenate(([0], np.cumsum(self.row_weights())))
        count = int(indptr[-1])
        kind = np.int32 if max(count, self.n_cols) <= np.iinfo(np.int32).max else np.int64
        indices = np.empty(count, kind)
        packing.list_columns(self.words, indices)
        return csr_array((np.ones(count, np.uint8), indices, indptr.astype(kind)), shape=self.shape)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.words.shape[0]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and number of columns."""
        return self.words.shape[0], self.n_cols

    @property
    def T(self) -> BitMatrix:
        """The transposed matrix."""
        return self.transpose()

    def transpose(self) -> BitMatrix:
        """Return the transposed matrix.

        Returns
        -------
        BitMatrix of shape (n_cols, n_rows)
        """
        out = np.empty((self.n_cols, _words_for(self.n_rows)), np.uint64)
        packing.transpose(self.words, self.n_rows, self.n_cols, np.empty(64, np.uint64), out)
        return BitMatrix.from_words(out, self.n_rows, check=False)

    def take_columns(self, columns: ArrayLike) -> BitMatrix:
        """Return the columns with these indices, in this order; -1 stands for a column of zeros.

        Parameters
        ----------
        columns : array-like of int
            Indices of columns, which may repeat, or -1.

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
        return BitMatrix.from_words(out, indices.size, check=False)

    def row_weights(self) -> NDArray[np.int64]:
        """Return the number of ones in each row.

        Returns
        -------
        ndarray of shape (n_rows,), int64
        """
        out = np.empty(self.n_rows, np.int64)
        packing.row_weights(self.words, out)
        return out

    def column_weights(self) -> NDArray[np.int64]:
        """Return the number of ones in each column.

        Returns
        -------
        ndarray of shape (n_cols,), int64
        """
        out = np.empty(self.n_cols, np.int64)
        packing.column_weights(self.words, np.empty((PLANES, self.words.shape[1]), np.uint64), out)
        return out

    def count(self) -> int:
        """Return the total number of ones.

        Returns
        -------
        int
        """
        return int(self.row_weights().sum())

    @property
    def density(self) -> float:
        """Fraction of ones; 0 for an empty matrix."""
        return self.count() / max(self.n_rows * self.n_cols, 1)

    def __len__(self) -> int:
        return self.words.shape[0]

    def __getitem__(self, rows: Any) -> Any:
        """Return the rows of a slice or of an array of indices or booleans as a BitMatrix, a single row as an array."""
        if isinstance(rows, tuple):
            if len(rows) != 2 or not (rows[1] is Ellipsis or rows[1] == slice(None)):
                raise IndexError("a BitMatrix is indexed by rows only; select columns with take_columns")
            rows = rows[0]
        if isinstance(rows, slice):
            return BitMatrix.from_words(np.ascontiguousarray(self.words[rows]), self.n_cols, check=False)
        if not hasattr(rows, "__len__") and not isinstance(rows, np.ndarray):
            row = index(rows)
            if not -self.n_rows <= row < self.n_rows:
                raise IndexError(f"row {row} is out of range for a BitMatrix of {self.n_rows} rows")
            return self[row % self.n_rows : row % self.n_rows + 1].to_dense()[0]
        chosen = np.asarray(rows)
        if chosen.size == 0 and chosen.dtype.kind != "b":
            chosen = chosen.astype(np.intp)
        if chosen.ndim != 1:
            raise IndexError(f"rows are indexed by a 1-D array of integers or booleans, not a {chosen.ndim}-D one")
        return BitMatrix.from_words(self.words[chosen], self.n_cols, check=False)

    def __xor__(self, other: object) -> BitMatrix:
        if not isinstance(other, BitMatrix):
            return NotImplemented
        if self.shape != other.shape:
            raise ValueError(f"shapes {self.shape} and {other.shape} differ")
        return BitMatrix.from_words(self.words ^ other.words, self.n_cols, check=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BitMatrix):
            return NotImplemented
        return self.n_cols == other.n_cols and np.array_equal(self.words, other.words)

    def __hash__(self) -> int:
        return hash((self.shape, self.words.tobytes()))

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("a BitMatrix is packed: its bits cannot be returned as an array without a copy")
        return self.to_dense(np.uint8 if dtype is None else dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return BitMatrix, (self.words, self.n_cols)  # the constructor checks what is unpickled

    def __repr__(self) -> str:
        return f"BitMatrix({self.n_rows} x {self.n_cols}, density {self.density:.3g})"

    def _bytes(self) -> NDArray[np.uint8]:
        """Return the rows as bytes, the first column in the lowest bit for either byte order of the machine."""
        little = self.words.astype("<u8", copy=False)
        if not little.size:
            return np.zeros((self.n_rows, 0), np.uint8)
        return little.view(np.uint8)[:, : _bytes_for(self.n_cols)]


def _words_for(n_cols: int) -> int:
    """Return the number of words per row of ``n_cols`` bits."""
    return (n_cols + 63) // 64


def _bytes_for(n_cols: int) -> int:
    """Return the number of bytes per row of ``n_cols`` bits."""
    return (n_cols + 7) // 8


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


def _packed(dense: NDArray[Any], threshold: float | None) -> NDArray[np.uint64] | None:
    """Return the words of a table, or None if it contains an invalid value."""
    n_rows, n_cols = dense.shape
    if threshold is None and dense.dtype.itemsize == 1:  # no intermediate array is needed
        ones = validation.binarized(dense, threshold)
        return None if ones is None else _words(np.packbits(ones, axis=1, bitorder="little"), n_cols)
    words = np.empty((n_rows, _words_for(n_cols)), np.uint64)
    start = 0
    for chunk in _chunks(dense):
        ones = validation.binarized(chunk, threshold)
        if ones is None:
            return None
        words[start : start + len(chunk)] = _words(np.packbits(ones, axis=1, bitorder="little"), n_cols)
        start += len(chunk)
    return words


def _filled(n_rows: int, n_cols: int, one: bool) -> NDArray[np.uint64]:
    """Return the words of a matrix of zeros or of ones."""
    words = np.full((n_rows, _words_for(n_cols)), ~np.uint64(0) if one else np.uint64(0))
    if one and n_cols % 64:
        words[:, -1] >>= np.uint64(64 - n_cols % 64)
    return words
