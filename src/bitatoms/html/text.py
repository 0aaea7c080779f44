"""Numbers, names and lists formatted as text that is safe in HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from ..formatting import counted

MAX_NAME_LENGTH = 80  # characters of a name that are shown
_NO_NAMES = '<li class="more">–</li>'  # in a list of names
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")  # control, or not UTF-8


def escape(value: object) -> str:
    """Return a value as text that is safe between tags and in quoted attributes."""
    return html.escape(printable(str(value)))


def printable(text: str) -> str:
    """Return text without control characters and what UTF-8 cannot hold."""
    return _UNPRINTABLE.sub("\ufffd", text)


def truncated(name: str) -> str:
    """Return a name, cut to the maximum length."""
    return name if len(name) <= MAX_NAME_LENGTH else name[: MAX_NAME_LENGTH - 1] + "…"


def name_html(name: str) -> str:
    """Return a truncated name as HTML; right-to-left text does not affect what follows."""
    return f"<bdi>{escape(truncated(name))}</bdi>"


def format_count(number: int) -> str:
    """Return an integer with thousands separators."""
    return f"{number:,}"


def pluralize(number: int, singular: str) -> str:
    """Return a number with its noun: 1 row, 2 rows."""
    return counted(number, singular, style=",")


def class_attribute(css_class: str) -> str:
    """Return the attribute of an element with a class; nothing without one."""
    return f' class="{css_class}"' if css_class else ""


def chip_items(names: Sequence[str], limit: int, css_class: str = "") -> str:
    """Return the first names as the items of a wrapping list, and the number of the others."""
    items = "".join(f"<li{class_attribute(css_class)}>{name_html(name)}</li>" for name in names[:limit])
    n_more = len(names) - limit
    return items + (f'<li class="more {css_class}">and {format_count(n_more)} more</li>' if n_more > 0 else "")


def chips_html(names: Sequence[str], limit: int, css_class: str = "") -> str:
    """Return the first names as a wrapping list, and the number of the others."""
    return f'<ul class="chips">{chip_items(names, limit, css_class) or _NO_NAMES}</ul>'
