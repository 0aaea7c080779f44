"""Old names of this package, which still work with a `FutureWarning`."""

from __future__ import annotations

import warnings
from typing import Any

REMOVED_IN = "0.3"


def warn_renamed(old: str, new: str, stacklevel: int = 3) -> None:
    """Warn that a name was replaced by another."""
    warnings.warn(
        f"{old} is deprecated and will be removed in {REMOVED_IN}; use {new}", FutureWarning, stacklevel=stacklevel
    )


def renamed_attribute(old: str, new: str) -> property:
    """Return a property that warns and gives the attribute ``new``."""

    def get(self: Any) -> Any:
        warn_renamed(old, new)
        return getattr(self, new)

    return property(get, doc=f"Deprecated: use ``{new}``.")
