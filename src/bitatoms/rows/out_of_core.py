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
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..bits import BitMatrix
from ..engine.counts import Counts
from ..engine.passes import PassSpec
from ..errors import InputError, Parameter
from ..io.atomic import is_zarr_store
from ..io.errors import FileError
from ..model.complete_rows import MemberCounts
from ..parallel import Workers
from ..parameters import DeviceChoice
from ..sparse_bits import SparseBits, is_smaller_sparse, stack_bits
from ..table import Header, Picture
from .checkpoint import make_folder
from .source import ONLY_PASS, PartialPass, PassRun, RowSource, describe_chunks, pass_rows, run_pass_on_chunks
from .store import Store, memory_budget

_HEADER = struct.Struct("<8sQQQQQ")  # magic, version, rows, atoms, rows on disk and their checksum
_MAGIC, _VERSION = b"bitcodes", 2
_READ_BYTES = 1 << 22
_NAME = re.compile(r"codes-(\d{1,9})\.bin")


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
        self._is_persistent = code_folder is not None
        self._folder = None if code_folder is None else Path(code_folder)  # of the files of codes, one per pass
        self._files: weakref.WeakValueDictionary[int, FileCodes] = weakref.WeakValueDictionary()
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

    def run_pass(self, spec: PassSpec, codes: Codes | None = None, run: PassRun = ONLY_PASS) -> tuple[Codes, Counts]:
        """Run a pass over all rows and return its codes and counts."""
        size, partial = self._workers.chunk_rows or pass_rows(self._budget, spec), run.partial
        after, row = self._new_codes(run.number, spec.atoms.n_rows, partial.next_row if partial else 0)
        total = partial.counts.copy() if partial and row else Counts.none(*spec.atoms.shape, spec.voted)
        before = None if spec.kept is None else codes
        saved_at = time.monotonic()
        try:
            workers = replace(self._workers, deadline=run.deadline)
            with closing(run_pass_on_chunks(self._chunks(size, row, before), spec, workers)) as results:
                for chunk_codes, counts in results:
                    after.write(row, chunk_codes)
                    total = total.add(counts)
                    row += len(chunk_codes)
                    is_due = time.monotonic() - saved_at >= self.save_interval
                    if run.save is not None and self._is_persistent and row < self.n_rows and is_due:
                        after.sync()
                        run.save(PartialPass(row, total.copy()))
                        saved_at = time.monotonic()
            if self._is_persistent:
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

    def count_members(self, spec: PassSpec) -> MemberCounts:
        """Count the rows that have all features of the atoms of a pass, or all but one, and hash all rows."""
        size = self._workers.chunk_rows or pass_rows(self._budget, spec)
        return describe_chunks(self.store.chunks(size), spec, self._workers)

    def code_chunks(self, codes: Codes, n_atoms: int, atoms: NDArray[np.intp]) -> Iterator[BitMatrix]:
        """Yield the codes that a pass with ``n_atoms`` atoms returned, of some of the atoms, in chunks of rows."""
        size = self._budget.chunk_rows(n_atoms, counts_votes=False, largest_group=(0, 0))  # nothing is coded
        try:
            for start in range(0, self.n_rows, size):
                yield codes.read(start, min(size, self.n_rows - start)).take_columns(atoms)
        finally:
            codes.close()

    def fingerprint(self) -> str:
        """Return a hash that identifies the rows."""
        return self.store.fingerprint()

    def load_codes(self, number: int, n_atoms: int) -> FileCodes | None:
        """Return the codes of a pass of an earlier process, or None if they are missing or corrupt."""
        if not self._is_persistent:
            return None
        codes = FileCodes(self._path(number), self.n_rows, n_atoms)
        if not codes.has_rows(self.n_rows):
            return None
        self._files[number] = codes
        return codes

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
            for codes in list(self._files.values()):
                codes.close()
            self._remove_folder()
            self._remove_folder = self._folder = None

    def _new_codes(self, number: int, n_atoms: int, start: int) -> tuple[Codes, int]:
        """Return codes for a pass to write, and the row to continue at: ``start`` if earlier rows are intact, or 0."""
        if not self._is_persistent and self._budget.holds_codes(self.n_rows, n_atoms):
            return MemoryCodes(self.n_rows, n_atoms), 0
        self.discard_codes({number - 1, number, *self._files})
        codes = self._files[number] = FileCodes(self._path(number), self.n_rows, n_atoms)
        return codes, codes.begin(start)

    def _path(self, number: int) -> Path:
        """Return the file for the codes of a pass; a temporary folder is made when it is first needed."""
        if self._folder is None:
            with _raising_file_errors(Path(tempfile.gettempdir()), 0, "written"):
                self._folder = Path(tempfile.mkdtemp(prefix="bitatoms-"))
            self._remove_folder = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder / f"codes-{number}.bin"


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

    def sync(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class FileCodes:
    """The same in a file: a header, then the words of each row."""

    def __init__(self, path: Path, n_rows: int, n_atoms: int) -> None:
        self._path, self._n_rows, self._n_atoms = path, n_rows, n_atoms
        self._row_bytes = 8 * -(-n_atoms // 64)
        self._file: int | None = None
        self._checksum = self._end = 0  # of the rows written so far

    def begin(self, start: int) -> int:
        """Keep the rows before ``start`` of an earlier process and return ``start``, or 0 if they are not intact."""
        with self._raising_file_errors():
            if start and self.has_rows(start):
                os.truncate(self._path, self._offset(start))
            else:
                start = self._checksum = self._end = 0
                self._path.write_bytes(b"")
            self._write_header()
        return start

    def has_rows(self, stop: int) -> bool:
        """Return whether the rows before ``stop`` are intact, and if so take over their checksum."""
        try:
            with open(self._path, "rb") as file:
                *kind, n_synced, expected = _HEADER.unpack(file.read(_HEADER.size))
                if kind != [_MAGIC, _VERSION, self._n_rows, self._n_atoms] or not stop <= n_synced <= self._n_rows:
                    return False
                self._checksum, self._end = _checksum(file, self._offset(stop), 0), stop
                return _checksum(file, self._offset(n_synced), self._checksum) == expected
        except (OSError, EOFError, struct.error):  # missing or truncated
            return False

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
            self._write_header()
            os.fsync(self._open())

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __del__(self) -> None:
        self.close()

    def _write_header(self) -> None:
        """Write how many rows are in the file, and their checksum."""
        file = self._open()
        os.lseek(file, 0, os.SEEK_SET)
        os.write(file, _HEADER.pack(_MAGIC, _VERSION, self._n_rows, self._n_atoms, self._end, self._checksum))

    def _offset(self, row: int) -> int:
        """Return the offset in the file of the codes of a row."""
        return _HEADER.size + row * self._row_bytes

    def _open(self) -> int:
        if self._file is None:
            self._file = os.open(self._path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        return self._file

    def _raising_file_errors(self, action: str = "written") -> AbstractContextManager[None]:
        return _raising_file_errors(self._path.parent, self._offset(self._n_rows), action)


Codes = MemoryCodes | FileCodes


def _buffer(words: NDArray[Any]) -> memoryview:
    """Return the bytes of words, without a copy."""
    return memoryview(words.reshape(-1).view(np.uint8))  # type: ignore[arg-type]  # an array is a buffer


def _checksum(file: IO[bytes], stop: int, checksum: int) -> int:
    """Return the checksum of a file up to an offset, given that of the part before; raise EOFError if it is shorter."""
    while left := stop - file.tell():
        data = file.read(min(left, _READ_BYTES))
        if not data:
            raise EOFError
        checksum = zlib.crc32(data, checksum)
    return checksum


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
