"""SIGTERM, which `timeout`, `kill` and batch systems send, interrupts a command as Ctrl-C does."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_received: signal.Signals | None = None


@contextmanager
def interrupted_by_sigterm() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGTERM, unless the process ignores it.

    Only the first SIGTERM counts: `timeout` sends several, and what follows saves what was done so far.
    """
    global _received
    _received = None
    in_main_thread = threading.current_thread() is threading.main_thread()  # only there, handlers can be installed
    if not in_main_thread or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _interrupt(number: int, frame: FrameType | None) -> None:
    global _received
    if _received is None:
        _received = signal.Signals(number)
        raise KeyboardInterrupt


def interrupt_exit_code() -> int:
    """Return the exit code of an interrupted command: 128 and the number of the signal."""
    return 128 + (_received or signal.SIGINT)


def describe_interrupt() -> str:
    """Return what ended a command."""
    return "interrupted" if _received is None else f"interrupted by {_received.name}"
