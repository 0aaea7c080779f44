"""Parts of the page of a role report: lists of names that are cut, links to roles, and tables that are cut."""

from __future__ import annotations

from collections.abc import Sequence

from ..formatting import listed_names
from ..html.tables import table_html
from ..html.text import chips_html, format_count, name_html
from .audit import RoleReport

MAX_ROWS = 500  # of a table


class RoleLinks:
    """Names of roles as links to their cards."""

    def __init__(self, report: RoleReport, n_cards: int) -> None:
        self._numbers = {role.name: number for number, role in enumerate(report.roles[:n_cards], start=1)}

    def of(self, names: Sequence[str], limit: int = 12) -> str:
        """Return the first names, and the number of the others."""
        return listed_names(names, limit, self._link) if names else "–"

    def _link(self, name: str) -> str:
        number = self._numbers.get(name)
        return name_html(name) if number is None else f'<a href="#role-{number}">{name_html(name)}</a>'


def chips(names: Sequence[str], limit: int, css_class: str = "") -> str:
    """Return the first names as the items of a list, and the number of the others."""
    shown = names if len(names) <= limit + 2 else names[:limit]
    items = chips_html(shown, css_class) or '<li class="more">–</li>'
    if len(names) > len(shown):
        items += f'<li class="more">and {format_count(len(names) - len(shown))} more</li>'
    return f'<ul class="chips">{items}</ul>'


def folded(summary: str, body: str) -> str:
    """Return what is shown after a click."""
    return f"<details><summary>{summary}</summary>{body}</details>"


def listing(
    label: str, columns: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[str] = (), n_rows: int = 0
) -> str:
    """Return a table of HTML cells; ``n_rows`` is the number of rows that there are, if not all are passed."""
    n_more = max(n_rows, len(rows)) - min(len(rows), MAX_ROWS)
    table = table_html(columns, rows[:MAX_ROWS], [name in numeric for name in columns], label, "listing")
    return table + (f'<p class="note">and {format_count(n_more)} more</p>' if n_more else "")
