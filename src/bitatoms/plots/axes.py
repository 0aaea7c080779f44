"""What all plots share: the axes to draw on, and text as it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..system.libraries import import_library

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def make_axes(ax: Axes | None) -> Axes:
    """Return the given axes, or those of a new figure."""
    if ax is not None:
        return ax
    plt = import_library("matplotlib.pyplot", "plots need")
    return plt.subplots(layout="constrained")[1]


def literal_text(name: str) -> str:
    r"""Return text that matplotlib draws as this name; it would take what is between two dollar signs for a formula.

    Examples
    --------
    >>> from bitatoms.plots.axes import literal_text
    >>> print(literal_text("$5 and $10"))
    \$5 and \$10
    """
    return name.replace("$", r"\$")
