"""Rows that are not in memory: whether X has such rows, how they are opened, and the rows of a store (`StoreRows`).

The codes of all rows between passes are in memory where they are small, otherwise in files, which are written and read
in the order of the rows. They are not memory-mapped, because mapped pages count as memory of the process.
"""

from __future__ import annotations

import os
import re
import shutil
import struct
import tempfile
import time
import weakref
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..bits import BitMatrix
from ..engine.counts import Counts
from ..engine.pass_spec import PassSpec
from ..errors import InputError, Parameter
from ..io.atomic import is_zarr_store
from ..io.errors import FileError
from ..model.complete_rows import MemberCounts
from ..parallel import Workers
from ..parameters import DeviceChoice
from ..sparse_bits import SparseBits, is_smaller_sparse, stack_bits
from ..table import Header, Picture
from .checkpoint import make_folder
from .source import PartialPass, RowSource, SavePartial, describe_chunks, pass_rows, run_pass_on_chunks
from .store import Store, memory_budget

_HEADER = struct.Struct("<8sQQQQQ")  # magic, version, rows, atoms, rows on disk and their checksum
_MAGIC, _VERSION = b"bitcodes", 2
_READ_BYTES = 1 << 22
_NAME = re.compile(r"codes-(\d{1,9})\.bin")


class OpenedRows(NamedTuple):
    """Rows to learn from, and what is known about their columns."""

    rows: RowSource
    header: Header
    picture: Picture | None = None


def is_dask(X: Any) -> bool:
    """Return whether X is a Dask array or data frame."""
    return validation.package_name(X) in ("dask", "dask_expr")


def is_out_of_core(X: Any) -> bool:
    """Return whether the rows of X are not in memory."""
    return is_dask(X) or isinstance(X, Store) or validation.package_name(X) == "zarr" or _is_store_path(X)


def _is_store_path(X: Any) -> bool:
    return isinstance(X, (str, os.PathLike)) and is_zarr_store(Path(X))


def as_store(X: Any, binarize: float | None = None) -> Store | None:
    """Return X as a store if it is one, the path of one, or a zarr group that is one; otherwise None."""
    store = X if isinstance(X, Store) else None
    if _is_store_path(X):
        store = Store(X)
    elif validation.package_name(X) == "zarr":
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
) -> Iterator[OpenedRows]:
    """Open the rows of X to learn from; temporary files are removed on exit. Workers of Dask choose their device."""
    store = as_store(X, binarize)
    if store is None:
        from .dask import DaskRows
        from .dask_transform import column_names

        rows = DaskRows(X, binarize, client, device)
        yield OpenedRows(rows, Header(rows.n_features, column_names(X)))
        return
    if code_folder is not None:
        make_folder(Path(code_folder))
    with closing(StoreRows(store, workers, max_memory, code_folder)) as store_rows:
        picture = None if store.picture is None else Picture(store.picture.tile)
        yield OpenedRows(store_rows, store.header, picture)


