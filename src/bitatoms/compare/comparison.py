"""The result of a comparison, as Markdown, CSV and figures."""

from __future__ import annotations

import os
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

from ..html.tables import DataTable, escape_markdown, table_markdown
from ..io.atomic import write_files
from .figures import draw_figures, file_slugs
from .rankings import TEXT_COLUMNS, Ranking, find_best, rank_by_bits, rank_by_wrong_cells, summarize
from .results import Dataset, Result, Run, count_seeds

# The columns of compare.csv are a file format: keep their names.
COLUMNS = (
    "data", "contender", "algebra", "makes small", "atoms asked", "seed", "atoms", "wrong cells", "wrong share", "bits",
    "bits of errors", "bits of codes", "bits of atoms", "CPU seconds", "wall seconds", "why not",
)  # fmt: skip
COMMAND = "To repeat it"  # a key of ``how``


@dataclass(frozen=True)
class Comparison:
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

    tables: tuple[Dataset, ...]
    runs: tuple[Run, ...] = field(repr=False)
    how: tuple[tuple[str, str], ...] = field(repr=False)
    interrupted: bool = False
    not_reached: tuple[str, ...] = ()

    @property
    def interruption_note(self) -> str:
        """A sentence on what is missing after an interruption, else an empty string."""
        if not self.interrupted:
            return ""
        rest = f" Not reached: {', '.join(self.not_reached)}." if self.not_reached else ""
        return f"This comparison was interrupted; the remaining runs are missing.{rest}"

    @property
    def n_seeds(self) -> int:
        """The largest number of runs per table, method and number of atoms."""
        return max((count_seeds(self.results(table)) for table in self.tables), default=1)

    def results(self, table: Dataset) -> list[Result]:
        """Return the results on a table per method and number of atoms, in the order of the runs."""
        grouped: dict[tuple[str, int | None], list[Run]] = {}
        for run in self.runs:
            if run.data == table.name:
                grouped.setdefault((run.method.key, run.asked), []).append(run)
        return [Result(runs[0].method, runs[0].asked, tuple(runs)) for runs in grouped.values()]

    def numbers(self) -> DataTable:
        """Return all runs as a table with one row per run."""
        n_cells = {table.name: table.n_cells for table in self.tables}
        return DataTable.from_rows(COLUMNS, [_csv_row(run, n_cells[run.data]) for run in self.runs])

    def to_markdown(self) -> str:
        """Return the best methods, the rankings on each table, and how the comparison was run, as Markdown."""
        sections = ["# Comparison\n"]
        if self.interrupted:
            sections.append(f"{escape_markdown(self.interruption_note)}\n")
        if len(self.tables) > 1:
            sections.append(overview(self))
        sections += [table_section(table, self.results(table)) for table in self.tables]
        sections.append("## How it was run\n")
        sections.append(
            "".join(f"- {escape_markdown(f'{name}: {value}')}\n" for name, value in self.how if name != COMMAND)
        )
        sections += [f"{COMMAND}:\n\n{textwrap.indent(value, '    ')}\n" for name, value in self.how if name == COMMAND]
        return "\n".join(sections)

    def write(self, folder: str | os.PathLike[str]) -> list[Path]:
        """Write compare.md, compare.csv and the figures (PNG) to a folder.

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
        files = {
            f"figures/{slug}-{algebra}.png": png
            for slug, table in zip(file_slugs([table.name for table in self.tables]), self.tables, strict=True)
            for algebra, png in draw_figures(table, self.results(table)).items()
        }
        files["compare.md"] = self.to_markdown().encode("utf-8", "replace")
        files["compare.csv"] = self.numbers().to_csv().encode("utf-8", "replace")
        return write_files(Path(folder), files)


def overview(comparison: Comparison) -> str:
    """Return the best methods on each table as Markdown."""
    rows = []
    for table in comparison.tables:
        best = (verdict.best for verdict in find_best(table, comparison.results(table)))
        rows.append([escape_markdown(cell) for cell in (table.name, str(table.ranks[-1]), *best)])
    criteria = ("fewest wrong cells, OR", "fewest wrong cells, XOR", "fewest bits, any number of atoms")
    median = " (medians)" if comparison.n_seeds > 1 else ""
    columns = ["data", "atoms asked", *(f"{criterion}{median}" for criterion in criteria)]
    return table_markdown(columns, rows, [False] * len(columns))


def table_section(table: Dataset, results: list[Result]) -> str:
    """Return the best methods on a table, and the rankings, as Markdown."""
    about = f"{escape_markdown(table.about)}; " if table.about else ""
    size = f"{about}{table.shape[0]:,} × {table.shape[1]:,}, {table.density:.1%} ones."
    lines = [f"## {escape_markdown(table.name)}\n", f"{size[0].upper()}{size[1:]}\n"]
    lines.append("".join(f"- {escape_markdown(line)}\n" for line in summarize(table, results)))
    lines += [_ranking_section(rank(table, results)) for rank in (rank_by_wrong_cells, rank_by_bits)]
    return "\n".join(lines)


def _ranking_section(ranking: Ranking) -> str:
    """Return a ranking as Markdown, with its heading and notes, and the best values in bold."""
    rows = [list(map(escape_markdown, row)) for row in ranking.rows]
    for i, j in ranking.best:
        rows[i][j] = f"**{rows[i][j]}**"
    numeric = [column >= TEXT_COLUMNS for column in range(len(ranking.columns))]
    notes = "".join(f"\n{escape_markdown(note)}\n" for note in ranking.notes)
    return f"### {ranking.heading}\n\n{table_markdown(ranking.columns, rows, numeric)}{notes}"


def _csv_row(run: Run, n_cells: int) -> tuple[str | int | float | None, ...]:
    """Return a run as a row of compare.csv."""
    method, bits = run.method, run.bits
    wrong_share = None if run.wrong is None else run.wrong / n_cells
    lengths = (None,) * 4 if bits is None else (bits.total, bits.errors, bits.codes, bits.atoms)
    asked = (run.data, method.key, method.algebra, method.minimizes, run.asked, run.seed)
    return (*asked, run.atoms, run.wrong, wrong_share, *lengths, run.cpu, run.wall, run.why_not)
