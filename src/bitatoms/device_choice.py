"""The parameters ``n_jobs`` and ``device`` as `Workers`: threads, and the CUDA device that computes on rows."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from .errors import Parameter
from .parallel import Workers, count_threads
from .parameters import check, declarations
from .run_options import DeviceChoice, RunOptions
from .system.verbosity import log_to_stderr

if TYPE_CHECKING:
    from .kernels.gpu.device import Device

MIN_CELLS = 1 << 27  # of a table in memory, below which device="auto" is the CPU: copies and launches take longer

_logger = logging.getLogger(__name__)


def workers_for(n_jobs: int | None, device: str = "cpu", n_cells: int | None = None, verbose: int = 0) -> Workers:
    """Return the threads, and the device if there is one, that these parameters ask for.

    Parameters
    ----------
    n_jobs : int or None
        Number of threads, as in `count_threads`.
    device : {"cpu", "cuda", "auto"}
        Where rows are processed. "auto" falls back to the CPU, and logs why.
    n_cells : int, optional
        Number of cells of the table, by which "auto" decides; None if its rows are not in memory.
    verbose : int
        Whether the log is shown, as in `log_to_stderr`.

    Raises
    ------
    NoDeviceError
        ``device`` is "cuda", and there is no device.
    """
    n_threads = count_threads(n_jobs)
    if checked_device(device) == "cpu":
        return Workers(n_threads)
    with log_to_stderr(verbose):
        return Workers(n_threads, device=required_device() if device == "cuda" else _gainful_device(n_cells))


def checked_device(device: str) -> DeviceChoice:
    """Return the choice of a device, after checking that it is one."""
    choice: DeviceChoice = check("device", device, declarations(RunOptions)["device"])
    return choice


def required_device() -> Device:
    """Return the device for ``device="cuda"``; raise NoDeviceError if there is none."""
    from .kernels.gpu import device as gpu

    try:
        return gpu.find_device()
    except gpu.NoDeviceError as error:
        raise gpu.NoDeviceError(Parameter("device", "cuda"), " is not available: ", *error.args) from error


def _gainful_device(n_cells: int | None) -> Device | None:
    """Return the device for ``device="auto"``: None, and a log line, if there is none or the table is too small."""
    from .kernels.gpu import device as gpu

    if n_cells is not None and n_cells < MIN_CELLS:
        _logger.info("computing on the CPU: a table of %d cells is too small to gain by a device", n_cells)
        return None
    try:
        device = gpu.find_device()
    except gpu.NoDeviceError as error:
        _logger.info("computing on the CPU: %s", error)
        return None
    _logger.info("computing on the device %s", device.name)
    return device
