"""Tables of numbers, exported as CSV, Markdown and HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
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
        rows = [[format_cell(cell).replace("|", "\\|") for cell in row] for row in self.rows]
        return table_markdown(self.columns, rows, self._numeric_columns())

    def to_html(self, label: str) -> str:
        """Return the table as HTML that scrolls horizontally; ``label`` is its accessible name."""
        rows = [[escape(truncated(format_cell(cell))) for cell in row] for row in self.rows]
        return table_html(self.columns, rows, self._numeric_columns(), label)

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


def table_markdown(columns: Sequence[str], rows: Iterable[Sequence[str]], numeric: Sequence[bool]) -> str:
    """Return a Markdown table of escaped cells, numeric columns aligned to the right."""
    lines = [columns, ["---:" if is_number else "---" for is_number in numeric], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def table_html(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    numeric: Sequence[bool],
    label: str,
    css_class: str = "",
    row_classes: Mapping[int, str] | None = None,
) -> str:
    """Return an HTML table that scrolls horizontally.

    Cells are HTML, names of columns are text. ``label`` is the accessible name; ``row_classes`` maps indices of rows to
    CSS classes.
    """
    cell_classes = [_class_attribute("number" if is_number else "") for is_number in numeric]
    head = "".join(
        f'<th scope="col"{attribute}>{escape(name)}</th>' for name, attribute in zip(columns, cell_classes, strict=True)
    )
    body = "".join(
        f"<tr{_class_attribute((row_classes or {}).get(index, ''))}>"
        f'<th scope="row"{cell_classes[0]}>{row[0]}</th>'
        + "".join(f"<td{attribute}>{cell}</td>" for cell, attribute in zip(row[1:], cell_classes[1:], strict=True))
        + "</tr>"
        for index, row in enumerate(rows)
    )
    return (
        f'<div class="scroll" role="region" aria-label="{escape(label)}" tabindex="0">'
        f"<table{_class_attribute(css_class)}><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _class_attribute(css_class: str) -> str:
    return f' class="{css_class}"' if css_class else ""
