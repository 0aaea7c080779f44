"""Several names in one cell of a file, such as the features of a pattern: separated by ``; ``, quoted where needed."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable

from ..formatting import quoted

_AMBIGUOUS = re.compile(r'^["\s]|[;\r\n]|\s$')  # a name that is quoted


def join_names(names: Iterable[str]) -> str:
    """Return names separated by ``; ``; one with a semicolon is quoted, as cells of CSV files are.

    Examples
    --------
    >>> print(join_names(["milk", "tea; green", "jam"]))
    milk; "tea; green"; jam
    """
    return "; ".join(f'"{name.replace(chr(34), 2 * chr(34))}"' if _AMBIGUOUS.search(name) else name for name in names)


def split_names(text: str) -> tuple[str, ...]:
    """Return the names that `join_names` has joined; blanks around them, and names that are blank, are ignored.

    Raises
    ------
    ValueError
        Quotes do not match.

    Examples
    --------
    >>> split_names('milk; "tea; green";jam')
    ('milk', 'tea; green', 'jam')
    """
    try:
        (names,) = csv.reader([text], delimiter=";", skipinitialspace=True, strict=True) if text.strip() else ([],)
    except (csv.Error, ValueError):
        raise ValueError(f"quotes do not match in {quoted(text)}; write a name with a semicolon in quotes") from None
    return tuple(stripped for name in names if (stripped := name.strip()))
