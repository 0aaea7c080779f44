"""Plots of codes by groups of rows, such as populations or cell types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..columns.annotations import Groups
from ..formatting import numbered
from .axes import literal_text, make_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_NAMED = 40  # groups or atoms whose names fit side by side
_LARGEST_DOT = 160.0  # in square points


def atom_shares(
    codes: Any, groups: Any, names: Sequence[str] | None = None, *, most: int = 10, ax: Axes | None = None
) -> Axes:
    """Draw one bar per row, divided by the atoms that it uses, sorted by group: as STRUCTURE and ADMIXTURE plots.

    The parts of a bar are in proportion to the positive values of the row. Rows of a group are sorted by their largest
    atom. Atoms other than the most used ones are gray; a row that uses no atom has an empty bar.

    Parameters
    ----------
    codes : array-like or BitMatrix of shape (n_rows, n_atoms)
        Codes from ``transform``, or soft codes from ``decision_function``.
    groups : array-like of shape (n_rows,)
        The group of each row. Groups of a categorical are in the order of its categories, others sorted.
    names : sequence of str, optional
        Names of the atoms; by default atom1, atom2, ...
    most : int, default=10
        Number of atoms with colours of their own.
    ax : matplotlib Axes, optional
        The axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import bitatoms as ba
    >>> table = ba.datasets.genotypes(120, 60)
    >>> model = ba.BinaryDictionaryLearning(random_state=0).fit(table)
    >>> ax = ba.plots.atom_shares(model.transform(table), table.row_data["population"])
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['island', 'north', 'south']
    """
    values, group, labels = _checked(codes, groups)
    shown = np.argsort(-(values > 0).sum(axis=0), kind="stable")[:most]
    weights = np.maximum(values, 0)
    total = weights.sum(axis=1, keepdims=True)
    shares = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    largest = np.argmax(shares[:, shown], axis=1) if len(shown) else np.zeros(len(values), np.intp)
    heights = shares[np.arange(len(shares)), shown[largest]] if len(shown) else np.zeros(len(values))
    largest = np.where(heights > 0, largest, len(shown))  # rows that use none of these are last
    order = np.lexsort((-total[:, 0], -heights, largest, group))
    axes = make_axes(ax)
    position, bottom = np.arange(len(order)), np.zeros(len(order))
    colours = _colours(len(shown))
    atom_names = _names(names, values.shape[1], "atom")
    for colour, atom in zip(colours, shown.tolist(), strict=True):
        height = shares[order, atom]
        axes.bar(position, height, 1.0, bottom, color=colour, linewidth=0, label=literal_text(atom_names[atom]))
        bottom = bottom + height
    if len(shown) < values.shape[1]:
        others = np.setdiff1d(np.arange(values.shape[1]), shown)
        axes.bar(position, shares[order][:, others].sum(axis=1), 1.0, bottom, color="#bcb9b2", label="others")
    edges = np.searchsorted(group[order], np.arange(len(labels) + 1))
    axes.vlines(edges[1:-1] - 0.5, 0, 1, color="black", linewidth=1)
    axes.set_xticks((edges[:-1] + edges[1:] - 1) / 2, [literal_text(label) for label in labels])
    axes.set(xlim=(-0.5, max(len(order), 1) - 0.5), ylim=(0, 1), ylabel="share of the atoms of a row")
    _turn_long_labels(axes, labels)
    if len(shown):
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    return axes


def group_heat_map(codes: Any, groups: Any, names: Sequence[str] | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw the share of the rows of each group that use each atom.

    Parameters
    ----------
    codes : array-like or BitMatrix of shape (n_rows, n_atoms)
        Codes from ``transform``; of soft codes, positive values count as used.
    groups : array-like of shape (n_rows,)
        The group of each row, as in `atom_shares`.
    names : sequence of str, optional
        Names of the atoms.
    ax : matplotlib Axes, optional
        The axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from bitatoms.plots import group_heat_map
    >>> ax = group_heat_map([[1, 0], [1, 1], [0, 1]], ["a", "a", "b"])
    >>> ax.images[0].get_array().tolist()
    [[1.0, 0.5], [0.0, 1.0]]
    """
    values, group, labels = _checked(codes, groups)
    axes = make_axes(ax)
    image = axes.imshow(
        _means(values > 0, group, len(labels)), cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest"
    )
    _label_both(axes, labels, _names(names, values.shape[1], "atom"))
    axes.figure.colorbar(image, ax=axes, label="share of rows that use the atom")
    return axes


