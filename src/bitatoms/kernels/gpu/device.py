"""Device: where arrays are kept and kernels are run, other than in the memory and the processor of the host.

``Device`` is what the functions of this package need. ``CudaDevice`` implements it with CuPy, which is imported when a
device is looked for. Tests implement it on the processor (``tests/support/emulated_device.py``), with the same sources.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError, Parameter

WARP = 32  # threads
_SOURCES = Path(__file__).with_name("cuda")
_INCLUDE = re.compile(r'^#include "(?P<name>\w+\.cuh)"$', re.MULTILINE)
_WARPS_PER_BLOCK = 4
_WARPS_PER_PROCESSOR = 64  # that are started: a warp takes one row after the other
_SHARED_BYTES = 48 << 10  # memory that the threads of a block share


class DeviceMemoryError(MemoryError):
    """The memory of a device is too small."""


class Device(Protocol):
    """A device: its arrays, and how kernels are run on it."""

    name: str
    xp: Any  # the module of its arrays: NumPy's interface
    min_rows: int  # fewer rows are processed faster on the host

    def asarray(self, array: Any) -> Any:
        """Return an array on the device with the values of one of the host, or of the device."""
        ...

    def to_host(self, array: Any) -> NDArray[Any]:
        """Return a copy on the host."""
        ...

    def launch(self, file: str, kernel: str, n_warps: int, *arguments: Any, shared: int = 0, **macros: int) -> None:
        """Run a kernel of a source file, compiled with these macros; ``shared`` are the bytes that a warp shares.

        Arguments are arrays of the device, None, or NumPy's scalars of the type that the kernel declares.
        """
        ...

    def matmul(self, left: Any, right: Any, transposed: bool = False) -> Any:
        """Return the product of ``left``, or of its transpose, and ``right``: of float16, with sums of float32."""
        ...

    def free_bytes(self) -> int:
        """Return how much memory of the device can be allocated."""
        ...


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


def warps_per_block(shared: int) -> int:
    """Return how many warps, each of which shares this many bytes, are in a block of threads."""
    return max(1, min(_WARPS_PER_BLOCK, _SHARED_BYTES // max(1, shared)))


class CudaDevice:
    """A CUDA device, by CuPy."""

    min_rows = 1 << 13

    def __init__(self, cupy: Any) -> None:
        properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())
        self.name: str = properties["name"].decode()
        self.xp = cupy
        self._n_processors = int(properties["multiProcessorCount"])
        self._kernels: dict[tuple[Any, ...], Any] = {}
        self._lock = threading.Lock()

    def asarray(self, array: Any) -> Any:
        """Return an array on the device with the values of one of the host, or of the device."""
        with self._memory_errors():
            return self.xp.asarray(array)

    def to_host(self, array: Any) -> NDArray[Any]:
        """Return a copy on the host."""
        return np.asarray(self.xp.asnumpy(array))

    def launch(self, file: str, kernel: str, n_warps: int, *arguments: Any, shared: int = 0, **macros: int) -> None:
        """Run a kernel of a source file, compiled with these macros; ``shared`` are the bytes that a warp shares."""
        if n_warps <= 0:
            return
        per_block = warps_per_block(shared)
        n_blocks = -(-min(n_warps, _WARPS_PER_PROCESSOR * self._n_processors) // per_block)
        given = tuple(np.uint64(0) if argument is None else argument for argument in arguments)
        with self._memory_errors():
            function = self._kernel(file, kernel, macros)
            function((n_blocks,), (WARP * per_block,), given, shared_mem=shared * per_block)

    def _kernel(self, file: str, kernel: str, macros: dict[str, int]) -> Any:
        key = file, kernel, *sorted(macros.items())
        with self._lock:
            if key not in self._kernels:
                options = ("-std=c++17", *(f"-D{name}={value}" for name, value in sorted(macros.items())))
                module = self.xp.RawModule(code=source(file), options=options)
                self._kernels[key] = module.get_function(kernel)
            return self._kernels[key]

    def matmul(self, left: Any, right: Any, transposed: bool = False) -> Any:
        """Return the product of ``left``, or of its transpose, and ``right``: of float16, with sums of float32."""
        cublas, runtime = self.xp.cuda.cublas, self.xp.cuda.runtime
        n, m = left.shape if not transposed else left.shape[::-1]
        k = right.shape[1]
        with self._memory_errors():
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

    @contextmanager
    def _memory_errors(self) -> Iterator[None]:
        try:
            yield
        except self.xp.cuda.memory.OutOfMemoryError as error:
            self.xp.get_default_memory_pool().free_all_blocks()
            raise DeviceMemoryError(f"{self.name}: {error}") from None


@cache
def find_device() -> CudaDevice:
    """Return the CUDA device that CuPy uses.

    Raises
    ------
    InputError
        CuPy is not installed, or finds no device.
    """
    try:
        import cupy
    except ImportError as error:
        raise InputError(
            Parameter("device", "cuda"),
            f' needs CuPy: pip install "bitatoms[cuda12]", or "bitatoms[cuda13]" for CUDA 13 ({error})',
        ) from None
    try:
        return CudaDevice(cupy)
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise InputError(Parameter("device", "cuda"), f" needs a CUDA device, but CuPy finds none: {error}") from None
