"""Compile kernels ahead of their first use: for images of containers, for clusters, before a demonstration.

numba compiles a kernel for the types of its arguments, and caches it for this kind of processor. CuPy compiles those of
CUDA devices, and caches them for this kind of device.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from .device_choice import workers_for
from .errors import InputError, Parameter
from .io.errors import FileError
from .kernels.compilation import (
    ListedKernel,
    can_start_processes,
    compile_in_processes,
    kernels_of,
    listed_kernels,
)
from .kernels.gpu.device import Device
from .kernels.gpu.variants import KernelVariant, common_variants
from .kernels.jit import CACHE_FOLDER
from .parallel import count_threads
from .run_options import DeviceChoice


def warm_up(
    n_jobs: int | None = -1,
    callback: Callable[[str, int, int], object] | None = None,
    kinds: Sequence[str] | None = None,
    device: DeviceChoice = "cpu",
) -> Path:
    """Compile the kernels of all common calls, and store them in numba's cache, those of a GPU in CuPy's.

    Parameters
    ----------
    n_jobs : int, optional
        Processes: kernels are compiled in one thread of a process at a time. -1 is one per processor.
    callback : callable, optional
        Called after each kernel with its name, the number of kernels compiled, and the number of all to compile.
    kinds : sequence of str, optional
        Kinds of fits, such as "search, or" or "thorough search, xor". None is all. On a GPU, all
        kinds are compiled.
    device : {"cpu", "cuda", "auto"}, default="cpu"
        With "cuda", also compile the kernels of the GPU, and with "auto" if there is one: for both algebras, with and
        without unknown cells, and up to 256 atoms.

    Returns
    -------
    pathlib.Path
        The folder of the cache. Environment variable ``NUMBA_CACHE_DIR`` chooses another one.

    Raises
    ------
    FileError
        Kernels cannot be stored.
    InputError
        A process could not be started or ended early, or a kind does not exist.
    NoDeviceError
        ``device`` is "cuda", and there is no device.

    Examples
    --------
    >>> import bitatoms as ba
    >>> folder = ba.warm_up()  # doctest: +SKIP
    """
    folder, found = _cache_folder(), workers_for(n_jobs, device).device
    kernels = [kernel for kernel in _of_kinds(kinds) if not kernel.is_compiled]
    on_device = [] if found is None else common_variants()
    n_all = len(kernels) + len(on_device)

    def report(name: str, n_done: int, _: int = 0) -> None:
        if callback is not None and n_done > 0:
            callback(name, n_done, n_all)

    if kernels and not can_start_processes():
        raise InputError(f"processes that compile kernels cannot be started: {sys.executable!r} is not Python")
    try:
        compile_in_processes(kernels, count_threads(n_jobs), report)
    except OSError as error:
        raise InputError(f"processes that compile kernels cannot be started ({error})") from error
    if not all(kernel.is_compiled for kernel in kernels):
        cause = (
            f"a process that compiled kernels ended early; is the disk of {folder} full, or did memory run out? Pass "
        )
        raise InputError(cause, Parameter("n_jobs", 1), " for one at a time")
    if found is not None:
        _prepare(found, on_device, lambda name, n: report(name, len(kernels) + n))
    return folder


def _prepare(device: Device, variants: Sequence[KernelVariant], report: Callable[[str, int], object]) -> None:
    """Compile kernels for a device, unless it has them in its cache; report each by its name and their number."""
    with device.session():
        for n_done, (file, kernel, macros) in enumerate(variants, 1):
            device.prepare(file, kernel, **dict(macros))
            report(kernel, n_done)


def count_stored() -> tuple[int, int, Path]:
    """Return how many kernels of common calls are in the cache, how many there are, and the folder of the cache.

    Raises
    ------
    FileError
        No folder is writable, so that kernels are compiled in each process.
    """
    folder, kernels = _cache_folder(), listed_kernels()
    return sum(kernel.is_compiled for kernel in kernels), len(kernels), folder


def _of_kinds(kinds: Sequence[str] | None) -> list[ListedKernel]:
    """Return the kernels of some kinds of fits."""
    known = sorted({job for kernel in listed_kernels() for job in kernel.jobs})
    for kind in kinds or ():
        if kind not in known:
            names = ", ".join(map(repr, known))
            raise InputError(Parameter("kinds"), f" has {kind!r}, which is not a kind of fit; there are {names}")
    return kernels_of(known if kinds is None else kinds)


def _cache_folder() -> Path:
    """Return the folder of the cache; raise FileError if no folder is writable."""
    if CACHE_FOLDER is None:
        raise FileError(
            "no folder for compiled kernels is writable; set the environment variable NUMBA_CACHE_DIR to one that is"
        )
    return CACHE_FOLDER
