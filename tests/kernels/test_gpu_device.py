"""The search for a CUDA device, with stand-ins for CuPy."""

import sys
from types import SimpleNamespace
from unittest import mock

import pytest

from bitatoms.errors import InputError
from bitatoms.kernels.gpu.device import CudaDevice, DeviceMemoryError, NoDeviceError, find_device, import_cupy
from support.devices import fake_cupy, installed_cupy

INSTALL = 'install it with pip install "bitatoms[cuda12]" or "bitatoms[cuda13]"'


def message_of(call):
    with pytest.raises(NoDeviceError) as caught:
        call()
    assert isinstance(caught.value, InputError)
    assert isinstance(caught.value, RuntimeError)
    return str(caught.value)


def test_a_device_is_found_once():
    module = fake_cupy()
    with installed_cupy(module):
        found = find_device()
        assert found.name == "NVIDIA H200"
        module.cuda.runtime.getDeviceCount = None  # not called again
        assert find_device() is found


def test_cupy_is_missing():
    with installed_cupy(None):
        first, second = message_of(find_device), message_of(find_device)
        assert first == second == message_of(import_cupy)
    assert first.startswith(f"CuPy is not installed; {INSTALL}")


def test_cupy_is_broken(tmp_path, monkeypatch):
    (tmp_path / "cupy.py").write_text("raise ImportError('====\\nlibnvrtc.so.12: cannot open shared object file\\n')")
    monkeypatch.syspath_prepend(tmp_path)
    with installed_cupy(None):
        monkeypatch.delitem(sys.modules, "cupy")
        message = message_of(find_device)
    assert message.startswith("CuPy cannot be imported (libnvrtc.so.12: cannot open shared object file); install it")


def test_a_library_of_cupy_is_missing(tmp_path, monkeypatch):
    (tmp_path / "cupy.py").write_text("import fastrlock_of_cupy")
    monkeypatch.syspath_prepend(tmp_path)
    with installed_cupy(None):
        monkeypatch.delitem(sys.modules, "cupy")
        assert "(No module named 'fastrlock_of_cupy')" in message_of(find_device)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"n_devices": 0}, "CuPy finds no CUDA device"),
        (
            {"error": RuntimeError("cudaErrorInsufficientDriver: the driver version is insufficient")},
            "CuPy finds no CUDA device (cudaErrorInsufficientDriver: the driver version is insufficient); check the "
            "driver with nvidia-smi",
        ),
        ({"error": RuntimeError()}, "CuPy finds no CUDA device (RuntimeError); check the driver with nvidia-smi"),
    ],
)
def test_there_is_no_device(how, message):
    with installed_cupy(fake_cupy(**how)):
        assert message_of(find_device) == message_of(find_device) == message


class OutOfMemoryError(MemoryError):
    """CuPy's error."""


def test_an_error_of_a_session_states_that_the_memory_is_too_small():
    module = fake_cupy()
    module.cuda.Stream = lambda non_blocking: mock.MagicMock()
    module.cuda.memory = SimpleNamespace(OutOfMemoryError=OutOfMemoryError)
    device = CudaDevice(module)
    for _ in range(9):  # more often than there are sessions at a time
        with pytest.raises(DeviceMemoryError) as caught, device.session(), device.session():
            raise OutOfMemoryError("Out of memory allocating 4,096 bytes")
    assert str(caught.value) == (
        "the memory of NVIDIA H200 is too small (Out of memory allocating 4,096 bytes); compute on the CPU, or let "
        "CuPy use more memory"
    )
    assert isinstance(caught.value, MemoryError)
