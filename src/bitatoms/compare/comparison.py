"""The public result of a comparison: its data, and its output as Markdown, HTML, CSV and figures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..html.figures import Figure
from ..html.tables import DataTable
from ..io.atomic import write_files
from .figures import draw_figures
from .markdown import to_markdown
from .page import render_page
from .results import ComparisonData, Run

# The columns of compare.csv are a file format: keep their names.
COLUMNS = (
    "data", "contender", "algebra", "makes small", "atoms asked", "seed", "atoms", "wrong cells", "wrong share", "bits",
    "bits of errors", "bits of codes", "bits of atoms", "CPU seconds", "wall seconds", "why not",
)  # fmt: skip


@dataclass(frozen=True)
class Comparison(ComparisonData):
    """All runs of a comparison.

    Attributes
    ----------
    tables : tuple of Dataset
        The tables that the methods were compared on.
    runs : tuple of Run
        All runs in order, with the requested number of atoms, the result, and the time.
    how : tuple of pairs of str
        The machine, the versions and the settings.
    interrupted : bool
        Whether the comparison was interrupted; ``runs`` holds the runs finished by then.
    not_reached : tuple of str
        The names of the tables without a finished run. They are not in ``tables``.
    """

    def numbers(self) -> DataTable:
        """Return all runs as a table with one row per run."""
        n_cells = {table.name: table.n_cells for table in self.tables}
        return DataTable.from_rows(COLUMNS, [_csv_row(run, n_cells[run.data]) for run in self.runs])

    def to_markdown(self) -> str:
        """Return the summary and the rankings of all tables as Markdown."""
        return to_markdown(self)

    def to_html(self, figures: Sequence[Sequence[Figure]] | None = None) -> str:
        """Return the comparison as a self-contained HTML page.

        Parameters
        ----------
        figures : sequence of sequences of Figure, optional
            The figures of each table; drawn by default.

        Returns
        -------
        str
        """
        return render_page(self, [draw_figures(self, table) for table in self.tables] if figures is None else figures)

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write compare.md, compare.csv, index.html and the figures (PNG and CSV) to a folder.

        The folder is created if it does not exist. The files replace older ones of the same names, all at once: a
        write that is interrupted changes nothing. Other files are kept, including figures of an earlier comparison on
        other tables.

        Parameters
        ----------
        folder : str or path-like

        Returns
        -------
        list of Path
            The files written.
        """
        figures = [draw_figures(self, table) for table in self.tables]
        files: dict[str, bytes] = {}
        for figure in (figure for of_table in figures for figure in of_table):
            files |= figure.files()
        texts = {
            "compare.md": self.to_markdown(),
            "compare.csv": self.numbers().to_csv(),
            "index.html": self.to_html(figures),
        }
        files |= {name: text.encode("utf-8", "replace") for name, text in texts.items()}
        return write_files(Path(folder), files)


def _csv_row(run: Run, n_cells: int) -> tuple[str | int | float | None, ...]:
    """Return a run as a row of compare.csv."""
    method, bits = run.method, run.bits
    wrong_share = None if run.wrong is None else run.wrong / n_cells
    lengths = (None,) * 4 if bits is None else (bits.total, bits.errors, bits.codes, bits.atoms)
    asked = (run.data, method.key, method.algebra, method.minimizes, run.asked, run.seed)
    return (*asked, run.atoms, run.wrong, wrong_share, *lengths, run.cpu, run.wall, run.why_not)
