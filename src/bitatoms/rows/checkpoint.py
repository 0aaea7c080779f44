"""Checkpoints: a folder in which a fit saves its progress, so that the same call can resume it.

One file, ``state.npz``, holds the call and the state of the passes over all rows. While a search runs, its finished
steps are in files next to it (`checkpoint_steps.py`). All are written atomically: if the process or the machine fails,
the folder contains the previous state or the new one, complete. With rows in a store, `bitatoms.rows.code_cache` writes
the codes of the passes to the same folder.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np

from .._version import __version__
from ..errors import InputError, Parameter
from ..io.atomic import is_zarr_store, write_error
from ..io.errors import FileError
from ..locks import FileLocked, lock
from .checkpoint_file import GENERATORS, CheckpointFile, generator_in
from .checkpoint_state import state_from_file, state_to_json
from .checkpoint_steps import StateFiles
from .passes import PassState

logger = logging.getLogger(__name__)

KIND = "bitatoms checkpoint"
VERSION = 1
_FILE, _LOCK = "state.npz", "lock"


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
        self._file = CheckpointFile(self.folder / _FILE, KIND, VERSION)
        self._call = json.loads(json.dumps({**call, "bitatoms": __version__}))
        self._shape: tuple[int, int] = self._call["n_samples"], self._call["n_features"]
        self._random_state: dict[str, Any] | None = None  # of the generator when the fit started
        self._generator: np.random.Generator | None = None  # in that state, if a fit is resumed
        self._has_state = False
        self._lock = _create_and_lock(self.folder)
        try:
            for left in self.folder.glob(".*.npz.*.part"):  # left by a process that was killed
                shutil.rmtree(left, ignore_errors=True)
            self.states = StateFiles(self.folder)
            is_resumed = self._file.path.exists() and self._open_existing(resume)
            goes_on = is_resumed and not self._has_state  # the states of a search lead to passes
            (self.states.resume if goes_on else self.states.begin)(self._fit())
            if self.states.has_files:
                logger.info("resuming from the checkpoint: searches start from the states that were saved")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is not None and not isinstance(error, FileError):  # a full disk is one error, not two
                self.states.flush()
        except FileError as failed:  # the error that ended the fit is more important
            logger.warning("%s", failed)
        finally:
            self.close()

    def close(self) -> None:
        """Unlock the folder."""
        self._lock.close()

    def _open_existing(self, resume: bool) -> bool:
        """Return whether to resume the fit in the folder; otherwise it is finished, or nothing of it was saved."""
        with self._file.reading() as (_, entries):
            call, state, random_state = entries["call"], entries["state"], entries["random"]
            generator = None if random_state is None else generator_in(random_state)
            finished = entries.get("searched") is True if state is None else state["finished"]
            names = [name for name in {**call, **self._call} if call.get(name) != self._call.get(name)]
        has_progress = state is not None or self.states.has_files
        if not resume:
            if has_progress and not finished:
                raise FileError(
                    f"{self.folder}: this folder contains an unfinished fit; pass ",
                    Parameter("resume", True),
                    f" to resume it, or delete {_FILE} from the folder to start over",
                )
        elif not names:
            self._has_state, self._random_state, self._generator = state is not None, random_state, generator
            return True
        elif has_progress and "bitatoms" in names:
            raise FileError(
                f"{self.folder}: this folder contains a fit of bitatoms {call.get('bitatoms')}, which {__version__} "
                "cannot resume: its steps may differ; install that version to resume it, or choose another folder"
            )
        elif has_progress:
            differences = [part for name in names[:4] for part in (", ", *_difference(call, self._call, name))]
            more = f" (and {len(names) - 4} more)" if len(names) > 4 else ""
            raise FileError(
                f"{self.folder}: this folder contains the fit of a different call: ",
                *differences[1:],
                f"{more}; repeat that call to resume it, or choose another folder",
            )
        return False

    def _fit(self) -> str:
        """Return what identifies the fit: a hash of the call and of its random numbers."""
        text = json.dumps([self._call, self._random_state], sort_keys=True)
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def random(self, generator: np.random.Generator) -> np.random.Generator:
        """Return the generator of the fit: this one, whose state is saved, or the saved one if a fit is resumed."""
        if self._generator is not None:
            return self._generator
        state = generator.bit_generator.state
        if state["bit_generator"] not in GENERATORS:
            raise InputError(
                Parameter("random_state"),
                f" of type {state['bit_generator']} cannot be saved in a checkpoint; pass an integer, or a Generator "
                f"of {', '.join(GENERATORS)}",
            )
        self._random_state = json.loads(json.dumps(state, default=lambda array: array.tolist()))
        if not self._has_state:
            self._write(None)
        self.states.begin(self._fit())
        return generator

    def load(self) -> PassState | None:
        """Return the state saved last, or None."""
        if not self._has_state:
            return None
        with self._file.reading() as (file, entries):
            return state_from_file(file, entries["state"], self._shape)

    def save(self, state: PassState) -> None:
        """Replace the saved state of the passes, which the steps of a search have led to."""
        self._write(state)
        self._has_state = True
        self.states.clear()

    def end_search(self, finished: bool) -> None:
        """Save the steps of a search that has ended without passes; if it is not finished, it can be resumed.

        A search that was so short that nothing was saved leaves nothing.
        """
        if not finished or self.states.has_files:
            self.states.flush()
        if finished and self.states.has_files:
            self._write(None, searched=True)

    def _write(self, state: PassState | None, searched: bool = False) -> None:
        """Replace the file."""
        entries, arrays = (None, {}) if state is None else state_to_json(state)
        content = {"call": self._call, "random": self._random_state, "state": entries}
        if searched:
            content["searched"] = True
        self._file.write(content, arrays, has_previous=self._file.path.exists())


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


def _difference(before: dict[str, Any], now: dict[str, Any], name: str) -> tuple[str | Parameter, ...]:
    """Return how a value of two calls differs, as parts of a message."""
    if name == "rows":
        kinds = {str(call.get(name)).rpartition(":")[0] for call in (before, now)}
        another = " or are identified in another way, as by an earlier version of bitatoms" if len(kinds) > 1 else ""
        return (f"the rows differ{another}",)
    return Parameter(name), f" was {_as_text(before, name)} and is {_as_text(now, name)}"


def _as_text(call: dict[str, Any], name: str) -> str:
    return json.dumps(call[name], ensure_ascii=False)[:40] if name in call else "not given"
