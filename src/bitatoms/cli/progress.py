"""Progress of long commands, on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rich.status import Status
from rich.text import Text

from ..bits import BitMatrix
from ..formatting import counted
from ..model.result import Round
from ..rows.store import Store
from ..sparse_bits import Bits
from .console import err, showing_compilation

AnyBits = TypeVar("AnyBits", BitMatrix, Bits)

_INTERVAL = 10.0  # seconds between lines of progress without a terminal


@contextmanager
def show_status(text: str, quiet: bool) -> Iterator[Status | None]:
    """Show a status message while work is in progress, and how many kernels are compiled, if there is a terminal."""
    if quiet or not err.is_terminal:
        yield None
        return
    with err.status(Text(text)) as status, showing_compilation(lambda note: status.update(Text(f"{text}: {note}"))):
        yield status


class ProgressLine:
    """The progress of a task: a line that changes, or, without a terminal, a new line now and then."""

    def __init__(self, quiet: bool, status: Status | None, task: str = "", n_rows: int = 0) -> None:
        self.quiet = quiet
        self.n_rows = n_rows  # 0: unknown
        self._started = self._printed = time.monotonic()
        self._status = status
        self._task = task

    def update_rows(self, n_done: int) -> None:
        """Show how many rows have been processed."""
        rows = f"{n_done} of {self.n_rows}" if self.n_rows else f"{n_done}"
        self.update(f"{self._task}: {rows} rows, {self.seconds}")

    @property
    def seconds(self) -> str:
        """The time since the task began."""
        return f"{time.monotonic() - self._started:.0f} s"

    def update(self, text: str, hint: str = "") -> None:
        """Show a text; without a terminal, only if the last one was shown some time ago."""
        if self._status is not None:
            self._status.update(Text.assemble(text, (hint, "dim")))
        elif not self.quiet and time.monotonic() - self._printed > _INTERVAL:
            self._printed = time.monotonic()
            err.print(Text(text))


class SearchProgress(ProgressLine):
    """The progress of a search; a callback of the estimator."""

    def __init__(self, n_rows: int, quiet: bool, status: Status | None, keeps_model: bool) -> None:
        super().__init__(quiet, status, n_rows=n_rows)
        self._hint = "  (Ctrl-C keeps the best model so far)" if keeps_model else ""
        self._last_pass = ""  # the result of the last pass over all rows

    def __call__(self, row: Round) -> None:
        """Show a round of the search, or a pass over all rows."""
        atoms = counted(row.atoms, "atom")
        result = f"{atoms} ({row.algebra.upper()}), {row.bits / max(1, row.rows):.2f} bits per row"
        task = "Learning"
        if row.rows < self.n_rows:
            task = f"Searching {row.rows} of {self.n_rows} rows"
        elif row.move.startswith("pass "):
            task = row.move.capitalize()
            self._last_pass = f"; after {row.move.partition(' over')[0]}: {result}"
        self.update(f"{task}: {result}, {self.seconds}", self._hint)

    def update_rows(self, n_done: int) -> None:
        """Show how far a pass over all rows has come."""
        share = f"{n_done / self.n_rows:.0%} of {self.n_rows} rows"
        # Bits per row of the subsample and of all rows are not comparable, so only those of passes are shown here.
        self.update(f"Processing all rows: {share}{self._last_pass}, {self.seconds}", self._hint)


class ObservedStore(Store):
    """A store that reports how many of its rows have been read."""

    def __init__(self, store: Store, callback: Callable[[int], None]) -> None:
        super().__init__(store.name)
        self.picture = store.picture
        self._callback = callback

    def chunks(self, n_rows: int | None = None, start: int = 0) -> Iterator[BitMatrix]:
        """Iterate over the rows in chunks."""
        return self._observed(super().chunks(n_rows, start), start)

    def stored_chunks(self, n_rows: int | None = None, start: int = 0) -> Iterator[Bits]:
        """Iterate over the rows in chunks, as they are stored."""
        stored = super().stored_chunks(n_rows, start)
        return stored if self.n_ones is None else self._observed(stored, start)  # packed ones are observed already

    def _observed(self, chunks: Iterator[AnyBits], start: int) -> Iterator[AnyBits]:
        """Yield chunks, and report them."""
        for data in chunks:
            yield data
            start += len(data)
            self._callback(start)
