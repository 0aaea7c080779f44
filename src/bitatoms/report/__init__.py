"""Self-contained HTML reports: the atoms, the rows that use them, and the cells that they get wrong.

Names are imported when they are first used, so that the options of the command line are there quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .data import ReportData
    from .writing import report_data, report_html, write_report

__all__ = ["ReportData", "report_data", "report_html", "write_report"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(".data" if name == "ReportData" else ".writing", __name__), name)
