"""The search for a CUDA device, with stand-ins for CuPy."""

import sys
from types import SimpleNamespace
from unittest import mock

import numpy as np
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


def of_another_device():
    module = fake_cupy(n_devices=2)
    module.cuda.runtime.getDevice = lambda: 1
    return module


OLD = RuntimeError("cudaErrorInsufficientDriver: the driver version is insufficient")


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (None, f"CuPy is not installed; {INSTALL}, whichever CUDA version the driver supports"),
        (fake_cupy(n_devices=0), "CuPy finds no CUDA device"),
        (fake_cupy(error=OLD), f"CuPy finds no CUDA device ({OLD}); check the driver with nvidia-smi"),
        (fake_cupy(error=RuntimeError()), "CuPy finds no CUDA device (RuntimeError); check the driver with nvidia-smi"),
        (of_another_device(), "device 1 of CuPy is selected; select it with CUDA_VISIBLE_DEVICES=1"),
    ],
)
def test_there_is_no_device(module, message):
    with installed_cupy(module):
        assert message_of(find_device) == message_of(find_device) == message
        assert module is not None or message_of(import_cupy) == message


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "raise ImportError('====\\nlibnvrtc.so.12: cannot open shared object file\\n')",
            "CuPy cannot be imported (libnvrtc.so.12: cannot open shared object file); install it",
        ),
        ("import fastrlock_of_cupy", "CuPy cannot be imported (No module named 'fastrlock_of_cupy')"),
    ],
)
def test_cupy_is_broken(tmp_path, monkeypatch, source, message):
    (tmp_path / "cupy.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    with installed_cupy(None):
        monkeypatch.delitem(sys.modules, "cupy")
        assert message_of(find_device).startswith(message)


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


@pytest.fixture
def numpy_device():
    """A device whose arrays are NumPy's."""
    module = fake_cupy()
    module.asarray = np.array
    module.cuda.get_current_stream = module.cuda.Device = mock.MagicMock
    module.get_default_memory_pool = lambda: mock.MagicMock(get_limit=lambda: 0)
    return CudaDevice(module)


def words_of(n_bytes, is_read_only=True):
    words = np.arange(n_bytes // 8, dtype=np.uint64).reshape(-1, 4)
    words.flags.writeable = words.base.flags.writeable = not is_read_only
    return words


def test_words_that_cannot_change_are_copied_to_a_device_once(numpy_device):
    words = words_of(1 << 22)
    first = numpy_device.resident(words)
    np.testing.assert_array_equal(first, words)
    assert numpy_device.resident(words) is numpy_device.resident(words[:]) is first
    half = numpy_device.resident(words[: 1 << 16])
    np.testing.assert_array_equal(half, words[: 1 << 16])
    assert numpy_device.resident(words[: 1 << 16]) is half
    del words, first, half
    assert not numpy_device._resident  # the memory of the device is free as soon as that of the host is
    few = words_of(1 << 10)
    assert numpy_device.resident(few) is not numpy_device.resident(few)


def test_words_that_can_change_are_copied_each_time(numpy_device):
    words = words_of(1 << 22, is_read_only=False)
    view = words.view()
    view.flags.writeable = False
    numpy_device.resident(view)
    words[0, 0] = 77
    assert numpy_device.resident(view)[0, 0] == 77


def test_tables_stay_on_a_device_in_a_part_of_its_memory(numpy_device):
    numpy_device._n_bytes = 1 << 24
    tables = [words_of(1 << 21) for _ in range(3)]
    kept = [numpy_device.resident(table) for table in tables]
    is_kept = [numpy_device.resident(table) is array for table, array in zip(tables, kept, strict=True)]
    assert is_kept == [True, True, False]
    numpy_device.release()
    assert not numpy_device._resident
