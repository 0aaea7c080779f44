"""A device on the processor: NumPy's arrays, and the CUDA sources compiled by a C++ compiler.

Each thread of a warp is a fiber (``cuda_emulation.h``), so that the kernels that are tested are those of CUDA devices.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import tempfile
import threading
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bitatoms.kernels.gpu.device import WARP, source, warps_per_block

COMPILER = shutil.which("g++") or shutil.which("clang++")
_HEADER = Path(__file__).with_name("cuda_emulation.h")
_KERNEL = re.compile(r'extern "C" __global__ void (?:LIMITS )?(\w+)\(')
_MAX_WARPS = 8
_running = threading.Lock()  # fibers of different threads would share their state


class EmulatedDevice:
    """A `Device` for tests."""

    name = "emulated device"
    xp = np
    min_rows = 1
    work_bytes = 1 << 16  # so that several parts are processed

    def __init__(self, free_bytes: int = 1 << 40) -> None:
        self._free_bytes = free_bytes
        self.n_launches = 0

    def asarray(self, array: Any) -> Any:
        """Return an array with its own memory."""
        return np.array(array)

    def to_host(self, array: Any) -> Any:
        """Return a copy."""
        return np.array(array)

    def launch(self, file: str, kernel: str, n_warps: int, *arguments: Any, shared: int = 0, **macros: int) -> None:
        """Run a kernel."""
        if n_warps <= 0:
            return
        self.n_launches += 1
        function = _library(file, tuple(sorted(macros.items())))[f"emulate_{kernel}"]
        function.restype = None
        per_block = warps_per_block(shared)
        kept: list[Any] = []
        for argument in arguments:
            if argument is None:
                kept.append(ctypes.c_void_p(None))
            elif isinstance(argument, np.ndarray):
                assert argument.flags.c_contiguous
                kept.append(ctypes.c_void_p(argument.ctypes.data))
            else:
                assert isinstance(argument, np.generic), (kernel, argument)
                kept.append((ctypes.c_char * argument.nbytes).from_buffer_copy(argument.tobytes()))
        pointers = (ctypes.c_void_p * len(kept))(*(ctypes.addressof(value) for value in kept))
        n_blocks = -(-min(n_warps, _MAX_WARPS) // per_block)
        with _running:
            function(n_blocks, WARP * per_block, shared * per_block, pointers)

    def prepare(self, file: str, kernel: str, **macros: int) -> None:
        """Compile a source file."""
        _library(file, tuple(sorted(macros.items())))[f"emulate_{kernel}"]

    def matmul(self, left: Any, right: Any, transposed: bool = False) -> Any:
        """Return the product of ``left``, or of its transpose, and ``right``."""
        left = left.T if transposed else left
        return left.astype(np.float32) @ right.astype(np.float32)

    def resident(self, words: Any) -> Any:
        """Return a copy."""
        return self.asarray(words)

    def session(self) -> Any:
        """Return a context without effect."""
        return nullcontext()

    def release(self) -> None:
        """Do nothing."""

    def free_bytes(self) -> int:
        """Return the memory that the device pretends to have."""
        return self._free_bytes


@cache
def _library(file: str, macros: tuple[tuple[str, int], ...]) -> ctypes.CDLL:
    """Compile a source file in a folder of its own, once per process, and load it."""
    assert COMPILER is not None
    text = f'#include "{_HEADER}"\n' + source(file)
    for kernel in _KERNEL.findall(source(file)):
        text += (
            f'\nextern "C" void emulate_{kernel}(int blocks, int threads, int shared, void** arguments) '
            f"{{ emulation::launch({kernel}, blocks, threads, shared, arguments); }}\n"
        )
    options = ["-std=c++17", "-Og", "-w", "-shared", "-fPIC", *(f"-D{name}={value}" for name, value in macros)]
    with tempfile.TemporaryDirectory(prefix="bitatoms-emulation-") as folder:
        code, library = Path(folder) / "source.cpp", Path(folder) / "library.so"
        code.write_text(text)
        subprocess.run([COMPILER, *options, "-o", library, code], check=True)
        return ctypes.CDLL(str(library))  # it stays loaded without its file