def atom_dots(
    soft_codes: Any,
    groups: Any,
    names: Sequence[str] | None = None,
    *,
    codes: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a dot for each group and atom: its size is the share of rows that use the atom, its colour their mean bits.

    Parameters
    ----------
    soft_codes : array-like of shape (n_rows, n_atoms)
        Soft codes from ``decision_function``: the bits that an atom saves in each row. The colour is their mean.
    groups : array-like of shape (n_rows,)
        The group of each row, as in `atom_shares`.
    names : sequence of str, optional
        Names of the atoms.
    codes : array-like or BitMatrix of shape (n_rows, n_atoms), optional
        Codes from ``transform``, which state who uses an atom; by default those whose soft code is positive.
    ax : matplotlib Axes, optional
        The axes to draw on; by default those of a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from bitatoms.plots import atom_dots
    >>> ax = atom_dots([[9.0, -2.0], [7.0, 1.0], [-3.0, 5.0]], ["a", "a", "b"], ["T cells", "B cells"])
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['T cells', 'B cells']
    """
    values, group, labels = _checked(soft_codes, groups)
    used = values > 0 if codes is None else _checked(codes, groups)[0] > 0
    if used.shape != values.shape:
        raise ValueError(f"codes has shape {used.shape}, but soft_codes has shape {values.shape}; pass the same rows")
    share, mean = _means(used, group, len(labels)), _means(values, group, len(labels))
    axes = make_axes(ax)
    y, x = np.divmod(np.arange(share.size), max(1, values.shape[1]))
    limit = float(np.abs(mean).max(initial=0)) or 1.0
    dots = axes.scatter(
        x, y, _LARGEST_DOT * share.ravel(), mean.ravel(), cmap="RdBu_r", vmin=-limit, vmax=limit,
        edgecolors="black", linewidths=0.4,
    )  # fmt: skip
    _label_both(axes, labels, _names(names, values.shape[1], "atom"))
    axes.set(xlim=(-0.6, values.shape[1] - 0.4), ylim=(len(labels) - 0.4, -0.6))
    axes.figure.colorbar(dots, ax=axes, label="mean soft code (bits)")
    sizes = [axes.scatter([], [], _LARGEST_DOT * part, color="gray", label=f"{part:.0%}") for part in (0.25, 0.5, 1.0)]
    axes.legend(
        handles=sizes, title="rows that use it", loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, frameon=False
    )
    return axes


def _checked(codes: Any, groups: Any) -> tuple[NDArray[np.float64], NDArray[np.intp], list[str]]:
    """Return codes as numbers, the number of the group of each row, and the names of the groups."""
    values = np.asarray(codes.to_dense() if hasattr(codes, "to_dense") else codes, float)
    if values.ndim != 2:
        raise ValueError(f"the codes have {values.ndim} dimensions; pass a 2-D array with one row per sample")
    found = Groups.of(groups)
    if len(found.numbers) != len(values):
        raise ValueError(f"there are {len(found.numbers)} groups for {len(values)} rows of codes; pass one per row")
    return values, found.numbers, list(found.names)


def _means(values: NDArray[Any], group: NDArray[np.intp], n_groups: int) -> NDArray[np.float64]:
    """Return the mean of each column in each group."""
    sums = np.zeros((n_groups, values.shape[1]))
    np.add.at(sums, group, values)
    return sums / np.maximum(1, np.bincount(group, minlength=n_groups))[:, np.newaxis]


def _names(names: Sequence[str] | None, n: int, what: str) -> list[str]:
    """Return names, or numbered ones; there must be ``n``."""
    if names is None:
        return list(numbered(what, n))
    if len(names) != n:
        raise ValueError(f"there are {len(names)} names for {n} {what}s")
    return list(names)


def _label_both(axes: Axes, groups: list[str], atoms: list[str]) -> None:
    """Label the groups along the vertical axis and the atoms along the horizontal one."""
    axes.set_yticks(np.arange(len(groups)), [literal_text(name) for name in groups])
    if len(atoms) <= _MAX_NAMED:
        axes.set_xticks(np.arange(len(atoms)), [literal_text(name) for name in atoms])
        _turn_long_labels(axes, atoms)
    else:
        axes.set_xlabel("atom")


def _turn_long_labels(axes: Axes, names: Sequence[str]) -> None:
    """Turn the labels of the horizontal axis if they do not fit side by side."""
    if sum(map(len, names)) > 60 or len(names) > 12:
        axes.tick_params(axis="x", rotation=90)


def _colours(n: int) -> list[Any]:
    """Return distinct colours."""
    from matplotlib import colormaps

    palette = colormaps["tab10"] if n <= 10 else colormaps["turbo"]
    return [palette(number) if n <= 10 else palette(number / max(1, n - 1)) for number in range(n)]