class StoreRows(RowSource):
    """The rows of a store, read in order while threads process earlier chunks.

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
        total = partial.counts.copy() if partial and row else Counts.none(*spec.atoms.shape, spec.voted)
        before = None if spec.kept is None else codes
        persistent = after if self._cache.is_persistent and isinstance(after, FileCodes) else None
        saved_at = time.monotonic()
        try:
            workers = replace(self._workers, deadline=deadline)
            with closing(run_pass_on_chunks(self._chunks(size, row, before), spec, workers)) as results:
                for chunk_codes, counts in results:
                    after.write(row, chunk_codes)
                    total = total.add(counts)
                    row += len(chunk_codes)
                    is_due = time.monotonic() - saved_at >= self.save_interval
                    if save is not None and persistent is not None and row < self.n_rows and is_due:
                        persistent.sync()
                        save(PartialPass(row, total.copy()))
                        saved_at = time.monotonic()
            if persistent is not None:
                persistent.sync()
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

    def count_members(self, spec: PassSpec) -> MemberCounts:
        """Count the rows that have all features of the atoms of a pass, or all but one, and hash all rows."""
        size = self._workers.chunk_rows or pass_rows(self._budget, spec)
        return describe_chunks(self.store.chunks(size), spec, self._workers)

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


class MemoryCodes:
    """The codes of all rows that a pass computed, in memory."""

    def __init__(self, n_rows: int, n_atoms: int) -> None:
        self._words, self._n_atoms = np.empty((n_rows, -(-n_atoms // 64)), np.uint64), n_atoms

    def write(self, start: int, codes: BitMatrix) -> None:
        """Write the codes of the rows from ``start`` on."""
        self._words[start : start + len(codes)] = codes.words

    def read(self, start: int, n_rows: int) -> BitMatrix:
        """Return the codes of ``n_rows`` rows from ``start`` on."""
        return BitMatrix.from_words(self._words[start : start + n_rows], self._n_atoms, check=False)

    def close(self) -> None:
        """Do nothing."""


class FileCodes:
    """The same in a file: a header, then the words of each row."""

    def __init__(self, path: Path, n_rows: int, n_atoms: int) -> None:
        self._path, self._n_rows, self._n_atoms = path, n_rows, n_atoms
        self._row_bytes = 8 * -(-n_atoms // 64)
        self._file: int | None = None
        self._checksum = self._end = 0  # of the rows written so far

    @classmethod
    def open_complete(cls, path: Path, n_rows: int, n_atoms: int) -> FileCodes | None:
        """Return the codes that an earlier process wrote for all rows, or None if they are missing or corrupt."""
        try:
            with open(path, "rb") as file:
                codes = cls(path, n_rows, n_atoms)
                return codes if codes._has_rows(file, n_rows) else None
        except OSError:
            return None

    def prepare(self, start: int) -> int:
        """Keep the rows before ``start`` of an earlier process and return ``start``, or 0 if they are not intact."""
        with self._raising_file_errors():
            if start and self._path.is_file():
                with open(self._path, "r+b") as file:
                    if self._has_rows(file, start):
                        file.truncate(self._offset(start))
                        file.seek(0)
                        file.write(self._header(start))
                        return start
            self._checksum = 0
            with open(self._path, "wb") as file:
                file.write(self._header(0))
        return 0

    def _header(self, n_synced: int) -> bytes:
        return _HEADER.pack(_MAGIC, _VERSION, self._n_rows, self._n_atoms, n_synced, self._checksum)

    def _has_rows(self, file: IO[bytes], stop: int) -> bool:
        """Return whether the rows before ``stop`` are intact, and if so take over their checksum."""
        file.seek(0)
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size:
            return False
        *kind, n_synced, expected = _HEADER.unpack(header)
        if kind != [_MAGIC, _VERSION, self._n_rows, self._n_atoms] or not stop <= n_synced <= self._n_rows:
            return False
        checksum = checksum_at_stop = 0
        for end in (stop, n_synced):
            left = self._offset(end) - file.tell()
            while left:
                data = file.read(min(left, _READ_BYTES))
                if not data:
                    return False
                checksum, left = zlib.crc32(data, checksum), left - len(data)
            checksum_at_stop = checksum if end == stop else checksum_at_stop
        self._checksum, self._end = checksum_at_stop, stop
        return checksum == expected

    def write(self, start: int, codes: BitMatrix) -> None:
        """Write the codes of the rows from ``start`` on."""
        with self._raising_file_errors():
            file = self._open()
            os.lseek(file, self._offset(start), os.SEEK_SET)
            left = _buffer(codes.words.astype("<u8", copy=False))
            self._checksum, self._end = zlib.crc32(left, self._checksum), start + len(codes)
            while left:
                left = left[os.write(file, left) :]

    def read(self, start: int, n_rows: int) -> BitMatrix:
        """Return the codes of ``n_rows`` rows from ``start`` on."""
        words = np.empty((n_rows, self._row_bytes // 8), "<u8")
        if words.size:
            with self._raising_file_errors("read"):
                file = self._open()
                os.lseek(file, self._offset(start), os.SEEK_SET)
                left = _buffer(words)
                while left:
                    data = os.read(file, len(left))
                    if not data:
                        raise FileError(f"{self._path}: truncated: row {start} and later ones are missing; fit again")
                    left[: len(data)] = data
                    left = left[len(data) :]
        return BitMatrix.from_words(words.astype(np.uint64, copy=False), self._n_atoms, check=False)

    def sync(self) -> None:
        """Make sure that what was written is on disk."""
        with self._raising_file_errors():
            file = self._open()
            os.lseek(file, 0, os.SEEK_SET)
            os.write(file, self._header(self._end))
            os.fsync(file)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __del__(self) -> None:
        self.close()

    def _offset(self, row: int) -> int:
        """Return the offset in the file of the codes of a row."""
        return _HEADER.size + row * self._row_bytes

    def _open(self) -> int:
        if self._file is None:
            self._file = os.open(self._path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        return self._file

    def _raising_file_errors(self, action: str = "written") -> AbstractContextManager[None]:
        return _raising_file_errors(self._path.parent, self._offset(self._n_rows), action)


def _buffer(words: NDArray[Any]) -> memoryview:
    """Return the bytes of words, without a copy."""
    return memoryview(words.reshape(-1).view(np.uint8))  # type: ignore[arg-type]  # an array is a buffer


@contextmanager
def _raising_file_errors(folder: Path, n_bytes: int, action: str) -> Iterator[None]:
    """Raise errors of the operating system as FileErrors that state how much space is needed."""
    try:
        yield
    except OSError as error:
        raise FileError(
            f"{folder}: the codes of all rows cannot be {action}: {error.strerror or error}; free some space (the "
            f"codes of two passes take {2 * n_bytes / 2**20:.1f} MiB), or choose a folder on another disk with ",
            Parameter("checkpoint"),
            " or the environment variable TMPDIR",
        ) from error


Codes = MemoryCodes | FileCodes


class CodeCache:
    """The codes of the passes: in memory, or in a folder with one file per pass.

    Parameters
    ----------
    folder : Path or None
        A folder in which the files outlive the process. Without one, a temporary folder is made when it is first
        needed, and removed with this object.
    n_rows : int
        Number of rows of the table.
    """

    def __init__(self, folder: Path | None, n_rows: int) -> None:
        self._n_rows = n_rows
        self.is_persistent = folder is not None
        self._folder = folder
        self._live: weakref.WeakValueDictionary[int, FileCodes] = weakref.WeakValueDictionary()
        self._remove_folder: weakref.finalize | None = None

    def create(self, number: int, n_atoms: int, start: int, in_memory: bool) -> tuple[Codes, int]:
        """Return codes for a pass to write, and the row to continue at: ``start`` if earlier rows are intact, or 0."""
        if in_memory and not self.is_persistent:
            return MemoryCodes(self._n_rows, n_atoms), 0
        self.discard({number - 1, number, *self._live})
        codes = FileCodes(self._path(number), self._n_rows, n_atoms)
        start = codes.prepare(start)
        self._live[number] = codes
        return codes, start

    def load(self, number: int, n_atoms: int) -> FileCodes | None:
        """Return the codes that a pass of an earlier process wrote, or None if they are missing or corrupt."""
        if not self.is_persistent:
            return None
        codes = FileCodes.open_complete(self._path(number), self._n_rows, n_atoms)
        if codes is not None:
            self._live[number] = codes
        return codes

    def discard(self, keep: set[int]) -> None:
        """Remove the files of all passes but these."""
        if self._folder is None:
            return
        for name in os.listdir(self._folder):
            match = _NAME.fullmatch(name)
            if match and int(match[1]) not in keep:
                (self._folder / name).unlink(missing_ok=True)

    def close(self) -> None:
        """Remove the temporary folder, if there is one."""
        if self._remove_folder is not None:
            for codes in list(self._live.values()):
                codes.close()
            self._remove_folder()
            self._remove_folder = self._folder = None

    def _path(self, number: int) -> Path:
        if self._folder is None:
            with _raising_file_errors(Path(tempfile.gettempdir()), 0, "written"):
                self._folder = Path(tempfile.mkdtemp(prefix="bitatoms-"))
            self._remove_folder = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder / f"codes-{number}.bin"
