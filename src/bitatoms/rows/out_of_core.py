"""Rows that are not in memory: whether X has such rows, how they are opened, and the rows of a store (`StoreRows`)."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bits import BitMatrix
from ..cell_values import package_name
from ..columns.table import Header, Picture
from ..errors import InputError, Parameter
from ..io.atomic import is_zarr_store
from ..io.errors import FileError
from ..parallel import Workers
from ..run_options import DeviceChoice
from ..sparse_bits import SparseBits, is_smaller_sparse, sparse, stack_bits
from .checkpoint import make_folder
from .code_file import CodeFile, raising_file_errors
from .source import ChunkedRows, Codes, RowSource
from .store import Store, memory_budget

_NAME = re.compile(r"codes-(\d{1,9})\.bin")


def is_dask(X: Any) -> bool:
    """Return whether X is a Dask array or data frame."""
    return package_name(X) in ("dask", "dask_expr")


def is_out_of_core(X: Any) -> bool:
    """Return whether the rows of X are not in memory."""
    return is_dask(X) or isinstance(X, Store) or package_name(X) == "zarr" or _is_store_path(X)


def _is_store_path(X: Any) -> bool:
    return isinstance(X, (str, os.PathLike)) and is_zarr_store(Path(X))


def as_store(X: Any, binarize: float | None = None) -> Store | None:
    """Return X as a store if it is one, the path of one, or a zarr group that is one; otherwise None."""
    store = X if isinstance(X, Store) else None
    if _is_store_path(X):
        store = Store(X)
    elif package_name(X) == "zarr":
        root = getattr(X.store, "root", None)
        if root is None:
            raise FileError("the zarr group is not a folder on disk; write its rows to one with bitatoms.pack")
        store = Store(Path(root) / X.path)
    if store is not None and binarize is not None and not 0 <= binarize < 1:
        raise InputError(
            "a packed store contains only 0 and 1, none of which is above ",
            Parameter("binarize", binarize),
            "; pass it to bitatoms.pack instead",
        )
    return store


@contextmanager
def open_rows(
    X: Any,
    binarize: float | None,
    workers: Workers,
    max_memory: int | None,
    code_folder: str | os.PathLike[str] | None,
    client: Any = None,
    device: DeviceChoice = "cpu",
) -> Iterator[tuple[RowSource, Header, Picture | None]]:
    """Open the rows of X to learn from; temporary files are removed on exit. Workers of Dask choose their device.

    The rows, their columns, and the tile of pictures are yielded.
    """
    store = as_store(X, binarize)
    if store is None:
        from .dask import DaskRows
        from .dask_transform import column_names

        rows = DaskRows(X, binarize, client, device)
        yield rows, Header(rows.n_features, column_names(X)), None
        return
    if code_folder is not None:
        make_folder(Path(code_folder))
    with closing(StoreRows(store, workers, max_memory, code_folder)) as store_rows:
        picture = None if store.picture is None else Picture(store.picture.tile)
        yield store_rows, store.header, picture


class StoreRows(ChunkedRows):
    """The rows of a store.

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

    def __init__(
        self,
        store: Store,
        workers: Workers,
        max_memory: int | None = None,
        code_folder: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(store.shape, workers, memory_budget(store, max_memory, workers), max_memory is not None)
        self.store = store
        if store.n_ones is None:
            self._budget.chunk_rows(n_atoms=1)  # raise now, not after a search
        self._is_persistent = code_folder is not None
        self._folder = None if code_folder is None else Path(code_folder)  # of the files of codes, one per pass
        self._remove_folder: weakref.finalize | None = None  # if the folder is temporary

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
            chunks.append(sparse(chunk))
        if self._is_limited:
            self._budget.check_ones(self.n_rows, n_ones)
        return stack_bits(chunks, self.n_features)

    def take(self, rows: NDArray[np.int64]) -> BitMatrix:
        """Return the rows with these indices, to be searched."""
        return self.store.take(rows)

    def _chunks(self, n_rows: int, start: int = 0) -> Iterator[BitMatrix]:
        return self.store.chunks(n_rows, start)

    def code_chunks(self, codes: Codes, n_atoms: int, atoms: NDArray[np.intp]) -> Iterator[BitMatrix]:
        """Yield the codes that a pass with ``n_atoms`` atoms returned, of some of the atoms, in chunks of rows."""
        size = self._budget.chunk_rows(n_atoms, counts_votes=False, largest_group=(0, 0))  # nothing is coded
        for start in range(0, self.n_rows, size):
            yield codes[start : start + size].take_columns(atoms)

    def fingerprint(self) -> str:
        """Return a hash that identifies the rows."""
        return self.store.fingerprint()

    def load_codes(self, number: int, n_atoms: int) -> CodeFile | None:
        """Return the codes of a pass of an earlier process, or None if they are missing or corrupt."""
        if not self._is_persistent:
            return None
        codes = CodeFile(self._path(number), self.n_rows, n_atoms)
        return codes if codes.has_rows(self.n_rows) else None

    def discard_codes(self, keep: set[int]) -> None:
        """Remove the files with the codes of all passes but these."""
        if self._folder is None:
            return
        for name in os.listdir(self._folder):
            match = _NAME.fullmatch(name)
            if match and int(match[1]) not in keep:
                (self._folder / name).unlink(missing_ok=True)

    def close(self) -> None:
        """Remove temporary files; this also happens when the object is garbage-collected."""
        if self._remove_folder is not None:
            self._remove_folder()
            self._remove_folder = self._folder = None

    def _code_file(self, number: int, n_atoms: int) -> CodeFile | None:
        """Return a file for the codes of a pass; None if they are kept in memory."""
        if not self._is_persistent and self._budget.holds_codes(self.n_rows, n_atoms):
            return None
        return CodeFile(self._path(number), self.n_rows, n_atoms)

    def _path(self, number: int) -> Path:
        """Return the file for the codes of a pass; a temporary folder is made when it is first needed."""
        if self._folder is None:
            with raising_file_errors(Path(tempfile.gettempdir()), 0, "written"):
                self._folder = Path(tempfile.mkdtemp(prefix="bitatoms-"))
            self._remove_folder = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder / f"codes-{number}.bin"
