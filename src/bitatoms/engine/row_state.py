"""RowState: rows with their codes and errors, in the memory of the host or of a device; what both have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..kernels.structs import CodingRule, Prices, RowArrays
from ..parallel import Workers

Words = NDArray[np.uint64]
RowIndex = slice | NDArray[np.intp]
Tables = Any  # what `tables` and `priced` return
Changes = tuple[int, int]  # numbers of code and error bits that coding changed
Votes = tuple[NDArray[np.int32], NDArray[np.int32]]  # free and wrong ones of each bit

ALL = slice(None)
_LANES = 16  # atoms coded at a time


class RowState(ABC):
    """Rows, their codes and errors: arrays in the memory of the host (`HostRows`) or of a device (`DeviceRows`).

    Both have the same methods, with the same results. "Arrays" are arrays in the memory in which the rows are. Atoms,
    and what is decided from counts, stay on the host: an operation that needs atoms gets them.

    Counts of errors and uses are kept until somebody gets ``arrays``, and may change them: get them anew for every
    change. What only reads them uses ``_read``.

    Parameters
    ----------
    data : BitMatrix of shape (n, m)
    bias : BitMatrix of shape (1, m)
    atoms : words of p atoms
    codes : BitMatrix of shape (n, p)
    covers : bool
        True for the OR algebra.
    workers : Workers
    """

    min_chunk_rows = 0  # that are coded again at a time, while the codes that they have are kept

    def __init__(
        self, data: BitMatrix, bias: BitMatrix, atoms: Words, codes: BitMatrix, covers: bool, workers: Workers
    ) -> None:
        n, n_words = data.words.shape
        self.n_features, self.covers, self.workers = data.n_cols, covers, workers
        masks = self.xp.zeros((n if covers else 0, n_words), np.uint64)
        errors = self._table(data.words) ^ self.asarray(bias.words)
        unknown = self._table(data.unknown_words).copy()
        if data.unknown is not None:
            errors &= ~unknown
        self.arrays = RowArrays(
            errors=errors,
            codes=(own_codes := self.asarray(codes.words).copy()),
            users=self.transposed(own_codes, codes.n_cols),
            covered=masks,
            twice=masks.copy(),
            unknown=unknown,
            stale=self.xp.ones(n, np.uint8),
        )
        self._add_product(atoms, errors)
        self.cover(atoms)

    @property
    def arrays(self) -> RowArrays:
        """The arrays, to change them."""
        self._wrong: NDArray[np.int64] | None = None
        self._uses: NDArray[np.int64] | None = None
        return self._read

    @arrays.setter
    def arrays(self, arrays: RowArrays) -> None:
        self._wrong = self._uses = None
        self._read = arrays

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self._read.errors)

    @property
    def n_atoms(self) -> int:
        """Number of atoms."""
        return len(self._read.users)

    @property
    def n_words(self) -> int:
        """Words per row of data."""
        return int(self._read.errors.shape[1])

    # What the other methods are made of: in the memory of the host, unless `DeviceRows` has its own.

    @property
    def xp(self) -> Any:
        """The module of the arrays, which has the functions of NumPy."""
        return np

    def asarray(self, words: Any) -> Any:
        """Return an array with these values, of the host or of the memory that the rows are or were in, to read it."""
        return words if isinstance(words, np.ndarray) else words.get()

    def to_host(self, array: Any) -> NDArray[Any]:
        """Return an array on the host; the same one, if it is there."""
        return np.asarray(array)

    def copy_to_host(self, array: Any) -> NDArray[Any]:
        """Return a copy of an array on the host."""
        return np.asarray(array.copy())

    def _table(self, words: Words) -> Any:
        """Return an array with the words of a table, to read it."""
        return words

    def _data(self, data: BitMatrix, atoms: Words, bias: BitMatrix) -> Any:
        """Return an array with the words of the data of these rows, to read it."""
        return data.words

    def _refresh_users(self) -> None:  # noqa: B027 - kernels of the host keep the users up to date
        """Set the users from the codes, where operations on codes do not."""

    @abstractmethod
    def transposed(self, words: Any, n_cols: int) -> Any:
        """Return the transpose of packed rows of ``n_cols`` bits."""

    @abstractmethod
    def _row_weights(self, words: Any) -> Any:
        """Return the number of ones of each of these packed rows, as an array."""

    @abstractmethod
    def _column_weights(self, words: Any) -> NDArray[np.int64]:
        """Return how many of these packed rows have each feature."""

    def _count_differences(self, words: Any, others: Any) -> int:
        """Return in how many bits two arrays differ."""
        return int(np.bitwise_count(words ^ others).sum())

    @abstractmethod
    def _multiply(self, codes: Any, atoms: Words, unknown: Any, out: Any) -> None:
        """Add the products of codes and atoms to rows, except in unknown cells."""

    @abstractmethod
    def cover(self, atoms: Words) -> None:
        """Set which bits are covered once and twice, from codes and atoms, under OR."""

    @abstractmethod
    def row_costs(self, prices: Prices) -> Any:
        """Return the cost of each row at these prices, as an array."""

    @abstractmethod
    def _nearest(self, patterns: BitMatrix, rule: CodingRule, uses: NDArray[np.int32]) -> Any:
        """Return, as an array, which pattern alone lowers the cost of each row most, or -1; the rows use no atom."""

    @abstractmethod
    def _put_rows(self, atoms: Words, indices: Any, codes: Any, errors: Any) -> None:
        """Set codes and errors of the rows with these indices; before `_refresh_users`, users need not be right."""

    # Products of codes and atoms.

    def _add_product(self, atoms: Words, out: Any, rows: RowIndex = ALL) -> None:
        """Add the product of codes and atoms in place, which turns data into errors and errors into data.

        ``out`` has all rows, or those with these indices.
        """
        codes, unknown = self._read.codes[rows], self._read.unknown
        self._multiply(codes, atoms, unknown[rows] if len(unknown) else unknown, out)

    def targets(self, atoms: Words, rows: RowIndex = ALL) -> Any:
        """Return the rows less the bias, or those with these indices, as an array."""
        words = self._read.errors[rows].copy()
        self._add_product(atoms, words, rows)
        return words

    # Counts, and copies on the host.

    def uses(self) -> NDArray[np.int64]:
        """Return how many rows use each atom."""
        if self._uses is None:
            self._uses = self.to_host(self._row_weights(self._read.users))
        return self._uses.copy()

    def wrong(self) -> NDArray[np.int64]:
        """Return in how many rows each bit is wrong, to read it."""
        if self._wrong is None:
            self._wrong = self._column_weights(self._read.errors)
        return self._wrong

    def ones(self, data: BitMatrix, atoms: Words, bias: BitMatrix) -> NDArray[np.int64]:
        """Return how many rows have each feature; ``data`` is that of the rows."""
        return self._column_weights(self._data(data, atoms, bias))

    def missed(self, data: BitMatrix, atoms: Words, bias: BitMatrix) -> NDArray[np.int64]:
        """Return in how many rows each feature is one but predicted to be zero."""
        return self._column_weights(self._data(data, atoms, bias) & self._read.errors)

    def added(self, bias: BitMatrix) -> NDArray[np.int64]:
        """Return in how many rows each feature is zero but predicted to be one, under OR."""
        return self._column_weights(self._read.errors & (self._read.covered ^ self.asarray(bias.words)))

    def codes(self, rows: RowIndex = ALL) -> BitMatrix:
        """Return the codes, or those of the rows with these indices."""
        return BitMatrix.from_words(self.copy_to_host(self._read.codes[rows]), self.n_atoms, check=False)

    def users(self, atoms: RowIndex = ALL) -> Words:
        """Return the rows that use each atom, or those with these indices, packed: the codes transposed."""
        return self.copy_to_host(self._read.users[atoms])

    def errors(self) -> Words:
        """Return the wrong bits of each row."""
        return self.copy_to_host(self._read.errors)

    def on_host(self) -> RowArrays:
        """Return the arrays on the host, to read them."""
        return RowArrays(*map(self.to_host, self._read))

    # Errors that one more atom could fix: under OR those that no atom covers.

    def fixable_errors(self, rows: NDArray[np.intp]) -> Words:
        """Return the fixable errors of these rows."""
        errors = self._read.errors[rows]
        return self.to_host(errors & ~self._read.covered[rows] if self.covers else errors)

    def fixable_at(self, features: NDArray[np.intp]) -> Words:
        """Return the rows in which each of these features is a fixable error: bits of shape (features, rows)."""
        index, shift = features >> 6, self.asarray((features & 63).astype(np.uint64))
        columns = self._read.errors[:, index]
        if self.covers:
            columns &= ~self._read.covered[:, index]
        bits = (columns >> shift & np.uint64(1)).T.astype(np.uint8)
        return BitMatrix.from_dense(self.to_host(bits)).words.copy()

    # Changes of codes.

    def put_rows(self, atoms: Words, indices: Any, codes: Any, errors: Any) -> None:
        """Set the codes of the rows with these indices, and the errors that they have with them."""
        self._put_rows(atoms, *map(self.asarray, (indices, codes, errors)))
        self._refresh_users()

    def set_codes(self, before: Words, atoms: Words, codes: Any) -> None:
        """Set the codes of all rows, which were coded with the atoms ``before``, and are now with others."""
        arrays = self.arrays
        self._add_product(before, arrays.errors)
        arrays.codes[:] = self.asarray(codes)
        self._add_product(atoms, arrays.errors)
        self.arrays = arrays._replace(users=self.transposed(arrays.codes, self.n_atoms))
        self.cover(atoms)

    def set_users(self, users: Words) -> None:
        """Set the users of atoms; the product of codes and atoms stays the same."""
        self.arrays.users[:] = self.asarray(users)
        self.arrays.codes[:] = self.transposed(self._read.users, self.n_rows)

    def append_atoms(self, n_atoms: int) -> None:
        """Append this many atoms, used by no row."""
        codes, users, xp = self._read.codes, self._read.users, self.xp
        n_more = -(-(len(users) + n_atoms) // 64) - codes.shape[1]
        if n_more > 0:
            codes = xp.hstack([codes, xp.zeros((self.n_rows, n_more), np.uint64)])
        no_users = xp.zeros((n_atoms, users.shape[1]), np.uint64)
        self.arrays = self._read._replace(codes=codes, users=xp.vstack([users, no_users]))

    def keep_atoms(self, kept: NDArray[np.intp]) -> None:
        """Remove all atoms but those with these indices from the codes."""
        users = self._read.users[kept]
        self.arrays = self._read._replace(users=users, codes=self.transposed(users, self.n_rows))

    def save(self) -> tuple[Any, Any]:
        """Return copies of codes and errors, for `changes_since`."""
        return self._read.codes.copy(), self._read.errors.copy()

    def changes_since(self, saved: tuple[Any, Any]) -> Changes:
        """Return in how many bits codes and errors differ from those saved: a bit changed twice is not changed."""
        codes, errors = saved
        return self._count_differences(codes, self._read.codes), self._count_differences(errors, self._read.errors)

    def count_changed_codes(self, before: BitMatrix | None) -> int:
        """Return in how many bits the codes differ from others, or from none."""
        if before is None:
            return int(self.uses().sum())
        return self._count_differences(self.asarray(before.words), self._read.codes)

    def start_from_nearest(
        self, atoms: Words, rule: CodingRule, codes: BitMatrix, products: BitMatrix, uses: NDArray[np.int32]
    ) -> None:
        """Give each row, none of which uses an atom, the code that lowers its cost most, if one does.

        ``products`` are those of the codes with the atoms, and ``uses`` what the atoms of each code cost.
        """
        found = self._nearest(products, rule, uses)
        some = self.xp.flatnonzero(found >= 0)
        errors = self._read.errors[some] ^ self.asarray(products.words)[found[some]]
        if len(self._read.unknown):
            errors &= ~self._read.unknown[some]
        self.put_rows(atoms, some, self.asarray(codes.words)[found[some]], errors)

    def keep_cheaper(
        self, atoms: Words, prices: Prices, code: Callable[[Self], object], chunk_rows: int, residual_limit: int = -1
    ) -> Changes:
        """Code rows again, from no atoms, by this function, and keep a new code where it costs less.

        Rows with at most ``residual_limit`` errors are left as they are. Rows are coded in chunks of at least
        ``chunk_rows``: a second state of all rows would take much memory.
        """
        before, old_costs = self.save(), self.row_costs(prices)
        n_rows = max(chunk_rows, self.min_chunk_rows)
        for start in range(0, self.n_rows, n_rows):
            own = slice(start, start + n_rows)
            chunk = self._uncoded(atoms, own)
            code(chunk)
            is_better = chunk.row_costs(prices) < old_costs[own]
            if residual_limit >= 0:
                is_better &= self._row_weights(self._read.errors[own]) > residual_limit
            better = self.xp.flatnonzero(is_better)
            self._put_rows(atoms, better + start, chunk._read.codes[better], chunk._read.errors[better])
        self._refresh_users()
        return self.changes_since(before)

    def _uncoded(self, atoms: Words, rows: slice) -> Self:
        """Return some rows without codes, in the same memory."""
        chunk, xp = copy(self), self.xp
        errors, unknown = self.targets(atoms, rows), self._read.unknown[rows].copy()
        n, n_masked = len(errors), len(errors) if self.covers else 0
        covered = unknown.copy() if n_masked and len(unknown) else xp.zeros((n_masked, self.n_words), np.uint64)
        chunk.arrays = RowArrays(
            errors=errors,
            codes=xp.zeros((n, self._read.codes.shape[1]), np.uint64),
            users=xp.zeros((self.n_atoms, -(-n // 64)), np.uint64),
            covered=covered,
            twice=covered.copy(),
            unknown=unknown,
            stale=xp.ones(n, np.uint8),
        )
        return chunk


def lanes_of(n_atoms: int) -> int:
    """Return the number of atoms, padded to a multiple of those coded at a time."""
    return -(-n_atoms // _LANES) * _LANES
