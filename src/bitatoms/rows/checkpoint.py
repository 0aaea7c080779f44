"""Checkpoints: a folder in which a fit saves its progress, so that the same call can resume it.

One file, ``state.npz``, holds the call and the state of the passes over all rows. While a search runs, its states are
in files next to it (`StateFiles`). All are written atomically: if the process or the machine fails, the folder
contains the previous state or the new one, complete. With rows in a store, the codes of the passes are in the same
folder. All sizes and values are checked on reading, because kernels check none.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from operator import index
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

from .._version import __version__
from ..engine.coding import CODERS
from ..engine.counts import Counts, voted_bits
from ..engine.objective import Objective
from ..engine.passes import PassSpec, RowCounts
from ..errors import InputError, Parameter
from ..io.atomic import is_zarr_store, write_error
from ..io.errors import FileError
from ..io.npz import NpzReader, check_metadata_int, sparse_arrays
from ..model.result import Round
from ..search.params import SearchParams
from ..sparse_bits import Bits, SparseBits
from ..system.locks import FileLocked, lock
from .checkpoint_files import GENERATORS, Arrays, CheckpointFile, StateFiles, generator_in, read_bits, read_integers
from .source import PartialPass

logger = logging.getLogger(__name__)

_KIND, _VERSION = "bitatoms checkpoint", 3
_FILE, _LOCK = "state.npz", "lock"

_CODERS = (*CODERS, "mend")
# The axes of the arrays of Counts; those that prices come from.
_AXES = {"known": "m", "uses": "p", "wrong": "m", "free": "pm", "bad": "pm", "pairs": "pp", "ones": "m", "missed": "m"}
_PRICING = ("known", "wrong", "uses")


@dataclass(frozen=True, eq=False)
class PassState:
    """The progress of the passes: all that is needed to resume them, except the codes of the previous pass."""

    algebra: str
    ended: str  # what ended the search on the sample
    compared: Mapping[str, int]  # what that search would cost in each algebra tried; empty if it tried one
    specs: tuple[PassSpec, ...]  # of all passes; unless finished, the last one is still to run
    history: tuple[Round, ...]
    partial: PartialPass | None = None  # the part of the last pass that is complete
    best: int = 0  # number of the best pass, from 1; 0 before the first pass is complete
    counts: Counts | None = None  # of the best pass
    finished: bool = False


class Checkpoint:
    """A folder in which a fit saves the steps of its search, then the state of its passes over all rows.

    It is locked until it is closed or the process ends.

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
    ...     checkpoint.random(np.random.default_rng()).random() == first
    True
    """

    def __init__(self, folder: str | os.PathLike[str], call: dict[str, Any], resume: bool) -> None:
        self.folder = Path(folder)
        self._file = CheckpointFile(self.folder / _FILE, _KIND, _VERSION)
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
            finished = entries["searched"] is True if state is None else state["finished"]
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

    def load(self, params: SearchParams) -> PassState | None:
        """Return the state saved last, or None; passes are priced as these parameters of the call state."""
        if not self._has_state:
            return None
        with self._file.reading() as (file, entries):
            return _state_from_file(file, entries["state"], self._shape, params)

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
        entries, arrays = (None, {}) if state is None else _state_to_json(state)
        content = {"call": self._call, "random": self._random_state, "state": entries, "searched": searched}
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
    with ExitStack() as opened:
        try:
            file = opened.enter_context(open(folder / _LOCK, "ab"))
            is_locked = lock(file)
        except FileLocked as error:
            raise FileError(
                f"{folder}: another fit is using this folder; wait until it ends, or choose another folder"
            ) from error
        except OSError as error:
            raise write_error(folder / _LOCK, error) from error
        if not is_locked:
            logger.warning("%s: files cannot be locked here; make sure that no other process uses the folder", folder)
        opened.pop_all()  # closed by Checkpoint.close
    return file


def _difference(before: dict[str, Any], now: dict[str, Any], name: str) -> tuple[str | Parameter, ...]:
    """Return how a value of two calls differs, as parts of a message."""
    if name == "rows":
        return ("the rows differ",)
    return Parameter(name), f" was {_as_text(before, name)} and is {_as_text(now, name)}"


def _as_text(call: dict[str, Any], name: str) -> str:
    return json.dumps(call[name], ensure_ascii=False)[:40] if name in call else "not given"


def _state_to_json(state: PassState) -> tuple[dict[str, Any], Arrays]:
    """Return a state as JSON values, and its arrays by name."""
    arrays: Arrays = {}
    partial = state.partial
    values = {name: getattr(state, name) for name in ("algebra", "ended", "compared", "best", "finished")}
    entries = {
        **values,
        "specs": [_spec_to_json(spec, f"spec {i}", arrays) for i, spec in enumerate(state.specs)],
        "counts": None if state.counts is None else _counts_to_json(state.counts, "counts", arrays),
        "partial": None if partial is None else _counts_to_json(partial.counts, "partial", arrays),
        "next_row": None if partial is None else partial.next_row,
        "history": [row._asdict() for row in state.history],
    }
    return entries, arrays


def _state_from_file(
    file: NpzReader, entries: dict[str, Any], shape: tuple[int, int], params: SearchParams
) -> PassState:
    """Return the state in a file, for a table of this shape; raise ValueError, KeyError etc. if it is corrupt."""
    algebra = entries["algebra"]
    if algebra not in ("xor", "or"):
        raise ValueError("its algebra is invalid")
    specs: list[PassSpec] = []
    for i, entry in enumerate(entries["specs"]):
        n_before = len(specs[-1].atoms) if specs else 0
        specs.append(_spec_from_file(file, entry, f"spec {i}", shape[1], n_before, params.objective(algebra)))
    finished, best = entries["finished"], index(entries["best"])
    n_done = len(specs) - (not finished)
    if type(finished) is not bool or not 0 <= best <= n_done or n_done < finished:
        raise ValueError(f"its best pass is not one of the {n_done} passes made")
    counts = _counts_from_file(file, entries["counts"], "counts", specs[best - 1], shape) if best else None
    partial = None
    if entries["partial"] is not None:
        next_row = check_metadata_int(entries, "next_row", most=shape[0])
        partial = PartialPass(next_row, _counts_from_file(file, entries["partial"], "partial", specs[-1], shape))
    return PassState(
        algebra=algebra,
        ended=str(entries["ended"]),
        compared={str(name): index(cost) for name, cost in entries["compared"].items()},
        specs=tuple(specs),
        history=tuple(Round(**row) for row in entries["history"]),
        partial=partial,
        best=best,
        counts=counts,
        finished=finished,
    )


def _spec_to_json(spec: PassSpec, name: str, arrays: Arrays) -> dict[str, Any]:
    """Return a spec as JSON values, and add its arrays to the others.

    The rule is not saved: it follows from the counts that it comes from.
    """
    assert spec.priced_by is not None
    if isinstance(spec.atoms, SparseBits):
        arrays |= sparse_arrays(f"{name} atom", spec.atoms)
    else:
        arrays[f"{name} atoms"] = spec.atoms.words
    arrays[f"{name} bias"] = spec.bias.words
    if spec.kept is not None:
        arrays[f"{name} kept"] = spec.kept.astype(np.int64)
    if spec.remembered is not None:
        arrays[f"{name} remembered"] = spec.remembered.words
    _add_counts(spec.priced_by, _PRICING, name, arrays)
    return {"coder": spec.coder, "n_rows": spec.priced_by.n_rows}


def _spec_from_file(
    file: NpzReader, entry: dict[str, Any], name: str, n_features: int, n_before: int, objective: Objective
) -> PassSpec:
    """Return a spec in a file, which follows one with ``n_before`` atoms."""
    atoms: Bits
    if f"{name} atoms" in file:
        atoms = read_bits(file, f"{name} atoms", None, n_features)
    else:
        atoms = file.read_sparse_bits(f"{name} atom", n_features)
    bias, kept, remembered = read_bits(file, f"{name} bias", 1, n_features), None, None
    if f"{name} kept" in file:
        kept = read_integers(file, f"{name} kept", (len(atoms),), n_before - 1).astype(np.intp)
    if f"{name} remembered" in file:
        remembered = read_bits(file, f"{name} remembered", None, len(atoms))
    coder = entry["coder"]
    if coder not in _CODERS or (kept is not None and (np.diff(kept) <= 0).any()):
        raise ValueError(f"its {name} is invalid")
    n_rows = check_metadata_int(entry, "n_rows")
    shapes = {field: (len(atoms) if _AXES[field] == "p" else n_features,) for field in _PRICING}
    priced_by = RowCounts(n_rows, **_read_counts(file, name, shapes, n_rows))
    if (priced_by.wrong > priced_by.known).any():
        raise ValueError(f"its {name} wrong has values out of range")
    rule = objective.rule_from_counts(*priced_by)
    return PassSpec(atoms, bias, coder, rule, kept, remembered, voted_bits(atoms), priced_by)


def _counts_to_json(counts: Counts, name: str, arrays: Arrays) -> dict[str, Any]:
    """Return counts as JSON values, and add their arrays to the others."""
    _add_counts(counts, _AXES, name, arrays)
    return {"n_rows": counts.n_rows, "codes_changed": counts.codes_changed}


def _counts_from_file(
    file: NpzReader, entry: dict[str, Any], name: str, spec: PassSpec, shape: tuple[int, int]
) -> Counts:
    """Return the counts of a pass in a file."""
    sizes = {"p": len(spec.atoms), "m": shape[1]}
    shapes: dict[str, tuple[int, ...]] = {field: tuple(sizes[axis] for axis in axes) for field, axes in _AXES.items()}
    if spec.n_listed is not None:
        shapes |= {"free": (spec.n_listed,), "bad": (spec.n_listed,), "pairs": (0, 0)}
    n_rows = check_metadata_int(entry, "n_rows", most=shape[0])
    codes_changed = check_metadata_int(entry, "codes_changed", most=n_rows * sizes["p"])
    arrays = _read_counts(file, name, shapes, n_rows)
    return Counts(n_rows=n_rows, codes_changed=codes_changed, voted=spec.voted, **arrays)


def _add_counts(counts: Counts | RowCounts, fields: Iterable[str], name: str, arrays: Arrays) -> None:
    """Add fields of counts to arrays, in the smallest types that hold them."""
    for field in fields:
        values = getattr(counts, field)
        arrays[f"{name} {field}"] = values.astype(np.min_scalar_type(values.max(initial=0)))


def _read_counts(
    file: NpzReader, name: str, shapes: Mapping[str, tuple[int, ...]], n_rows: int
) -> dict[str, NDArray[np.int64]]:
    """Return the fields of counts of this many rows."""
    return {field: read_integers(file, f"{name} {field}", shape, n_rows) for field, shape in shapes.items()}
