"""Measure the memory that reading a file takes."""

from __future__ import annotations

import tracemalloc

import bitatoms as ba


def read_with_peak(path, **options):
    """Return the table in a file, and the peak number of bytes that Python allocated while reading it."""
    ba.read(path, **options)  # compile kernels and import libraries first
    tracemalloc.start()
    try:
        table = ba.read(path, **options)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return table, peak
