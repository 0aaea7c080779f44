"""The ``verbose`` parameter: show the log of a search on standard error."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ..formatting import escape_controls

_logger = logging.getLogger("bitatoms")
_lock = threading.Lock()
_n_users = 0
_handler: logging.Handler


class _Formatter(logging.Formatter):
    """Format messages without control characters."""

    def format(self, record: logging.LogRecord) -> str:
        return escape_controls(super().format(record))


@contextmanager
def log_to_stderr(verbose: int) -> Iterator[None]:
    """Show log messages on standard error: none for 0, level INFO for 1, level DEBUG for more.

    Searches that run at the same time share one handler, so that each message is shown once.
    """
    global _n_users, _handler
    if not verbose:
        yield
        return
    with _lock:
        _n_users += 1
        if _n_users == 1:
            _handler = logging.StreamHandler()
            _handler.setFormatter(_Formatter("[bitatoms] %(message)s"))
            _logger.addHandler(_handler)
            _logger.setLevel(logging.DEBUG if verbose > 1 else logging.INFO)
            _logger.propagate = False
    try:
        yield
    finally:
        with _lock:
            _n_users -= 1
            if not _n_users:
                _logger.removeHandler(_handler)
                _logger.setLevel(logging.NOTSET)
                _logger.propagate = True
