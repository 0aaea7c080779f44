"""Faults at a chosen event of a fit: a round, the n-th chunk of rows that a kernel processes, or the n-th write."""

import errno
import os
from shutil import copytree, ignore_patterns

import numpy as np

from support.clock import WorkClock


def ctrl_c_when(is_reached=lambda row: True):
    """Return a callback that raises `KeyboardInterrupt` at rounds for which a function is true."""

    def press(row):
        if is_reached(row):
            raise KeyboardInterrupt

    return press


class FaultAtChunk(WorkClock):
    """Lets a fit fail at the n-th chunk of rows: an error is raised, or, without one, its time is over.

    The clock stands still until then. ``n_chunks`` counts the chunks of a fit without a fault.
    """

    def __init__(self, monkeypatch, at=None, error=None):
        super().__init__(monkeypatch)
        self.at, self.error = at, error

    def advance(self):
        self.n_chunks += 1
        if self.n_chunks == self.at:
            if self.error is not None:
                raise self.error
            self.now += 1e6


class FullDisk:
    """Lets the n-th write, sync or rename of a file fail, and all later ones; ``n_events`` counts those before."""

    def __init__(self, monkeypatch, at=None):
        self.at, self.n_events = at, 0
        for module, name in ((os, "write"), (os, "fsync"), (os, "replace"), (np.lib.format, "write_array")):
            monkeypatch.setattr(module, name, self._limited(getattr(module, name)))

    def _limited(self, function):
        def limited(*arguments, **named):
            self.n_events += 1
            if self.at is not None and self.n_events >= self.at:
                self.fail()
            return function(*arguments, **named)

        return limited

    @staticmethod
    def fail(*arguments, **named):
        """Raise the error of a full disk."""
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Kills:
    """Copies a folder at chosen writes, syncs and renames of files: the copies are what a process killed there leaves.

    A write is torn: half of it is in the copy. ``n_events`` counts all events, and ``left`` has the copies.
    """

    def __init__(self, monkeypatch, folder, chosen=()):
        self.folder, self.chosen, self.n_events, self.left = folder, set(chosen), 0, []
        for name in ("write", "fsync", "replace"):
            monkeypatch.setattr(os, name, self._watched(getattr(os, name), name == "write"))

    def _watched(self, function, is_write):
        def watched(*arguments):
            self.n_events += 1
            if self.n_events not in self.chosen:
                return function(*arguments)
            n_bytes = 0
            if is_write:
                file, content = arguments
                n_bytes = function(file, content[: len(content) // 2])
                arguments = file, content[n_bytes:]
            unlocked = ignore_patterns("lock")  # which Windows does not let anyone read
            self.left.append(copytree(self.folder, f"{self.folder} {self.n_events}", ignore=unlocked))
            result = function(*arguments)
            return n_bytes + result if is_write else result

        return watched
