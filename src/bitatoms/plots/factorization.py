"""Plots of a factorization: atoms, reconstructions, errors and codelengths."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, isqrt, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from ..validation import check_int, check_pair
from .axes import literal_text, make_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# a colour-blind safe palette
_COLOURS = {"total": "black", "errors": "#d55e00", "codes": "#0072b2", "atoms": "#009e73"}
_MISSED, _INVENTED, _FADED = "#d55e00", "#5b3fc4", "#bcb9b2"
_GAP = "#a6bddb"


def mosaic(
    atoms: Any, shape: tuple[int, int] | None = None, *, columns: int | None = None, ax: Axes | None = None
) -> Axes:
    """Draw each atom as a small picture, black where it is 1, in reading order.

    Parameters
    ----------
    atoms : array-like or BitMatrix of shape (n_atoms, n_features)
        0 and 1; values between them are drawn gray.
    shape : pair of int, optional
        Height and width of a picture. By default a square if n_features is a square number, else one line per atom.
    columns : int, optional
        Number of pictures side by side; by default the mosaic is about square.
    ax : matplotlib Axes, optional
        The axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from bitatoms.datasets import digits
    >>> from bitatoms.plots import mosaic
    >>> X, y = digits()
    >>> ax = mosaic(X[:12], columns=6)
    >>> ax.figure.savefig("digits.png")  # doctest: +SKIP
    """
    table = np.asarray(atoms.to_dense() if hasattr(atoms, "to_dense") else atoms)
    if table.ndim != 2:
        raise ValueError(f"atoms has {table.ndim} dimensions; pass a 2-D array with one atom per row")
    n_atoms, n_features = table.shape
    height, width = _picture_shape(shape, n_features)
    if columns is not None:
        columns = check_int("columns", columns, least=1)
    axes = make_axes(ax)
    axes.set_axis_off()
    if not table.size:
        axes.text(0.5, 0.5, "no atoms", ha="center", va="center", transform=axes.transAxes)
        return axes
    across = min(columns or ceil(sqrt(n_atoms * height / width)), n_atoms)
    down = -(-n_atoms // across)
    # Each picture has a gap above it and to its left; padding adds the gaps at the right and at the bottom.
    pictures = np.full((down * across, height + 1, width + 1), np.nan)
    pictures[:n_atoms, 1:, 1:] = table.reshape(n_atoms, height, width)
    rows = pictures.reshape(down, across, height + 1, width + 1).swapaxes(1, 2)
    sheet = rows.reshape(down * (height + 1), across * (width + 1))
    sheet = np.pad(sheet, ((0, 1), (0, 1)), constant_values=np.nan)
    image = axes.imshow(sheet, cmap="gray_r", vmin=0, vmax=1, interpolation="nearest")
    image.set_cmap(image.get_cmap().with_extremes(bad=_GAP))
    return axes


def before_after(data: Any, made: Any, shape: tuple[int, int] | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw rows of a table next to their reconstruction and its errors, with one line per row.

    In the third picture, correct ones are gray, missed ones orange, and ones that should be zeros violet.

    Parameters
    ----------
    data, made : array-like or BitMatrix of shape (n_rows, n_features)
        0 and 1: rows of the table, and their reconstruction from ``inverse_transform``.
    shape : pair of int, optional
        Height and width of a picture, as in `mosaic`.
    ax : matplotlib Axes, optional
        The axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import bitatoms as ba
    >>> X, y = ba.datasets.digits()
    >>> model = ba.BinaryDictionaryLearning(random_state=0).fit(X[:100])
    >>> ax = ba.plots.before_after(X[:4], model.inverse_transform(model.transform(X[:4])), (8, 8))
    """
    before, after = (np.asarray(rows.to_dense() if hasattr(rows, "to_dense") else rows) for rows in (data, made))
    if before.ndim != 2 or before.shape != after.shape or not before.size:
        raise ValueError(f"data has shape {before.shape}, but made has shape {after.shape}; pass the same rows of both")
    # values of the third picture: 0 correct zeros, 2 correct ones, 3 missed ones, 4 invented ones
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
    """Draw the number of wrong rows per feature: bars for the features with the most, or a heat map of pixels.

    Parameters
    ----------
    missed, invented : array-like of shape (n_features,)
        Number of rows in which the feature is one but its reconstruction zero, and vice versa: ``missed`` and
        ``invented`` of `bitatoms.report.report_data`.
    names : sequence of str, optional
        Names of the features; by default x0, x1, ...
    shape : pair of int, optional
        Height and width of the picture whose pixels are the features. If given, a heat map is drawn.
    most : int, default=20
        Maximum number of bars.
    ax : matplotlib Axes, optional
        The axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from bitatoms.plots import wrong_bits
    >>> ax = wrong_bits([5, 0, 9], [1, 0, 2], ["milk", "bread", "beer"])
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['beer', 'milk']
    """
    both = [np.asarray(counts) for counts in (missed, invented)]
    if both[0].ndim != 1 or both[0].shape != both[1].shape:
        raise ValueError(
            f"missed has shape {both[0].shape}, but invented has shape {both[1].shape}; pass one number per feature"
        )
    wrong, axes = both[0] + both[1], make_axes(ax)
    if shape is not None:
        image = axes.imshow(
            wrong.reshape(_picture_shape(shape, len(wrong))), cmap="Oranges", vmin=0, interpolation="nearest"
        )
        axes.set_axis_off()
        axes.figure.colorbar(image, ax=axes, label="wrong rows")
        return axes
    order = np.argsort(-wrong, kind="stable")[:most]
    order = order[wrong[order] > 0]
    start = np.zeros(len(order))
    for counts, name, colour in zip(both, ("missed", "invented"), (_MISSED, _INVENTED), strict=True):
        axes.barh(np.arange(len(order)), counts[order], left=start, color=colour, label=name)
        start = start + counts[order]
    _label_bars(axes, [f"x{feature}" if names is None else names[feature] for feature in order])
    axes.set(xlabel="wrong rows")
    axes.legend(loc="lower right")
    return axes


