"""Rows in a packed store on disk: read in order one chunk at a time, or by index."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..annotations import Annotations
from ..bits import BitMatrix
from ..engine.counts import Counts
from ..engine.pass_spec import PassSpec
from ..io.errors import FileError
from ..io.formats import load_reader
from ..io.packed_store import METADATA_KEY, TABLE_FORMAT, PackedStoreReader
from ..io.safe_zarr import ZarrReader
from ..io.stream import Source
from ..parallel import Workers
from ..sparse_bits import Bits, SparseBits, is_smaller_sparse, packed, stack_bits
from ..table import Header, Names, Picture
from .budget import MemoryBudget, chunk_rows, parse_memory_limit
from .code_cache import CodeCache, Codes
from .memory import pass_rows, run_pass_on_chunks
from .source import PartialPass, SavePartial


class Store:
    """A table on disk that may be larger than memory: a Zarr store of bits, written by `bitatoms.pack`.

    Parameters
    ----------
    path : str or path-like
        The folder of the store. Opening it does not read the rows.

    Attributes
    ----------
    path : Path
        The absolute path of the folder; ``name`` is the path as given.
    shape : tuple of int
        Number of rows and of columns; also ``n_rows`` and ``n_features``.
    columns : tuple of str or None
        Names of the columns.
    absent_is_zero : bool
        Whether a column that a model knows and the store lacks is zero in all rows, as in transactions.
    picture : Picture or None
        Height and width, if each row is a picture.
    row_data, column_data : Annotations or None
        What else is known about the rows and the columns.
    about : dict
        Where the rows came from, as `bitatoms.pack` recorded it.
    has_row_names : bool
        Whether the rows have names.
    has_unknown : bool
        Whether some cells are unknown.
    n_ones : int or None
        The number of ones of a sparse table, whose rows are stored by their ones; None if rows are packed.

    Raises
    ------
    FileError
        The folder is not a packed store, or the store is incomplete or corrupt. A missing or corrupt chunk is named
        when it is read. Reading a store that was replaced since it was opened is an error.

    Examples
    --------
    >>> import bitatoms as ba
    >>> store = ba.pack([[1, 0, 1], [0, 1, 1]], "small.zarr")
    >>> store
    Store('small.zarr', 2 x 3)
    >>> next(store.chunks()).to_dense()
    array([[1, 0, 1],
           [0, 1, 1]], dtype=uint8)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.abspath(path))  # the working directory may change
        self.name = os.fspath(path)
        source = Source(self.path, "zarr", self.name)
        if not self.path.exists():
            raise source.error("there is no such store")
        hint = f"convert it with bitatoms.pack({os.fspath(path)!r}, 'packed.zarr')"
        if not self.path.is_dir():
            raise source.error(f"this is a file, but a packed store is a folder; {hint}")
        load_reader("zarr", source.name)  # raises an error that names the extra to install
        with source.catch_library_errors():
            reader = ZarrReader(source)
            about = dict(reader.root.attrs).get(METADATA_KEY)
            if not isinstance(about, dict) or about.get("format") != TABLE_FORMAT:
                raise source.error(f"this is not a packed store of bitatoms; {hint}")
            self._packed = PackedStoreReader(reader, about)
        self.n_rows, self.n_features = self._packed.n_rows, self._packed.n_cols
        self.columns: Names | None = self._packed.columns
        self.absent_is_zero = self._packed.absent_is_zero
        self.picture: Picture | None = self._packed.picture
        self.row_data: Annotations | None = self._packed.row_data
        self.column_data: Annotations | None = self._packed.column_data
        self.about: dict[str, Any] = self._packed.about
        self.has_row_names = self._packed.has_names
        self.has_unknown = self._packed.has_unknown
        self.n_ones = self._packed.n_ones

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return self.n_rows, self.n_features

    @property
    def header(self) -> Header:
        """Its columns."""
        return Header(self.n_features, self.columns, self.absent_is_zero, self.column_data)

    def chunks(self, n_rows: int | None = None, start: int = 0) -> Iterator[BitMatrix]:
        """Yield the rows in order, one chunk at a time.

        Parameters
        ----------
        n_rows : int, optional
            Rows per chunk, rounded up to a multiple of 64; by default as many as take 4 MiB. The size does not depend
            on the chunks of the Zarr store. The last chunk may have fewer rows.
        start : int, default=0
            Index of the first row.

        Yields
        ------
        BitMatrix
        """
        size = chunk_rows(self.n_features) if n_rows is None else max(64, -(-n_rows // 64) * 64)
        return self._packed.iter_chunks(size, start)

    def stored_chunks(self, n_rows: int | None = None, start: int = 0) -> Iterator[Bits]:
        """Yield the rows in order as they are stored: packed, or those of a sparse table by their ones.

        Parameters
        ----------
        n_rows : int, optional
            Rows per chunk, as in `chunks`. Chunks of rows that are stored by their ones may have fewer.
        start : int, default=0
            Index of the first row.

        Yields
        ------
        BitMatrix or SparseBits
        """
        return self.chunks(n_rows, start) if self.n_ones is None else self._packed.iter_stored(n_rows, start)

    def pieces(self, n_rows: int | None = None, start: int = 0) -> Iterator[BitMatrix]:
        """Return `chunks`; deprecated."""
        warnings.warn(
            "Store.pieces is deprecated and will be removed in 0.3; call Store.chunks", FutureWarning, stacklevel=2
        )
        return self.chunks(n_rows, start)

    def take(self, rows: ArrayLike) -> BitMatrix:
        """Return the rows with these indices.

        Parameters
        ----------
        rows : array-like of int
            Indices in increasing order. Each chunk of the Zarr store is read at most once.

        Returns
        -------
        BitMatrix of shape (len(rows), n_features)
        """
        given = np.asarray(rows)
        if given.size and given.dtype.kind not in "iu":
            raise TypeError(f"row indices must be integers, not of type {given.dtype}")
        indices = given.astype(np.int64)
        if indices.ndim != 1 or (indices[1:] < indices[:-1]).any():
            raise ValueError("row indices must be a 1-D sequence in increasing order")
        if len(indices) and not 0 <= indices[0] <= indices[-1] < self.n_rows:
            wrong = indices[0] if indices[0] < 0 else indices[-1]
            raise IndexError(f"row {wrong} is out of range for a store of {self.n_rows} rows")
        return packed(self._packed.take(indices))

    def row_names(self, start: int = 0, stop: int | None = None) -> list[str] | None:
        """Return the names of the rows ``start:stop``, or None if rows have no names."""
        first, last, _ = slice(start, stop).indices(self.n_rows)
        return self._packed.names(first, max(first, last))

    def fingerprint(self) -> str:
        """Return a hash that identifies the rows, computed from the checksums of the chunks."""
        return self._packed.fingerprint()

    def __len__(self) -> int:
        return self.n_rows

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self.path, self._packed.id)

    def __repr__(self) -> str:
        return f"Store({self.name!r}, {self.n_rows} x {self.n_features})"


def _reopened(path: Path, id: str | None) -> Store:
    """Open a store in another process; raise FileError if it was replaced meanwhile."""
    store = Store(path)
    if store._packed.id != id:
        raise FileError(f"{path}: the store was replaced while it was read; open it again")
    return store


class StoreRows:
    """The rows of a store (a `RowSource`), read in order while threads process earlier chunks.

    Parameters
    ----------
    store : Store
    workers : Workers
        The threads that process chunks.
    max_memory : int, optional
        Bytes that rows, codes and counts may take together. If it is given, at most as many rows are searched as
        fit. Otherwise, passes over all rows take 512 MiB, and the search what it needs.
    code_folder : path-like, optional
        An existing folder in which codes are kept, so that another process can resume a pass. Without one, codes are
        kept in memory if they are small, otherwise in a temporary folder.
    """

    save_interval = 30.0  # seconds between two calls of ``save`` during a pass

    def __init__(
        self,
        store: Store,
        workers: Workers,
        max_memory: int | None = None,
        code_folder: str | os.PathLike[str] | None = None,
    ) -> None:
        self.store = store
        self.n_rows, self.n_features = store.shape
        self.in_memory: Bits | None = None
        self._workers = workers
        self._budget = memory_budget(store, max_memory, workers)
        self._is_limited = max_memory is not None
        if store.n_ones is None:
            self._budget.chunk_rows(n_atoms=1)  # raise now, not after a search
        if code_folder is not None and not Path(code_folder).is_dir():
            raise FileError(f"{os.fspath(code_folder)}: there is no such folder to store codes in; create it first")
        self._cache = CodeCache(None if code_folder is None else Path(code_folder), self.n_rows)

    def ones(self) -> SparseBits | None:
        """Return all rows by their ones, or None if these are many, some cells are unknown, or the table is narrow."""
        if self.store.has_unknown or not is_smaller_sparse(self.store.shape, 0):
            return None
        if self.store.n_ones is not None and self._is_limited:
            self._budget.check_ones(self.n_rows, self.store.n_ones)
        size = self._budget.chunk_rows(1) if self.store.n_ones is None else None
        chunks: list[SparseBits] = []
        n_ones = 0
        for chunk in self.store.stored_chunks(size):
            n_ones += chunk.count()
            if not is_smaller_sparse(self.store.shape, n_ones):
                return None
            chunks.append(chunk if isinstance(chunk, SparseBits) else SparseBits.from_bits(chunk))
        if self._is_limited:
            self._budget.check_ones(self.n_rows, n_ones)
        return stack_bits(chunks, self.n_features)

    def max_search_rows(self, least: int, by_windows: bool) -> int | None:
        """Return how many rows can be searched within the memory limit, or None if the user has set none."""
        return self._budget.search_rows(least, by_windows) if self._is_limited else None

    def take(self, rows: NDArray[np.int64]) -> BitMatrix:
        """Return the rows with these indices, to be searched."""
        return self.store.take(rows)

    def run_pass(
        self,
        spec: PassSpec,
        codes: Codes | None = None,
        number: int = 1,
        partial: PartialPass | None = None,
        save: SavePartial | None = None,
        deadline: float = float("inf"),
    ) -> tuple[Codes, Counts]:
        """Run a pass over all rows and return its codes and counts."""
        n_atoms = spec.atoms.n_rows
        size = self._workers.chunk_rows or pass_rows(self._budget, spec)
        in_memory = self._budget.holds_codes(self.n_rows, n_atoms)
        after, row = self._cache.create(number, n_atoms, partial.next_row if partial else 0, in_memory)
        nothing = Counts.none(*spec.atoms.shape, spec.voted, spec.atoms.count())
        total = partial.counts.copy() if partial and row else nothing
        before = None if spec.kept is None else codes
        saved_at = time.monotonic()
        try:
            workers = replace(self._workers, deadline=deadline)
            results = run_pass_on_chunks(self._chunks(size, row, before), spec, workers)
            with closing(cast(Generator[tuple[BitMatrix, Counts]], results)):
                for chunk_codes, counts in results:
                    after.write(row, chunk_codes)
                    total = total.add(counts)
                    row += len(chunk_codes)
                    is_due = time.monotonic() - saved_at >= self.save_interval
                    if save is not None and self._cache.is_persistent and row < self.n_rows and is_due:
                        after.sync()
                        save(PartialPass(row, total.copy()))
                        saved_at = time.monotonic()
            if self._cache.is_persistent:
                after.sync()
        finally:
            after.close()
            if before is not None:
                before.close()
        return after, total

    def _chunks(self, size: int, start: int, codes: Codes | None) -> Iterator[tuple[BitMatrix, BitMatrix | None]]:
        """Yield the rows from ``start`` on, in chunks with their previous codes."""
        for data in self.store.chunks(size, start):
            yield data, None if codes is None else codes.read(start, len(data))
            start += len(data)

    def code_chunks(self, codes: Codes, n_atoms: int) -> Iterator[BitMatrix]:
        """Yield the codes that a pass returned, in chunks of rows."""
        size = self._budget.chunk_rows(n_atoms, counts_votes=False, largest_group=(0, 0))  # nothing is coded
        try:
            for start in range(0, self.n_rows, size):
                yield codes.read(start, min(size, self.n_rows - start))
        finally:
            codes.close()

    def fingerprint(self) -> str:
        """Return a hash that identifies the rows."""
        return self.store.fingerprint()

    def load_codes(self, number: int, n_atoms: int) -> Codes | None:
        """Return the codes of a pass of an earlier process, or None if they are missing or corrupt."""
        return self._cache.load(number, n_atoms)

    def discard_codes(self, keep: set[int]) -> None:
        """Remove the codes of all passes but these from the folder."""
        self._cache.discard(keep)

    def close(self) -> None:
        """Remove temporary files; this also happens when the object is garbage-collected."""
        self._cache.close()


def memory_budget(
    store: Store, max_memory: int | None, workers: Workers, n_features: int | None = None
) -> MemoryBudget:
    """Return the memory budget for work on a store, or on its rows with another number of features."""
    width = store.n_features if n_features is None else n_features
    read = store._packed.read_bytes
    limit, on_device = parse_memory_limit(max_memory), workers.device is not None
    return MemoryBudget(limit, width, workers.n_at_once, read, store.has_unknown, on_device=on_device)


def check_memory(
    store: Store, workers: Workers, max_memory: int | None, n_searched: int, n_atoms: int | None = None
) -> None:
    """Raise InputError if a search of ``n_searched`` rows, or passes over all rows, do not fit into the limit."""
    budget = memory_budget(store, max_memory, workers)
    if n_searched:
        budget.check_search(min(n_searched, store.n_rows))
    if n_searched or store.n_ones is None:  # a sparse table is searched by its ones, without passes
        budget.chunk_rows(n_atoms or 1)
