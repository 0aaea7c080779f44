"""On which machine, with which versions and settings a comparison was run."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from .._version import __version__
from ..parallel import count_threads
from .runner import Plan
from .third_party import versions

COMMAND = "To repeat it"
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")


def how_it_was_run(plan: Plan, command: str | None) -> tuple[tuple[str, str], ...]:
    """What one has to know to repeat it, and to compare seconds."""
    seeds = ", ".join(map(str, plan.seeds[:5])) + (f" … {plan.seeds[-1]}" if len(plan.seeds) > 5 else "")
    threads = count_threads(plan.n_jobs)
    libraries = (*map(_version, _LIBRARIES), *(f"{package} {number}" for package, number in versions().items()))
    cores = os.cpu_count() or 1
    said = [
        ("Machine", f"{_processor()}, {cores} core{'' if cores == 1 else 's'}, {platform.system()}"),
        ("Threads", "one" if threads == 1 else f"{threads}"),
        ("Versions", ", ".join((f"bitatoms {__version__}", f"Python {platform.python_version()}", *libraries))),
        ("Seeds" if len(plan.seeds) > 1 else "Seed", seeds),
        ("Time limit", f"{plan.max_time:g} s a run; who takes longer is not run again on the same table"),
    ]
    return (*said, (COMMAND, command)) if command else tuple(said)


def _processor() -> str:
    """The name of the processor, as far as the system tells it."""
    return platform.processor() or platform.machine() or "unknown processor"


def _version(library: str) -> str:
    """A library with its version."""
    try:
        return f"{library} {version(library)}"
    except PackageNotFoundError:
        return f"{library} of unknown version"
