"""The line styles of the two methods, distinguishable without colours and equal in all figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .runs import UPDATES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {"mob": "#0072b2", "k-prox": "#d55e00"}
_LINES = {"mob": "-", "k-prox": "--"}


def plot_method(ax: Axes, update: str, x: Any, y: Any, **style: Any) -> None:
    """Plot a line in the style of a method; ``style`` overrides it."""
    ax.plot(x, y, **({"color": _COLOURS[update], "linestyle": _LINES[update], "label": UPDATES[update]} | style))
