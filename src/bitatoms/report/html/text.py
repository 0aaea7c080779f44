"""Numbers, names and lists as people read them, safe to put into HTML."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

LONGEST = 80  # characters of a name that are shown
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")  # no text, or no UTF-8


def text(value: object) -> str:
    """Anything as text for HTML, between tags and within quotes alike."""
    return html.escape(_UNSEEN.sub("\ufffd", str(value)))


def shortened(name: str) -> str:
    """A name, cut where it is longer than anyone reads."""
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def name(value: str) -> str:
    """A name for HTML; whatever direction its letters run in, what follows is not turned round by it."""
    return f"<bdi>{text(shortened(value))}</bdi>"


def count(number: int) -> str:
    """A whole number, with its thousands apart."""
    return f"{number:,}"


def many(number: int, one: str, several: str | None = None) -> str:
    """A number of things: 1 row, 2 rows."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def share(part: float, whole: float) -> str:
    """A share in percent; 0% and 100% mean none and all."""
    if not whole or not part:
        return "0%"
    percent = 100 * part / whole
    if part == whole:
        return "100%"
    if percent < 0.1:
        return "less than 0.1%"
    if percent > 99.9:
        return "more than 99.9%"
    return f"{percent:.1f}%" if percent < 9.95 or percent > 99 else f"{percent:.0f}%"


def listed(names: Sequence[str], most: int) -> str:
    """The first names, and how many more there are."""
    some = ", ".join(map(name, names[:most]))
    return some if len(names) <= most else f"{some} and {len(names) - most:,} more"


def chips(names: Sequence[str], kind: str = "") -> str:
    """Names as items of a list that wraps; ``kind`` is their class."""
    begin = f'<li class="{kind}">' if kind else "<li>"
    return "".join(f"{begin}{name(each)}</li>" for each in names)
