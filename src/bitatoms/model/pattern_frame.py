"""Patterns as a pandas data frame, with the names that files of patterns and ``--json`` have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..libraries import import_library

if TYPE_CHECKING:
    from .model import Pattern

COLUMNS = {  # with their types; those of "Int64" and "float64" are missing where a number is unknown
    "atom": "int64",
    "features": "object",
    "size": "int64",
    "rows": "int64",
    "share": "float64",
    "bits_saved": "int64",
    "complete": "Int64",
    "expected": "float64",
    "lift": "float64",
    "member_lifts": "object",
    "recurs": "float64",
    "span": "object",
}


def pattern_frame(patterns: Sequence[Pattern], leave_out: Sequence[str] = ()) -> Any:
    """Return a data frame with one row per pattern and the same columns for all models, less those to leave out."""
    pd = import_library("pandas", "data frames need")
    return pd.DataFrame(
        {
            name: pd.Series([getattr(pattern, name) for pattern in patterns], dtype=dtype)
            for name, dtype in COLUMNS.items()
            if name not in leave_out
        }
    )