def row_bits(bits: Any, names: Sequence[str] | None = None, *, most: int = 15, ax: Axes | None = None) -> Axes:
    """Draw the bits of the rows with the most, and a line at the median of all rows.

    Parameters
    ----------
    bits : array-like of shape (n_rows,)
        Codelength of each row: ``row_bits`` of `bitatoms.report.report_data`, or the negative of ``score_samples``.
    names : sequence of str, optional
        Names of the rows; by default their indices.
    most : int, default=15
        Maximum number of bars.
    ax : matplotlib Axes, optional
        The axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from bitatoms.plots import row_bits
    >>> ax = row_bits([12.5, 90.0, 14.0], most=2)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['row 1', 'row 2']
    """
    values = np.asarray(bits, float)
    if values.ndim != 1:
        raise ValueError(f"bits has {values.ndim} dimensions; pass one number per row")
    order = np.argsort(-values, kind="stable")[:most]
    axes = make_axes(ax)
    axes.barh(np.arange(len(order)), values[order], color=_COLOURS["errors"])
    if len(values):
        axes.axvline(float(np.median(values)), color="black", linewidth=1, label="median")
        axes.legend(loc="lower right")
    _label_bars(axes, [f"row {row}" if names is None else names[row] for row in order])
    axes.set(xlabel="bits")
    return axes


def _label_bars(axes: Axes, names: list[str]) -> None:
    """Label the bars with names, the first bar at the top."""
    axes.set_yticks(np.arange(len(names)), [literal_text(name) for name in names])
    axes.invert_yaxis()


def codelength_curve(history: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the codelength and its three parts against the number of atoms, or against rounds if that is fixed.

    Parameters
    ----------
    history : sequence of rows, or structured array
        Has the fields ``round``, ``atoms``, ``bits_errors``, ``bits_codes`` and ``bits_atoms``: the ``history`` of a
        result, or ``history_`` of an estimator. The ``curve`` of `bitatoms.report.report_data` (bits with only the most
        useful atoms) is accepted, too.
    ax : matplotlib Axes, optional
        The axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from bitatoms.plots import codelength_curve
    >>> fields = ["round", "atoms", "bits_errors", "bits_codes", "bits_atoms"]
    >>> rows = [(1, 16, 9000, 500, 200), (2, 17, 8700, 560, 215)]
    >>> ax = codelength_curve(np.array(rows, dtype=[(field, int) for field in fields]))
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('atoms', 'bits')
    """
    is_fixed = len(set(_column(history, "atoms").tolist())) <= 1
    step = "round" if is_fixed and _has_rounds(history) else "atoms"
    steps = _column(history, step)
    parts = {part: _column(history, f"bits_{part}") for part in ("errors", "codes", "atoms")}
    axes = make_axes(ax)
    for name, bits in {"total": sum(parts.values()), **parts}.items():
        axes.plot(steps, bits, label=name, color=_COLOURS[name], linewidth=2 if name == "total" else 1, marker=".")
    axes.set(xlabel=step, ylabel="bits")
    axes.set_ylim(bottom=0)
    axes.legend()
    return axes


def _picture_shape(shape: tuple[int, int] | None, n_features: int) -> tuple[int, int]:
    """Return the height and width of the picture of an atom."""
    if shape is None:
        side = isqrt(n_features)
        return (side, side) if side * side == n_features else (1, n_features)
    height, width = check_pair("shape", shape, least=0)
    if height * width != n_features:
        size = f"{height} × {width} = {height * width}"
        raise ValueError(f"shape is {size}, but an atom has {n_features} bits; pass a shape with this product")
    return height, width


def _has_rounds(history: Any) -> bool:
    """Return whether these are rounds of a search, not points of a curve over atoms."""
    return isinstance(history, np.ndarray) or any(hasattr(row, "round") for row in history)


def _column(history: Any, field: str) -> np.ndarray:
    """Return a field of all rows, from an attribute or from a structured array."""
    try:
        if isinstance(history, np.ndarray):
            return np.asarray(history[field])
        return np.array([getattr(row, field) for row in history])
    except (AttributeError, IndexError, ValueError) as error:
        raise ValueError(
            f"history has no field {field!r}; pass the history of a result, or history_ of an estimator"
        ) from error
