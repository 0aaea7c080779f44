"""Ctrl-C and SIGTERM, deferred where an interrupt would leave a lock held or a thread unnoticed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

_SIGNALS = signal.SIGINT, signal.SIGTERM


@contextmanager
def deferred_interrupts() -> Iterator[Sequence[object]]:
    """Call the handlers of signals, which may raise KeyboardInterrupt, after the block instead of within it.

    Yields the signals that were deferred, none at first.

    Python calls handlers in the main thread, between any two instructions. A lock that Python code takes, such as that
    of llvmlite, may then be held for ever, and other threads wait for it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield ()
        return
    handlers = {int(number): handler for number in _SIGNALS if callable(handler := signal.getsignal(number))}
    received: list[tuple[int, FrameType | None]] = []
    deferring = True

    def defer(number: int, frame: FrameType | None) -> None:
        if deferring:
            received.append((number, frame))
        else:  # an interrupt came while the handlers were restored
            handlers[number](number, frame)

    try:
        for number in handlers:
            signal.signal(number, defer)
        yield received
    finally:
        deferring = False
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for number, frame in received:
            handlers[number](number, frame)
