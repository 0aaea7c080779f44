"""The machine, the versions and the settings of a comparison."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from .._version import __version__
from ..parallel import count_threads
from .runner import ComparisonPlan
from .third_party import versions

# These labels are also keys of the JSON output: keep them.
COMMAND = "To repeat it"
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")


def describe_environment(plan: ComparisonPlan, command: str | None) -> tuple[tuple[str, str], ...]:
    """Return what is needed to repeat a comparison and to interpret its seconds."""
    seeds = ", ".join(map(str, plan.seeds[:5])) + (f" … {plan.seeds[-1]}" if len(plan.seeds) > 5 else "")
    threads = count_threads(plan.n_jobs)
    libraries = (*map(_with_version, _LIBRARIES), *(f"{package} {number}" for package, number in versions().items()))
    cores = os.cpu_count() or 1
    items = [
        ("Machine", f"{_processor()}, {cores} core{'' if cores == 1 else 's'}, {platform.system()}"),
        ("Threads", "one" if threads == 1 else f"{threads}"),
        ("Versions", ", ".join((f"bitatoms {__version__}", f"Python {platform.python_version()}", *libraries))),
        ("Seeds" if len(plan.seeds) > 1 else "Seed", seeds),
        ("Time limit", f"{plan.max_time:g} s per run; a slower method is not run again on the same table"),
    ]
    return (*items, (COMMAND, command)) if command else tuple(items)


def _processor() -> str:
    """Return the name of the processor, if the system reports one."""
    return platform.processor() or platform.machine() or "unknown processor"


def _with_version(library: str) -> str:
    """Return the name of a library with its version."""
    try:
        return f"{library} {version(library)}"
    except PackageNotFoundError:
        return f"{library} of unknown version"
