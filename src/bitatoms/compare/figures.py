"""Figures of a comparison: wrong cells and bits, against the number of atoms and against seconds."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..html.figures import Figure, plot_figure
from ..html.tables import DataTable
from ..plots import literal_text
from .methods import Method
from .results import ComparisonData, Dataset, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH, _MIN_HEIGHT = 4.6, 3.4  # inches
_LABEL_HEIGHT = 0.21  # inches per method name
_AXIS_HEIGHT = 0.6  # inches above and below the axes
_BITATOMS_COLORS = ("#0b5c93", "#1a9a76", "#0b5c93")
# The colour-blind safe palette of Okabe and Ito, without the blues and greens of bitatoms
_OTHER_COLORS = ("#d55e00", "#cc79a7", "#8a6d00", "#5f5b54", "#e69f00", "#7a63d8")
_MIN_SECONDS = 1e-4  # shorter times are drawn here
_MIN_TICKS = 3
_FIGURE_FILE = re.compile(r".+-(or|xor)-(wrong|bits)-by-(atoms|seconds)\.(png|csv)")
_MARKERS = "ovs^DXP<>*hd"


class _Measure(NamedTuple):
    """A quantity on the vertical axis."""

    slug: str
    title: str
    label: str
    column: str  # name in the CSV file, a file format
    value: Callable[[Result, Dataset], float]


_MEASURES = (
    _Measure(
        "wrong",
        "Wrong cells",
        "wrong cells, %",
        "cells that are wrong, %",
        lambda result, table: 100 * result.wrong.median / table.n_cells,
    ),
    _Measure("bits", "Bits", "bits per row", "bits a row", lambda result, table: result.bits.median / table.shape[0]),
)


def draw_figures(comparison: ComparisonData, table: Dataset) -> list[Figure]:
    """Draw the figures of a table: per measure and algebra, one against atoms and one against seconds."""
    results = [result for result in comparison.results(table) if result.done]
    slug = file_slugs([each.name for each in comparison.tables])[comparison.tables.index(table)]
    styles = _line_styles(comparison)
    medians = f", medians of {comparison.n_seeds} seeds" if comparison.n_seeds > 1 else ""
    figures = []
    for measure in _MEASURES:
        values = [measure.value(result, table) for result in results]
        for algebra in ("or", "xor"):
            of_algebra = [result for result in results if algebra in result.method.algebras]
            if not of_algebra:
                continue
            # both algebras have the same scale, so that they can be compared
            for against in ("atoms", "seconds"):
                lines = _lines(of_algebra, table, measure, against, styles[algebra])
                naming = f"{slug}-{algebra}", f"{algebra.upper()}{medians}"
                figures.append(_draw_figure(table, lines, measure, against, naming, (min(values), max(values))))
    return figures


def find_older_figures(folder: Path, written: Iterable[Path]) -> list[Path]:
    """Return the figures in a folder, recognized by name, that are not among the files written."""
    names = {path.name for path in written}
    figures = folder / "figures"
    existing = sorted(figures.iterdir()) if figures.is_dir() else []
    return [path for path in existing if path.name not in names and _FIGURE_FILE.fullmatch(path.name)]


def file_slugs(names: Sequence[str]) -> list[str]:
    """Return distinct names that are safe in file names."""
    slugs: list[str] = []
    for name in names:
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60] or "table"
        number = 1
        while (numbered := slug if number == 1 else f"{slug}-{number}") in slugs:
            number += 1
        slugs.append(numbered)
    return slugs


def _draw_figure(
    table: Dataset,
    lines: Sequence[_Line],
    measure: _Measure,
    against: str,
    naming: tuple[str, str],
    limits: tuple[float, float],
) -> Figure:
    """Draw one figure with a line per method; ``naming`` is the start of its name and the end of its title."""
    slug, ending = naming
    lowest = min(lines, key=lambda line: min(line.y))
    x_title = "the number of atoms" if against == "atoms" else "CPU seconds"
    title = f"{measure.title} against {x_title}, {ending}"
    alt = f"{title}: the lowest is {lowest.method.name}, {min(lowest.y):.4g} ({measure.label})."
    rows = [
        (line.method.key, result.asked, result.atoms, float(result.cpu), measure.value(result, table))
        for line in lines
        for result in line.results
    ]
    numbers = DataTable.from_rows(("contender", "atoms asked", "atoms", "CPU seconds", measure.column), rows)
    height = max(_MIN_HEIGHT, _AXIS_HEIGHT + _LABEL_HEIGHT * len(lines))

    def draw(axes: Axes) -> None:
        for line in lines:
            axes.plot(line.x, line.y, **line.style)
        _set_scales(axes, against, limits)
        axes.set_ylabel(measure.label)
        axes.set_xlabel("atoms" if against == "atoms" else "CPU seconds")
        gap = _LABEL_HEIGHT / (height - _AXIS_HEIGHT)
        _label_lines(axes, lines, gap, table.ranks[-1] if against == "atoms" else None)

    return plot_figure(f"{slug}-{measure.slug}-by-{against}", title, alt, draw, numbers, (_WIDTH, height))


class _Line(NamedTuple):
    """The points of a method by ascending number of atoms, and their style."""

    results: list[Result]
    x: list[float]
    y: list[float]
    style: dict[str, Any]

    @property
    def method(self) -> Method:
        """The method."""
        return self.results[-1].method


def _lines(
    results: Sequence[Result], table: Dataset, measure: _Measure, against: str, styles: dict[str, dict[str, Any]]
) -> list[_Line]:
    """Return one line per method."""
    grouped: dict[str, list[Result]] = {}
    for result in results:
        grouped.setdefault(result.method.key, []).append(result)
    lines = []
    for key, points in grouped.items():
        x = [
            float(point.asked or max(1, point.atoms)) if against == "atoms" else max(float(point.cpu), _MIN_SECONDS)
            for point in points
        ]
        lines.append(_Line(points, x, [measure.value(point, table) for point in points], styles[key]))
    return lines


def _line_styles(comparison: ComparisonData) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the style of each method by algebra and key, the same in all figures."""
    styles: dict[str, dict[str, dict[str, Any]]] = {"or": {}, "xor": {}}
    for algebra in styles:
        methods = {run.method.key: run.method for run in comparison.runs if algebra in run.method.algebras}
        ours = [key for key, method in methods.items() if method.is_bitatoms]
        # methods of both algebras come first, so that they have the same style in both
        others = sorted((key for key in methods if key not in ours), key=lambda key: not methods[key].both_algebras)
        for colors, keys, width, size in ((_BITATOMS_COLORS, ours, 2.2, 5.5), (_OTHER_COLORS, others, 1.1, 4.5)):
            for index, key in enumerate(keys):
                marker = _MARKERS[(index + len(ours) * (keys is others)) % len(_MARKERS)]
                styles[algebra][key] = {
                    "color": colors[index % len(colors)],
                    "marker": marker,
                    "markersize": size,
                    "markeredgecolor": "white",
                    "markeredgewidth": 0.5,
                    "linewidth": width,
                    "linestyle": (0, (4, 2)) if keys is ours and index == 1 else "-",
                    "zorder": 3 if keys is ours else 2,
                }
    return styles


