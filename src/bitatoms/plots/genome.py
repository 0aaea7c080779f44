"""Plots of atoms along a genome."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..validation import check_int
from .axes import literal_text, make_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_COLUMNS = 3000  # of the heat map
_ATOM_HEIGHT = 0.04  # of an atom, as a share of the heat map
_TICKS = 6


def genome_atoms(
    atoms: Any,
    data: Any,
    positions: Any = None,
    *,
    names: Sequence[str] | None = None,
    most: int = 20,
    ax: Axes | None = None,
) -> Axes:
    """Draw atoms along the genome, above a heat map of the correlation (r2) of its columns: linkage disequilibrium.

    Parameters
    ----------
    atoms : array-like or BitMatrix of shape (n_atoms, n_columns)
        The columns of each atom. Pass those of a region, at most 3000.
    data : array-like, BitMatrix or Table of shape (n_rows, n_columns)
        The same columns of the table. Unknown cells count as 0.
    positions : array-like of shape (n_columns,), optional
        Positions, by which columns are sorted; by default, and where all are 0, which is an unknown position, they are
        drawn in the order given.
    names : sequence of str, optional
        Names of the atoms; by default atom1, atom2, ...
    most : int, default=20
        Number of atoms: those that have most columns here.
    ax : matplotlib Axes, optional
        The axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import bitatoms as ba
    >>> table = ba.datasets.genotypes(200, 60)
    >>> model = ba.BinaryDictionaryLearning(random_state=0).fit(table)
    >>> ax = ba.plots.genome_atoms(model.components_, table, table.column_data["position"])
    >>> ax.get_xlabel()
    'position'
    """
    bits, rows = (
        np.asarray(each.to_dense(float) if hasattr(each, "to_dense") else each, float) for each in (atoms, data)
    )
    rows = np.nan_to_num(rows)
    if bits.ndim != 2 or rows.ndim != 2 or bits.shape[1] != rows.shape[1]:
        raise ValueError(f"atoms has shape {bits.shape}, but data has shape {rows.shape}; pass the same columns")
    n_columns, most = rows.shape[1], check_int("most", most, least=1)
    if n_columns > _MAX_COLUMNS:
        raise ValueError(f"{n_columns} columns are too many for a heat map; pass those of a region, at most 3000")
    places = np.arange(n_columns) if positions is None else np.asarray(positions)
    if places.shape != (n_columns,):
        raise ValueError(f"positions has shape {places.shape}; pass one per column, {n_columns}")
    is_placed = positions is not None and bool(np.any(places != 0))  # tables of dosages have no positions
    places = places if is_placed else np.arange(n_columns)
    order = np.argsort(places, kind="stable")
    bits, rows, places = bits[:, order] > 0, rows[:, order], places[order]
    weights = bits.sum(axis=1)
    shown = np.argsort(-weights, kind="stable")[:most]
    shown = shown[weights[shown] > 0]
    shown = shown[np.argsort(bits[shown].argmax(axis=1), kind="stable")]
    axes = make_axes(ax)
    extent = (-0.5, n_columns - 0.5, n_columns - 0.5, -0.5)
    image = axes.imshow(_r2(rows), cmap="Greys", vmin=0, vmax=1, extent=extent, interpolation="nearest", aspect="auto")
    axes.figure.colorbar(image, ax=axes, label="r2 of two columns")
    spacing = max(1.0, _ATOM_HEIGHT * n_columns)  # the heat map is as high as its columns are many
    lines = -spacing * np.arange(len(shown), 0, -1)
    for line, atom in zip(lines.tolist(), shown.tolist(), strict=True):
        own = np.flatnonzero(bits[atom])
        axes.hlines(line, own[0] - 0.5, own[-1] + 0.5, color="#bcb9b2", linewidth=1)
        axes.eventplot(own, lineoffsets=line, linelengths=0.8 * spacing, linewidths=1.2, colors="#0072b2")
    labels = [f"atom{atom + 1}" if names is None else names[atom] for atom in shown]
    axes.set_yticks(lines, [literal_text(label) for label in labels], fontsize="x-small" if len(lines) > 12 else None)
    ticks = np.unique(np.linspace(0, max(0, n_columns - 1), _TICKS).round().astype(int))[:n_columns]
    axes.set_xticks(ticks, [f"{places[tick]:,}" for tick in ticks])
    axes.set(
        xlim=(-0.5, max(n_columns, 1) - 0.5),
        ylim=(max(n_columns, 1) - 0.5, -spacing * (len(shown) + 1)),
        xlabel="position" if is_placed else "column",
    )
    return axes


def _r2(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the squared correlation of all pairs of columns; 0 for constant ones."""
    centered = rows - rows.mean(axis=0) if len(rows) else rows
    deviations = np.sqrt((centered**2).sum(axis=0))
    scaled = np.divide(centered, deviations, out=np.zeros_like(centered), where=deviations > 0)
    squared: NDArray[np.float64] = (scaled.T @ scaled) ** 2
    return squared
