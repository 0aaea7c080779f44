"""Device: where arrays are kept and kernels are run, other than in the memory and the processor of the host.

It is a CUDA device, by CuPy, which is imported when a device is looked for. Tests have one with the same methods, which
runs the same sources on the processor (``tests/support/emulated_device.py``).
"""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError, first_line

WARP = 32  # threads
_SOURCES = Path(__file__).with_name("cuda")
_INCLUDE = re.compile(r'^#include "(?P<name>\w+\.cuh)"$', re.MULTILINE)
_KERNEL = re.compile(r'^extern "C" __global__ void (LIMITS )?(?P<name>\w+)\(.*?^}$', re.MULTILINE | re.DOTALL)
_WARPS_PER_BLOCK = 4
_WARPS_PER_PROCESSOR = 64  # that are started: a warp takes one row after the other
_SHARED_BYTES = 48 << 10  # memory that the threads of a block share
_MAX_WORK_BYTES = 1 << 29
_LEAST_RESIDENT = 1 << 20  # bytes of a table that is kept on the device
_MIN_BYTES = 1 << 23  # fewer are copied by one thread, as CuPy does
_CHUNK_BYTES = 1 << 22
_N_COPYING = 4  # threads
_N_SESSIONS = 3  # threads that use the device at a time: one copies to it, one computes, one copies from it


INSTALL = (
    'install it with pip install "bitatoms[cuda12]" or "bitatoms[cuda13]", whichever CUDA version the driver supports'
)


class NoDeviceError(InputError, RuntimeError):
    """There is no CUDA device to compute on; the message states what is missing, and how to fix it."""


class DeviceMemoryError(MemoryError):
    """The memory of a device is too small."""


def is_out_of_memory(error: Exception) -> bool:
    """Return whether an error is about the memory of a device: raised here, or by CuPy."""
    is_cupy = type(error).__module__.partition(".")[0] == "cupy"
    return isinstance(error, DeviceMemoryError) or (is_cupy and isinstance(error, MemoryError))


def max_shared_words() -> int:
    """Return how many words a warp may share with itself at most."""
    return _SHARED_BYTES // 8


@cache
def source(file: str) -> str:
    """Return a source file with the files that it includes, each of them once."""
    included: set[str] = set()

    def expand(name: str) -> str:
        if name in included:
            return ""
        included.add(name)
        text = (_SOURCES / name).read_text(encoding="utf-8").replace("#pragma once\n", "")
        return _INCLUDE.sub(lambda match: expand(match["name"]), text)

    return expand(file)


def source_of(file: str, kernel: str) -> str:
    """Return a source file with this kernel only: others would be compiled, too."""
    return _KERNEL.sub(lambda match: match[0] if match["name"] == kernel else "", source(file))


