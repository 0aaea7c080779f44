"""Copies between the host and a CUDA device, through pinned memory.

The device copies from and to pinned memory much faster than the processor copies to it: several threads do that, a
piece each at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

MIN_BYTES = 1 << 23  # fewer are copied by one thread, as CuPy does
_CHUNK_BYTES = 1 << 22
_N_THREADS = 4


class Transfers:
    """Copies of large arrays, by threads that each have a pinned piece of memory and a stream."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._threads = ThreadPoolExecutor(_N_THREADS, "bitatoms-copy", self._prepare)
        self._own = threading.local()

    def _prepare(self) -> None:
        """Allocate what a thread needs."""
        self._own.stream = self._cupy.cuda.Stream(non_blocking=True)
        self._own.pinned = self._cupy.cuda.alloc_pinned_memory(_CHUNK_BYTES)
        self._own.bytes = np.frombuffer(self._own.pinned, np.uint8, _CHUNK_BYTES)

    def to_device(self, array: NDArray[Any]) -> Any:
        """Return a copy of a contiguous array on the device."""
        runtime, out = self._cupy.cuda.runtime, self._cupy.empty(array.shape, array.dtype)
        self._cupy.cuda.get_current_stream().synchronize()  # what used this memory before
        given = array.reshape(-1).view(np.uint8)

        def copy(piece: slice) -> None:
            own, size = self._own, piece.stop - piece.start
            own.bytes[:size] = given[piece]
            address = out.data.ptr + piece.start
            runtime.memcpyAsync(address, own.pinned.ptr, size, runtime.memcpyHostToDevice, own.stream.ptr)
            own.stream.synchronize()

        self._copy(copy, array.nbytes)
        return out

    def to_host(self, array: Any) -> NDArray[Any]:
        """Return a copy of a contiguous array on the host."""
        runtime, out = self._cupy.cuda.runtime, np.empty(array.shape, array.dtype)
        self._cupy.cuda.get_current_stream().synchronize()  # what computes the array
        taken = out.reshape(-1).view(np.uint8)

        def copy(piece: slice) -> None:
            own, size = self._own, piece.stop - piece.start
            address = array.data.ptr + piece.start
            runtime.memcpyAsync(own.pinned.ptr, address, size, runtime.memcpyDeviceToHost, own.stream.ptr)
            own.stream.synchronize()
            taken[piece] = own.bytes[:size]

        self._copy(copy, array.nbytes)
        return out

    def _copy(self, copy: Callable[[slice], None], n_bytes: int) -> None:
        """Copy all pieces."""
        starts = range(0, n_bytes, _CHUNK_BYTES)
        pieces = [slice(start, min(start + _CHUNK_BYTES, n_bytes)) for start in starts]
        for _ in self._threads.map(copy, pieces):
            pass
