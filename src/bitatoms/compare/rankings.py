"""Rankings of the methods on a table, with the best value of each column marked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..html.tables import format_cell, table_html, table_markdown
from ..html.text import escape
from .results import ComparisonData, Dataset, Result, Spread

_TEXT_COLUMNS = 2  # the method and its algebra
_DIGITS = 2  # decimals of a percentage of cells
_MARKUP = re.compile(r"([\\`*_\[\]<>|#&~])")
_EMPTY = "–"


class Ranking(NamedTuple):
    """A table of methods with formatted values."""

    heading: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    best: frozenset[tuple[int, int]]  # cells to mark, as (row, column)
    bitatoms_rows: frozenset[int]
    notes: tuple[str, ...] = ()
    n_text_columns: int = _TEXT_COLUMNS  # leading columns that hold no numbers

    def to_markdown(self) -> str:
        """Return the table as Markdown, with the best values in bold."""
        return table_markdown(self.columns, self._marked_cells(escape_markdown, "**", "**"), self._numeric_columns())

    def to_html(self, label: str) -> str:
        """Return the table as HTML that scrolls horizontally; ``label`` is its accessible name."""
        cells = self._marked_cells(escape, "<b>", "</b>")
        css_class = "ranking texts" if self.n_text_columns == len(self.columns) else "ranking"
        row_classes = dict.fromkeys(self.bitatoms_rows, "bitatoms")
        return table_html(self.columns, cells, self._numeric_columns(), label, css_class, row_classes)

    def _marked_cells(self, escape_text: Callable[[str], str], start: str, end: str) -> list[list[str]]:
        """Return the escaped cells, with the best between ``start`` and ``end``."""
        return [
            [
                f"{start}{escape_text(cell)}{end}" if (i, j) in self.best else escape_text(cell)
                for j, cell in enumerate(row)
            ]
            for i, row in enumerate(self.rows)
        ]

    def _numeric_columns(self) -> list[bool]:
        """Return for each column whether it holds numbers."""
        return [column >= self.n_text_columns for column in range(len(self.columns))]


def escape_markdown(value: str) -> str:
    """Return text that Markdown shows literally, on one line."""
    return _MARKUP.sub(r"\\\1", " ".join(value.split()))


def rank_by_wrong_cells(comparison: ComparisonData, table: Dataset) -> Ranking:
    """Rank by the share of wrong cells per number of atoms, and mark the lowest of each algebra."""
    results = [result for result in comparison.results(table) if not result.method.chooses_rank]
    by_rank = {(result.method.key, result.asked): result for result in results}
    methods = {result.method.key: result.method for result in results}

    def sort_key(entry: tuple[str, str]) -> tuple[str, list[float]]:
        """Sort by algebra, then by wrong cells from the most atoms down."""
        algebra, key = entry
        by_descending_rank = [by_rank.get((key, rank)) for rank in reversed(table.ranks)]
        return algebra, [each.wrong.median if each and each.done else float("inf") for each in by_descending_rank]

    entries = sorted(((algebra, key) for key, each in methods.items() for algebra in each.algebras), key=sort_key)
    rows, best = [], set()
    for i, (algebra, key) in enumerate(entries):
        of_method = [by_rank.get((key, rank)) for rank in table.ranks]
        shares = [_wrong_text(result, table) for result in of_method]
        rows.append((methods[key].name, algebra.upper(), *shares, _seconds_text(of_method[-1])))
        rivals = [other for other_algebra, other in entries if other_algebra == algebra]
        for j, result in enumerate(of_method):
            wrong = _median_wrong([by_rank.get((other, table.ranks[j])) for other in rivals])
            if result and result.done and _shown_equal(result.wrong.median, min(wrong), table):
                best.add((i, _TEXT_COLUMNS + j))
    ranks = [f"{rank} atom{'' if rank == 1 else 's'}" for rank in table.ranks]
    return Ranking(
        f"Wrong cells in percent{_median_heading(comparison)}",
        ("method", "algebra", *ranks, f"CPU s, {ranks[-1]}"),
        tuple(rows),
        frozenset(best),
        frozenset(i for i, (_, key) in enumerate(entries) if methods[key].is_bitatoms),
        _failure_notes(results),
    )


def rank_by_bits(comparison: ComparisonData, table: Dataset) -> Ranking:
    """Rank by the shortest codelength of each method over all numbers of atoms."""
    shortest: dict[str, Result] = {}
    for result in comparison.results(table):
        key = result.method.key
        if result.done and (key not in shortest or result.bits.median < shortest[key].bits.median):
            shortest[key] = result
    results = sorted(shortest.values(), key=lambda result: result.bits.median)
    rows = [
        (
            result.method.name,
            result.method.algebra_label,
            _spread_text(result.bits, 1, 0),
            f"{100 * result.bits.median / max(1, table.bits_without):.1f}",
            str(result.atoms),
            f"{100 * result.wrong.median / table.n_cells:.{_DIGITS}f}",
            _seconds_text(result),
        )
        for result in results
    ]
    least = results[0].bits.median if results else None
    return Ranking(
        f"Bits at the best number of atoms{_median_heading(comparison)}",
        ("method", "algebra", "bits", "% of no model", "atoms", "wrong cells, %", "CPU s"),
        tuple(rows),
        frozenset((i, _TEXT_COLUMNS) for i, result in enumerate(results) if result.bits.median == least),
        frozenset(i for i, result in enumerate(results) if result.method.is_bitatoms),
        (f"Without a model the table takes {table.bits_without:,} bits.",),
    )


def overview(comparison: ComparisonData) -> Ranking:
    """Return the best methods of each table: by wrong cells with the most atoms in each algebra, and by bits."""
    rows = []
    for table in comparison.tables:
        done = [result for result in comparison.results(table) if result.done]
        at_most_atoms = [result for result in done if result.asked == table.ranks[-1]]
        by_algebra = [[each for each in at_most_atoms if algebra in each.method.algebras] for algebra in ("or", "xor")]
        cells = [_best_text(results, table) for results in by_algebra]
        least = min(done, key=lambda each: each.bits.median, default=None)
        bits = _EMPTY if least is None else f"{least.method.label}, {least.bits.median / table.shape[0]:.1f} per row"
        rows.append((table.name, str(table.ranks[-1]), *cells, bits))
    median = " (medians)" if comparison.n_seeds > 1 else ""
    columns = (
        "data",
        "atoms asked",
        f"fewest wrong cells, OR{median}",
        f"fewest wrong cells, XOR{median}",
        f"fewest bits, any number of atoms{median}",
    )
    return Ranking("Best method per table", columns, tuple(rows), frozenset(), frozenset(), (), len(columns))


def _median_heading(comparison: ComparisonData) -> str:
    """Return the end of a heading: what the values are if there are several seeds."""
    return ": median (range)" if comparison.n_seeds > 1 else ""


def _best_text(results: Sequence[Result], table: Dataset) -> str:
    """Return the method with the fewest wrong cells, their share, and the methods that share the lead."""
    if not results:
        return _EMPTY
    least = min(_median_wrong(results))
    first = next(result for result in results if result.wrong.median == least).method
    equal = [result.method for result in results if _shown_equal(result.wrong.median, least, table)]
    also = [each.name for each in equal if each.name != first.name and not (each.is_bitatoms and first.is_bitatoms)]
    others = f" (also {', '.join(also)})" if also else ""
    return f"{first.name}, {100 * least / table.n_cells:.{_DIGITS}f} %{others}"


def _wrong_text(result: Result | None, table: Dataset) -> str:
    """Return a share of wrong cells, or "failed" or "not run"."""
    if result is None:
        return _EMPTY
    if result.done:
        return _spread_text(result.wrong, 100 / table.n_cells, _DIGITS)
    return result.why_not.partition(":")[0]


def _spread_text(spread: Spread, scale: float, digits: int) -> str:
    """Return the median, followed by the range unless it is a single value."""
    median, least, most = (f"{scale * value:,.{digits}f}" for value in spread)
    return median if least == most else f"{median} ({least}–{most})"


def _seconds_text(result: Result | None) -> str:
    """Return the CPU seconds."""
    return format_cell(float(result.cpu)) if result is not None and result.done else _EMPTY


def _median_wrong(results: Sequence[Result | None]) -> list[float]:
    """Return the numbers of wrong cells of the finished results."""
    return [result.wrong.median for result in results if result is not None and result.done]


def _shown_equal(wrong: float, other: float, table: Dataset) -> bool:
    """Return whether two numbers of wrong cells are shown as the same percentage."""
    return f"{100 * wrong / table.n_cells:.{_DIGITS}f}" == f"{100 * other / table.n_cells:.{_DIGITS}f}"


def _failure_notes(results: Sequence[Result]) -> tuple[str, ...]:
    """Return why results are missing, once per method."""
    notes: dict[str, str] = {}
    for result in results:
        if result.why_not:
            atoms = f"{result.asked} atom{'' if result.asked == 1 else 's'}"
            notes.setdefault(result.method.key, f"{result.method.label}, {atoms}: {result.why_not}.")
    return tuple(notes.values())