def warps_per_block(shared: int) -> int:
    """Return how many warps, each of which shares this many bytes, are in a block of threads."""
    return max(1, min(_WARPS_PER_BLOCK, _SHARED_BYTES // max(1, shared)))


class _Transfers:
    """Copies of large arrays between the host and a device, through pinned memory.

    The device copies from and to pinned memory much faster than the processor copies to it: several threads do that,
    each with a pinned piece of memory and a stream.
    """

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._threads = ThreadPoolExecutor(_N_COPYING, "bitatoms-copy", self._prepare)
        self._own = threading.local()

    def _prepare(self) -> None:
        """Allocate what a thread needs."""
        self._own.stream = self._cupy.cuda.Stream(non_blocking=True)
        self._own.pinned = self._cupy.cuda.alloc_pinned_memory(_CHUNK_BYTES)
        self._own.bytes = np.frombuffer(self._own.pinned, np.uint8, _CHUNK_BYTES)

    def copy(self, array: NDArray[Any], address: int, to_device: bool) -> None:
        """Copy a contiguous array of the host to this address of the device, or the reverse."""
        runtime, flat = self._cupy.cuda.runtime, array.reshape(-1).view(np.uint8)
        self._cupy.cuda.get_current_stream().synchronize()  # what used the memory before, or computes its contents

        def copy_piece(start: int) -> None:
            own, piece, there = self._own, flat[start : start + _CHUNK_BYTES], address + start
            if to_device:
                own.bytes[: len(piece)] = piece
                target, source, kind = there, own.pinned.ptr, runtime.memcpyHostToDevice
            else:
                target, source, kind = own.pinned.ptr, there, runtime.memcpyDeviceToHost
            runtime.memcpyAsync(target, source, len(piece), kind, own.stream.ptr)
            own.stream.synchronize()
            if not to_device:
                piece[:] = own.bytes[: len(piece)]

        for _ in self._threads.map(copy_piece, range(0, array.nbytes, _CHUNK_BYTES)):
            pass


class Device:
    """A CUDA device: its arrays, and how kernels are run on it."""

    min_rows = 1 << 13  # fewer rows are processed faster on the host

    def __init__(self, cupy: Any) -> None:
        runtime, pool = cupy.cuda.runtime, cupy.get_default_memory_pool()
        properties = runtime.getDeviceProperties(runtime.getDevice())
        self.name: str = properties["name"].decode()
        self.xp = cupy  # the module of its arrays: NumPy's interface
        self._n_processors = int(properties["multiProcessorCount"])
        self._is_limited = bool(pool.get_limit())
        self._n_bytes = pool.get_limit() or int(properties["totalGlobalMem"])
        self.work_bytes = min(_MAX_WORK_BYTES, self._n_bytes // 16)  # for intermediate results of an operation
        self._transfers = _Transfers(cupy)
        self._kernels: dict[tuple[Any, ...], Any] = {}
        # Tables that are kept on the device, each for as long as the array exists that it was copied from.
        self._resident: dict[tuple[Any, ...], tuple[weakref.ref[NDArray[Any]], Any]] = {}
        self._lock = threading.RLock()
        self._sessions = threading.BoundedSemaphore(_N_SESSIONS)
        self._own = threading.local()  # of a thread: its stream, and how many sessions it is in

    @contextmanager
    def session(self) -> Iterator[None]:
        """Return a context in which this thread uses the device: few threads do at a time.

        A thread has a stream of its own: its copies then overlap with the kernels of another. Raises DeviceMemoryError
        where the memory of the device is too small.
        """
        if getattr(self._own, "depth", 0):
            yield
            return
        with self._sessions:
            if not hasattr(self._own, "stream"):
                self._own.stream = self.xp.cuda.Stream(non_blocking=True)
            self._own.depth = 1
            try:
                with self._own.stream:
                    yield
                    self._own.stream.synchronize()
            except self.xp.cuda.memory.OutOfMemoryError as error:
                raise DeviceMemoryError(
                    f"the memory of {self.name} is too small ({error}); compute on the CPU, or let CuPy use more memory"
                ) from None
            finally:
                self._own.depth = 0
                if self._is_limited:  # other threads can use only what is not kept for this one
                    self.xp.get_default_memory_pool().free_all_blocks(self._own.stream)

    def asarray(self, array: Any) -> Any:
        """Return an array on the device with the values of one of the host, or of the device."""
        if not (isinstance(array, np.ndarray) and array.nbytes >= _MIN_BYTES and array.flags.c_contiguous):
            return self.xp.asarray(array)
        out = self.xp.empty(array.shape, array.dtype)
        self._transfers.copy(array, out.data.ptr, to_device=True)
        return out

    def resident(self, words: NDArray[np.uint64]) -> Any:
        """Return the words of a table on the device, to read them; those of a large table are kept there.

        Not if the memory that they are in can be written: it may have other contents later.
        """
        owner = words
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        if owner.flags.writeable or owner.base is not None or words.nbytes < _LEAST_RESIDENT:
            return self.asarray(words)
        key = words.ctypes.data, words.shape, words.strides
        with self._lock:
            kept_owner, kept = self._resident.get(key, (None, None))
            if kept_owner is not None and kept_owner() is owner:
                return kept
        array = self.asarray(words)
        self.xp.cuda.get_current_stream().synchronize()  # other threads use it in other streams
        with self._lock:
            if sum(kept.nbytes for _, kept in list(self._resident.values())) + array.nbytes <= self._n_bytes // 4:
                self._resident[key] = weakref.ref(owner, lambda _: self._resident.pop(key, None)), array
        return array

    def release(self) -> None:
        """Free the memory that is kept for later."""
        self.xp.cuda.Device().synchronize()  # other threads may still read it
        with self._lock:
            self._resident.clear()
        self.xp.get_default_memory_pool().free_all_blocks()

    def to_host(self, array: Any) -> NDArray[Any]:
        """Return a copy on the host."""
        if not (array.nbytes >= _MIN_BYTES and array.flags.c_contiguous):
            return np.asarray(self.xp.asnumpy(array))
        out = np.empty(array.shape, array.dtype)
        self._transfers.copy(out, array.data.ptr, to_device=False)
        return out

    def launch(self, file: str, kernel: str, n_warps: int, *arguments: Any, shared: int = 0, **macros: int) -> None:
        """Run a kernel of a source file, compiled with these macros; ``shared`` are the bytes that a warp shares.

        Arguments are arrays of the device, None, or NumPy's scalars of the type that the kernel declares.
        """
        if n_warps <= 0:
            return
        per_block = warps_per_block(shared)
        n_blocks = -(-min(n_warps, _WARPS_PER_PROCESSOR * self._n_processors) // per_block)
        given = tuple(np.uint64(0) if argument is None else argument for argument in arguments)
        function = self.prepare(file, kernel, **macros)
        function((n_blocks,), (WARP * per_block,), given, shared_mem=shared * per_block)

    def prepare(self, file: str, kernel: str, **macros: int) -> Any:
        """Return a kernel of a source file, compiled with these macros, unless CuPy has it in its cache on disk."""
        key = file, kernel, *sorted(macros.items())
        with self._lock:
            if key not in self._kernels:
                options = ("-std=c++17", *(f"-D{name}={value}" for name, value in sorted(macros.items())))
                module = self.xp.RawModule(code=source_of(file, kernel), options=options)
                self._kernels[key] = module.get_function(kernel)
            return self._kernels[key]

    def matmul(self, left: Any, right: Any, transposed: bool = False) -> Any:
        """Return the product of ``left``, or of its transpose, and ``right``: of float16, with sums of float32."""
        cublas, runtime = self.xp.cuda.cublas, self.xp.cuda.runtime
        n, m = left.shape if not transposed else left.shape[::-1]
        k = right.shape[1]
        if not (n and m and k):  # cuBLAS refuses empty matrices
            return self.xp.zeros((n, k), np.float32)
        out = self.xp.empty((n, k), np.float32)
        one, zero = np.ones(1, np.float32), np.zeros(1, np.float32)
        half, single = runtime.CUDA_R_16F, runtime.CUDA_R_32F
        # cuBLAS takes matrices by columns: to it, these are the transposes, and so is the product.
        side = cublas.CUBLAS_OP_T if transposed else cublas.CUBLAS_OP_N
        cublas.gemmEx(
            self.xp.cuda.device.get_cublas_handle(), cublas.CUBLAS_OP_N, side, k, n, m, one.ctypes.data,
            right.data.ptr, half, k, left.data.ptr, half, left.shape[1], zero.ctypes.data, out.data.ptr, single, k,
            cublas.CUBLAS_COMPUTE_32F, cublas.CUBLAS_GEMM_DEFAULT,
        )  # fmt: skip
        return out

    def free_bytes(self) -> int:
        """Return how much memory of the device can be allocated."""
        pool, (free, _) = self.xp.get_default_memory_pool(), self.xp.cuda.runtime.memGetInfo()
        unused = pool.free_bytes()
        limit = pool.get_limit()
        return int(min(free, limit - pool.total_bytes()) + unused) if limit else int(free + unused)


def find_device() -> Device:
    """Return the current CUDA device of CuPy; it is looked for once per process.

    Raises
    ------
    NoDeviceError
        CuPy is not installed, or finds no device.
    """
    found = _found()
    if isinstance(found, NoDeviceError):
        raise NoDeviceError(*found.args)  # not the same object again, whose traceback would grow
    return found


def import_cupy() -> Any:
    """Return the module cupy; raise NoDeviceError if it is not installed, or cannot be imported."""
    try:
        import cupy
    except ModuleNotFoundError as error:
        if error.name != "cupy":
            raise _broken(error) from error
        raise NoDeviceError(f"CuPy is not installed; {INSTALL}") from error
    except ImportError as error:
        raise _broken(error) from error
    return cupy


def _broken(error: ImportError) -> NoDeviceError:
    """Return the error about a CuPy that is installed and cannot be imported."""
    return NoDeviceError(f"CuPy cannot be imported ({first_line(error)}); {INSTALL}")


@cache
def _found() -> Device | NoDeviceError:
    """Return the device, or the error that states why there is none."""
    try:
        cupy = import_cupy()
    except NoDeviceError as error:
        return NoDeviceError(*error.args)
    try:
        if not cupy.cuda.runtime.getDeviceCount():
            return NoDeviceError("CuPy finds no CUDA device")
        if number := cupy.cuda.runtime.getDevice():  # of this thread; others would use the first one
            return NoDeviceError(f"device {number} of CuPy is selected; select it with CUDA_VISIBLE_DEVICES={number}")
        return Device(cupy)
    except RuntimeError as error:  # no driver, or one that is too old for CuPy
        return NoDeviceError(f"CuPy finds no CUDA device ({first_line(error)}); check the driver with nvidia-smi")
