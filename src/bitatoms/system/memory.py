"""The memory that this process may use: that of the machine, or less in a container or a job of a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_UNKNOWN = 1 << 46  # practically unlimited
_CGROUPS = Path("/proc/self/cgroup")
_CGROUP_ROOT = Path("/sys/fs/cgroup")


def memory_limit() -> int:
    """Return the number of bytes: the memory of the machine, or the lowest limit of a control group (Linux)."""
    return min((_physical_memory(), *_cgroup_limits()))


def is_limit_known() -> bool:
    """Return whether `memory_limit` is a fact about this machine; Windows does not report its memory in this way."""
    return memory_limit() < _UNKNOWN


def _physical_memory() -> int:
    """Return the bytes of memory of this machine; practically unlimited if unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return _UNKNOWN


def _cgroup_limits() -> Iterator[int]:
    """Yield the limits of the control groups of this process and of the groups that contain them (versions 1 and 2)."""
    try:
        lines = _CGROUPS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, controllers, path = line.split(":", 2) if line.count(":") > 1 else ("", "-", "")
        if not controllers:
            folder, name = _CGROUP_ROOT, "memory.max"
        elif "memory" in controllers.split(","):
            folder, name = _CGROUP_ROOT / "memory", "memory.limit_in_bytes"
        else:
            continue
        # In a container, the path may be that outside of it; its own group is then the root.
        group = PurePosixPath("/") / path
        for each in (group, *group.parents):
            limit = _read_number(folder / each.relative_to("/") / name)
            if limit is not None:
                yield limit


def _read_number(path: Path) -> int | None:
    """Return the number in a file, or None if there is no such file or it states that there is no limit."""
    try:
        text = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
    return int(text) if text.isdecimal() else None
