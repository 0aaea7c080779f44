"""Compile kernels ahead of their first use: for images of containers, for clusters, before a demonstration.

numba compiles a kernel for the types of its arguments, and caches it for this kind of processor. CuPy compiles those of
CUDA devices, and caches them for this kind of device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue

import numba

from .device_choice import workers_for
from .errors import InputError, Parameter
from .io.errors import FileError
from .kernels.ahead import Helper, divided, is_stored
from .kernels.cpu.packing import column_weights
from .kernels.gpu.device import Device
from .kernels.gpu.variants import KernelVariant, common_variants
from .kernels.signatures import Variant, all_variants
from .parallel import count_threads
from .parameters import DeviceChoice


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
        Kinds of fits, such as "search", the default call, or "thorough search, or" for one algebra. None is all. On a
        GPU, all kinds are compiled.
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
    variants = [variant for variant in _of_kinds(kinds) if not is_stored(variant)]
    on_device = [] if found is None else common_variants()
    n_all = len(variants) + len(on_device)
    compiled: SimpleQueue[Variant | None] = SimpleQueue()  # None: a process ended
    helpers: list[Helper] = []
    n_done, n_ended = 0, 0
    try:
        for share in divided(variants, count_threads(n_jobs)):
            try:
                helpers.append(Helper(share, compiled.put, lambda: compiled.put(None)))
            except OSError as error:
                raise InputError(f"processes that compile kernels cannot be started ({error})") from error
        while n_ended < len(helpers):
            variant = compiled.get()
            if variant is None:
                n_ended += 1
                continue
            n_done += 1
            if callback is not None:
                callback(variant.kernel, n_done, n_all)
    finally:
        for helper in helpers:
            helper.stop()
    if n_done < len(variants):
        cause = "a process that compiled kernels ended early, perhaps because memory ran out; pass "
        raise InputError(cause, Parameter("n_jobs", 1), " for one at a time")
    if not all(map(is_stored, variants)):
        raise FileError(f"compiled kernels cannot be stored in {folder}; is its disk full?")
    if found is not None:
        _prepare(found, on_device, lambda name, n: callback and callback(name, n_done + n, n_all))
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
    folder, variants = _cache_folder(), all_variants()
    return sum(map(is_stored, variants)), len(variants), folder


def _of_kinds(kinds: Sequence[str] | None) -> list[Variant]:
    """Return the kernels of some kinds of fits."""
    if kinds is None:
        return list(all_variants())
    jobs = {job for variant in all_variants() for job in variant.jobs}
    wanted = set[str]()
    for kind in kinds:
        found = {job for job in jobs if f"{job},".startswith(f"{kind},")}
        if not found:
            known = ", ".join(sorted({repr(job.rpartition(", ")[0]) for job in jobs}))
            raise InputError(Parameter("kinds"), f" has {kind!r}, which is not a kind of fit; there are {known}")
        wanted |= found
    return [variant for variant in all_variants() if wanted & set(variant.jobs)]


def _cache_folder() -> Path:
    """Return the folder of the cache; raise FileError if no folder is writable."""
    folder = getattr(column_weights._cache, "cache_path", None)
    if folder is None:
        raise FileError(
            "no folder for compiled kernels is writable; set the environment variable NUMBA_CACHE_DIR to one that is"
        )
    return Path(numba.config.CACHE_DIR or folder)
