"""Tables of figures, for people and for other programs: CSV, Markdown and HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .text import count, shortened, text

Cell = str | int | float | None


class DataTable(NamedTuple):
    """A table of figures: names of columns, and a value for each in every row."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @classmethod
    def of(cls, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> DataTable:
        """The table of these rows."""
        return cls(tuple(columns), tuple(map(tuple, rows)))

    def to_csv(self) -> str:
        """All figures in full; what is not known is empty."""
        made = io.StringIO(newline="")
        writer = csv.writer(made, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows(self.rows)
        return made.getvalue()

    def to_markdown(self) -> str:
        """The table as Markdown, numbers to the right and short enough to read."""
        numeric = self._numeric()
        lines = [self.columns, tuple("---:" if right else "---" for right in numeric)]
        lines += [tuple(readable(cell).replace("|", "\\|") for cell in row) for row in self.rows]
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)

    def to_html(self, says: str) -> str:
        """The table as HTML that scrolls within itself where it is wide; ``says`` is what it is of."""
        kinds = [' class="number"' if right else "" for right in self._numeric()]
        head = "".join(
            f'<th scope="col"{kind}>{text(name)}</th>' for name, kind in zip(self.columns, kinds, strict=True)
        )
        body = "".join(
            f'<tr><th scope="row"{kinds[0]}>{text(readable(row[0]))}</th>'
            + "".join(
                f"<td{kind}>{text(shortened(readable(cell)))}</td>"
                for cell, kind in zip(row[1:], kinds[1:], strict=True)
            )
            + "</tr>"
            for row in self.rows
        )
        return (
            f'<div class="scroll" role="region" aria-label="{text(says)}" tabindex="0"><table>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    def _numeric(self) -> list[bool]:
        """Which columns hold numbers, as far as anything is known there."""
        columns = zip(*self.rows, strict=True) if self.rows else ((),) * len(self.columns)
        known = [[cell for cell in column if cell is not None] for column in columns]
        return [bool(cells) and not any(isinstance(cell, str) for cell in cells) for cells in known]


def readable(cell: Cell) -> str:
    """A value as people read it: thousands apart, three digits that count of what is not whole."""
    if cell is None:
        return "–"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.3g}" if abs(cell) < 100 else f"{cell:.1f}"
    return count(cell) if isinstance(cell, int) else cell
