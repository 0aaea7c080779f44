"""A process that compiles kernels for another one, and writes a line when one is in the cache."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading

import numba

from .jit import compile_for
from .signatures import Variant


def main() -> None:
    """Compile the kernels that the first line of the input names; if the input ends, stop after the current one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the other process
    request = json.loads(sys.stdin.readline())
    numba.config.CACHE_DIR = request["cache"]
    waits_for_end = threading.Thread(target=sys.stdin.read, daemon=True)
    waits_for_end.start()
    for kernel, signature in request["variants"]:
        variant = Variant(kernel, signature, 0.0, ())
        compile_for(variant.dispatcher, variant.types)
        print(json.dumps([kernel, signature]), flush=True)
        if not waits_for_end.is_alive():
            break
    os._exit(0)  # not waiting for the thread
