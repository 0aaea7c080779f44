"""The CUDA device of the tests that need one. Without it they are skipped, or fail if REQUIRE_GPU is set."""

import os

import pytest

from bitatoms.kernels.gpu.device import NoDeviceError, find_device


def pytest_report_header():
    """Return the line that states which device is tested, or why all tests are skipped."""
    try:
        return f"device: {find_device().name}"
    except NoDeviceError as error:
        return f"no device: {error}"


@pytest.fixture(scope="session")
def device():
    """The device; where there is none, the reason for it ends the test."""
    try:
        found = find_device()
    except NoDeviceError as error:
        reason = str(error)
    else:
        found.min_rows = 1  # also small blocks
        return found
    if os.environ.get("REQUIRE_GPU"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def cupy(device):
    """The module cupy, where there is a device."""
    return pytest.importorskip("cupy")
