"""Checkpoints: a folder in which a fit saves its progress, so that the same call can resume it.

The state is one file of arrays and JSON, as in a model file. It is written atomically: if the process or the machine
fails, the folder contains the previous state or the new one, complete. With rows in a store, `bitatoms.rows.code_cache`
writes the codes of the passes to the same folder.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from .._version import __version__
from ..errors import InputError, Parameter
from ..io.atomic import atomic_write, is_zarr_store, write_error
from ..io.errors import FileError
from ..io.locks import FileLocked, lock
from ..io.npz import METADATA_KEY, NpzReader, encode_metadata, open_npz
from ..io.stream import Source
from .checkpoint_state import state_from_file, state_to_json
from .passes import PassState

logger = logging.getLogger(__name__)

KIND = "bitatoms checkpoint"
VERSION = 1
_FILE, _LOCK = "state.npz", "lock"
_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")


class Checkpoint:
    """A folder in which a fit saves its state (a `Journal`). It is locked until it is closed or the process ends.

    Parameters
    ----------
    folder : str or path-like
        Created if it does not exist; its parent folder must exist.
    call : dict
        All that determines the result, as JSON values: parameters by name, ``n_samples``, ``n_features`` and a
        fingerprint of the rows. Only the same call can resume a fit.
    resume : bool
        Resume the fit in the folder, or start one if there is none.

    Raises
    ------
    FileError
        The folder cannot be written or is in use, contains the unfinished fit of another call, or an unfinished fit
        while ``resume`` is False, or its file is corrupt.

    Examples
    --------
    >>> import numpy as np
    >>> call = {"n_samples": 300, "n_features": 40, "n_components": 4}
    >>> with Checkpoint("fit", call, resume=False) as checkpoint:
    ...     first = checkpoint.random(np.random.default_rng()).random()
    >>> with Checkpoint("fit", call, resume=True) as checkpoint:
    ...     checkpoint.load() is None, checkpoint.random(np.random.default_rng()).random() == first
    (True, True)
    """

    def __init__(self, folder: str | os.PathLike[str], call: dict[str, Any], resume: bool) -> None:
        self.folder = Path(folder)
        self._path = self.folder / _FILE
        self._source = Source(self._path, "npz", os.fspath(self._path))
        self._call = json.loads(json.dumps({**call, "bitatoms": __version__}))
        self._shape: tuple[int, int] = self._call["n_samples"], self._call["n_features"]
        self._random_state: dict[str, Any] | None = None  # of the generator when the fit started
        self._generator: np.random.Generator | None = None  # in that state, if a fit is resumed
        self._has_state = False
        self._lock = _create_and_lock(self.folder)
        try:
            for left in self.folder.glob(f".{_FILE}.*.part"):  # left by a process that was killed
                shutil.rmtree(left, ignore_errors=True)
            if self._path.exists():
                self._open_existing(resume)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Unlock the folder."""
        self._lock.close()

    def _open_existing(self, resume: bool) -> None:
        """Resume the fit in the folder, ignore it if it is finished, or raise."""
        with self._reading() as (_, entries):
            call, state, random_state = entries["call"], entries["state"], entries["random"]
            generator = None if random_state is None else _generator_in(random_state)
            has_state, finished = state is not None, state is not None and state["finished"]
            names = [name for name in {**call, **self._call} if call.get(name) != self._call.get(name)]
        if not resume:
            if has_state and not finished:
                raise FileError(
                    f"{self.folder}: this folder contains an unfinished fit; pass ",
                    Parameter("resume", True),
                    f" to resume it, or delete {_FILE} from the folder to start over",
                )
        elif not names:
            self._has_state, self._random_state, self._generator = has_state, random_state, generator
        elif has_state:
            differences = [part for name in names[:4] for part in (", ", *_difference(call, self._call, name))]
            more = f" (and {len(names) - 4} more)" if len(names) > 4 else ""
            raise FileError(
                f"{self.folder}: this folder contains the fit of a different call: ",
                *differences[1:],
                f"{more}; repeat that call to resume it, or choose another folder",
            )

    def random(self, generator: np.random.Generator) -> np.random.Generator:
        """Return the generator of the fit: this one, whose state is saved, or the saved one if a fit is resumed."""
        if self._generator is not None:
            return self._generator
        state = generator.bit_generator.state
        if state["bit_generator"] not in _GENERATORS:
            raise InputError(
                Parameter("random_state"),
                f" of type {state['bit_generator']} cannot be saved in a checkpoint; pass an integer, or a Generator "
                f"of {', '.join(_GENERATORS)}",
            )
        self._random_state = json.loads(json.dumps(state, default=lambda array: array.tolist()))
        if not self._has_state:
            self._write(None)
        return generator

    def load(self) -> PassState | None:
        """Return the state saved last, or None."""
        if not self._has_state:
            return None
        with self._reading() as (file, entries):
            return state_from_file(file, entries["state"], self._shape)

    def save(self, state: PassState) -> None:
        """Replace the saved state."""
        self._write(state)
        self._has_state = True

    @contextmanager
    def _reading(self) -> Iterator[tuple[NpzReader, dict[str, Any]]]:
        """Open the file and yield it with its JSON; errors are raised as one-line FileErrors."""
        hint = "; move this file away, or choose another folder, to start over"
        try:
            with open_npz(self._source) as file:
                yield file, file.read_metadata(KIND, VERSION, "")
        except FileError as error:
            raise FileError(*error.args, hint) from error
        except OSError as error:
            raise self._source.error(f"cannot be read: {error.strerror or error}{hint}") from error
        except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError) as error:
            reason = " ".join(str(error).split())[:200]
            raise self._source.error(f"corrupt checkpoint: {reason}{hint}") from error

    def _write(self, state: PassState | None) -> None:
        """Replace the file."""
        entries, arrays = (None, {}) if state is None else state_to_json(state)
        head = {"format": KIND, "version": VERSION, "bitatoms": __version__}
        content = encode_metadata({**head, "call": self._call, "random": self._random_state, "state": entries})
        try:
            with atomic_write(self._path) as path:
                _write_arrays(path, {METADATA_KEY: content, **arrays})
        except FileError as error:
            if not self._path.exists():
                raise
            raise FileError(
                *error.args,
                ". The previous checkpoint is intact; fix the problem, then pass ",
                Parameter("resume", True),
            ) from error
        _sync_folder(self.folder)


