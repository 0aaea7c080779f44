"""How the two methods are drawn, the same in all figures, and told apart without colours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .runs import UPDATES

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLOURS = {"mob": "#0072b2", "k-prox": "#d55e00"}
_LINES = {"mob": "-", "k-prox": "--"}


def curve(ax: Axes, update: str, x: Any, y: Any, **how: Any) -> None:
    """A line of a method."""
    ax.plot(x, y, **({"color": _COLOURS[update], "linestyle": _LINES[update], "label": UPDATES[update]} | how))
