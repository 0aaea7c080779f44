"""Rows in a packed store on disk: opened by its path, gone through in order a piece at a time, searched by sample."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..bits import BitMatrix
from ..core.counts import Counts
from ..core.pass_spec import PassSpec
from ..io.errors import FileError
from ..io.formats import load_reader
from ..io.packed_store import METADATA_KEY, TABLE_FORMAT, PackedStoreReader
from ..io.safe_zarr import ZarrReader
from ..io.stream import Source
from ..parallel import Workers
from ..table import Names, Picture
from .budget import Memory, checked
from .code_cache import Codes, Scratch
from .memory import chunk_rows, run_pass_on_chunks
from .source import PartialPass


class Store:
    """A table on disk, larger than memory perhaps: packed bits with names in a Zarr store, as `bitatoms.pack` makes it.

    Parameters
    ----------
    path : str or path-like
        The folder. Opening it reads none of the rows.

    Attributes
    ----------
    path : Path
    path : Path
        The folder; ``name`` is what it was called.
    shape : tuple of int
        Number of rows and of columns; also ``n_rows`` and ``n_features``.
    columns : tuple of str or None
        Names of the columns.
    picture : Picture or None
        Height and width of the picture that each row is.
    about : dict
        Where the rows came from, as `bitatoms.pack` noted it.
    has_row_names : bool

    Raises
    ------
    FileError
        It is no packed store, was not written to its end, or is damaged. A chunk that is lost or damaged is named when
        it is read.

    Examples
    --------
    >>> import bitatoms as ba
    >>> store = ba.pack([[1, 0, 1], [0, 1, 1]], "small.zarr")
    >>> store
    Store('small.zarr', 2 x 3)
    >>> next(store.pieces()).to_dense()
    array([[1, 0, 1],
           [0, 1, 1]], dtype=uint8)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.abspath(path))  # the folder that is worked in may change
        self.name = os.fspath(path)
        source = Source(self.path, "zarr", self.name)
        if not self.path.exists():
            raise source.error("there is no such store")
        how = f"bitatoms.pack({os.fspath(path)!r}, 'packed.zarr') makes one of it"
        if not self.path.is_dir():
            raise source.error(f"this is a file, and a packed store is a folder; {how}")
        load_reader("zarr", source.name)  # or the error that says how to get it
        with source.catch_library_errors():
            reader = ZarrReader(source)
            about = dict(reader.root.attrs).get(METADATA_KEY)
            if not isinstance(about, dict) or about.get("format") != TABLE_FORMAT:
                raise source.error(f"this is no packed store of bitatoms; {how}")
            self._packed = PackedStoreReader(reader, about)
        self.n_rows, self.n_features = self._packed.n_rows, self._packed.n_cols
        self.columns: Names | None = self._packed.columns
        self.picture: Picture | None = self._packed.picture
        self.about: dict[str, Any] = self._packed.about
        self.has_row_names = self._packed.has_names

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return self.n_rows, self.n_features

    def pieces(self, n_rows: int | None = None, start: int = 0) -> Iterator[BitMatrix]:
        """The rows in their order, some at a time.

        Parameters
        ----------
        n_rows : int, optional
            How many at a time, rounded up to a multiple of 64; the last piece may have fewer. By default as many as
            take four megabytes. However the store is cut into chunks, the pieces are the same.
        start : int, default=0
            The row to begin with.

        Yields
        ------
        BitMatrix
        """
        size = chunk_rows(self.n_features) if n_rows is None else max(64, -(-n_rows // 64) * 64)
        return self._packed.iter_chunks(size, start)

    def take(self, rows: ArrayLike) -> BitMatrix:
        """The rows of these numbers, which must rise; each chunk that has some of them is read once.

        Parameters
        ----------
        rows : array-like of int

        Returns
        -------
        BitMatrix of shape (len(rows), n_features)
        """
        given = np.asarray(rows)
        if given.size and given.dtype.kind not in "iu":
            raise TypeError(f"rows are taken by their numbers, not by values of the type {given.dtype}")
        chosen = given.astype(np.int64)
        if chosen.ndim != 1 or (chosen[1:] < chosen[:-1]).any():
            raise ValueError("rows are taken by a 1-D list of their numbers, in rising order")
        if len(chosen) and not 0 <= chosen[0] <= chosen[-1] < self.n_rows:
            wrong = chosen[0] if chosen[0] < 0 else chosen[-1]
            raise IndexError(f"row {wrong} is out of range for a store of {self.n_rows} rows")
        return self._packed.take(chosen)

    def row_names(self, start: int = 0, stop: int | None = None) -> list[str] | None:
        """The names of the rows from ``start`` on and before ``stop``; None where rows have no names."""
        first, last, _ = slice(start, stop).indices(self.n_rows)
        return self._packed.names(first, max(first, last))

    def fingerprint(self) -> str:
        """Some letters that tell this store from others, made of the checksums of its chunks."""
        return self._packed.fingerprint()

    def memory(self, max_memory: int | None, workers: Workers) -> Memory:
        """What so much memory leaves for work on this store."""
        read = min(self._packed.read_bytes, self.n_rows * -(-self.n_features // 8))
        return Memory(checked(max_memory), self.n_features, workers.n_threads, read)

    def __len__(self) -> int:
        return self.n_rows

    def __reduce__(self) -> tuple[Any, ...]:
        return Store, (self.path,)

    def __repr__(self) -> str:
        return f"Store({self.name!r}, {self.n_rows} x {self.n_features})"


class StoreRows:
    """The rows of a store as learning sees them (`RowSource`): read in order while threads work on those before.

    Parameters
    ----------
    store : Store
    workers : Workers
        Whose threads work on the pieces.
    max_memory : int, optional
        Bytes that rows, codes and counts may take together; 512 MiB by default. It does not change what is found.
    scratch : path-like, optional
        A folder that is there, for the codes to be kept in so that another process can go on with a pass. Without one
        they are in memory where they take little of it, else in a temporary folder, which is removed.
    """

    keep_every = 30.0  # seconds between two notes of how far a pass has come

    def __init__(
        self,
        store: Store,
        workers: Workers,
        max_memory: int | None = None,
        scratch: str | os.PathLike[str] | None = None,
    ) -> None:
        self.store = store
        self.n_rows, self.n_features = store.shape
        self.whole: BitMatrix | None = None
        self._workers = workers
        self._memory = store.memory(max_memory, workers)
        self._memory.chunk_rows(n_atoms=1)  # refused now, not after a search, where nothing would do
        if scratch is not None and not Path(scratch).is_dir():
            raise FileError(f"{os.fspath(scratch)}: there is no such folder to keep codes in; make it first")
        self._scratch = Scratch(None if scratch is None else Path(scratch), self.n_rows)

    def take(self, rows: NDArray[np.int64]) -> BitMatrix:
        """These rows, to be searched."""
        self._memory.check_search(len(rows))
        return self.store.take(rows)

    def run_pass(
        self,
        order: PassSpec,
        codes: Codes | None,
        number: int,
        partial: PartialPass | None,
        keep: Callable[[PartialPass], None],
    ) -> tuple[Codes, Counts]:
        """A pass over all rows; its codes are kept, and the next goes on from them."""
        n_atoms = order.atoms.n_rows
        size = self._workers.chunk_rows or self._memory.chunk_rows(n_atoms)
        in_memory = self._memory.holds_codes(self.n_rows, n_atoms)
        after, row = self._scratch.begin(number, n_atoms, partial.next_row if partial else 0, in_memory)
        total = partial.counts.copy() if partial and row else Counts.none(n_atoms, self.n_features)
        before = None if order.kept is None else codes
        noted = time.monotonic()
        try:
            work = run_pass_on_chunks(self._pieces(size, row, before), order, self._workers)
            with closing(cast(Generator[tuple[BitMatrix, Counts]], work)) as done:
                for some, counts in done:
                    after.put(row, some)
                    total = total.add(counts)
                    row += len(some)
                    if self._scratch.lasts and row < self.n_rows and time.monotonic() - noted >= self.keep_every:
                        after.sync()
                        keep(PartialPass(row, total.copy()))
                        noted = time.monotonic()
            if self._scratch.lasts:
                after.sync()
        finally:
            for kept in (before, after):
                if kept is not None:
                    kept.rest()
        return after, total

    def _pieces(self, size: int, start: int, codes: Codes | None) -> Iterator[tuple[BitMatrix, BitMatrix | None]]:
        """The rows from ``start`` on, with the codes they have."""
        for data in self.store.pieces(size, start):
            yield data, None if codes is None else codes.take(start, len(data))
            start += len(data)

    def fingerprint(self) -> str:
        """Some letters that tell these rows from others."""
        return self.store.fingerprint()

    def codes_of(self, number: int) -> Codes | None:
        """The codes that a pass of an earlier process left in the folder for them, where they are whole."""
        return self._scratch.found(number)

    def forget(self, keep: set[int]) -> None:
        """Remove the codes of all passes but these from the folder for them."""
        self._scratch.forget(keep)

    def close(self) -> None:
        """Remove what was only for these passes; also done when this object goes."""
        self._scratch.close()


def check_memory(
    store: Store, workers: Workers, max_memory: int | None, n_searched: int, n_atoms: int | None = None
) -> None:
    """Refuse, before anything is done, a limit within which so many rows cannot be searched, nor all gone through."""
    memory = store.memory(max_memory, workers)
    memory.check_search(min(n_searched, store.n_rows))
    memory.chunk_rows(n_atoms or 1)
