"""Numbers as text, the same in summaries, on the command line and in reports."""

from __future__ import annotations


def percent(part: float, total: float) -> str:
    """Return a proportion in percent: one decimal, two near 0% and 100%, which only exact values are shown as."""
    if not total or not part:
        return "0%"
    if part == total:
        return "100%"
    value = 100 * part / total
    if value < 0.01:
        return "less than 0.01%"
    if value > 99.99:
        return "more than 99.99%"
    return f"{value:.2f}%" if value < 0.995 or value > 99 else f"{value:.1f}%"
