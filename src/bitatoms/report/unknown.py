"""The section of unknown cells: how many there are, and in which columns and rows most of them are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..formatting import percent
from ..html.tables import table_html
from ..html.text import format_count, name_html, pluralize
from .data import ReportData

MAX_LISTED = 15  # columns, and rows


def unknown_cells(data: ReportData) -> str:
    """State how many cells are unknown; empty if none is."""
    n_unknown = data.table.data.n_unknown
    if not n_unknown:
        return ""
    share = percent(n_unknown, data.n_rows * data.n_features)
    return (
        f"{pluralize(n_unknown, 'cell')} ({share}) {'is' if n_unknown == 1 else 'are'} unknown: "
        "the value was missing. What is said about ones and zeros is about the known cells."
    )


def unknown_section(data: ReportData) -> str:
    """Return the columns and the rows with most unknown cells; empty if there are none."""
    unknown = data.table.data.unknown
    if unknown is None or not data.table.data.n_unknown:
        return ""
    by_column = _ranking("column", unknown.column_weights(), data.n_rows, data.names_of)
    by_row = _ranking(
        "row", unknown.row_weights(), data.n_features, lambda rows: [data.table.row_name(int(row)) for row in rows]
    )
    return f"""<section id="unknown">
<h2>Unknown cells</h2>
<p>{unknown_cells(data)}</p>
{by_column}
{by_row if data.shows_rows else ""}
</section>"""


def _ranking(axis: str, counts: NDArray[np.int64], total: int, names: Callable[[list[int]], Sequence[str]]) -> str:
    """Return a table of the columns or the rows with most unknown cells; ``total`` is the number of their cells."""
    order = [int(index) for index in np.argsort(-counts, kind="stable")[:MAX_LISTED] if counts[index]]
    rows = [
        (name_html(name), format_count(int(counts[index])), percent(int(counts[index]), total))
        for index, name in zip(order, names(order), strict=True)
    ]
    others = int((counts > 0).sum()) - len(order)
    note = f"<p class='note'>and {pluralize(others, f'further {axis}')} with unknown cells</p>" if others else ""
    numeric = (False, True, True)
    return table_html((axis, "unknown cells", "share"), rows, numeric, f"{axis}s with most unknown cells") + note
