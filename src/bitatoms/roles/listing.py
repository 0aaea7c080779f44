"""Parts of the page of a role report: lists of names that are cut, links to roles, and tables of entries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..formatting import listed_names, percent
from ..html.document import more, part
from ..html.tables import table_html
from ..html.text import chips_html, format_count, name_html
from .entries import RoleEntry

MAX_ROWS = 500  # of a table
_MAX_CHIPS, _MAX_LINKS = 20, 12  # names in a cell of a table
_FIELDS_OF_ROLES = ("roles", "role", "first", "second", "within", "given_by")  # whose names are links

Column = tuple[str, str | Callable[[Any], str]]  # a heading, and a field of the entries or what returns its HTML


class Listings:
    """Tables of entries, in which the names of roles are links to the cards of these roles."""

    def __init__(self, roles: Sequence[RoleEntry]) -> None:
        self._numbers = {role.name: number for number, role in enumerate(roles, start=1)}

    def table(self, label: str, entries: Sequence[Any], columns: Sequence[Column]) -> str:
        """Return a table with one row per entry, without those beyond a limit; nothing if there are no entries."""
        if not entries:
            return ""
        rows = [[self._cell(entry, source) for _, source in columns] for entry in entries[:MAX_ROWS]]
        are_numbers = [any(cell[:1].isdigit() for cell in column) for column in zip(*rows, strict=True)]
        table = table_html([heading for heading, _ in columns], rows, are_numbers, label, "listing")
        return table + more(len(entries) - MAX_ROWS)

    def part(self, heading: str, entries: Sequence[Any], columns: Sequence[Column], text: str = "") -> str:
        """Return a part of a section with a table of entries; nothing if there are no entries."""
        return part(heading, text, self.table(heading, entries, columns))

    def links(self, names: Sequence[str]) -> str:
        """Return the first names as links, and the number of the others."""
        return listed_names(names, _MAX_LINKS, self._link) if names else "–"

    def _link(self, name: str) -> str:
        number = self._numbers.get(name)
        return name_html(name) if number is None else f'<a href="#role-{number}">{name_html(name)}</a>'

    def _cell(self, entry: Any, source: str | Callable[[Any], str]) -> str:
        """Return a cell as HTML: a count, a share, a name or several names."""
        if callable(source):
            return source(entry)
        value = getattr(entry, source)
        if isinstance(value, int):
            return format_count(value)
        if isinstance(value, float):
            return percent(value, 1)
        if source in _FIELDS_OF_ROLES:
            return self.links([value] if isinstance(value, str) else value)
        return name_html(value) if isinstance(value, str) else chips(value)


def chips(names: Sequence[str], limit: int = _MAX_CHIPS, css_class: str = "") -> str:
    """Return the first names as the items of a list, and the number of the others."""
    return chips_html(names, len(names) if len(names) <= limit + 2 else limit, css_class)
