"""Checkpoints: a folder in which a fit keeps how far it has come, for the same call to go on from after it was stopped.

All of it is one file, arrays and JSON as in a model file, written beside its place and renamed when it is on the disk:
whenever the process or the machine dies, the file before or the new one is there, whole.
"""

from __future__ import annotations

import errno
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
from ..io.atomic import atomic_write, is_zarr_store, write_error
from ..io.errors import FileError
from ..io.npz import METADATA_KEY, NpzReader, encode_metadata, open_npz
from ..io.stream import Source
from .checkpoint_state import described, restored
from .passes import PassState

logger = logging.getLogger(__name__)

KIND = "bitatoms checkpoint"
VERSION = 1
_FILE, _LOCK = "state.npz", "lock"
_GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)  # of a file system that has none


class Checkpoint:
    """A folder in which a fit keeps its state: the Journal of `algorithms.sampling.learn`.

    It is this process's alone until it is closed, or the process ends.

    Parameters
    ----------
    folder : str or path-like
        It is made where it is not there; the folder it is in must be.
    call : dict
        What decides the result, as JSON can hold it: parameters by their names, ``n_samples`` and ``n_features``,
        something that tells the rows from others. Only the same call can go on.
    resume : bool
        Go on from what is there; where there is nothing, begin.

    Raises
    ------
    FileError
        The folder cannot be used or is in use, holds the unfinished fit of another call, or one that ``resume`` does
        not ask for, or its file is damaged.

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
        self._random: dict[str, Any] | None = None  # the state of the generator when the call began,
        self._generator: np.random.Generator | None = None  # and, in a call that goes on, one in this state
        self._holds_state = False
        self._lock = _made_and_locked(self.folder)
        try:
            for left in self.folder.glob(f".{_FILE}.*.part"):  # by a process that was killed
                shutil.rmtree(left, ignore_errors=True)
            if self._path.exists():
                self._look(resume)
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
        """Let others use the folder."""
        self._lock.close()

    def _look(self, resume: bool) -> None:
        """What the folder holds: go on from it, begin anew, or refuse."""
        with self._reading() as (_, about):
            call, state, random = about["call"], about["state"], about["random"]
            generator = None if random is None else _generator(random)
            begun, finished = state is not None, state is not None and state["finished"]
            names = [name for name in {**call, **self._call} if call.get(name) != self._call.get(name)]
        if not resume:
            if begun and not finished:
                raise FileError(
                    f"{self.folder}: holds an unfinished fit; pass resume=True to go on from it, or remove {_FILE} "
                    "in it to begin anew"
                )
        elif not names:
            self._holds_state, self._random, self._generator = begun, random, generator
        elif begun:
            changes = [_changed(call, self._call, name) for name in names[:4]]
            more = f" (and {len(names) - 4} more)" if len(names) > 4 else ""
            raise FileError(
                f"{self.folder}: holds the fit of another call: {', '.join(changes)}{more}; make the same call to go "
                "on from it, or choose another folder"
            )

    def random(self, generator: np.random.Generator) -> np.random.Generator:
        """The generator of a call that begins, which is kept; of one that goes on, that of the call that began."""
        if self._generator is not None:
            return self._generator
        state = generator.bit_generator.state
        if state["bit_generator"] not in _GENERATORS:
            raise ValueError(
                f"a checkpoint cannot keep a random_state of the kind {state['bit_generator']}; pass a whole number, "
                f"or a Generator of {', '.join(_GENERATORS)}"
            )
        self._random = json.loads(json.dumps(state, default=lambda array: array.tolist()))
        if not self._holds_state:
            self._write(None)
        return generator

    def load(self) -> PassState | None:
        """The state that was kept last, if any."""
        if not self._holds_state:
            return None
        with self._reading() as (file, about):
            return restored(file, about["state"], self._shape)

    def save(self, state: PassState) -> None:
        """Keep a state in place of the one before."""
        self._write(state)
        self._holds_state = True

    @contextmanager
    def _reading(self) -> Iterator[tuple[NpzReader, dict[str, Any]]]:
        """The file and what it says of itself; whatever is wrong with it is said in one line, with what to do."""
        todo = "move this file away, or choose another folder, to begin anew"
        try:
            with open_npz(self._source) as file:
                yield file, file.read_metadata(KIND, VERSION, "")
        except FileError as error:
            raise FileError(f"{error}; {todo}") from error
        except OSError as error:
            raise self._source.error(f"cannot be read: {error.strerror or error}; {todo}") from error
        except (KeyError, IndexError, TypeError, AttributeError, ValueError, OverflowError) as error:
            said = " ".join(str(error).split())[:200]
            raise self._source.error(f"a damaged checkpoint: {said}; {todo}") from error

    def _write(self, state: PassState | None) -> None:
        """Put a new file in place of the one before."""
        about, arrays = (None, {}) if state is None else described(state)
        head = {"format": KIND, "version": VERSION, "bitatoms": __version__}
        entries = encode_metadata({**head, "call": self._call, "random": self._random, "state": about})
        try:
            with atomic_write(self._path) as made:
                _write_whole(made, {METADATA_KEY: entries, **arrays})
        except FileError as error:
            if not self._path.exists():
                raise
            raise FileError(
                f"{error}: the last good checkpoint is still there; go on from it with resume=True when that is mended"
            ) from error
        _put_on_disk(self.folder)


def make_folder(folder: Path) -> None:
    """Make the folder of a checkpoint, where it is not there; the folder it is in must be."""
    if is_zarr_store(folder):
        raise FileError(f"{folder}: is a Zarr store, and a checkpoint is a folder of its own; choose another name")
    try:
        folder.mkdir(exist_ok=True)
    except FileExistsError as error:
        raise FileError(f"{folder}: is a file, and a checkpoint is a folder; choose another name") from error
    except FileNotFoundError as error:
        raise FileError(f"{folder}: there is no folder {str(folder.parent)!r}; make it first") from error
    except OSError as error:
        raise write_error(folder, error) from error


def _made_and_locked(folder: Path) -> IO[bytes]:
    """Make the folder if need be; the file in it that is locked while it is open, or this process lives."""
    make_folder(folder)
    try:
        file = open(folder / _LOCK, "ab")  # noqa: SIM115, it is kept
    except OSError as error:
        raise write_error(folder / _LOCK, error) from error
    try:
        _lock(file)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            logger.warning("%s: no file can be locked there; see to it that no other process uses it", folder)
            return file
        file.close()
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise write_error(folder / _LOCK, error) from error
        raise FileError(
            f"{folder}: another fit is using this folder; wait until it or its process ends, or choose another folder"
        ) from error
    return file


def _lock(file: IO[bytes]) -> None:
    """Lock a file, or raise where another has; the system unlocks it when it is closed or the process dies."""
    if sys.platform == "win32":
        import msvcrt

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _write_whole(path: Path, arrays: dict[str, NDArray[Any]]) -> None:
    """Write arrays into an .npz file, uncompressed, which would take longer than the disk; it is on the disk then."""
    with open(path, "wb") as out:
        with zipfile.ZipFile(out, "w") as file:
            for name, values in arrays.items():
                with file.open(f"{name}.npy", "w", force_zip64=True) as member:
                    npy.write_array(member, values, allow_pickle=False)
        out.flush()
        os.fsync(out.fileno())


def _put_on_disk(folder: Path) -> None:
    """Have the names in a folder on the disk too, where the system can: without, the old file may be there again."""
    if sys.platform != "win32":
        with suppress(OSError):  # some file systems have it for files only
            file = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(file)
            finally:
                os.close(file)


def _generator(kept: dict[str, Any]) -> np.random.Generator:
    """A generator in the state that was kept."""
    name, places = kept["bit_generator"], (kept.get("buffer_pos", 0), kept["state"].get("pos", 0))
    if name not in _GENERATORS or not (0 <= places[0] <= 4 and 0 <= places[1] <= 624):  # NumPy does not look
        raise ValueError(f"its random numbers are of the kind {str(name)[:20]!r}, or out of place")
    bits = getattr(np.random, name)()
    bits.state = kept
    return np.random.Generator(bits)


def _changed(before: dict[str, Any], now: dict[str, Any], name: str) -> str:
    """What is other than it was."""
    if name == "rows":
        return "the rows are others"
    return f"{name} was {_short(before, name)} and is {_short(now, name)}"


def _short(call: dict[str, Any], name: str) -> str:
    """A value of a call, as a message has it."""
    return json.dumps(call[name], ensure_ascii=False)[:40] if name in call else "not there"
