"""Run the examples in docstrings in a temporary folder, without a display; let SIGINT interrupt, and set the clocks."""

import os
import signal
import time

import pytest


def start_clock_at(name, seconds):
    """Let a clock of this process continue from this time, as on a machine that booted this long ago."""
    clock = getattr(time, name)
    offset = seconds - clock()
    setattr(time, name, lambda: clock() + offset)


for name in ("perf_counter", "monotonic") if "CLOCK_SHIFT" in os.environ else ():
    start_clock_at(name, float(os.environ["CLOCK_SHIFT"]))  # now: bitatoms is not imported yet


os.environ.setdefault("MPLBACKEND", "Agg")  # plots in examples open no windows


@pytest.fixture(autouse=True)
def doctest_folder(request, monkeypatch, tmp_path):
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("MPLBACKEND", "Agg")


@pytest.fixture(autouse=True, scope="session")
def interruptible():
    """Let SIGINT interrupt this process and those that it starts.

    A shell starts commands in the background with SIGINT ignored, which their children inherit.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
