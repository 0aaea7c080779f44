"""The device of the tests, and stand-ins for a CUDA device and for CuPy, which most tests do not need.

``TEST_DEVICE=cuda`` or ``TEST_DEVICE=emulated`` lets the tests of blocks of rows compute on a device.
"""

import os
import sys
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from bitatoms.engine.block import Block
from bitatoms.kernels.gpu import device as gpu
from support.emulated_device import EmulatedDevice


def _test_device():
    """Return the device that the environment asks for, for blocks of any size."""
    choice = os.environ.get("TEST_DEVICE")
    if choice is None:
        return None
    if choice == "emulated":
        return EmulatedDevice()
    try:
        gpu.find_device()
    except gpu.NoDeviceError as error:
        pytest.skip(str(error), allow_module_level=True)
    device = gpu.CudaDevice(gpu.import_cupy())
    device.min_rows = 1
    return device


DEVICE = _test_device()
FOUND = EmulatedDevice()
FOUND.name, FOUND.min_rows = "Test GPU", 1 << 60  # for no block are the rows many enough


@contextmanager
def found_device():
    """Let a device be found, and yield a list of the devices of all blocks of rows that are made."""
    devices, make = [], Block.__init__

    def record(self, data, atoms, codes, covers, workers, *others, **more):
        devices.append(workers.device)
        make(self, data, atoms, codes, covers, workers, *others, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu, "find_device", lambda: FOUND)
        patch.setattr(Block, "__init__", record)
        yield devices


@contextmanager
def installed_cupy(module):
    """Let ``import cupy`` give a module or, with None, fail as where CuPy is not installed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "cupy", module)
        gpu._found.cache_clear()
        yield
    gpu._found.cache_clear()


def fake_cupy(n_devices=1, error=None):
    """Return a module that finds this many devices, or raises an error, and that "copies" arrays on devices."""

    def count_devices():
        if error is not None:
            raise error
        return n_devices

    properties = {"name": b"NVIDIA H200", "multiProcessorCount": 132, "totalGlobalMem": 140 << 30}
    runtime = SimpleNamespace(
        getDeviceCount=count_devices, getDevice=lambda: 0, getDeviceProperties=lambda number: properties
    )
    module = ModuleType("cupy")
    module.get_default_memory_pool = lambda: SimpleNamespace(get_limit=lambda: 0)
    module.cuda = SimpleNamespace(runtime=runtime)
    module.from_dlpack = lambda X: CupyArray(X.on_device())
    module.asarray = lambda X: CupyArray(X.on_device())
    return module


class CupyArray:
    """An array of CuPy: NumPy cannot convert it, and ``get`` copies it."""

    __module__ = "cupy"
    __cuda_array_interface__ = {}  # noqa: RUF012

    def __init__(self, values):
        self._values = values
        self.shape, self.dtype, self.ndim = values.shape, values.dtype, values.ndim

    def get(self):
        return self._values.copy()

    def __dlpack__(self, **_):
        raise BufferError("the array is on a device")

    def __dlpack_device__(self):
        return 2, 0

    def __array__(self, *_, **__):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")


class Tensor:
    """A tensor with DLPack's interface only, in the memory of the host."""

    __module__ = "torch"
    place = 1

    def __init__(self, values):
        self._values = np.asarray(values)
        self.shape = self._values.shape

    def __dlpack__(self, **how):
        return self._values.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.place, 0


class DeviceTensor(Tensor):
    """A tensor on a CUDA device."""

    __module__ = "torch"
    place = 2

    def __dlpack__(self, **_):
        raise BufferError("the tensor is on a device")

    def on_device(self):
        return self._values
