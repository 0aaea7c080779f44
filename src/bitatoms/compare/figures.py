"""Pictures of a comparison: wrong cells and bits, against the number of atoms and against seconds."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..report.html.figures import Figure, plot_figure
from ..report.html.tables import DataTable
from .comparison import Comparison, Dataset, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDE, _HIGH = 4.6, 3.4  # inches
_NAME_HIGH = 0.21  # inches from one name to the next
_AXIS_HIGH = 0.6  # inches below the axes, and above
_OURS = ("#0b5c93", "#1a9a76", "#0b5c93")
# Okabe and Ito's colours, which colour-blind readers tell apart, less the blues and greens that bitatoms has
_OTHERS = ("#d55e00", "#cc79a7", "#8a6d00", "#5f5b54", "#e69f00", "#7a63d8")
_SHORTEST = 1e-4  # seconds, where an axis begins
_TICKS = 3  # that an axis has at least
_OF_A_FIGURE = re.compile(r".+-(or|xor)-(wrong|bits)-by-(atoms|seconds)\.(png|csv)")
_MARKERS = "ovs^DXP<>*hd"


class _Measure(NamedTuple):
    """What is drawn upwards."""

    slug: str
    title: str
    axis: str
    of: Callable[[Result, Dataset], float]


_MEASURES = (
    _Measure(
        "wrong",
        "Wrong cells",
        "cells that are wrong, %",
        lambda result, table: 100 * result.wrong.middle / table.n_cells,
    ),
    _Measure("bits", "Bits", "bits a row", lambda result, table: result.bits.middle / table.shape[0]),
)


def figures_of(comparison: Comparison, table: Dataset) -> list[Figure]:
    """The figures of a table, two for each algebra and measure: against atoms, and against seconds."""
    results = [result for result in comparison.results(table) if result.done]
    slug = slugs([each.name for each in comparison.tables])[comparison.tables.index(table)]
    styles = _styles(comparison)
    medians = f", medians of {comparison.n_seeds} seeds" if comparison.n_seeds > 1 else ""
    made = []
    for measure in _MEASURES:
        every = [measure.of(result, table) for result in results]
        for algebra in ("or", "xor"):
            some = [result for result in results if algebra in result.contender.algebras]
            if not some:
                continue
            # both algebras have the same scale, to be compared with each other
            for against in ("atoms", "seconds"):
                lines = _lines(some, table, measure, against, styles[algebra])
                called = f"{slug}-{algebra}", f"{algebra.upper()}{medians}"
                made.append(_figure(table, lines, measure, against, called, (min(every), max(every))))
    return made


def older_figures(folder: Path, written: Iterable[Path]) -> list[Path]:
    """Figures in a folder that a comparison wrote to: those by their names that are not among what it wrote."""
    now = {path.name for path in written}
    place = folder / "figures"
    there = sorted(place.iterdir()) if place.is_dir() else []
    return [path for path in there if path.name not in now and _OF_A_FIGURE.fullmatch(path.name)]


def slugs(names: Sequence[str]) -> list[str]:
    """Names as they can stand in the name of any file, all different."""
    made: list[str] = []
    for name in names:
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60] or "table"
        number = 1
        while (numbered := slug if number == 1 else f"{slug}-{number}") in made:
            number += 1
        made.append(numbered)
    return made


def _figure(
    table: Dataset,
    lines: Sequence[_Line],
    measure: _Measure,
    against: str,
    called: tuple[str, str],
    limits: tuple[float, float],
) -> Figure:
    """One figure: a line for each contender; ``called`` is how its name begins, and how its title ends."""
    slug, ending = called
    least = min(lines, key=lambda line: min(line.up))
    wide = "the number of atoms" if against == "atoms" else "CPU seconds"
    title = f"{measure.title} against {wide}, {ending}"
    says = f"{title}: the lowest is {least.result.contender.name}, {min(least.up):.4g} ({measure.axis})."
    rows = [
        (line.result.contender.key, result.asked, result.atoms, float(result.cpu), measure.of(result, table))
        for line in lines
        for result in line.results
    ]
    numbers = DataTable.from_rows(("contender", "atoms asked", "atoms", "CPU seconds", measure.axis), rows)

    high = max(_HIGH, _AXIS_HIGH + _NAME_HIGH * len(lines))

    def draw(axes: Axes) -> None:
        for line in lines:
            axes.plot(line.across, line.up, **line.how)
        _scales(axes, against, limits)
        axes.set_ylabel(measure.axis)
        axes.set_xlabel("atoms" if against == "atoms" else "CPU seconds")
        _name_ends(axes, lines, _NAME_HIGH / (high - _AXIS_HIGH), table.ranks[-1] if against == "atoms" else None)

    return plot_figure(f"{slug}-{measure.slug}-by-{against}", title, says, draw, numbers, (_WIDE, high))


class _Line(NamedTuple):
    """The points of a contender, from few atoms to many, and how they are drawn."""

    results: list[Result]
    across: list[float]
    up: list[float]
    how: dict[str, Any]

    @property
    def result(self) -> Result:
        """The last of its points."""
        return self.results[-1]


def _lines(
    results: Sequence[Result], table: Dataset, measure: _Measure, against: str, styles: dict[str, dict[str, Any]]
) -> list[_Line]:
    """A line for each contender."""
    grouped: dict[str, list[Result]] = {}
    for result in results:
        grouped.setdefault(result.contender.key, []).append(result)
    lines = []
    for key, points in grouped.items():
        across = [
            float(point.asked or max(1, point.atoms)) if against == "atoms" else max(float(point.cpu), _SHORTEST)
            for point in points
        ]
        lines.append(_Line(points, across, [measure.of(point, table) for point in points], styles[key]))
    return lines


def _styles(comparison: Comparison) -> dict[str, dict[str, dict[str, Any]]]:
    """How each contender is drawn, by algebra and key, the same in all figures of a comparison."""
    styles: dict[str, dict[str, dict[str, Any]]] = {"or": {}, "xor": {}}
    for algebra in styles:
        there = {run.contender.key: run.contender for run in comparison.runs if algebra in run.contender.algebras}
        ours = [key for key, contender in there.items() if contender.ours]
        # those that stand in both come first, to be drawn alike in both
        others = sorted((key for key in there if key not in ours), key=lambda key: not there[key].either)
        for colours, keys, width, size in ((_OURS, ours, 2.2, 5.5), (_OTHERS, others, 1.1, 4.5)):
            for place, key in enumerate(keys):
                marker = _MARKERS[(place + len(ours) * (keys is others)) % len(_MARKERS)]
                styles[algebra][key] = {
                    "color": colours[place % len(colours)],
                    "marker": marker,
                    "markersize": size,
                    "markeredgecolor": "white",
                    "markeredgewidth": 0.5,
                    "linewidth": width,
                    "linestyle": (0, (4, 2)) if keys is ours and place == 1 else "-",
                    "zorder": 3 if keys is ours else 2,
                }
    return styles


def _scales(axes: Axes, against: str, limits: tuple[float, float]) -> None:
    """Scales that are read without effort."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    axes.set_xscale("log", base=2 if against == "atoms" else 10)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    margin = 0.06 * (limits[1] - limits[0]) or 1.0
    axes.set_ylim(max(0.0, limits[0] - margin), limits[1] + margin)
    axes.margins(x=0.05)
    axes.xaxis.set_major_locator(FixedLocator(_ticks(*axes.get_xlim(), whole=against == "atoms")))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e2ded5", linewidth=0.7)
    axes.set_axisbelow(True)


