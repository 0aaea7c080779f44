"""What comes of a comparison: all runs, and what they say of each table."""

from __future__ import annotations

import os
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ..io.atomic import write_files
from ..report.html.figures import Figure
from ..report.html.tables import DataTable
from .methods import Method
from .runner import Run

COLUMNS = (
    "data", "contender", "algebra", "makes small", "atoms asked", "seed", "atoms", "wrong cells", "wrong share", "bits",
    "bits of errors", "bits of codes", "bits of atoms", "CPU seconds", "wall seconds", "why not",
)  # fmt: skip


class Dataset(NamedTuple):
    """A table that contenders were run on."""

    name: str
    shape: tuple[int, int]
    density: float
    bits_without: int  # to describe it without a model
    ranks: Sequence[int]
    about: str = ""

    @property
    def n_cells(self) -> int:
        """How many cells it has."""
        return self.shape[0] * self.shape[1]


class Spread(NamedTuple):
    """The middle of several figures, and the least and the greatest."""

    middle: float
    least: float
    most: float

    @classmethod
    def of(cls, figures: Sequence[float]) -> Spread:
        """The spread of at least one figure; the middle is one of them."""
        return cls(statistics.median_low(figures), min(figures), max(figures))


@dataclass(frozen=True)
class Result:
    """What a contender reached with a number of atoms, over all seeds."""

    contender: Method
    asked: int | None
    runs: tuple[Run, ...]  # at least one

    @property
    def done(self) -> bool:
        """Whether there are figures."""
        return any(run.done for run in self.runs)

    @property
    def why_not(self) -> str:
        """Why the first run without figures has none."""
        return next((run.why_not for run in self.runs if run.why_not), "")

    @property
    def wrong(self) -> Spread:
        """Wrong cells."""
        return Spread.of([run.wrong for run in self.runs if run.wrong is not None])

    @property
    def bits(self) -> Spread:
        """The codelength."""
        return Spread.of([run.bits.total for run in self.runs if run.bits is not None])

    @property
    def cpu(self) -> float:
        """CPU seconds."""
        return Spread.of([run.cpu for run in self.runs if run.done and run.cpu is not None]).middle

    @property
    def atoms(self) -> int:
        """How many atoms were found."""
        return int(Spread.of([run.atoms for run in self.runs if run.atoms is not None]).middle)


@dataclass(frozen=True)
class Comparison:
    """All runs of a comparison.

    Attributes
    ----------
    tables : tuple of Dataset
        What was compared on.
    runs : tuple of Run
        One after the other, with what each was asked for, reached and took.
    how : tuple of pairs of str
        On which machine, with which versions and settings.
    interrupted : bool
        Whether it was ended early; the runs are those that were done by then.
    not_reached : tuple of str
        The names of tables that no run was done on when it was ended; they are not in ``tables``.
    """

    tables: tuple[Dataset, ...]
    runs: tuple[Run, ...] = field(repr=False)
    how: tuple[tuple[str, str], ...] = field(repr=False)
    interrupted: bool = False
    not_reached: tuple[str, ...] = ()

    @property
    def ended(self) -> str:
        """What there is to say of its end, where it was interrupted."""
        if not self.interrupted:
            return ""
        rest = f" Not reached: {', '.join(self.not_reached)}." if self.not_reached else ""
        return f"This comparison was interrupted: what had not been run by then is missing.{rest}"

    @property
    def n_seeds(self) -> int:
        """How many runs the figures of one contender and number of atoms may come from; medians, where several."""
        asked = Counter((run.data, run.contender.key, run.asked) for run in self.runs if run.done)
        return max(asked.values(), default=1)

    def results(self, table: Dataset) -> list[Result]:
        """What each contender reached on a table with each number of atoms, in the order in which they ran."""
        grouped: dict[tuple[str, int | None], list[Run]] = {}
        for run in self.runs:
            if run.data == table.name:
                grouped.setdefault((run.contender.key, run.asked), []).append(run)
        return [Result(runs[0].contender, runs[0].asked, tuple(runs)) for runs in grouped.values()]

    def numbers(self) -> DataTable:
        """All runs, one a row."""
        cells = {table.name: table.n_cells for table in self.tables}
        return DataTable.from_rows(COLUMNS, [_row(run, cells[run.data]) for run in self.runs])

    def to_markdown(self) -> str:
        """For each table who gets the fewest cells wrong and who needs the fewest bits, in words and figures."""
        from .markdown import written

        return written(self)

    def to_html(self, figures: Sequence[Sequence[Figure]] | None = None) -> str:
        """The same as a page of HTML, complete in itself; ``figures`` are those of each table, where they are drawn."""
        from .figures import figures_of
        from .page import render

        return render(self, [figures_of(self, table) for table in self.tables] if figures is None else figures)

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write compare.md, compare.csv, index.html and the figures, as PNG and CSV, into a folder.

        It is made if it is not there. Files of these names are replaced, each whole or not at all; others are left, and
        so are the figures of an earlier comparison on other tables.

        Parameters
        ----------
        folder : str or path-like

        Returns
        -------
        list of Path
            What was written.
        """
        from .figures import figures_of

        figures = [figures_of(self, table) for table in self.tables]
        texts = {
            "compare.md": self.to_markdown(),
            "compare.csv": self.numbers().to_csv(),
            "index.html": self.to_html(figures),
        }
        files = {name: text.encode("utf-8", "replace") for name, text in texts.items()}
        for figure in (figure for some in figures for figure in some):
            files |= figure.files()
        return write_files(Path(folder), files)


def _row(run: Run, n_cells: int) -> tuple[str | int | float | None, ...]:
    """A run as a row of figures."""
    contender, bits = run.contender, run.bits
    share = None if run.wrong is None else run.wrong / n_cells
    parts = (None,) * 4 if bits is None else (bits.total, bits.errors, bits.codes, bits.atoms)
    asked = (run.data, contender.key, contender.algebra, contender.small, run.asked, run.seed)
    return (*asked, run.atoms, run.wrong, share, *parts, run.cpu, run.wall, run.why_not)
