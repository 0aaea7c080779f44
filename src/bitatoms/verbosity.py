"""The ``verbose`` parameter: show the log of a search on standard error; text that is safe to show on a terminal."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# Control characters except tabs and line ends, characters that turn the direction of text around, lone surrogates
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
CONTROLS_OF_NAMES = re.compile(rf"{CONTROLS.pattern}|[\t\n]")
_logger = logging.getLogger("bitatoms")
_lock = threading.Lock()
_n_users = 0
_handler: logging.Handler | None = None


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


class _Formatter(logging.Formatter):
    """Format messages without control characters."""

    def format(self, record: logging.LogRecord) -> str:
        return escape_controls(super().format(record))


@contextmanager
def log_to_stderr(verbose: int) -> Iterator[None]:
    """Show log messages on standard error: none for 0, level INFO for 1, level DEBUG for more.

    Searches that run at the same time share one handler, so that each message is shown once.
    """
    if not verbose:
        yield
        return
    _acquire_handler(logging.DEBUG if verbose > 1 else logging.INFO)
    try:
        yield
    finally:
        _release_handler()


def _acquire_handler(level: int) -> None:
    """Install the handler for its first user."""
    global _n_users, _handler
    with _lock:
        _n_users += 1
        if _handler is None:
            _handler = logging.StreamHandler()
            _handler.setFormatter(_Formatter("[bitatoms] %(message)s"))
            _logger.addHandler(_handler)
            _logger.setLevel(level)
            _logger.propagate = False


def _release_handler() -> None:
    """Remove the handler after its last user."""
    global _n_users, _handler
    with _lock:
        _n_users -= 1
        if not _n_users and _handler is not None:
            _logger.removeHandler(_handler)
            _logger.setLevel(logging.NOTSET)
            _logger.propagate = True
            _handler = None
