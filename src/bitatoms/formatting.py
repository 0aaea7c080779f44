"""Numbers and names as text that is safe to show: in messages, summaries, reports and on the command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

# Control characters except tabs and line ends, characters that turn the direction of text around, lone surrogates
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
CONTROLS_OF_NAMES = re.compile(rf"{CONTROLS.pattern}|[\t\n]")
_NAME_LENGTH = 40  # characters of a name in a message


def times(lift: float | None) -> str:
    """Return how many times as often something occurs: two digits, or all of an integer below ten million.

    A dash if that is unknown, or if it never occurs: a pattern that no row has in full has no lift.
    """
    if not lift:
        return "–"
    if lift >= 1e7:  # of wide patterns, whose features together are never expected
        return f"×{lift:.1e}".replace("e+0", "e+")
    return f"×{lift:.2g}" if lift < 9.95 else f"×{lift:,.0f}"


def few(count: float) -> str:
    """Return a count that need not be an integer: one decimal below 10."""
    if not count or count >= 9.95:
        return f"{count:,.0f}"
    return "<0.1" if count < 0.05 else f"{count:.1f}"


def percent(part: float, total: float) -> str:
    """Return a proportion in percent: one decimal, two near 0% and 100%, which only exact values are shown as."""
    if not total or not part:
        return "0%"
    if part == total:
        return "100%"
    value = 100 * part / total
    if value < 0.01:
        return "less than 0.01%"
    if value > 99.99:
        return "more than 99.99%"
    return f"{value:.2f}%" if value < 0.995 or value > 99 else f"{value:.1f}%"


def noun(number: int, singular: str, plural: str | None = None) -> str:
    """Return the singular for 1, otherwise the plural; by default, it ends in s."""
    return singular if number == 1 else plural or f"{singular}s"


def counted(number: int, singular: str, plural: str | None = None, style: str = "") -> str:
    """Return a number with its noun, in the singular for 1; by default, the plural ends in s.

    Examples
    --------
    >>> print(counted(1, "row"), counted(2, "row"), counted(0, "search", "searches"))
    1 row 2 rows 0 searches
    """
    return f"{number:{style}} {noun(number, singular, plural)}"


def quoted(name: object) -> str:
    """Return a name, or another text of a file, in quotes and cut to a length that messages can show.

    Examples
    --------
    >>> print(quoted("milk"))
    'milk'
    """
    return repr(str(name)[:_NAME_LENGTH])


def escape_controls(text: str) -> str:
    r"""Return text whose control characters are replaced by escapes, as in Python.

    Names in a file may contain sequences that a terminal would execute.

    Examples
    --------
    >>> print(escape_controls("a \x1b[31mname\x07"))
    a \x1b[31mname\x07
    """
    return CONTROLS.sub(_escape, text)


def escape_name(name: str) -> str:
    r"""Return a name with all control characters escaped, tabs and line ends included.

    Examples
    --------
    >>> print(escape_name("two\nlines"))
    two\nlines
    """
    return CONTROLS_OF_NAMES.sub(_escape, name)


def quote_name(name: str, *separators: str) -> str:
    r"""Return a name as it is listed on a terminal: control characters escaped, in quotes if it contains a comma.

    Quotes are those of CSV files, as options take them. They also enclose names with one of the other separators.

    Examples
    --------
    >>> print(", ".join(map(quote_name, ["tea", "milk, fat-free", 'a 3" pipe'])))
    tea, "milk, fat-free", a 3" pipe
    >>> print(quote_name("salt and pepper", " and "))
    "salt and pepper"
    """
    text = escape_name(name)
    is_quoted = text.startswith('"') or any(separator in text for separator in (",", *separators))
    return '"{}"'.format(text.replace('"', '""')) if is_quoted else text


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")


def listed_names(names: Iterable[object], n_shown: int = 5, show: Callable[[Any], str] = quoted) -> str:
    """Return the first names, each as ``show`` returns it, and the number of the others.

    Examples
    --------
    >>> print(listed_names(["milk", "tea", "jam"], 2))
    'milk', 'tea' and 1 more
    >>> print(listed_names([]))
    none
    """
    found = list(names)
    text = ", ".join(map(show, found[:n_shown])) or "none"
    return text if len(found) <= n_shown else f"{text} and {len(found) - n_shown} more"


def numbered(prefix: str, n: int) -> tuple[str, ...]:
    """Return n names: the prefix with numbers from 1.

    Examples
    --------
    >>> numbered("atom", 2)
    ('atom1', 'atom2')
    """
    return tuple(f"{prefix}{number}" for number in range(1, n + 1))


def verb(number: int, plural: str) -> str:
    """Return the verb of a sentence whose subject is a number of something, such as "uses" for 1."""
    return f"{plural}s" if number == 1 else plural


def have(number: int) -> str:
    """Return the verb of a sentence whose subject is a number of something."""
    return "has" if number == 1 else "have"


def be(number: int) -> str:
    """Return the verb of a sentence whose subject is a number of something."""
    return "is" if number == 1 else "are"


def tally(noun: str, *parts: tuple[int, Callable[[int], str], str]) -> str:
    """Return a clause about how many have or are what, without those that are none; empty if all are none.

    Examples
    --------
    >>> tally("role", (1, have, "a single user"), (0, have, "two users"), (3, have, "none"))
    '1 role has a single user, and 3 have none'
    """
    clauses: list[str] = []
    for number, verb, what in parts:
        if number:
            clauses.append(f"{number if clauses else counted(number, noun)} {verb(number)} {what}")
    if len(clauses) > 1:
        clauses[-1] = f"and {clauses[-1]}"
    return ", ".join(clauses)
