"""Tables of numbers, exported as CSV, Markdown and HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .text import escape, format_count, truncated

Cell = str | int | float | None


class DataTable(NamedTuple):
    """A table: the names of its columns, and one value per column in each row."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @classmethod
    def from_rows(cls, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> DataTable:
        """Return the table of these rows."""
        return cls(tuple(columns), tuple(map(tuple, rows)))

    def to_csv(self) -> str:
        """Return the table as CSV, numbers in full precision and unknown values empty."""
        buffer = io.StringIO(newline="")
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return buffer.getvalue()

    def to_markdown(self) -> str:
        """Return the table as Markdown, numbers rounded and aligned to the right."""
        lines = [self.columns, tuple("---:" if numeric else "---" for numeric in self._numeric_columns())]
        lines += [tuple(format_cell(cell).replace("|", "\\|") for cell in row) for row in self.rows]
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)

    def to_html(self, label: str) -> str:
        """Return the table as HTML that scrolls horizontally; ``label`` is its accessible name."""
        classes = [' class="number"' if numeric else "" for numeric in self._numeric_columns()]
        head = "".join(
            f'<th scope="col"{css_class}>{escape(name)}</th>'
            for name, css_class in zip(self.columns, classes, strict=True)
        )
        body = "".join(
            f'<tr><th scope="row"{classes[0]}>{escape(format_cell(row[0]))}</th>'
            + "".join(
                f"<td{css_class}>{escape(truncated(format_cell(cell)))}</td>"
                for cell, css_class in zip(row[1:], classes[1:], strict=True)
            )
            + "</tr>"
            for row in self.rows
        )
        return (
            f'<div class="scroll" role="region" aria-label="{escape(label)}" tabindex="0"><table>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    def _numeric_columns(self) -> list[bool]:
        """Return for each column whether all its known values, at least one, are numbers."""
        columns = zip(*self.rows, strict=True) if self.rows else ((),) * len(self.columns)
        known = [[cell for cell in column if cell is not None] for column in columns]
        return [bool(cells) and not any(isinstance(cell, str) for cell in cells) for cells in known]


def format_cell(cell: Cell) -> str:
    """Return a value for display: thousands separators, and three significant digits of fractions."""
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.3g}" if abs(cell) < 100 else f"{cell:.1f}"
    return format_count(cell) if isinstance(cell, int) else cell
