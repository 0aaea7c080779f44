"""The ``verbose`` parameter: show the log of a search on standard error."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_logger = logging.getLogger("bitatoms")
_lock = threading.Lock()
_n_users = 0
_handler: logging.Handler | None = None


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
            _handler.setFormatter(logging.Formatter("[bitatoms] %(message)s"))
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
