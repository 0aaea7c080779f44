"""The files of a checkpoint: arrays and JSON, as in a model file, written atomically and checked when they are read."""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from .._version import __version__
from ..errors import Parameter
from ..io.atomic import atomic_write
from ..io.errors import FileError
from ..io.npz import METADATA_KEY, NpzReader, encode_metadata, open_npz
from ..io.stream import Source
from ..model.result import Round

GENERATORS = ("PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64")
Arrays = dict[str, NDArray[Any]]


class CheckpointFile:
    """One file of a checkpoint.

    Parameters
    ----------
    path : Path
    kind : str
        The format in its metadata.
    version : int
        The version of the format that is written, and the newest that can be read.
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
                _write_arrays(path, {METADATA_KEY: content, **arrays})
        except FileError as error:
            if not has_previous:
                raise
            raise FileError(
                *error.args,
                ". The previous checkpoint is intact; fix the problem, then pass ",
                Parameter("resume", True),
            ) from error
        _sync_folder(self.path.parent)


def _write_arrays(path: Path, arrays: Arrays) -> None:
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


def generator_in(state: dict[str, Any]) -> np.random.Generator:
    """Return a generator in a saved state."""
    name, position, key_position = state["bit_generator"], state.get("buffer_pos", 0), state["state"].get("pos", 0)
    if name not in GENERATORS or not (0 <= position <= 4 and 0 <= key_position <= 624):  # NumPy does not check these
        raise ValueError(f"invalid state of a random generator of type {str(name)[:20]!r}")
    bit_generator = getattr(np.random, name)()
    bit_generator.state = state
    return np.random.Generator(bit_generator)


def history_to_json(history: tuple[Round, ...]) -> dict[str, Any]:
    """Return rounds as JSON values."""
    return {"history_fields": Round._fields, "history": history}


def history_from_json(entries: dict[str, Any]) -> tuple[Round, ...]:
    """Return the rounds in JSON values."""
    fields = entries["history_fields"]
    return tuple(Round(**dict(zip(fields, row, strict=True))) for row in entries["history"])
