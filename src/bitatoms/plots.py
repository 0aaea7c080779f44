"""Pictures of a factorization: functions that take and return matplotlib Axes."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, isqrt, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["before_after", "codelength_curve", "mosaic", "row_bits", "wrong_bits"]

# colours that colour-blind readers tell apart too
_COLOURS = {"total": "black", "errors": "#d55e00", "codes": "#0072b2", "atoms": "#009e73"}
_MISSED, _INVENTED, _FADED = "#d55e00", "#5b3fc4", "#bcb9b2"
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


def before_after(data: Any, made: Any, shape: tuple[int, int] | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw rows before and after: as they are, as their atoms make them, and what is wrong in that, a row a line.

    In the third picture ones that are right are gray, ones that are missed orange, those that are invented violet.

    Parameters
    ----------
    data, made : array-like or BitMatrix of shape (n_rows, n_features)
        0 and 1: some rows of the table, and of what ``inverse_transform`` makes of their codes.
    shape : pair of int, optional
        Height and width of a picture, as in `mosaic`.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> import bitatoms as ba
    >>> X, y = ba.datasets.digits()
    >>> model = ba.BinaryDictionaryLearning(random_state=0).fit(X)
    >>> ax = ba.plots.before_after(X[:4], model.inverse_transform(model.transform(X[:4])), (8, 8))
    """
    before, after = (np.asarray(rows.to_dense() if hasattr(rows, "to_dense") else rows) for rows in (data, made))
    if before.ndim != 2 or before.shape != after.shape or not before.size:
        raise ValueError(f"data has shape {before.shape}, made {after.shape}; pass the same rows of both")
    # 0 and 1 as they are, then what the third picture tells apart: right zeros, right ones, missed, invented
    wrong = np.where(before == after, 2 * before, np.where(before, 3, 4)).astype(float)
    axes = mosaic(np.stack([before, after, wrong], axis=1).reshape(-1, before.shape[1]), shape, columns=3, ax=ax)
    from matplotlib.colors import ListedColormap

    for image in axes.images:
        image.set_cmap(ListedColormap(["white", "black", _FADED, _MISSED, _INVENTED]).with_extremes(bad=_GAP))
        image.set_clim(0, 4)
    return axes


def wrong_bits(
    missed: Any,
    invented: Any,
    names: Sequence[str] | None = None,
    *,
    shape: tuple[int, int] | None = None,
    most: int = 20,
    ax: Axes | None = None,
) -> Axes:
    """Draw in how many rows each feature is wrong: bars of those that are so most often, or a heat map of pixels.

    Parameters
    ----------
    missed, invented : array-like of shape (n_features,)
        Rows in which the feature is one and the atoms say zero, and the other way round: ``missed`` and ``invented`` of
        `bitatoms.report.report_data`.
    names : sequence of str, optional
        Names of the features; by default x0, x1 and so on.
    shape : pair of int, optional
        Height and width of the picture that the features are the pixels of: draws the heat map.
    most : int, default=20
        How many features have a bar.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from bitatoms.plots import wrong_bits
    >>> ax = wrong_bits([5, 0, 9], [1, 0, 2], ["milk", "bread", "beer"])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['beer', 'milk']
    """
    parts = [np.asarray(counts) for counts in (missed, invented)]
    if parts[0].ndim != 1 or parts[0].shape != parts[1].shape:
        raise ValueError(f"missed has shape {parts[0].shape}, invented {parts[1].shape}; pass a number a feature")
    wrong, axes = parts[0] + parts[1], _axes(ax)
    if shape is not None:
        image = axes.imshow(wrong.reshape(_tile(shape, len(wrong))), cmap="Oranges", vmin=0, interpolation="nearest")
        axes.set_axis_off()
        axes.figure.colorbar(image, ax=axes, label="rows in which it is wrong")
        return axes
    order = np.argsort(-wrong, kind="stable")[:most]
    order = order[wrong[order] > 0]
    start = np.zeros(len(order))
    for counts, name, colour in zip(parts, ("missed", "invented"), (_MISSED, _INVENTED), strict=True):
        axes.barh(np.arange(len(order)), counts[order], left=start, color=colour, label=name)
        start = start + counts[order]
    _name_bars(axes, [f"x{feature}" if names is None else names[feature] for feature in order])
    axes.set(xlabel="rows in which it is wrong")
    axes.legend(loc="lower right")
    return axes


def row_bits(bits: Any, names: Sequence[str] | None = None, *, most: int = 15, ax: Axes | None = None) -> Axes:
    """Draw the bits of the rows that take most of them, and a line at what a typical row takes.

    Parameters
    ----------
    bits : array-like of shape (n_rows,)
        Bits that each row takes: ``row_bits`` of `bitatoms.report.report_data`, or minus ``score_samples``.
    names : sequence of str, optional
        Names of the rows; by default their numbers.
    most : int, default=15
        How many rows have a bar.
    ax : matplotlib Axes, optional
        Where to draw; by default on a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from bitatoms.plots import row_bits
    >>> ax = row_bits([12.5, 90.0, 14.0], most=2)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['row 1', 'row 2']
    """
    values = np.asarray(bits, float)
    if values.ndim != 1:
        raise ValueError(f"bits has {values.ndim} dimensions; pass a number a row")
    order = np.argsort(-values, kind="stable")[:most]
    axes = _axes(ax)
    axes.barh(np.arange(len(order)), values[order], color=_COLOURS["errors"])
    if len(values):
        axes.axvline(float(np.median(values)), color="black", linewidth=1, label="a typical row")
        axes.legend(loc="lower right")
    _name_bars(axes, [f"row {row}" if names is None else names[row] for row in order])
    axes.set(xlabel="bits")
    return axes


def _name_bars(axes: Axes, names: list[str]) -> None:
    """Put names beside bars, the first bar at the top."""
    axes.set_yticks(np.arange(len(names)), names)
    axes.invert_yaxis()


def codelength_curve(history: Any, *, ax: Axes | None = None) -> Axes:
    """Draw how the codelength and its three parts change with the number of atoms, or with the rounds if that is fixed.

    Parameters
    ----------
    history : sequence of rows, or structured array
        With the fields ``round``, ``atoms``, ``bits_errors``, ``bits_codes`` and ``bits_atoms``: the ``history`` of a
        result, or ``history_`` of an estimator. Also the ``curve`` of `bitatoms.report.report_data`: bits with only the
        most useful atoms.
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
    fixed = len(set(_column(history, "atoms").tolist())) <= 1
    step = "round" if fixed and not _lacks_rounds(history) else "atoms"
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


def _lacks_rounds(history: Any) -> bool:
    """Whether these are points of a curve over atoms, not rounds of a search."""
    return not isinstance(history, np.ndarray) and not any(hasattr(row, "round") for row in history)


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
