"""Pictures of a factorization: functions that take and return matplotlib Axes."""

from __future__ import annotations

from math import ceil, isqrt, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["codelength_curve", "mosaic"]

# colours that colour-blind readers tell apart too
_COLOURS = {"total": "black", "errors": "#d55e00", "codes": "#0072b2", "atoms": "#009e73"}
_GAP = "#a6bddb"


def mosaic(
    atoms: Any, shape: tuple[int, int] | None = None, *, columns: int | None = None, ax: Axes | None = None
) -> Axes:
    """Draw each atom as a small picture, black where it is 1; the first at the top left, then along the rows.

    Parameters
    ----------
    atoms : array-like or BitMatrix of shape (n_atoms, n_features)
        0 and 1; values between them are drawn gray.
    shape : pair of int, optional
        Height and width of a picture. By default a square where n_features is a square number, else one line an atom.
    columns : int, optional
        Pictures side by side; by default the mosaic is about as wide as it is high.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from bitatoms.datasets import digits
    >>> from bitatoms.plots import mosaic
    >>> X, y = digits()
    >>> ax = mosaic(X[:12], columns=6)
    >>> ax.figure.savefig("digits.png")  # doctest: +SKIP
    """
    table = np.asarray(atoms.to_dense() if hasattr(atoms, "to_dense") else atoms)
    if table.ndim != 2:
        raise ValueError(f"atoms has {table.ndim} dimensions; pass a 2-D array with one atom a row")
    n_atoms, n_features = table.shape
    tall, wide = _tile(shape, n_features)
    if columns is not None and columns < 1:
        raise ValueError(f"columns is {columns}; pass a number ≥ 1")
    axes = _axes(ax)
    axes.set_axis_off()
    if not table.size:
        axes.text(0.5, 0.5, "no atoms", ha="center", va="center", transform=axes.transAxes)
        return axes
    across = min(columns or ceil(sqrt(n_atoms * tall / wide)), n_atoms)
    down = -(-n_atoms // across)
    # Each picture has a gap above it and to its left; the frame is closed at the right and at the bottom.
    tiles = np.full((down * across, tall + 1, wide + 1), np.nan)
    tiles[:n_atoms, 1:, 1:] = table.reshape(n_atoms, tall, wide)
    rows = tiles.reshape(down, across, tall + 1, wide + 1).swapaxes(1, 2)
    sheet = rows.reshape(down * (tall + 1), across * (wide + 1))
    sheet = np.pad(sheet, ((0, 1), (0, 1)), constant_values=np.nan)
    image = axes.imshow(sheet, cmap="gray_r", vmin=0, vmax=1, interpolation="nearest")
    image.set_cmap(image.get_cmap().with_extremes(bad=_GAP))
    return axes


def codelength_curve(history: Any, *, ax: Axes | None = None) -> Axes:
    """Draw how the codelength and its three parts change with the number of atoms, or with the rounds if that is fixed.

    Parameters
    ----------
    history : sequence of rows, or structured array
        With the fields ``round``, ``atoms``, ``bits_errors``, ``bits_codes`` and ``bits_atoms``: the ``history`` of a
        result, or ``history_`` of an estimator.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import numpy as np
    >>> from bitatoms.plots import codelength_curve
    >>> fields = ["round", "atoms", "bits_errors", "bits_codes", "bits_atoms"]
    >>> rows = [(1, 16, 9000, 500, 200), (2, 17, 8700, 560, 215)]
    >>> ax = codelength_curve(np.array(rows, dtype=[(field, int) for field in fields]))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('atoms', 'bits')
    """
    step = "atoms" if len(set(_column(history, "atoms").tolist())) > 1 else "round"
    steps = _column(history, step)
    parts = {part: _column(history, f"bits_{part}") for part in ("errors", "codes", "atoms")}
    axes = _axes(ax)
    for name, bits in {"total": sum(parts.values()), **parts}.items():
        axes.plot(steps, bits, label=name, color=_COLOURS[name], linewidth=2 if name == "total" else 1, marker=".")
    axes.set(xlabel=step, ylabel="bits")
    axes.set_ylim(bottom=0)
    axes.legend()
    return axes


def _axes(ax: Axes | None) -> Axes:
    """The Axes given, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as missing:
        raise ImportError('plots are drawn with matplotlib; get it with pip install "bitatoms[plot]"') from missing
    return plt.subplots(layout="constrained")[1]


def _tile(shape: tuple[int, int] | None, n_features: int) -> tuple[int, int]:
    """Height and width of one atom's picture."""
    if shape is None:
        side = isqrt(n_features)
        return (side, side) if side * side == n_features else (1, n_features)
    tall, wide = shape
    if tall * wide != n_features:
        raise ValueError(f"shape is {tall} × {wide} = {tall * wide}, but an atom has {n_features} bits; pass its shape")
    return tall, wide


def _column(history: Any, field: str) -> np.ndarray:
    """One field of every row, whether rows hold it as an attribute or the array by name."""
    try:
        if isinstance(history, np.ndarray):
            return np.asarray(history[field])
        return np.array([getattr(row, field) for row in history])
    except (AttributeError, IndexError, ValueError) as missing:
        raise ValueError(
            f"history has no field {field!r}; pass the history of a result, or history_ of an estimator"
        ) from missing
