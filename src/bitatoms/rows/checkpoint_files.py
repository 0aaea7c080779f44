"""The files of a checkpoint: arrays and JSON, as in a model file, written atomically and checked when they are read.

The states of a search (`StateFiles`) are in one file per start, which is replaced as a whole when that is due, so that
writing takes a few percent of the time at most. When it happens has no influence on the search.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from operator import index
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from .._version import __version__
from ..bits import BitMatrix
from ..engine.codelength import Codelength
from ..errors import Parameter
from ..formatting import quoted
from ..io.atomic import atomic_write
from ..io.errors import FileError
from ..io.npz import METADATA_KEY, NpzReader, check_metadata_int, encode_metadata, open_npz, write_npz
from ..io.stream import Source
from ..search.states import SavedStates, State

Restored = TypeVar("Restored")

GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
Arrays = dict[str, NDArray[Any]]

KIND = "bitatoms search states"
VERSION = 1
_MIN_SECONDS = 60.0  # between two writes of a start
_MAX_WRITING = 0.02  # share of the time that writing may take
_NAME = re.compile(r"search-(?:xor|or)-[1-9]\d{0,8}\.npz")


class CheckpointFile:
    """One file of a checkpoint.

    Parameters
    ----------
    path : Path
    kind : str
        The format in its metadata.
    version : int
        The version of the format that is written, and the only one that is read.
    """

    def __init__(self, path: Path, kind: str, version: int) -> None:
        self.path, self._kind, self._version = path, kind, version
        self._source = Source(path, "npz", os.fspath(path))

    @contextmanager
    def reading(self) -> Iterator[tuple[NpzReader, dict[str, Any]]]:
        """Open the file and yield it with its JSON; errors are raised as one-line FileErrors."""
        hint = "; move this file away, or choose another folder, to start over"
        try:
            with open_npz(self._source) as file:
                yield file, file.read_metadata(self._kind, self._version, "")
        except FileError as error:
            raise FileError(*error.args, hint) from error
        except OSError as error:
            raise self._source.error(f"cannot be read: {error.strerror or error}{hint}") from error
        except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError) as error:
            reason = " ".join(str(error).split())[:200]
            raise self._source.error(f"corrupt checkpoint: {reason}{hint}") from error

    def write(self, entries: Mapping[str, Any], arrays: Arrays, has_previous: bool) -> None:
        """Replace the file, atomically; if that fails, the error says whether there is a previous checkpoint."""
        head = {"format": self._kind, "version": self._version, "bitatoms": __version__}
        content = encode_metadata({**head, **entries})
        try:
            with atomic_write(self.path) as path:
                write_npz(path, {METADATA_KEY: content, **arrays}, compressed=False)  # compressing takes longer
                with open(path, "rb+") as file:
                    os.fsync(file.fileno())
        except FileError as error:
            if not has_previous:
                raise
            raise FileError(
                *error.args,
                ". The previous checkpoint is intact; fix the problem, then pass ",
                Parameter("resume", True),
            ) from error
        _sync_folder(self.path.parent)


def _sync_folder(folder: Path) -> None:
    """Sync a folder, so that a rename in it survives a power failure."""
    if sys.platform != "win32":
        with suppress(OSError):  # some file systems can sync only files
            file = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(file)
            finally:
                os.close(file)


def generator_in(state: dict[str, Any]) -> np.random.Generator:
    """Return a generator in a saved state."""
    name, position, key_position = state["bit_generator"], state.get("buffer_pos", 0), state["state"].get("pos", 0)
    if name not in GENERATORS or not (0 <= position <= 4 and 0 <= key_position <= 624):  # NumPy does not check these
        raise ValueError(f"invalid state of a random generator of type {quoted(str(name))}")
    bit_generator = getattr(np.random, name)()
    bit_generator.state = state
    return np.random.Generator(bit_generator)


class StateFiles:
    """Keeps the states of searches, in files of a folder; several threads may use it.

    Parameters
    ----------
    folder : Path
    min_seconds : float
        Between two writes of a start.
    """

    def __init__(self, folder: Path, min_seconds: float = _MIN_SECONDS) -> None:
        self.folder, self.min_seconds = folder, min_seconds
        self._fit = ""  # identifies the fit
        self._paths = {path for path in folder.iterdir() if _NAME.fullmatch(path.name)}
        self._resumed: set[Path] = set()  # written by an earlier process
        self._pending: dict[str, Callable[[], SavedStates]] = {}  # states that are not written yet
        self._written: dict[str, float] = {}  # when the states of each start were written
        self._opened, self._write_seconds = time.perf_counter(), 0.0
        self._lock = threading.RLock()

    @property
    def has_files(self) -> bool:
        """Whether states were written."""
        return bool(self._paths)

    def begin(self, fit: str) -> None:
        """Begin a fit, without the states of an earlier one."""
        self._fit = fit
        self.clear()

    def resume(self, fit: str) -> None:
        """Resume a fit from its states."""
        self._fit, self._resumed = fit, set(self._paths)

    def load(self, name: str, restore: Callable[[SavedStates], Restored]) -> Restored | None:
        """Return what is restored from the states that an earlier process saved of a start, or None."""
        if self._file(name).path not in self._resumed:
            return None
        with self._file(name).reading() as (file, entries):
            if entries["fit"] != self._fit:
                raise FileError(f"{self._file(name).path}: this file belongs to another fit")
            return restore(_from_file(file, entries))

    def save(self, name: str, saved: Callable[[], SavedStates]) -> None:
        """Keep the states of a start, which are written when that is due."""
        with self._lock:
            self._pending[name] = saved
            if self.is_due(name):
                self._write(name)

    def is_due(self, name: str) -> bool:
        """Return whether enough time has passed since the states of a start were written."""
        seconds = time.perf_counter() - self._written.get(name, self._opened)
        return seconds >= max(self.min_seconds, self._write_seconds / _MAX_WRITING)

    def flush(self) -> None:
        """Write the states that are not written yet."""
        with self._lock:
            for name in [*self._pending]:
                self._write(name)

    def clear(self) -> None:
        """Forget all states, and remove their files."""
        with self._lock:
            self._pending.clear()
            for path in self._paths:
                with suppress(OSError):
                    path.unlink()
            self._paths, self._resumed = set(), set()

    def _write(self, name: str) -> None:
        """Replace the file of a start."""
        start = time.perf_counter()
        arrays: Arrays = {}
        entries = _to_json(self._pending.pop(name)(), arrays)
        self._file(name).write({"fit": self._fit, **entries}, arrays, has_previous=True)
        self._paths.add(self._file(name).path)
        self._written[name] = time.perf_counter()
        self._write_seconds = self._written[name] - start

    def _file(self, name: str) -> CheckpointFile:
        return CheckpointFile(self.folder / f"search-{name.replace(' ', '-')}.npz", KIND, VERSION)


def _to_json(saved: SavedStates, arrays: Arrays) -> dict[str, Any]:
    """Return states as JSON values, and add their arrays to the others."""
    entries = []
    for i, state in enumerate(saved.states):
        for field in ("atoms", "codes", "bias"):
            arrays[f"{i} {field}"] = getattr(state, field).words
        arrays[f"{i} wrong"] = state.wrong
        length = state.codelength
        bits = [int(part) for part in (length.errors, length.codes, length.atoms)]
        shape = {"n_rows": state.codes.n_rows, "n_cols": state.atoms.n_cols}
        entries.append({"cost": int(state.cost), "bits": bits, **shape})
    for i, columns in enumerate(saved.columns):
        arrays[f"{i} columns"] = columns
    return {"states": entries, "ended": saved.ended, "has_columns": bool(saved.columns)}


def _from_file(file: NpzReader, entries: dict[str, Any]) -> SavedStates:
    """Return the states in a file."""
    states, columns = [], []
    for i, entry in enumerate(entries["states"]):
        n_rows, n_cols = (check_metadata_int(entry, name) for name in ("n_rows", "n_cols"))
        atoms = read_bits(file, f"{i} atoms", None, n_cols)
        codes, bias = read_bits(file, f"{i} codes", n_rows, atoms.n_rows), read_bits(file, f"{i} bias", 1, n_cols)
        length = Codelength(*map(index, entry["bits"]))
        wrong = read_integers(file, f"{i} wrong", (n_cols,))
        states.append(State(index(entry["cost"]), atoms, codes, bias, wrong, length))
        if entries["has_columns"] is True:
            columns.append(read_integers(file, f"{i} columns", (n_cols,)).astype(np.intp))
    ended = entries["ended"]
    if ended is not None and not isinstance(ended, str):
        raise ValueError("its reason to end is not a text")
    return SavedStates(states, ended, columns)


def read_bits(file: NpzReader, name: str, n_rows: int | None, n_cols: int) -> BitMatrix:
    """Return packed rows, after checking their number unless that is None."""
    words = file.read_array(name).astype(np.uint64, casting="safe")
    if words.ndim != 2 or (n_rows is not None and len(words) != n_rows):
        raise ValueError(f"its {name} has shape {words.shape}")
    return BitMatrix(words, n_cols)


def read_integers(file: NpzReader, name: str, shape: tuple[int, ...], most: int = (1 << 63) - 1) -> NDArray[np.int64]:
    """Return an array of integers from 0 up, after checking its shape and its values."""
    values = file.read_array(name)
    if values.shape != shape or values.dtype.kind not in "iu":
        raise ValueError(f"its {name} has shape {values.shape} and type {values.dtype}, not shape {shape}")
    if values.size and not 0 <= values.min() <= values.max() <= most:
        raise ValueError(f"its {name} has values out of range")
    return values.astype(np.int64)
