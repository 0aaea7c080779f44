"""Compile kernels ahead of their first use: for images of containers, for clusters, before a demonstration.

A kernel is compiled for the types of its arguments when it is first called. Each job here is a small fit of one kind,
which calls the kernels that fits of this kind need. numba caches what is compiled, for this kind of processor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numba
import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.sparse import csr_array

from .api import factorize
from .datasets import planted
from .errors import InputError, Parameter
from .estimators import BinaryDictionaryClassifier, BinaryDictionaryLearning, BinaryImputer
from .io.errors import FileError
from .kernels.cpu.packing import column_weights
from .parallel import count_threads
from .parameters import Algebra

ALGEBRAS: tuple[Algebra, ...] = ("or", "xor")

Job = tuple[str, Algebra]  # the name of a job, and its algebra


def warm_up(n_jobs: int | None = -1, callback: Callable[[str, int, int], object] | None = None) -> Path:
    """Compile the kernels of all common calls, and store them in numba's cache.

    Parameters
    ----------
    n_jobs : int, optional
        Processes: kernels are compiled in one thread of a process at a time. -1 is one per processor.
    callback : callable, optional
        Called after each job with its name, the number of jobs done, and the number of all.

    Returns
    -------
    pathlib.Path
        The folder of the cache. Environment variable ``NUMBA_CACHE_DIR`` chooses another one.

    Examples
    --------
    >>> import bitatoms as ba
    >>> folder = ba.warm_up()  # doctest: +SKIP
    """
    folder = _cache_folder()
    # All jobs need the kernels of the first one: they are compiled once, and loaded by the others.
    first, *others = JOBS
    stages = [[(first, algebra) for algebra in ALGEBRAS], [(job, algebra) for job in others for algebra in ALGEBRAS]]
    n_jobs, n_done, n_all = count_threads(n_jobs), 0, len(JOBS) * len(ALGEBRAS)
    for stage in stages:
        for name in _run(stage, n_jobs):
            n_done += 1
            if callback is not None:
                callback(name, n_done, n_all)
    return folder


def _cache_folder() -> Path:
    """Return the folder of the cache; raise FileError if no folder is writable."""
    folder = getattr(column_weights._cache, "cache_path", None)
    if folder is None:
        raise FileError(
            "no folder for compiled kernels is writable; set the environment variable NUMBA_CACHE_DIR to one that is"
        )
    return Path(numba.config.CACHE_DIR or folder)


def _run(stage: list[Job], n_jobs: int) -> Iterator[str]:
    """Run jobs in processes, if more than one is allowed; yield the name of each when it is done."""
    try:
        yield from Parallel(n_jobs, return_as="generator_unordered")(delayed(run_job)(job) for job in stage)
    except BrokenProcessPool as error:
        cause = "a process that compiled kernels ended early, perhaps because memory ran out; pass "
        raise InputError(cause, Parameter("n_jobs", 1), " for one at a time") from error


def run_job(job: Job) -> str:
    """Run a job in an algebra; return its name."""
    name, algebra = job
    JOBS[name](algebra)
    return f"{name}, {algebra.upper()}"


def _table(algebra: Algebra, n_features: int = 70) -> NDArray[np.uint8]:
    """Return a small table of known atoms."""
    return planted(200, n_features, 4, algebra=algebra, noise=0.05, random_state=0).X


def _many_atoms_per_row() -> NDArray[np.uint8]:
    """Return a small table whose rows are coded by linear algebra."""
    return planted(200, 70, 8, atom_density=0.5, code_density=0.5, noise=0.01, random_state=0).X


def _search(algebra: Algebra) -> None:
    """Fit as the default call does, and code new rows."""
    X = _table(algebra)
    BinaryDictionaryLearning(algebra=algebra, random_state=0).fit(X).transform(X)
    if algebra == "xor":
        factorize(_many_atoms_per_row(), algebra=algebra, random_state=0)


def _thorough_search(algebra: Algebra) -> None:
    factorize(_table(algebra), algebra=algebra, search="thorough", random_state=0)


def _number_of_atoms(algebra: Algebra) -> None:
    for n_components in (3, 20):
        factorize(_table(algebra), n_components, algebra=algebra, random_state=0)


def _many_rows(algebra: Algebra) -> None:
    """Search a sample of the rows, in chunks that threads share, and go on with a stream."""
    X = np.tile(_table(algebra), (10, 1))
    factorize(X, algebra=algebra, search_rows=500, random_state=0, n_jobs=2)
    BinaryDictionaryLearning(algebra=algebra, random_state=0).partial_fit(X[:500]).partial_fit(X[500:])


def _unknown_cells(algebra: Algebra) -> None:
    for X in (_table(algebra), _many_atoms_per_row()):
        X = np.where(np.random.default_rng(0).random(X.shape) < 0.05, np.nan, X)
        model = BinaryDictionaryLearning(algebra=algebra, random_state=0).fit(X)
        model.transform(X)
        model.predict_cell_proba(X)
    BinaryImputer(algebra=algebra, random_state=0).fit_transform(X)


def _classes(algebra: Algebra) -> None:
    X = _table(algebra)
    BinaryDictionaryClassifier(algebra=algebra, random_state=0).fit(X, X[:, 0]).predict(X)


def _wide_table(algebra: Algebra) -> None:
    X = _table(algebra, 2100)
    BinaryDictionaryLearning(algebra=algebra, random_state=0).fit(X).transform(X)


def _sparse_table(algebra: Algebra) -> None:
    X = np.random.default_rng(0).random((300, 2100)) < 0.003
    X[:40, :4] = X[30:90, 8:11] = True
    sparse = csr_array(X.astype(np.uint8))
    BinaryDictionaryLearning(algebra=algebra, random_state=0).fit(sparse).transform(sparse)


def _paper(algebra: Algebra) -> None:
    """Run the algorithms of the paper."""
    X = _table(algebra)
    factorize(X, search="paper", algebra=algebra, random_state=0)
    factorize(X, 4, search="paper", algebra=algebra, coder="bmp", random_state=0)
    factorize(X, 4, search="paper", algebra=algebra, coder="exact", random_state=0)
    factorize(X, 4, search="paper", algebra=algebra, update="k-prox", init="greedy", random_state=0)


JOBS: dict[str, Callable[[Algebra], None]] = {
    "search": _search,
    "unknown cells": _unknown_cells,
    "classes": _classes,
    "many rows": _many_rows,
    "a given number of atoms": _number_of_atoms,
    "thorough search": _thorough_search,
    "wide table": _wide_table,
    "sparse table": _sparse_table,
    "algorithms of the paper": _paper,
}
