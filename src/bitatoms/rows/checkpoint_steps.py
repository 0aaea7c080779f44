"""The finished steps of a search in the folder of a checkpoint (a `StepStore`).

Steps are written together, to a file of their own, and files are never changed: one is removed when all its steps were
replaced or dropped. A write waits until some time has passed since the last one, so that writing takes a few percent
of the time at most. When it happens has no influence on the search.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from operator import index
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..bits import BitMatrix
from ..io.errors import FileError
from ..io.npz import NpzReader, check_metadata_int
from ..search.journal import BestState, RandomState, StepRecord
from ..search.monitor import CostedState
from .checkpoint_file import Arrays, CheckpointFile, generator_in, history_from_json, history_to_json

KIND = "bitatoms search steps"
VERSION = 2
_MIN_SECONDS = 3.0  # between two writes
_MAX_LOST, _MAX_WRITING = 0.02, 0.02  # shares of the time so far that may be lost, and that writing may take
_MAX_SPAWNED = 1 << 20  # generators made from one
_NAME = re.compile(r"search-([1-9]\d{0,8})\.npz")


class _Stored(NamedTuple):
    """Where a step is: the number of its file, what the names of its arrays begin with, and its JSON."""

    number: int
    label: str
    entry: dict[str, Any]


class StepFiles:
    """Keeps what steps left, in files of a folder; several threads may use it.

    Parameters
    ----------
    folder : Path
    min_seconds : float
        Between two writes.
    """

    def __init__(self, folder: Path, min_seconds: float = _MIN_SECONDS) -> None:
        self.folder, self.min_seconds = folder, min_seconds
        self._fit = ""  # identifies the fit
        self._numbers = sorted(int(found[1]) for path in folder.iterdir() if (found := _NAME.fullmatch(path.name)))
        self._stored: dict[str, _Stored] = {}
        self._pending: dict[str, StepRecord] = {}  # steps that are not written yet
        self._lock = threading.RLock()
        self._opened = self._written = time.perf_counter()
        self._write_seconds = 0.0

    @property
    def has_files(self) -> bool:
        """Whether steps were written."""
        return bool(self._numbers)

    def begin(self, fit: str) -> None:
        """Begin a fit, without the steps of an earlier one."""
        self._fit = fit
        self.clear()

    def resume(self, fit: str) -> None:
        """Resume a fit from its steps."""
        self._fit = fit
        for number in self._numbers:
            with self._file(number).reading() as (_, entries):
                if entries["version"] != VERSION:
                    raise FileError(f"{self._file(number).path}: written by a version whose searches cannot be resumed")
                if entries["fit"] != fit:
                    raise FileError(f"{self._file(number).path}: this file belongs to another fit")
                for i, entry in enumerate(entries["steps"]):
                    self._stored[str(entry["name"])] = _Stored(number, str(i), entry)

    def load(
        self, name: str, shape: tuple[int, int] | None, restore: Callable[[StepRecord], object]
    ) -> StepRecord | None:
        """Return the record of a step after restoring from it, or None; its states must be of this shape."""
        with self._lock:
            stored = self._stored.get(name)
        if stored is None:
            return None
        with self._file(stored.number).reading() as (file, _):
            record = _from_file(file, stored.entry, stored.label)
            if shape is not None and any((each.codes.n_rows, each.atoms.n_cols) != shape for each in record.states):
                raise ValueError(f"its step {name} is not of {shape[0]} rows and {shape[1]} columns")
            restore(record)
        return record

    def save(self, name: str, record: StepRecord) -> None:
        """Keep a record, which is written when that is due."""
        with self._lock:
            self._pending[name] = record
            if self.is_due():
                self.flush()

    def drop(self, prefix: str) -> None:
        """Forget all records whose names start like this; their files are removed after the next write."""
        with self._lock:
            for records in (self._stored, self._pending):
                for name in [name for name in records if name.startswith(prefix)]:
                    del records[name]

    def is_due(self) -> bool:
        """Return whether enough time has passed since the last write."""
        now = time.perf_counter()
        shares = _MAX_LOST * (now - self._opened), self._write_seconds / _MAX_WRITING
        return now - self._written >= max(self.min_seconds, *shares)

    def flush(self) -> None:
        """Write the steps that are not written yet, and remove files without any others."""
        with self._lock:
            if not self._pending:
                return
            start = time.perf_counter()
            number = self._numbers[-1] + 1 if self._numbers else 1
            arrays: Arrays = {}
            steps = [_to_json(name, record, str(i), arrays) for i, (name, record) in enumerate(self._pending.items())]
            self._file(number).write({"fit": self._fit, "steps": steps}, arrays, has_previous=True)
            self._numbers.append(number)
            self._stored |= {entry["name"]: _Stored(number, str(i), {}) for i, entry in enumerate(steps)}
            self._pending.clear()
            self._remove_files(keep={stored.number for stored in self._stored.values()})
            self._written = time.perf_counter()
            self._write_seconds = self._written - start

    def clear(self) -> None:
        """Forget all steps, and remove their files."""
        with self._lock:
            self._stored.clear()
            self._pending.clear()
            self._remove_files(keep=set())

    def _file(self, number: int) -> CheckpointFile:
        return CheckpointFile(self.folder / f"search-{number}.npz", KIND, VERSION)

    def _remove_files(self, keep: set[int]) -> None:
        for number in self._numbers:
            if number not in keep:
                with suppress(OSError):
                    self._file(number).path.unlink()
        self._numbers = [number for number in self._numbers if number in keep]


def _to_json(name: str, record: StepRecord, label: str, arrays: Arrays) -> dict[str, Any]:
    """Return a record as JSON values, and add its arrays to the others; ``label`` begins their names."""
    best = None
    if record.best is not None:
        state, rank, by_holdout = record.best
        same = [i for i, other in enumerate(record.states) if other[1:] == state[1:]]
        entry = {"same_as": same[0], "cost": state.cost} if same else _state_to_json(state, f"{label} best", arrays)
        best = {"state": entry, "rank": list(map(int, rank)), "by_holdout": by_holdout}
    return {
        "name": name,
        "states": [_state_to_json(state, f"{label} {i}", arrays) for i, state in enumerate(record.states)],
        "numbers": list(map(int, record.numbers)),
        "randoms": [{"state": random.state, "n_spawned": random.n_spawned} for random in record.randoms],
        "rounds": record.rounds,
        "best": best,
        **history_to_json(record.history),
    }


def _from_file(file: NpzReader, entry: dict[str, Any], label: str) -> StepRecord:
    """Return a record in a file."""
    states = tuple(_state_from_file(file, state, f"{label} {i}") for i, state in enumerate(entry["states"]))
    randoms = []
    for each in entry["randoms"]:
        generator_in(each["state"])
        randoms.append(RandomState(each["state"], check_metadata_int(each, "n_spawned", most=_MAX_SPAWNED)))
    best, found = None, entry["best"]
    if found is not None:
        same, (off, cost, n_atoms) = found["state"].get("same_as"), map(index, found["rank"])
        if same is None:
            state = _state_from_file(file, found["state"], f"{label} best")
        else:
            state = states[index(same)]._replace(cost=index(found["state"]["cost"]))
        best = BestState(state, (off, cost, n_atoms), found["by_holdout"] is True)
    return StepRecord(
        states=states,
        numbers=tuple(map(index, entry["numbers"])),
        randoms=tuple(randoms),
        rounds=index(entry["rounds"]),
        history=history_from_json(entry),
        best=best,
    )


def _state_to_json(state: CostedState, label: str, arrays: Arrays) -> dict[str, Any]:
    """Return a state as JSON values, and add its arrays to the others."""
    for field in ("atoms", "codes", "bias"):
        arrays[f"{label} {field}"] = getattr(state, field).words
    return {"cost": int(state.cost), "n_rows": state.codes.n_rows, "n_cols": state.atoms.n_cols}


def _state_from_file(file: NpzReader, entry: dict[str, Any], label: str) -> CostedState:
    """Return a state in a file."""
    n_rows, n_cols = (check_metadata_int(entry, name) for name in ("n_rows", "n_cols"))
    atoms = _bits(file, f"{label} atoms", None, n_cols)
    codes = _bits(file, f"{label} codes", n_rows, atoms.n_rows)
    return CostedState(index(entry["cost"]), atoms, codes, _bits(file, f"{label} bias", 1, n_cols))


def _bits(file: NpzReader, name: str, n_rows: int | None, n_cols: int) -> BitMatrix:
    """Return packed rows, after checking their number."""
    words = file.read_array(name).astype(np.uint64, casting="safe")
    if words.ndim != 2 or (n_rows is not None and len(words) != n_rows):
        raise ValueError(f"its {name} has shape {str(words.shape)[:40]}")
    return BitMatrix(words, n_cols)