def _ticks(low: float, high: float, whole: bool) -> list[float]:
    """Numbers to write at an axis in which equal ratios are equally wide: round ones, or as round as leaves three."""
    from matplotlib.ticker import MaxNLocator

    for base, steps in ((2, (1,)),) if whole else ((10, (1,)), (10, (1, 3)), (10, (1, 2, 5))):
        powers = range(math.floor(math.log(low, base)) - 1, math.ceil(math.log(high, base)) + 1)
        ticks = [step * float(base) ** power for power in powers for step in steps]
        within = [tick for tick in ticks if low <= tick <= high and (tick >= 1 or not whole)]
        if len(within) >= _TICKS:
            return within
    found = map(float, MaxNLocator(nbins=_TICKS + 1, steps=(1, 2, 5, 10), integer=whole).tick_values(low, high))
    return [tick for tick in found if low <= tick <= high and not (whole and tick % 1)]


def _name_ends(axes: Axes, lines: Sequence[_Line], gap: float, last: int | None) -> None:
    """The names to the right, in the order of the lines' ends, each beside its marker; they are led to from ends at the
    last number of atoms or beyond: from further left, as where a method chose fewer, it would be through all others."""
    low, high = axes.get_ylim()
    ends = sorted(lines, key=lambda line: line.up[-1])
    heights = _apart([(line.up[-1] - low) / (high - low) for line in ends], gap)
    for line, height in zip(ends, heights, strict=True):
        colour = line.how["color"]
        if last is not None and line.across[-1] >= last:
            leader = {"arrowstyle": "-", "color": colour, "linewidth": 0.6, "alpha": 0.5, "shrinkA": 0, "shrinkB": 3}
            axes.annotate(
                "",
                xy=(line.across[-1], line.up[-1]),
                xytext=(1.03, height),
                textcoords="axes fraction",
                arrowprops=leader,
                annotation_clip=False,
            )
        marker = {name: line.how[name] for name in ("color", "marker", "markeredgecolor", "markeredgewidth")}
        axes.plot([1.05], [height], transform=axes.transAxes, clip_on=False, markersize=5, linestyle="", **marker)
        axes.text(
            1.08,
            height,
            line.result.contender.name,
            transform=axes.transAxes,
            va="center",
            fontsize=8,
            color="#1f1e1b",
            fontweight="bold" if line.result.contender.ours else "normal",
        )


def _apart(heights: Sequence[float], gap: float) -> list[float]:
    """Heights, from low to high, moved so far that names at them do not touch."""
    moved: list[float] = []
    for height in heights:
        moved.append(max(height, moved[-1] + gap) if moved else max(0.0, height))
    over = moved[-1] - 1.0 if moved else 0.0
    if over > 0:  # the last stands too high: those below make room
        moved[-1] -= over
        for place in range(len(moved) - 2, -1, -1):
            moved[place] = min(moved[place], moved[place + 1] - gap)
    return moved
