"""The CUDA device of this process, found through CuPy, which is imported when a device is first asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from ...errors import InputError

INSTALL = (
    'install it with pip install "bitatoms[cuda12]" or "bitatoms[cuda13]", whichever CUDA version the driver supports'
)


class NoDeviceError(InputError, RuntimeError):
    """There is no CUDA device to compute on; the message states what is missing, and how to fix it."""


@dataclass(frozen=True)
class Device:
    """A CUDA device to compute on.

    Parameters
    ----------
    name : str
        Its name, such as "NVIDIA H200".
    """

    name: str


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
    return NoDeviceError(f"CuPy cannot be imported ({_first_line(error)}); {INSTALL}")


@cache
def _found() -> Device | NoDeviceError:
    """Return the device, or the error that states why there is none."""
    try:
        runtime = import_cupy().cuda.runtime
    except NoDeviceError as error:
        return NoDeviceError(*error.args)
    try:
        if not runtime.getDeviceCount():
            return NoDeviceError("CuPy finds no CUDA device")
        name = runtime.getDeviceProperties(runtime.getDevice())["name"]
    except RuntimeError as error:  # no driver, or one that is too old for CuPy
        return NoDeviceError(f"CuPy finds no CUDA device ({_first_line(error)}); check the driver with nvidia-smi")
    return Device(name.decode() if isinstance(name, bytes) else str(name))


def _first_line(error: Exception) -> str:
    """Return the message of an error in one line; those of CuPy may have many."""
    lines = [line for line in str(error).splitlines() if line.strip(" =")]
    return lines[0].strip() if lines else type(error).__name__