def make_folder(folder: Path) -> None:
    """Make the folder of a checkpoint if it does not exist; its parent folder must exist."""
    if is_zarr_store(folder):
        raise FileError(f"{folder}: this is a Zarr store; a checkpoint needs a folder of its own")
    try:
        folder.mkdir(exist_ok=True)
    except FileExistsError as error:
        raise FileError(f"{folder}: this is a file, but a checkpoint is a folder; choose another name") from error
    except FileNotFoundError as error:
        raise FileError(f"{folder}: there is no folder {str(folder.parent)!r}; create it first") from error
    except OSError as error:
        raise write_error(folder, error) from error


def _create_and_lock(folder: Path) -> IO[bytes]:
    """Make the folder if needed and return its lock file, which stays locked while it is open."""
    make_folder(folder)
    try:
        file = open(folder / _LOCK, "ab")  # noqa: SIM115, closed by Checkpoint.close
    except OSError as error:
        raise write_error(folder / _LOCK, error) from error
    try:
        if not lock(file):
            logger.warning("%s: files cannot be locked here; make sure that no other process uses the folder", folder)
    except FileLocked as error:
        file.close()
        raise FileError(
            f"{folder}: another fit is using this folder; wait until it ends, or choose another folder"
        ) from error
    except OSError as error:
        file.close()
        raise write_error(folder / _LOCK, error) from error
    return file


def _write_arrays(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write arrays to an .npz file and sync it; uncompressed, because compressing takes longer than writing."""
    with open(path, "wb") as out:
        with zipfile.ZipFile(out, "w") as file:
            for name, values in arrays.items():
                with file.open(f"{name}.npy", "w", force_zip64=True) as member:
                    npy.write_array(member, values, allow_pickle=False)
        out.flush()
        os.fsync(out.fileno())


def _sync_folder(folder: Path) -> None:
    """Sync a folder, so that a rename in it survives a power failure."""
    if sys.platform != "win32":
        with suppress(OSError):  # some file systems can sync only files
            file = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(file)
            finally:
                os.close(file)


def _generator_in(state: dict[str, Any]) -> np.random.Generator:
    """Return a generator in a saved state."""
    name, position, key_position = state["bit_generator"], state.get("buffer_pos", 0), state["state"].get("pos", 0)
    if name not in _GENERATORS or not (0 <= position <= 4 and 0 <= key_position <= 624):  # NumPy does not check these
        raise ValueError(f"invalid state of a random generator of type {str(name)[:20]!r}")
    bit_generator = getattr(np.random, name)()
    bit_generator.state = state
    return np.random.Generator(bit_generator)


def _difference(before: dict[str, Any], now: dict[str, Any], name: str) -> tuple[str | Parameter, ...]:
    """Return how a value of two calls differs, as parts of a message."""
    if name == "rows":
        kinds = {str(call.get(name)).rpartition(":")[0] for call in (before, now)}
        another = " or are identified in another way, as by an earlier version of bitatoms" if len(kinds) > 1 else ""
        return (f"the rows differ{another}",)
    return Parameter(name), f" was {_as_text(before, name)} and is {_as_text(now, name)}"


def _as_text(call: dict[str, Any], name: str) -> str:
    return json.dumps(call[name], ensure_ascii=False)[:40] if name in call else "not given"