def _set_scales(axes: Axes, against: str, limits: tuple[float, float]) -> None:
    """Set the scales, ticks and grid."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    axes.set_xscale("log", base=2 if against == "atoms" else 10)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    margin = 0.06 * (limits[1] - limits[0]) or 1.0
    axes.set_ylim(max(0.0, limits[0] - margin), limits[1] + margin)
    axes.margins(x=0.05)
    axes.xaxis.set_major_locator(FixedLocator(_log_ticks(*axes.get_xlim(), integer=against == "atoms")))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e2ded5", linewidth=0.7)
    axes.set_axisbelow(True)


def _log_ticks(low: float, high: float, integer: bool) -> list[float]:
    """Return ticks of a logarithmic axis: powers of the base, or rounder steps where these give too few ticks."""
    from matplotlib.ticker import MaxNLocator

    for base, steps in ((2, (1,)),) if integer else ((10, (1,)), (10, (1, 3)), (10, (1, 2, 5))):
        powers = range(math.floor(math.log(low, base)) - 1, math.ceil(math.log(high, base)) + 1)
        ticks = [step * float(base) ** power for power in powers for step in steps]
        within = [tick for tick in ticks if low <= tick <= high and (tick >= 1 or not integer)]
        if len(within) >= _MIN_TICKS:
            return within
    candidates = map(
        float, MaxNLocator(nbins=_MIN_TICKS + 1, steps=(1, 2, 5, 10), integer=integer).tick_values(low, high)
    )
    return [tick for tick in candidates if low <= tick <= high and not (integer and tick % 1)]


def _label_lines(axes: Axes, lines: Sequence[_Line], gap: float, last_rank: int | None) -> None:
    """Write the names to the right of the axes, each with its marker, in the order of the last points.

    A leader connects a name with its last point only at ``last_rank`` or beyond. From further left, as where a method
    chose fewer atoms, it would cross the other lines.
    """
    low, high = axes.get_ylim()
    ordered = sorted(lines, key=lambda line: line.y[-1])
    heights = _spread_apart([(line.y[-1] - low) / (high - low) for line in ordered], gap)
    for line, height in zip(ordered, heights, strict=True):
        if last_rank is not None and line.x[-1] >= last_rank:
            color = line.style["color"]
            leader = {"arrowstyle": "-", "color": color, "linewidth": 0.6, "alpha": 0.5, "shrinkA": 0, "shrinkB": 3}
            axes.annotate(
                "",
                xy=(line.x[-1], line.y[-1]),
                xytext=(1.03, height),
                textcoords="axes fraction",
                arrowprops=leader,
                annotation_clip=False,
            )
        marker = {name: line.style[name] for name in ("color", "marker", "markeredgecolor", "markeredgewidth")}
        axes.plot([1.05], [height], transform=axes.transAxes, clip_on=False, markersize=5, linestyle="", **marker)
        axes.text(
            1.08,
            height,
            literal_text(line.method.name),
            transform=axes.transAxes,
            va="center",
            fontsize=8,
            color="#1f1e1b",
            fontweight="bold" if line.method.is_bitatoms else "normal",
        )


def _spread_apart(heights: Sequence[float], gap: float) -> list[float]:
    """Return ascending heights moved apart by at least ``gap``, within 0 and 1 if possible."""
    moved: list[float] = []
    for height in heights:
        moved.append(max(height, moved[-1] + gap) if moved else max(0.0, height))
    excess = moved[-1] - 1.0 if moved else 0.0
    if excess > 0:  # the last is too high: move those below it down
        moved[-1] -= excess
        for index in range(len(moved) - 2, -1, -1):
            moved[index] = min(moved[index], moved[index + 1] - gap)
    return moved
