"""Compile kernels ahead of their first use: for images of containers, for clusters, before a demonstration.

numba compiles a kernel for the types of its arguments, and caches it for this kind of processor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue

import numba

from .errors import InputError, Parameter
from .io.errors import FileError
from .kernels.ahead import Helper, divided, is_stored
from .kernels.cpu.packing import column_weights
from .kernels.signatures import Variant, all_variants
from .parallel import count_threads


def warm_up(
    n_jobs: int | None = -1,
    callback: Callable[[str, int, int], object] | None = None,
    kinds: Sequence[str] | None = None,
) -> Path:
    """Compile the kernels of all common calls, and store them in numba's cache.

    Parameters
    ----------
    n_jobs : int, optional
        Processes: kernels are compiled in one thread of a process at a time. -1 is one per processor.
    callback : callable, optional
        Called after each kernel with its name, the number of kernels compiled, and the number of all to compile.
    kinds : sequence of str, optional
        Kinds of fits, such as "search", the default call, or "thorough search, or" for one algebra. None is all.

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

    Examples
    --------
    >>> import bitatoms as ba
    >>> folder = ba.warm_up()  # doctest: +SKIP
    """
    folder, n_processes = _cache_folder(), count_threads(n_jobs)
    variants = [variant for variant in _of_kinds(kinds) if not is_stored(variant)]
    compiled: SimpleQueue[Variant | None] = SimpleQueue()  # None: a process ended
    helpers: list[Helper] = []
    n_done, n_ended = 0, 0
    try:
        for share in divided(variants, n_processes):
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
                callback(variant.kernel, n_done, len(variants))
    finally:
        for helper in helpers:
            helper.stop()
    if n_done < len(variants):
        cause = "a process that compiled kernels ended early, perhaps because memory ran out; pass "
        raise InputError(cause, Parameter("n_jobs", 1), " for one at a time")
    if not all(map(is_stored, variants)):
        raise FileError(f"compiled kernels cannot be stored in {folder}; is its disk full?")
    return folder


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
