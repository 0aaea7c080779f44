"""What is installed: versions of Python and of libraries, the machine, a GPU, and compiled kernels.

The description must work where bitatoms does not: what may be missing or broken is imported where it is needed.
"""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ._version import __version__
from .errors import first_line
from .system.libraries import LIBRARIES, pip_command
from .system.memory import is_limit_known, memory_limit

_CUPY = ("cupy-cuda12x", "cupy-cuda13x", "cupy")  # distributions with the module cupy
_GIB = 1 << 30


def show_versions() -> None:
    """Print what is installed: for bug reports, and to see which optional libraries are missing.

    ``bitatoms --version --verbose`` prints the same.

    Examples
    --------
    >>> import bitatoms as ba
    >>> ba.show_versions()
    bitatoms ...
    <BLANKLINE>
    Python ...
    """
    print(describe_installation())


def describe_installation() -> str:
    """Return what `show_versions` prints: the version of bitatoms, then aligned lines of names and values."""
    sections = _machine(), _libraries(), [("GPU", _gpu()), ("compiled kernels", _kernels())]
    width = max(len(name) for section in sections for name, _ in section)
    paragraphs = ["\n".join(f"{name:<{width}}  {value}" for name, value in section) for section in sections]
    return "\n\n".join([f"bitatoms {__version__}", *paragraphs])


def version_of(distribution: str) -> str | None:
    """Return the version of a library that is installed, without importing it; otherwise None."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _machine() -> list[tuple[str, str]]:
    """Return Python, the system, and what this process may use of the machine."""
    return [
        ("Python", f"{platform.python_version()} ({platform.python_implementation()}, {sys.executable})"),
        ("installed in", str(Path(__file__).parent)),
        ("platform", platform.platform()),
        ("processors", _processors()),
        ("memory", f"{memory_limit() / _GIB:.1f} GiB" if is_limit_known() else "unknown"),
    ]


def _processors() -> str:
    """Return the number of processors, and of those that this process may use."""
    try:
        from .parallel import count_processors
    except ImportError:
        return f"{os.cpu_count()}"
    return f"{os.cpu_count()}, of which this process may use {count_processors()}"


def _libraries() -> list[tuple[str, str]]:
    """Return the libraries with their versions, or with what installs them; required ones first."""
    found = [
        (library.distribution, version_of(library.distribution) or f"not installed: {pip_command(module)}")
        for module, library in LIBRARIES.items()
    ]
    cupy = next((f"{number} ({name})" for name in _CUPY if (number := version_of(name))), None)
    return [*found, ("cupy", cupy or 'not installed: pip install "bitatoms[cuda12]" or "bitatoms[cuda13]"')]


def _gpu() -> str:
    """Return the name of the device that ``device="cuda"`` uses, or why there is none."""
    try:
        from .kernels.gpu.device import NoDeviceError, find_device
    except ImportError as error:
        return f"unknown ({first_line(error)})"
    try:
        return find_device().name
    except NoDeviceError as error:
        return f"none ({first_line(error).partition(';')[0]})"


def _kernels() -> str:
    """Return how many kernels of common calls are compiled and stored, and where."""
    try:
        from .io.errors import FileError
        from .warmup import count_stored
    except ImportError as error:
        return f"unknown ({first_line(error)})"
    try:
        n_stored, n_all, folder = count_stored()
    except FileError as error:
        return f"none ({error})"
    if n_stored == n_all:
        return f"all {n_all} in {folder}"
    return f"{n_stored} of {n_all} in {folder}; bitatoms warmup compiles the others"
